//! How long a lock is valid: never longer than the servers keep it.

use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TOO_SLOW};

use crate::support::{Cluster, Lease, Server, wait_until};
use crate::{TOO_LONG, TTL, passed_ms, patient};

#[test]
fn the_validity_never_exceeds_that_of_the_servers() {
    let cluster = Cluster::start(5);
    for factor in [0.01, 0.25] {
        let manager = patient(&cluster);
        assert_eq!(manager.set_clock_drift_factor(factor), REDLOCK_OK);
        for ttl_ms in [10_000, 100_000, 1_000_000] {
            let drift = (ttl_ms as f64 * factor).ceil() as i64 + 2;
            let lease = manager.take("r", ttl_ms);
            assert!(lease.validity_ms() <= ttl_ms - drift);
            for _ in 0..20 {
                the_servers_bear_out(&cluster, &lease, drift);
            }
            assert_eq!(manager.extend(&lease, ttl_ms), REDLOCK_OK);
            the_servers_bear_out(&cluster, &lease, drift);
            assert_eq!(manager.continue_lock("r", ttl_ms, &lease), REDLOCK_OK);
            the_servers_bear_out(&cluster, &lease, drift);
            let before = lease.remaining_ms();
            assert!(before > ttl_ms - drift - TOO_LONG.as_millis() as i64);
            wait_until("it counts down", || lease.remaining_ms() < before);
            assert_eq!(manager.unlock(&lease), REDLOCK_OK);
            assert_eq!((lease.remaining_ms(), lease.validity_ms()), (0, 0));
            cluster.wait_until_gone("r");
        }
    }
}

/// A quorum keeps the key for the Q-th largest time to live.
fn the_servers_bear_out(cluster: &Cluster, lease: &Lease, drift: i64) {
    let (remaining, start) = (lease.remaining_ms(), Instant::now());
    let mut left: Vec<_> = cluster.iter().map(|server| server.pttl("r")).collect();
    // The servers were asked after the lease, and have counted down meanwhile. 1 ms is for the rounding.
    let passed = passed_ms(start) + 1;
    left.sort_unstable_by(|a, b| b.cmp(a));
    let quorum_left = left[cluster.quorum() - 1] + passed;
    assert!(remaining <= quorum_left - drift, "{remaining} of {quorum_left}, drift {drift}");
}

#[test]
fn the_time_of_the_servers_reduces_the_validity() {
    const FROZEN: Duration = Duration::from_millis(400);
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    while_frozen(&cluster, FROZEN, || assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK));
    let most = 2 * TTL - 2 * TTL / 100 - 2 - FROZEN.as_millis() as i64;
    assert!(lease.validity_ms() <= most, "{} of {most}", lease.validity_ms());
    assert!(lease.remaining_ms() <= most);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);

    while_frozen(&cluster, FROZEN, || {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK);
    });
    let most = TTL - TTL / 100 - 2 - FROZEN.as_millis() as i64;
    assert!(lease.validity_ms() <= most, "{} of {most}", lease.validity_ms());
    assert!(lease.remaining_ms() <= most);
}

#[test]
fn a_too_late_lock_is_released() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    manager.set_retry(1, 0);
    // 198 ms are left to take the lock in. The keys would stay for a hundred seconds.
    assert_eq!(manager.set_clock_drift_factor(0.998), REDLOCK_OK);
    let lease = Lease::new();
    while_frozen(&cluster, Duration::from_millis(500), || {
        assert_eq!(manager.lock("r", 100_000, &lease), REDLOCK_TOO_SLOW);
    });
    assert!(!lease.is_held());
    assert_eq!(lease.token(), "");
    assert!(!lease.message().is_empty());
    cluster.wait_until_gone("r");
}

/// Runs a call with two of three servers frozen, and resumes them a while after the call has begun.
fn while_frozen(cluster: &Cluster, pause: Duration, call: impl FnOnce()) {
    cluster[..2].iter().for_each(Server::freeze);
    let asked = || cluster[2].calls("set") + cluster[2].scripts();
    let before = asked();
    thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("the third server is asked", || asked() > before);
            thread::sleep(pause);
            cluster[..2].iter().for_each(Server::resume);
        });
        call();
    });
}
