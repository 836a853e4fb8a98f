//! The rules of this project that a program can check: which module may know what, and how long files and
//! functions may be.

mod circles;

use std::fs;
use std::path::{Path, PathBuf};

/// The only files that contain `unsafe`. ARCHITECTURE.md names them, too.
const UNSAFE: [&str; 28] = [
    "ffi/access.rs",
    "ffi/acquire.rs",
    "ffi/arguments.rs",
    "ffi/callback.rs",
    "ffi/event.rs",
    "ffi/servers.rs",
    "ffi/stats.rs",
    "ffi/handle.rs",
    "ffi/handover.rs",
    "ffi/shared_lock.rs",
    "ffi/fencing.rs",
    "ffi/inspect.rs",
    "ffi/kept_log.rs",
    "ffi/lease.rs",
    "ffi/locking.rs",
    "ffi/redlock.rs",
    "ffi/reentrant.rs",
    "ffi/resources.rs",
    "ffi/submit.rs",
    "ffi/waking.rs",
    "ffi/language.rs",
    "system/cancellation.rs",
    "system/clock.rs",
    "system/environment.rs",
    "system/process.rs",
    "system/readiness.rs",
    "system/socket.rs",
    "system/thread.rs",
];

const FUNCTION_LINES_MAX: usize = 70;

#[test]
fn unsafe_code_is_only_in_the_named_files() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for (name, code) in sources() {
        let code = code.replace("#[unsafe(no_mangle)]", "");
        let has = code.lines().any(|it| has_word(it, "unsafe"));
        assert_eq!(has, UNSAFE.contains(&name.as_str()), "{name}: unsafe code, or none any more");
        if has {
            let is_named = page.contains(&format!("`src/{name}`"));
            assert!(is_named, "ARCHITECTURE.md does not name {name}");
        }
    }
}

#[test]
fn clock_and_randomness_have_one_file_each() {
    forbid("Instant::now", &[]);
    forbid("SystemTime", &[]);
    forbid("clock_gettime", &["system/clock.rs"]);
    forbid("rand::rng", &["system/entropy.rs"]);
    forbid("thread_rng", &[]);
}

#[test]
fn one_folder_calls_the_system() {
    for (name, code) in sources().into_iter().filter(|it| !it.0.starts_with("system/")) {
        for word in ["libc::", "socket2::Socket", "UnixStream", "process::id", "Condvar::new"] {
            let is_named = code_of(without_tests(&code)).contains(word);
            let may_be = word == "Condvar::new" && name == "driver/parker.rs";
            assert!(!is_named || may_be, "{name} says {word}");
        }
    }
}

#[test]
fn the_library_never_prints_or_exits() {
    for word in ["println!", "eprintln!", "print!", "eprint!", "dbg!", "process::exit", "abort()"] {
        forbid(word, &[]);
    }
    forbid("thread::spawn", &[]);
    forbid("thread::sleep", &[]);
}

/// What code would use to learn the time, draw a number, or reach anything outside the process.
const OUTSIDE: [&str; 15] = [
    "Instant",
    "SystemTime",
    "thread",
    "process",
    "env",
    "fs",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "UnixStream",
    "libc",
    "socket2",
    "rand",
    "SysRng",
];

/// Time, randomness, and what the servers have said are passed in.
#[test]
fn the_protocol_knows_nothing_outside_itself() {
    for (name, code) in sources().into_iter().filter(|it| it.0.starts_with("protocol/")) {
        let code = code_of(without_tests(&code));
        let mut imports = code.split("crate::").skip(1);
        assert!(imports.all(|it| it.starts_with("protocol::")), "{name} imports what is outside");
        for line in code.lines().filter(|it| it.contains("::")) {
            let names = |word: &&&str| line.split("::").any(|part| first_or_last(part, word));
            assert_eq!(OUTSIDE.iter().find(names), None, "{name}: {line}");
        }
        // Also a group such as `use std::{mem, thread}`, on any number of lines.
        for import in code.split("use std::").skip(1).filter_map(|it| it.split(';').next()) {
            let mut words = import.split(|it: char| !it.is_alphanumeric() && it != '_');
            assert_eq!(words.find(|it| OUTSIDE.contains(it)), None, "{name}: use std::{import}");
        }
    }
}

/// Whether this part of a path begins or ends with the word.
fn first_or_last(part: &str, word: &str) -> bool {
    let mut words = part.split(|it: char| !it.is_alphanumeric() && it != '_');
    words.next() == Some(word) || words.next_back() == Some(word)
}

#[test]
fn the_quorum_rules_import_nothing() {
    for (name, code) in sources().into_iter().filter(|it| it.0.starts_with("protocol/quorum/")) {
        for line in code.lines().filter(|it| it.contains("crate::")) {
            assert!(line.contains("crate::protocol::moment::Moment"), "{name}: {line}");
        }
        for word in ["std::net", "std::io", "redis"] {
            assert!(!code_of(&code).contains(word), "{name} knows {word}");
        }
    }
}

/// The modules from top to bottom. No module knows one that is above it.
const LAYERS: [&str; 10] = [
    "face",
    "ffi",
    "manager",
    "engine",
    "transport",
    "protocol::operation",
    "protocol::wait_queue",
    "protocol::lock",
    "protocol::conn",
    "protocol::command",
];

/// Further modules that a module must not know. Its behaviour must depend only on its arguments.
const APART: [(&str, &[&str]); 4] = [
    // Two interfaces of the same manager: neither knows the other.
    ("face", &["ffi", "protocol::operation", "engine", "driver"]),
    (
        "transport",
        &[
            "protocol::quorum::ballot",
            "protocol::quorum::tally",
            "protocol::quorum::soundness",
            "protocol::operation",
            "protocol::wait_queue",
            "protocol::lock",
            "driver",
        ],
    ),
    (
        "protocol::conn",
        &["protocol::quorum::ballot", "protocol::quorum::tally", "protocol::quorum::soundness"],
    ),
    ("protocol::command", &["protocol::quorum", "protocol::lock"]),
];

#[test]
fn no_layer_imports_a_higher_one() {
    for (name, code) in sources() {
        let module = module_of(&name);
        let Some(layer) = LAYERS.iter().position(|it| *it == module) else { continue };
        let apart = APART.iter().filter(|it| it.0 == module).flat_map(|it| it.1);
        for other in LAYERS[..layer].iter().chain(apart) {
            let knows = without_tests(&code).contains(&format!("crate::{other}::"));
            assert!(!knows, "{name} knows {other}");
        }
    }
}

/// The first name in a file's module path; below `protocol`, the first two.
fn module_of(name: &str) -> String {
    let mut parts = name.split(['/', '.']);
    match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
        ("protocol", part) => format!("protocol::{part}"),
        (part, _) => part.to_owned(),
    }
}

#[test]
fn only_bytes_and_urls_use_the_redis_crate() {
    const USERS: [&str; 3] = ["protocol/command/", "protocol/conn/", "protocol/servers/"];
    for (name, code) in sources() {
        let may_use_redis = USERS.iter().any(|it| name.starts_with(it));
        let uses_redis = code_of(&code).lines().any(|it| it.contains("redis::"));
        assert!(may_use_redis || !uses_redis, "{name} uses the redis crate");
    }
}

/// A connection delivers a request by its general properties, and does not know what the request does.
#[test]
fn connections_do_not_know_the_verbs() {
    let tested_with = "protocol/conn/queue/samples.rs";
    let is_of_connection =
        |name: &str| name.starts_with("transport/") || name.starts_with("protocol/conn/");
    let files = sources().into_iter().filter(|it| is_of_connection(&it.0));
    for (name, code) in files.filter(|it| !it.0.contains("/tests")) {
        for word in ["Verb", "ServerError", "verb()"] {
            let is_named = code_of(without_tests(&code)).contains(word);
            assert!(!is_named || name == tested_with, "{name} says {word}");
        }
    }
}

#[test]
fn functions_stay_short() {
    for (name, code) in sources() {
        let code = without_tests(&code);
        for (function, length) in functions(code) {
            assert!(length <= FUNCTION_LINES_MAX, "{name}: {function} has {length} lines");
        }
    }
}

fn forbid(word: &str, except: &[&str]) {
    for (name, code) in sources() {
        let found = code_of(without_tests(&code)).contains(word);
        assert!(!found || except.contains(&name.as_str()), "{name} says {word}");
    }
}

/// Every source file, with its name relative to `src`.
fn sources() -> Vec<(String, String)> {
    let top = root().join("src");
    let mut found = Vec::new();
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path())
        {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|it| it == "rs") {
                let name = entry.strip_prefix(&top).expect("below src").to_string_lossy().into();
                found.push((name, fs::read_to_string(&entry).expect("a source file")));
            }
        }
    }
    assert!(found.len() > 20, "the sources were not found");
    found
}

/// The code without comments.
fn code_of(code: &str) -> String {
    let lines = code.lines().filter(|it| !it.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn without_tests(code: &str) -> &str {
    code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

/// The functions and their lengths, as far as the layout of rustfmt shows them.
fn functions(code: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut open: Option<(&str, usize, usize)> = None;
    for (number, line) in code.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        match open {
            Some((name, start, depth)) if line.trim_end() == format!("{}}}", " ".repeat(depth)) => {
                found.push((name, number - start + 1));
                open = None;
            }
            None if line.contains("fn ") && !line.trim_start().starts_with("//") => {
                let one_line = line.trim_end().ends_with('}') || line.trim_end().ends_with(';');
                open = (!one_line).then_some((line.trim(), number, indent));
            }
            _ => {}
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    let line = line.trim_start();
    !line.starts_with("//")
        && line.split(|it: char| !it.is_alphanumeric() && it != '_').any(|it| it == word)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
