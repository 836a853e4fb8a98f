//! What is made for one version of the interface refuses another one, in words. Python and Ruby are in
//! `bindings.rs`: they have no header.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::compilers;
use crate::library;
use crate::workshop::Workshop;
use crate::{go, node};

/// The interface that everything here is made for.
const OURS: &str = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

/// A program that says why there is no manager.
const PROGRAM: &str = "#include <cstdio>\n#include \"redlock.hpp\"\n\
    int main() {\n    try {\n        const redlock::Manager manager;\n    } catch (const redlock::Error &error) {\n        \
    std::puts(error.what());\n        return error.status() == redlock::Status::Internal ? 0 : 1;\n    }\n    \
    return 2;\n}\n";

#[test]
fn cpp_refuses_a_library_of_another_version() {
    let workshop = Workshop::new();
    let (version, preloaded) = another_library(&workshop);
    let source = workshop.write("program.cpp", PROGRAM);
    for compiler in compilers::cxx(&["c++11"]) {
        let program = workshop.build(compiler, &[&source]);
        assert_eq!(workshop.run(&mut Command::new(&program)).status.code(), Some(2));
        let run = workshop.succeed(Command::new(&program).env("LD_PRELOAD", &preloaded));
        let words = format!("the library is redlock {version}, and this redlock.hpp is for {OURS}");
        assert_eq!(run.stdout.trim(), format!("REDLOCK_INTERNAL: {words}"));
    }
}

#[test]
fn cpp_refuses_a_header_of_another_version() {
    let workshop = Workshop::new();
    let source = workshop.write("program.cpp", PROGRAM);
    let include = format!("-I{}", another_header(&workshop).display());
    for compiler in compilers::cxx(&["c++11"]) {
        let words = workshop.check(compiler, &source, &[&include]).expect_err("it does not fit");
        let says = format!("this redlock.hpp is for redlock {OURS}, and the redlock.h");
        assert!(words.contains(&says), "{words}");
    }
}

#[test]
fn go_refuses_a_library_of_another_version() {
    let workshop = Workshop::new();
    let (version, preloaded) = another_library(&workshop);
    let program = workshop.fresh("demo");
    let mut build = go::go(&library::root().join("bindings/go"));
    workshop.succeed(build.arg("build").arg("-o").arg(&program).arg("./cmd/demo"));
    let mut command = Command::new(&program);
    let run = workshop.run(command.arg("127.0.0.1:1").env("LD_PRELOAD", &preloaded));
    assert!(!run.status.success());
    let words = format!("the library is redlock {version}, and this package is for {OURS}");
    assert!(run.stderr.contains(&words), "{}", run.stderr);
}

#[test]
fn go_refuses_a_header_of_another_version() {
    let workshop = Workshop::new();
    let include = format!("-I{}", another_header(&workshop).display());
    let mut build = go::go(&library::root().join("bindings/go"));
    let run = workshop.run(build.args(["build", "."]).env("CGO_CFLAGS", include));
    assert!(!run.status.success());
    let says = format!("this package is for redlock {OURS}, and the redlock.h");
    assert!(run.stderr.contains(&says), "{}", run.stderr);
}

#[test]
fn node_refuses_a_library_of_another_version() {
    let workshop = Workshop::new();
    let (version, preloaded) = another_library(&workshop);
    let addon = node::build(&workshop, "cc");
    let mut load = node::node(Path::new("-e"), &addon);
    let index = library::root().join("bindings/node/index.js");
    load.arg(format!("require('{}')", index.display())).env("LD_PRELOAD", &preloaded);
    let run = workshop.run(&mut load);
    assert!(!run.status.success());
    let words = format!("the library is redlock {version}, and this module is for {OURS}");
    assert!(run.stderr.contains(&words), "{}", run.stderr);
}

#[test]
fn node_refuses_a_header_of_another_version() {
    let workshop = Workshop::new();
    let include = another_header(&workshop);
    let mut build = node::build_command(&workshop.fresh("addon"), "cc");
    let run = workshop.run(build.env("REDLOCK_INCLUDE", include));
    assert!(!run.status.success());
    let says = format!("this file is for redlock {OURS}, and the redlock.h");
    assert!(run.stderr.contains(&says), "{}", run.stderr);
}

/// The next version of the interface, and a library that says that it is this one. It is loaded before the real
/// library, whose other functions a program then calls.
fn another_library(workshop: &Workshop) -> (String, PathBuf) {
    let version = format!("{}.0", next());
    let text = format!("const char *RedLock_Version(void) {{ return \"{version}\"; }}\n");
    let source = workshop.write("another.c", &text);
    let library = workshop.fresh("another").with_extension("so");
    let mut command = Command::new("cc");
    workshop.succeed(command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source));
    (version, library)
}

/// A directory with our headers, except that redlock.h is of the next version.
fn another_header(workshop: &Workshop) -> PathBuf {
    let ours = library::root().join("include");
    let read = |name| fs::read_to_string(ours.join(name)).expect("it can be read");
    workshop.write("include/redlock.hpp", &read("redlock.hpp"));
    let (header, next) = (read("redlock.h"), next());
    let minor =
        |of: &str| format!("REDLOCK_VERSION_MINOR {}\n", of.rsplit('.').next().expect("it"));
    assert!(header.contains(&minor(OURS)), "redlock.h tells no version");
    let path = workshop.write("include/redlock.h", &header.replace(&minor(OURS), &minor(&next)));
    path.parent().expect("a directory").to_owned()
}

fn next() -> String {
    let (major, minor) = OURS.split_once('.').expect("two numbers");
    format!("{major}.{}", minor.parse::<u32>().expect("a number") + 1)
}
