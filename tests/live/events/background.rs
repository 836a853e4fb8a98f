//! The optional background thread of the library: it drives when no other thread does, and does nothing else.

use std::fs;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TOO_SLOW,
};

use crate::TTL;
use crate::support::events::Wanted;
use crate::support::usage::connected;
use crate::support::{Cluster, Lease, wait_until};

const A_MINUTE: Duration = Duration::from_secs(60);
/// As in the tests of locks that are kept.
const SHORT: i64 = 8_000;

fn kept(resource: &str) -> Wanted {
    Wanted { keep_alive: true, ..Wanted::new(resource, SHORT) }
}

/// The thread of this test's manager only. Other tests of this program have their own.
fn ids_of_ours() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("there are threads");
    let ids = tasks.map(|it| it.expect("a thread").file_name().to_string_lossy().into_owned());
    let is_ours = |id: &String| {
        fs::read_to_string(format!("/proc/self/task/{id}/comm")).is_ok_and(|it| it == "redlock\n")
    };
    ids.filter(is_ours).collect()
}

#[test]
fn the_background_thread_keeps_a_lock() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    assert_eq!(manager.acquire(&kept("r"), &lease), REDLOCK_OK, "{}", lease.message());
    let mut renewed = 0;
    let mut last = lease.remaining_ms();
    wait_until("it is renewed a few times", || {
        let now = lease.remaining_ms();
        assert!(now > 0, "it has expired");
        renewed += i32::from(now > last);
        last = now;
        renewed > 1
    });
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone("r");
}

#[test]
fn the_background_thread_runs_submitted_calls() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let events = manager.told_events();
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    for round in 0..50 {
        assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, round), REDLOCK_OK);
        let event = events.recv_timeout(A_MINUTE).expect("an event");
        assert_eq!((event.status, event.user_data), (REDLOCK_OK, round), "{}", lease.message());
        assert!(lease.is_held());
        assert_eq!(manager.submit_unlock(&lease, round), REDLOCK_OK);
        assert_eq!(events.recv_timeout(A_MINUTE).expect("an event").status, REDLOCK_OK);
    }
    assert_eq!(events.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout));
}

/// The call has ended long before the thread begins.
#[test]
fn an_event_passed_on_late_gives_no_lock() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    assert_eq!(manager.submit_acquire(&Wanted::new("r", 3_000), &lease, 1), REDLOCK_OK);
    // A blocking call also drives the other call. After that no thread takes its event.
    let own = manager.take("s", TTL);
    cluster.wait_until_gone("r");
    let events = manager.told_events();
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    assert_eq!(manager.unlock(&own), REDLOCK_OK, "{}", own.message());
    let event = events.recv_timeout(A_MINUTE).expect("an event");
    assert_eq!((event.status, event.user_data), (REDLOCK_TOO_SLOW, 1), "{}", lease.message());
    assert!(!lease.is_held() && lease.token().is_empty());
}

#[test]
fn the_background_thread_reports_a_lost_lock() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let events = manager.told_events();
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    assert_eq!(manager.acquire(&kept("r"), &lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    let event = events.recv_timeout(A_MINUTE).expect("an event");
    assert_eq!((event.is_lost, event.status), (true, REDLOCK_LOST));
    assert_eq!(event.lease, lease.raw().addr());
}

#[test]
fn blocking_calls_work_beside_the_background_thread() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    let other = Lease::new();
    assert_eq!(manager.acquire(&kept("kept"), &other), REDLOCK_OK, "{}", other.message());
    for _ in 0..500 {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
    assert!(other.is_held());
}

/// Alone in its process, because the threads are counted.
#[test]
fn the_background_thread_exists_only_while_it_is_wanted() {
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    let lease = manager.take("r", TTL);
    let before = ids_of_ours();
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    let mut ours = String::new();
    wait_until("it is there", || {
        let found = ids_of_ours().into_iter().find(|id| !before.contains(id));
        found.inspect(|id| ours.clone_from(id)).is_some()
    });
    let status = fs::read_to_string(format!("/proc/self/task/{ours}/status")).unwrap_or_default();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    if let Some(blocked) = blocked {
        // All signals that can be blocked, except those that the C library reserves for itself.
        let mask = u64::from_str_radix(blocked.trim(), 16).expect("a mask");
        let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGALRM, libc::SIGCHLD];
        assert!(signals.iter().all(|it| mask & (1 << (it - 1)) != 0), "{blocked}");
    }
    assert_eq!(manager.set_background_thread(false), REDLOCK_OK);
    wait_until("it is gone", || !ids_of_ours().contains(&ours));
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
}

#[test]
fn the_background_thread_ends_with_its_manager() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let held = cluster.manager().take("r", TTL);
    let events = manager.told_events();
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("r", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &lease, 4), REDLOCK_OK);
    drop(manager);
    let event = events.recv_timeout(A_MINUTE).expect("an event");
    assert_eq!((event.status, event.user_data), (REDLOCK_CANCELLED, 4));
    // The callback is destroyed with the thread.
    assert_eq!(events.recv_timeout(A_MINUTE), Err(RecvTimeoutError::Disconnected));
    drop(held);
}
