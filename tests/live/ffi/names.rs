//! Names of resources, from the shortest to the longest, of any bytes.

use std::collections::BTreeSet;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN};

use crate::support::{Cluster, Lease, Manager, Reply, Server, wait_until};
use crate::{Holder, TTL, all_differ, refused, refused_with};

const LONGEST: usize = 64 * 1024;

#[test]
fn an_empty_or_too_long_name_is_refused_by_every_call() {
    let holder = Holder::new();
    let manager = &holder.manager;
    let mut messages = Vec::new();
    for (name, words) in [
        (String::new(), "resource is empty"),
        ("x".repeat(LONGEST + 1), "resource is 65537 bytes long: the maximum is 65536"),
        ("x".repeat(10 * LONGEST), "resource is 655360 bytes long: the maximum is 65536"),
    ] {
        for lease in [&holder.lease, &Lease::new()] {
            holder.nothing_happens(|| {
                refused_with(lease, manager.lock(&*name, TTL, lease), &[words]);
                refused_with(lease, manager.try_lock(&*name, TTL, -1, lease), &[words]);
                refused_with(lease, manager.continue_lock(&*name, TTL, lease), &[words]);
                refused(manager, manager.is_locked(&*name).expect_err("refused"), &[words]);
            });
            messages.push(manager.message());
        }
    }
    messages.dedup();
    assert_eq!(messages.len(), 3);
    all_differ(&messages);
}

#[test]
fn a_name_of_64_kib_is_used_unchanged() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    for (length, byte) in [(LONGEST, "x"), (LONGEST - 1, "\u{1}"), (LONGEST, "%")] {
        serves_as_a_name(&manager, &cluster, byte.repeat(length).as_bytes());
    }
}

#[test]
fn a_name_may_contain_any_byte_but_nul() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let all: Vec<u8> = (1..=255).collect();
    serves_as_a_name(&manager, &cluster, &all);
    for byte in all {
        serves_as_a_name(&manager, &cluster, &[byte]);
    }
}

#[test]
fn a_name_has_no_special_meaning() {
    const NAMES: [&[u8]; 16] = [
        b" ",
        b"\n",
        b"\r\n",
        b"a\nb\r\n$3\r\nDEL",
        b"*1\r\n$8\r\nFLUSHALL\r\n",
        b"%s%n%d%99999s",
        b"{}{0}{:?}",
        b"{tag}name",
        b"*",
        b"[a-z]?\\*",
        b"../../etc",
        b"'\"; DROP",
        b"\xff\xfe\x80",
        b"\xc3",
        b"\xed\xa0\x80",
        "Schl\u{f6}\u{df}er \u{1f512}".as_bytes(),
    ];
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    for name in NAMES {
        serves_as_a_name(&manager, &cluster, name);
    }
}

#[test]
fn a_long_name_is_not_repeated_in_messages() {
    let server = Server::start();
    let (manager, other) = (Manager::at(&[server.address()]), Manager::at(&[server.address()]));
    let name = "secret-name-".repeat(5_000);
    let _held = other.take(&name, TTL);
    let lease = Lease::new();
    assert_eq!(manager.try_lock(&*name, TTL, 0, &lease), REDLOCK_TAKEN);
    assert!(lease.message().len() < 1000, "{} bytes", lease.message().len());
    assert_eq!(lease.resource(), name);
}

/// A manager with a connection to every server. Otherwise a lock would be complete with a quorum.
#[track_caller]
fn connected(cluster: &Cluster) -> Manager {
    let manager = cluster.manager();
    wait_until("all servers are connected", || {
        manager.connect(0) == REDLOCK_OK && manager.message().is_empty()
    });
    manager
}

/// A lock of this name is taken under exactly this key, excludes other clients, is kept and released.
#[track_caller]
fn serves_as_a_name(manager: &Manager, cluster: &Cluster, name: &[u8]) {
    let lease = Lease::new();
    assert_eq!(manager.lock(name, TTL, &lease), REDLOCK_OK, "{}", lease.message());
    wait_until("the key is the name as given", || {
        cluster.iter().all(|it| keys(it) == BTreeSet::from([name.to_vec()]))
    });
    assert_eq!(manager.is_locked(name), Ok(true), "{}", manager.message());
    assert_eq!(manager.try_lock(name, TTL, 0, &Lease::new()), REDLOCK_TAKEN);
    assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.continue_lock(name, 2 * TTL, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    wait_until("the key is gone", || cluster.iter().all(|it| keys(it).is_empty()));
}

/// What the library notes on a server beside locks.
const OWN: [&[u8]; 2] = [b"redlock:guard", b"redlock:fence"];

fn keys(server: &Server) -> BTreeSet<Vec<u8>> {
    let Reply::Array(keys) = server.must(&["KEYS", "*"]) else { panic!("no list of keys") };
    let bytes = |key| match key {
        Reply::Bulk(bytes) => bytes,
        other => panic!("not a key: {other:?}"),
    };
    keys.into_iter().map(bytes).filter(|key| !OWN.contains(&&**key)).collect()
}
