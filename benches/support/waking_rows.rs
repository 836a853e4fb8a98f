//! The rows about one resource that many callers want, and about waiters for it.

use super::contenders::Who;
use super::event_rows::own;
use super::plan::{MANY_PROCESSES, WAITERS, healthy};
use super::results::Results;
use super::rows::{LOCK, LOCK_SLOW, Row, beside, by_itself, within};
use super::table::{Goal, Table, number};
use super::turns::{Fault, Load, Turn};
use super::waiting::Waiting;

const GAP: &str = "gap_p50_us";
const LONGEST: &str = "longest_ms";

pub(crate) fn contention(table: &mut Table, results: &Results) {
    for (load, whose) in [
        (Load::Threads(8), "8 threads, one resource"),
        (Load::Threads(64), "64 threads, one resource"),
    ] {
        let goal = if load.workers() == 8 { Goal::AtLeast(0.8) } else { Goal::None };
        shares(table, results, healthy(Who::Ours, 5, load), whose, goal);
        times(table, results, healthy(Who::Ours, 5, load), whose, Goal::None);
    }
    for servers in [5, 3] {
        processes(table, results, servers);
    }
}

fn processes(table: &mut Table, results: &Results, servers: usize) {
    let few = healthy(Who::Ours, servers, Load::Processes(8));
    let many = healthy(Who::Ours, servers, MANY_PROCESSES);
    for (turn, count, share, longest, least) in [
        (few, 8, Goal::AtLeast(0.75), Goal::AtMost(30.0), Goal::None),
        (many, 32, Goal::AtLeast(0.7), Goal::None, Goal::AtLeast(0.8)),
    ] {
        let whose = format!("{count} processes, one resource, {servers} servers");
        shares(table, results, turn, &whose, share);
        let row =
            |what: &str, name, unit| Row { what: format!("{whose}: {what}"), turn, name, unit };
        by_itself(
            table,
            results,
            &row("attempts per hand-over", "attempts", ""),
            Goal::AtMost(3.5),
        );
        let requests = row("requests per hand-over", "requests", "");
        let polling = turn.by(Who::Polling);
        if results.records(polling).is_empty() {
            by_itself(table, results, &requests, Goal::None);
        } else {
            beside(table, results, &requests, (polling, "polling"), Goal::LessThan(1.0));
        }
        by_itself(table, results, &row("wait, longest", LONGEST, "ms"), longest);
        let gap = row("from a release to the next lock, median", GAP, "µs");
        if turn == few {
            by_itself(table, results, &gap, Goal::None);
        } else {
            beside(table, results, &gap, (few, "8 processes"), Goal::AtMost(1.2));
        }
        times(table, results, turn, &whose, least);
    }
    let turn = Turn { fault: Fault::Frozen, fresh: true, ..many };
    let whose = format!("32 processes, one resource, one of {servers} servers frozen");
    let row = |what: &str, name, unit| Row { what: format!("{whose}: {what}"), turn, name, unit };
    let speed = row("hand-overs/s", "handovers_per_s", "");
    beside(table, results, &speed, (many, "healthy"), Goal::AtLeast(0.5));
    by_itself(table, results, &row("wait, longest", LONGEST, "ms"), Goal::AtMost(300.0));
    by_itself(table, results, &row("attempts per hand-over", "attempts", ""), Goal::None);
}

fn shares(table: &mut Table, results: &Results, turn: Turn, whose: &str, goal: Goal) {
    let row = |what: &str, name| Row { what: format!("{whose}: {what}"), turn, name, unit: "" };
    let share = row("hand-overs, as a share of what the hold allows", "of_hold");
    by_itself(table, results, &share, goal);
    by_itself(table, results, &row("hand-overs/s", "handovers_per_s"), Goal::None);
}

fn times(table: &mut Table, results: &Results, turn: Turn, whose: &str, least: Goal) {
    for (what, name, unit, goal) in [
        ("real hold", "hold_us", "µs", Goal::None),
        ("wait, median", LOCK, "µs", Goal::None),
        ("wait, 99th percentile", LOCK_SLOW, "µs", Goal::None),
        ("least locks of a worker by most", "evenness", "", least),
        ("processor time per hand-over", "handover_cpu_us", "µs", Goal::None),
    ] {
        let row = Row { what: format!("{whose}: {what}"), turn, name, unit };
        by_itself(table, results, &row, goal);
    }
}

pub(crate) fn woken(table: &mut Table, results: &Results) {
    let turn = healthy(Who::Ours, 5, WAITERS);
    let whose = "a waiter after 2 s, 5 servers: from the release in another process to its lock";
    let row = |what: &str, name, unit| Row { what: format!("{whose}, {what}"), turn, name, unit };
    let base = ("trip_p50_us", "a round trip");
    within(table, results, &row("median", "woken_p50_us", "µs"), base, Goal::AtMost(3.0));
    let slow = row("99th percentile, in ms", "woken_p99_ms", "ms");
    by_itself(table, results, &slow, Goal::AtMost(5.0));
}

pub(crate) fn waiting(table: &mut Table, it: Option<&Waiting>) {
    let Some(it) = it else { return };
    let whose = "a waiter for 10 s, 5 servers";
    let what = format!("{whose}: requests to a server in all, at the most");
    own(table, &what, &number(it.most), it.most, Goal::AtMost(60.0));
    let what = format!(
        "{whose}: requests to all servers that do not ask whether it is free, after the first second"
    );
    own(table, &what, &number(it.others), it.others, Goal::AtMost(0.0));
    let what =
        format!("{whose}, who is not told of releases: requests to a server in all, at the most");
    own(table, &what, &number(it.silent), it.silent, Goal::None);
}
