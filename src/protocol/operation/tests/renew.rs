//! Keeping a lock: when it is extended, when an extension is tried again, and when the lock is reported as not
//! kept.

use std::ops::RangeInclusive;

use super::*;
use crate::protocol::command::Verb::{Extend as Extending, Release as Releasing};
use crate::protocol::keeper::Keeper;
use crate::protocol::operation::renew::Renew;

/// Call 1 keeps the lock of call 0. At `GIVEN_UP_AT`, 15 percent of the TTL are left.
const GIVEN_UP_AT: i64 = 8_397;

/// When a lock is extended that was granted at this time: between a sixth and a third of its TTL later, on a grid
/// of 19 ms.
fn window(granted_at: i64) -> RangeInclusive<i64> {
    let from = granted_at + VALID_MS - TTL;
    from + TTL / 6 - 19..=from + TTL / 3
}

fn keep() -> (Play, View, Keeper) {
    let (mut play, view) = Play::holding();
    let keeper = Keeper::new();
    let acts = play.submit(Renew::new(view.clone(), keeper.kept()));
    assert_eq!(acts.len(), 2, "{acts:?}");
    assert_eq!(acts[0], Keep);
    let WaitUntil(ms) = acts[1] else { panic!("{acts:?}") };
    assert!(window(0).contains(&ms), "{ms}");
    (play, view, keeper)
}

/// The moment that the operation waits for.
fn waited_for(acts: &[Act]) -> i64 {
    let [WaitUntil(ms)] = acts else { panic!("{acts:?}") };
    *ms
}

#[test]
fn a_kept_lock_is_extended_after_a_third_of_its_ttl() {
    let (mut play, view, _keeper) = keep();
    assert_eq!(play.at(3_300).time_out(1), [Ask(Extending, 3_800)]);
    let acts = play.at(3_310).hear(1, &[extended(0), extended(1)]);
    assert_eq!(view.held_lock().valid_until(), at(3_300 + VALID_MS));
    let next = waited_for(&acts);
    assert!(window(3_300).contains(&next), "{next}");
    assert_eq!(play.at(next).time_out(1), [Ask(Extending, next + 500)]);
}

/// Otherwise locks that are taken together would always be extended together.
#[test]
fn renewals_are_spread_over_their_window() {
    const LOCKS: i64 = 300;
    const PARTS: i64 = 10;
    let at_ms = |ms: i64| {
        let (mut play, view) = Play::holding();
        view.held_lock().extend_to(at(ms + VALID_MS), TTL);
        waited_for(&play.submit(Renew::new(view, Keeper::new().kept()))[1..])
    };
    let mut in_part = [0; PARTS as usize];
    let first = at_ms(1_000);
    for ms in 1_000..1_000 + LOCKS {
        let renewed_at = at_ms(ms);
        assert!(window(ms).contains(&renewed_at), "{renewed_at}");
        assert_eq!((renewed_at - first) % 19, 0);
        let part = (renewed_at - window(ms).start()) * PARTS / (TTL / 6 + 20);
        in_part[part as usize] += 1;
    }
    // Each part has about 30 of them.
    assert!(in_part.iter().all(|it| (10..=60).contains(it)), "{in_part:?}");
}

#[test]
fn a_failed_renewal_is_retried_until_little_is_left() {
    let (mut play, view, _keeper) = keep();
    let (mut now, mut attempts) = (3_300, 0);
    let acts = loop {
        let acts = play.at(now).time_out(1);
        let Some(Ask(Extending, until)) = acts.first() else { break acts };
        attempts += 1;
        assert!(*until <= GIVEN_UP_AT, "{until}");
        now += 100;
        let acts = play.at(now).hear(1, &[down(0), down(1), extended(2)]);
        now = waited_for(&acts);
    };
    assert!(attempts > 10, "{attempts}");
    assert_eq!(now, GIVEN_UP_AT);
    let words = "Unreachable: the lock could not be kept alive: 0 of 3 servers extended, 2 needed: a:1 not \
                 connected: connection refused, b:1 not connected: connection refused, c:1 agreed later";
    assert_eq!(acts, [ended(words)]);
    // The lock is still valid.
    assert!(view.held_lock().remaining_ms(at(now)) >= TTL / 10);
}

#[test]
fn a_success_forgets_earlier_failures() {
    let (mut play, view, _keeper) = keep();
    play.at(3_300).time_out(1);
    let again = waited_for(&play.at(3_310).hear(1, &[down(0), down(1), extended(2)]));
    assert_eq!(again, 3_310 + TTL / 30);
    assert_eq!(play.at(again).time_out(1), [Ask(Extending, again + 500)]);
    play.hear(1, &[extended(0), extended(1)]);
    assert_eq!(view.held_lock().valid_until(), at(again + VALID_MS));
}

#[test]
fn a_majority_loss_is_reported_at_once() {
    let (mut play, view, _keeper) = keep();
    play.at(3_300).time_out(1);
    let acts = play.at(3_310).hear(1, &[gone(0), gone(1)]);
    let words = "Lost: the lock could not be kept alive: 0 of 3 servers extended, 2 needed: a:1 no longer has the \
     lock, b:1 no longer has the lock, c:1 was not heard";
    assert_eq!(acts.first(), Some(&Tell(Releasing, vec![0, 1, 2])));
    assert_eq!(acts.last(), Some(&ended(words)));
    assert!(view.held_lock().is_over());
}

#[test]
fn a_lock_that_is_found_to_end_earlier_is_given_up_earlier() {
    let (mut play, view, keeper) = keep();
    assert_eq!(play.at(3_300).time_out(1), [Ask(Extending, 3_800)]);
    let (known, end) = (view.held_lock().valid_until(), at(5_000));
    assert!(view.held_lock().shorten(known, (end, end)));
    let renew = Renew::new(view, keeper.kept());
    assert_eq!(Operation::limit(&renew), Some(at(GIVEN_UP_AT - VALID_MS + 5_000)));
}

#[test]
fn the_keep_alive_of_a_released_lock_ends_silently() {
    let (mut play, view, _keeper) = keep();
    play.submit(Release::new(view.clone()));
    assert_eq!(play.world.woken, [*view.held_lock().token()]);
    assert_eq!(play.time_out(1), [ended("stopped")]);
}

#[test]
fn a_release_during_a_renewal_ends_the_keep_alive() {
    let (mut play, view, _keeper) = keep();
    play.at(3_300).time_out(1);
    play.submit(Release::new(view));
    let acts = play.hear(1, &[gone(0), gone(1)]);
    assert_eq!(acts.last(), Some(&ended("stopped")));
}

#[test]
fn the_keep_alive_ends_with_its_lease() {
    let (mut play, _, keeper) = keep();
    drop(keeper);
    assert_eq!(play.at(3_300).time_out(1), [ended("stopped")]);
}

#[test]
fn a_loss_found_by_another_call_is_reported() {
    let (mut play, view, _keeper) = keep();
    play.submit(Extend::new(view, TTL));
    play.hear(2, &[gone(0), gone(1)]);
    assert_eq!(play.world.woken.len(), 1);
    assert_eq!(play.time_out(1), [ended("Lost: the lock could not be kept alive")]);
}

/// The program is asked for a password, and does not answer.
#[test]
fn a_loss_is_reported_in_time_despite_a_chore() {
    let (mut play, _, _keeper) = keep();
    play.world.connected = 0;
    let acts = play.at(3_300).time_out(1);
    assert_eq!(acts, [Prepare(2), WaitUntil(GIVEN_UP_AT)]);
    let acts = play.at(GIVEN_UP_AT).time_out(1);
    assert_eq!(acts, [ended("Unreachable: the lock could not be kept alive")]);
}

#[test]
fn a_renewal_after_the_expiry_reports_a_loss() {
    let (mut play, _, _keeper) = keep();
    assert_eq!(play.at(VALID_MS).time_out(1), [ended("Lost: the lock could not be kept alive")]);
}

/// There is time to renew the lock before little is left.
#[test]
fn a_lock_with_a_short_ttl_is_renewed_in_time() {
    let (mut play, view) = Play::holding();
    view.held_lock().extend_to(at(VALID_MS), 20);
    let keeper = Keeper::new();
    let mut next = waited_for(&play.submit(Renew::new(view, keeper.kept()))[1..]);
    let acts = loop {
        let acts = play.at(next).time_out(1);
        match acts[..] {
            [WaitUntil(later)] => next = later,
            _ => break acts,
        }
    };
    assert!(matches!(acts[..], [Ask(Extending, _)]), "{acts:?}");
}

/// The moment that it waits for is too late by then, because a lock with a long TTL must be renewed earlier.
#[test]
fn an_extension_with_another_ttl_wakes_the_keep_alive() {
    let (mut play, view) = Play::holding();
    view.held_lock().extend_to(at(VALID_MS), 100);
    let keeper = Keeper::new();
    let first = waited_for(&play.submit(Renew::new(view.clone(), keeper.kept()))[1..]);
    play.at(300).submit(Extend::new(view.clone(), TTL));
    play.at(310).hear(2, &[extended(0), extended(1)]);
    assert_eq!(play.world.woken, [*view.held_lock().token()]);
    let next = waited_for(&play.time_out(1));
    assert!(next < first && next < 300 + VALID_MS / 2, "{next}, not {first}");
}

#[test]
fn a_freed_lease_stops_a_connecting_renewal() {
    let (mut play, _, keeper) = keep();
    play.world.connected = 0;
    let acts = play.at(3_300).time_out(1);
    assert_eq!(acts, [Prepare(2), WaitUntil(GIVEN_UP_AT)]);
    drop(keeper);
    assert_eq!(play.prepared(1), [ended("stopped")]);
}

/// The TTL is given through another manager, which wakes no operation here.
#[test]
fn a_longer_ttl_from_another_manager_is_kept() {
    let (mut play, view) = Play::holding();
    view.held_lock().extend_to(at(VALID_MS), 20);
    let keeper = Keeper::new();
    let first = waited_for(&play.submit(Renew::new(view.clone(), keeper.kept()))[1..]);
    view.held_lock().extend_to(at(500 + TTL), TTL);
    assert!(first < 500 + TTL / 2, "{first}");
    let acts = play.at(first).time_out(1);
    assert!(matches!(acts[..], [Ask(Extending, _)]), "{acts:?}");
}

#[test]
fn a_renewal_in_progress_outlives_its_lease() {
    let (mut play, view, keeper) = keep();
    assert_eq!(play.at(3_300).time_out(1), [Ask(Extending, 3_800)]);
    drop(keeper);
    assert_eq!(play.hear(1, &[extended(0), extended(1)]), [ended("stopped")]);
    assert_eq!(view.held_lock().valid_until(), at(3_300 + VALID_MS));
}

/// 15 percent of 10,050 ms, rounded up, plus a millisecond.
#[test]
fn the_safety_margin_is_rounded_up() {
    let (mut play, view) = Play::holding();
    view.held_lock().extend_to(at(VALID_MS), TTL + 50);
    let keeper = Keeper::new();
    play.submit(Renew::new(view, keeper.kept()));
    play.world.connected = 0;
    let acts = play.at(3_300).time_out(1);
    assert_eq!(acts, [Prepare(2), WaitUntil(VALID_MS - 1_508 - 1)]);
}
