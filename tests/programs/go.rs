//! Go.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::support::moving_names;
use crate::support::tls::Authority;
use crate::support::{Cluster, Server};
use crate::workshop::{Run, Workshop};
use crate::{Secure, address_list, addresses, bindings, library};

/// The tests that must also pass while one of the servers is silent or gone.
const WITH_TWO_OF_THREE: &str = "Thousands|AtRandom|CutOff|Crowd|UnlockTwice|Panic|Close|OneLease|Credentials|Waiter|Cancel|Connect|Shows|Kept|Reader";

#[test]
fn the_tests_pass_under_the_race_detector() {
    let (cluster, secure, workshop) = (Cluster::start(3), Secure::start(), Workshop::new());
    workshop.succeed(go(&tests()).args(["vet", "./..."]));
    let mut command = test(&cluster);
    workshop.succeed(command.arg("-race").env("REDLOCK_TEST_TLS", secure.list().join(",")));
    workshop.succeed(go(&module()).args(["test", "-race", "-count=1", "./..."]));
}

#[test]
fn the_tests_pass_on_one_processor() {
    let (cluster, secure, workshop) = (Cluster::start(3), Secure::start(), Workshop::new());
    let mut command = test(&cluster);
    command.env("GOMAXPROCS", "1").env("REDLOCK_TEST_TLS", secure.list().join(","));
    workshop.succeed(&mut command);
}

#[test]
fn a_frozen_server_does_not_matter() {
    with_a_server_down(Server::freeze);
}

#[test]
fn a_killed_server_does_not_matter() {
    with_a_server_down(Server::kill);
}

fn with_a_server_down(harm: impl FnOnce(&Server)) {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    harm(&cluster[2]);
    let mut command = test(&cluster);
    command.args(["-run", WITH_TWO_OF_THREE]).env("REDLOCK_TEST_DOWN", cluster[2].address());
    workshop.succeed(&mut command);
}

#[test]
fn the_package_passes_its_own_tests() {
    let workshop = Workshop::new();
    workshop.succeed(go(&module()).args(["vet", "./..."]));
    workshop.succeed(go(&module()).args(["test", "-count=1", "./..."]));
}

/// Without cgo the compiler says what to do, and nothing else.
#[test]
fn who_builds_it_without_cgo_is_told_what_to_do() {
    let workshop = Workshop::new();
    let run = workshop.run(go(&module()).args(["build", "."]).env("CGO_ENABLED", "0"));
    assert!(!run.status.success());
    let errors: Vec<_> = run.stderr.lines().filter(|it| !it.starts_with('#')).collect();
    let says = "redlock_needs_cgo__set_CGO_ENABLED_to_1_and_install_a_C_compiler";
    assert!(errors.len() == 1 && errors[0].contains(says), "{}", run.stderr);
}

#[test]
fn every_exported_function_is_documented() {
    let workshop = Workshop::new();
    let run = workshop.succeed(go(&module()).args(["doc", "-all", "."]));
    let lines: Vec<_> = run.stdout.lines().collect();
    let functions = lines.iter().enumerate().filter(|it| it.1.starts_with("func "));
    let mut count = 0;
    for (at, line) in functions {
        let is_documented = lines.get(at + 1).is_some_and(|it| it.starts_with("    "));
        assert!(is_documented, "without words: {line}");
        count += 1;
    }
    assert!(count >= 18, "{}", run.stdout);
}

#[test]
fn the_example_runs() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let run = example(&workshop, "demo", &addresses(&cluster));
    assert!(run.status.success(), "{}", run.stderr);
    bindings::each_has_had_its_turn(&run);
}

#[test]
fn the_example_runs_on_a_cluster() {
    let workshop = Workshop::new();
    bindings::the_example_runs_on_a_cluster(&mut Command::new(built(&workshop, "demo")));
}

#[test]
fn the_example_over_tls_runs() {
    let (authority, workshop) = (Arc::new(Authority::new()), Workshop::new());
    let start = |_| Server::start_tls(&authority, &authority.server(), &[]);
    let servers: Vec<_> = (0..3).map(start).collect();
    let with = |file: String| {
        let mut arguments = vec![file];
        arguments.extend(servers.iter().map(Server::address));
        example(&workshop, "secure", &arguments)
    };
    let run = with(authority.file());
    assert!(run.status.success() && run.stdout.contains("in secret"), "{}", run.stderr);
    let run = with(Authority::new().file());
    assert!(run.status.code() == Some(1) && run.stderr.starts_with("redlock: "), "{}", run.stderr);
}

#[test]
fn moved_servers_are_followed_while_a_lock_is_kept() {
    with_moving_names(moving_names::are_followed_while_a_lock_is_kept);
}

#[test]
fn moved_servers_are_followed_while_a_goroutine_waits() {
    with_moving_names(moving_names::are_followed_while_a_call_waits);
}

#[test]
fn a_manager_can_be_closed_despite_a_silent_resolver() {
    with_moving_names(moving_names::can_be_closed_while_the_resolver_is_silent);
}

#[test]
fn closing_ends_a_call_that_lacks_names() {
    with_moving_names(moving_names::closing_ends_a_call_that_lacks_names);
}

fn with_moving_names(test: impl Fn(&mut Command)) {
    let workshop = Workshop::new();
    let program = workshop.fresh("moving_names");
    let mut build = go(&tests());
    workshop.succeed(build.args(["build", "-race", "-o"]).arg(&program).arg("./moving_names"));
    test(&mut Command::new(&program));
}

/// The build if the library is not installed in a usual place.
#[test]
fn pkg_config_finds_the_library() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let (include, lib) = (library::root().join("include"), library::directory());
    let text = format!(
        "Name: redlock\nDescription: as installed\nVersion: 0\n\
         Cflags: -I{}\nLibs: -L{} -lredlock\n",
        include.display(),
        lib.display()
    );
    let file = workshop.write("pkgconfig/redlock.pc", &text);
    let program = workshop.fresh("demo");
    let mut command = go(&module());
    command
        .env_remove("CGO_CFLAGS")
        .env_remove("CGO_LDFLAGS")
        .env("PKG_CONFIG_PATH", parent(&file));
    command.args(["build", "-tags", "redlock_pkgconfig", "-o"]).arg(&program).arg("./cmd/demo");
    workshop.succeed(&mut command);
    let mut run = Command::new(&program);
    workshop.succeed(run.args(addresses(&cluster)).env("LD_LIBRARY_PATH", lib));
}

fn example(workshop: &Workshop, name: &str, arguments: &[String]) -> Run {
    workshop.run(Command::new(built(workshop, name)).args(arguments))
}

/// One of the example programs.
fn built(workshop: &Workshop, name: &str) -> PathBuf {
    let program = workshop.fresh(name);
    let mut command = go(&module());
    workshop.succeed(command.arg("build").arg("-o").arg(&program).arg(format!("./cmd/{name}")));
    program
}

fn test(cluster: &Cluster) -> Command {
    let mut command = go(&tests());
    // Tests that wait for renewals do so at the same time.
    command.args(["test", "-count=1", "-timeout=280s", "-parallel=16", "."]);
    command.env("REDLOCK_TEST_SERVERS", address_list(cluster));
    command
}

fn module() -> PathBuf {
    library::root().join("bindings/go")
}

fn tests() -> PathBuf {
    library::root().join("bindings/go/tests")
}

fn parent(path: &Path) -> &Path {
    path.parent().expect("it is in a directory")
}

/// The go command in a module, with the library, and without need for the network or a home directory.
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
