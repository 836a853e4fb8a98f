//! How long to pause before the next try.

use std::time::Duration;

use crate::moment::Moment;

/// A pause around a mean of `delay_ms`: from half of it up to one and a half, as CRedLock's code
/// does. `random` is uniform over all of u64.
pub fn pause(delay_ms: i64, random: u64) -> Duration {
    let delay = u128::from(delay_ms.max(0).unsigned_abs()) * 1_000_000;
    let nanos = delay / 2 + ((delay * u128::from(random)) >> 64);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The pauses of a caller that waits for a lock for a time: with full jitter (uniform from nothing up
/// to a bound, so that callers that were refused together do not come again together), the bound
/// being a few round trips at first and doubled by each refusal. Polls are so the more frequent the
/// younger the wait: what is held for long is asked for seldom, and what changes hands often is
/// had soon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    bound: Duration,
    /// Until when the key was to live when it was last seen.
    expiry: Option<Moment>,
}

/// What is known after a refusal.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// How long the servers took to say it.
    pub round_trip: Duration,
    /// When a quorum of keys expires, if that is known, by clocks like ours.
    pub expiry: Option<Moment>,
    /// When it can have expired at the earliest, by clocks that are as fast as they may be.
    pub earliest: Option<Moment>,
}

impl Backoff {
    /// The first bound: so short that a lock that is held for moments is not missed, and no shorter,
    /// so that asking does not become the load.
    const FIRST_ROUND_TRIPS: u32 = 4;
    const FIRST_MIN: Duration = Duration::from_micros(500);

    /// The longest bound while the lock changes hands: whoever has it now will not have it for long.
    const LIVELY_MAX: Duration = Duration::from_millis(16);

    /// Keys of one holder expire at one time. The times told may differ by as much as a request is
    /// on its way; a new holder's are later by more.
    const SAME_HOLDER_MS: i64 = 3;

    /// How long to pause now, and at most `longest`. `random` is uniform over all of u64.
    pub fn next(&mut self, refusal: Refusal, longest: Duration, random: u64) -> Duration {
        let first = refusal.round_trip * Self::FIRST_ROUND_TRIPS;
        let mut most = longest;
        if let (Some(before), Some(now)) = (self.expiry, refusal.expiry)
            && now > before.plus_ms(Self::SAME_HOLDER_MS)
        {
            most = most.min(Self::LIVELY_MAX);
        }
        self.expiry = refusal.expiry;
        self.bound = (2 * self.bound).max(first).max(Self::FIRST_MIN).min(most);
        jitter(self.bound, random)
    }
}

/// From nothing up to a bound.
pub fn jitter(bound: Duration, random: u64) -> Duration {
    let nanos = (bound.as_nanos() * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The longest pause around a mean of `delay_ms`.
pub fn longest(delay_ms: i64) -> Duration {
    pause(delay_ms, u64::MAX)
}

/// When to try again to reach a server that failed `failures` times in a row: twice as late each
/// time, from 20 ms up to 640 ms, and spread so that clients do not come all at once.
pub fn reconnect(failures: u32, random: u64) -> Duration {
    const FIRST_MS: i64 = 20;
    const DOUBLINGS: u32 = 5;
    pause(FIRST_MS << failures.saturating_sub(1).min(DOUBLINGS), random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_half_to_one_and_a_half() {
        assert_eq!(pause(200, 0), Duration::from_millis(100));
        assert_eq!(pause(200, 1 << 63), Duration::from_millis(200));
        assert!(pause(200, u64::MAX) < Duration::from_millis(300));
        assert!(pause(200, u64::MAX) > Duration::from_millis(299));
        assert_eq!(pause(0, u64::MAX), Duration::ZERO);
        assert!(pause(i64::from(i32::MAX), u64::MAX) > Duration::from_secs(3_000_000));
    }

    const LONGEST: Duration = Duration::from_millis(300);

    /// The bounds of pauses after refusals by keys that expire then, in milliseconds.
    fn bounds(expiries_ms: &[i64]) -> Vec<u128> {
        let mut backoff = Backoff::default();
        let bound = |&ms: &i64| {
            let expiry = Some(Moment::from_nanos(0).plus_ms(ms));
            let round_trip = Duration::from_millis(1);
            let pause =
                backoff.next(Refusal { round_trip, expiry, earliest: expiry }, LONGEST, u64::MAX);
            (pause + Duration::from_micros(1)).as_millis()
        };
        expiries_ms.iter().map(bound).collect()
    }

    #[test]
    fn what_is_held_for_long_is_looked_at_seldom() {
        assert_eq!(bounds(&[9000; 9]), [4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn what_changes_hands_is_looked_at_often() {
        let (same, others) = ([9000; 7], [9004, 9020, 9100]);
        assert_eq!(bounds(&[&same[..], &others[..]].concat())[6..], [256, 16, 16, 16]);
        // A moment's difference is the network's.
        assert_eq!(bounds(&[9000, 9003, 9001, 9004, 9001]), [4, 8, 16, 32, 64]);
    }

    #[test]
    fn a_pause_is_from_nothing_to_its_bound_and_the_first_no_less_than_can_be_waited_for() {
        let refusal = Refusal { round_trip: Duration::ZERO, expiry: None, earliest: None };
        let next = |random| Backoff::default().next(refusal, LONGEST, random);
        assert_eq!(next(0), Duration::ZERO);
        assert_eq!(next(1 << 63), Backoff::FIRST_MIN / 2);
        assert!(next(u64::MAX) < Backoff::FIRST_MIN);
        assert_eq!(Backoff::default().next(refusal, Duration::ZERO, u64::MAX), Duration::ZERO);
    }

    #[test]
    fn reconnecting_slows_down_to_a_limit() {
        let middle = 1 << 63;
        assert_eq!(reconnect(1, middle), Duration::from_millis(20));
        assert_eq!(reconnect(2, middle), Duration::from_millis(40));
        assert_eq!(reconnect(6, middle), Duration::from_millis(640));
        assert_eq!(reconnect(u32::MAX, middle), Duration::from_millis(640));
    }

    #[test]
    fn a_bound_doubles_from_four_round_trips_to_the_longest() {
        const MS: Duration = Duration::from_millis(1);
        let bounds = |round_trip, longest| -> Vec<Duration> {
            let refusal = Refusal { round_trip, expiry: None, earliest: None };
            let mut backoff = Backoff::default();
            // The longest there can be is a nanosecond less.
            let next = |_| backoff.next(refusal, longest, u64::MAX) + Duration::from_nanos(1);
            (0..5).map(next).collect()
        };
        assert_eq!(bounds(MS, 50 * MS), [4 * MS, 8 * MS, 16 * MS, 32 * MS, 50 * MS]);
        assert_eq!(bounds(MS / 10, MS), [MS / 2, MS, MS, MS, MS]);
        assert_eq!(bounds(20 * MS, 100 * MS)[..2], [80 * MS, 100 * MS]);
        assert_eq!(bounds(20 * MS, 50 * MS), [50 * MS; 5]);
    }

    #[test]
    fn jitter_is_uniform_from_nothing_to_the_bound() {
        let bound = Duration::from_millis(100);
        assert_eq!(jitter(bound, 0), Duration::ZERO);
        assert_eq!(jitter(bound, 1 << 62), bound / 4);
        assert_eq!(jitter(bound, 1 << 63), bound / 2);
        assert!(jitter(bound, u64::MAX) < bound);
        let longest_ever = longest(i64::from(i32::MAX));
        assert!(jitter(longest_ever, u64::MAX) > longest_ever / 100 * 99);
        assert_eq!(longest(200), pause(200, u64::MAX));
    }
}
