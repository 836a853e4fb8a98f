//! Threads that wait for their own submitted calls, in slices, and cancel them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_EVENT, REDLOCK_OK, REDLOCK_TAKEN,
};

use crate::TTL;
use crate::support::client::Manager;
use crate::support::events::Wanted;
use crate::support::usage::connected;
use crate::support::{Cluster, Lease, wait_until};

const THREADS: usize = 40;
const SLICE_MS: i64 = 50;
/// How often each thread gets the lock.
const ROUNDS: usize = 5;

/// Without a limit.
fn patient(resource: &str) -> Wanted {
    Wanted { wait_ms: -1, ..Wanted::new(resource, TTL) }
}

/// What the threads of the test of fairness see.
#[derive(Default)]
struct Course {
    /// The threads, in the order in which they came.
    arrivals: Mutex<Vec<usize>>,
    /// The threads, in the order in which they got the lock.
    grants: Mutex<Vec<usize>>,
    /// How many slices have ended in vain.
    slices: Mutex<usize>,
    slice_over: Condvar,
}

impl Course {
    fn note_slice(&self) {
        *self.slices.lock().unwrap() += 1;
        self.slice_over.notify_all();
    }

    /// Holds the lock until a slice of another thread has ended in vain, if there may be one.
    fn hold(&self) {
        let grants = self.grants.lock().unwrap().len();
        if grants > (ROUNDS - 1) * THREADS {
            return;
        }
        let slices = self.slices.lock().unwrap();
        let before = *slices;
        drop(self.slice_over.wait_while(slices, |slices| *slices == before).unwrap());
    }

    fn run(&self, manager: &Manager, thread: usize) {
        let lease = Lease::without_done_events();
        for _ in 0..ROUNDS {
            let mut arrivals = self.arrivals.lock().unwrap();
            assert_eq!(manager.submit_acquire(&patient("r"), &lease, 0), REDLOCK_OK);
            arrivals.push(thread);
            drop(arrivals);
            let status = loop {
                match manager.wait(&lease, SLICE_MS) {
                    REDLOCK_NO_EVENT => self.note_slice(),
                    status => break status,
                }
            };
            assert_eq!(status, REDLOCK_OK, "{}", lease.message());
            self.grants.lock().unwrap().push(thread);
            self.hold();
            assert_eq!(manager.submit_unlock(&lease, 0), REDLOCK_OK);
            assert_eq!(manager.wait(&lease, -1), REDLOCK_OK, "{}", lease.message());
        }
    }
}

#[test]
fn threads_in_sliced_waits_get_the_lock_in_order() {
    let cluster = Cluster::start(3);
    let (manager, course) = (connected(&cluster), Course::default());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (manager, course) = (&manager, &course);
            scope.spawn(move || course.run(manager, thread));
        }
    });
    let (arrivals, grants) =
        (course.arrivals.into_inner().unwrap(), course.grants.into_inner().unwrap());
    assert_eq!(grants, arrivals);
    // Nobody has had two turns more than another, at any moment.
    let mut counts = [0_usize; THREADS];
    for thread in grants {
        counts[thread] += 1;
        let least = counts.iter().min().copied().unwrap_or_default();
        assert!(counts[thread] <= least + 2, "{counts:?}");
    }
    assert_eq!(manager.next_event(0), None);
}

/// The same threads, with nothing but the wait: whoever drives must wake exactly those whose calls have ended.
#[test]
fn each_of_many_threads_gets_its_own_result() {
    const RESOURCES: usize = 8;
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let inside: [AtomicUsize; RESOURCES] = Default::default();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (manager, inside) = (&manager, &inside);
            scope.spawn(move || {
                let (lease, mine) = (Lease::new(), thread % RESOURCES);
                for round in 0..20 {
                    let wanted = patient(&format!("r{mine}"));
                    assert_eq!(manager.submit_acquire(&wanted, &lease, 0), REDLOCK_OK);
                    let status = match round % 2 {
                        0 => manager.wait(&lease, -1),
                        _ => loop {
                            match manager.wait(&lease, 0) {
                                REDLOCK_NO_EVENT => thread::yield_now(),
                                status => break status,
                            }
                        },
                    };
                    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                    assert_eq!(inside[mine].fetch_add(1, Ordering::SeqCst), 0);
                    inside[mine].fetch_sub(1, Ordering::SeqCst);
                    assert_eq!(manager.submit_unlock(&lease, 0), REDLOCK_OK);
                    assert_eq!(manager.wait(&lease, -1), REDLOCK_OK, "{}", lease.message());
                }
            });
        }
    });
    assert_eq!(manager.next_event(0), None, "no call has an event, too");
}

/// How many calls of this manager wait for a lock.
fn waiting(manager: &Manager) -> u64 {
    manager.stats().waiting
}

#[test]
fn a_grant_between_a_slice_and_the_cancellation_is_reported() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let held = manager.take("r", TTL);
    let lease = Lease::without_done_events();
    assert_eq!(manager.submit_acquire(&patient("r"), &lease, 0), REDLOCK_OK);
    assert_eq!(manager.wait(&lease, 0), REDLOCK_NO_EVENT);
    assert_eq!(manager.unlock(&held), REDLOCK_OK);
    // Somebody else drives meanwhile, and takes no event of this call.
    wait_until("it is granted", || {
        assert_eq!(manager.next_event(0), None);
        waiting(&manager) == 0
    });
    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
    assert_eq!(manager.wait(&lease, -1), REDLOCK_OK);
    assert!(lease.is_held());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    cluster.wait_until_gone("r");
    // The other way round: the cancellation comes first.
    let held = manager.take("r", TTL);
    assert_eq!(manager.submit_acquire(&patient("r"), &lease, 0), REDLOCK_OK);
    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
    assert_eq!(manager.unlock(&held), REDLOCK_OK);
    assert_eq!(manager.wait(&lease, -1), REDLOCK_CANCELLED);
    assert!(!lease.is_held());
    cluster.wait_until_gone("r");
}

/// Whatever comes first: the caller has the lock and is told so, or nothing is left on the servers.
#[test]
fn no_grant_is_lost_between_a_slice_and_the_cancellation() {
    let cluster = Cluster::start(3);
    let (manager, other) = (connected(&cluster), connected(&cluster));
    let mut ends = [0, 0];
    for round in 0..200 {
        let held = other.take("r", TTL);
        let lease = if round % 2 == 0 { Lease::new() } else { Lease::without_done_events() };
        assert_eq!(manager.submit_acquire(&patient("r"), &lease, 0), REDLOCK_OK);
        assert_eq!(manager.wait(&lease, 0), REDLOCK_NO_EVENT);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(other.unlock(&held), REDLOCK_OK));
            for _ in 0..round % 8 {
                if manager.wait(&lease, 1) != REDLOCK_NO_EVENT {
                    return;
                }
            }
            assert_eq!(manager.cancel(&lease), REDLOCK_OK);
            let status = manager.wait(&lease, -1);
            assert!([REDLOCK_OK, REDLOCK_CANCELLED].contains(&status), "{status:?}");
        });
        ends[usize::from(lease.is_held())] += 1;
        if lease.is_held() {
            assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        }
        cluster.wait_until_gone("r");
        assert_eq!(manager.next_event(0), None);
    }
    assert!(ends[0] > 0, "{ends:?}");
}

#[test]
fn misuse_of_a_wait_has_a_clear_status() {
    let cluster = Cluster::start(3);
    let (manager, other, lease) = (connected(&cluster), connected(&cluster), Lease::new());
    assert_eq!(manager.wait(&lease, 0), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.message().contains("no submitted call"), "{}", lease.message());
    let held = other.take("r", TTL);
    assert_eq!(manager.wait(&held, 0), REDLOCK_INVALID_ARGUMENT);
    assert!(held.is_held());
    assert_eq!(manager.submit_acquire(&patient("r"), &lease, 0), REDLOCK_OK);
    assert_eq!(other.wait(&lease, -1), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.message().contains("on this manager"), "{}", lease.message());
    assert_eq!(lease.set_done_events(false), REDLOCK_INVALID_ARGUMENT);
    // Two threads wait for one call. One of them gets its end.
    let ends = thread::scope(|scope| {
        let waits = [0, 1].map(|_| scope.spawn(|| manager.wait(&lease, -1)));
        wait_until("one of them is refused", || waits.iter().any(|it| it.is_finished()));
        assert_eq!(other.unlock(&held), REDLOCK_OK);
        waits.map(|it| it.join().expect("no panic"))
    });
    assert!(ends.contains(&REDLOCK_OK) && ends.contains(&REDLOCK_INVALID_ARGUMENT), "{ends:?}");
    // A call that blocks is no submitted call.
    let blocked = Lease::new();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| manager.try_lock("r", TTL, -1, &blocked));
        wait_until("it waits", || waiting(&manager) == 1);
        assert_eq!(manager.wait(&blocked, -1), REDLOCK_INVALID_ARGUMENT);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        assert_eq!(waiter.join().expect("no panic"), REDLOCK_OK);
    });
}

#[test]
fn an_end_between_two_waits_is_an_event_or_a_result() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let _held = manager.take("r", TTL);
    for is_event in [true, false] {
        assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 7), REDLOCK_OK);
        if is_event {
            assert_eq!(manager.event().status, REDLOCK_TAKEN);
            assert_eq!(manager.wait(&lease, 0), REDLOCK_INVALID_ARGUMENT);
        } else {
            assert_eq!(manager.wait(&lease, -1), REDLOCK_TAKEN);
        }
        assert_eq!(manager.next_event(0), None);
    }
}

#[test]
fn a_freed_lease_without_events_leaves_no_lock() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    // Its call has been granted, and nobody has waited for it.
    let lease = Lease::without_done_events();
    assert_eq!(manager.submit_acquire(&patient("r"), &lease, 0), REDLOCK_OK);
    wait_until("it is granted", || {
        assert_eq!(manager.next_event(0), None);
        cluster.having("r") == 3
    });
    // The answers of the last look are read.
    assert_eq!(manager.next_event(0), None);
    drop(lease);
    cluster.wait_until_gone("r");
    // Its call is under way.
    let held = manager.take("r", TTL);
    let lease = Lease::without_done_events();
    assert_eq!(manager.submit_acquire(&patient("r"), &lease, 0), REDLOCK_OK);
    drop(lease);
    assert_eq!(manager.unlock(&held), REDLOCK_OK);
    cluster.wait_until_gone("r");
    assert_eq!(manager.next_event(0), None);
    // Its manager is freed.
    let lease = Lease::without_done_events();
    assert_eq!(manager.submit_acquire(&patient("s"), &lease, 0), REDLOCK_OK);
    wait_until("it is granted", || {
        assert_eq!(manager.next_event(0), None);
        cluster.having("s") == 3
    });
    drop(manager);
    cluster.wait_until_gone("s");
    let other = cluster.manager();
    assert_eq!(other.lock("s", TTL, &lease), REDLOCK_OK, "{}", lease.message());
}
