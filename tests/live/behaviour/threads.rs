//! Many threads at once, on one manager and on several.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};
use redlock::ffi::{RedLock_Free, RedLock_TryLock};

use crate::support::{Cluster, Lease, Manager, Server, finishes, wait_until};
use crate::{EndsOnDrop, TTL, patient};

#[test]
fn one_holder_exists_while_servers_freeze_in_turn() {
    let cluster = Cluster::start(5);
    let managers = [patient(&cluster), patient(&cluster)];
    for manager in &managers {
        manager.set_retry(1, 5);
    }
    let (counter, done) = (Unguarded(UnsafeCell::new(0)), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| freeze_two_in_turn(&cluster, &done));
        let _ends = EndsOnDrop(&done);
        thread::scope(|scope| {
            for thread in 0..16 {
                let (manager, counter) = (&managers[thread % managers.len()], &counter);
                scope.spawn(move || count_up(manager, counter, 10));
            }
        });
    });
    assert_eq!(counter.0.into_inner(), 160);
    cluster.wait_until_gone("r");
}

fn freeze_two_in_turn(cluster: &Cluster, done: &AtomicBool) {
    for first in (0..cluster.len()).cycle() {
        let pair = [&cluster[first], &cluster[(first + 2) % cluster.len()]];
        pair.into_iter().for_each(Server::freeze);
        thread::sleep(Duration::from_millis(20));
        pair.into_iter().for_each(Server::resume);
        if done.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn count_up(manager: &Manager, counter: &Unguarded, times: usize) {
    let lease = Lease::new();
    for _ in 0..times {
        // Not for ever. If one of the threads fails while it holds the lock, the others must end.
        let status = manager.try_lock("r", TTL, 60_000, &lease);
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        counter.add_one();
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}

/// A number that only the holder of a lock may change. The lock makes it sound to share.
struct Unguarded(UnsafeCell<u32>);

// SAFETY: the threads of the test touch it only while they hold the lock that is tested.
unsafe impl Sync for Unguarded {}

impl Unguarded {
    /// Slow, so that another thread could come in between if the lock did not exclude it.
    fn add_one(&self) {
        // SAFETY: see above; volatile, so that nothing is optimized away.
        let before = unsafe { self.0.get().read_volatile() };
        thread::sleep(Duration::from_micros(300));
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(before + 1) };
    }
}

#[test]
fn no_call_hangs_when_two_managers_compete_in_circles() {
    let cluster = Cluster::start(3);
    let managers: Vec<_> = (0..2).map(|_| patient(&cluster)).collect();
    finishes("each waits for what the other one gives back", move || {
        thread::scope(|scope| {
            for (manager, [first, second]) in managers.iter().zip([["a", "b"], ["b", "a"]]) {
                scope.spawn(move || {
                    manager.set_retry(1, 5);
                    for _ in 0..10 {
                        let outer = Lease::new();
                        assert_eq!(manager.try_lock(first, TTL, -1, &outer), REDLOCK_OK);
                        let inner = Lease::new();
                        if manager.try_lock(second, TTL, 20, &inner) == REDLOCK_OK {
                            assert_eq!(manager.unlock(&inner), REDLOCK_OK);
                        }
                        assert_eq!(manager.unlock(&outer), REDLOCK_OK);
                    }
                });
            }
        });
    });
    cluster.wait_until_gone("a");
    cluster.wait_until_gone("b");
}

#[test]
fn a_manager_can_be_freed_after_its_last_call() {
    let cluster = Cluster::start(3);
    for round in 0..30 {
        let manager = Arc::new(patient(&cluster));
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let manager = Arc::clone(&manager);
                thread::spawn(move || {
                    let lease = Lease::new();
                    // The last thread to finish frees the manager.
                    let resource = format!("r{round}-{thread}");
                    (manager.try_lock(resource, 20_000, 0, &lease), lease)
                })
            })
            .collect();
        drop(manager);
        for thread in threads {
            let (status, lease) = thread.join().expect("it does not panic");
            assert_eq!(status, REDLOCK_OK, "{}", lease.message());
            assert!(lease.is_held(), "a lease outlives the manager");
            assert_eq!(lease.token().len(), 40);
        }
    }
    // The one connection left belongs to the test.
    for server in cluster.iter() {
        wait_until("all connections are closed", || connected_clients(server) == 1);
    }
}

#[test]
fn a_running_call_outlives_its_manager() {
    let server = Server::start();
    server.must(&["SET", "r", "theirs"]);
    let manager = Manager::of(std::slice::from_ref(&server));
    manager.set_retry(1, 50);
    manager.set_waking(false);
    let raw = manager.raw() as usize;
    std::mem::forget(manager);
    let calling = thread::spawn(move || {
        let lease = Lease::new();
        // SAFETY: the manager is freed only after this call has begun.
        unsafe { RedLock_TryLock(raw as *mut _, c"r".as_ptr(), TTL, 4_000, lease.raw()) }
    });
    wait_until("the call has begun", || server.calls("set") > 3);
    // SAFETY: made by RedLock_New, freed once: the owner was told to forget it.
    unsafe { RedLock_Free(raw as *mut _) };
    assert!(!calling.is_finished(), "freeing waits for nobody");
    let status = calling.join().expect("it does not panic");
    assert!([REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status), "{status:?}");
    wait_until("all connections are closed", || connected_clients(&server) == 1);
}

fn connected_clients(server: &Server) -> i64 {
    statistic(server, "clients", "connected_clients")
}

fn statistic(server: &Server, section: &str, name: &str) -> i64 {
    let text = server.must(&["INFO", section]).text().expect("a text");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|it| it.parse().ok()).expect("a number")
}

/// The thread that waits for the sockets must not sleep on when another thread has read its answer.
#[test]
fn an_answer_read_by_another_thread_wakes_the_waiter() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    assert_eq!(manager.set_timeouts(1_500, 60_000), REDLOCK_OK);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                manager.connect(1_000);
            }
        });
        let _end = EndsOnDrop(&done);
        // A pause just longer than the time after which a quiet connection is checked.
        for _ in 0..60 {
            server.must(&["CLIENT", "PAUSE", "52"]);
            let (lease, begun) = (Lease::new(), Instant::now());
            assert_eq!(manager.try_lock("r", 100_000, 0, &lease), REDLOCK_OK);
            assert!(begun.elapsed() < Duration::from_secs(20), "it slept until its time was up");
            assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        }
    });
}
