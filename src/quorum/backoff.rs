//! How long to pause before the next try.

use std::time::Duration;

/// A pause around a mean of `delay_ms`: from half of it up to one and a half, as CRedLock's code
/// does. `random` is uniform over all of u64.
pub fn pause(delay_ms: i64, random: u64) -> Duration {
    let delay = u128::from(delay_ms.max(0).unsigned_abs()) * 1_000_000;
    let nanos = delay / 2 + ((delay * u128::from(random)) >> 64);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
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

    #[test]
    fn reconnecting_slows_down_to_a_limit() {
        let middle = 1 << 63;
        assert_eq!(reconnect(1, middle), Duration::from_millis(20));
        assert_eq!(reconnect(2, middle), Duration::from_millis(40));
        assert_eq!(reconnect(6, middle), Duration::from_millis(640));
        assert_eq!(reconnect(u32::MAX, middle), Duration::from_millis(640));
    }
}
