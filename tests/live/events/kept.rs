//! Kept locks: they are kept as long as a thread drives, until they are unlocked. The holder is told in time if
//! a lock cannot be kept.

use std::thread;

use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

use crate::TTL;
use crate::support::events::Wanted;
use crate::support::usage::connected;
use crate::support::{Cluster, Lease, Manager, wait_until};

/// Short enough to be renewed while a test runs, and long enough for a busy machine, on which a process may get
/// no processor for seconds.
const SHORT: i64 = 8_000;

fn kept(resource: &str, ttl_ms: i64) -> Wanted {
    Wanted { keep_alive: true, ..Wanted::new(resource, ttl_ms) }
}

#[test]
fn a_kept_lock_outlives_its_ttl_with_a_driver() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    assert_eq!(manager.acquire(&kept("r", SHORT), &lease), REDLOCK_OK, "{}", lease.message());
    let first = lease.remaining_ms();
    let mut renewed = 0;
    let mut last = first;
    while renewed < 2 {
        assert_eq!(manager.next_event(20), None, "it was lost");
        let now = lease.remaining_ms();
        assert!(now > 0, "it has expired");
        renewed += i32::from(now > last);
        last = now;
    }
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone("r");
    assert_eq!(manager.next_event(SHORT / 2), None, "nothing is told of a lock that was unlocked");
}

#[test]
fn a_continued_lock_is_still_kept() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take("r", SHORT);
    assert_eq!(manager.keep_alive(&lease, 5), REDLOCK_OK);
    assert_eq!(manager.continue_lock("r", SHORT, &lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    let event = manager.event();
    assert_eq!((event.is_lost, event.status, event.user_data), (true, REDLOCK_LOST, 5));
}

#[test]
fn a_blocking_call_keeps_a_lock() {
    let cluster = Cluster::start(3);
    let (manager, other) = (cluster.manager(), cluster.manager());
    let taken = other.take("taken", TTL);
    let lease = manager.take("r", SHORT);
    assert_eq!(manager.keep_alive(&lease, 5), REDLOCK_OK);
    let waiting = Lease::new();
    let _ = manager.try_lock("taken", TTL, SHORT + SHORT / 2, &waiting);
    assert!(lease.is_held());
    drop(taken);
}

#[test]
fn one_dead_and_one_frozen_server_cost_no_renewal() {
    let cluster = Cluster::start(5);
    let (manager, lease) = (cluster.manager(), Lease::new());
    manager.connect_to_all();
    assert_eq!(manager.acquire(&kept("r", SHORT), &lease), REDLOCK_OK, "{}", lease.message());
    cluster[0].kill();
    cluster[1].freeze();
    assert_eq!(manager.next_event(SHORT + SHORT / 2), None);
    assert!(lease.is_held());
    cluster[1].resume();
}

#[test]
fn a_majority_loss_is_reported_and_never_undone() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let wanted = kept("r", SHORT);
    assert_eq!(manager.submit_acquire(&wanted, &lease, 9), REDLOCK_OK);
    assert_eq!(manager.event().status, REDLOCK_OK);
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    let event = manager.event();
    assert_eq!((event.is_lost, event.status), (true, REDLOCK_LOST));
    assert_eq!((event.lease, event.user_data), (lease.raw().addr(), 9));
    assert!(!lease.is_held());
    assert_eq!(cluster.having("r"), 0);
    assert_eq!(manager.next_event(SHORT / 2), None, "it is told once");
    assert_eq!(cluster.having("r"), 0, "it was taken again");
}

/// There are two events: one for the call that extended the lock, and one for the kept lock.
#[test]
fn a_lock_expired_before_its_extension_event_is_lost() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let ttl_ms = 3_000;
    assert_eq!(manager.acquire(&kept("r", ttl_ms), &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.submit_extend(&lease, ttl_ms, 9), REDLOCK_OK);
    // A quorum that has granted this has answered the extension.
    manager.take("other", TTL);
    cluster.wait_until_gone("r");
    let mut events = [manager.event(), manager.event()].map(|it| (it.is_lost, it.status));
    events.sort_unstable_by_key(|it| it.0);
    assert_eq!(events, [(false, REDLOCK_LOST), (true, REDLOCK_LOST)]);
    assert_eq!(manager.next_event(100), None, "each is told once");
}

/// If no caller was told that the lock was taken, no caller is told that it is lost.
#[test]
fn a_lock_expired_before_its_event_is_only_too_slow() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    assert_eq!(manager.submit_acquire(&kept("r", 3_000), &lease, 9), REDLOCK_OK);
    // A quorum that has granted this has granted the other.
    manager.take("other", TTL);
    cluster.wait_until_gone("r");
    let event = manager.event();
    assert_eq!((event.is_lost, event.status), (false, REDLOCK_TOO_SLOW), "{}", lease.message());
    assert_eq!(manager.next_event(100), None, "it was told twice");
}

/// The lease of a lost lock. The event of the loss has not been taken yet.
fn lost(cluster: &Cluster, manager: &Manager) -> Lease {
    let lease = Lease::new();
    assert_eq!(manager.acquire(&kept("r", SHORT), &lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    // Each of these calls drives, and takes no event.
    wait_until("the lock is lost", || {
        assert_eq!(manager.is_locked("other"), Ok(false));
        !lease.is_held()
    });
    lease
}

/// A caller that unlocks the lock hears of the loss by that call, and needs no second event.
#[test]
fn a_lock_in_unlock_is_not_reported_lost() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = lost(&cluster, &manager);
    assert_eq!(manager.submit_unlock(&lease, 7), REDLOCK_OK);
    let event = manager.event();
    assert_eq!((event.is_lost, event.user_data), (false, 7));
    assert_eq!(manager.next_event(100), None);
}

/// The lease that keeps the lock may release it, and so may a lease that continued it.
#[test]
fn a_lock_unlocked_by_another_lease_is_not_reported_lost() {
    let cluster = Cluster::start(3);
    let (manager, keeping, continuing) = (connected(&cluster), Lease::new(), Lease::new());
    assert_eq!(manager.continue_lock("r", SHORT, &keeping), REDLOCK_OK, "{}", keeping.message());
    assert_eq!(manager.keep_alive(&keeping, 5), REDLOCK_OK);
    let status = manager.continue_lock("r", SHORT, &continuing);
    assert_eq!(status, REDLOCK_OK, "{}", continuing.message());
    assert_eq!(keeping.token(), continuing.token(), "it is another lock");
    cluster.iter().take(2).for_each(|server| server.kill());
    let drive = || assert_eq!(manager.is_locked("other"), Err(REDLOCK_UNREACHABLE));
    wait_until("the lock ends", || {
        drive();
        !keeping.is_held()
    });
    // From now on there is an event that nobody has taken.
    drive();
    let _ = manager.unlock(&continuing);
    assert_eq!(manager.next_event(100), None);
}

#[test]
fn a_reused_lease_gets_no_news_of_its_old_lock() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = lost(&cluster, &manager);
    assert_eq!(manager.submit_acquire(&Wanted::new("next", TTL), &lease, 8), REDLOCK_OK);
    let event = manager.event();
    assert_eq!((event.is_lost, event.status, event.user_data), (false, REDLOCK_OK, 8));
    assert_eq!(manager.next_event(100), None);
}

#[test]
fn an_unkeepable_lock_is_reported_while_it_is_valid() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let ttl_ms = 10_000;
    assert_eq!(manager.acquire(&kept("r", ttl_ms), &lease), REDLOCK_OK, "{}", lease.message());
    cluster.iter().take(2).for_each(|server| server.kill());
    let event = manager.event();
    assert_eq!((event.is_lost, event.status), (true, REDLOCK_UNREACHABLE));
    assert!(event.remaining_ms > 0 && event.remaining_ms <= ttl_ms / 5, "{event:?}");
    assert!(lease.is_held());
    assert_eq!(manager.next_event(100), None, "it is told once");
}

#[test]
fn a_freed_lease_is_not_kept() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    assert_eq!(manager.acquire(&kept("r", SHORT), &lease), REDLOCK_OK, "{}", lease.message());
    drop(lease);
    wait_until("it ends with its time", || {
        assert_eq!(manager.next_event(10), None);
        cluster.having("r") == 0
    });
}

#[test]
fn a_lease_without_a_lock_cannot_be_kept() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    assert_eq!(manager.keep_alive(&lease, 1), REDLOCK_LOST);
    assert_eq!(manager.lock("r", 30, &lease), REDLOCK_OK, "{}", lease.message());
    wait_until("it expires", || !lease.is_held());
    assert_eq!(manager.keep_alive(&lease, 1), REDLOCK_LOST);
    assert_eq!(manager.next_event(0), None);
}

#[test]
fn a_lock_is_kept_with_its_last_ttl() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    assert_eq!(manager.acquire(&kept("r", SHORT), &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.next_event(SHORT / 2), None);
    assert!(lease.remaining_ms() > TTL - 60_000);
}

/// What a program with one thread, which only blocks, would believe to be kept.
#[test]
fn keep_alive_without_a_driver_is_refused_at_once() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let refused = |status: RedLockStatus, lease: &Lease| {
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
        assert!(lease.message().contains("RedLock_SetBackgroundThread"), "{}", lease.message());
    };
    let before = manager.stats().attempts;
    refused(manager.acquire_without_driver(&kept("r", TTL), &lease), &lease);
    assert_eq!(manager.stats().attempts, before);
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK);
    refused(manager.keep_alive_without_driver(&lease, 0), &lease);
    assert!(lease.is_held(), "the lock is not touched");
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);

    let drivers: [fn(&Manager); 3] = [
        |manager| assert_eq!(manager.set_background_thread(true), REDLOCK_OK),
        |manager| assert!(manager.descriptor() >= 0),
        |manager| assert_eq!(manager.next_event(0), None),
    ];
    for drive in drivers {
        let manager = cluster.manager();
        drive(&manager);
        assert_eq!(manager.acquire_without_driver(&kept("r", TTL), &lease), REDLOCK_OK);
        assert_eq!(manager.keep_alive_without_driver(&lease, 0), REDLOCK_OK);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    }
    // The thread was asked for, and is not any more.
    let manager = cluster.manager();
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    assert_eq!(manager.set_background_thread(false), REDLOCK_OK);
    refused(manager.acquire_without_driver(&kept("r", TTL), &lease), &lease);
}

#[test]
fn a_thread_waiting_for_its_call_keeps_other_locks() {
    let cluster = Cluster::start(3);
    let (manager, waiting, lease) = (connected(&cluster), Lease::new(), Lease::new());
    let held = manager.take("taken", TTL);
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("taken", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &waiting, 0), REDLOCK_OK);
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(manager.wait(&waiting, -1), REDLOCK_OK));
        wait_until("it waits", || {
            manager.acquire_without_driver(&kept("r", TTL), &lease) == REDLOCK_OK
        });
        assert_eq!(manager.unlock(&held), REDLOCK_OK);
    });
    let status = manager.keep_alive_without_driver(&lease, 0);
    assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "nobody waits any more");
}
