//! Messages that servers push between their answers.

use super::*;
use crate::protocol::wait_queue::QueueRank;
use crate::transport::server::Pushed;

const RESOURCE: &[u8] = b"r";

/// Joins the line for the resource on the first two servers, with an open question to all servers. Returns
/// the ticket and the number in the queue.
fn stand_in_line(engine: &mut Engine) -> (OpId, u64) {
    let (asked, _) = ask(engine, 0, 9);
    let (queues, target) = (&mut engine.state.wait_queues, target());
    let number = queues.join(&target, None, NOW);
    queues.begin(&target, number, TurnRequest { is_urgent: false, is_last: false }, NOW);
    assert!(queues.may_stand_in_line(&target, number));
    let line = queues.line(&target, number).unwrap();
    line.begin_look(asked.place(), 1);
    let heard = [0, 1].map(|server| (server, QueueRank::Behind(0)));
    line.note(&heard, ServerSet::default(), Default::default(), NOW);
    let wait = Wait { pause_until: Moment::NEVER, until: Moment::NEVER };
    queues.wait(&target, number, asked, wait, NOW);
    (asked, number)
}

fn target() -> Target {
    Target::from(Arc::<[u8]>::from(RESOURCE))
}

/// A server pushes the message that this resource is free, after this number of answers.
fn push(engine: &mut Engine, server: usize, name: &[u8], behind: usize) {
    engine.state.effects.pushes.push(Pushed { server, resource: name.to_vec(), behind });
}

#[test]
fn only_a_push_after_the_answer_is_news() {
    for (behind, is_news) in [(0, false), (1, true)] {
        let mut engine = engine_of_three();
        let (asked, number) = stand_in_line(&mut engine);
        push(&mut engine, 0, RESOURCE, behind);
        bring(&mut engine, asked, 1);
        let line = engine.state.wait_queues.line(&target(), number).unwrap();
        assert_eq!(line.due(2) != Moment::NEVER, is_news, "behind {behind}");
    }
}

#[test]
fn a_push_wakes_the_driver() {
    let mut engine = engine_of_three();
    stand_in_line(&mut engine);
    engine.take_change();
    push(&mut engine, 1, b"another", 0);
    engine.settle(NOW);
    assert!(!engine.take_change(), "nobody waits for that");
    push(&mut engine, 1, RESOURCE, 0);
    engine.settle(NOW);
    assert!(engine.take_change());
}
