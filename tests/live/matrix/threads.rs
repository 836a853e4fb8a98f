//! Many threads on one manager, and leases that go from thread to thread.

use std::sync::mpsc;
use std::thread;

use redlock::ffi::status::RedLockStatus::{self, REDLOCK_LOST, REDLOCK_OK};

use crate::place::Place;
use crate::support::usage::{TTL, connected};
use crate::support::{Cluster, Lease, Manager, finishes, wait_until};

const THREADS: usize = 64;

#[test]
fn f08_64_threads_of_one_manager_hold_one_at_a_time() {
    one_at_a_time(1);
}

#[test]
fn f08_64_threads_of_four_managers_hold_one_at_a_time() {
    one_at_a_time(4);
}

fn one_at_a_time(managers: usize) {
    let cluster = Cluster::start(3);
    let managers: Vec<_> = (0..managers).map(|_| connected(&cluster)).collect();
    managers.iter().for_each(|it| _ = it.set_retry(1, 5));
    let place = Place::default();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (manager, place) = (&managers[thread % managers.len()], &place);
            scope.spawn(move || (0..3).for_each(|_| visits(manager, place)));
        }
    });
    assert_eq!(place.visits(), 3 * THREADS);
    cluster.wait_until_gone("r");
}

fn visits(manager: &Manager, place: &Place) {
    let lease = Lease::new();
    // Not for ever. If one of the threads fails while it holds the lock, the others must end.
    let status = manager.try_lock("r", TTL, 60_000, &lease);
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    place.visit();
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn f08_64_threads_on_64_resources_share_the_connections() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    // If a handshake took too long, a second connection was made, and the first is being closed.
    wait_until("each has one connection", || cluster.iter().all(|it| it.clients().len() == 1));
    let before: Vec<_> = cluster.iter().map(|it| it.clients()).collect();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let manager = &manager;
            scope.spawn(move || {
                let resource = format!("r{thread}");
                for _ in 0..5 {
                    let lease = Lease::new();
                    let ok = |status: RedLockStatus| {
                        assert_eq!(status, REDLOCK_OK, "{resource}: {}", lease.message());
                    };
                    ok(manager.try_lock(&*resource, TTL, 0, &lease));
                    ok(manager.extend(&lease, 2 * TTL));
                    ok(manager.confirm(&lease, TTL));
                    assert_eq!(lease.resource(), resource);
                    ok(manager.unlock(&lease));
                }
            });
        }
    });
    let after: Vec<_> = cluster.iter().map(|it| it.clients()).collect();
    assert_eq!(after, before, "one connection to each server is enough for all threads");
    wait_until("nothing is left", || cluster.iter().all(|it| it.locks() == 0));
}

/// Each thread takes a lock, and does the next step with the leases of other threads.
#[test]
fn f08_any_thread_may_extend_and_release_a_lease() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    finishes("leases go from thread to thread", move || {
        thread::scope(|scope| {
            let (ends, mut inlets) = (0..THREADS).map(|_| mpsc::channel::<(usize, Lease)>()).fold(
                (Vec::new(), Vec::new()),
                |(mut outlets, mut inlets), (inlet, outlet)| {
                    outlets.push(outlet);
                    inlets.push(inlet);
                    (outlets, inlets)
                },
            );
            // Each thread has the channel to its neighbour.
            inlets.rotate_left(1);
            for (thread, (outlet, inlet)) in ends.into_iter().zip(inlets).enumerate() {
                let manager = &manager;
                scope.spawn(move || {
                    let lease = manager.take(&format!("r{thread}"), TTL);
                    inlet.send((0, lease)).expect("the neighbour listens");
                    for (steps, lease) in outlet {
                        match steps {
                            2 => {
                                assert_eq!(manager.unlock(&lease), REDLOCK_OK);
                                assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
                                break;
                            }
                            _ => assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK),
                        }
                        inlet.send((steps + 1, lease)).expect("the neighbour listens");
                    }
                });
            }
        });
        wait_until("nothing is left", || cluster.iter().all(|it| it.locks() == 0));
    });
}
