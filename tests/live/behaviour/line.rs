//! Threads of one manager that want the same lock. They stand in a queue, and only the first of them asks the
//! servers.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

use crate::support::{Cluster, Lease, Manager, Server, finishes, wait_until};
use crate::{EndsOnDrop, TTL, patient};

/// Longer than any wait here.
const LONG_WAIT_MS: i64 = 60_000;

/// So many lock and unlock cycles of another resource take a while.
const CYCLES: usize = 300;

/// Records whether a caller holds the lock, and how often each caller took it. A caller that takes the lock
/// while another holds it fails.
struct Turns {
    is_had: AtomicBool,
    counts: Vec<AtomicUsize>,
}

impl Turns {
    fn of(callers: usize) -> Self {
        let counts = (0..callers).map(|_| AtomicUsize::new(0)).collect();
        Self { is_had: AtomicBool::new(false), counts }
    }

    /// Takes the lock, holds it for a moment and releases it.
    #[track_caller]
    fn take(&self, manager: &Manager, caller: usize, lease: &Lease) {
        let status = manager.try_lock("r", TTL, LONG_WAIT_MS, lease);
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        assert!(!self.is_had.swap(true, Ordering::SeqCst), "two have it");
        thread::yield_now();
        self.counts[caller].fetch_add(1, Ordering::SeqCst);
        assert!(self.is_had.swap(false, Ordering::SeqCst), "two had it");
        assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
    }

    fn counts(&self) -> Vec<usize> {
        self.counts.iter().map(|it| it.load(Ordering::SeqCst)).collect()
    }

    fn sum(&self) -> usize {
        self.counts().iter().sum()
    }
}

fn sets(cluster: &Cluster) -> Vec<u64> {
    cluster.iter().map(|it| it.calls("set")).collect()
}

/// A measure of time: a polling waiter would poll many times meanwhile.
fn pass_time(manager: &Manager) {
    for _ in 0..CYCLES {
        let other = manager.take("other", TTL);
        assert_eq!(manager.unlock(&other), REDLOCK_OK);
    }
}

#[test]
fn greedy_threads_take_turns_and_ask_once_each() {
    const THREADS: usize = 8;
    const TIMES: usize = 400;
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let before = sets(&cluster);
    let (turns, all_there) = (Turns::of(THREADS), Barrier::new(THREADS));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (manager, turns, all_there) = (&manager, &turns, &all_there);
            scope.spawn(move || {
                let lease = Lease::new();
                all_there.wait();
                while turns.sum() < TIMES {
                    turns.take(manager, thread, &lease);
                }
            });
        }
    });
    let counts = turns.counts();
    let (least, most) = (counts.iter().min().expect("some"), counts.iter().max().expect("some"));
    // A thread that the system does not schedule misses a turn.
    assert!(least * 4 >= most * 3, "{counts:?}");
    let made: Vec<u64> = sets(&cluster).iter().zip(before).map(|(now, it)| now - it).collect();
    let had = turns.sum() as u64;
    // A slow server is not always asked.
    assert!(made.iter().all(|&it| it <= had + 2), "{made:?} for {had}");
    cluster.wait_until_gone("r");
}

/// One waiter asks once a second, because the servers may have lost the lock.
#[test]
fn waiters_for_an_own_lock_hardly_ask() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let held = manager.take("r", TTL);
    let begun = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let lease = Lease::new();
                begun.fetch_add(1, Ordering::SeqCst);
                assert_eq!(manager.try_lock("r", TTL, -1, &lease), REDLOCK_OK);
                assert_eq!(manager.unlock(&lease), REDLOCK_OK);
            });
        }
        wait_until("all are there", || begun.load(Ordering::SeqCst) == 8);
        let (before, start) = (sets(&cluster), Instant::now());
        pass_time(&manager);
        let made: Vec<u64> = sets(&cluster).iter().zip(before).map(|(now, it)| now - it).collect();
        let seldom = 1 + start.elapsed().as_secs();
        assert!(made.iter().all(|&it| it <= CYCLES as u64 + seldom), "{made:?}");
        assert_eq!(manager.unlock(&held), REDLOCK_OK);
    });
    cluster.wait_until_gone("r");
}

#[test]
fn a_waiter_that_gives_up_blocks_nobody() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let held = manager.take("r", TTL);
    thread::scope(|scope| {
        let patient: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let lease = Lease::new();
                    let status = manager.try_lock("r", TTL, LONG_WAIT_MS, &lease);
                    (status, manager.unlock(&lease))
                })
            })
            .collect();
        for wait_ms in [0, 1, 50, 120] {
            let lease = Lease::new();
            // A call that is before the two others in the queue asks the servers at the end of its wait, for 25
            // ms at most. A busy machine may need longer, and then the result is REDLOCK_UNREACHABLE.
            wait_until("it is told", || {
                manager.try_lock("r", TTL, wait_ms, &lease) == REDLOCK_TAKEN
            });
            assert!(!lease.is_held() && lease.token().is_empty());
            let words = lease.message();
            let is_told = words.contains("held by another lease of this manager (")
                || words.contains("held by another client (");
            assert!(is_told, "{words}");
        }
        manager.set_retry(2, 20);
        let lease = Lease::new();
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_TAKEN);
        assert!(lease.message().contains("held "), "{}", lease.message());
        assert!(patient.iter().all(|it| !it.is_finished()));
        assert_eq!(manager.unlock(&held), REDLOCK_OK);
        for it in patient {
            assert_eq!(it.join().expect("it does not panic"), (REDLOCK_OK, REDLOCK_OK));
        }
    });
    cluster.wait_until_gone("r");
}

#[test]
fn lock_and_continue_lock_wait_in_the_queue() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    manager.set_retry(1_000, 20);
    let held = manager.take("r", TTL);
    let counter = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..9 {
            let (manager, counter) = (&manager, &counter);
            scope.spawn(move || {
                let lease = Lease::new();
                let status = match thread % 3 {
                    0 => manager.lock("r", TTL, &lease),
                    1 => manager.try_lock("r", TTL, LONG_WAIT_MS, &lease),
                    _ => manager.continue_lock("r", TTL, &lease),
                };
                assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                counter.fetch_add(1, Ordering::SeqCst);
                // Two callers that continue may share one lock, and one of them releases it.
                let status = manager.unlock(&lease);
                assert!(status == REDLOCK_OK || thread % 3 == 2, "{}", lease.message());
            });
        }
        pass_time(&manager);
        assert_eq!(counter.load(Ordering::SeqCst), 0);
        assert_eq!(manager.unlock(&held), REDLOCK_OK);
    });
    assert_eq!(counter.load(Ordering::SeqCst), 9);
    cluster.wait_until_gone("r");
}

#[test]
fn a_release_by_another_manager_wakes_the_queue() {
    let cluster = Cluster::start(3);
    let (manager, other) = (patient(&cluster), patient(&cluster));
    let held = manager.take("r", TTL);
    // Over another connection a release may arrive before the acquire that it must release.
    cluster.wait_until_everywhere("r");
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let lease = Lease::new();
                    let status = manager.try_lock("r", TTL, LONG_WAIT_MS, &lease);
                    // A server may release the last lock only after it refused this one. An extension gives it
                    // the key.
                    wait_until("the key is on all servers", || {
                        cluster.having("r") == 3 || manager.extend(&lease, TTL) != REDLOCK_OK
                    });
                    (status, other.unlock(&lease))
                })
            })
            .collect();
        assert_eq!(other.unlock(&held), REDLOCK_OK);
        for it in waiting {
            assert_eq!(it.join().expect("it does not panic"), (REDLOCK_OK, REDLOCK_OK));
        }
    });
    cluster.wait_until_gone("r");
}

#[test]
fn an_expired_lock_wakes_the_queue() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    // On a busy machine so short a lock may expire before the call returns.
    wait_until("it is had", || manager.lock("r", 400, &Lease::new()) == REDLOCK_OK);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let lease = Lease::new();
                let status = manager.try_lock("r", 400, LONG_WAIT_MS, &lease);
                // So short a lock may also expire while it is being taken.
                assert!([REDLOCK_OK, REDLOCK_TOO_SLOW].contains(&status), "{}", lease.message());
            });
        }
    });
    cluster.wait_until_gone("r");
}

/// The lone thread gets its chance, and the many threads are not slowed down to its pace.
#[test]
fn two_managers_share_a_lock_despite_their_threads() {
    const LONE_TIMES: usize = 4;
    /// The number of turns that the many threads complete if they never give way.
    const FAR_TOO_MANY: usize = 60_000;
    let cluster = Cluster::start(3);
    let (busy, lone) = (patient(&cluster), patient(&cluster));
    let (turns, done) = (Turns::of(9), AtomicBool::new(false));
    thread::scope(|scope| {
        for thread in 0..8 {
            let (busy, turns, done) = (&busy, &turns, &done);
            scope.spawn(move || {
                let lease = Lease::new();
                while !done.load(Ordering::Relaxed) && turns.sum() < FAR_TOO_MANY {
                    turns.take(busy, thread, &lease);
                }
            });
        }
        let _ends = EndsOnDrop(&done);
        wait_until("the many are at it", || turns.sum() > 50);
        let lease = Lease::new();
        for _ in 0..LONE_TIMES {
            turns.take(&lone, 8, &lease);
            assert!(turns.sum() < FAR_TOO_MANY, "{:?}", turns.counts());
        }
    });
    let counts = turns.counts();
    assert!(counts[..8].iter().sum::<usize>() > LONE_TIMES, "{counts:?}");
    cluster.wait_until_gone("r");
}

#[test]
fn two_single_threads_of_two_managers_share() {
    let cluster = Cluster::start(3);
    let managers = [patient(&cluster), patient(&cluster)];
    let turns = Turns::of(2);
    thread::scope(|scope| {
        for (caller, manager) in managers.iter().enumerate() {
            let turns = &turns;
            scope.spawn(move || {
                let lease = Lease::new();
                // Each goes on until both have taken the lock often.
                while *turns.counts().iter().min().expect("two") < 20 {
                    assert!(turns.counts()[caller] < 20_000, "{:?}", turns.counts());
                    turns.take(manager, caller, &lease);
                }
            });
        }
    });
    cluster.wait_until_gone("r");
}

#[test]
fn hand_overs_survive_the_loss_of_one_of_five_servers() {
    const THREADS: usize = 6;
    for strike in [Server::freeze, Server::kill] {
        let cluster = Cluster::start(5);
        let manager = patient(&cluster);
        let turns = Turns::of(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (manager, turns) = (&manager, &turns);
                scope.spawn(move || {
                    let lease = Lease::new();
                    (0..60).for_each(|_| turns.take(manager, thread, &lease));
                });
            }
            wait_until("they are at it", || turns.sum() > 30);
            strike(&cluster[2]);
        });
        assert_eq!(turns.counts(), [60; THREADS]);
        for server in [0, 1, 3, 4] {
            wait_until("nothing is left", || !cluster[server].exists("r"));
        }
        cluster[2].restart();
    }
}

#[test]
fn waiters_learn_that_the_servers_are_unreachable() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    assert_eq!(manager.set_timeouts(500, 500), REDLOCK_OK);
    let held = manager.take("r", TTL);
    finishes("nobody waits for servers that are gone", move || {
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..4)
                .map(|thread| {
                    let manager = &manager;
                    scope.spawn(move || {
                        let lease = Lease::new();
                        let status = manager.try_lock("r", TTL, 1_000 + 100 * thread, &lease);
                        (status, lease.message())
                    })
                })
                .collect();
            cluster.iter().for_each(Server::kill);
            assert_eq!(manager.unlock(&held), REDLOCK_UNREACHABLE);
            for it in waiting {
                let (status, words) = it.join().expect("it does not panic");
                assert_eq!(status, REDLOCK_UNREACHABLE, "{words}");
                let addresses = cluster.iter().map(Server::address);
                assert!(addresses.into_iter().all(|it| words.contains(&it)), "{words}");
            }
        });
    });
}

/// A child has neither its parent's queue nor a place in it.
#[test]
fn a_child_of_a_process_with_waiters_locks_on_its_own() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let held = manager.take("r", TTL);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let lease = Lease::new();
                assert_eq!(manager.try_lock("r", TTL, LONG_WAIT_MS, &lease), REDLOCK_OK);
                assert_eq!(manager.unlock(&lease), REDLOCK_OK);
            });
        }
        for _ in 0..5 {
            // SAFETY: the child makes calls that the library allows in a child, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let wrong = locks_in_child(&manager);
                // SAFETY: nothing of the parent needs to be cleaned up.
                unsafe { libc::_exit(wrong) };
            }
            let mut status = 0;
            // SAFETY: `status` may be written to, and the child is ours.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
        }
        assert_eq!(manager.unlock(&held), REDLOCK_OK);
    });
    cluster.wait_until_gone("r");
    cluster.wait_until_gone("child");
}

/// Returns 0, or the number of the first call with a wrong result. Nothing here may panic, because a child may
/// inherit locks of other threads that nobody releases.
fn locks_in_child(manager: &Manager) -> i32 {
    // SAFETY: no memory is involved. The alarm ends a child that hangs.
    unsafe { libc::alarm(50) };
    let (lease, other) = (Lease::new(), Lease::new());
    for _ in 0..10 {
        let calls = [
            manager.try_lock("child", TTL, LONG_WAIT_MS, &lease) == REDLOCK_OK,
            manager.try_lock("r", TTL, 0, &other) == REDLOCK_TAKEN,
            manager.try_lock("r", TTL, 20, &other) != REDLOCK_OK,
            manager.unlock(&lease) == REDLOCK_OK,
        ];
        if let Some(wrong) = (1..).zip(calls).find(|it| !it.1) {
            return wrong.0;
        }
    }
    0
}
