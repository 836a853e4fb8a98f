//! Servers that close connections, or accept no more of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::rivals::{RESOURCE, Rivals};
use crate::support::product::product;
use crate::support::resp::Connection;
use crate::support::usage::{
    DEADLINE, PATIENT_MS, TOO_LONG, TTL, addresses, blames, connected, everything_works, in_time,
    make_brief, nothing_is_left, patient,
};
use crate::support::{Cluster, Lease, Server, wait_until, wait_until_ok};

#[test]
fn s18_a_full_server_is_named_and_used_again_later() {
    let cluster = Cluster::start(3);
    let held = connected(&cluster);
    let lease = held.take(RESOURCE, TTL);
    let limit = |server: &Server, most| _ = server.must(&["CONFIG", "SET", "maxclients", most]);
    limit(&cluster[0], "1");
    let manager = patient(&cluster);
    in_time(TOO_LONG, || everything_works(&manager, "other"));
    limit(&cluster[1], "1");
    let manager = cluster.manager();
    make_brief(&manager);
    let refused = Lease::new();
    wait_until_ok("the message tells what is wrong", || {
        in_time(DEADLINE, || {
            assert_eq!(manager.try_lock("other", TTL, 0, &refused), REDLOCK_UNREACHABLE);
        });
        blames(&refused.message(), &addresses(&cluster[..2]), &["max number of clients"])
    });
    // An existing connection stays open.
    assert_eq!(held.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    cluster.iter().for_each(|it| limit(it, "100"));
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    wait_until("it is let in", || manager.try_lock("other", TTL, 0, &refused) == REDLOCK_OK);
}

#[test]
fn s18_connections_closed_for_idleness_are_harmless() {
    let cluster = Cluster::start_each(3, || Server::start_with(&["--timeout", "1"]));
    let rivals = Rivals::of(&cluster);
    for server in cluster.iter() {
        wait_until("nobody is connected but who asks", || clients(server) == 1);
    }
    // At the first call, and at once.
    let (manager, lease) = (&rivals.holder, &rivals.held);
    assert_eq!(manager.extend(lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(rivals.try_to_take_over(), REDLOCK_TAKEN, "{}", rivals.wanted.message());
    assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(rivals.try_to_take_over(), REDLOCK_OK, "{}", rivals.wanted.message());
}

/// The name is too long for the memory that a client may use on the server.
#[test]
fn s18_connections_closed_for_lack_of_memory_are_replaced() {
    if product().is_before_7() {
        println!("left out: before Redis 7.0 no server closes connections for want of memory");
        return;
    }
    let cluster = Cluster::start(3);
    let rivals = Rivals::of(&cluster);
    let long = "x".repeat(65_536);
    for server in &cluster[..2] {
        server.must(&["CLIENT", "NO-EVICT", "ON"]);
        server.must(&["CONFIG", "SET", "maxmemory-clients", "50000"]);
    }
    let refused = Lease::new();
    let status = rivals.rival.try_lock(&*long, TTL, 0, &refused);
    assert_eq!(status, REDLOCK_UNREACHABLE, "{}", refused.message());
    let closed = ["closed by the server", "reset"];
    assert_eq!(blames(&refused.message(), &addresses(&cluster[..2]), &closed), Ok(()));
    // The release that the manager has to send there is as long, and closes the next connections, too.
    let status = rivals.try_to_take_over();
    assert!([REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status), "{}", rivals.wanted.message());
    wait_until("the holder keeps it", || {
        rivals.holder.confirm(&rivals.held, 0) == REDLOCK_OK
            && rivals.holder.extend(&rivals.held, TTL) == REDLOCK_OK
    });
    assert_eq!(rivals.holders(), 1);
    for server in &cluster[..2] {
        server.must(&["CONFIG", "SET", "maxmemory-clients", "0"]);
    }
    rivals.one_holds();
    nothing_is_left(&rivals.rival, &cluster, &long);
    everything_works(&rivals.rival, &long);
}

/// The number of connected clients, including the one that asks. It asks over its own connection, because kept
/// connections may be closed.
pub(crate) fn clients(server: &Server) -> usize {
    let mut connection = Connection::open(&server.address()).expect("it can be reached");
    let list = connection.command(&["CLIENT", "LIST", "TYPE", "normal"]).expect("it answers");
    list.text().expect("a list").lines().count()
}

#[test]
fn s18_no_grant_is_lost_while_connections_are_killed() {
    let cluster = Cluster::start(5);
    let rivals = Rivals::of(&cluster);
    let (manager, lease) = (&rivals.holder, &rivals.held);
    assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for server in cluster.iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                server.must(&["CLIENT", "KILL", "TYPE", "normal"]);
                // Most of them are connected most of the time.
                thread::sleep(Duration::from_millis(20));
            }
        });
        let locking = scope.spawn(|| {
            for _ in 0..150 {
                let status = manager.try_lock(RESOURCE, TTL, PATIENT_MS, lease);
                assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                let others = rivals.try_to_take_over();
                assert!([REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&others), "{others:?}");
                let status = manager.unlock(lease);
                assert!([REDLOCK_OK, REDLOCK_UNREACHABLE].contains(&status), "{}", lease.message());
            }
        });
        let locked = locking.join();
        done.store(true, Ordering::Relaxed);
        locked.expect("every lock is had, and none twice");
    });
    rivals.nothing_is_left(&cluster);
}
