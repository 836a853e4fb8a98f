//! Permits of semaphores: never more than the limit, whatever servers and callers do.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::usage::{
    BRIEF_MS, TTL, addresses, blames, connected, connected_unguarded, make_brief, patient,
};
use crate::support::{Cluster, Lease, Manager, Proxy, Server, Way, wait_until};

const SLOTS: [&str; 4] = ["r", "r#1", "r#2", "r#3"];

fn wanted(permits: i32, wait_ms: i64) -> Wanted {
    Wanted { permits, wait_ms, ..Wanted::new("r", TTL) }
}

fn acquire(manager: &Manager, permits: i32, lease: &Lease) -> RedLockStatus {
    manager.acquire(&wanted(permits, 0), lease)
}

/// How many slots are occupied, on all servers together.
fn left(servers: &[Server]) -> usize {
    let on = |server: &Server| SLOTS.iter().filter(|slot| server.exists(slot)).count();
    servers.iter().map(on).sum()
}

#[track_caller]
fn nothing_is_left(manager: &Manager, servers: &[Server]) {
    wait_until("all slots are free", || {
        manager.is_locked("another") == Ok(false) && left(servers) == 0
    });
}

/// Callers of several managers take permits, and locks of the same name, while one server after the other is
/// frozen.
#[test]
fn z01_no_more_callers_hold_permits_than_there_are() {
    const PERMITS: usize = 2;
    let cluster = Cluster::start(3);
    let managers: Vec<Manager> = (0..3).map(|_| patient(&cluster)).collect();
    for manager in &managers {
        manager.connect_to_all();
        assert_eq!(manager.set_timeouts(BRIEF_MS, BRIEF_MS), REDLOCK_OK);
    }
    let (had, taken, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for manager in &managers {
            for caller in 0..3 {
                let (had, taken, is_over) = (&had, &taken, &is_over);
                scope.spawn(move || {
                    let lease = Lease::new();
                    while !is_over.load(Ordering::SeqCst) {
                        let permits = if caller == 0 { 0 } else { PERMITS as i32 };
                        let status = manager.acquire(&wanted(permits, 2_000), &lease);
                        if [REDLOCK_TAKEN, REDLOCK_UNREACHABLE, REDLOCK_TOO_SLOW].contains(&status)
                        {
                            continue;
                        }
                        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                        let now = had.fetch_add(1, Ordering::SeqCst) + 1;
                        assert!(now <= PERMITS, "{now} have one");
                        thread::yield_now();
                        had.fetch_sub(1, Ordering::SeqCst);
                        taken.fetch_add(1, Ordering::SeqCst);
                        manager.unlock(&lease);
                    }
                });
            }
        }
        let pass = |more: usize| {
            let until = taken.load(Ordering::SeqCst) + more;
            wait_until("permits are taken", || taken.load(Ordering::SeqCst) >= until);
        };
        for server in &*cluster {
            pass(20);
            server.freeze();
            pass(10);
            server.resume();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    nothing_is_left(&managers[0], &cluster);
}

/// The third server has granted another slot, and its answer comes after the permit was taken. The key that it
/// set is given up.
#[test]
fn z02_the_slot_of_a_late_server_is_freed() {
    let cluster = Cluster::start(3);
    let proxies: Vec<_> = cluster.iter().map(Proxy::to).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let manager = Manager::of_urls(&urls);
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    manager.connect_to_all();
    // On the third server, all slots but one are another client's. On the first two servers that one slot is
    // taken.
    for server in &cluster[..2] {
        server.must(&["SET", "r#3", "other", "PX", "600000"]);
    }
    for slot in ["r", "r#1", "r#2"] {
        cluster[2].must(&["SET", slot, "other", "PX", "600000"]);
    }
    proxies[2].stall(Way::Replies);
    let lease = Lease::new();
    assert_eq!(acquire(&manager, 4, &lease), REDLOCK_OK, "{}", lease.message());
    wait_until("the third gives up what it has given", || {
        cluster[2].scripts() >= 2 && !cluster[2].exists("r#3")
    });
    proxies[2].heal();
    assert_eq!(manager.confirm(&lease, 1), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    for server in &*cluster {
        server.must(&["DEL", "r", "r#1", "r#2", "r#3"]);
    }
    nothing_is_left(&manager, &cluster);
}

/// A list only blocks a caller that wants this slot.
#[test]
fn z03_a_foreign_value_under_a_slot_name_is_left_alone() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    for server in &*cluster {
        server.must(&["RPUSH", "r#1", "a", "b"]);
    }
    let leases: Vec<Lease> = (0..2).map(|_| Lease::new()).collect();
    for lease in &leases {
        assert_eq!(acquire(&manager, 3, lease), REDLOCK_OK, "{}", lease.message());
    }
    let last = Lease::new();
    assert_eq!(acquire(&manager, 3, &last), REDLOCK_TAKEN, "{}", last.message());
    for lease in &leases {
        assert_eq!(manager.unlock(lease), REDLOCK_OK);
    }
    for server in &*cluster {
        assert_eq!(server.must(&["TYPE", "r#1"]).text().as_deref(), Some("list"));
        server.must(&["DEL", "r#1"]);
    }
    nothing_is_left(&manager, &cluster);
}

/// A user who may not use a command, or a slot.
#[test]
fn z04_a_user_without_rights_is_told_and_leaves_nothing() {
    let forbids: [&[&str]; 3] =
        [&["-mget"], &["-@scripting"], &["resetkeys", "~r", "~another", "~redlock:guard"]];
    for forbid in forbids {
        let cluster = Cluster::start(3);
        let manager = connected(&cluster);
        let set = |server: &Server, rules: &[&str]| {
            server.must(&[&["ACL", "SETUSER", "default"][..], rules].concat());
        };
        set(&cluster[0], forbid);
        let lease = Lease::new();
        assert_eq!(acquire(&manager, 4, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        set(&cluster[1], forbid);
        make_brief(&manager);
        assert_eq!(acquire(&manager, 4, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &addresses(&cluster[..2]), &["user lacks"]).expect("named");
        for server in &cluster[..2] {
            set(server, &["+@all", "allkeys"]);
        }
        nothing_is_left(&manager, &cluster);
    }
}

/// With the guard, a server that lost its memory has no vote for a permit. Without the guard, one more caller
/// gets a permit. So the test can see the difference.
#[test]
fn z05_a_forgetful_server_gives_no_permit_twice() {
    for (is_guarded, more) in [(true, 0), (false, 1)] {
        let cluster = Cluster::start(3);
        cluster.iter().for_each(|it| it.be_in_use(TTL));
        let make = if is_guarded { connected } else { connected_unguarded };
        let holder = make(&cluster);
        cluster[2].freeze();
        let leases: Vec<Lease> = (0..2).map(|_| Lease::new()).collect();
        for lease in &leases {
            assert_eq!(acquire(&holder, 2, lease), REDLOCK_OK, "{}", lease.message());
        }
        cluster[2].kill();
        cluster[2].restart();
        cluster[1].kill();
        cluster[1].restart();
        let other = if is_guarded { patient(&cluster) } else { connected_unguarded(&cluster) };
        let lease = Lease::new();
        let status = acquire(&other, 2, &lease);
        assert_eq!(usize::from(status == REDLOCK_OK), more, "{}", lease.message());
    }
}
