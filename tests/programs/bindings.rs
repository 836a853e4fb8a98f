//! What the tests in Ruby and Python have in common.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::support::{Cluster, Reply, Server, wait_until_ok};
use crate::workshop::Workshop;

/// Libraries that are no match, each with words that have to be said of it: `path=words,path=words`.
/// One is of another version, one is too old to have all functions, one is something else.
pub(crate) fn strangers(workshop: &Workshop) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let strangers = [
        ("newer", "const char *RedLock_Version(void) { return \"99.7.0\"; }", "99.7.0"),
        (
            "older",
            &format!("const char *RedLock_Version(void) {{ return \"{version}\"; }}"),
            "has no RedLock",
        ),
        ("other", "int unlock(void) { return 0; }", "has no RedLock_Version"),
    ];
    let built = strangers.map(|(name, code, words)| {
        let source = workshop.write(&format!("{name}.c"), code);
        let library = workshop.fresh(name).with_extension("so");
        build(workshop, &source, &library);
        format!("{}={words}", library.display())
    });
    built.join(",")
}

fn build(workshop: &Workshop, source: &Path, library: &Path) {
    let mut command = Command::new("cc");
    workshop.succeed(command.args(["-shared", "-fPIC", "-o"]).arg(library).arg(source));
}

/// Returns when no key is left on a quorum. Programs have only just ended, and what a server that
/// was late has to undo after that, it undoes for nobody's sake.
#[track_caller]
pub(crate) fn nothing_is_left(cluster: &Cluster) {
    let up: Vec<_> = cluster.iter().filter(|it| TcpStream::connect(it.address()).is_ok()).collect();
    assert!(up.len() >= cluster.quorum(), "too few servers are up");
    wait_until_ok("no key is left", || {
        let keys: Vec<String> = up.iter().flat_map(|server| keys(server)).collect();
        let on_a_quorum = |key| keys.iter().filter(|it| *it == key).count() >= cluster.quorum();
        keys.iter().find(|key| on_a_quorum(*key)).map_or(Ok(()), |key| Err(key.clone()))
    });
}

#[track_caller]
fn keys(server: &Server) -> Vec<String> {
    match server.must(&["KEYS", "*"]) {
        Reply::Array(keys) => keys.iter().filter_map(Reply::text).collect(),
        other => panic!("a list was expected: {other:?}"),
    }
}
