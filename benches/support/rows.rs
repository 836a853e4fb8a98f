//! Which rows the table has, and the goal of each.

use super::contenders::Who;
use super::figures::Spread;
use super::footprint::{Calls, Idle};
use super::instructions::{self, Instructions};
use super::plan::{FAR, alone, healthy};
use super::results::Results;
use super::table::{Goal, Table, number};
use super::turns::{End, Fault, Load, Turn};

const SERVERS: usize = 5;

/// The content of a row. Its turns differ only in the contender.
pub(super) struct Row<'a> {
    pub(super) what: String,
    pub(super) turn: Turn,
    pub(super) name: &'a str,
    pub(super) unit: &'a str,
}

pub(super) const LOCK: &str = "lock_p50_us";
pub(super) const LOCK_SLOW: &str = "lock_p99_us";
pub(super) const UNLOCK: &str = "unlock_p50_us";
/// What is told of many cycles at a time.
pub(super) const OF_MANY: [(&str, &str, &str); 5] = [
    ("cycles/s", "per_s", ""),
    ("lock, median", LOCK, "µs"),
    ("lock, 99th percentile", LOCK_SLOW, "µs"),
    ("processor time per cycle", CPU, "µs"),
    ("the servers' processor time per cycle", "servers_cpu_us", "µs"),
];

/// What the floor is called that sends the library's requests.
pub(super) const SAME: &str = "the same requests";
const UNLOCK_SLOW: &str = "unlock_p99_us";
pub(super) const CPU: &str = "cpu_us";

pub(crate) fn one_thread(table: &mut Table, results: &Results) {
    let ours = healthy(Who::Ours, SERVERS, Load::Own(1));
    let (floor, same) = (ours.by(Who::Floor), ours.by(Who::Same));
    for (what, name, unit) in [
        ("lock, median", LOCK, "µs"),
        ("unlock, median", UNLOCK, "µs"),
        ("processor time per cycle", CPU, "µs"),
        ("cycles/s", "per_s", ""),
        ("lock, 99th percentile", LOCK_SLOW, "µs"),
        ("unlock, 99th percentile", UNLOCK_SLOW, "µs"),
        ("the servers' processor time per cycle", "servers_cpu_us", "µs"),
        ("private memory of the process", "memory_kib", "KiB"),
    ] {
        let what = format!("1 thread, 5 servers: {what}");
        let row = Row { what, turn: ours, name, unit };
        beside(table, results, &row, (floor, "floor"), Goal::None);
    }
    for (what, name, goal) in [
        ("lock, median", LOCK, Goal::AtMost(1.10)),
        ("unlock, median", UNLOCK, Goal::AtMost(1.10)),
        ("processor time per cycle", CPU, Goal::AtMost(1.15)),
    ] {
        let label = format!("1 thread, 5 servers, beside {SAME}: {what}");
        let row = Row { what: label, turn: ours, name, unit: "µs" };
        beside(table, results, &row, (same, SAME), goal);
        let label = format!("1 thread, 5 servers, what safety costs: {what}");
        let row = Row { what: label, turn: same, name, unit: "µs" };
        beside(table, results, &row, (floor, "floor"), Goal::None);
    }
}

pub(crate) fn many_threads(table: &mut Table, results: &Results) {
    for workers in [8, 64] {
        let ours = healthy(Who::Ours, SERVERS, Load::Own(workers));
        for (what, name, unit) in OF_MANY {
            let what = format!("{workers} threads, {workers} resources, 5 servers: {what}");
            let row = Row { what, turn: ours, name, unit };
            beside(table, results, &row, (ours.by(Who::Floor), "event loop"), Goal::None);
        }
        let what = format!("{workers} threads beside as many with {SAME}, 5 servers: cycles/s");
        let row = Row { what, turn: ours, name: "per_s", unit: "" };
        beside(table, results, &row, (ours.by(Who::Same), SAME), Goal::AtLeast(0.9));
        if workers == 8 {
            let what = "8 threads beside the best peer, 5 servers: cycles/s";
            beside_best_peer(table, results, what, ours, Goal::AtLeast(1.5));
        } else {
            let few = healthy(Who::Ours, SERVERS, Load::Own(8));
            let what = "64 threads beside 8 threads, 5 servers: cycles/s".to_owned();
            let row = Row { what, turn: ours, name: "per_s", unit: "" };
            beside(table, results, &row, (few, "8 threads"), Goal::AtLeast(1.0));
        }
    }
}

pub(super) fn beside_best_peer(
    table: &mut Table,
    results: &Results,
    what: &str,
    ours: Turn,
    goal: Goal,
) {
    let speed = |who: &Who| results.spread(ours.by(*who), "per_s").map_or(0.0, |s| s.median);
    let best = Who::PEERS.into_iter().max_by(|a, b| speed(a).total_cmp(&speed(b)));
    let best = best.filter(|who| speed(who) > 0.0).unwrap_or(Who::Rslock);
    let row = Row { what: what.to_owned(), turn: ours, name: "per_s", unit: "" };
    beside(table, results, &row, (ours.by(best), best.name()), goal);
}

pub(crate) fn fewer_servers(table: &mut Table, results: &Results) {
    for servers in [3, 1] {
        for workers in [1, 8, 64] {
            let ours = healthy(Who::Ours, servers, Load::Own(workers));
            for (what, name, unit) in [
                ("cycles/s", "per_s", ""),
                ("lock, median", LOCK, "µs"),
                ("lock, 99th percentile", LOCK_SLOW, "µs"),
                ("processor time per cycle", CPU, "µs"),
            ] {
                let plural = |n| if n == 1 { "" } else { "s" };
                let threads = format!("{workers} thread{}", plural(workers));
                let what = format!("{threads}, {servers} server{}: {what}", plural(servers));
                let base = if workers == 1 { "floor" } else { "event loop" };
                let row = Row { what, turn: ours, name, unit };
                beside(table, results, &row, (ours.by(Who::Floor), base), Goal::None);
            }
        }
    }
}

pub(crate) fn faults(table: &mut Table, results: &Results) {
    let healthy = alone(Who::Ours);
    for (fault, whats) in
        [(Fault::Frozen, "frozen"), (Fault::Killed, "killed"), (Fault::Slow, "5 ms slow")]
    {
        for (what, name) in [
            ("lock, median", LOCK),
            ("lock, 99th percentile", LOCK_SLOW),
            ("unlock, median", UNLOCK),
            ("unlock, 99th percentile", UNLOCK_SLOW),
        ] {
            let what = format!("one of five {whats}: {what}");
            let row = Row { what, turn: Turn { fault, ..healthy }, name, unit: "µs" };
            beside(table, results, &row, (healthy, "healthy"), Goal::AtMost(1.10));
        }
        let floor = healthy.by(Who::Floor);
        for (what, name) in
            [("lock, 99th percentile", LOCK_SLOW), ("unlock, 99th percentile", UNLOCK_SLOW)]
        {
            let what = format!("one of five {whats}, the floor: {what}");
            let row = Row { what, turn: Turn { fault, ..floor }, name, unit: "µs" };
            if !results.records(row.turn).is_empty() {
                beside(table, results, &row, (floor, "healthy floor"), Goal::None);
            }
        }
    }
}

pub(crate) fn instructions(table: &mut Table, counted: Option<&Instructions>) {
    let Some(counted) = counted else { return };
    for (load, by) in &counted.all {
        let goal = instructions::LOADS.iter().find(|it| it.0 == *load).map_or(f64::NAN, |it| it.1);
        let of = |who| by.iter().find(|it| it.0 == who).map(|it| it.1);
        let cell = |who| of(who).map(number).unwrap_or_default();
        let ours = of(Who::Ours).unwrap_or(f64::NAN);
        let what = format!("{}: the client's instructions per cycle", instructions::name(*load));
        let ratio = of(Who::Same).map(|same| format!("{:.1} × {SAME}", ours / same));
        table.row(&what, cell, (ours, ratio.unwrap_or_default()), Goal::AtMost(goal));
    }
    for (load, times, bytes) in &counted.memory {
        for (what, value, goal) in [
            ("allocations per cycle", *times, Goal::AtMost(2.0)),
            ("allocated bytes per cycle", *bytes, Goal::AtMost(1024.0)),
        ] {
            let cell = |who| if who == Who::Ours { number(value) } else { String::new() };
            let what = format!("{}: {what}", instructions::name(*load));
            table.row(&what, cell, (value, String::new()), goal);
        }
    }
}

pub(crate) fn footprint(table: &mut Table, calls: Option<&Calls>, idle: &[Idle]) {
    if let Some(calls) = calls {
        let of = |who| calls.by.iter().find(|it| it.0 == who).map(|it| number(it.1));
        let cell = |who| of(who).unwrap_or_default();
        let what = "1 thread, 5 servers: system calls per cycle";
        table.row(what, cell, ratio_text(calls.ratio, "floor"), Goal::AtMost(1.2));
    }
    for it in idle {
        let servers =
            if it.servers == 1 { "1 server".to_owned() } else { format!("{} servers", it.servers) };
        let mut row = |what: &str, value: f64, unit: &str, goal| {
            let cell = |who| match who {
                Who::Ours => format!("{value:.0} {unit}").trim_end().to_owned(),
                _ => String::new(),
            };
            let what = format!("idle manager, {servers}: {what}");
            table.row(&what, cell, (value, String::new()), Goal::AtMost(goal));
        };
        row("memory", it.kib, "KiB", 64.0 + 32.0 * it.servers as f64);
        row("threads", it.threads, "", 0.0);
    }
}

/// Speed is worth nothing if a lock was not taken, or if two clients held it at once.
pub(crate) fn correctness(table: &mut Table, results: &Results) {
    for (what, name) in
        [("calls that failed, all runs", "failed"), ("two holders at once, all runs", "overlaps")]
    {
        let total = |who| results.total(who, name);
        let cell = |who| total(who).map_or_else(String::new, |it| format!("{it:.0}"));
        if let Some(ours) = total(Who::Ours) {
            table.row(what, cell, (ours, String::new()), Goal::AtMost(0.0));
        }
    }
}

/// Servers that are farther than on this machine. Each call takes one round trip, which is what the lock of the floor
/// takes.
pub(crate) fn network(table: &mut Table, results: &Results) {
    for far in FAR {
        let servers = format!("5 servers, {} ms away", far.as_secs_f64() * 1e3);
        let ours = Turn { far, ..healthy(Who::Ours, SERVERS, Load::Extending) };
        let same = ours.by(Who::Same);
        for (what, name, base, most) in [
            ("lock, median", LOCK, LOCK, 1.05),
            ("unlock, median", UNLOCK, UNLOCK, 1.05),
            // The script of an extension is more work than a lock. It is one round trip, and not two.
            ("extend, median, beside its lock", "extend_p50_us", LOCK, 1.25),
        ] {
            let what = format!("1 thread, {servers}: {what}");
            let ratio = results.ratio_of((ours, name), (same, base));
            let row = Row { what, turn: ours, name, unit: "µs" };
            if any(results, ours) {
                let cell = |who| cell(results, &row, who);
                table.row(&row.what, cell, ratio_text(ratio, SAME), Goal::AtMost(most));
            }
        }
        let many = Turn { load: Load::InFlight(64), ..ours };
        let what = format!("64 submitted calls in flight, {servers}: cycles/s");
        let row = Row { what, turn: many, name: "per_s", unit: "" };
        beside(table, results, &row, (many.by(Who::Same), SAME), Goal::AtLeast(0.9));
    }
}

/// A figure that is judged by its ratio to another turn, round by round.
pub(super) fn beside(
    table: &mut Table,
    results: &Results,
    row: &Row<'_>,
    (other, base): (Turn, &str),
    goal: Goal,
) {
    let ratio = results.ratio(row.turn, other, row.name);
    if any(results, row.turn) {
        table.row(&row.what, |who| cell(results, row, who), ratio_text(ratio, base), goal);
    }
}

/// A figure that is judged by itself.
pub(super) fn by_itself(table: &mut Table, results: &Results, row: &Row<'_>, goal: Goal) {
    let ours = results.spread(row.turn, row.name);
    let text = ours.map_or_else(String::new, |s| format!("({:.2}–{:.2})", s.least, s.most));
    let text = if matches!(goal, Goal::None) { String::new() } else { text };
    if any(results, row.turn) {
        let value = ours.map_or(f64::NAN, |s| s.median);
        table.row(&row.what, |who| cell(results, row, who), (value, text), goal);
    }
}

/// A figure that is judged by its ratio to another figure of the same turn.
pub(super) fn within(
    table: &mut Table,
    results: &Results,
    row: &Row<'_>,
    (other, base): (&str, &str),
    goal: Goal,
) {
    let ratio = results.ratio_within(row.turn, row.name, other);
    if any(results, row.turn) {
        table.row(&row.what, |who| cell(results, row, who), ratio_text(ratio, base), goal);
    }
}

fn any(results: &Results, turn: Turn) -> bool {
    Who::ALL.into_iter().any(|who| !results.records(turn.by(who)).is_empty())
}

fn ratio_text(ratio: Option<Spread>, base: &str) -> (f64, String) {
    match ratio {
        None => (f64::NAN, String::new()),
        Some(Spread { median, least, most }) => {
            (median, format!("{median:.2} × {base} ({least:.2}–{most:.2})"))
        }
    }
}

/// The median, or a word that says why there is none.
fn cell(results: &Results, row: &Row<'_>, who: Who) -> String {
    let turn = row.turn.by(who);
    let records = results.records(turn);
    if records.is_empty() {
        return String::new();
    }
    let locks = results.spread(turn, "cycles").map_or(0.0, |s| s.median)
        - results.spread(turn, "failed").map_or(0.0, |s| s.median);
    if locks <= 0.0 {
        let hung = records.iter().any(|record| matches!(record.end, End::Hung));
        return if hung { "hung" } else { "no lock" }.to_owned();
    }
    let value = results.spread(turn, row.name).map_or(f64::NAN, |s| s.median);
    match row.unit {
        _ if value.is_nan() => "–".to_owned(),
        "µs" if value >= 10_000.0 => format!("{} ms", number(value / 1e3)),
        unit => format!("{} {unit}", number(value)).trim_end().to_owned(),
    }
}
