//! `redlock unlock --force`.

use crate::command::{Outcome, Running, finish, redlock, start};
use crate::support::resp::Reply;
use crate::support::{Cluster, wait_until};
use crate::terminal::Terminal;

/// A program that ends when its lock is lost.
fn hold(cluster: &Cluster, arguments: &[&str]) -> Running {
    let program = ["--", "sh", "-c", "echo started; exec sleep 1000"];
    let mut running = start(redlock(cluster, &[&["run"], arguments, &program].concat()));
    assert_eq!(running.line(), "started");
    running
}

fn unlock(cluster: &Cluster, arguments: &[&str]) -> Outcome {
    finish(redlock(cluster, &[&["unlock", "--force", "--yes"], arguments].concat()))
}

fn everywhere(cluster: &Cluster, command: &[&str]) {
    cluster.iter().for_each(|it| drop(it.must(command)));
}

#[test]
fn a_lock_is_ended_and_its_holder_stopped() {
    let cluster = Cluster::start(3);
    let holder = hold(&cluster, &["--ttl", "3s", "r"]);
    let outcome = unlock(&cluster, &["r"]);
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (Some(0), "r is unlocked\n"),
        "{outcome:?}"
    );
    assert_eq!(finish(redlock(&cluster, &["run", "-n", "r", "--", "true"])).status, Some(0));
    let ended = holder.end();
    assert_eq!(ended.status, Some(122), "{ended:?}");
    let outcome = unlock(&cluster, &["r"]);
    assert_eq!(outcome.stdout, "r was not locked: nothing was changed\n");
    assert_eq!(outcome.status, Some(0));
}

#[test]
fn nothing_is_ended_without_force_and_an_answer() {
    let cluster = Cluster::start(3);
    everywhere(&cluster, &["SET", "r", "token-of-another", "PX", "600000"]);
    for arguments in [
        &["unlock", "--yes", "r"][..],
        &["unlock", "--force", "r"],
        &["unlock", "-f", "--json", "r"],
    ] {
        let outcome = finish(redlock(&cluster, arguments));
        assert_eq!(outcome.status, Some(125), "{outcome:?}");
        assert!(
            outcome.stderr.contains("--force") || outcome.stderr.contains("--yes"),
            "{outcome:?}"
        );
    }
    let (mut terminal, mut child) = Terminal::start(redlock(&cluster, &["unlock", "--force", "r"]));
    terminal.shows("holder 1");
    terminal.shows("stop it first, or use fencing tokens");
    terminal.shows("[y/N] ");
    terminal.types("\n");
    assert_eq!(child.wait().expect("a child").code(), Some(1));
    terminal.shows("nothing was changed");
    assert!(cluster.iter().all(|it| it.get("r").as_deref() == Some("token-of-another")));
}

#[test]
fn the_lock_of_a_successor_stays() {
    let cluster = Cluster::start(3);
    everywhere(&cluster, &["SET", "r", "old", "PX", "600000"]);
    let (mut terminal, mut child) = Terminal::start(redlock(&cluster, &["unlock", "--force", "r"]));
    terminal.shows("[y/N] ");
    everywhere(&cluster, &["SET", "r", "new", "PX", "600000"]);
    terminal.types("y\n");
    assert_eq!(child.wait().expect("a child").code(), Some(0));
    terminal.shows("another client holds it now");
    assert!(cluster.iter().all(|it| it.get("r").as_deref() == Some("new")));
}

#[test]
fn readers_and_permits_are_ended_together() {
    let cluster = Cluster::start(3);
    let readers = ["r", "r"].map(|name| hold(&cluster, &["--ttl", "3s", "--shared", name]));
    let permits = ["s", "s"].map(|name| hold(&cluster, &["--ttl", "3s", "--permits", "3", name]));
    let outcome = unlock(&cluster, &["--json", "r"]);
    assert_eq!(outcome.json()["ended"], 2, "{outcome:?}");
    let outcome = unlock(&cluster, &["--json", "--permits", "3", "s"]);
    assert_eq!(
        (&outcome.json()["ended"], &outcome.json()["free"]),
        (&2.into(), &true.into()),
        "{outcome:?}"
    );
    for it in readers.into_iter().chain(permits) {
        let ended = it.end();
        assert_eq!(ended.status, Some(122), "{ended:?}");
    }
    assert!(
        cluster
            .iter()
            .all(|it| it.must(&["EXISTS", "r", "r:r", "s", "s#1", "s#2"]) == Reply::Integer(0))
    );
}

#[test]
fn one_permit_is_ended_by_its_key() {
    let cluster = Cluster::start(3);
    everywhere(&cluster, &["SET", "s", "x", "PX", "600000"]);
    let holder = hold(&cluster, &["--ttl", "3s", "--permits", "2", "s"]);
    assert_eq!(unlock(&cluster, &["s#1"]).stdout, "s#1 is unlocked\n");
    let ended = holder.end();
    assert_eq!(ended.status, Some(122), "{ended:?}");
    assert!(cluster.iter().all(|it| it.get("s").as_deref() == Some("x")));
}

#[test]
fn a_waiter_has_the_lock_at_once() {
    for kind in [&[][..], &["--permits", "2"]] {
        let cluster = Cluster::start(3);
        let holder = || hold(&cluster, &[&["--ttl", "600s"], kind, &["r"]].concat());
        let _holders: Vec<_> = (0..=kind.len() / 2).map(|_| holder()).collect();
        let waiter = [&["run", "--wait", "forever"], kind, &["r", "--", "true"]].concat();
        let waiter = start(redlock(&cluster, &waiter));
        wait_until("it waits", || {
            cluster.iter().all(|it| it.must(&["EXISTS", "r:w"]) == Reply::Integer(1))
        });
        assert_eq!(unlock(&cluster, &[kind, &["r"]].concat()).status, Some(0));
        assert_eq!(waiter.end().status, Some(0));
    }
}

/// Nobody listens to the channel of this waiter, so only a release takes it from the queue.
#[test]
fn the_first_waiter_is_woken() {
    for kind in [&[][..], &["--permits", "2"]] {
        let cluster = Cluster::start(3);
        everywhere(&cluster, &["SET", "r", "x", "PX", "600000"]);
        everywhere(&cluster, &["ZADD", "r:w", "1", "redlock:w:gone"]);
        assert_eq!(unlock(&cluster, &[kind, &["r"]].concat()).status, Some(0));
        wait_until("it is taken from the queue", || {
            cluster.iter().all(|it| it.must(&["EXISTS", "r:w"]) == Reply::Integer(0))
        });
    }
}

#[test]
fn a_key_without_an_end_or_on_a_minority_is_ended_too() {
    let cluster = Cluster::start(3);
    everywhere(&cluster, &["SET", "r", "x"]);
    assert_eq!(unlock(&cluster, &["r"]).stdout, "r is unlocked\n");
    cluster[0].must(&["SET", "r", "x", "PX", "600000"]);
    assert_eq!(unlock(&cluster, &["r"]).stdout, "r is unlocked\n");
    assert!(cluster.iter().all(|it| it.get("r").is_none()));
    everywhere(&cluster, &["RPUSH", "r", "x"]);
    let outcome = unlock(&cluster, &["r"]);
    assert_eq!(outcome.status, Some(125));
    assert!(outcome.stderr.contains("r is a list on"), "{outcome:?}");
}

#[test]
fn servers_that_do_not_answer_are_named() {
    let cluster = Cluster::start(3);
    everywhere(&cluster, &["SET", "r", "x", "PX", "600000"]);
    cluster[2].kill();
    let outcome = unlock(&cluster, &["r"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(0), "r is unlocked\n"));
    assert!(outcome.stderr.contains(&cluster[2].address()), "{outcome:?}");
    cluster[1].kill();
    cluster[0].must(&["SET", "r", "x", "PX", "600000"]);
    assert_eq!(unlock(&cluster, &["r"]).status, Some(123));
    assert_eq!(cluster[0].get("r").as_deref(), Some("x"));
}
