//! Releasing a lock, once and again, in time and too late.

use redlock::ffi::status::RedLockStatus::{REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::{Cluster, Lease, wait_until};
use crate::{TTL, everywhere_is, expired, is_empty, patient};

#[test]
fn unlock_frees_the_resource_at_once() {
    let cluster = Cluster::start(3);
    let (manager, next) = (patient(&cluster), patient(&cluster));
    next.set_retry(1, 0);
    for _ in 0..50 {
        let lease = manager.take("r", TTL);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        is_empty(&lease);
        let lease = next.take("r", TTL);
        assert_eq!(next.unlock(&lease), REDLOCK_OK);
        assert_eq!(next.is_locked("r"), Ok(false));
    }
    cluster.wait_until_gone("r");
}

#[test]
fn only_the_first_unlock_succeeds() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
    assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
    assert_eq!(manager.unlock(&Lease::new()), REDLOCK_LOST);
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK, "the lease may be used again");
}

#[test]
fn unlock_of_an_expired_lock_is_lost() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = expired(&manager, "r");
    cluster.wait_until_gone("r");
    assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
}

#[test]
fn unlock_of_an_expired_lock_spares_the_new_holder() {
    let cluster = Cluster::start(3);
    let (manager, rival) = (patient(&cluster), patient(&cluster));
    let lease = expired(&manager, "r");
    cluster.wait_until_gone("r");
    let theirs = rival.take("r", TTL);
    cluster.wait_until_everywhere("r");
    assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
    // All requests of the first manager have arrived when a later lock of it is on all servers.
    let _other = manager.take("other", TTL);
    cluster.wait_until_everywhere("other");
    everywhere_is(&cluster, "r", Some(&theirs.token()));
    assert_eq!(rival.confirm(&theirs, TTL / 2), REDLOCK_OK, "{}", theirs.message());
}

/// A release that tells waiting clients is another script than one that does not.
#[test]
fn unlock_of_a_taken_over_lock_spares_the_new_holder() {
    for wakes in [true, false] {
        let cluster = Cluster::start(3);
        let manager = patient(&cluster);
        assert_eq!(manager.set_waking(wakes), REDLOCK_OK);
        let lease = manager.take("r", TTL);
        cluster.wait_until_everywhere("r");
        for server in &cluster[..2] {
            server.must(&["SET", "r", "theirs"]);
        }
        assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
        wait_until("ours is released", || !cluster[2].exists("r"));
        for server in &cluster[..2] {
            assert_eq!(server.get("r").as_deref(), Some("theirs"), "waking: {wakes}");
        }
    }
}

#[test]
fn another_manager_of_the_servers_can_release_a_lock() {
    let cluster = Cluster::start(3);
    let lease = patient(&cluster).take("r", TTL);
    let other = patient(&cluster);
    assert_eq!(other.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(other.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(other.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone("r");
}

/// Two of three servers owe answers, so the call knows at once that it cannot succeed.
#[test]
fn a_hopeless_unlock_still_reaches_the_live_server() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    manager.connect_to_all();
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    manager.set_timeouts(1_000, 100);
    cluster[1].freeze();
    cluster[2].freeze();
    for _ in 0..2 {
        assert_eq!(manager.is_locked("r"), Err(REDLOCK_UNREACHABLE));
    }
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE);
    wait_until("the first server has nothing left", || !cluster[0].exists("r"));
    cluster[1].resume();
    cluster[2].resume();
}
