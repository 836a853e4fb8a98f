//! Python.

use std::path::Path;
use std::process::Command;

use crate::bindings::{self, Ground};
use crate::library;
use crate::support::moving_names;
use crate::workshop::Workshop;

#[test]
fn the_tests_pass() {
    run_the_tests(&Ground::new());
}

#[test]
fn the_tests_pass_while_one_server_is_down() {
    run_the_tests(&Ground::with_one_server_down());
}

#[test]
fn the_examples_run() {
    bindings::the_example_runs(&mut example("example.py"));
    bindings::the_example_runs(&mut example("example_asyncio.py"));
}

#[test]
fn the_examples_run_on_a_cluster() {
    bindings::the_example_runs_on_a_cluster(&mut example("example.py"));
    bindings::the_example_runs_on_a_cluster(&mut example("example_asyncio.py"));
}

#[test]
fn the_examples_explain_a_failure() {
    bindings::the_example_says_why_it_cannot(&mut example("example.py"));
    bindings::the_example_says_why_it_cannot(&mut example("example_asyncio.py"));
}

/// A program that copies the package can have its types checked, with those of the package.
#[test]
fn the_types_are_right() {
    let workshop = Workshop::new();
    let checked = |options: &[&str], program: &str| {
        let mut mypy = Command::new("mypy");
        mypy.args(["--cache-dir=/dev/null", "--no-error-summary"]).args(options);
        let run = workshop
            .succeed(mypy.args(["bindings/python/redlock", program]).current_dir(library::root()));
        assert_eq!(run.stdout, "", "{program}");
    };
    checked(&["--strict"], "bindings/python/tests/types_of.py");
    checked(&[], "bindings/python/examples/example.py");
    checked(&[], "bindings/python/examples/example_asyncio.py");
}

#[test]
fn moved_servers_are_followed_while_a_lock_is_kept() {
    for driver in ["threads", "asyncio", "gevent"] {
        moving_names::are_followed_while_a_lock_is_kept(&mut driven_by(driver));
    }
}

#[test]
fn moved_servers_are_followed_while_a_thread_waits() {
    moving_names::are_followed_while_a_call_waits(&mut driven_by("threads"));
}

#[test]
fn moved_servers_are_followed_while_a_task_waits() {
    moving_names::are_followed_while_a_call_waits(&mut driven_by("asyncio"));
}

#[test]
fn moved_servers_are_followed_while_a_greenlet_waits() {
    moving_names::are_followed_while_a_call_waits(&mut driven_by("gevent"));
}

#[test]
fn closing_ends_a_call_that_lacks_names() {
    for driver in ["threads", "asyncio", "gevent"] {
        moving_names::closing_ends_a_call_that_lacks_names(&mut driven_by(driver));
    }
}

/// The program whose servers move.
fn driven_by(driver: &str) -> Command {
    let program = library::root().join("bindings/python/tests/moving_names.py");
    let mut command = match driver {
        // The system's packages are for the system's Python.
        "gevent" => Command::new("/usr/bin/python3"),
        _ => Command::new("python3"),
    };
    with_library(&mut command).arg(program).arg(driver);
    command
}

fn example(name: &str) -> Command {
    python(&library::root().join("bindings/python/examples").join(name))
}

fn run_the_tests(ground: &Ground) {
    let tests = library::root().join("bindings/python/tests");
    let mut command = python(Path::new("-m"));
    command.args(["unittest", "discover", "-s"]).arg(tests);
    ground.run(&mut command);
}

/// The python3 command with a script and the library. It writes no bytecode beside the script, and prints where
/// its threads are if it is aborted.
pub(crate) fn python(script: &Path) -> Command {
    let mut command = Command::new("python3");
    with_library(command.args(["-X", "faulthandler", "-W", "error", "-B"]).arg(script));
    command
}

fn with_library(command: &mut Command) -> &mut Command {
    command
        .env("PYTHONPATH", library::root().join("bindings/python"))
        .env("REDLOCK_LIBRARY", library::directory().join("libredlock.so"))
}
