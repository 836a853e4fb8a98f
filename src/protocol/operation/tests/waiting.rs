//! Acquires that wait for each other, and for a lock of their own manager.

use super::*;
use crate::protocol::command::Verb::{Acquire, AcquireAgain, Release};

fn for_a_minute() -> Plan {
    Plan::Until(at(60_000))
}

/// Another client has the lock, for 50 s since the beginning.
fn refuse(play: &mut Play, call: usize) -> Vec<Act> {
    let left_ms = at(50_000).ms_since(play.calls[call].as_ref().unwrap().asked_at);
    let acts = play.hear(call, &[taken(0, left_ms), taken(1, left_ms)]);
    assert_eq!(acts[0], Tell(Release, vec![2]));
    acts.into_iter().skip(1).collect()
}

#[test]
fn a_waiter_behind_another_has_no_pause() {
    let mut play = Play::of(3);
    assert_eq!(play.acquire(for_a_minute()), [Ask(Acquire, 500)]);
    // The waiter looks once a second whether it is the first by now.
    assert_eq!(play.at(10).acquire(for_a_minute()), [WaitUntil(1_010)]);
    assert_eq!(play.at(1_010).time_out(1), [WaitUntil(2_010)]);
    // The pause of a caller that has tries left is the pause of the settings.
    assert_eq!(play.acquire(Plan::Tries(2)), [WaitUntil(1_210)]);
    // The last try is made out of turn.
    assert_eq!(play.at(1_210).time_out(2), [Ask(Acquire, 1_710)]);
}

#[test]
fn a_waiter_behind_asks_out_of_turn_at_its_timeout() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    assert_eq!(play.acquire(Plan::Until(at(100))), [WaitUntil(100)]);
    assert_eq!(play.at(100).time_out(1), [Ask(Acquire, 600)]);
}

#[test]
fn a_new_holder_wakes_the_next_only_if_it_looks_too_late() {
    for (ttl_ms, told) in [(TTL, None), (100, Some(EndWait(1)))] {
        let mut play = Play::of(3);
        let wanted = Wanted { ttl_ms, ..play.wanted(Plan::Tries(1)) };
        play.acquire_as(wanted);
        assert_eq!(play.acquire(for_a_minute()), [WaitUntil(1_000)]);
        let acts = play.hear(0, &[yes(0), yes(1)]);
        let all: Vec<Act> = told.into_iter().chain([ended("acquired")]).collect();
        assert_eq!(acts, all);
        // The waiter looks every 100 ms, and when the lock ends.
        let looks_at = if ttl_ms == TTL { 100 } else { 97 };
        assert_eq!(play.time_out(1), [WaitUntil(looks_at)]);
    }
}

#[test]
fn an_own_lock_is_asked_for_once_a_second() {
    let (mut play, _) = Play::holding_and_waiting();
    for ms in (100..1_000).step_by(100) {
        assert_eq!(play.at(ms).time_out(1), [WaitUntil(ms + 100)]);
    }
    assert_eq!(play.at(1_000).time_out(1), [Ask(Acquire, 1_500)]);
    let acts = play.at(1_001).hear(1, &[taken(0, 8_900), taken(1, 8_900)]);
    assert_eq!(acts, [Tell(Release, vec![2]), WaitUntil(1_101)]);
}

#[test]
fn a_last_try_does_not_ask_for_an_own_lock() {
    let (mut play, _) = Play::holding_and_waiting();
    let words = "Taken: held by another lease of this manager (9888 ms left)";
    assert_eq!(play.at(10).acquire(Plan::Tries(1)), [ended(words)]);
    assert_eq!(play.acquire(Plan::Tries(2)), [WaitUntil(210)]);
}

#[test]
fn a_lock_lost_by_another_manager_is_asked_for_soon() {
    let (mut play, view) = Play::holding_and_waiting();
    view.held_lock().pass_to(Phase::Lost);
    assert_eq!(play.at(100).time_out(1), [Ask(Acquire, 600)]);
}

#[test]
fn a_turn_makes_a_waiter_ask_at_once() {
    let (mut play, _) = Play::holding_and_waiting();
    assert_eq!(play.at(50).happen(1, Event::YourTurn), [Ask(Acquire, 550)]);
    assert_eq!(play.hear(1, &[yes(0), yes(1)]), [ended("acquired")]);
}

#[test]
fn a_turn_is_a_first_try_or_is_cut_short() {
    let (mut play, _) = Play::holding();
    assert_eq!(play.acquire(Plan::Until(at(300))), [WaitUntil(100)]);
    assert_eq!(play.at(50).happen(1, Event::YourTurn), [Ask(Acquire, 550)]);
    refuse(&mut play, 1);
    assert_eq!(play.at(290).happen(1, Event::YourTurn), [Ask(AcquireAgain, 325)]);
}

#[test]
fn an_ended_wait_gives_no_turn_in_a_pause() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    assert_eq!(refuse(play.at(20), 0), [WaitUntil(60)]);
    // The wait was ended by another operation.
    assert_eq!(play.at(30).time_out(0), [WaitUntil(60)]);
    assert_eq!(play.at(60).time_out(0), [Ask(AcquireAgain, 560)]);
}

#[test]
fn an_early_turn_uses_no_try() {
    for (is_early, tries_left) in [(true, 1), (false, 0)] {
        let (mut play, view) = Play::holding();
        assert_eq!(play.acquire(Plan::Tries(2)), [Ask(Acquire, 500)]);
        assert_eq!(refuse(&mut play, 1), [WaitUntil(100)]);
        if is_early {
            view.held_lock().pass_to(Phase::Over);
        }
        // The pause is over at 200 ms.
        play.at(if is_early { 100 } else { 200 });
        assert!(matches!(play.time_out(1)[..], [Ask(AcquireAgain, _)]));
        let acts = refuse(&mut play, 1);
        assert_eq!(usize::from(matches!(acts[..], [WaitUntil(_)])), tries_left, "{acts:?}");
    }
}

#[test]
fn a_nested_call_asks_at_once() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    let wanted = Wanted { thread: Some(1), ..play.wanted(for_a_minute()) };
    assert_eq!(play.acquire_as(wanted), [Ask(Acquire, 500)]);
    assert_eq!(refuse(play.at(1), 1), [WaitUntil(3)]);
}

#[test]
fn a_leaving_waiter_blocks_nobody() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    play.acquire(for_a_minute());
    play.acquire(for_a_minute());
    // A waiter that is behind the first one has nobody to tell.
    assert_eq!(play.at(5).leave(1), []);
    assert_eq!(play.leave(0), [EndWait(2)]);
    assert_eq!(play.time_out(2), [Ask(Acquire, 505)]);
}
