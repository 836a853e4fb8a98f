//! Leaving an inner level of a lock. No server is asked, and a lock that is known to be lost is reported.

use super::*;
use crate::protocol::operation::leave::Leave;

#[test]
fn leaving_a_level_asks_no_server_and_keeps_the_lock() {
    let (mut play, view) = Play::holding_and_waiting();
    assert_eq!(play.at(10).submit(Leave::new(view.clone())), [ended("left")]);
    assert!(view.held_lock().is_held(at(10)) && !view.held_lock().was_released());
    assert_eq!(play.at(VALID_MS - 1).submit(Leave::new(view)), [ended("left")]);
}

#[test]
fn leaving_a_level_of_a_lost_lock_fails() {
    for phase in [Phase::Lost, Phase::Releasing, Phase::Over] {
        let (mut play, view) = Play::holding();
        view.held_lock().pass_to(phase);
        let words = "Lost: the lock was already released or lost";
        assert_eq!(play.submit(Leave::new(view)), [ended(words)]);
    }
    let (mut play, view) = Play::holding();
    let words = "Lost: the lock expired 0 ms ago";
    assert_eq!(play.at(VALID_MS).submit(Leave::new(view)), [ended(words)]);
}
