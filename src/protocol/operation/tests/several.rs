//! A lock of several resources at once: what is said of the resource that is in the way.

use super::*;
use crate::protocol::command::NthKey;
use crate::protocol::command::Verb::{
    Acquire as Acquiring, AnnounceWriter, JoinWaitlist, Leave, Release as Releasing,
};

/// The resource of this number, from 1, is in the way on this server.
fn blocked(server: usize, nth: u16) -> Word {
    let place = NthKey { nth, of: 3 };
    (server, Answer::Blocked { place, left_ms: Some(50_000) })
}

/// A caller waits for three resources.
fn want_three(play: &mut Play) -> Vec<Act> {
    let names = ["r#1", "r#2", "r#3"].map(|name| Arc::from(name.as_bytes()));
    let kind = LockKind::Several(Arc::new(names));
    let target = Target::new(Arc::from(&b"r"[..]), kind);
    let wanted = Wanted { target, ..play.wanted(Plan::Until(at(60_000))) };
    play.acquire_as(wanted)
}

/// Readers may have the resource that is in the way. Readers of the other resources are not kept out.
#[test]
fn a_writer_for_several_announces_only_the_blocked_one() {
    let mut play = Play::of(3);
    assert_eq!(want_three(&mut play), [Ask(Acquiring, 500)]);
    let acts = play.at(1).hear(0, &[blocked(0, 2), blocked(1, 2)]);
    let [Tell(Releasing, _), Tell(AnnounceWriter, ref all), WaitUntil(_)] = acts[..] else {
        panic!("{acts:?}")
    };
    assert_eq!(all[..], [0, 1, 2]);
    assert_eq!(play.world.told.as_ref().unwrap().resource(), b"r#2");
}

/// Another client has this resource alone, and we stand in its line.
fn behind_one(server: usize, nth: u16) -> Word {
    let (place, left_ms, rank) = (NthKey { nth, of: 3 }, Some(50_000), Some(0));
    (server, Answer::EnrolledForOne { place, left_ms, rank, is_shared: false })
}

#[test]
fn a_waiter_leaves_the_line_of_a_freed_resource() {
    let mut play = Play::of(3);
    play.world.policy.set_waking(true);
    want_three(&mut play);
    let acts = play.hear(0, &[blocked(0, 2), blocked(1, 2)]);
    assert!(matches!(acts[..], [.., Ask(JoinWaitlist, 500)]), "{acts:?}");
    let acts = play.hear(0, &[behind_one(0, 2), behind_one(1, 2)]);
    let WaitUntil(until) = acts[acts.len() - 1] else { panic!("{acts:?}") };
    assert_eq!(play.at(until).time_out(0), [Ask(JoinWaitlist, until + 500)]);
    let acts = play.hear(0, &[behind_one(0, 3), behind_one(1, 3)]);
    assert!(acts.iter().any(|act| matches!(act, Tell(Leave, _))), "{acts:?}");
    assert_eq!(play.world.told.as_ref().unwrap().resource(), b"r#2");
}
