//! Waiters for permits, and for several resources at once. They are told when the lock that they wait for is
//! released elsewhere.

use std::thread::{self, JoinHandle};

use redlock::ffi::status::RedLockStatus::{REDLOCK_CANCELLED, REDLOCK_OK, REDLOCK_TAKEN};

use crate::support::events::Wanted;
use crate::support::usage::{TTL, connected, patient};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};
use crate::waking::is_look;

const WAIT_MS: i64 = 60_000;

fn permit() -> Wanted {
    Wanted { permits: 2, wait_ms: WAIT_MS, ..Wanted::new("r", TTL) }
}

fn both() -> Wanted {
    Wanted { wait_ms: WAIT_MS, ..Wanted::several(&["a", "b"], TTL) }
}

fn one(name: &str) -> Wanted {
    Wanted { wait_ms: WAIT_MS, ..Wanted::new(name, TTL) }
}

/// How many waiters are in a queue of a server.
fn in_line(server: &Server, line: &str) -> i64 {
    server.must(&["ZCARD", line]).integer()
}

#[track_caller]
fn wait_until_in_line(cluster: &Cluster, line: &str, count: i64) {
    let is_so = |server: &Server| in_line(server, line) == count;
    wait_until("so many stand in line", || cluster.iter().all(is_so));
}

/// A queue that expires is empty as well. So it does not expire from now on.
#[track_caller]
fn wait_until_nobody_is_in_line(cluster: &Cluster, line: &str) {
    let is_empty = |server: &Server| {
        server.must(&["PERSIST", line]);
        in_line(server, line) == 0
    };
    wait_until("the line is empty", || cluster.iter().all(is_empty));
}

#[track_caller]
fn take(manager: &Manager, wanted: &Wanted) -> Lease {
    let lease = Lease::new();
    assert_eq!(manager.acquire(wanted, &lease), REDLOCK_OK, "{}", lease.message());
    lease
}

/// Waits on its own thread.
fn waiting(manager: Manager, wanted: Wanted) -> JoinHandle<(Manager, Lease)> {
    thread::spawn(move || {
        let lease = take(&manager, &wanted);
        (manager, lease)
    })
}

/// A place so far behind that the waiter looks next in five seconds. There is no other waiter to be told.
fn send_far_behind(server: &Server, line: &str) {
    for other in 0..40 {
        server.must(&["ZADD", line, "1", &format!("gone:{other}")]);
    }
    let looked = server.calls("zrank");
    wait_until("it has seen how far behind it is", || server.calls("zrank") > looked);
}

/// Returns when every server has heard that both permits, or both resources, are taken. Otherwise a server may
/// let a waiter in for a moment, and then the waiter is not in that server's queue.
#[track_caller]
fn wait_until_taken_everywhere(cluster: &Cluster, wanted: &Wanted) {
    let keys = if wanted.permits > 0 { ["r", "r#1"] } else { ["a", "b"] };
    keys.iter().for_each(|key| cluster.wait_until_everywhere(key));
}

/// A waiter waits for this, and something is released. The waiter takes it, and has not looked again.
#[track_caller]
fn is_told(server: &Cluster, wanted: Wanted, line: &str, let_go: impl FnOnce()) {
    let waiting = waiting(connected(server), wanted);
    wait_until_in_line(server, line, 1);
    send_far_behind(&server[0], line);
    let mut had = None;
    let asked = server[0].requests_in(|| {
        let_go();
        had = Some(waiting.join().expect("it has it"));
    });
    let (manager, lease) = had.expect("it was waited for");
    assert!(!asked.iter().any(|it| is_look(it)), "it was told: {asked:#?}");
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    assert_eq!(in_line(&server[0], line), 0);
}

#[test]
fn w06_a_permit_waiter_is_woken_by_any_released_permit() {
    for slot in ["r", "r#1"] {
        let (cluster, wanted) = (Cluster::start(1), permit());
        let holder = connected(&cluster);
        let held = [take(&holder, &wanted), take(&holder, &wanted)];
        // The library drew which of the two permits it is.
        let token = cluster[0].get(slot);
        let lease = held.iter().find(|it| Some(it.token()) == token).expect("both are taken");
        is_told(&cluster, wanted, "r:w", || assert_eq!(holder.unlock(lease), REDLOCK_OK));
    }
}

/// A lock of a semaphore's name, and an adopted permit, use a permit.
#[test]
fn w06_the_release_of_a_lock_wakes_permit_waiters_too() {
    let cluster = Cluster::start(1);
    for name in ["r", "r#1"] {
        let holder = connected(&cluster);
        let (lock, permit_of_two) = (take(&holder, &one(name)), take(&holder, &permit()));
        is_told(&cluster, permit(), "r:w", || assert_eq!(holder.unlock(&lock), REDLOCK_OK));
        assert_eq!(holder.unlock(&permit_of_two), REDLOCK_OK);
    }
    let holder = connected(&cluster);
    let held = [take(&holder, &permit()), take(&holder, &permit())];
    is_told(&cluster, permit(), "r:w", || {
        for lease in &held {
            let (ticket, adopted) = (holder.detach(lease).expect("a ticket"), Lease::new());
            assert_eq!(holder.adopt(&ticket, &adopted), REDLOCK_OK, "{}", adopted.message());
            assert_eq!(holder.unlock(&adopted), REDLOCK_OK, "{}", adopted.message());
        }
    });
}

/// A waiter for the lock of that name is first in the queue, and cannot use the permit that it is told about.
#[test]
fn w06_a_permit_offered_to_a_lock_waiter_goes_to_the_next() {
    let cluster = Cluster::start(1);
    let holder = connected(&cluster);
    let lock = take(&holder, &one("r"));
    let held = take(&holder, &permit());
    let locking = waiting(connected(&cluster), one("r"));
    wait_until_in_line(&cluster, "r:w", 1);
    let permitted = waiting(connected(&cluster), permit());
    wait_until_in_line(&cluster, "r:w", 2);
    assert_eq!(holder.unlock(&held), REDLOCK_OK);
    let (manager, lease) = permitted.join().expect("it has it");
    // The other waiter has asked for its place again.
    wait_until_in_line(&cluster, "r:w", 1);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    assert_eq!(holder.unlock(&lock), REDLOCK_OK);
    locking.join().expect("it has it");
}

#[test]
fn w07_a_waiter_for_several_is_woken_by_the_blocking_one() {
    let cluster = Cluster::start(1);
    for name in ["a", "b"] {
        let holder = connected(&cluster);
        let held = take(&holder, &one(name));
        is_told(&cluster, both(), &format!("{name}:w"), || {
            let other = if name == "a" { "b:w" } else { "a:w" };
            assert_eq!(in_line(&cluster[0], other), 0);
            assert_eq!(holder.unlock(&held), REDLOCK_OK);
        });
    }
}

/// Keys that one script sets may end a millisecond apart on one server, and together on another.
#[test]
fn w07_of_almost_equal_ends_the_first_is_waited_for() {
    for (later_ms, line) in [(1, "a:w"), (1_000, "b:w")] {
        let cluster = Cluster::start(1);
        let now = ["EVAL", "return redis.call('TIME')[1]*1000", "0"];
        let end = cluster[0].must(&now).integer() + 60_000;
        for (key, end) in [("a", end), ("b", end + later_ms)] {
            cluster[0].must(&["SET", key, "another's", "PXAT", &end.to_string()]);
        }
        let waiting = waiting(connected(&cluster), both());
        wait_until_in_line(&cluster, line, 1);
        cluster[0].must(&["DEL", "a", "b"]);
        let (manager, lease) = waiting.join().expect("it has it");
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    }
}

#[test]
fn w07_a_waiter_for_several_moves_to_the_next_blocking_line() {
    let cluster = Cluster::start(3);
    let holder = connected(&cluster);
    let (a, b) = (take(&holder, &one("a")), take(&holder, &Wanted { ttl_ms: TTL / 2, ..one("b") }));
    let waiting = waiting(connected(&cluster), both());
    wait_until_in_line(&cluster, "a:w", 1);
    assert_eq!(holder.unlock(&a), REDLOCK_OK);
    wait_until_in_line(&cluster, "b:w", 1);
    wait_until_nobody_is_in_line(&cluster, "a:w");
    assert_eq!(holder.unlock(&b), REDLOCK_OK);
    let (manager, lease) = waiting.join().expect("it has it");
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    wait_until_nobody_is_in_line(&cluster, "b:w");
}

#[test]
fn w07_the_release_of_several_wakes_waiters_for_each() {
    let cluster = Cluster::start(1);
    let semaphore = |name: &str| Wanted { permits: 2, ..one(name) };
    for (wanted, line) in [(one("a"), "a:w"), (one("b"), "b:w"), (both(), "a:w")] {
        let holder = connected(&cluster);
        let held = take(&holder, &both());
        is_told(&cluster, wanted, line, || assert_eq!(holder.unlock(&held), REDLOCK_OK));
    }
    let holder = connected(&cluster);
    let (held, permit) = (take(&holder, &both()), take(&holder, &semaphore("b")));
    let let_go = || assert_eq!(holder.unlock(&held), REDLOCK_OK);
    is_told(&cluster, semaphore("b"), "b:w", let_go);
    assert_eq!(holder.unlock(&permit), REDLOCK_OK);
}

#[test]
fn w08_every_kind_of_waiter_leaves_its_line() {
    for (wanted, line) in [(permit(), "r:w"), (both(), "a:w")] {
        let cluster = Cluster::start(3);
        let (holder, waiter) = (connected(&cluster), connected(&cluster));
        let _held = take(&holder, &wanted);
        let _other = (wanted.permits > 0).then(|| take(&holder, &wanted));
        wait_until_taken_everywhere(&cluster, &wanted);
        let lease = Lease::new();
        let brief = Wanted { wait_ms: 300, ..wanted.clone() };
        assert_eq!(waiter.acquire(&brief, &lease), REDLOCK_TAKEN, "{}", lease.message());
        wait_until_nobody_is_in_line(&cluster, line);
        thread::scope(|scope| {
            let calling = scope.spawn(|| waiter.acquire(&wanted, &lease));
            wait_until_in_line(&cluster, line, 1);
            assert_eq!(waiter.cancel(&lease), REDLOCK_OK);
            assert_eq!(calling.join().expect("it does not panic"), REDLOCK_CANCELLED);
        });
        wait_until_nobody_is_in_line(&cluster, line);
        // Also if its lease is freed.
        assert_eq!(waiter.submit_acquire(&wanted, &lease, 7), REDLOCK_OK);
        wait_until("it stands in line", || {
            assert!(waiter.next_event(1).is_none());
            cluster.iter().all(|server| in_line(server, line) == 1)
        });
        drop(lease);
        wait_until("it has left the line", || {
            waiter.next_event(1);
            cluster.iter().all(|server| in_line(server, line) == 0)
        });
    }
}

#[test]
fn w08_an_idle_woken_waiter_costs_the_next_one_a_look() {
    for (wanted, line) in [(permit(), "r:w"), (both(), "a:w")] {
        let cluster = Cluster::start(3);
        let (holder, frozen) = (connected(&cluster), connected(&cluster));
        let held = take(&holder, &wanted);
        let _other = (wanted.permits > 0).then(|| take(&holder, &wanted));
        wait_until_taken_everywhere(&cluster, &wanted);
        let lease = Lease::new();
        assert_eq!(frozen.submit_acquire(&wanted, &lease, 7), REDLOCK_OK);
        wait_until("it stands in line", || {
            assert!(frozen.next_event(1).is_none());
            cluster.iter().all(|server| in_line(server, line) == 1)
        });
        // No thread takes its events from now on.
        let waiting = waiting(connected(&cluster), wanted);
        wait_until_in_line(&cluster, line, 2);
        assert_eq!(holder.unlock(&held), REDLOCK_OK);
        waiting.join().expect("it has it");
    }
}

/// Features that servers do not permit are left out, and nothing fails because of that.
#[test]
fn w09_waiters_without_the_rights_poll() {
    for rule in [
        &["resetchannels"][..],
        &["-hello"],
        &["-zadd"],
        &["-publish"],
        &["resetkeys", "~r", "~r#1", "~a", "~b", "~redlock:guard"],
    ] {
        for wanted in [permit(), both()] {
            let cluster = Cluster::start(3);
            for server in cluster.iter() {
                server.must(&[&["ACL", "SETUSER", "default"], rule].concat());
            }
            let (holder, waiter) = (patient(&cluster), patient(&cluster));
            let held = take(&holder, &wanted);
            let other = (wanted.permits > 0).then(|| take(&holder, &wanted));
            let asked = cluster[0].scripts();
            let waiting = waiting(waiter, wanted);
            wait_until("it has asked more than once", || cluster[0].scripts() > asked + 2);
            assert_eq!(holder.unlock(&held), REDLOCK_OK, "{rule:?}: {}", held.message());
            let (manager, lease) = waiting.join().expect("it has it");
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{rule:?}: {}", lease.message());
            if let Some(lease) = other {
                assert_eq!(holder.unlock(&lease), REDLOCK_OK, "{rule:?}: {}", lease.message());
            }
        }
    }
}

#[test]
fn w09_without_waking_no_part_of_it_is_sent() {
    for wanted in [permit(), both()] {
        let cluster = Cluster::start(3);
        let (holder, waiter) = (patient(&cluster), patient(&cluster));
        for manager in [&holder, &waiter] {
            assert_eq!(manager.set_waking(false), REDLOCK_OK);
            manager.connect_to_all();
        }
        let held = take(&holder, &wanted);
        let _other = (wanted.permits > 0).then(|| take(&holder, &wanted));
        let asked = cluster[0].scripts();
        let waiting = waiting(waiter, wanted);
        wait_until("it has asked often", || cluster[0].scripts() > asked + 4);
        assert_eq!(holder.unlock(&held), REDLOCK_OK);
        waiting.join().expect("it has it");
        for server in cluster.iter() {
            for command in ["hello", "subscribe", "zadd", "publish", "zpopmin"] {
                assert_eq!(server.calls(command), 0, "{command}");
            }
        }
    }
}

/// One manager waits for a plain lock and for several resources at once. Each is taken in its time.
#[test]
fn w10_waiters_of_one_manager_keep_their_places_apart() {
    let cluster = Cluster::start(3);
    let holder = connected(&cluster);
    let (lock, first) =
        (take(&holder, &one("a")), take(&holder, &Wanted { permits: 2, ..one("a") }));
    let waiter = connected(&cluster);
    let all = [one("a"), Wanted { permits: 2, ..one("a") }, both()];
    thread::scope(|scope| {
        let calls = all.each_ref().map(|wanted| {
            let (waiter, count) = (&waiter, &cluster);
            let call = scope.spawn(move || {
                let lease = take(waiter, wanted);
                assert_eq!(waiter.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            });
            wait_until_in_line(count, "a:w", 1);
            call
        });
        assert_eq!(holder.unlock(&first), REDLOCK_OK);
        assert_eq!(holder.unlock(&lock), REDLOCK_OK);
        calls.into_iter().for_each(|call| call.join().expect("it has it"));
    });
    wait_until_nobody_is_in_line(&cluster, "a:w");
}
