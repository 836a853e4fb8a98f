//! How a question evaluates the servers' answers, where no list of events shows it.

use super::super::round::Round;
use super::*;
use crate::protocol::command::{NthKey, SlotValue};
use crate::protocol::lock::Asked;
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::quorum::validity::Drift;
use crate::protocol::token::Token;

fn drift() -> Drift {
    World::of(1).policy.drift()
}

/// The question after these answers, 5 ms after the beginning.
fn heard(mut round: Round, words: &[Word]) -> Round {
    for (server, answer) in words {
        round.hear(*server, answer.clone(), at(5));
    }
    round
}

/// A question about our place in line, asked at the beginning.
fn in_line(words: &[Word]) -> Round {
    heard(Round::line(at(0), 3), words)
}

fn behind(server: usize, left_ms: i64) -> Word {
    (server, Answer::Enrolled { left_ms, rank: 0 })
}

fn behind_readers(server: usize, left_ms: i64) -> Word {
    (server, Answer::EnrolledBehindReaders { left_ms, rank: 0 })
}

/// Of three resources, another client has this one, and we stand in its line.
fn behind_one(server: usize, nth: u16, is_shared: bool) -> Word {
    let (place, left_ms, rank) = (NthKey { nth, of: 3 }, Some(70), Some(0));
    (server, Answer::EnrolledForOne { place, left_ms, rank, is_shared })
}

#[test]
fn any_server_can_name_a_blocking_resource() {
    let round = in_line(&[behind_one(0, 1, false), behind_one(1, 3, true), behind_one(2, 3, true)]);
    assert_eq!(round.in_the_way(), 0b101);
    assert_eq!(round.readers_in_the_way(), 0b100);
    // An attempt is not told who holds the resource. It may be readers.
    let blocked = Answer::Blocked { place: NthKey { nth: 2, of: 3 }, left_ms: None };
    let round = in_line(&[(0, blocked)]);
    assert_eq!((round.in_the_way(), round.readers_in_the_way()), (0b010, 0b010));
    let round = in_line(&[behind(0, 70)]);
    assert_eq!((round.in_the_way(), round.readers_in_the_way()), (0, 0));
}

#[test]
fn a_look_needs_a_quorum_of_places_or_all_answers() {
    let mut round = Round::line(at(0), 3);
    assert!(!round.hear(0, Answer::Free, at(5)));
    assert!(round.hear(1, behind(1, 70).1, at(5)));
    let mut round = Round::line(at(0), 3);
    let failed = || Answer::Failed(Failure::Mute);
    assert!(!round.hear(0, failed(), at(5)) && !round.hear(1, failed(), at(5)));
    assert!(round.hear(2, failed(), at(5)));
}

/// Each key has its end, by the server's answer counted from the question.
#[test]
fn a_blocking_key_has_its_own_end() {
    let claims = |word: Word| {
        let claims = in_line(&[word]).refusal(drift(), at(5)).claims;
        claims.iter().map(|it| (it.earliest, it.expiry)).collect::<Vec<_>>()
    };
    // If the server's clock runs faster, the key may end earlier by a hundredth.
    assert_eq!(claims(behind(0, 10_000)), [(at(9_900), at(10_000))]);
    assert_eq!(claims(behind(0, 0)), [(at(0), at(0))]);
    assert_eq!(claims(behind(0, -1)), [(Moment::NEVER, Moment::NEVER)]);
    // The key has gone at this very moment.
    for gone_by_now in [behind(0, -2), behind_readers(0, -2)] {
        assert_eq!(claims(gone_by_now), []);
    }
    for about_to_go in [behind(0, 2), behind_readers(0, 2)] {
        assert_eq!(claims(about_to_go).len(), 1);
    }
}

#[test]
fn a_refusal_is_complete_with_all_times() {
    let is_complete = |words: &[Word]| in_line(words).refusal(drift(), at(5)).is_complete;
    assert!(is_complete(&[behind(0, 70), behind(1, 70)]));
    assert!(!is_complete(&[behind(0, 70), behind(1, -2)]));
}

/// This holds also for an acquire whose fencing token could not be raised.
#[test]
fn a_round_trip_starts_with_the_request() {
    let asked = Asked { at: at(0), ttl_ms: TTL, window_ms: 500, drift: drift() };
    let (token, roster) = (Token::from_random([1; 20]), World::of(3).roster);
    let target = Target::from(Arc::<[u8]>::from(&b"r"[..]));
    let lock = Arc::new(Lock::new(target, token, asked, roster));
    for round in [Round::acquire(Arc::clone(&lock), 3), Round::raise(lock, 3)] {
        let refusal = heard(round, &[taken(0, 70), taken(1, 70)]).refusal(drift(), at(5));
        assert_eq!(refusal.round_trip.as_millis(), 5);
    }
}

#[test]
fn a_found_lock_ends_with_its_key() {
    for (left_ms, end) in [(-1, Moment::NEVER), (0, at(5)), (70, at(75))] {
        let found = |server| (server, Answer::Found { value: b"x".to_vec(), left_ms });
        let holders = heard(Round::holders(3), &[found(0), found(1)]);
        assert_eq!(holders.locked_until(), Some(end));
        let slot = SlotValue { slot: 0, value: b"x".to_vec(), left_ms };
        let taken = |server| (server, Answer::Permits(vec![slot.clone()]));
        let round = heard(Round::taken(2, 3), &[taken(0), taken(1)]);
        assert_eq!(round.permits_taken(), Some((1, Some(end))));
    }
}

#[test]
fn an_unknown_count_of_readers_is_not_zero() {
    let two = (0, Answer::Shared { readers: 2, left_ms: Some(70) });
    let round = heard(Round::readers_of(3), &[two, refused(1), refused(2)]);
    assert_eq!(round.outcome(), Outcome::Unreachable);
}
