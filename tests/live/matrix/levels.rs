//! A lock that is held at several levels (RedLock_Retain). No other client takes it before the last unlock. A
//! caller that leaves a level is told if the lock was lost.

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN,
    REDLOCK_UNREACHABLE,
};

use crate::support::usage::{TTL, connected, make_brief, nothing_is_left};
use crate::support::{Cluster, Lease, Server, wait_until};

const RESOURCE: &str = "r";

#[test]
fn l01_a_release_needs_as_many_unlocks_as_levels() {
    let cluster = Cluster::start(3);
    let (manager, rival) = (connected(&cluster), connected(&cluster));
    let (lease, other) = (manager.take(RESOURCE, TTL), Lease::new());
    cluster.wait_until_everywhere(RESOURCE);
    // Only the release is a script here.
    let evals = || -> u64 { cluster.iter().map(|it| it.scripts()).sum() };
    let before = evals();
    for level in 2..=5 {
        assert_eq!(lease.retain(), REDLOCK_OK, "{}", lease.message());
        assert_eq!(lease.levels(), level);
    }
    assert_eq!(manager.detach(&lease), Err(REDLOCK_INVALID_ARGUMENT));
    assert!(lease.message().contains("held at 5 levels"), "{}", lease.message());
    // Blocking or submitted: each call has its own end.
    for level in (1..=4).rev() {
        if level % 2 == 0 {
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        } else {
            assert_eq!(manager.submit_unlock(&lease, level), REDLOCK_OK, "{}", lease.message());
            assert_eq!(lease.retain(), REDLOCK_INVALID_ARGUMENT, "in the midst of a call");
            let event = manager.next_event(-1).expect("one follows");
            assert_eq!((event.status, event.user_data), (REDLOCK_OK, level));
        }
        assert_eq!(lease.levels(), i32::try_from(level).unwrap());
        assert!(lease.is_held());
        assert_eq!(evals(), before, "servers were asked");
    }
    assert_eq!(rival.try_lock(RESOURCE, TTL, 0, &other), REDLOCK_TAKEN);
    assert_eq!(manager.next_event(0), None);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(lease.levels(), 0);
    nothing_is_left(&manager, &cluster, RESOURCE);
    // The lease begins with one level when it is used again, also if its levels did not come down to zero.
    assert_eq!(manager.try_lock(RESOURCE, 300, 0, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(lease.retain(), REDLOCK_OK);
    wait_until("it expires", || !lease.is_held());
    assert_eq!(manager.try_lock("another", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(lease.levels(), 1);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn l02_a_lost_lock_is_reported_at_every_level() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let empty = Lease::new();
    assert_eq!(empty.retain(), REDLOCK_LOST);
    assert_eq!((empty.levels(), empty.message()), (0, "the lease holds no lock".to_owned()));
    // The loss is found by an extension.
    let lease = manager.take(RESOURCE, TTL);
    (0..2).for_each(|_| assert_eq!(lease.retain(), REDLOCK_OK));
    cluster.wait_until_everywhere(RESOURCE);
    cluster.iter().for_each(|it| _ = it.must(&["DEL", RESOURCE]));
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "nobody can know it yet");
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST);
    assert_eq!(lease.retain(), REDLOCK_LOST);
    assert_eq!([(); 2].map(|()| manager.unlock(&lease)), [REDLOCK_LOST; 2]);
    // The loss is found by the clock.
    let lease = manager.take(RESOURCE, 300);
    (0..2).for_each(|_| assert_eq!(lease.retain(), REDLOCK_OK));
    wait_until("it expires", || !lease.is_held());
    assert_eq!(lease.retain(), REDLOCK_LOST);
    assert!(lease.message().contains("expired"), "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
    assert_eq!(manager.submit_unlock(&lease, 7), REDLOCK_OK);
    assert_eq!(manager.next_event(-1).map(|it| it.status), Some(REDLOCK_LOST));
    assert_eq!(lease.levels(), 1);
    nothing_is_left(&manager, &cluster, RESOURCE);
}

#[test]
fn l03_a_lock_is_kept_until_its_last_level_ends() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take(RESOURCE, 900);
    assert_eq!(lease.retain(), REDLOCK_OK);
    assert_eq!(manager.keep_alive(&lease, 7), REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    let (mut renewed, mut last) = (0, lease.remaining_ms());
    while renewed < 4 {
        assert_eq!(manager.next_event(10), None, "it was lost");
        let now = lease.remaining_ms();
        assert!(now > 0, "it has expired");
        renewed += i32::from(now > last);
        last = now;
    }
    assert_eq!(lease.retain(), REDLOCK_OK);
    assert_eq!([(); 2].map(|()| manager.unlock(&lease)), [REDLOCK_OK; 2]);
    nothing_is_left(&manager, &cluster, RESOURCE);
    assert_eq!(manager.next_event(0), None);
}

/// A call that cannot reach the servers, or is cancelled, leaves the levels as they are.
#[test]
fn l04_failing_servers_and_cancelled_calls_keep_the_levels() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take(RESOURCE, TTL);
    (0..2).for_each(|_| assert_eq!(lease.retain(), REDLOCK_OK));
    make_brief(&manager);
    cluster.iter().for_each(Server::freeze);
    // No server is needed for this.
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_UNREACHABLE);
    assert_eq!(manager.submit_extend(&lease, TTL, 1), REDLOCK_OK);
    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
    assert_eq!(manager.next_event(-1).map(|it| it.status), Some(REDLOCK_CANCELLED));
    assert_eq!(lease.levels(), 2);
    assert!(lease.is_held());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE);
    assert_eq!((lease.levels(), lease.retain()), (1, REDLOCK_LOST));
    cluster.iter().for_each(Server::resume);
    wait_until("it is released", || manager.unlock(&lease) == REDLOCK_OK);
    nothing_is_left(&manager, &cluster, RESOURCE);
}
