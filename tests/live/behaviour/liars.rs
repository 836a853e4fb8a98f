//! A server that lies has one vote, also about when the other servers are asked again.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::support::{Cluster, Fake, Lease, Manager};
use crate::{PATIENT_MS, TTL};

/// The number of tries that the pauses allow in a second: 8 until the pauses reach their full length, and 7
/// more. Some pauses are far shorter by chance. A pause that a liar cuts short ends within a millisecond.
const WAIT_MS: i64 = 1_000;
const MANY: u64 = 60;

/// The remaining TTL that the liar states for a key that it does not have: expired, for ever, or the same at
/// each look.
const LIES_MS: [i64; 6] = [0, -1, -7, 1, 20, 250];

/// The maximum number of times that a real server is asked within a wait. Another client holds the lock on some
/// of them.
#[track_caller]
fn asked(cluster: &Cluster, held_on: usize, liar: &Fake) -> u64 {
    for server in &cluster[..held_on] {
        server.must(&["SET", "r", "theirs", "PX", "600000"]);
    }
    // The liar is near, and among the first to answer.
    let addresses = cluster.iter().map(|it| it.address());
    let manager = Manager::at(&[liar.address()].into_iter().chain(addresses).collect::<Vec<_>>());
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager.connect_to_all();
    let lease = Lease::new();
    let status = manager.try_lock("r", TTL, WAIT_MS, &lease);
    // The last try is cut short. On a busy machine the servers may not answer in that time.
    assert!([REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status), "{}", lease.message());
    cluster.iter().map(|it| it.calls("set")).max().expect("there are some")
}

#[test]
fn a_liar_beside_honest_servers_does_not_set_the_pace() {
    for left_ms in LIES_MS {
        for servers in [2, 4] {
            let asked = asked(&Cluster::start(servers), servers, &Fake::lying(left_ms));
            assert!(asked <= MANY, "{asked} times, {left_ms} ms and {servers} others");
        }
    }
}

#[test]
fn a_liar_beside_free_servers_does_not_set_the_pace() {
    for left_ms in LIES_MS {
        for (servers, held_on) in [(2, 1), (4, 2)] {
            let asked = asked(&Cluster::start(servers), held_on, &Fake::lying(left_ms));
            assert!(asked <= MANY, "{asked} times, {left_ms} ms and {servers} others");
        }
    }
}

#[test]
fn a_liar_beside_a_dead_server_does_not_set_the_pace() {
    for left_ms in LIES_MS {
        let (cluster, down, liar) = (Cluster::start(1), Cluster::start(1), Fake::lying(left_ms));
        let addresses = [liar.address(), down[0].address(), cluster[0].address()];
        let manager = Manager::at(&addresses);
        assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        manager.connect_to_all();
        down[0].kill();
        let lease = Lease::new();
        let status = manager.try_lock("r", TTL, WAIT_MS, &lease);
        assert!([REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status), "{}", lease.message());
        let asked = cluster[0].calls("set");
        assert!(asked <= MANY, "{asked} times, {left_ms} ms");
    }
}

/// A waiting client takes the lock as soon as the keys have expired, whatever a liar says. It looks at that
/// moment, and does not wait for the end of its next pause.
#[test]
fn a_liar_does_not_delay_the_look_at_the_expiry() {
    for left_ms in [0, -1, 600_000] {
        let (cluster, liar) = (Cluster::start(2), Fake::lying(left_ms));
        let manager = Manager::at(&[liar.address(), cluster[0].address(), cluster[1].address()]);
        assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        // Unless it ends early, this pause ends long after the wait.
        assert_eq!(manager.set_retry(1, 600_000), REDLOCK_OK);
        manager.connect_to_all();
        for server in cluster.iter() {
            server.must(&["SET", "r", "theirs", "PX", "2000"]);
        }
        let lease = Lease::new();
        let status = manager.try_lock("r", TTL, 60_000, &lease);
        assert_eq!(status, REDLOCK_OK, "{left_ms} ms: {}", lease.message());
        let asked = cluster[0].calls("set");
        assert!(asked <= MANY, "{asked} times, {left_ms} ms");
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}
