//! A slot that goes from node to node and back, while workers lock through it.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::owners::{LONG_TTL, RESOURCE, take};
use crate::storm::{self, Load};
use crate::support::nodes::{Nodes, is_of_memory};
use crate::support::usage::{self, everything_works};
use crate::support::{Lease, Manager, wait_until_ok};

const WORKERS: u64 = 50;
const MANAGERS: usize = 5;

fn managers(urls: &[String]) -> Vec<Manager> {
    (0..MANAGERS).map(|_| Manager::of_urls(urls)).collect()
}

#[track_caller]
fn nothing_is_left(nodes: &Nodes) {
    wait_until_ok("no key is left", || match nodes.keys() {
        keys if keys.is_empty() => Ok(()),
        keys => Err(format!("{keys:?}")),
    });
}

/// Locks last longer than the test, so keys go only if they are released. The voter has no vote after the first move.
#[test]
fn o07_one_of_three_voters_goes_from_node_to_node() {
    let nodes = Nodes::start(4, false);
    let tags = [0, 1, 2].map(|master| nodes.used_tag_at(master, usage::TTL));
    let managers = managers(&tags.each_ref().map(|it| nodes.url(it)));
    let load = Load { workers: WORKERS, ttl_ms: usage::TTL, hold_ms: 60, some_vanish: false };
    let said = storm::run(&managers, load, |board| {
        for way in [0, 3, 0, 3, 0, 3].windows(2) {
            let [from, to] = [way[0], way[1]].map(|it| &nodes.servers[it]);
            nodes.move_slot(&tags[0], from, to);
            board.await_lock();
        }
    });
    println!("{said}");
    for manager in &managers {
        everything_works(manager, "after");
    }
    nothing_is_left(&nodes);
}

/// Each new owner waits before it votes. Every second move loses all locks: they were never there for the new owner.
#[test]
fn o07_the_only_voter_goes_from_node_to_node() {
    const TTL: i64 = 1_500;
    let nodes = Nodes::start(2, false);
    let tag = nodes.used_tag_at(0, TTL);
    let managers = managers(&[nodes.url(&tag)]);
    let load = Load { workers: WORKERS, ttl_ms: TTL, hold_ms: 1_500, some_vanish: true };
    let said = storm::run(&managers, load, |board| {
        for number in 0..4 {
            let [from, to] = [number % 2, 1 - number % 2].map(|it| &nodes.servers[it]);
            let is_lost = |key: &str| number % 2 == 1 && !is_of_memory(key);
            nodes.move_slot_and_lose(&tag, from, to, is_lost);
            board.await_lock();
        }
    });
    println!("{said}");
    for manager in &managers {
        let lease = take(manager, "after", TTL);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
    nothing_is_left(&nodes);
}

/// A node that takes a slot begins an epoch. So nobody knows whether it was the master all the time.
#[test]
fn o07_the_other_voters_of_the_new_owner_wait_too() {
    let nodes = Nodes::start(2, false);
    let [other, moved] = [0, 1].map(|master| nodes.used_tag_at(master, LONG_TTL));
    let manager = Manager::of_urls(&[nodes.url(&other)]);
    manager.unlock(&manager.take(RESOURCE, LONG_TTL));
    nodes.move_slot(&moved, &nodes.servers[1], &nodes.servers[0]);
    let lease = Lease::new();
    wait_until_ok("it has no vote", || match manager.try_lock(RESOURCE, LONG_TTL, 0, &lease) {
        REDLOCK_UNREACHABLE if lease.message().contains("lost its data") => Ok(()),
        status => {
            manager.unlock(&lease);
            Err(format!("{status:?}: {}", lease.message()))
        }
    });
}
