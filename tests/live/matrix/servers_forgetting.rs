//! Servers that no longer have the key, or other servers behind their addresses. A holder that asks is told.

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::rivals::{RESOURCE, Rivals};
use crate::servers_refusing::replicate;
use crate::support::usage::{TTL, connected_unguarded, patient};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

#[test]
fn s08_a_key_missing_on_a_majority_is_a_lost_lock() {
    let ways: [&[&str]; 6] = [
        &["FLUSHALL"],
        &["FLUSHDB", "ASYNC"],
        &["DEL", RESOURCE],
        &["RENAME", RESOURCE, "elsewhere"],
        &["SWAPDB", "0", "1"],
        &["MOVE", RESOURCE, "1"],
    ];
    let cluster = Cluster::start(3);
    let (holder, rival) = (connected_unguarded(&cluster), connected_unguarded(&cluster));
    let mut rivals = Rivals::among(holder, rival);
    let told = [Rivals::the_holder_is_told, Rivals::the_holder_is_told_by_extending];
    for (way, is_told) in ways.iter().flat_map(|way| told.map(|it| (way, it))) {
        cluster.wait_until_everywhere(RESOURCE);
        cluster[0].must(way);
        rivals.one_holds_until_it_is_back(&cluster[0]);

        cluster[1..].iter().for_each(|server| _ = server.must(way));
        is_told(&rivals);
        rivals.nothing_is_left(&cluster);
        // Remaining keys elsewhere do not block the next lock.
        cluster.iter().for_each(|server| _ = server.must(&["FLUSHALL"]));
        rivals.held = rivals.holder.take(RESOURCE, TTL);
    }
    cluster.wait_until_everywhere(RESOURCE);
    cluster[..2].iter().for_each(|server| _ = server.must(&["FLUSHALL"]));
    rivals.both_hold();
}

/// `volatile-ttl` spares all keys except those that expire, and these are the locks.
#[test]
fn s13_a_lock_evicted_by_a_majority_is_reported_lost() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let cluster = Cluster::start(3);
        let rivals = Rivals::unguarded(&cluster);
        evict(&cluster[0], policy);
        rivals.one_holds();
        // An extension also restores a missing key if there is room.
        cluster[..2].iter().for_each(|server| evict(server, policy));
        for server in &cluster[..2] {
            server.must(&["CONFIG", "SET", "maxmemory", "0"]);
        }
        assert_eq!(cluster.having(RESOURCE), 1, "{}", cluster.describe(RESOURCE));
        rivals.both_hold();
    }
}

/// Fills the server until the lock is evicted.
fn evict(server: &Server, policy: &str) {
    let info = server.must(&["INFO", "memory"]).text().expect("words");
    let used = info.lines().find_map(|it| it.strip_prefix("used_memory:")?.trim().parse().ok());
    let limit: u64 = used.map(|it: u64| it + 2_000_000).expect("it counts its memory");
    server.must(&["CONFIG", "SET", "maxmemory-policy", policy]);
    server.must(&["CONFIG", "SET", "maxmemory", &limit.to_string()]);
    let filler = "x".repeat(10_000);
    let mut number = 0;
    wait_until("the lock is evicted", || {
        for _ in 0..50 {
            number += 1;
            // If nothing else may be evicted, the command is refused in the end.
            server.command(&["SET", &format!("filler-{number}"), &filler]);
        }
        !server.exists(RESOURCE)
    });
}

#[test]
fn s16_a_copy_without_the_lock_breaks_the_promise() {
    let (cluster, copies) = (Cluster::start(3), Cluster::start(2));
    let rivals = Rivals::unguarded(&cluster);
    fail_over(&cluster[0], &copies[0]);
    rivals.one_holds();
    wait_until("the copy is given the lock", || {
        rivals.one_holds();
        copies[0].exists(RESOURCE)
    });
    copies[0].must(&["FLUSHALL"]);
    fail_over(&cluster[1], &copies[1]);
    rivals.both_hold();
}

#[test]
fn s16_a_copy_with_the_lock_is_harmless() {
    let (cluster, copies) = (Cluster::start(3), Cluster::start(2));
    for (primary, copy) in cluster.iter().zip(copies.iter()) {
        replicate(primary, copy);
    }
    let rivals = Rivals::unguarded(&cluster);
    copies.wait_until_everywhere(RESOURCE);
    for (primary, copy) in cluster.iter().zip(copies.iter()) {
        fail_over(primary, copy);
        rivals.one_holds();
    }
    assert_eq!(rivals.holder.unlock(&rivals.held), REDLOCK_OK, "{}", rivals.held.message());
    wait_until("it is released", || {
        rivals.holder.is_locked("another") == Ok(false)
            && copies.having(RESOURCE) == 0
            && !cluster[2].exists(RESOURCE)
    });
}

/// The primary is gone, and its copy takes over its address.
fn fail_over(primary: &Server, copy: &Server) {
    primary.kill();
    copy.must(&["REPLICAOF", "NO", "ONE"]);
    copy.must(&["CONFIG", "SET", "port", &primary.port().to_string()]);
}

#[test]
fn t02_lists_without_a_common_quorum_admit_two_holders() {
    let servers = Cluster::start(5);
    let manager_of = |range: &[Server]| {
        let manager = Manager::of(range);
        manager.connect_to_all();
        manager
    };
    let rivals = Rivals::among(manager_of(&servers[..3]), manager_of(&servers[2..]));
    let status = rivals.try_to_take_over();
    assert_eq!(status, REDLOCK_OK, "{}", rivals.wanted.message());
    assert_eq!(rivals.holders(), 2, "the lists are the same, so this test shows nothing");
    // Each client has its quorum, so neither can be told.
    for (manager, lease) in [(&rivals.holder, &rivals.held), (&rivals.rival, &rivals.wanted)] {
        assert_eq!(manager.confirm(lease, 1000), REDLOCK_OK, "{}", lease.message());
    }
}

/// From three servers to five in one step, two quorums need not overlap. With one server at a time they do.
#[test]
fn t02_a_list_grows_by_one_server_at_a_time() {
    let servers = Cluster::start(5);
    let old = Manager::of(&servers[..3]);
    old.connect_to_all();
    let held = old.take(RESOURCE, TTL);
    // The lock of an old client, on only as many servers as it needs.
    wait_until("it is on all three", || servers.having(RESOURCE) == 3);
    servers[0].must(&["DEL", RESOURCE]);
    assert_eq!(old.confirm(&held, 1000), REDLOCK_OK, "{}", held.message());

    let wanted = Lease::new();
    let four = Manager::of(&servers[..4]);
    four.connect_to_all();
    assert_ne!(four.try_lock(RESOURCE, TTL, 0, &wanted), REDLOCK_OK);
    wait_until("what it was granted is released", || servers.having(RESOURCE) == 2);

    let five = patient(&servers);
    five.connect_to_all();
    assert_eq!(five.try_lock(RESOURCE, TTL, 0, &wanted), REDLOCK_OK, "{}", wanted.message());
    assert!(held.is_held() && wanted.is_held(), "nothing was broken, so this test shows nothing");
}
