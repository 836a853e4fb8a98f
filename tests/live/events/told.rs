//! Whoever drives also tells the logger: a program that only keeps locks makes no call at whose end that could happen.

use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_CANCELLED, REDLOCK_NO_EVENT, REDLOCK_OK};

use crate::support::client::Manager;
use crate::support::events::Wanted;
use crate::support::usage::connected;
use crate::support::{Cluster, Lease, wait_until};

/// Renewed soon, so that a lost server is noticed soon.
const SHORT: i64 = 8_000;

/// Keeps a lock, kills a server, and waits until the logger is told, while `attend` is the only call.
fn is_told_while(attend: impl Fn(&Manager, &Lease) + Sync) {
    let cluster = Cluster::start(3);
    let (manager, lease, waiting) = (connected(&cluster), Lease::new(), Lease::new());
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    let other = cluster.manager();
    let _taken = other.take("taken", 600_000);
    let kept = Wanted { keep_alive: true, ..Wanted::new("r", SHORT) };
    assert_eq!(manager.acquire_without_driver(&kept, &lease), REDLOCK_OK);
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("taken", 600_000) };
    assert_eq!(manager.submit_acquire(&wanted, &waiting, 0), REDLOCK_OK);
    let log = manager.log();
    thread::scope(|scope| {
        let attending = scope.spawn(|| attend(&manager, &waiting));
        cluster[1].kill();
        wait_until("the logger is told", || log.text().contains(&cluster[1].address()));
        assert_eq!(manager.cancel(&waiting), REDLOCK_OK);
        attending.join().expect("no panic");
    });
}

#[test]
fn the_background_thread_calls_the_logger() {
    is_told_while(|_, _| {});
}

#[test]
fn a_thread_waiting_for_an_event_calls_the_logger() {
    is_told_while(|manager, _| {
        assert_eq!(manager.set_background_thread(false), REDLOCK_OK);
        assert_eq!(manager.event().status, REDLOCK_CANCELLED);
    });
}

#[test]
fn a_thread_waiting_for_its_call_calls_the_logger() {
    is_told_while(|manager, lease| {
        assert_eq!(manager.set_background_thread(false), REDLOCK_OK);
        let status = manager.wait(lease, 600_000);
        assert!(status != REDLOCK_NO_EVENT, "{status:?}");
        assert_eq!(status, REDLOCK_CANCELLED);
    });
}
