//! Ruby.

use std::path::Path;
use std::process::Command;

use crate::support::Cluster;
use crate::workshop::Workshop;
use crate::{address_list, addresses, library};

#[test]
fn the_tests_pass() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let mut command = ruby(&library::root().join("tests/ruby/redlock_test.rb"));
    workshop.succeed(command.env("REDLOCK_TEST_SERVERS", address_list(&cluster)));
}

#[test]
fn the_example_runs() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let mut command = ruby(&library::root().join("c-examples/ruby/example.rb"));
    let run = workshop.succeed(command.args(addresses(&cluster)));
    assert_eq!(run.stderr, "");
    for person in ["Ada", "Ben", "Cleo"] {
        assert!(run.stdout.contains(person), "{}", run.stdout);
    }
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
