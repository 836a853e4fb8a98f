//! One attempt, several with pauses, and how they end.

use super::*;
use crate::protocol::command::Verb::{Acquire, AcquireAgain, Release};

/// Another client has the lock for this long, on the first two of three servers.
fn by_another(left_ms: i64) -> [Word; 2] {
    [taken(0, left_ms), taken(1, left_ms)]
}

fn tells_of_another(ms: i64) -> String {
    format!("a:1 held by another client ({ms} ms left), b:1 held by another client ({ms} ms left)")
}

#[test]
fn a_quorum_takes_the_lock_from_the_time_of_the_request() {
    let mut play = Play::of(3);
    assert_eq!(play.at(7).acquire(Plan::Tries(1)), [Ask(Acquire, 507)]);
    assert_eq!(play.at(10).hear(0, &[yes(1)]), []);
    assert_eq!(play.at(20).hear(0, &[yes(2)]), [ended("acquired")]);
    let view = play.view();
    assert_eq!(view.held_lock().valid_until(), at(7 + VALID_MS));
    // The third server was asked, too, and may have granted the lock.
    assert_eq!(view.servers(), ServerSet::first(3));
    assert_eq!([0, 1, 2].map(|server| view.is_sound(server)), [false, true, true]);
}

#[test]
fn an_absent_server_is_named_and_has_no_lock() {
    let mut play = Play::of(3);
    play.world.down = ServerSet::default().with(0);
    play.acquire(Plan::Tries(1));
    let acts = play.hear(0, &[down(0), yes(1), yes(2)]);
    assert_eq!(acts, [ended("acquired without: a:1 not connected: connection refused")]);
    assert_eq!(play.view().servers(), ServerSet::first(3).without(0));
}

#[test]
fn a_taken_lock_is_tried_again_with_a_new_token() {
    let mut play = Play::of(3);
    assert_eq!(play.acquire(Plan::Tries(2)), [Ask(Acquire, 500)]);
    let acts = play.at(4).hear(0, &by_another(5_000));
    // Only the third server may have set the key.
    assert_eq!(acts, [Tell(Release, vec![2]), WaitUntil(204)]);
    assert_eq!(play.at(204).time_out(0), [Ask(AcquireAgain, 704)]);
    let tokens: Vec<_> = play.world.requests.iter().map(|it| it.1).collect();
    assert!(tokens[0] == tokens[1] && tokens[1] != tokens[2]);
    let words = format!("Taken: 0 of 3 servers granted, 2 needed: {}", tells_of_another(4_800));
    let last = ended(&format!("{words}, c:1 agreed later"));
    let answers = [taken(0, 4_800), taken(1, 4_800), yes(2)];
    assert_eq!(play.at(210).hear(0, &answers), [Tell(Release, vec![2]), last]);
}

#[test]
fn grants_below_a_quorum_are_released() {
    let mut play = Play::of(5);
    play.world.down = ServerSet::default().with(1);
    play.acquire(Plan::Tries(1));
    assert_eq!(play.hear(0, &[yes(0), down(1), taken(2, -1)]), []);
    let words = "Unreachable: 1 of 5 servers granted, 3 needed: b:1 not connected: connection \
                 refused, c:1 held by another client (no expiry), d:1 timed out after 500 ms, e:1 timed out after \
                  500 ms";
    // Nothing was sent to b, and c has another client's key.
    assert_eq!(play.at(500).time_is_up(0), [Tell(Release, vec![0, 3, 4]), ended(words)]);
    assert_eq!(play.world.requests[1], (Release, play.world.requests[0].1, TTL));
}

#[test]
fn a_server_with_an_error_may_have_the_lock() {
    let mut play = Play::of(3);
    play.acquire(Plan::Tries(1));
    let acts = play.hear(0, &[refused(0), refused(1)]);
    assert_eq!(acts[0], Tell(Release, vec![0, 1, 2]));
}

#[test]
fn pauses_of_a_timed_wait_grow() {
    let mut play = Play::of(3);
    let until = Plan::Until(at(60_000));
    assert_eq!(play.acquire(until), [Ask(Acquire, 500)]);
    // Answered within 1 ms: the first pause is 4 ms at most, the next 8, and so on. Here each is half of that.
    for (asked, end) in [(0, 3), (3, 8), (8, 17), (17, 34)] {
        let acts = play.at(asked + 1).hear(0, &by_another(50_000 - asked));
        assert_eq!(acts, [Tell(Release, vec![2]), WaitUntil(end)]);
        assert_eq!(play.at(end).time_out(0), [Ask(AcquireAgain, end + 500)]);
    }
}

#[test]
fn a_zero_delay_has_a_pause_only_for_unreachable_servers() {
    let mut play = Play::of(3);
    play.world.policy.set_retry(3, 0);
    play.acquire(Plan::Until(at(60_000)));
    let acts = play.at(10).hear(0, &by_another(5_000));
    assert_eq!(acts, [Tell(Release, vec![2]), WaitUntil(10)]);
    assert_eq!(play.time_out(0), [Ask(AcquireAgain, 510)]);
    // The pause is at most 20 ms.
    let acts = play.at(510).time_is_up(0);
    assert_eq!(acts, [Tell(Release, vec![0, 1, 2]), WaitUntil(520)]);
}

#[test]
fn only_the_last_try_is_cut_short() {
    let mut play = Play::of(3);
    assert_eq!(play.acquire(Plan::Until(at(100))), [Ask(Acquire, 500)]);
    assert_eq!(play.at(30).hear(0, &by_another(5_000))[1..], [WaitUntil(90)]);
    // The time-out comes late.
    assert_eq!(play.at(95).time_out(0), [Ask(AcquireAgain, 125)]);
    // The servers had too little time, so what they said before counts.
    let words = "Taken: 0 of 3 servers granted, 2 needed: a:1 held by another client (5000 ms left), b:1 held by another \
     client (5000 ms left), c:1 was not heard";
    let acts = play.at(125).time_is_up(0);
    assert_eq!(acts, [Tell(Release, vec![0, 1, 2]), ended(words)]);
}

#[test]
fn a_pause_ends_with_the_wait() {
    let mut play = Play::of(3);
    play.acquire(Plan::Until(at(100)));
    let acts = play.at(60).hear(0, &by_another(5_000));
    assert_eq!(acts, [Tell(Release, vec![2]), WaitUntil(100)]);
    assert_eq!(play.at(100).time_out(0), [Ask(AcquireAgain, 125)]);
    let acts = play.at(101).hear(0, &by_another(4_900));
    let words = format!("Taken: 0 of 3 servers granted, 2 needed: {}", tells_of_another(4_900));
    assert_eq!(acts, [Tell(Release, vec![2]), ended(&format!("{words}, c:1 was not heard"))]);
}

#[test]
fn late_grants_are_too_slow_and_are_released() {
    let mut play = Play::of(3);
    play.acquire(Plan::Tries(1));
    let words =
        "TooSlow: 2 of 3 servers granted, 2 needed; too late: no validity left: c:1 was not heard";
    let acts = play.at(VALID_MS).hear(0, &[yes(0), yes(1)]);
    assert_eq!(acts, [Tell(Release, vec![0, 1, 2]), ended(words)]);
}

#[test]
fn grants_seen_after_the_validity_are_too_slow() {
    for (looked_at, is_had) in [(VALID_MS - 1, true), (VALID_MS, false)] {
        let mut play = Play::of(3);
        play.acquire(Plan::Tries(1));
        assert!(play.at(5).say(0, &[yes(0), yes(1)]));
        let acts = play.at(looked_at).close(0);
        assert_eq!(acts.contains(&ended("acquired")), is_had, "{acts:?}");
        assert_eq!(acts.contains(&Tell(Release, vec![0, 1, 2])), !is_had, "{acts:?}");
    }
}

#[test]
fn a_call_without_randomness_fails_and_the_next_is_told() {
    for (has_token, at_ms) in [(false, 200), (true, 5)] {
        let mut play = Play::of(3);
        play.acquire(Plan::Tries(3));
        assert_eq!(play.acquire(Plan::Until(at(60_000))), [WaitUntil(1_000)]);
        let last = [EndWait(1), ended("Internal: no randomness")];
        play.at(5);
        if has_token {
            play.world.random = None;
            let acts = play.hear(0, &by_another(5_000));
            assert_eq!(acts[1..], last);
        } else {
            play.hear(0, &by_another(5_000));
            play.world.random = None;
            assert_eq!(play.at(205).time_out(0), last);
        }
        // The other acquire is the head now, and asks at once. It has a token for that.
        play.world.random = Some(0);
        assert_eq!(play.time_out(1), [Ask(Acquire, at_ms + if has_token { 500 } else { 505 })]);
    }
}

#[test]
fn a_timed_wait_without_randomness_fails() {
    let mut play = Play::of(3);
    play.acquire(Plan::Until(at(60_000)));
    play.acquire(Plan::Until(at(60_000)));
    play.world.random = None;
    let acts = play.hear(0, &by_another(5_000));
    let last = ended("Internal: no randomness");
    assert_eq!(acts, [Tell(Release, vec![2]), EndWait(1), last]);
}

#[test]
fn an_acquire_connects_first() {
    let mut play = Play::of(3);
    play.world.connected = 1;
    assert_eq!(play.acquire(Plan::Tries(1)), [Prepare(2)]);
    assert_eq!(play.prepared(0), [Connect(1_500)]);
    assert_eq!(play.at(5).hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.at(6).prepared(0), [Connect(12)]);
    assert_eq!(play.at(12).time_is_up(0), [Ask(Acquire, 512)]);
    assert_eq!(play.at(14).hear(0, &[yes(0), yes(1)]), [ended("acquired")]);
    assert_eq!(play.view().held_lock().valid_until(), at(12 + VALID_MS));
}

#[test]
fn an_acquire_without_connections_pauses_and_retries() {
    let mut play = Play::of(3);
    (play.world.connected, play.world.down) = (0, ServerSet::first(3));
    play.acquire(Plan::Tries(2));
    play.prepared(0);
    assert_eq!(play.at(2).hear(0, &[down(0), down(1)]), [Prepare(usize::MAX)]);
    assert_eq!(play.prepared(0), [WaitUntil(202)]);
    assert_eq!(play.at(202).time_out(0), [Prepare(2)]);
    assert_eq!(play.prepared(0), [Connect(1_702)]);
    let words = "Unreachable: 0 of 3 servers are connected, 2 needed: a:1 not connected: connection \
                 refused, b:1 not connected: connection refused, c:1 not connected: connection refused";
    assert_eq!(play.at(1_702).time_is_up(0), [ended(words)]);
    // No server was ever asked.
    assert!(play.world.requests.is_empty());
}

#[test]
fn connecting_before_the_last_try_is_cut_short() {
    let mut play = Play::of(3);
    play.acquire(Plan::Until(at(100)));
    play.at(40).hear(0, &by_another(5_000));
    play.world.connected = 0;
    assert_eq!(play.at(100).time_out(0), [Prepare(2)]);
    assert_eq!(play.prepared(0), [Connect(125)]);
    assert_eq!(play.at(124).hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.prepared(0), [Connect(125)]);
    assert_eq!(play.hear(0, &[yes(0), yes(1), yes(2)]), [Ask(AcquireAgain, 125)]);
}

#[test]
fn unexpected_events_change_nothing() {
    let mut play = Play::of(3);
    play.acquire(Plan::Tries(2));
    for stray in [Event::TimeOut, Event::YourTurn, Event::Prepared(Prepared::default())] {
        assert_eq!(play.happen(0, stray), []);
    }
    play.hear(0, &by_another(5_000));
    assert_eq!(play.happen(0, Event::Closed { sent: ServerSet::first(3) }), []);
    assert_eq!(play.at(200).time_out(0), [Ask(AcquireAgain, 700)]);
    assert_eq!(play.hear(0, &[yes(0), yes(1)]), [ended("acquired")]);
}

#[test]
fn an_attempt_without_grants_is_not_divided() {
    let mut play = Play::of(3);
    play.acquire(Plan::Until(at(60_000)));
    assert_eq!(play.haste(0), None);
    play.say(0, &[taken(0, 5_000)]);
    assert_eq!(play.haste(0), None);
}

#[test]
fn a_divided_attempt_hurries_if_another_follows() {
    for (plan, haste) in
        [(Plan::Until(at(9_000)), Some(0)), (Plan::Tries(3), None), (Plan::Until(at(0)), None)]
    {
        let mut play = Play::of(5);
        play.acquire(plan);
        assert_eq!(play.haste(0), None);
        play.hear(0, &[yes(0), yes(1), down(4)]);
        assert_eq!(play.haste(0), None, "nobody else has it, as far as is known");
        play.hear(0, &[taken(2, 9_000)]);
        assert_eq!(play.haste(0), haste, "{plan:?}");
        let acts = play.time_is_up(0);
        assert!(acts.len() > 1, "{acts:?}");
    }
}

#[test]
fn divided_attempts_double_their_time_a_few_times() {
    let mut play = Play::of(3);
    play.acquire(Plan::Until(at(1_000_000)));
    for nth in 0..8 {
        play.hear(0, &[yes(0), taken(1, 900_000)]);
        assert_eq!(play.haste(0), Some(nth.min(5)));
        play.time_is_up(0);
        let acts = play.at(300 * (1 + i64::from(nth))).time_out(0);
        assert!(matches!(acts[..], [Ask(AcquireAgain, _)]), "{acts:?}");
    }
}
