//! Taking a lock or renewing it, round after round.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::{Cluster, Lease, Server, wait_until};
use crate::{EndsOnDrop, TTL, everywhere_is, patient};

#[test]
fn continue_lock_keeps_the_lock_with_a_fresh_lease_each_time() {
    const ROUND_TTL: i64 = 4_000;
    let cluster = Cluster::start(3);
    let (manager, rival) = (patient(&cluster), patient(&cluster));
    let first = Lease::new();
    assert_eq!(manager.continue_lock("r", ROUND_TTL, &first), REDLOCK_OK);
    cluster.wait_until_everywhere("r");
    let token = first.token();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for server in cluster.iter() {
            let (done, token) = (&done, &token);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(server.get("r").as_deref(), Some(&**token), "a gap");
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        // The observing threads must end, whatever happens in between.
        let _ends = EndsOnDrop(&done);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5 * ROUND_TTL as u64 / 4) {
            let lease = Lease::new();
            let status = manager.continue_lock("r", ROUND_TTL, &lease);
            assert_eq!(status, REDLOCK_OK, "{}", lease.message());
            assert_eq!(lease.token(), token);
            assert!(lease.is_held());
            assert_eq!(rival.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_TAKEN);
            thread::sleep(Duration::from_millis(100));
        }
    });
    // A gap may be too short to be seen from outside.
    assert!(cluster.iter().all(|server| server.calls("del") == 0));
}

#[test]
fn continue_lock_keeps_two_resources_in_turn() {
    let cluster = Cluster::start(3);
    let (manager, rival) = (patient(&cluster), patient(&cluster));
    let mut tokens = Vec::new();
    for round in 0..6 {
        for (which, resource) in ["a", "b"].into_iter().enumerate() {
            let lease = Lease::new();
            let status = manager.continue_lock(resource, TTL, &lease);
            assert_eq!(status, REDLOCK_OK, "{resource}: {}", lease.message());
            if round == 0 {
                tokens.push(lease.token());
            }
            assert_eq!(lease.token(), tokens[which], "{resource} in round {round}");
            assert_eq!(lease.resource(), resource);
            cluster.wait_until_everywhere(resource);
        }
        for (resource, token) in ["a", "b"].into_iter().zip(&tokens) {
            everywhere_is(&cluster, resource, Some(token));
            assert_eq!(rival.try_lock(resource, TTL, 0, &Lease::new()), REDLOCK_TAKEN);
        }
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn a_failed_continue_lock_leaves_the_old_validity() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    manager.set_retry(1, 0);
    let lease = Lease::new();
    assert_eq!(manager.continue_lock("r", TTL, &lease), REDLOCK_OK);
    cluster.wait_until_everywhere("r");
    let token = lease.token();
    manager.set_timeouts(500, 500);
    cluster[..2].iter().for_each(Server::freeze);
    for handle in [&Lease::new(), &lease] {
        let before = lease.remaining_ms();
        assert_eq!(manager.continue_lock("r", 2 * TTL, handle), REDLOCK_UNREACHABLE);
        assert!(lease.is_held());
        assert!(lease.remaining_ms() <= before && lease.remaining_ms() > TTL / 2);
        assert_eq!(lease.token(), token);
    }
    cluster[..2].iter().for_each(Server::resume);
    wait_until("it is continued", || {
        let lease = Lease::new();
        match manager.continue_lock("r", 2 * TTL, &lease) {
            REDLOCK_UNREACHABLE => false,
            status => {
                assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                assert_eq!(lease.token(), token);
                true
            }
        }
    });
    everywhere_is(&cluster, "r", Some(&token));
}

#[test]
fn continue_lock_reports_a_lost_lock_once() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    manager.set_retry(1, 0);
    let lease = Lease::new();
    assert_eq!(manager.continue_lock("r", TTL, &lease), REDLOCK_OK);
    cluster.wait_until_everywhere("r");
    let token = lease.token();
    for server in cluster.iter() {
        server.must(&["SET", "r", "theirs"]);
    }
    assert_eq!(manager.continue_lock("r", TTL, &Lease::new()), REDLOCK_LOST);
    assert!(!lease.is_held(), "it is over for every handle of the lock");
    assert_eq!(manager.continue_lock("r", TTL, &Lease::new()), REDLOCK_TAKEN);
    everywhere_is(&cluster, "r", Some("theirs"));
    for server in cluster.iter() {
        server.must(&["DEL", "r"]);
    }
    let again = Lease::new();
    assert_eq!(manager.continue_lock("r", TTL, &again), REDLOCK_OK, "{}", again.message());
    assert_ne!(again.token(), token);
}

#[test]
fn continue_lock_after_the_end_does_not_take_over() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    manager.set_retry(1, 0);
    let lease = Lease::new();
    wait_until("it is had", || manager.continue_lock("r", 300, &lease) == REDLOCK_OK);
    cluster.wait_until_gone("r");
    for server in cluster.iter() {
        server.must(&["SET", "r", "theirs"]);
    }
    let status = manager.continue_lock("r", TTL, &Lease::new());
    assert!([REDLOCK_LOST, REDLOCK_TAKEN].contains(&status), "{status:?}");
    assert!(!lease.is_held());
    everywhere_is(&cluster, "r", Some("theirs"));
}

#[test]
fn continue_lock_renews_a_lease_from_lock() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", 20_000);
    let token = lease.token();
    assert_eq!(manager.continue_lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(lease.token(), token);
    assert!(lease.remaining_ms() > TTL / 2);
}

#[test]
fn an_unlock_by_one_handle_counts_for_all() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let (first, second) = (Lease::new(), Lease::new());
    assert_eq!(manager.continue_lock("r", TTL, &first), REDLOCK_OK);
    assert_eq!(manager.continue_lock("r", TTL, &second), REDLOCK_OK);
    assert_eq!(manager.unlock(&first), REDLOCK_OK, "{}", first.message());
    cluster.wait_until_gone("r");
    assert!(!second.is_held());
    assert_eq!(manager.unlock(&second), REDLOCK_LOST);
    let third = Lease::new();
    assert_eq!(manager.continue_lock("r", TTL, &third), REDLOCK_OK, "{}", third.message());
    assert!(third.is_held());
}
