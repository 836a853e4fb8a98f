//! A lock that is lost while the program runs.

use std::process::Command;

use crate::command::{redlock, start};
use crate::support::{Cluster, moving_names};

/// Ends by itself when it is told to stop.
const POLITE: &str = "trap 'echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.01; done";

#[test]
fn a_program_is_told_to_stop_while_the_lock_is_held() {
    let cluster = Cluster::start(3);
    let arguments = ["--json", "run", "--ttl", "4s", "r", "--", "sh", "-c", POLITE];
    let mut running = start(redlock(&cluster, &arguments));
    assert_eq!(running.line(), "ready");
    cluster.wait_until_everywhere("r");
    cluster[0].freeze();
    cluster[1].freeze();
    assert_eq!(running.line(), "stopped", "it had time to say so");
    let outcome = running.end();
    assert_eq!(outcome.status, Some(122), "{outcome:?}");
    assert!(outcome.event("stopping")["remaining_ms"].as_u64() > Some(0));
    assert_eq!(outcome.event("ended")["signal"], serde_json::Value::Null);
    assert_eq!(outcome.event("lost")["status"], 122);
}

/// It is told to stop when that is noticed, and is killed only when the lock would have ended.
#[test]
fn a_program_with_a_deleted_lock_has_time_to_stop() {
    const SLOW: &str =
        "trap 'sleep 1; echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let cluster = Cluster::start(3);
    let mut running =
        start(redlock(&cluster, &["run", "--ttl", "30s", "r", "--", "sh", "-c", SLOW]));
    assert_eq!(running.line(), "ready");
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|it| drop(it.must(&["DEL", "r"])));
    assert_eq!(running.line(), "stopped");
    let outcome = running.end();
    assert_eq!(outcome.status, Some(122), "{outcome:?}");
}

#[test]
fn a_stolen_lock_is_lost_whatever_the_exit_status() {
    let cluster = Cluster::start(3);
    let arguments = ["run", "--ttl", "600s", "r", "--", "sh", "-c", "echo; read x; exit 0"];
    let mut command = redlock(&cluster, &arguments);
    let mut running = start({
        command.stdin(std::process::Stdio::piped());
        command
    });
    running.line();
    cluster.iter().for_each(|it| drop(it.must(&["SET", "r", "another's"])));
    drop(running.child.stdin.take());
    let outcome = running.end();
    assert_eq!(outcome.status, Some(122), "{outcome:?}");
    cluster.iter().for_each(|it| assert_eq!(it.get("r").as_deref(), Some("another's")));
}

#[test]
fn a_failing_minority_does_not_stop_the_program() {
    let cluster = Cluster::start(3);
    let script = "echo; read x; exit 9";
    let mut command = redlock(&cluster, &["run", "--ttl", "2s", "r", "--", "sh", "-c", script]);
    command.stdin(std::process::Stdio::piped());
    let mut running = start(command);
    running.line();
    cluster.wait_until_everywhere("r");
    cluster[2].freeze();
    let renewals = || cluster[0].scripts();
    let before = renewals();
    crate::support::wait_until("it is renewed a few times", || renewals() > before + 3);
    drop(running.child.stdin.take());
    // `read` fails at the end of its input, and the script goes on.
    assert_eq!(running.end().status, Some(9));
}

/// It also ends while the resolver is silent.
#[test]
fn a_lock_outlives_moved_servers() {
    const SCRIPT: &str = "REDLOCK_SERVERS=$REDLOCK_TEST_SERVERS exec \"$0\" run --ttl 8s r -- \
                          sh -c 'echo begun; cat > /dev/null'";
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, env!("CARGO_BIN_EXE_redlock")]);
    moving_names::are_followed_while_a_lock_is_kept(&mut command);
}
