//! The header is what cbindgen generates from the source, and its table of contents is complete.

#[allow(dead_code)]
#[path = "../live/ffi/declarations.rs"]
mod declarations;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The files, in the order of the sections of the table of contents, as far as a file is about one of them.
const PARTS: [&str; 22] = [
    "version.rs",
    "status.rs",
    "callback.rs",
    "handle.rs",
    "redlock.rs",
    "locking.rs",
    "lease.rs",
    "submit.rs",
    "event.rs",
    "acquire.rs",
    "shared_lock.rs",
    "resources.rs",
    "reentrant.rs",
    "fencing.rs",
    "servers.rs",
    "waking.rs",
    "access.rs",
    "stats.rs",
    "inspect.rs",
    "handover.rs",
    "language.rs",
    "kept_log.rs",
];

#[test]
fn the_header_is_up_to_date() {
    let made = generated();
    let path = root().join("include/redlock.h");
    if env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, &made).expect("the header can be written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == made, "include/redlock.h is stale: run `make header`");
}

/// The table is written by hand in cbindgen.toml. It names no function twice: a reader looks in one section only.
#[test]
fn the_table_of_contents_names_each_function_once() {
    let header = declarations::header();
    let table = header.split_once("/*\n * Contents.").and_then(|it| it.1.split_once("*/"));
    let (table, _) = table.expect("there is a table of contents");
    let mut named = BTreeMap::new();
    let words = table.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    for name in words.filter(|it| it.starts_with("RedLock")) {
        *named.entry(name.to_owned()).or_insert(0) += 1;
    }
    let mut faults = Vec::new();
    for function in declarations::functions() {
        match named.remove(&function.name) {
            None => faults.push(format!("{} is missing", function.name)),
            Some(1) => {}
            Some(times) => faults.push(format!("{} stands there {times} times", function.name)),
        }
    }
    faults.extend(named.into_keys().map(|it| format!("{it} is no function of the header")));
    assert!(
        faults.is_empty(),
        "the table of contents, in cbindgen.toml:\n{}\nCorrect it, and run `make header`.",
        faults.join("\n")
    );
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("cbindgen.toml");
    let builder = PARTS.iter().fold(cbindgen::Builder::new().with_config(config), |it, part| {
        it.with_src(root().join("src/ffi").join(part))
    });
    let mut made = Vec::new();
    builder.generate().expect("the source can be read").write(&mut made);
    String::from_utf8(made).expect("the header is UTF-8")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
