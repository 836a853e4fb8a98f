//! Each operation cancelled at each of its stages. Nothing of it is left, and nobody waits for it.

use super::*;
use crate::protocol::command::Verb::{Acquire, Extend as Extending, Inspect, Release as Releasing};

const CANCELLED: &str = "Cancelled: the call was cancelled";

/// A byte of the request was sent to these servers.
fn cancel(play: &mut Play, call: usize, sent: &[usize]) -> Vec<Act> {
    play.happen(call, Event::Cancelled { sent: sent.iter().copied().collect() })
}

#[test]
fn an_unstarted_acquire_leaves_nothing() {
    let mut play = Play::of(3);
    let wanted = play.wanted(Plan::Tries(3));
    let token = play.world.draw_token().unwrap();
    let acts = play.submit_with(
        super::super::acquire::Acquire::new(wanted, token),
        Event::Cancelled { sent: ServerSet::default() },
    );
    assert_eq!(acts, [ended(CANCELLED)]);
    // No waiter stands in the queue.
    assert_eq!(play.acquire(Plan::Tries(1)), [Ask(Acquire, 500)]);
}

#[test]
fn a_connecting_acquire_leaves_nothing() {
    for is_prepared in [false, true] {
        let mut play = Play::of(3);
        play.world.connected = 0;
        assert_eq!(play.acquire(Plan::Tries(3)), [Prepare(2)]);
        if is_prepared {
            play.prepared(0);
        }
        assert_eq!(cancel(&mut play, 0, &[]), [ended(CANCELLED)]);
        assert_eq!(play.world.requests, []);
    }
}

#[test]
fn an_acquire_releases_its_possible_grants() {
    let mut play = Play::of(3);
    play.acquire(Plan::Tries(3));
    assert!(!play.say(0, &[taken(0, 5_000)]));
    // The second server was sent nothing, and the first has said that the key is another client's.
    assert_eq!(cancel(&mut play, 0, &[0, 2]), [Tell(Releasing, vec![2]), ended(CANCELLED)]);
    let tokens: Vec<_> = play.world.requests.iter().map(|it| it.1).collect();
    assert_eq!(tokens[0], tokens[1]);
}

#[test]
fn an_acquire_in_a_pause_makes_way_for_the_next() {
    let mut play = Play::of(3);
    play.acquire(Plan::Tries(3));
    play.hear(0, &[taken(0, 5_000), taken(1, 5_000)]);
    play.acquire(Plan::Until(at(60_000)));
    assert_eq!(cancel(&mut play, 0, &[]), [EndWait(1), ended(CANCELLED)]);
    assert_eq!(play.time_out(1), [Ask(Acquire, 500)]);
}

#[test]
fn an_acquire_behind_another_leaves_the_head_alone() {
    let (mut play, _) = Play::holding_and_waiting();
    play.acquire(Plan::Until(at(60_000)));
    assert_eq!(cancel(&mut play, 2, &[]), [ended(CANCELLED)]);
    assert_eq!(cancel(&mut play, 1, &[]), [ended(CANCELLED)]);
}

#[test]
fn an_extension_leaves_the_lock_unchanged() {
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), TTL));
    assert_eq!(cancel(&mut play, 1, &[0, 1, 2]), [ended(CANCELLED)]);
    assert_eq!(view.held_lock().valid_until(), at(VALID_MS));
    // The lock can be extended afterwards.
    assert_eq!(play.submit(Extend::new(view.clone(), TTL)), [Ask(Extending, 500)]);
    assert_eq!(play.hear(2, &[extended(0), extended(1)]), [ended("extended")]);
}

/// A repair is only sent while no other call asks about the lock.
#[test]
fn a_cancelled_call_blocks_no_repair() {
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), TTL));
    cancel(&mut play, 1, &[0, 1, 2]);
    play.submit(Confirm::new(view.clone(), 1));
    cancel(&mut play, 2, &[0, 1, 2]);
    play.submit(Extend::new(view, TTL));
    let acts = play.hear(3, &[gone(0), extended(1), extended(2)]);
    assert_eq!(acts, [Tell(Verb::Repair, vec![0]), ended("extended")]);
}

#[test]
fn a_confirmation_leaves_the_lock_unchanged() {
    let (mut play, view) = Play::holding();
    assert_eq!(play.submit(Confirm::new(view.clone(), 0)), [Ask(Inspect, 500)]);
    assert_eq!(cancel(&mut play, 1, &[0, 1, 2]), [ended(CANCELLED)]);
    assert!(view.held_lock().is_held(at(1)));
}

#[test]
fn a_started_release_goes_on() {
    // The requests are sent, but no caller waits for them.
    let (mut play, view) = Play::holding();
    play.submit(Release::new(view.clone()));
    assert_eq!(cancel(&mut play, 1, &[0, 1, 2]), [ended(CANCELLED)]);
    assert!(!view.held_lock().is_held(at(1)) && !view.held_lock().is_over());
    // If the release is still connecting, it is sent then, and the next waiter has its turn.
    let (mut play, view) = Play::holding_and_waiting();
    play.world.connected = 0;
    play.submit(Release::new(view));
    let acts = cancel(&mut play, 2, &[]);
    assert_eq!(acts, [Tell(Releasing, vec![0, 1, 2]), GiveTurn(1), ended(CANCELLED)]);
}

#[test]
fn an_unstarted_release_leaves_the_lock_held() {
    let (mut play, view) = Play::holding();
    let event = Event::Cancelled { sent: ServerSet::default() };
    assert_eq!(play.submit_with(Release::new(view.clone()), event), [ended(CANCELLED)]);
    assert!(view.held_lock().is_held(at(1)));
}
