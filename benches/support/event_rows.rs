//! The rows about calls that block no thread: submitted calls, kept locks, and waiters in other languages.

use super::contenders::Who;
use super::footprint::InFlight;
use super::kept::{Deaths, Kept};
use super::plan::healthy;
use super::report::Measured;
use super::results::Results;
use super::rows::{OF_MANY, Row, SAME, beside, beside_best_peer};
use super::table::{Goal, Table, number};
use super::turns::Load;
use super::waiters::Waiters;

const SERVERS: usize = 5;

pub(crate) fn submitted(table: &mut Table, results: &Results) {
    for count in [8, 64] {
        let ours = healthy(Who::Ours, SERVERS, Load::InFlight(count));
        let whose = format!("{count} submitted calls in flight, 1 thread, 5 servers");
        for (what, name, unit) in OF_MANY {
            let row = Row { what: format!("{whose}: {what}"), turn: ours, name, unit };
            beside(table, results, &row, (ours.by(Who::Floor), "event loop"), Goal::None);
        }
        let what = format!("{whose}, beside {SAME}: cycles/s");
        let row = Row { what, turn: ours, name: "per_s", unit: "" };
        beside(table, results, &row, (ours.by(Who::Same), SAME), Goal::AtLeast(0.85));
        let what = format!("{count} submitted calls beside the best peer, 5 servers: cycles/s");
        beside_best_peer(table, results, &what, ours, Goal::AtLeast(1.8));
    }
}

/// Figures that are measured once, and only for this library.
pub(crate) fn single(table: &mut Table, measured: &Measured) {
    measured.kept.iter().for_each(|it| kept(table, it));
    measured.deaths.iter().for_each(|it| deaths(table, it));
    measured.waiters.iter().for_each(|it| waiters(table, it));
    measured.in_flight.iter().for_each(|it| in_flight(table, it));
}

fn kept(table: &mut Table, it: &Kept) {
    let whose = "10,000 kept locks, TTL 10 s";
    let percent = format!("{:.1} %", it.cpu * 100.0);
    own(table, &format!("{whose}: of one processor"), &percent, it.cpu * 100.0, Goal::AtMost(5.0));
    let what = format!("{whose}: renewals, as a share of those due");
    own(table, &what, &number(it.renewals), it.renewals, Goal::AtMost(1.1));
    let what = format!("{whose}: requests that are no renewals");
    own(table, &what, &format!("{:.0}", it.others), it.others, Goal::AtMost(0.0));
    let during = it.during.as_secs();
    let what = format!("{whose}: lost in {during} s with one server frozen, one killed and back");
    own(table, &what, &format!("{:.0}", it.lost), it.lost, Goal::AtMost(0.0));
}

fn deaths(table: &mut Table, it: &Deaths) {
    let whose = format!("a majority dies under a kept lock, {:.0} trials", it.trials);
    let what = format!("{whose}: told with less than a tenth of the TTL left, or not at all");
    own(table, &what, &format!("{:.0}", it.late), it.late, Goal::AtMost(0.0));
    let what = format!("{whose}: least left, as a share of the TTL");
    own(table, &what, &number(it.least), it.least, Goal::AtLeast(0.1));
}

fn waiters(table: &mut Table, it: &Waiters) {
    let whose = it.kind.name();
    let what = format!("{whose}: threads beyond the runtime's own");
    own(table, &what, &number(it.threads), it.threads, Goal::AtMost(4.0));
    let starved = it.figures.get("starved");
    let what = format!("{whose}: who did not get every turn");
    own(table, &what, &format!("{starved:.0}"), starved, Goal::AtMost(0.0));
    let per_s = it.figures.get("locks") / it.figures.get("seconds");
    own(table, &format!("{whose}: cycles/s"), &number(per_s), per_s, Goal::None);
    for (what, name) in [("wait, median", "wait_p50_us"), ("wait, longest", "wait_most_us")] {
        let ms = it.figures.get(name) / 1e3;
        own(table, &format!("{whose}: {what}"), &format!("{} ms", number(ms)), ms, Goal::None);
    }
}

fn in_flight(table: &mut Table, it: &InFlight) {
    // The lease exists before the call and after it.
    let (call, alone) = (it.call - it.lease, it.alone - it.lease);
    for (what, bytes, goal) in [
        ("a waiting call, 10,000 in flight: memory, beside its lease", call, Goal::AtMost(1024.0)),
        ("a waiting call, alone at its resource: memory, beside its lease", alone, Goal::None),
        ("a lease without a call: memory", it.lease, Goal::None),
    ] {
        own(table, what, &format!("{} bytes", number(bytes)), bytes, goal);
    }
}

pub(super) fn own(table: &mut Table, what: &str, text: &str, value: f64, goal: Goal) {
    let cell = |who| if who == Who::Ours { text.to_owned() } else { String::new() };
    table.row(what, cell, (value, String::new()), goal);
}
