//! The library is a guest in somebody else's process: what it does there besides locking. Each
//! test runs a C program of `tests/c`, which makes the checks; the test has the servers, breaks
//! them, and looks at what they were told.

#[path = "../support/mod.rs"]
mod support;

mod forks;
mod manners;
mod signals;
mod tap;
mod uses;

use support::{Cluster, Server};

fn urls(cluster: &Cluster) -> Vec<String> {
    cluster.iter().map(Server::url).collect()
}

/// The connections of clients, as the server numbers them, without that of the test itself.
#[track_caller]
fn connections(server: &Server) -> Vec<u64> {
    let list = server.must(&["CLIENT", "LIST", "TYPE", "normal"]).text().expect("a list");
    let own = server.must(&["CLIENT", "ID"]).integer();
    let id = |line: &str| line.strip_prefix("id=")?.split(' ').next()?.parse().ok();
    list.lines().filter_map(id).filter(|&it: &u64| i64::try_from(it) != Ok(own)).collect()
}

/// Closes the connections of all clients but the test.
#[track_caller]
fn hang_up(server: &Server) {
    server.must(&["CLIENT", "KILL", "TYPE", "normal"]);
}
