//! Go.

use std::path::Path;
use std::process::Command;

use crate::support::Cluster;
use crate::workshop::Workshop;
use crate::{address_list, addresses, library};

#[test]
fn the_tests_pass() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let tests = library::root().join("tests/go");
    workshop.succeed(go(&tests).args(["vet", "./..."]));
    let mut command = go(&tests);
    command.args(["test", "-count=1", "-timeout=240s", "./..."]);
    workshop.succeed(command.env("REDLOCK_TEST_SERVERS", address_list(&cluster)));
}

#[test]
fn the_example_runs() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let module = library::root().join("c-examples/go");
    workshop.succeed(go(&module).args(["vet", "./..."]));
    let program = workshop.fresh("demo");
    workshop.succeed(go(&module).arg("build").arg("-o").arg(&program).arg("./cmd/demo"));
    let run = workshop.succeed(Command::new(&program).args(addresses(&cluster)));
    assert_eq!(run.stderr, "");
    for person in ["Ada", "Ben", "Cleo"] {
        assert!(run.stdout.contains(person), "{}", run.stdout);
    }
}

/// The go command in a module, with the library, and with no need of the network or of a home.
pub(crate) fn go(module: &Path) -> Command {
    let library = library::directory().display();
    let mut command = Command::new("go");
    command
        .current_dir(module)
        .env("CGO_ENABLED", "1")
        .env("CGO_CFLAGS", format!("-I{}", library::root().join("include").display()))
        .env("CGO_LDFLAGS", format!("-L{library} -Wl,-rpath,{library}"))
        .env("GOCACHE", library::kept("go-cache"))
        .env("GOPATH", library::kept("go-path"))
        .env("GOFLAGS", "-buildvcs=false")
        .env("GOPROXY", "off")
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off");
    command
}
