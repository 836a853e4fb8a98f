//! Locks that are given to the program, and taken over from one.

use crate::command::{finish, redlock};
use crate::support::Cluster;

#[test]
fn a_detached_lock_belongs_to_the_program() {
    let cluster = Cluster::start(3);
    let script = r#""$0" run --adopt -- sh -c 'echo $REDLOCK_NAME ${REDLOCK_TICKET-none}; exit 4'"#;
    let mut command = redlock(&cluster, &["run", "--detach", "r", "--", "sh", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_redlock"));
    let outcome = finish(command);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(4), "r none\n"), "{outcome:?}");
    cluster.wait_until_gone("r");
}

#[test]
fn a_ticket_without_adopter_leaves_the_lock_to_its_ttl() {
    let cluster = Cluster::start(3);
    let script = "echo $REDLOCK_TICKET; echo $REDLOCK_FENCING_TOKEN; exit 6";
    let outcome = finish(redlock(&cluster, &["run", "--detach", "r", "--", "sh", "-c", script]));
    assert_eq!(outcome.status, Some(6), "{outcome:?}");
    let ticket = outcome.stdout.lines().next().expect("a ticket");
    let fence = outcome.stdout.lines().nth(1).expect("a fencing token");
    assert!(ticket.starts_with("redlock1.") && ticket.contains(fence), "{ticket}");
    assert!(cluster.having("r") >= cluster.quorum());
    // Somebody else who was given it.
    let mut command =
        redlock(&cluster, &["run", "--adopt", "--", "sh", "-c", "echo $REDLOCK_FENCING_TOKEN"]);
    command.env("REDLOCK_TICKET", ticket);
    let outcome = finish(command);
    assert_eq!((outcome.status, outcome.stdout.trim()), (Some(0), fence), "{outcome:?}");
    cluster.wait_until_gone("r");
    let mut command = redlock(&cluster, &["run", "--adopt", "--", "true"]);
    command.env("REDLOCK_TICKET", ticket);
    let outcome = finish(command);
    assert_eq!(outcome.status, Some(122), "the lock has ended: {outcome:?}");
    assert!(!outcome.stderr.contains(ticket));
}

#[test]
fn an_invalid_ticket_is_refused() {
    let cluster = Cluster::start(1);
    assert_eq!(finish(redlock(&cluster, &["run", "--adopt", "--", "true"])).status, Some(125));
    let mut command = redlock(&cluster, &["run", "--adopt", "--", "true"]);
    command.env("REDLOCK_TICKET", "hunter2");
    let outcome = finish(command);
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert!(!outcome.stderr.contains("hunter2"));
}
