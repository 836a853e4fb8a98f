//! An unlock that leaves the key: others are kept out until a time after the lock was taken.

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN,
};

use crate::TTL;
use crate::support::events::Wanted;
use crate::support::usage::connected;
use crate::support::{Cluster, Lease, wait_until};

const LEAST: i64 = TTL / 2;

/// The key ends on each server within that time.
fn ends_within(cluster: &Cluster, key: &str, least: i64) {
    wait_until("all servers have carried it out", || {
        cluster.iter().all(|server| (1..=least).contains(&server.pttl(key)))
    });
}

#[test]
fn the_lease_is_empty_at_once_and_the_key_ends_later() {
    let cluster = Cluster::start(3);
    let (manager, other) = (connected(&cluster), connected(&cluster));
    for submits in [false, true] {
        let lease = manager.take("r", TTL);
        cluster.wait_until_everywhere("r");
        if submits {
            assert_eq!(manager.submit_unlock_after(&lease, LEAST, 7), REDLOCK_OK);
            let event = manager.event();
            assert_eq!((event.status, event.user_data), (REDLOCK_OK, 7));
        } else {
            assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_OK, "{}", lease.message());
        }
        assert!(!lease.is_held() && lease.token().is_empty());
        ends_within(&cluster, "r", LEAST);
        assert!(cluster.iter().all(|server| server.pttl("r") > LEAST / 2));
        for manager in [&manager, &other] {
            assert_eq!(manager.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_TAKEN);
        }
        cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    }
}

#[test]
fn a_delay_covers_all_resources_and_only_our_keys() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let names = ["a", "b", "c"];
    assert_eq!(manager.acquire(&Wanted::several(&names, TTL), &lease), REDLOCK_OK);
    names.iter().for_each(|name| cluster.wait_until_everywhere(name));
    // What ends earlier is not made to live longer.
    cluster.iter().for_each(|server| drop(server.must(&["PEXPIRE", "c", "60000"])));
    assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_OK, "{}", lease.message());
    ends_within(&cluster, "a", LEAST);
    ends_within(&cluster, "b", LEAST);
    assert!(cluster.iter().all(|server| server.pttl("c") <= 60_000));
    let lost = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| drop(server.must(&["SET", "r", "theirs"])));
    assert_eq!(manager.unlock_after(&lost, LEAST), REDLOCK_LOST);
    assert!(cluster.iter().all(|server| server.pttl("r") == -1), "it is another's");
}

#[test]
fn a_senseless_delay_is_refused_and_the_lock_stays_held() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take("r", TTL);
    for least_ms in [-1, TTL + 1, i64::MAX, i64::MIN] {
        assert_eq!(manager.unlock_after(&lease, least_ms), REDLOCK_INVALID_ARGUMENT);
        assert!(lease.is_held() && lease.message().contains("least_ms"), "{}", lease.message());
    }
    // There is nothing to wait for, so this is an unlock.
    assert_eq!(manager.unlock_after(&lease, 0), REDLOCK_OK);
    cluster.wait_until_gone("r");
    assert_eq!(manager.unlock_after(&lease, 0), REDLOCK_LOST);
    for wanted in [Wanted::shared("s", TTL), Wanted { permits: 2, ..Wanted::new("p", TTL) }] {
        assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_INVALID_ARGUMENT);
        assert!(lease.is_held());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    }
}
