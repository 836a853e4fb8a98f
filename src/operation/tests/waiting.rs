//! Acquires that wait for each other, for a lock of their own manager, and in slices.

use super::*;
use crate::command::Verb::{Acquire, AcquireAgain, Release};

const OTHERS: &str = "other callers in this process are ahead in the queue for the resource";

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
fn who_comes_behind_another_waits_without_a_pause() {
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
fn when_the_time_of_who_is_behind_is_up_it_asks_out_of_turn() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    assert_eq!(play.acquire(Plan::Until(at(100))), [WaitUntil(100)]);
    assert_eq!(play.at(100).time_out(1), [Ask(Acquire, 600)]);
}

#[test]
fn who_has_the_lock_tells_the_next_only_if_it_looks_too_late() {
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
fn what_this_manager_has_is_asked_for_once_a_second() {
    let (mut play, _) = Play::holding_and_waiting();
    for ms in (100..1_000).step_by(100) {
        assert_eq!(play.at(ms).time_out(1), [WaitUntil(ms + 100)]);
    }
    assert_eq!(play.at(1_000).time_out(1), [Ask(Acquire, 1_500)]);
    let acts = play.at(1_001).hear(1, &[taken(0, 8_900), taken(1, 8_900)]);
    assert_eq!(acts, [Tell(Release, vec![2]), WaitUntil(1_101)]);
}

#[test]
fn a_last_try_behind_another_does_not_ask_for_what_this_manager_has() {
    let (mut play, _) = Play::holding_and_waiting();
    let words = "Taken: held by another lease of this manager (9888 ms left)";
    assert_eq!(play.at(10).acquire(Plan::Tries(1)), [ended(words)]);
    assert_eq!(play.acquire(Plan::Tries(2)), [WaitUntil(210)]);
}

#[test]
fn what_another_manager_found_out_to_be_lost_is_asked_for_at_the_next_look() {
    let (mut play, view) = Play::holding_and_waiting();
    view.hold().pass_to(Phase::Lost);
    assert_eq!(play.at(100).time_out(1), [Ask(Acquire, 600)]);
}

#[test]
fn who_is_given_the_turn_asks_at_once() {
    let (mut play, _) = Play::holding_and_waiting();
    assert_eq!(play.at(50).happen(1, Event::YourTurn), [Ask(Acquire, 550)]);
    assert_eq!(play.hear(1, &[yes(0), yes(1)]), [ended("acquired")]);
}

#[test]
fn a_turn_is_a_first_try_or_is_cut_short_like_any_other() {
    let (mut play, _) = Play::holding();
    assert_eq!(play.acquire(Plan::Until(at(300))), [WaitUntil(100)]);
    assert_eq!(play.at(50).happen(1, Event::YourTurn), [Ask(Acquire, 550)]);
    refuse(&mut play, 1);
    assert_eq!(play.at(290).happen(1, Event::YourTurn), [Ask(AcquireAgain, 325)]);
}

#[test]
fn the_end_of_a_wait_is_no_turn_while_there_is_a_pause() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    assert_eq!(refuse(play.at(20), 0), [WaitUntil(60)]);
    // The wait was ended by another operation.
    assert_eq!(play.at(30).time_out(0), [WaitUntil(60)]);
    assert_eq!(play.at(60).time_out(0), [Ask(AcquireAgain, 560)]);
}

#[test]
fn a_turn_that_comes_early_is_no_try_of_so_many() {
    for (is_early, tries_left) in [(true, 1), (false, 0)] {
        let (mut play, view) = Play::holding();
        assert_eq!(play.acquire(Plan::Tries(2)), [Ask(Acquire, 500)]);
        assert_eq!(refuse(&mut play, 1), [WaitUntil(100)]);
        if is_early {
            view.hold().pass_to(Phase::Over);
        }
        // The pause is over at 200 ms.
        play.at(if is_early { 100 } else { 200 });
        assert!(matches!(play.time_out(1)[..], [Ask(AcquireAgain, _)]));
        let acts = refuse(&mut play, 1);
        assert_eq!(usize::from(matches!(acts[..], [WaitUntil(_)])), tries_left, "{acts:?}");
    }
}

#[test]
fn a_call_that_is_made_within_another_of_its_thread_asks_at_once() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    let wanted = Wanted { thread: Some(1), ..play.wanted(for_a_minute()) };
    assert_eq!(play.acquire_as(wanted), [Ask(Acquire, 500)]);
    assert_eq!(refuse(play.at(1), 1), [WaitUntil(3)]);
}

/// A call whose first slice ends after 50 ms, in the middle of a pause until 60 ms.
fn slice(play: &mut Play, until: i64) {
    let wanted = Wanted { slice_end: at(50), ..play.wanted(Plan::Until(at(until))) };
    assert_eq!(play.acquire_as(wanted), [Ask(Acquire, 500)]);
    assert_eq!(refuse(play.at(20), 0), [WaitUntil(50)]);
}

const REFUSED: &str = "Taken: 0 of 3 servers granted, 2 needed: a:1 held by another client (50000 ms \
                       left), b:1 held by another client (50000 ms left), c:1 was not heard";

#[test]
fn a_slice_ends_in_the_midst_of_a_pause_and_the_next_goes_on_with_it() {
    let mut play = Play::of(3);
    slice(&mut play, 500);
    assert_eq!(play.at(50).time_out(0), [ended(REFUSED)]);
    let resumed = play.world.broken_off.take();
    assert_eq!(resumed.as_ref().unwrap().pause_until, at(60));
    let wanted = Wanted { resumed, slice_end: at(55), ..play.wanted(Plan::Until(at(500))) };
    assert_eq!(play.at(51).acquire_as(wanted), [WaitUntil(55)]);
    // That slice has asked no server, and reports what the earlier slice has heard.
    assert_eq!(play.at(55).time_out(1), [ended(REFUSED)]);
    let resumed = play.world.broken_off.take();
    let wanted = Wanted { resumed, ..play.wanted(Plan::Until(at(500))) };
    assert_eq!(play.at(56).acquire_as(wanted), [WaitUntil(60)]);
    // This is not the first try, and the next pause is twice as long.
    assert_eq!(play.at(60).time_out(2), [Ask(Acquire, 525)]);
    assert_eq!(refuse(play.at(61), 2), [WaitUntil(141)]);
}

#[test]
fn a_call_that_is_refused_for_good_is_not_broken_off() {
    let mut play = Play::of(3);
    play.acquire(Plan::Tries(1));
    refuse(&mut play, 0);
    assert!(play.world.broken_off.is_none());
}

#[test]
fn whoever_is_next_goes_on_with_the_pause_of_a_slice_that_ends() {
    let mut play = Play::of(3);
    slice(&mut play, 60_000);
    assert_eq!(play.acquire(for_a_minute()), [WaitUntil(1_020)]);
    assert_eq!(play.at(50).time_out(0), [EndWait(1), ended(REFUSED)]);
    assert_eq!(play.time_out(1), [WaitUntil(60)]);
    assert_eq!(play.at(60).time_out(1), [Ask(Acquire, 560)]);
    assert_eq!(refuse(play.at(61), 1), [WaitUntil(141)]);
}

#[test]
fn a_slice_that_ends_behind_others_has_no_pause() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    let wanted = Wanted { slice_end: at(50), ..play.wanted(for_a_minute()) };
    assert_eq!(play.acquire_as(wanted), [WaitUntil(50)]);
    assert_eq!(play.at(50).time_out(1), [ended(&format!("Taken: {OTHERS}"))]);
    let broken_off = play.world.broken_off.take().unwrap();
    assert_eq!((broken_off.pause_until, broken_off.has_asked), (at(50), false));
    play.leave(0);
    let wanted = Wanted { resumed: Some(broken_off), ..play.wanted(for_a_minute()) };
    let acts = play.acquire_as(wanted);
    assert_eq!(acts, [WaitUntil(50)]);
    assert_eq!(play.time_out(2), [Ask(Acquire, 550)]);
}

#[test]
fn who_tries_so_many_times_has_no_wait_to_go_on_with() {
    let mut play = Play::of(3);
    slice(&mut play, 60_000);
    play.at(50).time_out(0);
    let resumed = play.world.broken_off.take();
    let wanted = Wanted { resumed, ..play.wanted(Plan::Tries(1)) };
    assert_eq!(play.acquire_as(wanted), [Ask(Acquire, 550)]);
}

#[test]
fn who_leaves_keeps_nobody_waiting() {
    let mut play = Play::of(3);
    play.acquire(for_a_minute());
    play.acquire(for_a_minute());
    play.acquire(for_a_minute());
    // A waiter that is behind the first one has nobody to tell.
    assert_eq!(play.at(5).leave(1), []);
    assert_eq!(play.leave(0), [EndWait(2)]);
    assert_eq!(play.time_out(2), [Ask(Acquire, 505)]);
}
