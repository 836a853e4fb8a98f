//! Points in time, and arithmetic with them.

use std::ops::Sub;
use std::time::Duration;

/// A point in time, in nanoseconds since a fixed moment in the current run of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(i64);

impl Moment {
    /// Later than every moment that a clock will ever show.
    pub const NEVER: Self = Self(i64::MAX);

    /// The moment that a clock shows as `nanos`.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The nanoseconds that a clock shows at this moment.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The moment that is `ms` milliseconds later; [`Moment::NEVER`] if the sum is too large.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }

    /// The moment that is `pause` later.
    pub fn plus(self, pause: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// Whole microseconds from `earlier` to this moment, rounded down; 0 if it is not earlier.
    pub fn us_since(self, earlier: Self) -> i64 {
        (self - earlier).max(0) / 1_000
    }

    /// Whole milliseconds from this moment to `later`, rounded up; 0 if it is not later.
    pub fn ms_until(self, later: Self) -> i64 {
        (later - self).max(0).saturating_add(999_999) / 1_000_000
    }

    /// Whole milliseconds from `earlier` to this moment, rounded down; 0 if it is not earlier.
    pub fn ms_since(self, earlier: Self) -> i64 {
        (self - earlier).max(0) / 1_000_000
    }
}

impl Sub for Moment {
    type Output = i64;

    /// Nanoseconds between two moments.
    fn sub(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let start = Moment::from_nanos(5);
        assert_eq!(start.plus_ms(i64::MAX), Moment::NEVER);
        assert_eq!(start.plus_ms(2).ms_since(start), 2);
        assert_eq!(start.ms_since(start.plus_ms(2)), 0);
        assert_eq!(start.ms_until(Moment::from_nanos(6)), 1);
        assert_eq!((start.ms_until(start.plus_ms(2)), start.ms_until(start)), (2, 0));
        assert!(start.ms_until(Moment::NEVER) > 0);
    }
}
