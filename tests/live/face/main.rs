//! The library as Rust programs use it: blocking calls, futures on an executor of the test's own, kept locks,
//! and values that are dropped halfway.

#[path = "../../support/mod.rs"]
mod support;

mod asynchronous;
mod blocking;
mod executor;
mod kept;
mod panics;
mod waited;

use std::time::Duration;

use redlock::{Builder, Manager, Options};

use crate::support::{Cluster, wait_until};

const TTL: Duration = Duration::from_secs(600);

fn builder(cluster: &Cluster) -> Builder {
    Manager::builder().servers(cluster.urls())
}

fn manager(cluster: &Cluster) -> Manager {
    builder(cluster).build().expect("a manager")
}

fn driven(cluster: &Cluster) -> Manager {
    builder(cluster).background_thread(true).build().expect("a manager")
}

/// A manager that is connected to all servers, so that all of them get a key that it sets.
fn connected(cluster: &Cluster) -> Manager {
    connect(manager(cluster))
}

fn connect(manager: Manager) -> Manager {
    wait_until("all servers are connected", || {
        manager.connect(Duration::ZERO).is_ok_and(|absent| absent.is_empty())
    });
    manager
}

fn options(resource: &str) -> Options {
    Options::new(resource, TTL)
}
