//! The only place that reads a clock.
//!
//! The validity of a lock must also run out while the machine sleeps, because the servers' clocks
//! go on. `std::time::Instant` stops in suspend on Linux and macOS, hence `clock_gettime`.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::moment::Moment;

/// Counts suspend: CLOCK_BOOTTIME does on Linux, CLOCK_MONOTONIC does on Apple's systems.
/// Elsewhere CLOCK_MONOTONIC is the nearest that there is.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Now, on a clock that never steps and counts suspend.
pub(crate) fn now() -> Moment {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that may be written to. The call cannot fail: the clock exists
    // and the pointer is good.
    unsafe { libc::clock_gettime(CLOCK, &mut time) };
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    Moment::from_nanos((time.tv_sec as i64) * 1_000_000_000 + (time.tv_nsec as i64))
}

/// What this machine's clock shows that people set, in microseconds since 1970.
pub(crate) fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward() {
        let before = now();
        assert!(now() >= before);
    }
}
