//! How often, and for how long, a call tries to take a lock that is held.

use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::servers::REDLOCK_GUARD_OFF;
use redlock::ffi::status::RedLockStatus::{self, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::support::{Lease, Manager, Server, wait_until};
use crate::{PATIENT_MS, TOO_LONG, TTL};

#[test]
fn three_tries_have_two_pauses() {
    let (server, manager) = taken();
    manager.set_retry(3, 200);
    let (tries, took) = try_hard(&server, || manager.lock("r", TTL, &Lease::new()));
    assert_eq!(tries, 3);
    // Two random pauses of 100 to 300 ms each.
    assert!(took >= Duration::from_millis(200), "{took:?}");
    assert!(took < TOO_LONG, "{took:?}");
}

#[test]
fn there_is_no_pause_after_the_last_try() {
    let (server, manager) = taken();
    manager.set_retry(1, 30_000);
    let (tries, took) = try_hard(&server, || manager.lock("r", TTL, &Lease::new()));
    assert_eq!(tries, 1);
    assert!(took < TOO_LONG, "{took:?}");
    let (tries, _) = try_hard(&server, || manager.continue_lock("r", TTL, &Lease::new()));
    assert_eq!(tries, 1);
}

#[test]
fn one_try_without_delay_is_one_try() {
    let (server, manager) = taken();
    manager.set_retry(1, 0);
    let (tries, took) = try_hard(&server, || manager.lock("r", TTL, &Lease::new()));
    assert_eq!(tries, 1);
    assert!(took < TOO_LONG, "{took:?}");
}

#[test]
fn tries_may_follow_each_other_without_delay() {
    let (server, manager) = taken();
    manager.set_retry(200, 0);
    let (tries, took) = try_hard(&server, || manager.lock("r", TTL, &Lease::new()));
    assert_eq!(tries, 200);
    assert!(took < TOO_LONG, "{took:?}");
}

#[test]
fn continue_lock_tries_as_often_as_lock() {
    let (server, manager) = taken();
    manager.set_retry(4, 10);
    let (tries, _) = try_hard(&server, || manager.continue_lock("r", TTL, &Lease::new()));
    assert_eq!(tries, 4);
}

#[test]
fn try_lock_without_wait_tries_once() {
    let (server, manager) = taken();
    manager.set_retry(5, 3_000);
    let (tries, took) = try_hard(&server, || manager.try_lock("r", TTL, 0, &Lease::new()));
    assert_eq!(tries, 1);
    assert!(took < TOO_LONG, "{took:?}");
}

#[test]
fn try_lock_tries_for_the_whole_wait() {
    let (server, manager) = taken();
    manager.set_retry(1, 50);
    manager.set_waking(false);
    let before = server.calls("set");
    let took = refused_for(&manager, 700);
    let tries = server.calls("set") - before;
    assert!(tries >= 3, "{tries} tries");
    assert!(took >= Duration::from_millis(700 - 75), "{took:?}");
    // A pause that is longer than the wait time does not prolong the call.
    manager.set_retry(1, 60_000);
    refused_for(&manager, 300);
}

/// Returns how long the call took. The last try has little time. If the machine is too busy even for that, the
/// call is repeated.
fn refused_for(manager: &Manager, wait_ms: i64) -> Duration {
    for _ in 0..10 {
        let start = Instant::now();
        let status = manager.try_lock("r", TTL, wait_ms, &Lease::new());
        let took = start.elapsed();
        assert!(took < TOO_LONG, "{took:?}");
        match status {
            REDLOCK_TAKEN => return took,
            other => assert_eq!(other, REDLOCK_UNREACHABLE),
        }
    }
    panic!("somebody holds it, and the call does not say so");
}

#[test]
fn try_lock_can_wait_forever() {
    let (server, manager) = taken();
    manager.set_retry(1, 20);
    manager.set_waking(false);
    let taking = thread::spawn(move || {
        let lease = Lease::new();
        (manager.try_lock("r", TTL, -1, &lease), lease.token())
    });
    let before = server.calls("set");
    wait_until("it tries again and again", || server.calls("set") > before + 5);
    assert!(!taking.is_finished());
    server.must(&["DEL", "r"]);
    let (status, token) = taking.join().expect("it does not panic");
    assert_eq!(status, REDLOCK_OK);
    assert_eq!(server.get("r"), Some(token));
}

#[test]
fn lock_can_succeed_on_a_later_try() {
    let (server, manager) = taken();
    manager.set_retry(1_000, 20);
    let taking = thread::spawn(move || {
        let lease = Lease::new();
        (manager.lock("r", TTL, &lease), lease.message())
    });
    let before = server.calls("set");
    wait_until("it tries again", || server.calls("set") > before + 2);
    server.must(&["DEL", "r"]);
    assert_eq!(taking.join().expect("it does not panic"), (REDLOCK_OK, String::new()));
}

#[test]
fn pauses_are_random() {
    let (server, manager) = taken();
    manager.set_retry(2, 100);
    let took: Vec<_> = (0..12)
        .map(|_| try_hard(&server, || manager.lock("r", TTL, &Lease::new())).1.as_millis())
        .collect();
    // Each is one pause of 50 to 150 ms. By chance, all twelve lie within 20 ms once in millions of runs.
    let (least, most) = (took.iter().min().expect("twelve"), took.iter().max().expect("twelve"));
    assert!(*least >= 50 && most - least > 20, "{took:?}");
}

/// A server on which another client holds "r", and a manager that is connected to it.
fn taken() -> (Server, Manager) {
    let server = Server::start();
    server.must(&["SET", "r", "theirs"]);
    let manager = Manager::of(std::slice::from_ref(&server));
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    assert_eq!(manager.is_locked("r"), Ok(true));
    (server, manager)
}

/// The number of tries that the server saw in a refused call, and how long the call took.
fn try_hard(server: &Server, call: impl FnOnce() -> RedLockStatus) -> (u64, Duration) {
    let (before, start) = (server.calls("set"), Instant::now());
    assert_eq!(call(), REDLOCK_TAKEN);
    let took = start.elapsed();
    (server.calls("set") - before, took)
}

/// A server that owes an answer is neither asked nor waited for again until it has caught up.
#[test]
fn a_server_with_overdue_answers_is_not_asked() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    let lease = manager.take("r", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    manager.set_timeouts(1_500, 200);
    server.freeze();
    let is_asked = || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        !lease.message().contains("not asked: no reply")
    };
    // The server may be asked the second time, too, if the first call ended to the millisecond. This is long
    // before the server gets another connection. After that it would not be asked either.
    let asked = (0..3).take_while(|_| is_asked()).count();
    assert!((1..=2).contains(&asked), "it was asked {asked} times: {}", lease.message());
    server.resume();
    wait_until("it is asked again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
}

/// A quiet connection is checked before it is used, so a restart costs no attempt.
#[test]
fn a_restart_in_a_quiet_time_costs_no_attempt() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    assert_eq!(manager.set_restart_guard(REDLOCK_GUARD_OFF), REDLOCK_OK);
    let lease = manager.take("r", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    server.kill();
    server.restart();
    // As long as a connection has to be quiet. No event happens that the test could wait for.
    thread::sleep(Duration::from_millis(80));
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
}
