//! Each submitted call has exactly one event, with its result.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use redlock::ffi::lease::RedLockLease_ResourceSize;
use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SHORT,
    REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

use crate::TTL;
use crate::support::events::{Event, Wanted};
use crate::support::usage::connected;
use crate::support::{Cluster, Lease, wait_until};

/// The event of a call on this lease.
fn done(status: RedLockStatus, lease: &Lease, user_data: usize) -> Event {
    let lease = lease.raw().addr();
    Event { is_lost: false, status, lease, user_data, remaining_ms: 0 }
}

#[test]
fn a_lock_can_be_used_by_events_alone() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let wanted = Wanted::new("r", TTL);
    assert_eq!(manager.submit_acquire(&wanted, &lease, 7), REDLOCK_OK);
    assert_eq!(manager.event(), done(REDLOCK_OK, &lease, 7));
    assert!(lease.is_held() && lease.token().len() == 40 && lease.resource() == "r");
    cluster.wait_until_everywhere("r");

    assert_eq!(manager.submit_extend(&lease, 2 * TTL, 8), REDLOCK_OK);
    assert_eq!(manager.event(), done(REDLOCK_OK, &lease, 8));
    assert!(lease.remaining_ms() > TTL);
    assert_eq!(manager.submit_confirm(&lease, TTL, 9), REDLOCK_OK);
    assert_eq!(manager.event(), done(REDLOCK_OK, &lease, 9));
    assert_eq!(manager.submit_confirm(&lease, 3 * TTL, 9), REDLOCK_OK);
    assert_eq!(manager.event(), done(REDLOCK_TOO_SHORT, &lease, 9));
    assert!(lease.is_held(), "it is there, only not for so long");

    assert_eq!(manager.submit_unlock(&lease, 10), REDLOCK_OK);
    assert_eq!(manager.event(), done(REDLOCK_OK, &lease, 10));
    assert!(!lease.is_held() && lease.token().is_empty());
    cluster.wait_until_gone("r");
    assert_eq!(manager.next_event(0), None);
}

#[test]
fn a_failed_submitted_call_explains_itself() {
    let cluster = Cluster::start(3);
    let (manager, other, lease) = (cluster.manager(), cluster.manager(), Lease::new());
    let _held = other.take("r", TTL);
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 1), REDLOCK_OK);
    assert_eq!(manager.event(), done(REDLOCK_TAKEN, &lease, 1));
    assert!(lease.message().contains("held by another client"), "{}", lease.message());
    // The lease can be used again.
    assert_eq!(manager.lock("s", TTL, &lease), REDLOCK_OK, "{}", lease.message());
    cluster.iter().for_each(|server| server.kill());
    assert_eq!(manager.submit_extend(&lease, TTL, 2), REDLOCK_OK);
    assert_eq!(manager.event(), done(REDLOCK_UNREACHABLE, &lease, 2));
    assert!(lease.is_held(), "what was valid stays valid");
}

#[test]
fn a_submitted_call_reports_a_lost_lock() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    assert_eq!(manager.submit_extend(&lease, TTL, 1), REDLOCK_OK);
    assert_eq!(manager.event(), done(REDLOCK_LOST, &lease, 1));
    assert!(!lease.is_held());
}

#[test]
fn a_release_by_any_holder_ends_the_wait() {
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    let held = manager.take("r", TTL);
    let waiting: Vec<Lease> = (0..3).map(|_| Lease::new()).collect();
    let wanted = Wanted { wait_ms: 60_000, ..Wanted::new("r", TTL) };
    for (index, lease) in waiting.iter().enumerate() {
        assert_eq!(manager.submit_acquire(&wanted, lease, index), REDLOCK_OK);
    }
    assert_eq!(manager.next_event(0), None);
    assert_eq!(manager.unlock(&held), REDLOCK_OK);
    for (index, lease) in waiting.iter().enumerate() {
        assert_eq!(manager.event(), done(REDLOCK_OK, lease, index));
        assert_eq!(manager.submit_unlock(lease, 10 + index), REDLOCK_OK);
        if index + 1 == waiting.len() {
            assert_eq!(manager.event(), done(REDLOCK_OK, lease, 10 + index));
            continue;
        }
        // The release, and the lock of the next call, come in any order.
        let next = manager.event();
        if next.user_data == 10 + index {
            continue;
        }
        assert_eq!(next, done(REDLOCK_OK, &waiting[index + 1], index + 1));
        assert_eq!(manager.event(), done(REDLOCK_OK, lease, 10 + index));
        assert_eq!(manager.submit_unlock(&waiting[index + 1], 0), REDLOCK_OK);
        assert_eq!(manager.next_event(60_000).map(|it| it.status), Some(REDLOCK_OK));
        return;
    }
}

#[test]
fn ten_thousand_calls_can_run_at_once() {
    const CALLS: usize = 10_000;
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    let leases: Vec<Lease> = (0..CALLS).map(|_| Lease::new()).collect();
    for (index, lease) in leases.iter().enumerate() {
        let wanted = Wanted::new(format!("r{index}"), TTL);
        assert_eq!(manager.submit_acquire(&wanted, lease, index), REDLOCK_OK);
    }
    let mut seen = vec![false; CALLS];
    for _ in 0..CALLS {
        let event = manager.event();
        let lease = &leases[event.user_data];
        assert_eq!(event, done(REDLOCK_OK, lease, event.user_data), "{}", lease.message());
        assert!(!std::mem::replace(&mut seen[event.user_data], true), "told twice");
    }
    assert_eq!(manager.next_event(0), None);
    assert!(leases.iter().all(Lease::is_held));
    for (index, lease) in leases.iter().enumerate() {
        assert_eq!(manager.submit_unlock(lease, index), REDLOCK_OK);
    }
    assert!((0..CALLS).all(|_| manager.event().status == REDLOCK_OK));
    wait_until("all is released", || cluster.iter().all(|it| it.locks() == 0));
}

#[test]
fn blocking_calls_loops_and_threads_share_one_manager() {
    const EACH: usize = 200;
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    let (left, taken) = (AtomicUsize::new(2 * EACH), AtomicUsize::new(0));
    let leases: Vec<Lease> = (0..2 * EACH).map(|_| Lease::new()).collect();
    thread::scope(|scope| {
        // Two threads ask for events. One of them polls.
        for wait_ms in [100, 0] {
            let (manager, left, taken, leases) = (&manager, &left, &taken, &leases);
            scope.spawn(move || {
                while left.load(Ordering::Relaxed) > 0 {
                    let Some(event) = manager.next_event(wait_ms) else { continue };
                    assert_eq!(event.status, REDLOCK_OK);
                    if event.user_data == 0 {
                        left.fetch_sub(1, Ordering::Relaxed);
                    } else {
                        taken.fetch_add(1, Ordering::Relaxed);
                        let lease = &leases[event.user_data - 1];
                        assert_eq!(manager.submit_unlock(lease, 0), REDLOCK_OK);
                    }
                }
            });
        }
        for (thread, leases) in leases.chunks(EACH).enumerate() {
            let manager = &manager;
            scope.spawn(move || {
                let own = Lease::new();
                for (index, lease) in leases.iter().enumerate() {
                    let wanted =
                        Wanted { wait_ms: -1, ..Wanted::new(format!("s{}", index % 7), TTL) };
                    let user_data = thread * EACH + index + 1;
                    assert_eq!(manager.submit_acquire(&wanted, lease, user_data), REDLOCK_OK);
                    let name = format!("b{thread}");
                    assert_eq!(manager.lock(name, TTL, &own), REDLOCK_OK, "{}", own.message());
                    assert_eq!(manager.unlock(&own), REDLOCK_OK);
                }
            });
        }
    });
    assert_eq!(taken.load(Ordering::Relaxed), 2 * EACH);
    wait_until("all is released", || cluster.iter().all(|it| it.locks() == 0));
}

#[test]
fn a_late_taken_event_gives_no_lock() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    assert_eq!(manager.submit_acquire(&Wanted::new("r", 3_000), &lease, 1), REDLOCK_OK);
    // A blocking call also drives the other call. After that no thread takes its event.
    let own = manager.take("s", TTL);
    cluster.wait_until_gone("r");
    assert_eq!(manager.event(), done(REDLOCK_TOO_SLOW, &lease, 1));
    assert!(lease.message().contains("before the program read the result"), "{}", lease.message());
    assert!(!lease.is_held() && lease.token().is_empty());
    drop(own);
    let changes: [&dyn Fn() -> RedLockStatus; 3] = [
        &|| manager.submit_extend(&lease, 3_000, 1),
        &|| manager.submit_confirm(&lease, 0, 1),
        &|| manager.submit_downgrade(&lease, 1),
    ];
    for change in changes {
        assert_eq!(manager.lock("r", 3_000, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(change(), REDLOCK_OK);
        // A blocking call also drives the other call.
        assert!(manager.is_locked("s").is_ok());
        cluster.wait_until_gone("r");
        assert_eq!(manager.event(), done(REDLOCK_LOST, &lease, 1));
        assert!(!lease.is_held());
    }
}

#[test]
fn a_name_may_contain_nul_bytes() {
    let cluster = Cluster::start(1);
    let (manager, lease, other) = (cluster.manager(), Lease::new(), Lease::new());
    let names: [&[u8]; 3] = [b"a\0b", b"a", b"a\0"];
    for name in names {
        assert_eq!(manager.acquire(&Wanted::new(name, TTL), &lease), REDLOCK_OK);
        // SAFETY: the lease lives.
        assert_eq!(unsafe { RedLockLease_ResourceSize(lease.raw()) }, name.len());
        let before = cluster[0].locks();
        assert_eq!(manager.acquire(&Wanted::new(name, TTL), &other), REDLOCK_TAKEN);
        assert_eq!(cluster[0].locks(), before);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    }
    let empty = Wanted::new(b"\0".as_slice(), TTL);
    assert_eq!(manager.acquire(&empty, &lease), REDLOCK_OK);
    assert_eq!(manager.acquire(&empty, &lease), REDLOCK_INVALID_ARGUMENT);
}

#[test]
fn leases_outlive_a_freed_manager_and_its_events() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let held = manager.take("r", TTL);
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("r", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &lease, 1), REDLOCK_OK);
    drop(manager);
    assert!(lease.message().contains("freed"), "{}", lease.message());
    let next = cluster.manager();
    assert_eq!(next.unlock(&held), REDLOCK_OK, "{}", held.message());
    assert_eq!(next.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
}
