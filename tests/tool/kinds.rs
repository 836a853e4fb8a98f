//! Locks that several have, and several names at once.

use crate::command::{Running, finish, redlock, start};
use crate::support::Cluster;

/// A program that holds its lock until its test ends.
const HOLDS: [&str; 4] = ["--", "sh", "-c", "echo ${REDLOCK_FENCING_TOKEN-none}; exec sleep 1000"];

/// Returns it once it has the lock, and its fencing token.
fn hold(cluster: &Cluster, arguments: &[&str]) -> (Running, String) {
    let mut running = start(redlock(cluster, &[&["run", "-n"], arguments, &HOLDS].concat()));
    let token = running.line();
    (running, token)
}

fn status(cluster: &Cluster, arguments: &[&str]) -> Option<i32> {
    finish(redlock(cluster, &[&["run", "-n"], arguments, &["--", "true"]].concat())).status
}

#[test]
fn as_many_programs_run_as_there_are_permits() {
    let cluster = Cluster::start(3);
    let (_first, token) = hold(&cluster, &["--permits", "2", "r"]);
    assert_eq!(token, "none", "nobody comes first of those who run at once");
    let (second, _) = hold(&cluster, &["--permits", "2", "r"]);
    assert_eq!(status(&cluster, &["--permits", "2", "r"]), Some(124));
    crate::support::process::send(second.child.id(), libc::SIGTERM);
    assert_eq!(second.end().status, Some(143));
    assert_eq!(status(&cluster, &["--permits", "2", "r"]), Some(0));
    let (_one, token) = hold(&cluster, &["--permits", "1", "other"]);
    assert_ne!(token, "none", "one permit is a lock");
}

#[test]
fn several_names_are_locked_all_or_none() {
    let cluster = Cluster::start(3);
    let (both, token) = hold(&cluster, &["a", "b"]);
    assert_ne!(token, "none");
    for names in [&["a"][..], &["b"], &["b", "c"], &["c", "a"]] {
        assert_eq!(status(&cluster, names), Some(124), "{names:?}");
    }
    assert_eq!(status(&cluster, &["c"]), Some(0), "nothing of it stays locked");
    crate::support::process::send(both.child.id(), libc::SIGTERM);
    assert_eq!(both.end().status, Some(143));
    assert_eq!(status(&cluster, &["b", "a"]), Some(0));
    assert_eq!(status(&cluster, &["a", "a"]), Some(125));
    assert_eq!(status(&cluster, &["--permits", "2", "a", "b"]), Some(125));
}

#[test]
fn a_shared_lock_keeps_exclusive_programs_out() {
    let cluster = Cluster::start(3);
    let (first, token) = hold(&cluster, &["--shared", "r"]);
    assert_eq!(token, "none", "nobody comes first of those who read");
    let (second, _) = hold(&cluster, &["--shared", "r"]);
    assert_eq!(status(&cluster, &["--shared", "r"]), Some(0));
    assert_eq!(status(&cluster, &["r"]), Some(124));
    let outcome = finish(redlock(&cluster, &["status", "--json", "r"]));
    assert!(outcome.stdout.contains("\"readers\":2"), "{}", outcome.stdout);
    // A writer that waits is told of the end of the last of them.
    let mut waiting =
        start(redlock(&cluster, &["run", "-w", "60s", "r", "--", "echo", "it writes"]));
    crate::support::wait_until("it says that it waits", || cluster.having("r:i") == 3);
    for reader in [first, second] {
        crate::support::process::send(reader.child.id(), libc::SIGTERM);
        assert_eq!(reader.end().status, Some(143));
    }
    assert_eq!(waiting.line(), "it writes");
    assert_eq!(waiting.end().status, Some(0));
    let (writer, _) = hold(&cluster, &["r"]);
    assert_eq!(status(&cluster, &["--shared", "r"]), Some(124));
    let outcome = finish(redlock(&cluster, &["status", "--json", "r"]));
    assert!(outcome.stdout.contains("\"readers\":null"), "{}", outcome.stdout);
    crate::support::process::send(writer.child.id(), libc::SIGTERM);
    assert_eq!(writer.end().status, Some(143));
}
