//! The entries of readers on a server, for the tests of shared locks.

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::support::events::Wanted;
use crate::support::resp::Reply;
use crate::support::usage::TTL;
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

pub(crate) const RESOURCE: &str = "r";
pub(crate) const READERS: &str = "r:r";
/// The key in which a writer announces that it waits.
pub(crate) const INTENT: &str = "r:i";
/// The wait queue.
pub(crate) const LINE: &str = "r:w";

pub(crate) fn shared() -> Wanted {
    Wanted::shared(RESOURCE, TTL)
}

#[track_caller]
pub(crate) fn take(manager: &Manager, wanted: &Wanted) -> Lease {
    let lease = Lease::new();
    assert_eq!(manager.acquire(wanted, &lease), REDLOCK_OK, "{}", lease.message());
    lease
}

#[track_caller]
pub(crate) fn unlock(manager: &Manager, lease: &Lease) {
    assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
}

/// The readers of a resource on this server: their tokens, and their ends by the server's clock, ordered by
/// their ends.
#[track_caller]
pub(crate) fn readers_of(server: &Server, resource: &str) -> Vec<(String, String)> {
    let key = format!("{resource}:r");
    let Reply::Array(words) = server.must(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]) else {
        panic!("it is a list");
    };
    let text = |it: &Reply| it.text().expect("a string");
    words.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

/// Returns when exactly these are the readers, on every server.
#[track_caller]
pub(crate) fn wait_until_read_by(cluster: &Cluster, leases: &[&Lease]) {
    let mut expected: Vec<_> = leases.iter().map(|it| it.token()).collect();
    expected.sort();
    wait_until("all have reached the servers", || {
        cluster.iter().all(|server| {
            let mut tokens: Vec<_> =
                readers_of(server, RESOURCE).into_iter().map(|it| it.0).collect();
            tokens.sort();
            tokens == expected
        })
    });
}
