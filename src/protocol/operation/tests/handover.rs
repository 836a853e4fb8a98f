//! Giving a lock away, and taking one over.

use super::*;
use crate::protocol::command::Verb::{
    Extend as Extending, Inspect as Inspecting, Release as Releasing,
};
use crate::protocol::keeper::Keeper;
use crate::protocol::lock_ticket::LockTicket;
use crate::protocol::operation::adopt::Adopt;
use crate::protocol::operation::detach::Detach;
use crate::protocol::operation::renew::Renew;

const WORDS: &str = "Lost: the lock was detached: adopt its ticket to use it";

fn detach(play: &mut Play, view: &View) {
    let acts = play.submit(Detach::new(view.clone()));
    assert_eq!(acts.last(), Some(&ended("detached")), "{acts:?}");
}

#[test]
fn a_detached_lock_sends_nothing() {
    let (mut play, view) = Play::holding();
    assert_eq!(play.submit(Detach::new(view.clone())), [ended("detached")]);
    assert!(!view.held_lock().is_held(at(0)) && view.held_lock().is_detached());
    assert_eq!(play.submit(Extend::new(view.clone(), TTL)), [ended(WORDS)]);
    assert_eq!(play.submit(Confirm::new(view.clone(), 0)), [ended(WORDS)]);
    assert_eq!(play.submit(Release::new(view.clone())), [ended(WORDS)]);
    assert_eq!(play.submit(Detach::new(view.clone())), [ended(WORDS)]);
    assert!(!view.held_lock().was_release_sent() && view.held_lock().is_detached());
}

#[test]
fn a_lost_lock_cannot_be_detached() {
    for phase in [Phase::Lost, Phase::Releasing, Phase::Over] {
        let (mut play, view) = Play::holding();
        view.held_lock().pass_to(phase);
        let words = "Lost: the lock was already released or lost";
        assert_eq!(play.submit(Detach::new(view.clone())), [ended(words)]);
        assert!(!view.held_lock().is_detached());
    }
    let (mut play, view) = Play::holding();
    let words = "Lost: the lock expired 0 ms ago";
    assert_eq!(play.at(VALID_MS).submit(Detach::new(view)), [ended(words)]);
}

#[test]
fn detaching_a_lock_wakes_the_waiter() {
    let (mut play, view) = Play::holding_and_waiting();
    let acts = play.at(10).submit(Detach::new(view.clone()));
    assert_eq!(acts, [EndWait(1), ended("detached")]);
    // The next holder may be as quick as any other client.
    assert_eq!(play.time_out(1), [Ask(Verb::Acquire, 510)]);
}

#[test]
fn an_extension_of_a_detached_lock_releases_nothing() {
    for gone_there in [vec![gone(0), gone(1)], vec![extended(0), extended(1)]] {
        let (mut play, view) = Play::holding();
        assert_eq!(play.submit(Extend::new(view.clone(), TTL)), [Ask(Extending, 500)]);
        detach(&mut play, &view);
        let acts = play.hear(1, &gone_there);
        assert!(matches!(&acts[..], [Act::Ended(words)] if words.starts_with("Lost")), "{acts:?}");
        assert!(!view.held_lock().was_release_sent());
    }
    // An extension through another manager looks at the lock a moment before it is given away, and once more at
    // its own end.
    let (mut play, view) = Play::holding();
    view.held_lock().detach();
    super::super::give_up(&view, &mut play.world);
    assert_eq!(play.world.acts, []);
}

/// The extension of another manager has succeeded at the moment when the lock is given away.
#[test]
fn a_detached_lock_is_not_repaired() {
    let (_, view) = Play::holding();
    let observer = view.observer();
    let number = view.begin_round();
    observer.hear(2, (Verb::Extend, number), &Answer::Absent, at(1));
    assert!(view.pass_round(number, ServerSet::first(2)));
    view.held_lock().detach();
    assert!(view.begin_repairs().1.is_empty());
}

#[test]
fn detaching_stops_the_keep_alive_silently() {
    let (mut play, view) = Play::holding();
    let keeper = Keeper::new();
    play.submit(Renew::new(view.clone(), keeper.kept()));
    detach(&mut play, &view);
    assert_eq!(play.world.woken, [*view.held_lock().token()]);
    assert_eq!(play.time_out(1), [ended("stopped")]);
}

fn adopt(play: &mut Play, view: &View) {
    let acts = play.submit(Adopt::new(LockTicket::of(view.held_lock())));
    assert_eq!(acts, [Ask(Inspecting, ms_after(play, 500))]);
}

fn ms_after(play: &Play, ms: i64) -> i64 {
    play.world.now.ms_since(at(0)) + ms
}

#[test]
fn an_adopted_lock_is_valid_for_the_quorum_less_drift() {
    let (mut play, view) = Play::holding();
    view.held_lock().set_fencing_token(7);
    detach(&mut play, &view);
    adopt(play.at(1_000), &view);
    let words = [found(0, view.held_lock(), 9_000), found(1, view.held_lock(), 5_000)];
    assert_eq!(play.at(1_100).hear(2, &words), [ended("acquired")]);
    let taken = play.view();
    // 5,000 ms since the question, less 1 %, 2 ms for the precision of expiry and 1 ms for rounding.
    assert_eq!(taken.held_lock().valid_until(), at(1_000 + 5_000 - 50 - 2 - 1));
    assert_eq!(taken.held_lock().token(), view.held_lock().token());
    assert_eq!((taken.held_lock().fencing_token(), taken.held_lock().ttl_ms()), (7, TTL));
    assert!(taken.held_lock().is_held(at(1_100)) && !view.held_lock().is_held(at(1_100)));
    // The lock is released on all servers that may have it, including the server that was not heard.
    assert_eq!(taken.servers(), ServerSet::first(3));
    assert_eq!(play.submit(Release::new(taken)), [Ask(Releasing, 1_600)]);
}

#[test]
fn a_lock_is_adopted_by_a_quorum_or_not_at_all() {
    let refused_with = |words: &[Word], ms| {
        let (mut play, view) = Play::holding();
        detach(&mut play, &view);
        adopt(&mut play, &view);
        let mut acts = play.hear(2, words);
        if acts.is_empty() {
            acts = play.at(ms).time_is_up(2);
        }
        let [Act::Ended(words)] = &acts[..] else { panic!("{acts:?}") };
        words.clone()
    };
    let (_, view) = Play::holding();
    let has = |server| found(server, view.held_lock(), 9_000);
    let theirs = (1, Answer::Found { value: b"another's".to_vec(), left_ms: 70 });
    assert_eq!(
        refused_with(&[gone(0), theirs], 0),
        "Lost: 0 of 3 servers hold the lock of the ticket, 2 needed: a:1 no longer has the lock, b:1 held by \
         another client (70 ms left), c:1 was not heard"
    );
    let words = refused_with(&[has(0), gone(1)], 500);
    assert!(words.starts_with("Unreachable: 1 of 3 servers hold the lock"), "{words}");
    // A key whose remaining time is so short that none of it is certain counts as gone.
    let short = |server| found(server, view.held_lock(), 3);
    let words = refused_with(&[short(0), short(1)], 0);
    assert!(
        words.starts_with("Lost: ") && words.contains("has the lock for only 3 ms more"),
        "{words}"
    );
}

#[test]
fn an_adoption_without_time_left_fails() {
    for (looked_at, is_had) in [(1_940, true), (1_998, false)] {
        let (mut play, view) = Play::holding();
        detach(&mut play, &view);
        adopt(&mut play, &view);
        let short = |server| found(server, view.held_lock(), 2_000);
        assert!(play.say(2, &[short(0), short(1)]));
        let acts = play.at(looked_at).close(2);
        let [Act::Ended(words)] = &acts[..] else { panic!("{acts:?}") };
        assert!(words.starts_with(if is_had { "acquired" } else { "Lost: " }), "{words}");
    }
}

/// The key has no end, because somebody has taken it away by hand.
#[test]
fn an_adopted_key_without_ttl_gets_an_end() {
    let (mut play, view) = Play::holding();
    detach(&mut play, &view);
    adopt(&mut play, &view);
    let words = [found(0, view.held_lock(), -1), found(1, view.held_lock(), -1)];
    assert_eq!(play.hear(2, &words), [ended("acquired")]);
    assert_eq!(play.view().held_lock().remaining_ms(at(0)), 315_360_000_000);
}

#[test]
fn a_cancelled_adoption_leaves_the_lock() {
    let (mut play, view) = Play::holding();
    detach(&mut play, &view);
    adopt(&mut play, &view);
    let acts = play.happen(2, Event::Cancelled { sent: ServerSet::first(3) });
    assert_eq!(acts, [ended("Cancelled: the call was cancelled")]);
}

/// An adopted lock behaves as one that was taken. A server that is heard after the call has ended votes if it
/// was in time. A server that has lost the lock is given it again. A server that is heard late votes after a
/// round.
#[test]
fn an_adopted_lock_is_vouched_for_like_a_taken_one() {
    let (mut play, view) = Play::holding();
    detach(&mut play, &view);
    adopt(play.at(1_000), &view);
    let heard = [found(0, view.held_lock(), 9_000), found(1, view.held_lock(), 9_000)];
    assert_eq!(play.hear(2, &heard), [ended("acquired")]);
    let taken = play.view();
    assert!(taken.is_sound(0) && taken.is_sound(1) && !taken.is_sound(2));
    // The time that is left shows that the key was there when the lock was adopted.
    let words = (2, Answer::Extended { left_ms: 5_000 });
    assert_eq!(play.at(3_000).submit(Extend::new(taken.clone(), TTL)), [Ask(Extending, 3_500)]);
    assert_eq!(
        play.hear(3, &[gone(0), words, extended(1)]),
        [Tell(Verb::Repair, vec![0]), ended("extended")]
    );
    assert!(taken.is_sound(1) && taken.is_sound(2) && !taken.is_sound(0));
}
