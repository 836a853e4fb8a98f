//! A lock of several resources at once: what is said of the one that is in the way.

use super::*;
use crate::command::Place;
use crate::command::Verb::{Acquire as Acquiring, Intend, Release as Releasing};

/// The resource of this number, from 1, is in the way on this server.
fn blocked(server: usize, nth: u16) -> Word {
    let place = Place { nth, of: 3 };
    (server, Answer::Blocked { place, left_ms: Some(50_000) })
}

/// Readers may have that one. Readers of the others are not kept out.
#[test]
fn a_waiter_says_that_it_waits_where_something_is_in_the_way() {
    let mut play = Play::of(3);
    let names = ["r#1", "r#2", "r#3"].map(|name| Arc::from(name.as_bytes()));
    let kind = LockKind::Several(Arc::new(names));
    let target = Target::new(Arc::from(&b"r"[..]), kind);
    let wanted = Wanted { target, ..play.wanted(Plan::Until(at(60_000))) };
    assert_eq!(play.acquire_as(wanted), [Ask(Acquiring, 500)]);
    let acts = play.at(1).hear(0, &[blocked(0, 2), blocked(1, 2)]);
    let [Tell(Releasing, _), Tell(Intend, ref all), WaitUntil(_)] = acts[..] else {
        panic!("{acts:?}")
    };
    assert_eq!(all[..], [0, 1, 2]);
    assert_eq!(play.world.told.as_ref().unwrap().resource(), b"r#2");
}
