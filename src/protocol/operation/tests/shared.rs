//! Locks that several callers hold: readers, a writer that waits for them, and a writer that becomes a reader.

use super::super::inspect::Inspect;
use super::*;
use crate::protocol::command::Verb::{
    Acquire as Acquiring, AcquireAgain, AnnounceWriter, Downgrade as Downgrading,
    Extend as Extending, Release as Releasing, Repair, WithdrawWriter,
};
use crate::protocol::command::shared;
use crate::protocol::operation::downgrade::Downgrade;

/// This many readers have the lock, for a second.
fn read_by(server: usize, readers: i64) -> Word {
    (server, Answer::Shared { readers, left_ms: Some(1_000) })
}

/// A manager with a lock that call 0 has taken shared.
fn reading() -> (Play, View) {
    let mut play = Play::of(3);
    assert_eq!(play.read(Plan::Tries(1)), [Ask(Acquiring, 500)]);
    assert_eq!(play.hear(0, &[yes(0), yes(1), yes(2)]), [ended("acquired")]);
    let view = play.view();
    assert!(view.held_lock().is_shared());
    (play, view)
}

#[test]
fn a_second_reader_of_this_manager_asks_at_once() {
    let (mut play, first) = reading();
    assert_eq!(play.at(1).read(Plan::Tries(1)), [Ask(Acquiring, 501)]);
    assert_eq!(play.hear(1, &[yes(0), yes(1)]), [ended("acquired")]);
    assert_ne!(play.view().held_lock().token(), first.held_lock().token());
}

#[test]
fn the_last_local_reader_hands_the_lock_to_the_writer() {
    let (mut play, first) = reading();
    play.read(Plan::Tries(1));
    play.hear(1, &[yes(0), yes(1), yes(2)]);
    let second = play.view();
    // The writer announces its wait, so that no reader of another process comes in.
    let acts = play.acquire(Plan::Until(at(60_000)));
    assert_eq!(acts, [Tell(AnnounceWriter, vec![0, 1, 2]), WaitUntil(100)]);
    let words = "Taken: other callers in this process are ahead in the queue for the resource";
    assert_eq!(play.read(Plan::Tries(1)), [ended(words)]);
    assert_eq!(play.submit(Release::new(first)), [Ask(Releasing, 500)]);
    let acts = play.submit(Release::new(second));
    assert_eq!(acts, [Ask(Releasing, 500), GiveTurn(2)]);
    assert_eq!(play.happen(2, Event::YourTurn), [Ask(Acquiring, 500)]);
    let acts = play.hear(2, &[yes(0), yes(1)]);
    assert_eq!(acts, [Tell(WithdrawWriter, vec![0, 1, 2]), ended("acquired")]);
}

#[test]
fn a_writer_behind_foreign_readers_repeats_its_announcement() {
    let mut play = Play::of(3);
    assert_eq!(play.acquire(Plan::Tries(3)), [Ask(Acquiring, 500)]);
    play.world.policy.set_retry(3, 2_000);
    // The first time, it asks as every client does, and does not learn who has the lock.
    let acts = play.hear(0, &[taken(0, 9_000), taken(1, 9_000)]);
    assert_eq!(acts, [Tell(Releasing, vec![2]), WaitUntil(2_000)]);
    assert_eq!(play.at(2_000).time_out(0), [Ask(AcquireAgain, 2_500)]);
    let acts = play.hear(0, &[read_by(0, 2), read_by(1, 2)]);
    let told = Tell(AnnounceWriter, vec![0, 1, 2]);
    assert_eq!(
        acts,
        [Tell(Releasing, vec![2]), Tell(AnnounceWriter, vec![0, 1, 2]), WaitUntil(2_250)]
    );
    // This is no try of its plan.
    assert_eq!(play.at(2_250).time_out(0), [told, WaitUntil(2_500)]);
    assert_eq!(play.at(4_000).time_out(0), [Ask(AcquireAgain, 4_500)]);
    let words = "Taken: 0 of 3 servers granted, 2 needed: a:1 held by 2 readers (1000 ms left), \
                 b:1 held by 1 reader (1000 ms left), c:1 was not heard";
    let acts = play.hear(0, &[read_by(0, 2), read_by(1, 1)]);
    assert_eq!(acts, [Tell(Releasing, vec![2]), ended(words)]);
}

#[test]
fn a_reader_learns_of_the_waiting_writer() {
    let mut play = Play::of(3);
    play.read(Plan::Tries(1));
    let waits = |server| (server, Answer::WriterWaits { left_ms: 400 });
    let words = "Taken: 0 of 3 servers granted, 2 needed: a:1 reserved for a waiting writer (400 ms \
                 left), b:1 reserved for a waiting writer (400 ms left), c:1 was not heard";
    // Nothing was set there.
    assert_eq!(play.hear(0, &[waits(0), waits(1)]), [Tell(Releasing, vec![2]), ended(words)]);
}

#[test]
fn a_downgrade_keeps_the_validity() {
    let (mut play, view) = Play::holding();
    let until = view.held_lock().valid_until();
    assert_eq!(play.at(5).submit(Downgrade::new(view.clone())), [Ask(Downgrading, 505)]);
    assert!(view.held_lock().is_shared());
    let left = |server| (server, Answer::Extended { left_ms: TTL - 5 });
    assert_eq!(play.hear(1, &[left(0), left(1)]), [ended("extended")]);
    assert!(view.held_lock().is_held(at(5)) && view.held_lock().valid_until() == until);
    assert_eq!(play.submit(Extend::new(view, TTL)), [Ask(Extending, 505)]);
}

#[test]
fn a_downgrade_admits_waiting_readers() {
    let (mut play, view) = Play::holding();
    assert!(matches!(play.read(Plan::Until(at(60_000)))[..], [WaitUntil(_)]));
    let acts = play.at(1).submit(Downgrade::new(view));
    assert_eq!(acts, [Ask(Downgrading, 501), EndWait(1)]);
    assert_eq!(play.time_out(1), [Ask(Acquiring, 501)]);
}

#[test]
fn a_downgrade_without_a_quorum_counts_as_shared() {
    let (mut play, view) = Play::holding();
    play.submit(Downgrade::new(view.clone()));
    play.say(1, &[extended(0)]);
    let acts = play.at(500).time_is_up(1);
    assert!(
        matches!(&acts[..], [Act::Ended(words)] if words.starts_with("Unreachable: 1 of 3")
            && words.ends_with("the lock is still held, but counts as shared from now on")),
        "{acts:?}"
    );
    assert!(view.held_lock().is_held(at(500)) && view.held_lock().is_shared());
    // No server was asked, so the lock is unchanged.
    let (mut play, view) = Play::holding();
    play.world.connected = 0;
    assert_eq!(play.submit(Downgrade::new(view.clone())), [Prepare(2)]);
    play.happen(1, Event::Cancelled { sent: ServerSet::default() });
    assert!(!view.held_lock().is_shared());
}

#[test]
fn a_downgrade_detects_a_lost_lock() {
    let (mut play, view) = Play::holding();
    play.submit(Downgrade::new(view.clone()));
    let acts = play.hear(1, &[gone(0), taken(1, 7)]);
    assert!(
        matches!(&acts[..], [Tell(Releasing, _), Act::Ended(words)] if words.starts_with("Lost:")),
        "{acts:?}"
    );
    assert!(!view.held_lock().is_held(at(0)));
    let acts = play.submit(Downgrade::new(view));
    assert_eq!(acts, [ended("Lost: the lock was already released or lost")]);
}

#[test]
fn a_downgrade_seen_after_the_validity_is_lost() {
    let (mut play, view) = Play::holding();
    play.at(9_700).submit(Downgrade::new(view.clone()));
    assert!(play.say(1, &[extended(0), extended(1)]));
    let words = "Lost: 2 of 3 servers extended, 2 needed; but the lock had ended before the replies were read: c:1 \
     not waited for";
    let acts = play.at(VALID_MS).close(1);
    assert_eq!(acts, [Tell(Releasing, vec![0, 1, 2]), ended(words)]);
    assert!(view.held_lock().is_over());
}

#[test]
fn an_expiry_during_a_downgrade_is_a_loss() {
    let (mut play, view) = Play::holding();
    assert_eq!(play.at(9_700).submit(Downgrade::new(view)), [Ask(Downgrading, VALID_MS)]);
    play.say(1, &[extended(0)]);
    let words = "Lost: 1 of 3 servers extended, 2 needed: b:1 timed out after 198 ms, c:1 timed out after 198 ms";
    let acts = play.at(VALID_MS).time_is_up(1);
    assert_eq!(acts, [Tell(Releasing, vec![0, 1, 2]), ended(words)]);
}

#[test]
fn without_connections_the_lock_stays_exclusive() {
    let (mut play, view) = Play::holding();
    play.world.connected = 0;
    play.submit(Downgrade::new(view.clone()));
    play.finds_nobody(1);
    assert!(view.held_lock().is_held(at(0)) && !view.held_lock().is_shared());
}

/// The extension goes through another manager, so it may arrive behind the downgrade.
#[test]
fn an_extension_behind_a_downgrade_loses_nothing() {
    let (mut play, view) = Play::holding();
    assert_eq!(play.submit(Extend::new(view.clone(), TTL)), [Ask(Extending, 500)]);
    assert_eq!(play.submit(Downgrade::new(view.clone())), [Ask(Downgrading, 500)]);
    assert_eq!(play.hear(2, &[extended(0), extended(1), extended(2)]), [ended("extended")]);
    let acts = play.hear(1, &[taken(0, 7), taken(1, 7)]);
    assert!(
        matches!(&acts[..], [Act::Ended(words)] if words.starts_with("Unreachable")),
        "{acts:?}"
    );
    assert!(view.held_lock().is_held(at(0)) && (0..3).all(|server| view.is_sound(server)));
}

#[test]
fn a_lost_reader_entry_is_repaired_and_vouches_later() {
    let (mut play, view) = reading();
    assert_eq!(play.at(10).submit(Extend::new(view.clone(), TTL)), [Ask(Extending, 510)]);
    let acts = play.hear(1, &[gone(2), extended(0), extended(1)]);
    assert_eq!(acts, [Tell(Repair, vec![2]), ended("extended")]);
    assert!(!view.is_sound(2));
    let repair = play.world.told.take().expect("it was told");
    repair.note(2, &Answer::Done, at(11));
    assert!(!view.is_sound(2));
    play.at(12).submit(Extend::new(view.clone(), TTL));
    assert_eq!(play.hear(2, &[extended(0), extended(1)]), [ended("extended")]);
    assert!(view.is_sound(2));
}

#[test]
fn readers_are_counted_on_a_quorum() {
    let value = shared::VALUE.to_vec();
    let found = |server| (server, Answer::Found { value: value.clone(), left_ms: 1_000 });
    let mut play = Play::of(3);
    play.submit(Inspect::new(b"r").with_count());
    let acts = play.hear(0, &[found(0), found(1)]);
    assert_eq!(acts, [Ask(Verb::Inspect, 500)]);
    assert_eq!(play.hear(0, &[read_by(0, 3), gone(1)]), []);
    assert_eq!(play.hear(0, &[read_by(2, 3)]), [ended("shared")]);
    // The readers have left meanwhile.
    play.submit(Inspect::new(b"r").with_count());
    play.hear(1, &[found(0), found(1)]);
    assert_eq!(play.hear(1, &[gone(0), gone(1)]), [ended("free")]);
    // An exclusive holder is not counted.
    let another = |server| (server, Answer::Found { value: b"x".to_vec(), left_ms: 1_000 });
    play.submit(Inspect::new(b"r").with_count());
    assert_eq!(play.hear(2, &[another(0), another(1)]), [ended("locked")]);
    // A caller that does not want the number of readers asks once.
    play.submit(Inspect::new(b"r"));
    assert_eq!(play.hear(3, &[found(0), found(1)]), [ended("shared")]);
}

/// The servers' clocks were set forward, so they have the lock for less time than the holder thinks.
#[test]
fn a_downgrade_adopts_a_shorter_validity() {
    let (mut play, view) = Play::holding();
    play.at(100).submit(Downgrade::new(view.clone()));
    let left = |server| (server, Answer::Extended { left_ms: 1_000 });
    assert_eq!(play.at(150).hear(1, &[left(0), left(1), left(2)]), [ended("extended")]);
    // 1 % of the time, and 2 ms, from when the servers were asked.
    assert_eq!(view.held_lock().valid_until(), at(100 + 988));
    assert_eq!(play.world.woken, [*view.held_lock().token()]);
}

#[test]
fn a_release_stops_a_downgrade() {
    let (mut play, view) = Play::holding();
    play.submit(Downgrade::new(view.clone()));
    let left = |server| (server, Answer::Extended { left_ms: TTL });
    assert!(play.say(1, &[left(0), left(1)]));
    view.held_lock().begin_release();
    let acts = play.close(1);
    assert!(matches!(&acts[..], [Act::Ended(words)] if words.starts_with("Lost: ")), "{acts:?}");
}

/// While a round is under way, no server is given the lock again.
#[test]
fn a_cancelled_downgrade_ends_its_round() {
    let (mut play, view) = Play::holding();
    play.submit(Downgrade::new(view.clone()));
    play.happen(1, Event::Cancelled { sent: ServerSet::first(3) });
    play.at(10).submit(Extend::new(view, TTL));
    let acts = play.hear(2, &[gone(2), extended(0), extended(1)]);
    assert_eq!(acts, [Tell(Repair, vec![2]), ended("extended")]);
}

#[test]
fn a_downgrade_connects_only_within_the_validity() {
    let (mut play, view) = Play::holding();
    play.world.connected = 0;
    assert_eq!(play.at(VALID_MS - 100).submit(Downgrade::new(view)), [Prepare(2)]);
    assert_eq!(play.prepared(1), [Connect(VALID_MS)]);
}
