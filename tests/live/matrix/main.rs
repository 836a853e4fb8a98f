//! Every fault that a lock has to survive, one by one. `rows.md` has the table. Each row has at least one test
//! here whose name begins with the row's mark.

#[path = "../../support/mod.rs"]
mod support;

#[allow(dead_code)]
#[path = "../../support/history/mod.rs"]
mod history;

mod access;
mod callbacks;
mod calls;
mod calls_abandoned;
mod calls_cancelled;
mod calls_waiting;
mod clocks;
mod clocks_set;
mod clocks_stopped;
mod connecting;
mod deposed;
mod forks;
mod handed;
mod interface;
mod kept;
mod kept_out;
mod kept_processes;
mod levels;
mod looks;
mod masters;
mod masters_cut_off;
mod masters_moving;
#[cfg(feature = "tls")]
mod masters_secure;
#[cfg(feature = "tls")]
mod masters_secure_moving;
mod masters_storm;
mod network;
mod obedient;
mod owners;
mod owners_answers;
mod owners_cut_off;
mod owners_gone;
mod owners_resharded;
#[cfg(feature = "tls")]
mod owners_secure;
mod passwords;
mod permits;
mod place;
mod processes;
mod readers;
mod resets;
mod rig;
mod rivals;
#[cfg(feature = "tls")]
mod secure;
mod servers;
mod servers_closing;
mod servers_counted;
mod servers_dying;
mod servers_forgetting;
mod servers_lives;
mod servers_refusing;
mod servers_remembering;
mod several;
mod shared;
mod shared_cancelled;
mod shared_forgetting;
mod shared_forks;
mod shared_resets;
mod shared_together;
mod shared_waiting;
mod signals;
mod storm;
mod strangers;
mod succession;
mod threads;
mod tokens;
mod voters;
mod waking;
mod waking_kinds;
mod wire;

use std::fs;
use std::path::Path;

const ROWS: &str = include_str!("rows.md");

#[test]
fn every_row_has_its_test() {
    let (rows, tests) = (rows(), tests());
    assert!(rows.len() > 40, "the table was not found");
    for row in &rows {
        let prefix = format!("{}_", row.to_lowercase());
        assert!(tests.iter().any(|it| it.starts_with(&prefix)), "{row} has no test");
    }
    for test in &tests {
        let mark = test.split('_').next().unwrap_or_default().to_uppercase();
        assert!(rows.contains(&&*mark), "{test} belongs to no row");
    }
}

/// The marks of all rows, such as "N03".
fn rows() -> Vec<&'static str> {
    let mark = |line: &'static str| line.strip_prefix("| ")?.split(' ').next();
    let is_mark = |it: &&str| it.len() == 3 && it[1..].bytes().all(|byte| byte.is_ascii_digit());
    ROWS.lines().filter_map(mark).filter(is_mark).collect()
}

/// The names of all tests of this folder except the one above.
fn tests() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/matrix");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("this folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|it| it != "rs") || path.ends_with("main.rs") {
            continue;
        }
        let code = fs::read_to_string(&path).expect("a source file");
        for part in code.split("#[test]").skip(1) {
            let name = part.split("fn ").nth(1).and_then(|it| it.split('(').next());
            found.push(name.expect("a test is a function").to_owned());
        }
    }
    found
}
