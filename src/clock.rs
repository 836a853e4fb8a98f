//! The only place that reads a clock.
//!
//! The validity of a lock must also run out while the machine sleeps, because the servers' clocks
//! go on. `std::time::Instant` stops in suspend on Linux and macOS, hence `clock_gettime`.

use std::ops::Sub;
use std::time::Duration;

/// A point in time, in nanoseconds since some fixed moment of this machine's run.
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

    /// The moment that is `ms` milliseconds later; [`Moment::NEVER`] if that is past all time.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }

    /// The moment that is `pause` later.
    pub fn plus(self, pause: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX)))
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

/// Counts suspend: CLOCK_BOOTTIME does on Linux, CLOCK_MONOTONIC does on Apple's systems.
/// Elsewhere CLOCK_MONOTONIC is the nearest that there is.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Now, on a clock that never steps and counts suspend.
pub fn now() -> Moment {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that may be written to. The call cannot fail: the clock exists
    // and the pointer is good.
    unsafe { libc::clock_gettime(CLOCK, &mut time) };
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    Moment((time.tv_sec as i64) * 1_000_000_000 + (time.tv_nsec as i64))
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
    }

    #[test]
    fn the_clock_goes_forward() {
        let before = now();
        assert!(now() >= before);
    }
}
