//! Asking how many permits of a semaphore are taken.

use super::*;
use crate::protocol::command::SlotValue;
use crate::protocol::command::Verb::Inspect as Inspecting;
use crate::protocol::operation::inspect_permits::InspectPermits;

fn count() -> InspectPermits {
    InspectPermits::new(Target::new(Arc::from(&b"r"[..]), LockKind::Permit { of: 3 }))
}

/// These slots are held.
fn has(server: usize, slots: &[u16]) -> Word {
    let value = |&slot| SlotValue { slot, value: vec![b'x', slot as u8], left_ms: 1_000 };
    (server, Answer::Permits(slots.iter().map(value).collect()))
}

#[test]
fn permits_are_counted_on_a_quorum() {
    let mut play = Play::of(3);
    assert_eq!(play.submit(count()), [Ask(Inspecting, 500)]);
    assert_eq!(play.hear(0, &[has(0, &[0, 2])]), []);
    assert_eq!(play.hear(0, &[has(2, &[0, 2])]), [ended("counted: 2")]);
}

#[test]
fn the_end_of_a_permit_needs_all_relevant_answers() {
    let mut play = Play::of(3);
    play.submit(count());
    let longer = SlotValue { slot: 0, value: vec![b'x', 0], left_ms: 9_000 };
    assert_eq!(play.hear(0, &[has(0, &[0]), (1, Answer::Permits(vec![longer.clone()]))]), []);
    assert_eq!(play.hear(0, &[(2, Answer::Permits(vec![longer]))]), [ended("counted: 1")]);
}

#[test]
fn a_silent_server_is_named() {
    let mut play = Play::of(3);
    play.submit(count());
    let acts = play.hear(0, &[refused(1), has(0, &[1]), has(2, &[1])]);
    assert_eq!(acts, [ended("counted: 1 without: b:1 OOM: out of memory")]);
}

#[test]
fn differing_answers_leave_the_result_open() {
    let mut play = Play::of(3);
    play.submit(count());
    let words = "Unreachable: 2 of 3 servers answered, 2 needed; but the replies differ, and the missing servers \
     could complete a quorum: b:1 OOM: out of memory";
    assert_eq!(play.hear(0, &[refused(1), has(0, &[1]), has(2, &[])]), [ended(words)]);
}

#[test]
fn too_few_answers_give_no_result() {
    let mut play = Play::of(3);
    play.submit(count());
    play.hear(0, &[has(0, &[1])]);
    assert_eq!(play.at(500).time_is_up(0), [ended(ONE_OF_THREE)]);
}

#[test]
fn an_inspection_connects_first() {
    let mut play = Play::of(3);
    play.world.connected = 1;
    assert_eq!(play.submit(count()), [Prepare(2)]);
    assert_eq!(play.prepared(0), [Connect(1_500)]);
    assert_eq!(play.hear(0, &[yes(0), yes(1), yes(2)]), [Prepare(0)]);
    assert_eq!(play.prepared(0), [Connect(2)]);
    assert_eq!(play.hear(0, &[yes(0), yes(1), yes(2)]), [Ask(Inspecting, 500)]);
    assert_eq!(play.hear(0, &[has(0, &[]), has(1, &[])]), [ended("counted: 0")]);
}

#[test]
fn an_inspection_without_connections_fails() {
    let mut play = Play::of(3);
    play.world.connected = 0;
    play.submit(count());
    play.finds_nobody(0);
}
