//! Python.

use std::path::Path;
use std::process::Command;

use crate::bindings::{Ground, nothing_is_left};
use crate::support::{Cluster, Server};
use crate::workshop::Workshop;
use crate::{addresses, library};

#[test]
fn the_tests_pass() {
    run_the_tests(&Ground::new());
}

#[test]
fn the_tests_pass_while_one_server_is_down() {
    let ground = Ground::new();
    ground.cluster[1].kill();
    run_the_tests(&ground);
}

#[test]
fn the_example_runs() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let mut command = python(&library::root().join("c-examples/python/example.py"));
    let run = workshop.succeed(command.args(addresses(&cluster)));
    assert_eq!(run.stderr, "");
    for person in ["Ada", "Ben", "Cleo"] {
        assert!(run.stdout.contains(person), "{}", run.stdout);
    }
    nothing_is_left(&cluster);
}

#[test]
fn the_example_says_why_it_cannot() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    cluster[..2].iter().for_each(Server::kill);
    let mut command = python(&library::root().join("c-examples/python/example.py"));
    let run = workshop.run(command.args(addresses(&cluster)));
    assert_eq!(run.status.code(), Some(1));
    assert!(run.stderr.contains(&cluster[0].address()), "{}", run.stderr);
}

fn run_the_tests(ground: &Ground) {
    let tests = library::root().join("tests/python");
    let mut command = python(Path::new("-m"));
    command.args(["unittest", "discover", "-s"]).arg(tests);
    ground.run(&mut command);
}

/// The python3 command with a script and the library. It writes no bytecode beside the script.
pub(crate) fn python(script: &Path) -> Command {
    let mut command = Command::new("python3");
    command
        .args(["-W", "error", "-B"])
        .arg(script)
        .env("PYTHONPATH", library::root().join("c-examples/python"))
        .env("REDLOCK_LIBRARY", library::directory().join("libredlock.so"));
    command
}
