//! Conversions between `Duration` and the milliseconds of the manager.

use std::time::Duration;

/// Returns whole milliseconds, rounded up, so that no caller gets less than it asked for. A function that
/// receives too long a time refuses it.
pub(super) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// Returns the duration of this many milliseconds; zero for a negative number.
pub(super) fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_never_overflow() {
        assert_eq!(ms(Duration::from_micros(1)), 1);
        assert_eq!(ms(Duration::from_millis(7)), 7);
        assert_eq!(ms(Duration::ZERO), 0);
        assert_eq!(ms(Duration::MAX), i64::MAX);
        assert_eq!(duration(-1), Duration::ZERO);
    }
}
