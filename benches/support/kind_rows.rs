//! The rows about kinds of locks, and about the guards that apply to all of them, compared with plain locks.

use super::contenders::Who;
use super::plan::{PERMITS, clustered as on_a_cluster, healthy};
use super::results::Results;
use super::rows::{LOCK, LOCK_SLOW, Row, beside, by_itself, within};
use super::table::{Goal, Table};
use super::turns::Load;

const SERVERS: usize = 5;

pub(crate) fn kinds(table: &mut Table, results: &Results) {
    in_turn(table, results);
    watched(table, results);
    clustered(table, results);
    connecting(table, results);
    readers(table, results);
    permits(table, results);
}

/// Locks and unlocks, with a few cycles of each kind in turn.
fn in_turn(table: &mut Table, results: &Results) {
    let turn = healthy(Who::Ours, SERVERS, Load::Kinds);
    let (lock, unlock, cycle) = ("lock, median", "unlock, median", "lock and unlock, median");
    for (whose, what, name, base, base_name, limit) in [
        ("guard and clock sentinel", lock, "plain_lock", "without", "unguarded_lock", Some(1.04)),
        ("guard and clock sentinel", unlock, "plain_unlock", "without", "unguarded_unlock", None),
        ("waking", lock, "plain_lock", "without", "silent_lock", Some(1.03)),
        ("waking", unlock, "plain_unlock", "without", "silent_unlock", None),
        ("waking", cycle, "plain_cycle", "without", "silent_cycle", Some(1.03)),
        ("fencing tokens", lock, "fenced_lock", "without", "plain_lock", Some(1.15)),
        ("fencing tokens", unlock, "fenced_unlock", "without", "plain_unlock", None),
        ("shared", lock, "shared_lock", "exclusive", "plain_lock", Some(1.5)),
        ("shared", unlock, "shared_unlock", "exclusive", "plain_unlock", None),
        ("8 resources at once", lock, "several_lock", "one", "plain_lock", Some(1.5)),
        ("8 resources at once", unlock, "several_unlock", "one", "plain_unlock", Some(1.5)),
        ("submitted, one at a time", lock, "submitted_lock", "blocking", "plain_lock", Some(1.1)),
        (
            "submitted, one at a time",
            unlock,
            "submitted_unlock",
            "blocking",
            "plain_unlock",
            Some(1.1),
        ),
        ("background thread", cycle, "background_cycle", "without", "plain_cycle", Some(1.05)),
        ("background thread", lock, "background_lock", "without", "plain_lock", Some(1.05)),
        ("background thread", unlock, "background_unlock", "without", "plain_unlock", Some(1.05)),
    ] {
        let name = format!("{name}_p50_us");
        let what = format!("1 thread, 5 servers, {whose}: {what}");
        let row = Row { what, turn, name: &name, unit: "µs" };
        let other = format!("{base_name}_p50_us");
        let goal = limit.map_or(Goal::None, Goal::AtMost);
        within(table, results, &row, (&other, base), goal);
    }
}

/// Locks and unlocks on masters that Sentinels watch, a few cycles in each way in turn.
fn watched(table: &mut Table, results: &Results) {
    let turn = healthy(Who::Ours, SERVERS, Load::Watched);
    for call in ["lock", "unlock"] {
        for (whose, other, base, goal) in [
            ("failover guard", "believed", "without", Goal::AtMost(1.03)),
            ("masters of Sentinels", "addresses", "addresses", Goal::None),
        ] {
            let (name, other) =
                (format!("sentinels_{call}_p50_us"), format!("{other}_{call}_p50_us"));
            let what = format!("1 thread, 5 servers, {whose}: {call}, median");
            let row = Row { what, turn, name: &name, unit: "µs" };
            within(table, results, &row, (&other, base), goal);
        }
    }
}

/// Locks and unlocks on three masters of a cluster, and on three servers.
fn clustered(table: &mut Table, results: &Results) {
    let turn = on_a_cluster();
    for call in ["lock", "unlock"] {
        let (name, other) = (format!("tags_{call}_p50_us"), format!("addresses_{call}_p50_us"));
        let what = format!("1 thread, 3 servers, tags of a cluster: {call}, median");
        let row = Row { what, turn, name: &name, unit: "µs" };
        within(table, results, &row, (&other, "addresses"), Goal::AtMost(1.05));
    }
}

fn connecting(table: &mut Table, results: &Results) {
    let turn = healthy(Who::Ours, SERVERS, Load::Connecting);
    let what = "connecting to 5 servers, median".to_owned();
    let row = Row { what, turn, name: "guarded_p50_us", unit: "µs" };
    let base = ("unguarded_p50_us", "without the guard");
    within(table, results, &row, base, Goal::AtMost(1.5));
}

fn readers(table: &mut Table, results: &Results) {
    let turn = healthy(Who::Ours, SERVERS, Load::Readers(64));
    let writers = (healthy(Who::Ours, SERVERS, Load::Writers(64)), "64 exclusive locks");
    for (what, name, unit, goal) in [
        ("cycles/s", "per_s", "", Goal::AtLeast(0.8)),
        ("lock, median", LOCK, "µs", Goal::None),
        ("the servers' processor time per cycle", "servers_cpu_us", "µs", Goal::None),
    ] {
        let what = format!("64 threads read one resource, 5 servers: {what}");
        let row = Row { what, turn, name, unit };
        beside(table, results, &row, writers, goal);
    }
}

fn permits(table: &mut Table, results: &Results) {
    for (permits, limit) in PERMITS.into_iter().zip([1.3, 2.0]) {
        let turn = healthy(Who::Ours, SERVERS, Load::Permits(permits));
        let (all, held, at_once) = (permits.all, permits.held, permits.at_once);
        let whose = format!("semaphore of {all}, {held} held, {at_once} at once, 5 servers");
        for (what, name, unit, goal) in [
            ("rounds per permit, mean", "rounds", "", Goal::AtMost(limit)),
            ("lock, median", LOCK, "µs", Goal::None),
            ("lock, 99th percentile", LOCK_SLOW, "µs", Goal::None),
        ] {
            let row = Row { what: format!("{whose}: {what}"), turn, name, unit };
            by_itself(table, results, &row, goal);
        }
    }
}
