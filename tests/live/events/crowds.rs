//! Thousands that wait behind one holder. Their number decides how much there is to do, and nothing else: each asks
//! about once. Meanwhile other calls go on, and a kept lock is kept.

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::TTL;
use crate::support::events::Wanted;
use crate::support::{Cluster, Lease, Manager};

/// Short enough to be renewed while the crowd takes its turns, and long enough for a busy machine.
const SHORT: i64 = 8_000;

/// So many that questions for all of them at once would fill the queues of the servers ten times.
const MANY: usize = 16_000;

/// Where each lock is handed on to the next waiter by itself, a machine that does much else takes a minute for
/// `MANY` of them. `make test-long` tries them.
const SOME: usize = 2_000;

/// The meaning of an event that is not the end of a waiter's call.
const RELEASED: usize = usize::MAX;
const OTHER: usize = usize::MAX - 1;

#[test]
fn readers_behind_a_writer() {
    let writer = Wanted::new("r", TTL);
    crowd(&[writer], &Wanted::shared("r", TTL), MANY);
}

#[test]
fn callers_of_a_semaphore() {
    crowd(&vec![permit(); 4], &permit(), SOME);
}

#[test]
fn callers_of_several() {
    crowd(&[Wanted::new("r", TTL)], &Wanted::several(&["r", "s"], TTL), SOME);
}

#[test]
fn callers_of_an_exclusive_lock() {
    crowd(&[Wanted::new("r", TTL)], &Wanted::new("r", TTL), SOME);
}

#[test]
#[ignore = "make test-long"]
fn callers_of_every_kind_in_a_larger_crowd() {
    crowd(&[Wanted::new("r", TTL)], &Wanted::shared("r", TTL), 2 * MANY);
    crowd(&vec![permit(); 4], &permit(), MANY);
    crowd(&[Wanted::new("r", TTL)], &Wanted::several(&["r", "s"], TTL), MANY);
    crowd(&[Wanted::new("r", TTL)], &Wanted::new("r", TTL), MANY);
}

fn permit() -> Wanted {
    Wanted { permits: 4, ..Wanted::new("r", TTL) }
}

/// This crowd waits behind these holders, which then release what they have.
fn crowd(holders: &[Wanted], wanted: &Wanted, count: usize) {
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    let holders: Vec<Lease> = holders.iter().map(|it| take(&manager, it)).collect();
    let kept = take(&manager, &Wanted { keep_alive: true, ..Wanted::new("kept", SHORT) });
    let leases: Vec<Lease> = (0..count).map(|_| Lease::new()).collect();
    let wanted = Wanted { wait_ms: -1, ..wanted.clone() };
    for (index, lease) in leases.iter().enumerate() {
        assert_eq!(manager.submit_acquire(&wanted, lease, index), REDLOCK_OK);
    }
    while manager.stats().waiting < count as u64 {
        assert_eq!(manager.next_event(1), None);
    }
    let before = manager.stats();
    for holder in &holders {
        assert_eq!(manager.submit_unlock(holder, RELEASED), REDLOCK_OK);
    }
    let others = go_through(&manager, &leases, holders.len());
    let after = manager.stats();
    let (attempts, requests) = (after.attempts - before.attempts, after.requests - before.requests);
    // The calls beside the crowd ask, too.
    let count = (count + others) as u64;
    assert!(attempts <= 2 * count, "{attempts} attempts for {count}");
    assert!(requests <= 4 * 3 * count, "{requests} requests for {count}");
    assert!(kept.is_held(), "{}", kept.message());
    assert_eq!(manager.unlock(&kept), REDLOCK_OK, "{}", kept.message());
}

fn take(manager: &Manager, wanted: &Wanted) -> Lease {
    let lease = Lease::new();
    assert_eq!(manager.acquire(&Wanted { tries: 3, ..wanted.clone() }, &lease), REDLOCK_OK);
    lease
}

/// All of the crowd take what they want and release it. Returns how many other locks were taken meanwhile, one
/// after the other. The first of those must not be the last of all.
fn go_through(manager: &Manager, leases: &[Lease], released: usize) -> usize {
    let (other, wanted) = (Lease::new(), Wanted::new("other", TTL));
    let (mut taken, mut left, mut others) = (0, leases.len() + released, 0);
    assert_eq!(manager.submit_acquire(&wanted, &other, OTHER), REDLOCK_OK);
    while left > 0 {
        let event = manager.event();
        assert!(!event.is_lost, "the lock that is kept beside them");
        match event.user_data {
            RELEASED => left -= 1,
            OTHER if other.is_held() => {
                others += 1;
                assert!(others > 1 || 2 * taken < leases.len(), "it came behind the crowd");
                assert_eq!(manager.submit_unlock(&other, OTHER), REDLOCK_OK);
            }
            OTHER => assert_eq!(manager.submit_acquire(&wanted, &other, OTHER), REDLOCK_OK),
            index => {
                let lease = &leases[index];
                assert_eq!(event.status, REDLOCK_OK, "{}", lease.message());
                assert_eq!(manager.submit_unlock(lease, RELEASED), REDLOCK_OK);
                taken += 1;
            }
        }
    }
    others
}
