//! What the Makefile, the scripts and the workflows say of each other, and of the tests, is so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How a test starts a server that may be of any kind.
const STARTS: [&str; 5] = [
    "Server::start(",
    "Server::start_with(",
    "Server::start_in(",
    "Cluster::start(",
    "Cluster::start_each(",
];

#[test]
fn whatever_talks_to_a_server_is_tested_with_every_server() {
    let script = read("packaging/test-servers.sh");
    let list = script.lines().find_map(|it| it.strip_prefix("TESTS='")?.strip_suffix('\''));
    let tested: BTreeSet<_> = list.expect("the script has a list").split(' ').collect();
    let programs: Vec<_> = entries("tests").filter(|it| it.join("main.rs").exists()).collect();
    let talking: BTreeSet<_> = programs.iter().filter(|it| starts_servers(it)).collect();
    let talking: BTreeSet<_> = talking.iter().filter_map(|it| it.file_name()?.to_str()).collect();
    assert_eq!(tested, talking);
}

/// Simulated servers have these names, too; but nobody who simulates them has the others at hand.
fn starts_servers(program: &Path) -> bool {
    let main = fs::read_to_string(program.join("main.rs")).expect("a source file");
    let has_servers = main.contains("#[path = \"../support/mod.rs\"]");
    has_servers
        && sources_in(program).iter().any(|it| STARTS.iter().any(|start| it.contains(start)))
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
