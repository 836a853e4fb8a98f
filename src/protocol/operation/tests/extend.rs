//! Extending: what is asked, what is repaired, and when a lock is given up.

use super::*;
use crate::protocol::command::Verb::{Extend as Extending, Release as Releasing, Repair};

const ALL: [usize; 3] = [0, 1, 2];

fn extend(play: &mut Play, view: &View) -> Vec<Act> {
    play.submit(Extend::new(view.clone(), TTL))
}

fn tell_all() -> Act {
    Tell(Releasing, ALL.to_vec())
}

#[test]
fn an_extended_lock_is_valid_from_the_request() {
    let (mut play, view) = Play::holding();
    assert_eq!(extend(play.at(1_000), &view), [Ask(Extending, 1_500)]);
    assert_eq!(play.at(1_200).hear(1, &[extended(0)]), []);
    assert_eq!(play.hear(1, &[extended(2)]), [ended("extended")]);
    assert_eq!(view.held_lock().valid_until(), at(1_000 + VALID_MS));
}

#[test]
fn a_shorter_ttl_does_not_shorten_the_validity() {
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), 1_000));
    play.hear(1, &[had(0, TTL - 1), had(1, TTL - 2)]);
    assert_eq!(view.held_lock().valid_until(), at(VALID_MS));
    assert_eq!(view.held_lock().longest_ttl_ms(), TTL);
    play.submit(Extend::new(view.clone(), 2 * TTL));
    // A server may have carried out the extension already.
    assert_eq!(view.held_lock().longest_ttl_ms(), 2 * TTL);
}

/// A server has extended a lock that had this much time left.
fn had(server: usize, left_ms: i64) -> Word {
    (server, Answer::Extended { left_ms })
}

/// The clocks of the servers were set forward, so their keys end before the validity.
#[test]
fn the_validity_ends_with_the_keys_of_a_quorum() {
    let (first, last) = ([had(0, 4_000), had(1, 4_000)], |left_ms| Some(had(2, left_ms)));
    for (words, last, ttl_ms, until) in [
        // The servers have more than is asked for: 4 s, less 1 % and 2 ms.
        (first.clone(), last(4_000), 1_000, 1_000 + 3_958),
        (first.clone(), last(9_000), 1_000, 1_000 + 3_958),
        // The third server makes a difference.
        ([had(0, 4_000), had(1, 9_000)], last(9_000), 1_000, VALID_MS),
        ([had(0, 4_000), had(1, 9_000)], last(4_000), 1_000, 1_000 + 3_958),
        ([had(0, 4_000), had(1, 9_000)], Some(gone(2)), 1_000, 1_000 + 3_958),
        (first, last(4_000), 6_000, 1_000 + 5_938),
        // The lock then ends later than before, whatever the third server says.
        ([had(0, 4_000), had(1, 4_000)], None, TTL, 1_000 + VALID_MS),
        // The least that servers report if nobody has set a clock.
        ([had(0, 8_896), had(1, 8_896)], None, 1_000, VALID_MS),
    ] {
        let (mut play, view) = Play::holding();
        play.at(1_000).submit(Extend::new(view.clone(), ttl_ms));
        let mut acts = play.hear(1, &words);
        if let Some(last) = last {
            assert_eq!(acts, []);
            acts = play.hear(1, &[last]);
        }
        assert_eq!(acts.last(), Some(&ended("extended")));
        assert_eq!(view.held_lock().valid_until(), at(until), "{words:?}");
        let is_shorter = until < VALID_MS;
        assert_eq!(
            play.world.woken.contains(view.held_lock().token()),
            is_shorter || ttl_ms != TTL
        );
    }
}

/// The last extension did not reach one of the servers that answer. The others may have the lock for as long as before.
#[test]
fn an_unanswered_extension_shortens_no_lock() {
    let (mut play, view) = Play::holding();
    play.at(1_000).submit(Extend::new(view.clone(), 1_000));
    assert_eq!(play.hear(1, &[had(0, 4_000), had(1, 9_000)]), []);
    let acts = play.at(1_500).time_is_up(1);
    assert_eq!(acts, [ended("extended without: c:1 timed out after 500 ms")]);
    assert_eq!(view.held_lock().valid_until(), at(VALID_MS));
}

#[test]
fn an_extension_by_another_handle_is_not_undone() {
    let (mut play, view) = Play::holding();
    play.at(1_000).submit(Extend::new(view.clone(), 1_000));
    view.held_lock().extend_to(at(20_000), 20_000);
    let acts = play.hear(1, &[had(0, 4_000), had(1, 4_000), had(2, 4_000)]);
    assert_eq!(acts, [ended("extended")]);
    assert_eq!(view.held_lock().valid_until(), at(20_000));
}

#[test]
fn an_extension_does_not_wait_beyond_the_validity() {
    let (mut play, view) = Play::holding();
    assert_eq!(extend(play.at(9_700), &view), [Ask(Extending, VALID_MS)]);
    let words = "Lost: 1 of 3 servers extended, 2 needed: b:1 timed out after 198 ms, c:1 timed out after 198 ms";
    play.hear(1, &[extended(0)]);
    assert_eq!(play.at(VALID_MS).time_is_up(1), [tell_all(), ended(words)]);
    assert!(view.held_lock().is_over());
}

#[test]
fn a_server_without_the_key_is_repaired_once() {
    let (mut play, view) = Play::holding();
    extend(&mut play, &view);
    let acts = play.hear(1, &[gone(0), extended(1), extended(2)]);
    assert_eq!(acts, [Tell(Repair, vec![0]), ended("extended")]);
    assert!(!view.is_sound(0));
    // The first repair may still be carried out.
    extend(&mut play, &view);
    assert_eq!(play.hear(2, &[gone(0), extended(1), extended(2)]), [ended("extended")]);
}

#[test]
fn a_repaired_server_counts_after_the_next_extension() {
    let (mut play, view) = Play::holding();
    extend(&mut play, &view);
    play.hear(1, &[gone(0), extended(1), extended(2)]);
    play.world.told.take().unwrap().note(0, &Answer::Done, at(1));
    let words = "extended without: c:1 OOM: out of memory";
    for is_sound in [false, true] {
        assert_eq!(view.is_sound(0), is_sound);
        extend(&mut play, &view);
        let acts = match is_sound {
            false => play.hear(2, &[extended(0), extended(1), extended(2)]),
            true => play.hear(3, &[refused(2), extended(1), extended(0)]),
        };
        assert_eq!(acts, [ended(if is_sound { words } else { "extended" })]);
    }
}

#[test]
fn an_unsent_repair_is_sent_after_the_next_extension() {
    let (mut play, view) = Play::holding();
    play.world.down = ServerSet::default().with(0);
    for call in [1, 2] {
        extend(&mut play, &view);
        let answer = if call == 1 { gone(0) } else { down(0) };
        let acts = play.hear(call, &[answer, extended(1), extended(2)]);
        assert_eq!(acts[0], Tell(Repair, vec![0]));
    }
}

#[test]
fn a_failed_extension_blocks_no_repair() {
    let (mut play, view) = Play::holding();
    extend(&mut play, &view);
    play.hear(1, &[gone(0), refused(1), refused(2)]);
    extend(&mut play, &view);
    let acts = play.hear(2, &[gone(0), extended(1), extended(2)]);
    assert_eq!(acts, [Tell(Repair, vec![0]), ended("extended")]);
}

#[test]
fn a_concurrent_release_follows_the_repair() {
    let (mut play, view) = Play::holding();
    extend(&mut play, &view);
    play.world.is_released_meanwhile = Some(Arc::clone(view.held_lock()));
    let acts = play.hear(1, &[gone(0), extended(1), extended(2)]);
    assert_eq!(acts, [Tell(Repair, vec![0]), tell_all(), ended("extended")]);
    assert!(view.held_lock().was_release_sent());
}

#[test]
fn a_majority_loss_releases_the_lock_and_wakes_the_next() {
    let (mut play, view) = Play::holding_and_waiting();
    extend(&mut play, &view);
    let words = "Lost: 0 of 3 servers extended, 2 needed: a:1 no longer has the lock, b:1 held by another client \
                 (7 ms left), c:1 was not heard";
    let acts = play.hear(2, &[gone(0), taken(1, 7)]);
    assert_eq!(acts, [EndWait(1), tell_all(), ended(words)]);
    assert!(view.held_lock().is_over() && view.held_lock().was_release_sent());
    assert_eq!(play.world.requests.last().unwrap(), &(Releasing, *view.held_lock().token(), TTL));
    assert_eq!(play.time_out(1), [Ask(Verb::Acquire, 500)]);
}

/// The caller asked for 100 ms, the servers have less time than that, and their answers took as long.
#[test]
fn an_expiry_during_an_extension_is_a_loss() {
    let (mut play, view) = Play::holding();
    play.at(1_000).submit(Extend::new(view.clone(), 100));
    let acts = play.at(1_200).hear(1, &[had(0, 150), had(1, 150), had(2, 150)]);
    assert_eq!(acts, [tell_all(), ended("Lost: the lock expired 54 ms ago")]);
    assert!(view.held_lock().is_over());
}

#[test]
fn a_vote_after_the_decision_is_in_the_message() {
    let (mut play, view) = Play::holding();
    extend(&mut play, &view);
    let words = "Lost: 0 of 3 servers extended, 2 needed: a:1 no longer has the lock, b:1 no longer has the lock, \
                 c:1 agreed later";
    let acts = play.hear(1, &[gone(0), gone(1), extended(2)]);
    assert_eq!(acts, [tell_all(), ended(words)]);
}

#[test]
fn a_possibly_late_grant_has_no_vote() {
    let mut play = Play::of(3);
    play.acquire(Plan::Tries(1));
    play.hear(0, &[yes(0), yes(1)]);
    let view = play.view();
    extend(play.at(1_000), &view);
    // The time that is left shows that the server granted the lock more than 500 ms after it was asked for.
    let late = (2, Answer::Extended { left_ms: 9_900 });
    let words = "Unreachable: 1 of 3 servers extended, 2 needed: b:1 OOM: out of memory, c:1 has the lock, but not \
     without interruption";
    assert_eq!(play.hear(1, &[extended(0), refused(1), late.clone()]), [ended(words)]);
    // The words also say so if the answer comes after the decision.
    extend(&mut play, &view);
    let acts = play.hear(2, &[gone(0), gone(1), late]);
    let words = "Lost: 0 of 3 servers extended, 2 needed: a:1 no longer has the lock, b:1 no longer has the lock, \
                 c:1 has the lock, but not without interruption";
    assert_eq!(acts[1], ended(words));
}

#[test]
fn an_unreachable_majority_keeps_the_lock() {
    let (mut play, view) = Play::holding();
    extend(&mut play, &view);
    play.hear(1, &[gone(0)]);
    let words = "Unreachable: 0 of 3 servers extended, 2 needed: a:1 no longer has the lock, b:1 timed out after \
     500 ms, c:1 timed out after 500 ms";
    assert_eq!(play.at(500).time_is_up(1), [ended(words)]);
    assert!(view.held_lock().is_held(at(500)));
    assert_eq!(view.held_lock().valid_until(), at(VALID_MS));
}

#[test]
fn unreachable_servers_are_retried_with_pauses() {
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), TTL).with_tries(2));
    assert_eq!(play.at(10).hear(1, &[refused(0), refused(1), refused(2)]), [WaitUntil(210)]);
    assert_eq!(play.at(210).time_out(1), [Ask(Extending, 710)]);
    let acts = play.at(220).hear(1, &[extended(0), refused(1), refused(2)]);
    let words = "Unreachable: 1 of 3 servers extended, 2 needed: b:1 OOM: out of memory, c:1 OOM: \
                 out of memory";
    assert_eq!(acts, [ended(words)]);
}

#[test]
fn a_lost_lock_is_not_retried_nor_without_randomness() {
    let (mut play, view) = Play::holding();
    play.submit(Extend::new(view.clone(), TTL).with_tries(9));
    play.world.random = None;
    let acts = play.hear(1, &[refused(0), refused(1), refused(2)]);
    assert_eq!(acts, [ended("Internal: no randomness")]);
    play.submit(Extend::new(view.clone(), TTL).with_tries(9));
    let acts = play.hear(2, &[gone(0), gone(1)]);
    assert_eq!(acts[0], tell_all());
    assert!(matches!(&acts[1], Act::Ended(words) if words.starts_with("Lost")), "{acts:?}");
}

#[test]
fn an_expired_lock_is_not_extended_but_released() {
    let (mut play, view) = Play::holding();
    let words = ended("Lost: the lock expired 2 ms ago");
    assert_eq!(extend(play.at(VALID_MS + 2), &view), [tell_all(), words]);
    // Nothing more is left to release.
    let words = ended("Lost: the lock was already released or lost");
    assert_eq!(extend(&mut play, &view), [words]);
}

#[test]
fn an_extension_of_a_lost_lock_releases_it() {
    let (mut play, view) = Play::holding();
    view.held_lock().pass_to(Phase::Lost);
    let words = ended("Lost: the lock was already released or lost");
    assert_eq!(extend(&mut play, &view), [tell_all(), words]);
}

#[test]
fn an_expiry_in_a_pause_is_a_loss() {
    let (mut play, view) = Play::holding();
    play.at(9_800).submit(Extend::new(view.clone(), TTL).with_tries(2));
    assert_eq!(play.hear(1, &[refused(0), refused(1), refused(2)]), [WaitUntil(10_000)]);
    let words = ended("Lost: the lock expired 102 ms ago");
    assert_eq!(play.at(10_000).time_out(1), [tell_all(), words]);
}

#[test]
fn late_extensions_are_lost() {
    let (mut play, view) = Play::holding();
    extend(play.at(9_800), &view);
    let words = "Lost: 2 of 3 servers extended, 2 needed; too late: the lock had expired: c:1 \
                 was not heard";
    let acts = play.at(VALID_MS).hear(1, &[extended(0), extended(1)]);
    assert_eq!(acts, [tell_all(), ended(words)]);
}

#[test]
fn extensions_heard_in_time_count_while_valid() {
    for (looked_at, is_had) in [(9_800 + VALID_MS - 1, true), (9_800 + VALID_MS, false)] {
        let (mut play, view) = Play::holding();
        extend(play.at(9_800), &view);
        assert!(play.say(1, &[extended(0), extended(1)]));
        let acts = play.at(looked_at).close(1);
        let words = "Lost: 2 of 3 servers extended, 2 needed; but the lock had ended before the replies were read: \
         c:1 not waited for";
        let outcome = if is_had { vec![ended("extended")] } else { vec![tell_all(), ended(words)] };
        assert_eq!(acts, outcome);
        assert_eq!(view.held_lock().is_held(at(looked_at)), is_had);
    }
}

#[test]
fn an_extension_of_a_lock_in_release_is_lost() {
    for answers in [[extended(0), extended(1)], [gone(0), gone(1)]] {
        let (mut play, view) = Play::holding();
        play.submit(Extend::new(view.clone(), TTL).with_tries(9));
        view.held_lock().pass_to(Phase::Releasing);
        let acts = play.hear(1, &answers);
        assert!(matches!(&acts[..], [Act::Ended(it)] if it.starts_with("Lost: ")), "{acts:?}");
        assert_eq!(view.held_lock().valid_until(), at(VALID_MS));
    }
}

#[test]
fn news_from_other_calls_counts() {
    for (lost, status) in [(1, "Unreachable"), (2, "Lost")] {
        let (mut play, view) = Play::holding();
        extend(&mut play, &view);
        assert!(play.say(1, &[extended(0), extended(1)]));
        for server in 0..lost {
            view.observer().hear(server, (Verb::Inspect, 0), &Answer::Absent, at(0));
        }
        let acts = play.close(1);
        let but = match status {
            "Lost" => "the lock had ended before the replies were read",
            _ => "another call found that one of them had lost the lock",
        };
        let words = format!("{status}: 2 of 3 servers extended, 2 needed; but {but}");
        let is_last = |act: &Act| matches!(act, Act::Ended(it) if it.starts_with(&words));
        assert!(acts.last().is_some_and(is_last), "{acts:?}");
        assert_eq!(acts.contains(&tell_all()), status == "Lost");
    }
}

#[test]
fn connecting_is_bounded_by_the_validity() {
    let (mut play, view) = Play::holding();
    play.world.connected = 1;
    assert_eq!(extend(play.at(9_000), &view), [Prepare(2)]);
    assert_eq!(play.prepared(1), [Connect(VALID_MS)]);
    assert_eq!(play.at(9_003).hear(1, &[yes(0), yes(1), yes(2)]), [Prepare(0)]);
    assert_eq!(play.prepared(1), [Connect(9_006)]);
    assert_eq!(play.hear(1, &[yes(0), yes(1), yes(2)]), [Ask(Extending, 9_503)]);
    assert_eq!(play.hear(1, &[extended(0), extended(1)]), [ended("extended")]);
    assert_eq!(view.held_lock().valid_until(), at(9_003 + VALID_MS));
}

#[test]
fn without_connections_the_lock_stays_held() {
    let (mut play, view) = Play::holding();
    play.world.connected = 0;
    play.submit(Extend::new(view.clone(), TTL).with_tries(2));
    for (nth, end) in [(0, 202), (1, 0)] {
        assert_eq!(play.prepared(1), [Connect(nth * 202 + 1_500)]);
        let acts = play.at(nth * 202 + 2).hear(1, &[down(0), down(1), down(2)]);
        assert_eq!(acts, [Prepare(usize::MAX)]);
        if nth == 0 {
            assert_eq!(play.prepared(1), [WaitUntil(end)]);
            assert_eq!(play.at(end).time_out(1), [Prepare(2)]);
        }
    }
    let acts = play.prepared(1);
    assert!(matches!(&acts[..], [Act::Ended(it)] if it.starts_with("Unreachable: 0 of 3")));
    assert!(view.held_lock().is_held(at(202)));
}

#[test]
fn an_extension_gives_each_server_its_full_time() {
    let (mut play, view) = Play::holding();
    extend(&mut play, &view);
    play.say(1, &[extended(0), gone(1)]);
    assert_eq!(play.haste(1), None);
}
