//! Waiters that are told when a lock is released elsewhere, and waiters that are not told.

use std::thread;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::usage::{TTL, connected, nothing_is_left, patient};
use crate::support::{Cluster, Fake, Lease, Manager, Server, wait_until};

const RESOURCE: &str = "r";
const LINE: &str = "r:w";
const WAIT_MS: i64 = 60_000;

/// How many waiters are in the queue on a server.
fn in_line(server: &Server) -> i64 {
    server.must(&["ZCARD", LINE]).integer()
}

fn wait_until_in_line(cluster: &Cluster) {
    wait_until("it stands in line", || cluster.iter().all(|server| in_line(server) == 1));
}

/// A queue that expires is empty as well. So it does not expire from now on.
fn wait_until_nobody_is_in_line(cluster: &Cluster) {
    let is_empty = |server: &Server| {
        server.must(&["PERSIST", LINE]);
        in_line(server) == 0
    };
    wait_until("the line is empty", || cluster.iter().all(is_empty));
}

/// Whether a waiter sends this request when it looks by itself. The script asks for the waiter's rank.
pub(crate) fn is_look(request: &str) -> bool {
    // By the text of its script, or by the channel behind the script's hash.
    request.contains("ZRANK") || request.contains("EVALSHA") && request.contains("redlock:w:")
}

/// Waits on its own thread. Returns whether it has taken the lock, with its manager and lease.
fn waiting(manager: Manager) -> thread::JoinHandle<(bool, Manager, Lease)> {
    thread::spawn(move || {
        let lease = Lease::new();
        let is_had = manager.try_lock(RESOURCE, TTL, WAIT_MS, &lease) == REDLOCK_OK;
        (is_had, manager, lease)
    })
}

#[test]
fn w01_a_waiter_is_woken_by_a_release_and_looks_no_more() {
    let cluster = Cluster::start(1);
    let (holder, waiter) = (connected(&cluster), connected(&cluster));
    let held = holder.take(RESOURCE, TTL);
    let waiting = waiting(waiter);
    wait_until_in_line(&cluster);
    // A place so far behind that the waiter would look only after this test. There is no other waiter to be
    // told.
    for other in 0..40 {
        cluster[0].must(&["ZADD", LINE, "1", &format!("gone:{other}")]);
    }
    let looked = cluster[0].calls("zrank");
    wait_until("it has seen how far behind it is", || cluster[0].calls("zrank") > looked);
    let mut had = None;
    let asked = cluster[0].requests_in(|| {
        assert_eq!(holder.unlock(&held), REDLOCK_OK);
        had = Some(waiting.join().expect("it does not panic"));
    });
    let (is_had, waiter, lease) = had.expect("it was waited for");
    assert!(is_had, "{}", lease.message());
    assert!(!asked.iter().any(|it| is_look(it)), "it was told: {asked:#?}");
    assert_eq!(in_line(&cluster[0]), 0);
    assert_eq!(waiter.unlock(&lease), REDLOCK_OK);
    nothing_is_left(&waiter, &cluster, RESOURCE);
}

#[test]
fn w01_event_loops_and_background_threads_are_woken_too() {
    for has_thread in [false, true] {
        let cluster = Cluster::start(3);
        let (holder, waiter) = (connected(&cluster), connected(&cluster));
        let held = holder.take(RESOURCE, TTL);
        cluster.wait_until_everywhere(RESOURCE);
        let events = has_thread.then(|| {
            assert_eq!(waiter.set_background_thread(true), REDLOCK_OK);
            waiter.told_events()
        });
        let (wanted, lease) =
            (Wanted { wait_ms: WAIT_MS, ..Wanted::new(RESOURCE, TTL) }, Lease::new());
        assert_eq!(waiter.submit_acquire(&wanted, &lease, 7), REDLOCK_OK);
        match events {
            Some(events) => {
                wait_until_in_line(&cluster);
                assert_eq!(holder.unlock(&held), REDLOCK_OK);
                assert_eq!(events.recv().expect("an event").status, REDLOCK_OK);
            }
            None => {
                wait_until("it stands in line", || {
                    assert!(waiter.next_event(1).is_none());
                    cluster.iter().all(|server| in_line(server) == 1)
                });
                assert_eq!(holder.unlock(&held), REDLOCK_OK);
                assert_eq!(waiter.event_by_descriptor().status, REDLOCK_OK);
            }
        }
        assert!(lease.is_held());
    }
}

#[test]
fn w02_a_waiter_that_gives_up_leaves_the_line() {
    let cluster = Cluster::start(3);
    let (holder, waiter) = (connected(&cluster), connected(&cluster));
    let _held = holder.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    let lease = Lease::new();
    let status = waiter.try_lock(RESOURCE, TTL, 300, &lease);
    assert!([REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status), "{}", lease.message());
    wait_until_nobody_is_in_line(&cluster);
    thread::scope(|scope| {
        let calling = scope.spawn(|| waiter.try_lock(RESOURCE, TTL, WAIT_MS, &lease));
        wait_until_in_line(&cluster);
        assert_eq!(waiter.cancel(&lease), REDLOCK_OK);
        assert_eq!(calling.join().expect("it does not panic"), REDLOCK_CANCELLED);
    });
    wait_until_nobody_is_in_line(&cluster);
    for server in cluster.iter() {
        assert!(server.pttl(LINE) < 0, "a line ends by itself, or is none");
    }
}

#[test]
fn w03_an_idle_woken_waiter_costs_the_next_one_a_look() {
    let cluster = Cluster::start(3);
    let (holder, frozen, waiter) = (connected(&cluster), connected(&cluster), connected(&cluster));
    let held = holder.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    let (wanted, lease) = (Wanted { wait_ms: WAIT_MS, ..Wanted::new(RESOURCE, TTL) }, Lease::new());
    assert_eq!(frozen.submit_acquire(&wanted, &lease, 7), REDLOCK_OK);
    wait_until("it stands in line", || {
        assert!(frozen.next_event(1).is_none());
        cluster.iter().all(|server| in_line(server) == 1)
    });
    // No thread takes its events from now on.
    let waiting = waiting(waiter);
    wait_until("both stand in line", || cluster.iter().all(|server| in_line(server) == 2));
    assert_eq!(holder.unlock(&held), REDLOCK_OK);
    let (is_had, ..) = waiting.join().expect("it does not panic");
    assert!(is_had);
}

/// Features that servers do not permit are left out, and nothing fails because of that.
#[test]
fn w04_a_waiter_without_the_rights_polls() {
    for rule in [
        &["resetchannels"][..],
        &["-hello"],
        &["-subscribe"],
        &["-zadd"],
        &["-publish"],
        &["resetkeys", "~r", "~redlock:guard"],
    ] {
        let cluster = Cluster::start(3);
        for server in cluster.iter() {
            server.must(&[&["ACL", "SETUSER", "default"], rule].concat());
        }
        let (holder, waiter) = (connected(&cluster), connected(&cluster));
        let log = waiter.log();
        for _ in 0..2 {
            let held = holder.take(RESOURCE, TTL);
            cluster.wait_until_everywhere(RESOURCE);
            let (asked, lease) = (cluster[0].calls("set"), Lease::new());
            thread::scope(|scope| {
                let calling = scope.spawn(|| waiter.try_lock(RESOURCE, TTL, WAIT_MS, &lease));
                wait_until("it was refused", || cluster[0].calls("set") > asked);
                assert_eq!(holder.unlock(&held), REDLOCK_OK, "{rule:?}: {}", held.message());
                assert_eq!(calling.join().expect("it does not panic"), REDLOCK_OK, "{rule:?}");
            });
            assert_eq!(waiter.unlock(&lease), REDLOCK_OK, "{rule:?}: {}", lease.message());
            // A quorum has released the lock. The next holder can take it on all servers once the last server
            // has released it, too. A refused release is sent once more as another command, when its manager is
            // called.
            wait_until("every server has released it", || {
                assert!(holder.next_event(0).is_none() && waiter.next_event(0).is_none());
                cluster.having(RESOURCE) == 0
            });
        }
        // At most once per server and wait: a request for the queue succeeds when no client holds the lock any
        // more.
        let refused = log.lines().iter().filter(|line| !line.1.ends_with("works again")).count();
        assert!(refused <= 6, "{rule:?}: {}", log.text());
    }
}

/// A server that sends unrequested data. A map is the answer of a RESP3 server to HELLO.
fn talking(push: String) -> Fake {
    Fake::obeying(move |command, _| match command {
        "HELLO" => Some(
            format!("%1\r\n$5\r\nproto\r\n:3\r\n{push}+")
                .trim_end_matches('+')
                .trim_end()
                .to_owned(),
        ),
        "SET" => Some(format!("+OK\r\n{}", push.trim_end())),
        "PTTL" => Some(format!(":600000\r\n{}", push.trim_end())),
        "EVAL" => Some(format!("{push}:1")),
        _ => None,
    })
}

#[test]
fn w05_unrequested_pushes_are_no_replies_and_bounded() {
    let foreign = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nr\r\n".to_owned();
    let tracking = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nr\r\n".to_owned();
    for push in [foreign, tracking] {
        let fake = talking(push);
        let manager = Manager::at(&[fake.address()]);
        for _ in 0..3 {
            let lease = Lease::new();
            assert_eq!(manager.lock(RESOURCE, TTL, &lease), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        }
        assert_eq!(fake.connections(), 1);
    }
    for push in [
        format!(">2\r\n$7\r\nmessage\r\n${}\r\n", 1 << 30),
        ">1000000000\r\n".to_owned(),
        ">0\r\n".to_owned(),
        "+OK\r\n".to_owned(),
    ] {
        let fake = talking(push);
        let manager = Manager::at(&[fake.address()]);
        assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
        let lease = Lease::new();
        assert_eq!(manager.lock(RESOURCE, TTL, &lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    }
}

/// A manager with waking turned off joins no queue, and wakes no waiter.
#[test]
fn w05_waking_can_be_turned_off() {
    let cluster = Cluster::start(3);
    let (holder, waiter) = (patient(&cluster), patient(&cluster));
    for manager in [&holder, &waiter] {
        assert_eq!(manager.set_waking(false), REDLOCK_OK);
        manager.connect_to_all();
    }
    let held = holder.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    let waiting = waiting(waiter);
    wait_until("it has asked often", || cluster[0].calls("set") > 4);
    assert_eq!(holder.unlock(&held), REDLOCK_OK);
    let (is_had, ..) = waiting.join().expect("it does not panic");
    assert!(is_had);
    for server in cluster.iter() {
        for command in ["hello", "subscribe", "zadd", "publish"] {
            assert_eq!(server.calls(command), 0, "{command}");
        }
    }
}
