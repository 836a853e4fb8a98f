//! Asking how many permits of a semaphore are taken.

use super::*;
use crate::command::SlotValue;
use crate::command::Verb::Inspect as Inspecting;
use crate::operation::inspect_permits::InspectPermits;

fn count() -> InspectPermits {
    InspectPermits::new(Target::new(Arc::from(&b"r"[..]), LockKind::Permit { of: 3 }))
}

/// These slots are held.
fn has(server: usize, slots: &[u16]) -> Word {
    let value = |&slot| SlotValue { slot, value: vec![b'x', slot as u8], left_ms: 1_000 };
    (server, Answer::Permits(slots.iter().map(value).collect()))
}

#[test]
fn permits_are_counted_that_a_quorum_has() {
    let mut play = Play::of(3);
    assert_eq!(play.submit(count()), [Ask(Inspecting, 500)]);
    assert_eq!(play.hear(0, &[has(0, &[0, 2])]), []);
    assert_eq!(play.hear(0, &[has(2, &[0, 2])]), [ended("counted: 2")]);
}

#[test]
fn when_a_permit_is_free_does_not_depend_on_who_answers_first() {
    let mut play = Play::of(3);
    play.submit(count());
    let longer = SlotValue { slot: 0, value: vec![b'x', 0], left_ms: 9_000 };
    assert_eq!(play.hear(0, &[has(0, &[0]), (1, Answer::Permits(vec![longer.clone()]))]), []);
    assert_eq!(play.hear(0, &[(2, Answer::Permits(vec![longer]))]), [ended("counted: 1")]);
}

#[test]
fn who_could_not_say_is_named() {
    let mut play = Play::of(3);
    play.submit(count());
    let acts = play.hear(0, &[refused(1), has(0, &[1]), has(2, &[1])]);
    assert_eq!(acts, [ended("counted: 1 without: b:1 OOM: out of memory")]);
}

#[test]
fn what_answers_that_differ_leave_open_is_said() {
    let mut play = Play::of(3);
    play.submit(count());
    let words = "Unreachable: 2 of 3 servers answered, 2 needed; but the replies differ, and the missing servers \
     could complete a quorum: b:1 OOM: out of memory";
    assert_eq!(play.hear(0, &[refused(1), has(0, &[1]), has(2, &[])]), [ended(words)]);
}

#[test]
fn what_too_few_servers_say_is_nothing() {
    let mut play = Play::of(3);
    play.submit(count());
    play.hear(0, &[has(0, &[1])]);
    assert_eq!(play.at(500).time_is_up(0), [ended(ONE_OF_THREE)]);
}

#[test]
fn without_connections_it_connects_and_asks() {
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
fn where_nothing_can_be_connected_to_nothing_is_known() {
    let mut play = Play::of(3);
    play.world.connected = 0;
    play.submit(count());
    play.finds_nobody(0);
}
