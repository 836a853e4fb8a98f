use super::*;

const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

#[test]
fn a_connection_that_is_lost_or_cannot_be_had_is_seen_by_the_next_call() {
    let endpoint = Endpoint::parse("127.0.0.1", 1).unwrap();
    let lineup = Arc::new(Lineup::new(1, Arc::default()));
    let mut server = Server::new(0, endpoint, Arc::default(), Arc::default(), lineup);
    let mut effects = Effects::default();
    let words = "closed".to_owned();
    let lost = Change::Lost { how: words.clone() };
    for change in [lost, Change::Failed { why: words, first: false }] {
        effects.health.note(3, NOW);
        assert!(effects.health.is_good(3, NOW));
        server.handle_change(Some(change), &mut effects);
        assert!(!effects.health.is_good(3, NOW));
    }
}
