//! Every exit status.

use crate::command::{bare, finish, redlock, start};
use crate::support::{Cluster, Server};

fn status(command: std::process::Command) -> Option<i32> {
    finish(command).status
}

#[test]
fn the_exit_status_is_that_of_the_program() {
    let cluster = Cluster::start(3);
    for (script, expected) in [("exit 0", 0), ("exit 1", 1), ("exit 124", 124), ("kill -9 $$", 137)]
    {
        let outcome = finish(redlock(&cluster, &["run", "r", "--", "sh", "-c", script]));
        assert_eq!(outcome.status, Some(expected), "{script}: {outcome:?}");
        assert_eq!(outcome.stderr, "", "nothing is told that nobody asked for");
        cluster.wait_until_gone("r");
    }
    assert_eq!(status(redlock(&cluster, &["run", "r", "--", "kill-all-humans"])), Some(127));
    assert_eq!(status(redlock(&cluster, &["run", "r", "--", "/"])), Some(126));
    assert_eq!(cluster.having("r"), 0);
}

#[test]
fn a_held_lock_is_taken() {
    let cluster = Cluster::start(3);
    let mut holder =
        start(redlock(&cluster, &["run", "r", "--", "sh", "-c", "echo; exec sleep 1000"]));
    holder.line();
    for (arguments, expected) in [
        (&["run", "--wait", "0", "r", "--", "true"][..], 124),
        (&["run", "--no-wait", "r", "--", "true"], 124),
        (&["run", "-w", "200ms", "r", "--", "true"], 124),
        (&["run", "-n", "-E", "7", "r", "--", "true"], 7),
        (&["run", "-n", "other", "--", "true"], 0),
    ] {
        let outcome = finish(redlock(&cluster, arguments));
        assert_eq!(outcome.status, Some(expected), "{outcome:?}");
        assert_eq!(expected != 0, outcome.stderr.contains("held by another client"), "{outcome:?}");
        assert_eq!(
            expected != 0,
            outcome.stderr.contains("redlock: r: 0 of 3 servers"),
            "{outcome:?}"
        );
    }
    let outcome = finish(redlock(&cluster, &["--json", "run", "-n", "r", "--", "true"]));
    assert_eq!(outcome.event("taken")["status"], 124);
}

#[test]
fn a_waiting_command_gets_the_lock_after_the_program() {
    let cluster = Cluster::start(3);
    let mut holder =
        start(redlock(&cluster, &["run", "r", "--", "sh", "-c", "echo; read x; exit 3"]));
    holder.line();
    let waiting = start(redlock(&cluster, &["run", "--wait", "forever", "r", "--", "true"]));
    assert_eq!(holder.end().status, Some(3), "its input was at its end");
    assert_eq!(waiting.end().status, Some(0));
}

#[test]
fn too_few_servers_are_unreachable() {
    let cluster = Cluster::start(3);
    cluster[0].kill();
    assert_eq!(status(redlock(&cluster, &["run", "r", "--", "true"])), Some(0));
    cluster[1].kill();
    let outcome = finish(redlock(&cluster, &["run", "--wait", "0", "r", "--", "true"]));
    assert_eq!(outcome.status, Some(123), "{outcome:?}");
    assert!(outcome.stderr.contains(&cluster[0].address()), "{outcome:?}");
    for verb in [&["status", "r"][..], &["list"], &["top", "--once"], &["bench", "-d", "1s"]] {
        let outcome = finish(redlock(&cluster, verb));
        assert_eq!(outcome.status, Some(123), "{verb:?}: {outcome:?}");
    }
}

#[test]
fn wrong_usage_has_its_own_status() {
    let cluster = Cluster::start(1);
    for arguments in [
        &[][..],
        &["run"],
        &["run", "r"],
        &["run", "--", "true"],
        &["run", "r", "true"],
        &["run", "--ttl", "soon", "r", "--", "true"],
        &["run", "--ttl", "100ms", "r", "--", "true"],
        &["run", "--permits", "0", "r", "--", "true"],
        &["run", "--shared", "--permits", "2", "r", "--", "true"],
        &["run", "redlock:guard", "--", "true"],
        &["run", "", "--", "true"],
        &["--config", "/nonexistent", "run", "r", "--", "true"],
        &["dance"],
        &["bench", "--duration", "1d"],
        &["top", "--interval", "1ms"],
    ] {
        let outcome = finish(redlock(&cluster, arguments));
        assert_eq!(outcome.status, Some(125), "{arguments:?}: {outcome:?}");
        assert!(!outcome.stderr.is_empty());
    }
    let outcome = finish(bare(&["run", "r", "--", "true"]));
    assert_eq!(outcome.status, Some(125));
    assert!(outcome.stderr.contains("REDLOCK_SERVERS"), "{outcome:?}");
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"], &["help", "top"]] {
        assert_eq!(status(bare(arguments)), Some(0), "{arguments:?}");
    }
}

#[test]
fn arguments_come_before_the_file_and_the_environment() {
    let server = Server::start();
    let address = server.address();
    let with = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = bare(arguments);
        command.envs(variables.iter().copied()).args(["status", "r"]);
        finish(command).status
    };
    let none = "127.0.0.1:1";
    let file = server.file("servers.toml");
    std::fs::write(&file, format!("servers = [\"{address}\"]\n")).expect("it can be written");
    assert_eq!(with(&["-s", &address], &[("REDLOCK_SERVERS", none)]), Some(0));
    assert_eq!(with(&["--config", &file], &[("REDLOCK_SERVERS", none)]), Some(0));
    assert_eq!(with(&["-s", none, "--config", &file], &[]), Some(123));
    assert_eq!(with(&[], &[("REDLOCK_SERVERS", &address)]), Some(0));
    assert_eq!(with(&[], &[("REDLOCK_SERVERS", &address), ("REDLOCK_CONFIG", "/none")]), Some(0));
    assert_eq!(with(&[], &[("REDLOCK_CONFIG", &file)]), Some(0));
    assert_eq!(with(&[], &[("REDLOCK_SERVERS", ""), ("REDLOCK_CONFIG", &file)]), Some(0));
}

#[test]
fn the_environment_of_the_program_names_the_lock() {
    let cluster = Cluster::start(3);
    let script = "echo $REDLOCK_NAME $REDLOCK_FENCING_TOKEN ${REDLOCK_TICKET-none}";
    let token = |arguments: &[&str]| {
        let mut command = redlock(&cluster, arguments);
        command.args(["r", "--", "sh", "-c", script]).env("REDLOCK_FENCING_TOKEN", "1");
        let outcome = finish(command.env("REDLOCK_TICKET", "x").output_of());
        let words: Vec<_> = outcome.stdout.split_whitespace().map(str::to_owned).collect();
        assert_eq!((words[0].as_str(), words[words.len() - 1].as_str()), ("r", "none"));
        words[1].parse::<u64>().ok()
    };
    let first = token(&["run"]).expect("a token");
    assert!(token(&["run"]).expect("a token") > first);
    assert_eq!(token(&["run", "--no-fencing"]), None);
}

trait OutputOf {
    fn output_of(&mut self) -> std::process::Command;
}

impl OutputOf for std::process::Command {
    /// A command is built by references, and run by value.
    fn output_of(&mut self) -> std::process::Command {
        std::mem::replace(self, Self::new("true"))
    }
}

/// As a job that must run once on many machines.
#[test]
fn others_are_kept_out_for_the_requested_time() {
    let cluster = Cluster::start(3);
    let run = |program: &str| {
        let arguments = ["run", "-n", "--ttl", "1s", "--hold-at-least", "1h", "r", "--", program];
        finish(redlock(&cluster, &arguments)).status
    };
    // What cannot be run keeps nobody out.
    assert_eq!(run("/no/such/program"), Some(127));
    cluster.wait_until_gone("r");
    assert_eq!(run("false"), Some(1));
    assert_eq!(run("true"), Some(124));
    assert!(cluster.iter().filter(|it| it.pttl("r") > 3_000_000).count() >= cluster.quorum());
    for other in ["--shared", "--detach", "--permits=2"] {
        let arguments = ["run", "--hold-at-least", "1s", other, "r", "--", "true"];
        assert_eq!(finish(redlock(&cluster, &arguments)).status, Some(125), "{other}");
    }
}

/// After a second, and again when that is no longer true.
#[test]
fn the_wait_for_a_holder_is_reported() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| drop(it.must(&["SET", "r", "another's", "PX", "600000"])));
    let arguments = ["--json", "run", "--wait", "forever", "r", "--", "true"];
    let mut waiting = start(redlock(&cluster, &arguments));
    let told = waiting.event("waiting");
    assert!(told["left_ms"].as_i64() > Some(300_000), "{told}");
    assert!(
        told["words"]
            .as_str()
            .is_some_and(|it| it.starts_with("waiting for r: held by another client ("))
    );
    cluster.iter().for_each(|it| drop(it.must(&["DEL", "r"])));
    assert_eq!(waiting.end().status, Some(0));

    let permit = ["run", "--permits", "1", "s", "--", "sh", "-c", "echo; exec sleep 1000"];
    let mut holder = start(redlock(&cluster, &permit));
    holder.line();
    let arguments = ["--json", "run", "--permits", "1", "--wait", "forever", "s", "--", "true"];
    let mut waiting = start(redlock(&cluster, &arguments));
    let told = waiting.event("waiting");
    let words = told["words"].as_str().expect("words");
    assert!(words.contains("all 1 permits taken"), "{words}");
    cluster[0].freeze();
    cluster[1].freeze();
    let told = waiting.event("waiting");
    assert!(told["left_ms"].is_null(), "{told}");
    cluster[0].resume();
    cluster[1].resume();
}

/// Two new servers beside one that is down look like two that have lost their memory.
#[test]
fn servers_without_a_vote_are_told_of_at_once() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(Server::be_new);
    cluster[2].kill();
    let outcome = finish(redlock(&cluster, &["run", "--wait", "200ms", "r", "--", "true"]));
    assert_eq!(outcome.status, Some(123), "{outcome:?}");
    let first = outcome.stderr.lines().next().expect("a line");
    assert!(first.starts_with("redlock: waiting: too few servers vote: "), "{outcome:?}");
    assert!(first.contains("no vote for another"), "{outcome:?}");
    let outcome = finish(redlock(&cluster, &["doctor"]));
    assert!(
        outcome.stdout.contains("start all new servers before the first client"),
        "{outcome:?}"
    );
}
