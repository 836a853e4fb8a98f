// The data on the servers while a lock is held. The library and other clients respect each other's locks.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::support::product::product;
use crate::support::{Cluster, Lease, Manager, Proxy, Server, Way};
use crate::{TTL, everywhere_is, passed_ms, patient};

#[test]
fn the_key_is_the_resource_and_the_value_a_token() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    for (resource, ttl_ms) in
        [("r", TTL), ("two words\r\n\"ä\" \u{1}", 47_111), ("*", 1_000_000_007)]
    {
        let start = Instant::now();
        let lease = manager.take(resource, ttl_ms);
        cluster.wait_until_everywhere(resource);
        let token = lease.token();
        assert_eq!(token.len(), 40);
        assert!(token.bytes().all(|it| matches!(it, b'0'..=b'9' | b'A'..=b'F')));
        for server in cluster.iter() {
            let left = server.pttl(resource);
            assert!(left <= ttl_ms && left >= ttl_ms - passed_ms(start) - 2, "{left} of {ttl_ms}");
            assert_eq!(server.get(resource).as_deref(), Some(&*token));
        }
        assert_eq!(lease.resource(), resource);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        cluster.wait_until_gone(resource);
    }
}

#[test]
fn a_foreign_lock_keeps_us_out() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    for server in cluster.iter() {
        assert!(server.command(&["SET", "r", "theirs", "NX", "PX", "600000"]).is_ok());
    }
    let lease = Lease::new();
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_TAKEN);
    assert_eq!(manager.continue_lock("r", TTL, &lease), REDLOCK_TAKEN);
    assert_eq!(manager.is_locked("r"), Ok(true));
    assert!(!lease.is_held());
    assert_eq!((lease.remaining_ms(), lease.validity_ms()), (0, 0));
    assert_eq!(lease.token(), "");
    everywhere_is(&cluster, "r", Some("theirs"));
}

#[test]
fn our_lock_keeps_other_clients_out() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    for server in cluster.iter() {
        assert!(!server.command(&["SET", "r", "theirs", "NX", "PX", "600000"]).is_ok());
    }
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    cluster.wait_until_gone("r");
    for server in cluster.iter() {
        assert!(server.command(&["SET", "r", "theirs", "NX", "PX", "600000"]).is_ok());
    }
}

#[test]
fn every_attempt_has_its_own_token() {
    let server = Server::start();
    server.must(&["SET", "r", "theirs"]);
    let (proxy, sent) = (Proxy::to(&server), Arc::<Mutex<Vec<u8>>>::default());
    proxy.alter(Way::Requests, {
        let sent = Arc::clone(&sent);
        move |requests| {
            sent.lock().expect("not poisoned").extend_from_slice(&requests);
            requests
        }
    });
    let manager = Manager::at(&[proxy.address()]);
    manager.set_retry(7, 1);
    assert_eq!(manager.lock("r", TTL, &Lease::new()), REDLOCK_TAKEN);
    let sent = String::from_utf8_lossy(&sent.lock().expect("not poisoned")).into_owned();
    let sets = sent.split("\r\nSET\r\n$1\r\nr\r\n$40\r\n").skip(1);
    let tokens: Vec<_> = sets.map(|after| &after[..40]).collect();
    let distinct: HashSet<_> = tokens.iter().collect();
    assert_eq!((tokens.len(), distinct.len()), (7, 7));
}

/// Each of these attempts leaves a release that the server answers with an error. These releases must not delay
/// locks of other resources.
#[test]
fn many_refusals_do_not_delay_other_locks() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    for server in cluster.iter() {
        server.must(&["HSET", "jobs", "a", "b"]);
    }
    let lease = Lease::new();
    for _ in 0..1_500 {
        assert_eq!(manager.try_lock("jobs", TTL, 0, &lease), REDLOCK_TAKEN);
    }
    assert_eq!(manager.try_lock("other", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
}

/// Without the right to delete keys nothing can be released. New locks must still be granted.
#[test]
fn forbidden_releases_do_not_delay_other_locks() {
    let cluster = Cluster::start(3);
    for server in cluster.iter() {
        server.must(&[&["ACL", "SETUSER", "default"], product().without_releases()].concat());
    }
    let manager = patient(&cluster);
    for round in 0..1_500 {
        let lease = Lease::new();
        let status = manager.try_lock(format!("r{round}"), TTL, 0, &lease);
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE);
    }
}
