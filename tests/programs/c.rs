//! C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compilers::{self, Compiler};
use crate::support::{Cluster, ports};
use crate::workshop::Workshop;
use crate::{addresses, library};

const STANDARD: &[&str] = &["c11"];

/// Test programs that need neither servers nor a test that talks with them.
const PLAIN: [&str; 2] = ["header_only.c", "version.c"];

const VALGRIND: [&str; 6] = [
    "--quiet",
    "--vgdb=no",
    "--error-exitcode=99",
    "--leak-check=full",
    "--show-leak-kinds=definite,indirect,possible",
    "--errors-for-leak-kinds=definite,indirect,possible",
];

#[test]
fn the_examples_run() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    for source in examples() {
        for compiler in compilers::c(STANDARD) {
            let program = workshop.build(compiler, &[&source]);
            let run = workshop.succeed(Command::new(&program).args(addresses(&cluster)));
            assert_eq!(run.stderr, "", "{}", source.display());
            assert_ne!(run.stdout, "", "{}", source.display());
        }
    }
}

#[test]
fn the_examples_name_the_error() {
    let workshop = Workshop::new();
    let nobody: Vec<_> = (0..3).map(|_| format!("127.0.0.1:{}", ports::free())).collect();
    for source in examples() {
        let program = workshop.build(gcc(), &[&source]);
        let run = workshop.run(Command::new(&program).args(&nobody));
        assert_eq!(run.status.code(), Some(1), "{}", source.display());
        assert!(run.stderr.contains(&nobody[0]), "{}: {}", source.display(), run.stderr);
    }
}

/// An example that loses its lock, on a busy machine and under valgrind, says so and ends with 1. It leaks nothing either.
#[test]
fn the_examples_leak_nothing() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    for source in examples() {
        let program = workshop.build(gcc(), &[&source]);
        let mut command = Command::new("valgrind");
        command.args(VALGRIND).arg(&program).args(addresses(&cluster));
        let run = workshop.run(&mut command);
        let has_run = matches!(run.status.code(), Some(0 | 1)) && !run.stderr.contains("==");
        assert!(has_run, "{}: {:?} {}", source.display(), run.status, run.stderr);
    }
}

#[test]
fn the_demo_compiles_with_every_compiler() {
    let workshop = Workshop::new();
    let mut sources = c_files("c-examples/demo");
    sources.push(library::root().join("c-examples/demo.c"));
    for compiler in compilers::c(STANDARD) {
        workshop.build(compiler, &sources);
    }
}

#[test]
fn the_fencing_demo_compiles_with_every_compiler() {
    let workshop = Workshop::new();
    let mut sources = c_files("c-examples/fencing");
    sources.extend(demo_parts());
    for compiler in compilers::c(STANDARD) {
        workshop.build_with(compiler, &["-Wl,--no-as-needed", "-lsqlite3"], &sources);
        let preloaded = "c-examples/fencing/preload/set_clock.c";
        assert_eq!(workshop.check(compiler, preloaded, &[]), Ok(()));
    }
}

#[test]
fn the_cluster_demo_compiles_with_every_compiler() {
    let workshop = Workshop::new();
    let mut sources = c_files("c-examples/cluster");
    sources.extend(demo_parts());
    for compiler in compilers::c(STANDARD) {
        workshop.build(compiler, &sources);
    }
}

/// What the other demos share with the first one.
fn demo_parts() -> [PathBuf; 2] {
    ["servers.c", "terminal.c"].map(|it| library::root().join("c-examples/demo").join(it))
}

#[test]
fn the_header_compiles_in_every_standard() {
    let workshop = Workshop::new();
    for source in PLAIN {
        for compiler in compilers::c(&["c99", "c11", "c17"]) {
            let program = workshop.build(compiler, &[Path::new("tests/programs/c").join(source)]);
            workshop.succeed(&mut Command::new(&program));
        }
    }
}

/// The tests of the library as a guest run them, with one compiler.
#[test]
fn the_other_test_programs_compile_with_every_compiler() {
    let (workshop, guests) = (Workshop::new(), guests());
    for source in c_files("tests/programs/c").iter().filter(|source| !is_plain(source)) {
        let name = source.file_stem().expect("a name").to_string_lossy();
        assert!(guests.contains(&format!("\"{name}\"")), "nobody runs {name}");
        for compiler in compilers::c(&["gnu11"]) {
            workshop
                .check(compiler, source, &[])
                .unwrap_or_else(|words| panic!("{compiler:?}: {words}"));
        }
    }
}

fn is_plain(source: &Path) -> bool {
    PLAIN.iter().any(|name| source.ends_with(name))
}

/// The source of the tests that run C programs.
fn guests() -> String {
    let folders = [
        "tests/live/events",
        "tests/live/guest",
        "tests/live/matrix",
        "tests/support",
        "tests/live/tls",
        "tests/tool",
    ];
    let entries = folders.map(|it| fs::read_dir(library::root().join(it)).expect("a directory"));
    let paths = entries.into_iter().flatten().map(|it| it.expect("an entry").path());
    paths.filter(|it| it.is_file()).map(|it| fs::read_to_string(it).expect("a text")).collect()
}

/// Except those that have their own tests: the demo, and the one that needs TLS.
fn examples() -> Vec<PathBuf> {
    let mut sources = c_files("c-examples");
    sources.retain(|source| !source.ends_with("demo.c") && !source.ends_with("secure.c"));
    assert!(sources.len() >= 3, "{sources:?}");
    sources
}

fn c_files(directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(library::root().join(directory)).expect("a directory");
    let mut sources: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|it| it == "c"));
    assert!(!sources.is_empty(), "nothing in {directory}");
    sources.sort();
    sources
}

fn gcc() -> Compiler {
    Compiler { program: "gcc", standard: "c11" }
}
