//! The maximum number of servers, and more.

use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::{Cluster, Lease, Manager, ports};
use crate::{TTL, accepted, refused, says};

const MOST: usize = 64;

/// All ports are waited for together. So this is much for a busy machine, and little for waiting for one port
/// after the other.
const WITHIN_REASON: Duration = Duration::from_secs(5);

#[test]
fn only_the_first_64_servers_are_taken() {
    let manager = Manager::new();
    for port in 1..=1000 {
        let status = manager.add("127.0.0.1", port);
        match usize::try_from(port) {
            Ok(1..=MOST) => accepted(&manager, status),
            _ => refused(&manager, status, &["the maximum is 64"]),
        }
    }
}

#[test]
fn mostly_dead_64_servers_are_unreachable_in_time() {
    let cluster = Cluster::start(3);
    let manager = with_dead_ones(&cluster);
    manager.set_retry(1, 0);
    let lease = Lease::new();
    let start = Instant::now();
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
    assert!(start.elapsed() < WITHIN_REASON, "it took {:?}", start.elapsed());
    says(&lease.message(), &["of 64 servers", "33 needed", "127.0.0.1:", "refused"]);
    cluster.wait_until_gone("r");
}

#[test]
fn a_bare_quorum_of_64_servers_serves_in_time() {
    let cluster = Cluster::start(33);
    let manager = with_dead_ones(&cluster);
    let start = Instant::now();
    let lease = manager.take("r", TTL);
    assert_eq!(cluster.having("r"), 33);
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.confirm(&lease, 1), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.is_locked("r"), Ok(true));
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert!(start.elapsed() < WITHIN_REASON, "it took {:?}", start.elapsed());
    cluster.wait_until_gone("r");
}

/// A manager of these servers and of dead ones, up to the maximum number.
fn with_dead_ones(cluster: &Cluster) -> Manager {
    let manager = cluster.manager();
    for _ in cluster.len()..MOST {
        accepted(&manager, manager.add("127.0.0.1", ports::free().into()));
    }
    manager
}
