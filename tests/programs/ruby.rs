//! Ruby.

use std::path::Path;
use std::process::Command;

use crate::addresses;
use crate::bindings::{self, Ground};
use crate::library;
use crate::support::Cluster;
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
fn the_example_runs() {
    bindings::the_example_runs(&mut example());
}

#[test]
fn the_example_runs_on_a_cluster() {
    bindings::the_example_runs_on_a_cluster(&mut example());
}

#[test]
fn the_example_says_why_it_cannot() {
    bindings::the_example_says_why_it_cannot(&mut example());
}

#[test]
fn the_keep_alive_example_runs() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let example = library::root().join("bindings/ruby/examples/keep_alive.rb");
    let run = workshop.succeed(ruby(&example).args(addresses(&cluster)));
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("30 steps under a lock of 2 s\n", ""));
    bindings::nothing_is_left(&cluster);
}

#[test]
fn moved_servers_are_followed_while_a_lock_is_kept() {
    moving_names::are_followed_while_a_lock_is_kept(&mut with_moving_names("threads"));
}

#[test]
fn moved_servers_are_followed_while_a_thread_waits() {
    moving_names::are_followed_while_a_call_waits(&mut with_moving_names("threads"));
}

#[test]
fn moved_servers_are_followed_while_a_fiber_waits() {
    moving_names::are_followed_while_a_call_waits(&mut with_moving_names("fibers"));
}

#[test]
fn closing_ends_a_call_that_lacks_names() {
    for what_waits in ["threads", "fibers"] {
        moving_names::closing_ends_a_call_that_lacks_names(&mut with_moving_names(what_waits));
    }
}

fn with_moving_names(what_waits: &str) -> Command {
    let mut command = ruby(&library::root().join("bindings/ruby/tests/moving_names.rb"));
    command.arg(what_waits);
    command
}

fn example() -> Command {
    ruby(&library::root().join("bindings/ruby/examples/example.rb"))
}

fn run_the_tests(ground: &Ground) {
    // Names are printed as tests begin. A test that does not end is the last one printed.
    ground.run(ruby(&library::root().join("bindings/ruby/tests/all.rb")).arg("-v"));
}

/// The ruby command with a script and the library.
pub(crate) fn ruby(script: &Path) -> Command {
    let mut command = Command::new("ruby");
    command
        .arg("-w")
        .arg(script)
        .env("REDLOCK_LIBRARY", library::directory().join("libredlock.so"));
    command
}
