//! Releasing, and what happens to waiters.

use super::*;
use crate::protocol::command::Verb::{
    Acquire, Extend as Extending, Release as Releasing, ReleaseAfter,
};
use crate::protocol::operation::downgrade::Downgrade;

fn release(play: &mut Play, view: &View) -> Vec<Act> {
    play.submit(Release::new(view.clone()))
}

#[test]
fn the_next_has_its_turn_when_the_release_is_sent() {
    let (mut play, view) = Play::holding_and_waiting();
    assert_eq!(release(play.at(50), &view), [Ask(Releasing, 550), GiveTurn(1)]);
    assert_eq!(play.happen(1, Event::YourTurn), [Ask(Acquire, 550)]);
    assert_eq!(play.hear(2, &[yes(0)]), []);
    assert_eq!(play.hear(2, &[yes(2)]), [ended("released")]);
    assert!(view.held_lock().is_over());
}

#[test]
fn a_release_is_for_all_servers_with_a_possible_grant() {
    let mut play = Play::of(3);
    play.world.down = ServerSet::default().with(1);
    play.acquire(Plan::Tries(1));
    play.hear(0, &[yes(0), down(1), yes(2)]);
    let view = play.view();
    release(&mut play, &view);
    assert_eq!(play.world.requests[1], (Releasing, *view.held_lock().token(), TTL));
    let request = play.calls[1].as_ref().unwrap().request.as_ref().unwrap();
    assert_eq!([0, 1, 2].map(|server| request.must_reach(server)), [true, false, true]);
}

#[test]
fn an_asking_waiter_gets_no_turn() {
    let (mut play, view) = Play::holding();
    // The acquire asks, although in vain, because this is its only try.
    assert_eq!(play.acquire(Plan::Tries(1)), [Ask(Acquire, 500)]);
    assert_eq!(release(&mut play, &view), [Ask(Releasing, 500)]);
}

#[test]
fn after_a_long_run_the_next_waiter_stands_back() {
    let (mut play, view) = Play::holding_and_waiting();
    // This manager has had the lock for this long, and no other client had a chance.
    assert_eq!(release(play.at(200), &view), [Ask(Releasing, 700), EndWait(1)]);
    assert_eq!(play.time_out(1), [WaitUntil(204)]);
    assert_eq!(play.at(204).time_out(1), [Ask(Acquire, 704)]);
}

#[test]
fn without_randomness_the_longest_stand_back_is_used() {
    let (mut play, view) = Play::holding_and_waiting();
    play.world.random = None;
    release(play.at(200), &view);
    assert_eq!(play.time_out(1), [WaitUntil(207)]);
}

#[test]
fn a_wanted_lock_is_not_retaken_at_once() {
    let mut play = Play::of(3);
    play.acquire(Plan::Tries(2));
    play.hear(0, &[taken(0, 9), taken(1, 9)]);
    play.at(200).time_out(0);
    play.hear(0, &[yes(0), yes(1), yes(2)]);
    let view = play.view();
    assert_eq!(release(play.at(210), &view), [Ask(Releasing, 710)]);
    assert_eq!(play.acquire(Plan::Until(at(60_000))), [WaitUntil(214)]);
    // A caller with a fixed number of tries does not wait for that.
    play.leave(2);
    assert_eq!(play.acquire(Plan::Tries(1)), [Ask(Acquire, 710)]);
}

#[test]
fn an_ambiguous_release_counts_for_a_valid_lock() {
    let repeated = |server| (server, Answer::AbsentOrReleased);
    let (mut play, view) = Play::holding();
    release(play.at(500), &view);
    assert_eq!(play.hear(1, &[gone(0), repeated(1), repeated(2)]), [ended("released")]);

    let (mut play, view) = Play::holding();
    release(play.at(TTL), &view);
    let words = "Lost: 0 of 3 servers released, 2 needed: a:1 no longer has the lock, b:1 no longer has the lock, \
                 c:1 was not heard";
    assert_eq!(play.hear(1, &[repeated(0), repeated(1)]), [ended(words)]);
}

#[test]
fn an_absent_key_does_not_count_for_the_first_release() {
    let (mut play, view) = Play::holding();
    release(&mut play, &view);
    let words = "Lost: 0 of 3 servers released, 2 needed: a:1 no longer has the lock, b:1 no longer has the lock, \
                 c:1 agreed later";
    assert_eq!(play.hear(1, &[gone(0), gone(1), yes(2)]), [ended(words)]);
    assert!(view.held_lock().is_over());
}

#[test]
fn an_unanswered_release_can_be_repeated() {
    let (mut play, view) = Play::holding();
    release(&mut play, &view);
    let words = "Unreachable: 1 of 3 servers released, 2 needed: b:1 timed out after 500 ms, c:1 timed out after \
     500 ms";
    play.hear(1, &[yes(0)]);
    assert_eq!(play.at(500).time_is_up(1), [ended(words)]);
    assert!(view.held_lock().has_ended() && !view.held_lock().is_lost_or_over());
    // A server that no longer has the lock has carried out the first release.
    assert_eq!(release(&mut play, &view), [Ask(Releasing, 1_000)]);
    assert_eq!(play.hear(2, &[gone(0), gone(1)]), [ended("released")]);
    assert_eq!(release(&mut play, &view), [ended("Lost: the lock had already ended")]);
}

#[test]
fn a_server_without_a_release_is_named() {
    let (mut play, view) = Play::holding();
    release(&mut play, &view);
    let acts = play.hear(1, &[refused(1), yes(0), yes(2)]);
    assert_eq!(acts, [ended("released without: b:1 OOM: out of memory")]);
}

#[test]
fn a_lost_lock_is_still_released() {
    let (mut play, view) = Play::holding();
    view.held_lock().pass_to(Phase::Lost);
    assert_eq!(release(&mut play, &view), [Ask(Releasing, 500)]);
    let acts = play.hear(1, &[gone(0), gone(1)]);
    assert!(matches!(&acts[..], [Act::Ended(it)] if it.starts_with("Lost: 0 of 3")), "{acts:?}");
}

#[test]
fn an_earlier_release_by_another_call_counts() {
    let (mut play, view) = Play::holding();
    view.held_lock().note_release();
    release(&mut play, &view);
    assert_eq!(play.hear(1, &[gone(0), gone(1)]), [ended("released")]);
}

#[test]
fn a_concurrent_release_may_have_come_first() {
    let (mut play, view) = Play::holding();
    release(&mut play, &view);
    view.held_lock().note_release();
    assert_eq!(play.at(3).hear(1, &[gone(0), gone(1)]), [Ask(Releasing, 503)]);
    assert_eq!(play.hear(1, &[gone(0), gone(1)]), [ended("released")]);
}

/// The extension has released the lock, and told the waiter. Still, the lock had not ended when its release was
/// requested.
#[test]
fn a_release_by_an_extension_is_no_failure() {
    let (mut play, view) = Play::holding_and_waiting();
    let operation = Release::new(view.clone());
    let acts = play.at(TTL).submit(Extend::new(view.clone(), TTL));
    assert!(
        matches!(acts.last(), Some(Act::Ended(it)) if it.starts_with("Lost: the lock expired"))
    );
    assert!(view.held_lock().is_over());
    assert_eq!(play.submit(operation), [Ask(Releasing, TTL + 500)]);
    assert_eq!(play.hear(3, &[gone(0), gone(1)]), [ended("released")]);
}

#[test]
fn a_second_release_may_begin_after_the_first() {
    let (mut play, view) = Play::holding();
    let second = Release::new(view.clone());
    release(&mut play, &view);
    assert_eq!(play.hear(1, &[yes(0), yes(1)]), [ended("released")]);
    assert_eq!(play.submit(second), [Ask(Releasing, 500)]);
    assert_eq!(play.hear(2, &[gone(0), gone(1)]), [ended("released")]);
}

/// Each of the two has its own connections, and may come first on them.
#[test]
fn of_two_releases_at_once_none_reports_a_loss() {
    let (mut play, view) = Play::holding();
    assert_eq!(release(&mut play, &view), [Ask(Releasing, 500)]);
    assert_eq!(release(&mut play, &view), [Ask(Releasing, 500)]);
    assert_eq!(play.hear(2, &[yes(0), yes(1)]), [ended("released")]);
    assert_eq!(play.at(3).hear(1, &[gone(0), gone(1)]), [Ask(Releasing, 503)]);
    assert_eq!(play.hear(1, &[gone(0), gone(1)]), [ended("released")]);
}

#[test]
fn a_release_connects_first_and_then_gives_the_turn() {
    let (mut play, view) = Play::holding_and_waiting();
    play.world.connected = 1;
    assert_eq!(release(&mut play, &view), [Prepare(2)]);
    assert_eq!(play.prepared(2), [Connect(1_500)]);
    assert_eq!(play.at(4).hear(2, &[yes(0), yes(1), yes(2)]), [Prepare(0)]);
    assert_eq!(play.prepared(2), [Connect(8)]);
    let acts = play.hear(2, &[yes(0), yes(1), yes(2)]);
    assert_eq!(acts, [Ask(Releasing, 504), GiveTurn(1)]);
}

#[test]
fn a_release_without_connections_is_queued() {
    let (mut play, view) = Play::holding_and_waiting();
    (play.world.connected, play.world.down) = (0, ServerSet::first(3));
    assert_eq!(release(&mut play, &view), [Prepare(2)]);
    play.prepared(2);
    assert_eq!(play.hear(2, &[down(0), down(1)]), [Prepare(usize::MAX)]);
    assert_eq!(play.prepared(2), [Ask(Releasing, 500), GiveTurn(1)]);
    let words = "Unreachable: 0 of 3 servers released, 2 needed: a:1 not connected: connection \
                 refused, b:1 not connected: connection refused, c:1 is down";
    assert_eq!(play.hear(2, &[down(0), down(1)]), [ended(words)]);
    assert!(!view.held_lock().is_over());
}

#[test]
fn without_a_woken_rival_no_caller_stands_back() {
    let (mut play, view) = Play::holding();
    release(&mut play, &view);
    assert_eq!(play.at(10).hear(1, &[yes(0), yes(1), yes(2)]), [ended("released")]);
    assert_eq!(play.acquire(Plan::Until(at(60_000))), [Ask(Acquire, 510)]);
}

/// The keys stay until `ms`.
fn release_after(play: &mut Play, view: &View, ms: i64) -> Vec<Act> {
    play.submit(Release::new(view.clone()).after(at(ms)))
}

#[test]
fn an_overdue_key_is_deleted_at_once() {
    for (ms, verb) in [(299, ReleaseAfter), (300, Releasing), (301, Releasing)] {
        let (mut play, view) = Play::holding();
        assert_eq!(release_after(play.at(ms), &view, 300), [Ask(verb, 500 + ms)]);
        assert_eq!(play.hear(1, &[yes(0), yes(1)]), [ended("released")]);
        assert!(view.held_lock().is_over());
    }
}

/// Whatever releases the lock afterwards: a lease that is dropped, a call that is made again.
#[test]
fn every_later_release_keeps_the_key_until_its_time() {
    let (mut play, view) = Play::holding();
    play.world.down = ServerSet::first(3);
    release_after(&mut play, &view, 300);
    play.hear(1, &[down(0), down(1)]);
    assert!(!view.held_lock().is_over());
    assert_eq!(release(play.at(100), &view), [Ask(ReleaseAfter, 600)]);
    assert_eq!(release(play.at(400), &view), [Ask(Releasing, 900)]);
}

#[test]
fn an_unstarted_release_leaves_no_key_behind() {
    let (mut play, view) = Play::holding();
    let event = Event::Cancelled { sent: ServerSet::default() };
    play.submit_with(Release::new(view.clone()).after(at(300)), event);
    assert!(view.held_lock().is_held(at(1)));
    assert_eq!(release(&mut play, &view), [Ask(Releasing, 500)]);
}

/// The call was checked while the lock was exclusive. Others may use the keys by now.
#[test]
fn a_downgraded_lock_is_released_as_shared() {
    let (mut play, view) = Play::holding();
    let checked = Release::new(view.clone()).after(at(300));
    play.submit(Downgrade::new(view));
    assert_eq!(play.submit(checked), [Ask(Releasing, 500)]);
}

#[test]
fn an_extension_does_not_undo_a_delayed_release() {
    // Through another manager, the extension may come later.
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), TTL));
    release_after(&mut play, &view, 300);
    let acts = play.at(10).hear(1, &[extended(0), extended(1)]);
    assert!(matches!(&acts[..], [Tell(ReleaseAfter, all), Act::Ended(_)] if all[..] == [0, 1, 2]));
    assert_eq!(play.hear(2, &[yes(0), yes(1)]), [ended("released")]);
    let acts = play.submit(Extend::new(view, TTL));
    assert!(!acts.contains(&Ask(Extending, 510)), "{acts:?}");
    // It may also be executed when nobody waits for it any more.
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), TTL));
    release_after(&mut play, &view, 300);
    let acts = play.happen(1, Event::Cancelled { sent: ServerSet::first(3) });
    assert!(
        matches!(&acts[..], [Tell(ReleaseAfter, all), Act::Ended(_)] if all[..] == [0, 1, 2]),
        "{acts:?}"
    );
    // A key that was deleted does not come back.
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), TTL));
    release(&mut play, &view);
    let acts = play.at(10).hear(1, &[extended(0), extended(1)]);
    assert!(matches!(&acts[..], [Act::Ended(_)]), "{acts:?}");
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), TTL));
    release(&mut play, &view);
    let acts = play.happen(1, Event::Cancelled { sent: ServerSet::first(3) });
    assert!(matches!(&acts[..], [Act::Ended(_)]), "{acts:?}");
}
