//! The only place that reads a clock.
//!
//! The validity of a lock must also run out while the machine sleeps, because the servers' clocks go on.
//! `std::time::Instant` stops in suspend on Linux and macOS, so this module uses `clock_gettime`.

use crate::protocol::moment::Moment;

/// This clock counts suspend: CLOCK_BOOTTIME does on Linux, CLOCK_MONOTONIC does on Apple's systems. On
/// other systems CLOCK_MONOTONIC is the nearest clock.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// The current moment, on a clock that never steps and counts suspend.
pub(crate) fn now() -> Moment {
    Moment::from_nanos(nanos_of(CLOCK))
}

/// The time of this machine's settable clock, in microseconds since 1970.
pub(crate) fn wall_us() -> i64 {
    nanos_of(libc::CLOCK_REALTIME) / 1_000
}

fn nanos_of(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that may be written to. The call cannot fail: the clock exists and the
    // pointer is valid.
    unsafe { libc::clock_gettime(clock, &mut time) };
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    let nanos = (time.tv_sec as i64) * 1_000_000_000 + (time.tv_nsec as i64);
    nanos
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
