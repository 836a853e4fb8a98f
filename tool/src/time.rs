//! Durations as people write them, and the clock that locks use.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Parses `10s`, `500ms`, `2m`, `1h`, `1d`, also with a fraction. A number without a unit is seconds, as
/// for `sleep`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => {
            let words = "write a time as a number and ms, s, m, h or d, such as 10s; a number alone is seconds";
            return Err(words.to_owned());
        }
    };
    let number: f64 = number.parse().map_err(|_| "the number before the unit is missing")?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "the time is too long".to_owned())
}

/// How long to wait: a time, or for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    For(Duration),
    Forever,
}

/// Like [`parse`], and accepts `forever`.
pub(crate) fn parse_wait(text: &str) -> Result<Wait, String> {
    match text {
        "forever" => Ok(Wait::Forever),
        _ => parse(text).map(Wait::For),
    }
}

/// The time since the machine was started, including time during which it slept. Locks expire by this
/// clock.
pub(crate) fn now() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::CLOCK_MONOTONIC;
    // Every system that this is built for has the clock.
    clock_gettime(clock).map_or(Duration::MAX, Duration::from)
}

/// A setting in milliseconds, exactly.
pub(crate) fn of_ms(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

/// A short form of a duration, for tables.
pub(crate) fn short(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..0.001 => format!("{:.0} µs", seconds * 1e6),
        ..0.1 => format!("{:.2} ms", seconds * 1e3),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        ..100.0 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(parse("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse("7"), Ok(Duration::from_secs(7)));
        for bad in ["", "s", "10 s", "10x", "-1s", "1.2.3s", "99999999999999999999d"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_wait("forever"), Ok(Wait::Forever));
        assert_eq!(parse_wait("0"), Ok(Wait::For(Duration::ZERO)));
    }
}
