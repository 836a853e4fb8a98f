//! Node.js.

use std::path::{Path, PathBuf};
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
fn the_example_runs() {
    let workshop = Workshop::new();
    bindings::the_example_runs(&mut example(&workshop));
}

#[test]
fn the_example_runs_on_a_cluster() {
    let workshop = Workshop::new();
    bindings::the_example_runs_on_a_cluster(&mut example(&workshop));
}

#[test]
fn the_example_says_why_it_cannot() {
    let workshop = Workshop::new();
    bindings::the_example_says_why_it_cannot(&mut example(&workshop));
}

#[test]
fn both_compilers_build_the_addon() {
    let workshop = Workshop::new();
    for compiler in ["gcc", "clang"] {
        build(&workshop, compiler);
    }
}

#[test]
fn a_missing_file_is_named() {
    let workshop = Workshop::new();
    for (variable, value) in [
        ("REDLOCK_LIBRARY", "/nowhere/libredlock.so"),
        ("REDLOCK_INCLUDE", "/nowhere/include"),
        ("CC", "no-such-compiler"),
    ] {
        let run = workshop.run(build_command(&workshop.fresh("addon"), "cc").env(variable, value));
        assert_eq!(run.status.code(), Some(1));
        assert!(run.stderr.contains(value), "{}", run.stderr);
    }
}

/// Headers from the package that is made for this purpose come before those of the system.
#[test]
fn headers_of_the_package_come_first() {
    let workshop = Workshop::new();
    let package = "exports.include_dir = require('node:path').join(__dirname, 'include');";
    let package = workshop.write("modules/node-api-headers/index.js", package);
    let package = package.parent().expect("a directory");
    let words = "these are the headers of the package";
    workshop.write("modules/node-api-headers/include/node_api.h", &format!("#error {words}\n"));
    let run = workshop.run(
        build_command(&workshop.fresh("addon"), "cc")
            .env("NODE_PATH", package.parent().expect("a directory")),
    );
    assert_eq!(run.status.code(), Some(1));
    assert!(run.stderr.contains(words), "{}", run.stderr);
}

/// The addon finds a library in a directory of its own without LD_LIBRARY_PATH.
#[test]
fn an_addon_remembers_the_directory_that_pkg_config_names() {
    let workshop = Workshop::new();
    let (include, lib) = (library::root().join("include"), library::directory());
    let text = format!(
        "Name: redlock\nDescription: as installed\nVersion: 0\nCflags: -I{}\nLibs: -L{} -lredlock\n",
        include.display(),
        lib.display()
    );
    let file = workshop.write("pkgconfig/redlock.pc", &text);
    let addon = workshop.fresh("redlock").with_extension("node");
    let mut command = build_command(&addon, "cc");
    command.env_remove("REDLOCK_INCLUDE").env_remove("REDLOCK_LIBRARY");
    workshop.succeed(command.env("PKG_CONFIG_PATH", file.parent().expect("a directory")));
    let mut load = node(Path::new("-p"), &addon);
    let index = library::root().join("bindings/node/index.js");
    load.arg(format!("require('{}').version", index.display())).env_remove("LD_LIBRARY_PATH");
    assert_eq!(workshop.succeed(&mut load).stdout.trim(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_tool_check_can_ask_for_headers() {
    let workshop = Workshop::new();
    let script = library::root().join("bindings/node/build.js");
    let run = workshop.succeed(Command::new("node").arg(script).arg("--headers"));
    assert!(Path::new(run.stdout.trim()).join("node_api.h").exists(), "{}", run.stdout);
}

#[test]
fn moved_servers_are_followed_while_a_lock_is_kept() {
    with_moving_names("main", moving_names::are_followed_while_a_lock_is_kept);
}

#[test]
fn moved_servers_are_followed_while_a_call_waits() {
    with_moving_names("main", moving_names::are_followed_while_a_call_waits);
}

#[test]
fn a_manager_can_be_closed_despite_a_silent_resolver() {
    with_moving_names("main", moving_names::can_be_closed_while_the_resolver_is_silent);
}

#[test]
fn a_worker_can_end_despite_a_silent_resolver() {
    with_moving_names("worker", moving_names::can_be_closed_while_the_resolver_is_silent);
}

#[test]
fn closing_ends_a_call_that_lacks_names() {
    with_moving_names("main", moving_names::closing_ends_a_call_that_lacks_names);
}

fn with_moving_names(place: &str, test: impl Fn(&mut Command)) {
    let workshop = Workshop::new();
    let script = library::root().join("bindings/node/tests/moving_names.js");
    test(node(&script, &build(&workshop, "cc")).arg(place));
}

fn example(workshop: &Workshop) -> Command {
    node(&library::root().join("bindings/node/examples/example.js"), &build(workshop, "cc"))
}

fn run_the_tests(ground: &Ground) {
    let workshop = Workshop::new();
    // It finds the tests in the directory in which it runs.
    let mut command = node(Path::new("--test"), &build(&workshop, "cc"));
    ground.run(command.current_dir(library::root().join("bindings/node/tests")));
}

/// Builds the addon. Any warning is a failure.
pub(crate) fn build(workshop: &Workshop, compiler: &str) -> PathBuf {
    let addon = workshop.fresh("redlock").with_extension("node");
    workshop.succeed(&mut build_command(&addon, compiler));
    addon
}

pub(crate) fn build_command(addon: &Path, compiler: &str) -> Command {
    let mut command = Command::new("node");
    command
        .arg(library::root().join("bindings/node/build.js"))
        .arg(addon)
        .env("CC", compiler)
        .env("CFLAGS", "-Wshadow -Wconversion -Werror")
        .env("REDLOCK_INCLUDE", library::root().join("include"))
        .env("REDLOCK_LIBRARY", library::directory().join("libredlock.so"));
    command
}

/// The node command with a script and the addon.
pub(crate) fn node(script: &Path, addon: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(script).env("REDLOCK_ADDON", addon);
    command
}
