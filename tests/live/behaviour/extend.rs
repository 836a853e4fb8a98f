//! Extending a lock, and asking the servers about it.

use std::time::Instant;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_LOST, REDLOCK_OK, REDLOCK_TOO_SHORT, REDLOCK_UNREACHABLE,
};

use crate::support::{Cluster, wait_until};
use crate::{TTL, everywhere_is, expired, is_empty, passed_ms, patient};

#[test]
fn extend_counts_the_new_ttl_from_now() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", 20_000);
    cluster.wait_until_everywhere("r");
    let token = lease.token();
    let start = Instant::now();
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK);
    wait_until("all servers have the new time", || {
        cluster.iter().all(|server| server.pttl("r") > TTL - passed_ms(start) - 3)
    });
    let validity = TTL - TTL / 100 - 2;
    assert!(lease.validity_ms() <= validity);
    assert!(lease.validity_ms() >= validity - passed_ms(start) - 1);
    assert!(lease.remaining_ms() >= validity - passed_ms(start) - 1);
    assert_eq!(lease.token(), token);
    everywhere_is(&cluster, "r", Some(&token));
}

#[test]
fn extend_never_shortens() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    let start = Instant::now();
    let left: Vec<_> = cluster.iter().map(|server| server.pttl("r")).collect();
    let remaining = lease.remaining_ms();
    for _ in 0..3 {
        assert_eq!(manager.extend(&lease, 1_000), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.continue_lock("r", 1_000, &lease), REDLOCK_OK, "{}", lease.message());
    }
    assert!(lease.remaining_ms() >= remaining - passed_ms(start) - 2);
    let passed = passed_ms(start) + 2;
    // A server that was not heard yet still carries out its requests later.
    for (server, left) in cluster.iter().zip(left) {
        assert!(server.pttl("r") >= left - passed - passed_ms(start), "{}", cluster.describe("r"));
    }
    assert_eq!(manager.confirm(&lease, TTL / 2), REDLOCK_OK);
}

#[test]
fn extend_of_an_expired_lock_is_lost_and_harmless() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = expired(&manager, "free");
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST);
    is_empty(&lease);
    cluster.wait_until_gone("free");

    let lease = expired(&manager, "r");
    cluster.wait_until_gone("r");
    for server in cluster.iter() {
        server.must(&["SET", "r", "theirs", "PX", "600000"]);
    }
    assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_LOST);
    is_empty(&lease);
    everywhere_is(&cluster, "r", Some("theirs"));
    assert!(cluster.iter().all(|server| server.pttl("r") <= TTL), "{}", cluster.describe("r"));
}

/// The frozen server has lost the key, too, and the call does not wait for its answer.
#[test]
fn a_majority_loss_cannot_be_undone_bit_by_bit() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    manager.connect_to_all();
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    for server in &cluster[..2] {
        server.must(&["DEL", "r"]);
    }
    cluster[0].freeze();
    manager.set_timeouts(1_000, 100);
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_UNREACHABLE, "{}", lease.message());
    cluster[0].resume();
    manager.set_timeouts(1_000, 10_000);
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST, "{}", lease.message());
    is_empty(&lease);
    cluster.wait_until_gone("r");
}

/// With and without a confirmation first. After a confirmation that failed, no server is asked again.
#[test]
fn extend_of_a_taken_over_lock_is_lost_and_harmless() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    for (resource, asks_first) in [("r", false), ("asked", true)] {
        let lease = manager.take(resource, TTL);
        cluster.wait_until_everywhere(resource);
        for server in &cluster[..2] {
            server.must(&["SET", resource, "theirs", "PX", "600000"]);
        }
        if asks_first {
            assert_eq!(manager.confirm(&lease, 0), REDLOCK_LOST);
        }
        assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_LOST);
        is_empty(&lease);
        wait_until("what is left of ours is released", || !cluster[2].exists(resource));
        for server in &cluster[..2] {
            assert_eq!(server.get(resource).as_deref(), Some("theirs"));
            assert!(server.pttl(resource) <= TTL);
        }
    }
}

#[test]
fn extend_restores_a_missing_key() {
    let cluster = Cluster::start(5);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    for server in &cluster[..2] {
        server.must(&["DEL", "r"]);
    }
    // A server whose answer comes after the others have decided gets the key again with the next extension.
    wait_until("those that lost it have it again", || {
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        cluster.having("r") == 5
    });
    everywhere_is(&cluster, "r", Some(&lease.token()));
    assert!(cluster.iter().all(|server| server.pttl("r") > TTL / 2), "{}", cluster.describe("r"));
}

#[test]
fn a_restored_key_is_no_vote() {
    let cluster = Cluster::start(5);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    for server in &cluster[..3] {
        server.must(&["DEL", "r"]);
    }
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST);
    is_empty(&lease);
    cluster.wait_until_gone("r");
    // Nothing arrives later either, because every server has answered all requests.
    wait_until("each server was heard", || manager.is_locked("r") == Ok(false));
    let other = manager.take("other", TTL);
    cluster.wait_until_everywhere("other");
    assert_eq!(manager.unlock(&other), REDLOCK_OK);
    assert_eq!(cluster.having("r"), 0);
}

#[test]
fn confirm_checks_the_holder_and_the_time() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    assert_eq!(manager.confirm(&lease, 0), REDLOCK_OK);
    assert_eq!(manager.confirm(&lease, TTL / 2), REDLOCK_OK);
    assert_eq!(manager.confirm(&lease, TTL - TTL / 100), REDLOCK_TOO_SHORT);
    assert!(lease.is_held(), "that it is not for so long does not end it");
    // The servers count, not what we believe.
    for server in &cluster[..2] {
        server.must(&["PEXPIRE", "r", "60000"]);
    }
    assert_eq!(manager.confirm(&lease, TTL / 2), REDLOCK_TOO_SHORT);
    assert_eq!(manager.confirm(&lease, 50_000), REDLOCK_OK, "{}", lease.message());
    for server in &cluster[..2] {
        server.must(&["DEL", "r"]);
    }
    assert_eq!(manager.confirm(&lease, 0), REDLOCK_LOST);
    assert_eq!(cluster.having("r"), 1, "a question changes nothing");
}
