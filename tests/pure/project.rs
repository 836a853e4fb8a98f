//! Checks that what the Makefile, the scripts and the workflows say about each other and about the tests is true.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How a test starts a server that may be of any kind.
const STARTS: [&str; 5] = [
    "Server::start(",
    "Server::start_with(",
    "Server::start_in(",
    "Cluster::start(",
    "Cluster::start_each(",
];

#[test]
fn every_network_test_runs_with_every_server() {
    let script = read("packaging/test-servers.sh");
    let list = script.lines().find_map(|it| it.strip_prefix("TESTS='")?.strip_suffix('\''));
    let tested: BTreeSet<_> = list.expect("the script has a list").split(' ').collect();
    let programs = test_programs();
    let talking = programs.iter().filter(|it| it.1.ends_with("main.rs") && starts_servers(&it.1));
    let talking: BTreeSet<_> = talking.map(|it| it.0.as_str()).collect();
    assert_eq!(tested, talking);
}

/// Cargo builds only the test programs that Cargo.toml names.
#[test]
fn every_test_program_is_built() {
    let named: BTreeSet<_> = test_programs().into_iter().map(|it| it.1).collect();
    let mut there: BTreeSet<_> = entries("tests/pure").filter(|it| it.is_file()).collect();
    let folders = ["tests", "tests/pure", "tests/played", "tests/live"];
    let folders = folders.iter().flat_map(|it| entries(it));
    there.extend(folders.map(|it| it.join("main.rs")).filter(|it| it.exists()));
    assert_eq!(named, there);
}

/// `make test` leaves out tests by these names, and `make test-all` runs them. Without a test of such a name,
/// the second would run nothing.
#[test]
fn each_test_that_waits_for_test_all_exists() {
    let parts = read("packaging/test-parts.mk").replace("\\\n", " ");
    let lists = parts.lines().filter_map(|it| it.strip_prefix("LATER_")?.split_once(" = "));
    let programs = test_programs();
    let mut lists_read = 0;
    for (program, names) in lists {
        let (_, main) = programs.iter().find(|it| it.0 == program).expect("a test program");
        let sources = sources_in(main.parent().expect("it is in a folder")).concat();
        for name in names.split_whitespace() {
            let is_there = match name.strip_suffix("::") {
                Some(module) => sources.contains(&format!("mod {module};")),
                None => sources.lines().any(|it| it.starts_with("fn ") && it.contains(name)),
            };
            assert!(is_there, "no test of {program} is called {name}");
        }
        lists_read += 1;
    }
    assert!(lists_read >= 3, "test-parts.mk is not what this reads");
}

/// The fuzz targets compile the library's files in a workspace of their own, which no other test builds. They
/// need neither TLS nor the system's randomness.
#[test]
fn the_fuzzer_has_the_crates_of_the_library() {
    let of_library = dependencies("Cargo.toml");
    let of_fuzzer = dependencies("fuzz/Cargo.toml");
    let is_needed = |it: &&String| !it.contains("optional = true") && !it.starts_with("rand = ");
    let needed: BTreeSet<_> = of_library.iter().filter(is_needed).collect();
    let beside: BTreeSet<_> =
        of_fuzzer.iter().filter(|it| !it.starts_with("libfuzzer-sys = ")).collect();
    assert!(needed.len() > 3, "{needed:?}");
    assert_eq!(needed, beside);
}

/// The dependency lines of a package's manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let text = read(manifest);
    let (_, behind) = text.split_once("\n[dependencies]\n").expect("dependencies");
    let lines = behind.lines().take_while(|it| !it.starts_with('['));
    lines.filter(|it| !it.is_empty() && !it.starts_with('#')).map(str::to_owned).collect()
}

/// The name and the main file of each test program.
fn test_programs() -> Vec<(String, PathBuf)> {
    ["Cargo.toml", "tool/Cargo.toml"].into_iter().flat_map(test_programs_of).collect()
}

fn test_programs_of(name: &str) -> Vec<(String, PathBuf)> {
    let manifest = read(name);
    let parts = manifest.split("[[test]]\n").skip(1);
    let value = |part: &str, key: &str| {
        let line = part.lines().find_map(|it| it.strip_prefix(key)?.strip_prefix(" = "));
        line.expect("a name and a path").trim_matches('"').to_owned()
    };
    // In the command's manifest, the path is relative to a folder one level down.
    let path = |it: &str| root().join(value(it, "path").trim_start_matches("../"));
    parts.map(|it| (value(it, "name"), path(it))).collect()
}

#[test]
fn every_mentioned_make_target_exists() {
    let makefile = read("Makefile");
    let rules = makefile.lines().filter(|it| !it.starts_with(['\t', '#', ' ']) && it.contains(':'));
    let rules = rules.filter_map(|it| it.split(':').next());
    let targets: BTreeSet<_> = rules.flat_map(str::split_whitespace).collect();
    let help = makefile.lines().filter_map(|it| it.trim().strip_prefix("@echo '"));
    let help: Vec<_> = help.filter_map(|it| it.strip_prefix("make ")?.split(' ').next()).collect();
    assert!(help.len() > 10, "make help is not what this reads");
    for target in help.into_iter().filter(|it| !it.is_empty()) {
        assert!(targets.contains(target), "make help tells of {target}");
    }
    let mut made = 0;
    for (name, text) in workflows() {
        for command in text.lines().filter_map(made_in) {
            let words = command.split(' ').filter(|it| !it.contains('=') && !it.starts_with('-'));
            for target in words {
                assert!(targets.contains(target), "{name}: make {target}");
                made += 1;
            }
        }
    }
    assert!(made >= 10, "the workflows make only {made} things");
}

/// The words after `make` in a line of a workflow.
fn made_in(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches("- ");
    let line = ["run: ", "command: "].iter().find_map(|it| line.strip_prefix(it)).unwrap_or(line);
    line.strip_prefix("make ")
}

/// Busy loops that outlive the command would disturb everything that runs after it.
#[test]
fn tests_under_load_leave_no_busy_loop() {
    const TELL: &str = "echo I am $$; exec sleep 1000";
    for (how, command) in [
        ("passes", "echo I am $$"),
        ("fails", "echo I am $$; exit 7"),
        ("is interrupted", TELL),
        ("is killed", TELL),
    ] {
        let mut process = Command::new("sh");
        process.arg(root().join("packaging/test-under-load.sh")).args(["2", "3"]);
        process.args(["sh", "-c", command]).stdout(Stdio::piped()).stderr(Stdio::null());
        let heed_interrupts = || {
            // SAFETY: no handler is set.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
            Ok(())
        };
        // Tests that run in the background ignore the signal, and so would the script.
        // SAFETY: the closure makes a system call and allocates nothing.
        unsafe { process.pre_exec(heed_interrupts) };
        let mut script = process.process_group(0).spawn().expect("there is a shell");
        let (id, group) = (script.id().to_string(), format!("-{}", script.id()));
        let lines = BufReader::new(script.stdout.take().expect("a pipe")).lines();
        let mut lines = lines.map(|it| it.expect("a line"));
        let first = lines.next().expect("a line");
        assert!(first.contains("run 1 of 2, beside 3 busy loops"), "{first}");
        let command = lines.find_map(|it| Some(it.strip_prefix("I am ")?.to_owned()));
        match how {
            // A terminal signals the whole group, too.
            "is interrupted" => assert!(kill("INT", &group)),
            "is killed" => {
                assert!(kill("KILL", &id));
                assert!(kill("KILL", &command.expect("it has told its number")));
            }
            _ => {}
        }
        assert_eq!(script.wait().expect("it ends").success(), how == "passes", "it {how}");
        let start = Instant::now();
        while kill("0", &group) {
            assert!(start.elapsed() < Duration::from_secs(60), "it {how}, and something is left");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns whether there was a process to send the signal to.
fn kill(signal: &str, to: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{signal}"), "--", to]).stderr(Stdio::null());
    kill.status().expect("there is a kill").success()
}

#[test]
fn workflows_are_pinned_bounded_and_low_privileged() {
    let is_pinned = |it: &str| {
        let version = it.rsplit_once("@v").map(|it| it.1);
        it.starts_with("./") || version.is_some_and(|it| it.parse::<u32>().is_ok())
    };
    for (name, text) in workflows() {
        let lines = || text.lines().map(|it| it.trim().trim_start_matches("- "));
        for used in lines().filter_map(|it| it.strip_prefix("uses: ")) {
            assert!(is_pinned(used), "{name} uses {used}");
        }
        let count = |word: &str| lines().filter(|it| it.starts_with(word)).count();
        assert_eq!(count("runs-on: "), count("timeout-minutes: "), "{name}: a job without an end");
        if count("jobs:") > 0 {
            assert!(text.contains("\npermissions:\n  contents: read\n"), "{name} has more rights");
            assert!(!text.contains("secrets."), "{name} wants a secret");
        }
    }
}

/// A workflow tries the oldest Rust, which is the version that Cargo.toml promises.
#[test]
fn the_oldest_rust_is_the_same_everywhere() {
    let manifest = read("Cargo.toml");
    let oldest = manifest.lines().find_map(|it| it.strip_prefix("rust-version = "));
    let oldest = oldest.expect("Cargo.toml names it").trim_matches('"');
    assert!(
        read("README.md").contains(&format!("Rust toolchain ({oldest} or later)")),
        "README.md"
    );
    let tried = format!("toolchain: '{oldest}'");
    assert!(workflows().iter().any(|it| it.1.contains(&tried)), "no workflow tries {oldest}");
}

/// The name and the text of each workflow, and of each action that the workflows share.
fn workflows() -> Vec<(String, String)> {
    let actions = entries(".github/actions").map(|it| it.join("action.yml"));
    let files: Vec<_> = entries(".github/workflows").chain(actions).collect();
    assert!(files.len() >= 3, "the workflows are not there");
    let text = |it: &PathBuf| fs::read_to_string(it).expect("a workflow");
    files.iter().map(|it| (it.display().to_string(), text(it))).collect()
}

/// Simulated servers have the same function names. But a test that uses simulated servers does not include the
/// module for real ones.
fn starts_servers(main: &Path) -> bool {
    let text = fs::read_to_string(main).expect("a source file");
    let folder = main.parent().expect("it is in a folder");
    text.contains("support/mod.rs\"]")
        && sources_in(folder).iter().any(|it| STARTS.iter().any(|start| it.contains(start)))
}

fn sources_in(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|it| it.is_dir());
    let is_rust = |it: &&PathBuf| it.extension().is_some_and(|it| it == "rs");
    let read = |it: &PathBuf| fs::read_to_string(it).expect("a source file");
    let mut sources: Vec<_> = files.iter().filter(is_rust).map(read).collect();
    sources.extend(folders.iter().flat_map(|it| sources_in(it)));
    sources
}

fn entries(folder: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(root().join(folder)).expect("a folder").map(|it| it.expect("an entry").path())
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
