//! The counters as text for Prometheus.

use std::fmt::Write;

use super::counts::{Outcome, Outcomes};
use super::histogram::{BOUNDS_US, Histogram};
use super::snapshot::{ServerStats, Stats};

/// The possible outcomes of a kind of call. The others are never written.
const ACQUIRE: &[Outcome] = &[
    Outcome::Ok,
    Outcome::Taken,
    Outcome::Unreachable,
    Outcome::TooSlow,
    Outcome::Cancelled,
    Outcome::Failed,
];
const HOLDER: &[Outcome] =
    &[Outcome::Ok, Outcome::Unreachable, Outcome::Lost, Outcome::Cancelled, Outcome::Failed];
const CONFIRM: &[Outcome] = &[
    Outcome::Ok,
    Outcome::Unreachable,
    Outcome::Lost,
    Outcome::TooShort,
    Outcome::Cancelled,
    Outcome::Failed,
];
const LOOK: &[Outcome] = &[Outcome::Ok, Outcome::Unreachable, Outcome::Cancelled, Outcome::Failed];

/// All counters in the text format of Prometheus 0.0.4, which OpenMetrics readers also accept.
pub(crate) fn text(stats: &Stats, version: &str) -> String {
    let mut page = Page(String::with_capacity(8 * 1024));
    let counts = &stats.counts;
    page.head("redlock_build_info", "gauge", "The version of the library.");
    let _ = writeln!(page.0, "redlock_build_info{{version=\"{}\"}} 1", escaped(version));
    for (name, help, outcomes, possible) in [
        ("acquisitions", "Calls that took a lock or did not.", &counts.acquire, ACQUIRE),
        ("extensions", "Calls that extended a lock or did not.", &counts.extend, HOLDER),
        ("confirmations", "Calls that asked whether a lock is held.", &counts.confirm, CONFIRM),
        ("releases", "Locks that were released or could not be.", &counts.release, HOLDER),
        ("adoptions", "Calls that took over a lock or did not.", &counts.adopt, HOLDER),
        ("inspections", "Calls that asked who holds a lock.", &counts.inspect, LOOK),
    ] {
        page.outcomes(&format!("redlock_lock_{name}_total"), help, outcomes, possible);
    }
    for (name, help, count) in [
        ("detachments", "Locks that were given away.", counts.detached),
        ("attempts", "How often servers were asked for a lock.", counts.attempts),
        ("waits", "Locks that had to be waited for.", counts.waits),
        ("renewals", "Extensions of locks that are kept.", counts.renewed),
        ("renewal_failures", "Extensions of kept locks that failed.", counts.not_renewed),
        ("kept_lost", "Locks that could not be kept.", counts.kept_lost),
    ] {
        page.value(&format!("redlock_lock_{name}_total"), "counter", help, count);
    }
    page.value("redlock_locks_waiting", "gauge", "Locks that are waited for now.", stats.waiting);
    page.value("redlock_locks_kept", "gauge", "Locks that are kept now.", stats.kept);
    for (name, help, histogram) in [
        ("acquire", "How long taking a lock took, where it was taken.", &counts.acquire_time),
        ("wait", "How long locks were waited for that had to be.", &counts.wait_time),
        ("hold", "How long locks were held that were released.", &counts.hold_time),
    ] {
        let name = format!("redlock_lock_{name}_duration_seconds");
        page.head(&name, "histogram", help);
        page.histogram(&name, "", histogram);
    }
    servers(&mut page, &stats.servers);
    page.0
}

fn servers(page: &mut Page, servers: &[ServerStats]) {
    type Value = fn(&ServerStats) -> Option<String>;
    let whole: [(&str, &str, &str, Value); 7] = [
        ("up", "gauge", "Whether there is a connection.", |it| {
            Some(u8::from(it.is_connected).to_string())
        }),
        ("votes", "gauge", "Whether what it grants counts.", |it| {
            Some(u8::from(it.has_vote).to_string())
        }),
        ("clock_offset_seconds", "gauge", "How far its clock is ahead of this machine's.", |it| {
            it.clock_offset_us.map(seconds)
        }),
        ("requests_total", "counter", "Requests that were sent to it.", |it| {
            Some(it.traffic.requests.to_string())
        }),
        ("connections_total", "counter", "Connections to it.", |it| {
            Some(it.traffic.connections.to_string())
        }),
        ("connections_lost_total", "counter", "Connections to it that were lost.", |it| {
            Some(it.traffic.connections_lost.to_string())
        }),
        ("connections_failed_total", "counter", "Attempts to connect to it that failed.", |it| {
            Some(it.traffic.connections_failed.to_string())
        }),
    ];
    for (name, kind, help, value) in whole {
        let name = format!("redlock_server_{name}");
        page.head(&name, kind, help);
        for server in servers {
            if let Some(value) = value(server) {
                let _ = writeln!(page.0, "{name}{{{}}} {value}", label(server));
            }
        }
    }
    let name = "redlock_server_round_trip_seconds";
    page.head(name, "histogram", "From the sending of a request to the reading of its answer.");
    for server in servers {
        page.histogram(name, &label(server), &server.traffic.round_trip);
    }
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn outcomes(&mut self, name: &str, help: &str, outcomes: &Outcomes, possible: &[Outcome]) {
        self.head(name, "counter", help);
        for &outcome in possible {
            let (label, count) = (outcome.name(), outcomes.of(outcome));
            let _ = writeln!(self.0, "{name}{{outcome=\"{label}\"}} {count}");
        }
    }

    /// The buckets of the text are cumulative.
    fn histogram(&mut self, name: &str, label: &str, histogram: &Histogram) {
        let comma = if label.is_empty() { "" } else { "," };
        let bounds = BOUNDS_US.iter().map(|&bound| seconds(bound)).chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (bound, bucket) in bounds.zip(histogram.buckets) {
            count += bucket;
            let _ = writeln!(self.0, "{name}_bucket{{{label}{comma}le=\"{bound}\"}} {count}");
        }
        let braces = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
        let sum = seconds(histogram.sum_us);
        let _ = writeln!(self.0, "{name}_sum{braces} {sum}\n{name}_count{braces} {count}");
    }
}

fn label(server: &ServerStats) -> String {
    format!("server=\"{}\"", escaped(&server.name))
}

fn seconds(us: i64) -> String {
    let (sign, us) = (if us < 0 { "-" } else { "" }, us.unsigned_abs());
    let text = format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000);
    let text = text.trim_end_matches('0');
    text.strip_suffix('.').map_or_else(|| text.to_owned(), str::to_owned)
}

/// The value of a label, escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::stats::traffic::Traffic;

    #[test]
    fn times_are_written_in_seconds() {
        for (us, expected) in [
            (0, "0"),
            (25, "0.000025"),
            (1_000_000, "1"),
            (60_000_000, "60"),
            (2_500_000, "2.5"),
            (-1_500, "-0.0015"),
            (i64::MIN, "-9223372036854.775808"),
        ] {
            assert_eq!(seconds(us), expected);
        }
    }

    #[test]
    fn a_server_name_is_escaped_in_its_label() {
        let name = "/run/a\"} 1\nb\\".to_owned();
        let server = ServerStats {
            name,
            is_connected: true,
            has_vote: false,
            clock_offset_us: None,
            traffic: Traffic { requests: 7, ..Traffic::default() },
        };
        let stats = Stats { servers: vec![server], ..Stats::default() };
        let text = text(&stats, "0.3.0");
        let line = r#"redlock_server_requests_total{server="/run/a\"} 1\nb\\"} 7"#;
        assert!(text.lines().any(|it| it == line), "{text}");
        assert!(!text.contains("redlock_server_clock_offset_seconds{"), "{text}");
        assert!(text.ends_with('\n') && !text.contains("\n\n"));
    }

    #[test]
    fn buckets_are_cumulative() {
        let mut stats = Stats::default();
        for us in [10, 10, 300, 70_000_000] {
            stats.counts.acquire_time.observe(us);
        }
        let text = text(&stats, "0.3.0");
        for line in [
            "redlock_lock_acquire_duration_seconds_bucket{le=\"0.000025\"} 2",
            "redlock_lock_acquire_duration_seconds_bucket{le=\"0.00025\"} 2",
            "redlock_lock_acquire_duration_seconds_bucket{le=\"0.0005\"} 3",
            "redlock_lock_acquire_duration_seconds_bucket{le=\"60\"} 3",
            "redlock_lock_acquire_duration_seconds_bucket{le=\"+Inf\"} 4",
            "redlock_lock_acquire_duration_seconds_sum 70.00032",
            "redlock_lock_acquire_duration_seconds_count 4",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
    }
}
