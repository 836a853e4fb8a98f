//! The rules of a lock, on real servers: what is sent on the wire, who holds the lock and for how long, how
//! often a call tries to take it, and what extending and releasing it do.

#[path = "../../support/mod.rs"]
mod support;

mod continue_lock;
mod extend;
mod liars;
mod line;
mod log;
mod lost;
mod permits;
mod polling;
mod quorums;
mod several;
mod several_queue;
mod threads;
mod tries;
mod unlock;
mod unlock_after;
mod validity;
mod wire;
mod words;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use support::{Cluster, Lease, Manager, wait_until};

const TTL: i64 = 600_000;

/// A busy machine must not look like a slow server.
const PATIENT_MS: i64 = 20_000;
/// A call that took so long has waited unnecessarily.
const TOO_LONG: Duration = Duration::from_secs(10);

/// A manager that is connected to all servers.
fn patient(cluster: &Cluster) -> Manager {
    let manager = cluster.manager();
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager.connect_to_all();
    manager
}

/// A lease whose lock has expired.
fn expired(manager: &Manager, resource: &str) -> Lease {
    let lease = Lease::new();
    // On a busy machine so short a lock may expire before the call returns.
    wait_until("it is had", || manager.lock(resource, 300, &lease) == REDLOCK_OK);
    wait_until("it ends", || !lease.is_held());
    lease
}

#[track_caller]
fn is_empty(lease: &Lease) {
    assert!(!lease.is_held());
    assert_eq!((lease.remaining_ms(), lease.validity_ms()), (0, 0));
    assert_eq!(lease.token(), "");
}

#[track_caller]
fn everywhere_is(cluster: &Cluster, key: &str, value: Option<&str>) {
    for server in cluster.iter() {
        assert_eq!(server.get(key).as_deref(), value, "{}", cluster.describe(key));
    }
}

fn passed_ms(since: Instant) -> i64 {
    i64::try_from(since.elapsed().as_millis()).expect("not that long")
}

/// Ends the observing threads, also when their test fails.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
