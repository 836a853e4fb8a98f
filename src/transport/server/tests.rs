use super::*;
use crate::protocol::conn::queue::samples::{SERVER, TICKET, moves, required_and_not};

const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

/// A server that nobody has connected to.
fn server() -> Server {
    let endpoint = Endpoint::parse("127.0.0.1", 1).unwrap();
    let server_registry = Arc::new(ServerRegistry::new(SERVER + 1, Arc::default()));
    Server::new(SERVER, endpoint, Arc::default(), Arc::default(), server_registry)
}

/// The waiting caller is told that the request was not sent.
#[test]
fn an_unsent_release_is_sent_later() {
    for (request, is_kept) in required_and_not() {
        let (mut server, mut effects) = (server(), Effects::default());
        server.ask(&request, TICKET, 100, NOW, &mut effects);
        assert!(matches!(effects.deliveries[..], [Delivery { sent: false, .. }]));
        assert_eq!(server.has_unsent(), is_kept);
    }
}

#[test]
fn a_failed_connection_is_seen_by_the_next_call() {
    let mut server = server();
    let mut effects = Effects::default();
    let words = "closed".to_owned();
    let lost = Change::Lost { how: words.clone() };
    for change in [lost, Change::Failed { why: words, first: false }] {
        effects.health.note(3, NOW);
        assert!(effects.health.is_good(3, NOW));
        server.handle_change(Some(change), NOW, &mut effects);
        assert!(!effects.health.is_good(3, NOW));
        assert!(mem::take(&mut effects.server_may_be_due));
    }
}

/// What was read may need an answer, and nobody looks at the server again for that.
#[test]
fn a_server_that_was_read_outside_of_its_turn_may_be_due() {
    let (mut server, mut effects) = (server(), Effects::default());
    server.condition(None, NOW, &mut effects);
    assert!(mem::take(&mut effects.server_may_be_due));
    server.handle_ready(NOW, &mut effects);
    assert!(!effects.server_may_be_due);
}

#[test]
fn a_server_outside_a_move_is_not_asked() {
    let server = server();
    let [ours, others] = moves();
    assert_eq!(server.left_out(&ours), None);
    assert_eq!(server.left_out(&others), Some(Failure::NotMoved));
    required_and_not().iter().for_each(|(it, _)| assert_eq!(server.left_out(it), None));
}
