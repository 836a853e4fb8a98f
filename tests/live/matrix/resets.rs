//! A conversation that is cut off at any byte, on either side.

use std::thread;

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::rig::manager_through;
use crate::support::proxy::BOTH;
use crate::support::usage::{TTL, interrupted_lock};
use crate::support::{Cluster, Lease, Manager, Proxy, Way, wait_until};

/// The places to cut are shared among this many threads. Each thread has its own servers.
const THREADS: usize = 4;

#[test]
fn n03_a_reset_at_any_byte_of_the_only_server_leaves_nothing() {
    for way in BOTH {
        at_every_byte(1, (way, way.step()), 1, |manager| {
            interrupted_lock(manager, "r");
        });
    }
}

#[test]
fn n03_a_reset_at_any_byte_of_one_server_of_three_is_harmless() {
    for way in BOTH {
        at_every_byte(3, (way, way.step()), 1, |manager| {
            // Otherwise one of the other two may not be connected yet.
            manager.connect_to_all();
            let lease = Lease::new();
            assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
            assert!(lease.remaining_ms() > TTL);
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        });
    }
}

/// Repeats this conversation with a manager of this many servers. Each time the connection to the first server
/// is reset some bytes later. The conversation sets a key there at most `sets` times.
pub(crate) fn at_every_byte(
    servers: usize,
    (way, step): (Way, usize),
    sets: u64,
    converse: impl Fn(&Manager) + Sync,
) {
    let converse = &converse;
    let cut = |from: usize| {
        let servers = Cluster::start(servers);
        let proxies: Vec<_> = servers.iter().map(Proxy::to).collect();
        let length = length(&servers, &proxies, way, converse);
        assert!(length > 100, "{length} bytes are no conversation");
        for count in (0..=length).skip(from * step).step_by(THREADS * step) {
            cut_at(&servers, &proxies, (way, count), sets, converse);
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || cut(thread));
        }
    });
}

/// How many bytes the first server sends or gets in the conversation.
fn length(servers: &Cluster, proxies: &[Proxy], way: Way, converse: impl Fn(&Manager)) -> u64 {
    let manager = manager_through(proxies);
    converse(&manager);
    wait_until("nothing is left", || has_nothing(servers));
    drop(manager);
    is_closed(&proxies[0]);
    proxies[0].sent(way)
}

fn cut_at(
    servers: &Cluster,
    proxies: &[Proxy],
    (way, count): (Way, u64),
    sets: u64,
    converse: impl Fn(&Manager),
) {
    let manager = manager_through(proxies);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    let before = proxies[0].connections().len();
    proxies[0].reset_after(way, count);
    let sets = servers[0].calls("set") + sets;
    converse(&manager);
    // On a busy machine the other servers may finish the conversation before this server hears of it. The
    // conversation may also need fewer requests than when the bytes were counted.
    wait_until("the connection is reset, and made anew", || {
        let _ = manager.is_locked("another");
        manager.connect_to_all();
        proxies[0].connections().len() >= before + 2
    });
    wait_until("what was granted is released", || {
        manager.is_locked("another") == Ok(false) && has_nothing(servers)
    });
    assert!(servers[0].calls("set") <= sets, "a request to take a lock was sent twice");
    let lease = manager.take("r", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "after byte {count}: {}", lease.message());
    drop(manager);
    wait_until("nothing is left", || has_nothing(servers));
    is_closed(&proxies[0]);
}

fn has_nothing(servers: &Cluster) -> bool {
    servers.iter().all(|it| it.locks() == 0)
}

/// A freed manager leaves no connection open. A slow server may answer after the client has closed. Those bytes
/// must not count for the next reset.
#[track_caller]
fn is_closed(proxy: &Proxy) {
    wait_until("all connections are closed, at both ends", || proxy.is_idle());
}
