//! Confirming: for how long a lock is there, and what happens to a lock that is not there.

use super::*;
use crate::protocol::command::Verb::Inspect;
use crate::protocol::command::shared;
use crate::protocol::operation::downgrade::Downgrade;

const LEAST_MS: i64 = 5_000;

/// Asks the question after 1 s.
fn confirm(play: &mut Play, view: &View) {
    let acts = play.at(1_000).submit(Confirm::new(view.clone(), LEAST_MS));
    assert_eq!(acts, [Ask(Inspect, 1_500)]);
}

#[test]
fn a_quorum_with_enough_time_confirms_the_lock() {
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    let found = |server| found(server, view.held_lock(), 9_000);
    assert_eq!(play.at(1_010).hear(1, &[found(0)]), []);
    assert_eq!(play.hear(1, &[found(2)]), [ended("confirmed")]);
    confirm(&mut play, &view);
    let acts = play.hear(2, &[refused(1), found(0), found(2)]);
    assert_eq!(acts, [ended("confirmed without: b:1 OOM: out of memory")]);
}

#[test]
fn a_key_without_ttl_has_enough_time() {
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    let for_ever = |server| found(server, view.held_lock(), -1);
    assert_eq!(play.hear(1, &[for_ever(0), for_ever(1)]), [ended("confirmed")]);
}

/// From the remaining time, 1% and 2 ms are taken off. Of the time that the answer takes, each millisecond that
/// has begun is taken off.
#[test]
fn a_lock_with_too_little_time_stays_held() {
    for (left_ms, is_enough) in [(5_054, true), (5_053, false)] {
        let (mut play, view) = Play::holding_and_waiting();
        confirm(&mut play, &view);
        let found = |server| found(server, view.held_lock(), left_ms);
        // Perhaps the third server has it for longer.
        assert_eq!(play.hear(2, &[found(0), found(1)]), []);
        let acts = play.hear(2, &[found(2)]);
        let words = "TooShort: 0 of 3 servers confirmed for 5000 ms, 2 needed: a:1 has the lock for only 5053 ms \
         more, b:1 has the lock for only 5053 ms more, c:1 has the lock for only 5053 ms more";
        assert_eq!(acts, [ended(if is_enough { "confirmed" } else { words })]);
        assert!(view.held_lock().is_held(at(1_000)));
        // The servers certainly have the lock for this long.
        let until = 1_000 + LEAST_MS + i64::from(is_enough);
        assert_eq!(view.held_lock().valid_until(), at(until));
    }
}

/// The clocks of the servers were set forward, so their keys end before the validity.
#[test]
fn the_validity_ends_with_the_keys_of_a_quorum() {
    for (lefts_ms, until) in [
        ([6_000, 7_000, 9_000], 1_000 + 6_928),
        ([6_000, 6_000, 9_000], 1_000 + 5_938),
        ([6_000, 9_000, 9_000], VALID_MS),
        ([6_000, 8_896, 8_896], VALID_MS),
        ([8_896, 8_896, 8_896], VALID_MS),
    ] {
        // Whichever server answers first.
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let (mut play, view) = Play::holding();
            confirm(&mut play, &view);
            let mut words = order.map(|it| found(it, view.held_lock(), lefts_ms[it])).into_iter();
            let heard: Vec<Word> = words.by_ref().take(2).collect();
            let is_enough = play.say(1, &heard);
            // The third server is heard only if it makes a difference.
            let is_clear = order[..2].iter().all(|&it| lefts_ms[it] >= 8_896);
            assert_eq!(is_enough, is_clear, "{lefts_ms:?} {order:?}");
            if !is_enough {
                assert!(play.say(1, &words.collect::<Vec<_>>()));
            }
            assert_eq!(play.close(1), [ended("confirmed")]);
            assert_eq!(view.held_lock().valid_until(), at(until), "{lefts_ms:?} {order:?}");
            assert_eq!(play.world.woken.is_empty(), until == VALID_MS);
        }
    }
}

/// The third server may have the lock for as long as it should, but it does not say so.
#[test]
fn a_decisive_server_is_waited_for() {
    for silent in [false, true] {
        let (mut play, view) = Play::holding();
        confirm(&mut play, &view);
        let has = [found(0, view.held_lock(), 6_000), found(1, view.held_lock(), 9_000)];
        assert_eq!(play.hear(1, &has), []);
        let acts = match silent {
            true => play.at(1_500).time_is_up(1),
            false => play.hear(1, &[refused(2)]),
        };
        let why = if silent { "timed out after 500 ms" } else { "OOM: out of memory" };
        assert_eq!(acts, [ended(&format!("confirmed without: c:1 {why}"))]);
        assert_eq!(view.held_lock().valid_until(), at(1_000 + 5_938));
    }
}

/// A remaining time that was reported early ends earlier, although it was longer.
#[test]
fn the_end_of_a_lock_counts_from_each_answer() {
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    assert_eq!(play.at(1_001).hear(1, &[found(0, view.held_lock(), 8_500)]), []);
    let late = [found(1, view.held_lock(), 8_450), found(2, view.held_lock(), 8_450)];
    assert_eq!(play.at(1_490).hear(1, &late), [ended("confirmed")]);
    assert_eq!(view.held_lock().valid_until(), at(VALID_MS));
}

/// A quorum has the lock no longer than the server that has it second longest.
#[test]
fn a_server_without_the_lock_counts_as_ended() {
    let another = |server| (server, Answer::Found { value: b"another".to_vec(), left_ms: 9_900 });
    for without in [gone(2), another(2)] {
        let (mut play, view) = Play::holding();
        confirm(&mut play, &view);
        let has = [without, found(0, view.held_lock(), 6_000), found(1, view.held_lock(), 7_000)];
        assert_eq!(play.hear(1, &has), [ended("confirmed")]);
        assert_eq!(view.held_lock().valid_until(), at(1_000 + 5_938));
    }
}

#[test]
fn a_foreign_key_without_ttl_is_no_vote() {
    let another = |server| (server, Answer::Found { value: b"another".to_vec(), left_ms: -1 });
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    let words = "Lost: 0 of 3 servers confirmed for 5000 ms, 2 needed: a:1 held by another client (no expiry), b:1 \
     held by another client (no expiry), c:1 held by another client (no expiry)";
    // It confirms nothing when it is heard late, either.
    assert_eq!(play.hear(1, &[another(0), another(1), another(2)]), [ended(words)]);
}

#[test]
fn a_lock_lost_during_the_call_keeps_its_end() {
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    play.say(1, &[gone(0), found(1, view.held_lock(), 6_000)]);
    view.observer().hear(2, (Verb::Extend, 0), &Answer::Absent, at(1_000));
    let acts = play.at(1_500).time_is_up(1);
    assert!(matches!(&acts[..], [Act::Ended(it)] if it.starts_with("Lost: 1 of 3")), "{acts:?}");
    assert_eq!(view.held_lock().valid_until(), at(VALID_MS));
}

#[test]
fn a_downgrade_during_the_call_repeats_the_question() {
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    play.submit(Downgrade::new(view.clone()));
    let readers =
        |server| (server, Answer::Found { value: shared::VALUE.to_vec(), left_ms: 9_000 });
    assert_eq!(play.at(1_001).hear(1, &[readers(0), readers(1)]), [Ask(Inspect, 1_501)]);
    let has = |server| found(server, view.held_lock(), 8_900);
    assert_eq!(play.hear(1, &[has(0), has(1)]), [ended("confirmed")]);
}

#[test]
fn an_extension_during_the_call_is_not_undone() {
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    view.held_lock().extend_to(at(20_000), 20_000);
    let found = |server| found(server, view.held_lock(), 6_000);
    assert_eq!(play.hear(1, &[found(0), found(1), found(2)]), [ended("confirmed")]);
    assert_eq!(view.held_lock().valid_until(), at(20_000));
}

#[test]
fn an_answer_seen_late_has_too_little_time() {
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    let found = |server| found(server, view.held_lock(), 6_000);
    assert!(play.say(1, &[found(0), found(1), refused(2)]));
    let acts = play.at(2_000).close(1);
    let words = "TooShort: 2 of 3 servers confirmed for 5000 ms, 2 needed: c:1 OOM: out of memory";
    assert_eq!(acts, [ended(words)]);
    assert!(view.held_lock().is_held(at(2_000)));
}

#[test]
fn a_missing_lock_is_lost_but_not_released() {
    let (mut play, view) = Play::holding_and_waiting();
    confirm(&mut play, &view);
    let words = "Lost: 0 of 3 servers confirmed for 5000 ms, 2 needed: a:1 no longer has the lock, b:1 held by \
     another client (70 ms left), c:1 confirmed later";
    let other = (1, Answer::Found { value: b"another".to_vec(), left_ms: 70 });
    let acts = play.hear(2, &[gone(0), other, found(2, view.held_lock(), 9_000)]);
    assert_eq!(acts, [EndWait(1), ended(words)]);
    assert!(view.held_lock().is_lost_or_over() && !view.held_lock().is_over());
    // The keeper of the lock is told how long the lock would have been valid.
    assert_eq!(view.held_lock().valid_until(), at(VALID_MS));
    assert_eq!(play.time_out(1), [Ask(Verb::Acquire, 1_500)]);
}

#[test]
fn a_lock_with_too_few_answers_stays_held() {
    let (mut play, view) = Play::holding_and_waiting();
    confirm(&mut play, &view);
    play.hear(2, &[gone(0), found(1, view.held_lock(), 9_000)]);
    let words = "Unreachable: 1 of 3 servers confirmed for 5000 ms, 2 needed: a:1 no longer has the lock, \
                 c:1 timed out after 500 ms";
    assert_eq!(play.at(1_500).time_is_up(2), [ended(words)]);
    assert!(view.held_lock().is_held(at(1_500)));
}

#[test]
fn a_repaired_server_has_no_vote() {
    let (mut play, view) = Play::holding();
    view.observer().hear(2, (Verb::Extend, 0), &Answer::Absent, at(500));
    confirm(&mut play, &view);
    let found = |server| found(server, view.held_lock(), 9_000);
    let words = "Unreachable: 1 of 3 servers confirmed for 5000 ms, 2 needed: a:1 OOM: out of memory, \
                 c:1 has the lock, but not without interruption";
    assert_eq!(play.hear(1, &[refused(0), found(1), found(2)]), [ended(words)]);
}

#[test]
fn an_extension_during_the_call_repeats_the_question() {
    let (mut play, view) = Play::holding();
    confirm(&mut play, &view);
    let short = |server| found(server, view.held_lock(), 100);
    assert!(play.say(1, &[short(0), short(1), short(2)]));
    view.held_lock().extend_to(at(20_000), 20_000);
    assert_eq!(play.at(1_001).close(1), [Ask(Inspect, 1_501)]);
    // The question is asked again only because of that.
    let acts = play.hear(1, &[short(0), short(1), short(2)]);
    assert!(
        matches!(&acts[..], [Act::Ended(it)] if it.starts_with("TooShort: 0 of 3")),
        "{acts:?}"
    );
}

/// This is the case with a lock that is kept.
#[test]
fn repeated_extensions_repeat_the_question_once() {
    for (ttl_ms, asks_again) in [(20_000, true), (4_000, false)] {
        let (mut play, view) = Play::holding();
        confirm(&mut play, &view);
        let short = |server| found(server, view.held_lock(), 100);
        assert!(play.say(1, &[short(0), short(1), short(2)]));
        view.held_lock().extend_to(at(9_000 + ttl_ms), ttl_ms);
        let acts = match asks_again {
            true => {
                assert_eq!(play.at(8_500).close(1), [Ask(Inspect, 9_000)]);
                assert!(play.say(1, &[short(0), short(1), short(2)]));
                view.held_lock().extend_to(at(9_001 + ttl_ms), ttl_ms);
                play.at(8_501).close(1)
            }
            false => play.at(9_000).close(1),
        };
        assert!(
            matches!(&acts[..], [Act::Ended(it)] if it.starts_with("TooShort: 0 of 3")),
            "{acts:?}"
        );
    }
}

#[test]
fn a_release_during_the_call_is_a_loss() {
    let (mut play, view) = Play::holding_and_waiting();
    confirm(&mut play, &view);
    view.held_lock().pass_to(Phase::Releasing);
    let found = |server| found(server, view.held_lock(), 9_000);
    let words = "Lost: 2 of 3 servers confirmed for 5000 ms, 2 needed";
    let acts = play.hear(2, &[found(0), found(1), found(2)]);
    assert_eq!(acts.last(), Some(&ended(&format!("{words}: c:1 not waited for"))));
    assert!(!view.held_lock().is_over());
}

#[test]
fn an_expiry_during_the_call_is_a_loss() {
    let (mut play, view) = Play::holding_and_waiting();
    confirm(&mut play, &view);
    assert!(play.say(2, &[found(0, view.held_lock(), -1), found(1, view.held_lock(), -1)]));
    let acts = play.at(VALID_MS).close(2);
    assert_eq!(acts[0], EndWait(1));
    assert!(matches!(&acts[1..], [Act::Ended(it)] if it.starts_with("Lost: 2 of 3")), "{acts:?}");
    assert!(view.held_lock().is_lost_or_over());
}

#[test]
fn an_ended_lock_asks_no_server() {
    let (mut play, view) = Play::holding();
    let acts = play.at(VALID_MS + 1).submit(Confirm::new(view.clone(), 1));
    assert_eq!(acts, [ended("Lost: the lock expired 1 ms ago")]);
    assert!(view.held_lock().is_lost_or_over() && !view.held_lock().is_over());
    let acts = play.submit(Confirm::new(view, 1));
    assert_eq!(acts, [ended("Lost: the lock was already released or lost")]);
}

#[test]
fn connecting_is_bounded_by_the_validity() {
    let (mut play, view) = Play::holding();
    play.world.connected = 1;
    assert_eq!(play.at(9_000).submit(Confirm::new(view.clone(), 1)), [Prepare(2)]);
    assert_eq!(play.prepared(1), [Connect(VALID_MS)]);
    assert_eq!(play.hear(1, &[yes(0), yes(1), yes(2)]), [Prepare(0)]);
    assert_eq!(play.prepared(1), [Connect(9_002)]);
    assert_eq!(play.hear(1, &[yes(0), yes(1), yes(2)]), [Ask(Inspect, 9_500)]);
    assert_eq!(
        play.hear(1, &[found(0, view.held_lock(), 900), found(1, view.held_lock(), 900)]),
        [ended("confirmed")]
    );
}

#[test]
fn without_connections_the_lock_stays_held() {
    let (mut play, view) = Play::holding();
    play.world.connected = 0;
    assert_eq!(play.submit(Confirm::new(view.clone(), 1)), [Prepare(2)]);
    play.finds_nobody(1);
    assert!(view.held_lock().is_held(at(0)));
}
