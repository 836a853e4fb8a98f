//! Permits of a semaphore: a limited number at a time. Each permit is a lock of its own slot.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::{Cluster, Lease, Manager, wait_until};
use crate::{TTL, patient};

/// Longer than any wait here.
const LONG_WAIT_MS: i64 = 60_000;

fn acquire(manager: &Manager, permits: i32, wait_ms: i64, lease: &Lease) -> RedLockStatus {
    manager.acquire(&Wanted { permits, wait_ms, ..Wanted::new("r", TTL) }, lease)
}

#[track_caller]
fn take(manager: &Manager, permits: i32) -> Lease {
    let lease = Lease::new();
    let status = acquire(manager, permits, 0, &lease);
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    lease
}

/// The number of slots that are taken on a server.
fn slots(cluster: &Cluster, server: usize) -> usize {
    let names = (0..8).map(|slot| if slot == 0 { "r".to_owned() } else { format!("r#{slot}") });
    names.filter(|name| cluster[server].exists(name)).count()
}

#[test]
fn no_more_callers_hold_permits_than_there_are() {
    let cluster = Cluster::start(3);
    let managers: Vec<Manager> = (0..4).map(|_| patient(&cluster)).collect();
    let leases: Vec<Lease> =
        (0..8).map(|number: usize| take(&managers[number % managers.len()], 8)).collect();
    for lease in &leases {
        assert!(lease.is_held() && lease.remaining_ms() > TTL / 2);
        assert_eq!(lease.resource(), "r");
    }
    // Each slot is on a quorum at least.
    for slot in 0..8 {
        let name = if slot == 0 { "r".to_owned() } else { format!("r#{slot}") };
        assert!(cluster.having(&name) >= 2, "{name}: {}", cluster.describe(&name));
    }
    let last = Lease::new();
    for manager in &managers {
        assert_eq!(acquire(manager, 8, 0, &last), REDLOCK_TAKEN);
        let words = last.message();
        assert!(words.contains("all 8 permits taken (the next expires in "), "{words}");
    }
    assert_eq!(managers[3].unlock(&leases[3]), REDLOCK_OK);
    wait_until("it is free", || (0..3).all(|server| slots(&cluster, server) <= 7));
    assert_eq!(acquire(&managers[0], 8, 0, &last), REDLOCK_OK, "{}", last.message());
}

#[test]
fn an_exclusive_lock_of_the_resource_uses_one_permit() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let plain = manager.take("r", TTL);
    let one = take(&manager, 2);
    let lease = Lease::new();
    assert_eq!(acquire(&manager, 2, 0, &lease), REDLOCK_TAKEN);
    assert_eq!(manager.unlock(&plain), REDLOCK_OK);
    let other = take(&manager, 2);
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_TAKEN);
    for held in [&one, &other] {
        assert_eq!(manager.unlock(held), REDLOCK_OK);
    }
    cluster.wait_until_gone("r");
    // A semaphore of one is a lock.
    let only = take(&manager, 1);
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_TAKEN);
    assert_eq!(manager.unlock(&only), REDLOCK_OK);
}

#[test]
fn a_permit_supports_all_calls_of_a_lock() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let plain = manager.take("r", TTL);
    let lease = take(&manager, 2);
    cluster.wait_until_everywhere("r#1");
    assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    assert!(lease.remaining_ms() > TTL);
    assert_eq!(manager.confirm(&lease, TTL), REDLOCK_OK);
    let ticket = manager.detach(&lease).expect("it is held");
    assert!(!lease.is_held());
    let adopted = Lease::new();
    assert_eq!(manager.adopt(&ticket, &adopted), REDLOCK_OK, "{}", adopted.message());
    assert_eq!(adopted.resource(), "r#1", "the slot has the name of its key");
    assert_eq!(manager.unlock(&adopted), REDLOCK_OK);
    cluster.wait_until_gone("r#1");
    // Another client deletes the key.
    let lease = take(&manager, 2);
    cluster.iter().for_each(|server| {
        server.must(&["DEL", "r#1"]);
    });
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST);
    assert_eq!(manager.unlock(&plain), REDLOCK_OK);
}

#[test]
fn disagreeing_servers_are_moved_to_one_slot() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    // Each server has another slot free. The last slot is free on two of them: r#3 can be taken on a and c.
    let taken: [&[&str]; 3] = [&["r", "r#1", "r#2"], &["r", "r#1", "r#3"], &["r#2"]];
    for (server, keys) in cluster.iter().zip(taken) {
        for key in keys {
            server.must(&["SET", key, "other", "PX", "600000"]);
        }
    }
    for _ in 0..8 {
        let lease = take(&manager, 4);
        assert_eq!(manager.confirm(&lease, 1), REDLOCK_OK);
        assert_eq!(cluster[0].get("r#3"), Some(lease.token()));
        assert_eq!(cluster[2].get("r#3"), Some(lease.token()));
        wait_until("nothing is left elsewhere", || {
            let ours =
                |key: &str| cluster.iter().filter(|it| it.get(key) == Some(lease.token())).count();
            ["r", "r#1", "r#2"].iter().all(|key| ours(key) == 0)
        });
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        cluster[0].must(&["PING"]);
        wait_until("it is free", || slots(&cluster, 0) == 3 && slots(&cluster, 2) == 1);
    }
}

#[test]
fn callers_of_many_processes_respect_the_permits() {
    const PERMITS: usize = 3;
    const CALLERS: usize = 4;
    const TIMES: usize = 40;
    let cluster = Cluster::start(3);
    let managers: Vec<Manager> = (0..3).map(|_| patient(&cluster)).collect();
    let (had, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for manager in &managers {
            for _ in 0..CALLERS {
                scope.spawn(|| {
                    let lease = Lease::new();
                    for _ in 0..TIMES {
                        let status = acquire(manager, PERMITS as i32, LONG_WAIT_MS, &lease);
                        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                        let now = had.fetch_add(1, Ordering::SeqCst) + 1;
                        assert!(now <= PERMITS, "{now} have one");
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::yield_now();
                        had.fetch_sub(1, Ordering::SeqCst);
                        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
                    }
                });
            }
        }
    });
    assert!(most.load(Ordering::SeqCst) > 1, "one after the other");
    wait_until("nothing is left", || (0..3).all(|server| slots(&cluster, server) == 0));
}

#[test]
fn callers_of_one_manager_ask_once_per_hand_over() {
    const CALLERS: usize = 6;
    const TIMES: usize = 50;
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let before: Vec<u64> = cluster.iter().map(|it| it.scripts()).collect();
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let lease = Lease::new();
                for _ in 0..TIMES {
                    let status = acquire(&manager, 2, LONG_WAIT_MS, &lease);
                    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                    thread::yield_now();
                    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
                }
            });
        }
    });
    for (server, before) in cluster.iter().zip(before) {
        let calls = server.scripts() - before;
        // Scripts that take the permit, release it, and clean up. Polling waiters would need far more.
        assert!(calls <= 4 * (CALLERS * TIMES) as u64, "{calls}");
    }
}

#[test]
fn an_invalid_semaphore_is_named() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (cluster.manager(), Lease::new());
    for (permits, words) in
        [(257, "permits is 257"), (-1, "permits is -1"), (70_000, "permits is 70000")]
    {
        assert_eq!(acquire(&manager, permits, 0, &lease), REDLOCK_INVALID_ARGUMENT);
        let said = lease.message();
        assert!(said.contains(words) && said.contains("1 to 256"), "{said}");
    }
    let wanted = Wanted { permits: 200, ..Wanted::new("r".repeat(2_000), TTL) };
    assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.message().contains("too long for 200 permits"), "{}", lease.message());
    // The maximum: a name of 1024 bytes, and 256 permits.
    let wanted = Wanted { permits: 256, ..Wanted::new("r".repeat(1_024), TTL) };
    let status = manager.acquire(&wanted, &lease);
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    // A permit cannot be continued as a lock.
    let lease = take(&manager, 2);
    assert_eq!(manager.continue_lock("r", TTL, &lease), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.message().contains("permit"), "{}", lease.message());
    let fencing = cluster.manager();
    assert_eq!(fencing.set_fencing(true), REDLOCK_OK);
    let lease = Lease::new();
    assert_eq!(acquire(&fencing, 2, 0, &lease), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.message().contains("fencing token"), "{}", lease.message());
}

#[test]
fn the_number_of_taken_permits_is_reported() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let look = || manager.inspect_permits("r", 3).expect("they answer");
    let sight = look();
    assert_eq!((sight.permits_taken, sight.locked, sight.remaining_ms), (0, false, 0));
    let leases: Vec<Lease> = (1..=3)
        .map(|count| {
            let lease = take(&manager, 3);
            let sight = look();
            assert_eq!((sight.permits_taken, sight.locked), (count, count == 3));
            assert!((TTL / 2..=TTL).contains(&sight.remaining_ms), "{sight:?}");
            lease
        })
        .collect();
    // Slots that only a minority has do not count.
    cluster[0].must(&["SET", "s", "a", "PX", "600000"]);
    cluster[1].must(&["SET", "s", "b", "PX", "600000"]);
    assert_eq!(manager.inspect_permits("s", 3).expect("they answer").permits_taken, 0);
    for lease in &leases {
        assert_eq!(manager.unlock(lease), REDLOCK_OK);
    }
    assert_eq!(look().permits_taken, 0);
    let (status, words) = manager.inspect_permits("r", 257).expect_err("too many");
    assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
    assert!(words.contains("permits is 257"), "{words}");
    for server in &cluster[..2] {
        server.kill();
    }
    let (status, words) = manager.inspect_permits("r", 3).expect_err("a quorum is down");
    assert_eq!(status, REDLOCK_UNREACHABLE, "{words}");
}
