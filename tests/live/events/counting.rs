//! Counts what the library costs, in a process that runs under valgrind: the same on a busy machine as on a quiet one.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::support::Server;

/// What a program has cost.
pub(crate) struct Counted {
    /// Of its function `measured`, with all that it called.
    pub(crate) instructions: u64,
    /// Of the whole program.
    pub(crate) system_calls: u64,
    pub(crate) allocations: u64,
}

/// The words that run a program under valgrind. The file is written when the program ends.
pub(crate) fn tool(file: &str) -> Vec<String> {
    let version = Command::new("valgrind").arg("--version").output();
    assert!(
        version.is_ok_and(|it| it.status.success()),
        "there is no valgrind, which counts instructions: install the package valgrind, or run `make test-tools`"
    );
    let out = format!("--callgrind-out-file={file}");
    let collects = ["--toggle-collect=measured", "--collect-systime=yes"];
    let options = ["-q", "--vgdb=no", "--tool=callgrind", collects[0], collects[1], &out];
    ["valgrind"].iter().chain(&options).map(|&it| it.to_owned()).collect()
}

/// What the tool has written down.
pub(crate) fn read(file: &str) -> Counted {
    let written = fs::read_to_string(file).expect("valgrind has written the file");
    let columns = numbered(&written, "events: ").collect::<Vec<_>>();
    let totals = numbered(&written, "totals: ").collect::<Vec<_>>();
    let total = |event: &str| {
        let column = columns.iter().position(|it| *it == event).expect("valgrind counts it");
        totals.get(column).map_or(0, |it| it.parse().expect("a number"))
    };
    let instructions = total("Ir");
    assert!(instructions > 0, "valgrind has not found the function `measured`");
    Counted {
        instructions,
        system_calls: total("sysCount"),
        allocations: calls(
            &written,
            &["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"],
        ),
    }
}

fn numbered<'a>(written: &'a str, title: &str) -> impl Iterator<Item = &'a str> {
    let line = written.lines().find_map(|line| line.strip_prefix(title));
    line.expect("valgrind writes it").split_whitespace()
}

/// How often one of these functions was called. The name of a function stands only where it is mentioned first. After
/// that it has a number.
fn calls(written: &str, functions: &[&str]) -> u64 {
    let (mut names, mut called, mut sum) = (BTreeMap::new(), "", 0);
    for line in written.lines() {
        let named = ["fn=", "cfn="].iter().find_map(|it| line.strip_prefix(it));
        if let Some((number, name)) = named.map(|it| it.split_once(' ').unwrap_or((it, ""))) {
            let known = names.entry(number).or_insert(name);
            called = if line.starts_with('c') { *known } else { "" };
        } else if let Some(count) = line.strip_prefix("calls=") {
            let count = count.split(' ').next().unwrap_or_default();
            let is_one = functions.contains(&called);
            sum += if is_one { count.parse().expect("a number") } else { 0 };
        }
    }
    sum
}

pub(crate) fn forget_commands(server: &Server) {
    server.must(&["CONFIG", "RESETSTAT"]);
}

/// How many commands were carried out since, by clients and by scripts.
pub(crate) fn commands(server: &Server) -> u64 {
    let statistics = server.must(&["INFO", "commandstats"]).text().expect("a text");
    let calls = statistics.lines().filter_map(|line| line.split_once(":calls=")?.1.split_once(','));
    calls.map(|(count, _)| count.parse::<u64>().expect("a number")).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_name() {
        let written = "fn=(1) main\ncfn=(2) malloc\ncalls=3 0\n1 5\ncfn=(3) free\ncalls=7 0\n1 2\n\
                       fn=(4) other\ncfn=(2)\ncalls=4 0\n1 9\n";
        assert_eq!(calls(written, &["malloc", "calloc"]), 7);
    }
}
