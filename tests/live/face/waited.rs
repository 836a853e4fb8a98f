//! Futures that a thread waits for in slices.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use redlock::{Lease, Status};

use crate::executor::poll_once;
use crate::support::{Cluster, wait_until};
use crate::{TTL, driven, manager, options};

const SLICE: Duration = Duration::from_millis(5);

/// Nothing drives but the threads that wait.
#[test]
fn a_thread_can_wait_in_slices_for_each_call() {
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
    let held = manager.acquire(&options("r")).expect("it is free");
    let mut acquire = manager.acquire_async(&options("r").wait(TTL));
    for _ in 0..3 {
        assert!(acquire.wait_for(SLICE).is_none());
    }
    drop(held);
    let mut lease = acquire.wait_for(TTL).expect("in time").expect("it is free");
    assert!(lease.is_held());
    lease.extend_async(TTL * 3).wait_for(TTL).expect("in time").expect("it is held");
    assert!(lease.remaining() > TTL * 2);
    let short = lease.confirm_async(TTL * 9).wait_for(TTL).expect("in time");
    assert_eq!(short.expect_err("not so long").status(), Status::TooShort);
    let ticket = lease.detach().expect("it is held");
    let mut adopted = manager.adopt_async(&ticket);
    let mut lease = adopted.wait_for(Duration::MAX).expect("in time").expect("it is there");
    lease.unlock_async().wait_for(TTL).expect("in time").expect("it is held");
    cluster.wait_until_gone("r");
    let mut taken = manager.acquire_async(&options("s"));
    let _held = manager.acquire(&options("s")).expect("it is free");
    let taken = taken.wait_for(TTL).expect("in time").expect_err("it is held");
    assert_eq!(taken.status(), Status::Taken);
}

/// The thread of the manager may take the event between two slices, or at their end.
#[test]
fn an_event_taken_elsewhere_reaches_the_waiting_thread() {
    let cluster = Cluster::start(3);
    let (manager, order) = (driven(&cluster), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..40 {
                    let mut acquire = manager.acquire_async(&options("r").wait(TTL));
                    if round % 3 == 0 {
                        // It was polled before, as a task polls it.
                        assert!(poll_once(&mut acquire).is_pending());
                    }
                    let mut waited = None;
                    wait_until("it is taken", || {
                        waited = acquire.wait_for(SLICE);
                        waited.is_some()
                    });
                    let mut lease: Lease = waited.expect("an end").expect("it is free");
                    order.try_lock().expect("nobody else has it").push(round);
                    lease.unlock_async().wait_for(TTL).expect("in time").expect("it is held");
                }
            });
        }
    });
    assert_eq!(order.into_inner().expect("no panic").len(), 8 * 40);
}

#[test]
fn a_future_dropped_between_slices_leaves_no_lock() {
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
    for _ in 0..20 {
        let held = manager.acquire(&options("r")).expect("it is free");
        let mut acquire = manager.acquire_async(&options("r").wait(TTL));
        assert!(acquire.wait_for(Duration::ZERO).is_none());
        drop(held);
        drop(acquire);
        cluster.wait_until_gone("r");
    }
}

#[test]
fn unlock_after_leaves_the_key() {
    let cluster = Cluster::start(3);
    let manager = driven(&cluster);
    for submits in [false, true] {
        let mut lease = manager.acquire(&options("r")).expect("it is free");
        cluster.wait_until_everywhere("r");
        let long = lease.unlock_after(TTL * 2).expect_err("longer than the TTL");
        assert_eq!(long.status(), Status::InvalidArgument);
        match submits {
            true => lease.unlock_after_async(TTL / 2).wait_for(TTL).expect("in time"),
            false => lease.unlock_after(TTL / 2),
        }
        .expect("it is held");
        assert!(!lease.is_held());
        drop(lease);
        assert_eq!(cluster.having("r"), 3, "it stays although the lease is dropped");
        let taken = manager.acquire(&options("r")).expect_err("others are kept out");
        assert_eq!(taken.status(), Status::Taken);
        cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    }
}
