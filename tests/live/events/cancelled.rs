//! Calls that are cancelled, blocking and submitted, at any stage: none of them leaves a lock.

use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_CANCELLED, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::TTL;
use crate::support::events::Wanted;
use crate::support::usage::connected;
use crate::support::{Cluster, Lease, wait_until};

#[test]
fn a_thread_waiting_for_a_lock_can_be_cancelled() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let held = manager.take("r", TTL);
    for _ in 0..20 {
        thread::scope(|scope| {
            let waiter = scope.spawn(|| manager.try_lock("r", TTL, -1, &lease));
            // A call that has not begun cannot be cancelled.
            wait_until("it is cancelled", || {
                assert_eq!(manager.cancel(&lease), REDLOCK_OK);
                waiter.is_finished()
            });
            assert_eq!(waiter.join().expect("no panic"), REDLOCK_CANCELLED);
        });
        assert!(lease.message().contains("cancelled"), "{}", lease.message());
        assert!(!lease.is_held());
    }
    assert!(held.is_held(), "a lock that is held stays held");
    assert_eq!(manager.unlock(&held), REDLOCK_OK);
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn a_thread_waiting_for_servers_can_be_cancelled() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    manager.connect_to_all();
    cluster.iter().for_each(|server| server.freeze());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| manager.lock("r", TTL, &lease));
        wait_until("it is cancelled", || {
            assert_eq!(manager.cancel(&lease), REDLOCK_OK);
            waiter.is_finished()
        });
        assert_eq!(waiter.join().expect("no panic"), REDLOCK_CANCELLED);
    });
    cluster.iter().for_each(|server| server.resume());
    // The servers execute both requests, one after the other.
    let next = manager.take("s", TTL);
    cluster.wait_until_everywhere("s");
    cluster.wait_until_gone("r");
    drop(next);
}

#[test]
fn a_connecting_thread_can_be_cancelled() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|server| server.freeze());
    let (manager, lease) = (cluster.manager(), Lease::new());
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| manager.lock("r", TTL, &lease));
        wait_until("it is cancelled", || {
            assert_eq!(manager.cancel(&lease), REDLOCK_OK);
            waiter.is_finished()
        });
        assert_eq!(waiter.join().expect("no panic"), REDLOCK_CANCELLED);
    });
    cluster.iter().for_each(|server| server.resume());
}

#[test]
fn a_cancelled_submitted_call_still_has_its_event() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let held = manager.take("r", TTL);
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("r", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &lease, 3), REDLOCK_OK);
    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
    let event = manager.event();
    assert_eq!((event.status, event.user_data), (REDLOCK_CANCELLED, 3));
    assert_eq!(manager.next_event(0), None, "and no other");
    assert!(held.is_held());
}

#[test]
fn a_freed_lease_cancels_its_call() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    // While it waits, and after the lock was taken but its event was not.
    let held = manager.take("r", TTL);
    let lease = Lease::new();
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("r", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &lease, 1), REDLOCK_OK);
    drop(lease);
    assert_eq!(manager.event().status, REDLOCK_CANCELLED);
    assert_eq!(manager.unlock(&held), REDLOCK_OK);
    let lease = Lease::new();
    assert_eq!(manager.submit_acquire(&wanted, &lease, 2), REDLOCK_OK);
    let own = manager.take("s", TTL);
    cluster.wait_until_everywhere("r");
    drop(lease);
    assert_eq!(manager.event().status, REDLOCK_CANCELLED);
    let _ = manager.next_event(0);
    cluster.wait_until_gone("r");
    drop(own);
}

#[test]
fn a_lock_with_an_untaken_event_ends_with_its_manager() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 1), REDLOCK_OK);
    // A call that waits for its own result drives all calls.
    let own = manager.take("s", TTL);
    cluster.wait_until_everywhere("r");
    assert_eq!(manager.confirm(&own, 0), REDLOCK_OK, "{}", own.message());
    drop(manager);
    cluster.wait_until_gone("r");
    assert!(!lease.is_held());
    assert_eq!(cluster.manager().lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn a_cancelled_extension_or_confirmation_keeps_the_lock() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| server.freeze());
    for round in 0..2 {
        let status = match round {
            0 => manager.submit_extend(&lease, TTL, round),
            _ => manager.submit_confirm(&lease, 0, round),
        };
        assert_eq!(status, REDLOCK_OK);
        assert_eq!(manager.next_event(0), None);
        assert_eq!(manager.cancel(&lease), REDLOCK_OK);
        assert_eq!(manager.event().status, REDLOCK_CANCELLED);
        assert!(lease.is_held());
    }
    cluster.iter().for_each(|server| server.resume());
    assert_eq!(manager.confirm(&lease, 0), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn a_cancelled_release_goes_on_and_can_be_repeated() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| server.freeze());
    assert_eq!(manager.submit_unlock(&lease, 1), REDLOCK_OK);
    assert_eq!(manager.next_event(0), None);
    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
    assert_eq!(manager.event().status, REDLOCK_CANCELLED);
    assert!(!lease.is_held() && !lease.token().is_empty());
    cluster.iter().for_each(|server| server.resume());
    cluster.wait_until_gone("r");
    let status = manager.unlock(&lease);
    assert!([REDLOCK_OK, REDLOCK_UNREACHABLE].contains(&status), "{status:?}");
}

#[test]
fn cancelling_without_a_call_has_no_effect() {
    let cluster = Cluster::start(3);
    let (manager, other) = (cluster.manager(), cluster.manager());
    let lease = Lease::new();
    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
    assert!(lease.is_held());
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    // Through a manager other than that of the call, nothing is cancelled.
    let waiting = Lease::new();
    let wanted = Wanted { wait_ms: 500, ..Wanted::new("r", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &waiting, 1), REDLOCK_OK);
    assert_eq!(other.cancel(&waiting), REDLOCK_OK);
    assert_eq!(manager.next_event(0), None);
    assert_ne!(manager.event().status, REDLOCK_CANCELLED);
}
