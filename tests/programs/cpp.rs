//! C++.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{fs, iter};

use crate::compilers::{self, Compiler};
use crate::support::tls::Authority;
use crate::support::{Cluster, Server};
use crate::workshop::Workshop;
use crate::{Secure, addresses, library};

/// The standards of redlock.hpp. The drop-in is for older programs too.
const MODERN: &[&str] = &["c++11", "c++14", "c++17", "c++20"];
const ALL: &[&str] = &["c++98", "c++11", "c++14", "c++17", "c++20"];
const WITHOUT: [&str; 2] = ["-fno-exceptions", "-fno-rtti"];
const OLDEST_AND_NEWEST: &[&str] = &["c++11", "c++20"];

#[test]
fn the_examples_run() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let mut examples = sources("c-examples");
    assert!(examples.remove("secure_raii.cpp") && examples.len() >= 2, "{examples:?}");
    for source in examples {
        for compiler in compilers::cxx(&["c++11"]) {
            let program = workshop.build(compiler, &[&format!("c-examples/{source}")]);
            let run = workshop.succeed(Command::new(&program).args(addresses(&cluster)));
            assert_ne!(run.stdout, "", "{source}");
        }
    }
}

#[test]
fn the_example_over_tls_runs() {
    let (authority, workshop) = (Arc::new(Authority::new()), Workshop::new());
    let start = |_| {
        let identity = authority.server();
        Server::start_tls(
            &authority,
            &identity,
            &["--user", "ada", "on", ">s3same", "~*", "&*", "+@all"],
        )
    };
    let servers: Vec<_> = (0..3).map(start).collect();
    for compiler in compilers::cxx(&["c++11"]) {
        let program = workshop.build(compiler, &["c-examples/secure_raii.cpp"]);
        let command = |file: String| {
            let mut command = Command::new(&program);
            command.arg(file).args(servers.iter().map(Server::url));
            command
        };
        let run = workshop.succeed(&mut command(authority.file()));
        assert!(run.stdout.contains("in secret") && run.stderr.is_empty(), "{}", run.stderr);
        let mut as_ada = command(authority.file());
        let run = workshop.succeed(as_ada.env("REDIS_USER", "ada").env("REDIS_PASSWORD", "s3same"));
        assert!(run.stdout.contains("is told the password"), "{}", run.stdout);
        let run = workshop.run(&mut command(Authority::new().file()));
        assert_eq!(run.status.code(), Some(1), "{}", run.stdout);
        assert!(run.stderr.starts_with("REDLOCK_UNREACHABLE: "), "{}", run.stderr);
    }
}

#[test]
fn the_mutex_keeps_its_promises() {
    passes("tests/programs/cpp/mutex.cpp", compilers::cxx_apart());
}

#[test]
fn the_shared_mutex_keeps_its_promises() {
    passes("tests/programs/cpp/shared_mutex.cpp", compilers::cxx_apart());
}

#[test]
fn a_lock_is_kept_and_a_stop_token_ends_a_wait() {
    passes("tests/programs/cpp/keep_alive.cpp", compilers::cxx_apart());
}

#[test]
fn a_mutex_can_be_locked_again_by_its_owner() {
    passes("tests/programs/cpp/recursive.cpp", compilers::cxx_apart());
}

#[test]
fn the_semaphore_keeps_its_promises() {
    passes("tests/programs/cpp/semaphore.cpp", compilers::cxx_apart());
}

#[test]
fn threads_get_the_lock_in_order_of_arrival() {
    passes("tests/programs/cpp/order.cpp", compilers::cxx_apart());
}

#[test]
fn every_argument_reaches_the_library() {
    passes("tests/programs/cpp/asked.cpp", compilers::cxx_apart());
}

#[test]
fn misuse_does_no_harm() {
    passes("tests/programs/cpp/misuse.cpp", compilers::cxx_apart());
}

#[test]
fn an_exception_through_a_guard_releases_the_lock() {
    passes("tests/programs/cpp/exceptions.cpp", compilers::cxx_apart());
}

#[test]
fn users_and_passwords_are_passed_on() {
    passes("tests/programs/cpp/credentials.cpp", compilers::cxx_apart());
}

#[test]
fn tls_settings_are_applied() {
    let (secure, workshop) = (Secure::start(), Workshop::new());
    for compiler in compilers::cxx_apart() {
        let program = workshop.build(compiler, &["tests/programs/cpp/tls.cpp"]);
        workshop.succeed(Command::new(&program).args(secure.list()));
    }
}

#[test]
fn a_program_without_exceptions_can_use_the_c_header() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    for compiler in compilers::cxx_apart() {
        let source = ["tests/programs/cpp/no_exceptions.cpp"];
        let program = workshop.build_with(compiler, &WITHOUT, &source);
        workshop.succeed(Command::new(&program).args(addresses(&cluster)));
    }
}

/// The error says what to do instead. Type information is not needed.
#[test]
fn the_cpp_header_wants_exceptions() {
    let workshop = Workshop::new();
    for compiler in compilers::cxx_apart() {
        let words = workshop.check(compiler, "tests/programs/cpp/mutex.cpp", &WITHOUT[..1]);
        let words = words.expect_err("there are no exceptions");
        assert!(words.contains("redlock.hpp needs exceptions; redlock.h does not"), "{words}");
        assert_eq!(workshop.check(compiler, "tests/programs/cpp/tls.cpp", &WITHOUT[1..]), Ok(()));
    }
}

#[test]
fn the_drop_in_needs_no_exceptions() {
    let workshop = Workshop::new();
    for compiler in compilers::cxx(OLDEST_AND_NEWEST) {
        let checked =
            workshop.check(compiler, "tests/programs/cpp/dropin_old_program.cpp", &WITHOUT);
        assert_eq!(checked, Ok(()), "{compiler:?}");
    }
}

#[test]
fn the_drop_in_keeps_its_promises() {
    let oldest = iter::once(Compiler { program: "g++", standard: "c++98" });
    passes("tests/programs/cpp/dropin.cpp", oldest.chain(compilers::cxx_apart()));
}

#[test]
fn the_drop_in_survives_a_lack_of_memory() {
    passes("tests/programs/cpp/dropin_no_memory.cpp", compilers::cxx_apart());
}

/// With hiredis's own header, and with one like that of before 2015.
#[test]
fn the_drop_in_uses_the_strings_of_sds() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let oldest = iter::once(Compiler { program: "g++", standard: "c++98" });
    for compiler in oldest.chain(compilers::cxx_apart()) {
        for (sds, later, library) in [
            ("NONE", "", ""),
            ("HIREDIS", "", "-lhiredis"),
            ("HIREDIS", "-DLATER", "-lhiredis"),
            ("OLD", "", ""),
            ("OLD", "-DLATER", ""),
        ] {
            let sds = format!("-DSDS={sds}");
            let options = [&sds, later, "-Wl,--no-as-needed", library];
            let options: Vec<_> = options.into_iter().filter(|it| !it.is_empty()).collect();
            let program =
                workshop.build_with(compiler, &options, &["tests/programs/cpp/dropin_sds.cpp"]);
            workshop.succeed(Command::new(&program).args(addresses(&cluster)));
        }
    }
}

/// An old program in a tree that still has the old header beside it. The old header here has the same
/// declarations. The test uses the ways that the head of the drop-in describes.
#[test]
fn an_old_header_in_the_tree_does_not_interfere() {
    const OLD: &str = "#ifndef __redlock__\n#define __redlock__\n#include <vector>\n#include <iostream>\n\
        using namespace std;\ntypedef char *sds;\n\
        class CLock { public: CLock(); ~CLock(); int m_validityTime; sds m_resource; sds m_val; };\n\
        class CRedLock {\npublic:\n    CRedLock(); virtual ~CRedLock(); bool Initialize();\n\
        bool AddServerUrl(const char *ip, const int port); void SetRetry(const int, const int);\n\
        bool Lock(const char *, const int, CLock &); bool ContinueLock(const char *, const int, CLock &);\n\
        bool Unlock(const CLock &);\n};\n#endif\n";
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let program = library::root().join("tests/programs/cpp/dropin_old_program.cpp");
    let program = fs::read_to_string(program).expect("it can be read");
    let quoted = workshop.write("tree/main.cpp", &program);
    let angled = program.replace("\"redlock-cpp/redlock.h\"", "<redlock-cpp/redlock.h>");
    let angled = workshop.write("tree/angled.cpp", &angled);
    let twice = format!("#include \"redlock-cpp/redlock.h\"\n#include \"{}\"\n", ours().display());
    let twice = workshop.write("tree/twice.cpp", &twice);
    let old = workshop.write("tree/redlock-cpp/redlock.h", OLD);
    let tree = format!("-I{}", quoted.parent().expect("a directory").display());
    let ours = ours();
    let include = ["-include", ours.to_str().expect("UTF-8")];
    let addresses = addresses(&cluster);
    let runs = |program: &Path| {
        let hosts_and_ports = addresses.iter().flat_map(|it| it.split(':'));
        let run = workshop.succeed(Command::new(program).args(hosts_and_ports));
        assert_eq!(run.stdout.lines().last(), Some("done"), "{}", run.stdout);
    };
    for compiler in compilers::cxx(&["c++11"]) {
        let link = workshop.fails_to_build(compiler, &[], &quoted);
        assert!(link.contains("undefined"), "{compiler:?}: {link}");
        runs(&workshop.build_with(compiler, &include, &[&quoted]));
        // Our directory comes after it on the compiler's command line, and so is put in front.
        let first = format!("-I{}", library::root().join("include").display());
        runs(&workshop.build_with(compiler, &[&first, &tree], &[&angled]));
        let words = workshop.check(compiler, &twice, &[]).expect_err("both are there");
        assert!(words.contains("the old redlock-cpp/redlock.h was included before"), "{words}");
    }
    fs::rename(&old, old.with_file_name("old.h")).expect("it is ours");
    for compiler in compilers::cxx(&["c++11"]) {
        runs(&workshop.build_with(compiler, &[&tree], &[&quoted]));
    }
}

fn ours() -> PathBuf {
    library::root().join("include/redlock-cpp/redlock.h")
}

#[test]
fn the_mutex_survives_a_lack_of_memory() {
    passes("tests/programs/cpp/no_memory.cpp", compilers::cxx_apart());
}

#[test]
fn the_drop_in_is_also_found_by_its_directory() {
    let workshop = Workshop::new();
    let directory = format!("-I{}", library::root().join("include/redlock-cpp").display());
    let source = "tests/programs/cpp/dropin_by_directory.cpp";
    for compiler in compilers::cxx(ALL) {
        assert_eq!(workshop.check(compiler, source, &[&directory]), Ok(()), "{compiler:?}");
    }
    for compiler in compilers::cxx_apart() {
        let program = workshop.build_with(compiler, &[&directory], &[source]);
        workshop.succeed(&mut Command::new(&program));
    }
}

#[test]
fn a_program_for_credlock_builds_and_runs_unchanged() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let addresses = addresses(&cluster);
    let hosts_and_ports = addresses.iter().flat_map(|it| it.split(':'));
    for compiler in compilers::cxx(ALL) {
        let program = workshop.build(compiler, &["tests/programs/cpp/dropin_old_program.cpp"]);
        let run = workshop.succeed(Command::new(&program).args(hosts_and_ports.clone()));
        assert_eq!(run.stdout.lines().last(), Some("done"), "{compiler:?}: {}", run.stdout);
    }
}

#[test]
fn both_headers_work_in_several_units() {
    let workshop = Workshop::new();
    let units = ["tests/programs/cpp/two_units_a.cpp", "tests/programs/cpp/two_units_b.cpp"];
    // They differ in the order of the headers, and that does not depend on the standard.
    for compiler in compilers::cxx(ALL) {
        assert_eq!(workshop.check(compiler, units[0], &[]), Ok(()), "{compiler:?}");
    }
    for compiler in compilers::cxx_apart() {
        let run = workshop.succeed(&mut Command::new(workshop.build(compiler, &units)));
        assert_eq!(run.stdout + &run.stderr, "", "{compiler:?}");
    }
}

#[test]
fn the_c_header_compiles_as_cpp() {
    let workshop = Workshop::new();
    for compiler in compilers::cxx(MODERN) {
        workshop
            .check(compiler, "tests/programs/c/header_only.c", &["-xc++", "-Wno-deprecated"])
            .unwrap_or_else(|words| panic!("{compiler:?}: {words}"));
    }
}

#[test]
fn move_only_types_cannot_be_copied() {
    const SOURCE: &str = "tests/programs/cpp/no_copy.cpp";
    /// This many of them are of the drop-in, which is for C++98 too.
    const OLD: usize = 5;
    let workshop = Workshop::new();
    let source = fs::read_to_string(library::root().join(SOURCE)).expect("it can be read");
    let lines = source.lines().enumerate().filter(|(_, line)| line.ends_with("// cannot be"));
    let lines: Vec<usize> = lines.map(|(before, _)| before + 1).collect();
    assert!(lines.len() > OLD, "{lines:?}");
    let oldest = iter::once(Compiler { program: "g++", standard: "c++98" });
    for compiler in oldest.chain(compilers::cxx_apart()) {
        assert_eq!(workshop.check(compiler, SOURCE, &[]), Ok(()), "{compiler:?}");
        let no_limit = if compiler.program == "g++" { "-fmax-errors=0" } else { "-ferror-limit=0" };
        let options = ["-DCOPIES", no_limit];
        let words = workshop.check(compiler, SOURCE, &options).expect_err("copies are made");
        let wanted = if compiler.standard == "c++98" { &lines[..OLD] } else { &lines };
        for line in wanted {
            let place = format!("no_copy.cpp:{line}:");
            let is_why = |it: &str| it.contains("deleted") || it.contains("private");
            let is_refused = words.lines().any(|it| it.contains(&place) && is_why(it));
            assert!(is_refused, "line {line}, {compiler:?}: {words}");
        }
    }
}

#[test]
fn no_test_program_is_forgotten() {
    let known = [
        "asked.cpp",
        "credentials.cpp",
        "dropin.cpp",
        "dropin_by_directory.cpp",
        "dropin_no_memory.cpp",
        "dropin_old_program.cpp",
        "dropin_sds.cpp",
        "exceptions.cpp",
        "keep_alive.cpp",
        "misuse.cpp",
        "mutex.cpp",
        "no_copy.cpp",
        "no_exceptions.cpp",
        "no_memory.cpp",
        "order.cpp",
        "recursive.cpp",
        "semaphore.cpp",
        "shared_mutex.cpp",
        "tls.cpp",
        "two_units_a.cpp",
        "two_units_b.cpp",
    ];
    assert_eq!(sources("tests/programs/cpp"), known.map(str::to_owned).into());
}

/// A test program that is given servers and succeeds if all is well.
fn passes(source: &str, compilers: impl Iterator<Item = Compiler>) {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    for compiler in compilers {
        let program = workshop.build(compiler, &[source]);
        workshop.succeed(Command::new(&program).args(addresses(&cluster)));
    }
}

fn sources(directory: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(library::root().join(directory)).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".cpp"))
        .collect()
}
