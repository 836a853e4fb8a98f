//! Callers that want several resources, and callers that want one of them, in the queues of one manager and
//! beside others.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN};

use crate::support::events::Wanted;
use crate::support::{Cluster, Lease, Manager};
use crate::{TTL, patient};

/// Longer than any wait here.
const LONG_WAIT_MS: i64 = 60_000;

/// Records which of three resources are in use. A caller that takes a resource while another caller uses it
/// fails.
#[derive(Default)]
struct Hands([AtomicBool; 3]);

impl Hands {
    #[track_caller]
    fn use_them(&self, names: &[&str]) {
        let place = |name: &&str| usize::from(name.as_bytes()[0] - b'a');
        for name in names {
            assert!(!self.0[place(name)].swap(true, Ordering::SeqCst), "two have {name}");
        }
        thread::yield_now();
        for name in names {
            assert!(self.0[place(name)].swap(false, Ordering::SeqCst), "two had {name}");
        }
    }

    #[track_caller]
    fn take(&self, manager: &Manager, names: &[&str], lease: &Lease) {
        let wanted = Wanted { wait_ms: LONG_WAIT_MS, ..Wanted::several(names, TTL) };
        let status = manager.acquire(&wanted, lease);
        assert_eq!(status, REDLOCK_OK, "{names:?}: {}", lease.message());
        self.use_them(names);
        assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
    }
}

#[test]
fn callers_with_overlapping_sets_never_deadlock() {
    const TIMES: usize = 60;
    const SETS: [&[&str]; 7] =
        [&["a", "b"], &["b", "a"], &["b", "c"], &["c", "b", "a"], &["a"], &["b"], &["c", "a"]];
    let cluster = Cluster::start(3);
    for managers in [1, 2] {
        let managers: Vec<Manager> = (0..managers).map(|_| patient(&cluster)).collect();
        let (hands, barrier) = (Hands::default(), Barrier::new(SETS.len()));
        thread::scope(|scope| {
            for (nth, names) in SETS.iter().enumerate() {
                let (hands, barrier, manager) = (&hands, &barrier, &managers[nth % managers.len()]);
                scope.spawn(move || {
                    barrier.wait();
                    let lease = Lease::new();
                    (0..TIMES).for_each(|_| hands.take(manager, names, &lease));
                });
            }
        });
    }
}

#[test]
fn a_waiter_for_two_does_not_block_the_free_one() {
    let cluster = Cluster::start(3);
    let (manager, other) = (patient(&cluster), patient(&cluster));
    // Held by this manager, and by another one.
    for holder in [&manager, &other] {
        let held = holder.take("b", TTL);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let lease = Lease::new();
                let wanted = Wanted { wait_ms: LONG_WAIT_MS, ..Wanted::several(&["a", "b"], TTL) };
                let status = manager.acquire(&wanted, &lease);
                (status, manager.unlock(&lease), lease.message())
            });
            let lease = Lease::new();
            for _ in 0..50 {
                // This caller gets the lock before the other one, which still waits for its second resource.
                let status = manager.try_lock("a", TTL, LONG_WAIT_MS, &lease);
                assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                assert_eq!(manager.unlock(&lease), REDLOCK_OK);
            }
            assert!(!waiter.is_finished());
            assert_eq!(holder.unlock(&held), REDLOCK_OK);
            let (locked, unlocked, words) = waiter.join().expect("it ends");
            assert_eq!((locked, unlocked), (REDLOCK_OK, REDLOCK_OK), "{words}");
        });
    }
}

#[test]
fn the_message_names_the_resource_held_here() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (patient(&cluster), Lease::new());
    let held = manager.take("b", TTL);
    let wanted = Wanted { wait_ms: 1, ..Wanted::several(&["a", "b"], TTL) };
    assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_TAKEN);
    let words = lease.message();
    assert!(words.contains("resource 2 of 2 held"), "{words}");
    assert_eq!(manager.unlock(&held), REDLOCK_OK);
    assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
}
