//! Who reads what is told: a program, somebody at a terminal, or nobody any more.

use std::fs::File;
use std::io::pipe;
use std::process::{Command, Stdio};

use crate::command::{Outcome, bare, finish, redlock};
use crate::support::Cluster;

/// A pipe that nobody reads.
fn nobody() -> Stdio {
    let (read, write) = pipe().expect("a pipe");
    drop(read);
    write.into()
}

fn finish_with(mut command: Command, stdout: Stdio, stderr: Stdio) -> Outcome {
    let output = command.stdout(stdout).stderr(stderr).spawn().expect("it runs");
    let output = output.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Outcome {
        status: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

const VERBS: [&[&str]; 11] = [
    &["status", "r"],
    &["status", "--json", "r"],
    &["list"],
    &["list", "--json"],
    &["doctor"],
    &["doctor", "--json"],
    &["top"],
    &["top", "--json"],
    &["bench", "-d", "50ms"],
    &["completions", "bash"],
    &["--help"],
];

#[test]
fn a_closed_output_ends_the_command_quietly() {
    let cluster = Cluster::start(3);
    for verb in VERBS {
        let outcome = finish_with(redlock(&cluster, verb), nobody(), Stdio::piped());
        assert_eq!(outcome.status, Some(141), "{verb:?}: {outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{verb:?}: {outcome:?}");
        assert!(outcome.stderr.is_empty() || verb.contains(&"--json"), "{verb:?}: {outcome:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported() {
    let cluster = Cluster::start(3);
    for verb in VERBS {
        let full = File::options().write(true).open("/dev/full").expect("it is there");
        let outcome = finish_with(redlock(&cluster, verb), full.into(), Stdio::piped());
        assert_eq!(outcome.status, Some(125), "{verb:?}: {outcome:?}");
        assert!(
            outcome.stderr.contains("cannot write to standard output: No space"),
            "{verb:?}: {outcome:?}"
        );
    }
}

#[test]
fn a_program_runs_without_a_reader_of_the_messages() {
    let cluster = Cluster::start(3);
    for more in ["--verbose", "--json"] {
        let command = redlock(&cluster, &["run", more, "r", "--", "sh", "-c", "exit 7"]);
        assert_eq!(finish_with(command, nobody(), nobody()).status, Some(7), "{more}");
        let command = redlock(&cluster, &["run", more, "r", "--", "no-such-program"]);
        assert_eq!(finish_with(command, nobody(), nobody()).status, Some(127), "{more}");
    }
    // Told to stop: it is warned of first.
    let script = format!("{}trap 'exit 9' TERM; sleep 1000 & wait", delete_everywhere(&cluster));
    let command = redlock(&cluster, &["run", "--ttl", "3s", "r", "--", "sh", "-c", &script]);
    assert_eq!(finish_with(command, nobody(), nobody()).status, Some(122));
}

/// A line of a script that deletes the lock.
fn delete_everywhere(cluster: &Cluster) -> String {
    let delete = |port: String| format!("redis-cli -p {port} DEL r >/dev/null; ");
    let port = |address: String| address.rsplit_once(':').expect("a port").1.to_owned();
    cluster.iter().map(|it| delete(port(it.address()))).collect()
}

#[test]
fn wrong_arguments_are_reported_in_json_too() {
    for arguments in [
        &["--json", "run", "--dance"][..],
        &["run", "--json"],
        &["status", "--json", "-s", "redis://:secret@h:1", "r"],
        &["list", "--json"],
        &["dance", "--json"],
    ] {
        let outcome = finish(bare(arguments));
        assert_eq!(outcome.status, Some(125), "{arguments:?}: {outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{arguments:?}: {outcome:?}");
        let told = outcome.event("usage");
        assert_eq!(told["status"], 125, "{told}");
        assert!(told["words"].as_str().is_some_and(|it| it.len() > 10), "{told}");
    }
    // That is the program's, and not ours.
    let outcome = finish(bare(&["run", "r", "--", "ls", "--json"]));
    assert!(outcome.stderr.starts_with("redlock: no servers given"), "{outcome:?}");
}

#[test]
fn a_name_cannot_control_the_terminal() {
    let cluster = Cluster::start(3);
    let name = "a\u{1b}[31m\nb";
    let outcome = finish(redlock(&cluster, &["run", "-v", name, "--", "true"]));
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("a\u{FFFD}[31m\u{FFFD}b is locked"), "{outcome:?}");
    for arguments in [&["run", name, "--", name][..], &["-s", name, "status", "r"]] {
        let outcome = finish(redlock(&cluster, arguments));
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        assert!(!outcome.stderr.contains('\u{1b}'), "{outcome:?}");
    }
    let outcome = finish(redlock(&cluster, &["run", "--json", name, "--", "true"]));
    assert_eq!(outcome.event("acquired")["name"], name);
}
