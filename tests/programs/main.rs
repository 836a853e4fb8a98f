//! The programs in C, C++, Go and Ruby, the examples as well as the tests, and the lines that the
//! README begins with: each is built as its reader would build it, without warnings, and run
//! against real servers. What is needed for that and not there is a failure.

#[path = "../support/mod.rs"]
mod support;

mod c;
mod compilers;
mod cpp;
mod go;
mod library;
mod readme;
mod ruby;
mod secure;
mod workshop;

use support::{Cluster, Server};

/// As programs take them: host:port each.
fn addresses(cluster: &Cluster) -> Vec<String> {
    cluster.iter().map(Server::address).collect()
}

/// As test programs in Go and Ruby take them.
fn address_list(cluster: &Cluster) -> String {
    addresses(cluster).join(",")
}
