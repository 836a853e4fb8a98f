//! The programs in C, C++, Go, Node.js, Python and Ruby, the examples as well as the tests, and the blocks of
//! code in README.md and docs/. Each is built as its reader would build it, without warnings, and run against
//! real servers. A missing requirement is a failure.

#[path = "../support/pages.rs"]
mod pages;
#[path = "../support/mod.rs"]
mod support;

mod bindings;
mod c;
mod compilers;
mod cpp;
mod gauges;
mod go;
mod library;
mod node;
mod python;
mod ruby;
mod secure;
mod servers_script;
mod snippets;
mod versions;
mod waiters;
mod workshop;

use std::sync::Arc;

use support::tls::Authority;
use support::{Cluster, Server};

/// As programs take them: host:port each.
fn addresses(cluster: &Cluster) -> Vec<String> {
    cluster.iter().map(Server::address).collect()
}

/// As test programs in Go, Python and Ruby take them.
fn address_list(cluster: &Cluster) -> String {
    addresses(cluster).join(",")
}

/// Servers over TLS that require certificates from their clients.
struct Secure {
    authority: Arc<Authority>,
    servers: Vec<Server>,
}

impl Secure {
    fn start() -> Self {
        let authority = Arc::new(Authority::new());
        let start = |_| {
            let demanding = ["--tls-auth-clients", "yes"];
            Server::start_tls(&authority, &authority.server(), &demanding)
        };
        let servers = (0..3).map(start).collect();
        Self { authority, servers }
    }

    /// As test programs take them: the authority's file, a client's certificate and its key, and then the
    /// servers as host:port.
    fn list(&self) -> Vec<String> {
        let client = self.authority.client();
        let mut list = vec![self.authority.file(), client.certificate, client.key];
        list.extend(self.servers.iter().map(Server::address));
        list
    }
}
