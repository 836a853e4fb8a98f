//! Loggers that do arbitrary things in the middle of a call that goes wrong.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::mem;
use std::ptr;
use std::thread;
use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};
use redlock::ffi::{RedLock_Free, RedLock_Lock, RedLock_SetLogger};

use crate::support::usage::{PATIENT_MS, TTL, connected, make_brief};
use crate::support::{Cluster, Lease, Manager, Program, Server, wait_until};

/// Called for each line, on the thread of the call.
struct Logger<'a> {
    react: Box<dyn Fn() + 'a>,
    /// How often the logger was called, and whether it is being called right now. The logger's own actions may
    /// log as well.
    calls: Cell<usize>,
    is_in_it: Cell<bool>,
}

impl<'a> Logger<'a> {
    fn of(manager: &Manager, react: impl Fn() + 'a) -> Box<Self> {
        let (calls, is_in_it) = (Cell::new(0), Cell::new(false));
        let logger = Box::new(Self { react: Box::new(react), calls, is_in_it });
        let user_data = ptr::from_ref(&*logger).cast_mut().cast();
        // SAFETY: the manager lives, and each test keeps the box until its last call on the manager is over.
        let status = unsafe { RedLock_SetLogger(manager.raw(), Some(react_to), user_data, None) };
        assert_eq!(status, REDLOCK_OK);
        logger
    }
}

unsafe extern "C" fn react_to(_: i32, _: *const c_char, user_data: *mut c_void) {
    // SAFETY: the pointer comes from `Logger::of`, and the logger lives. Only the thread of the test uses it.
    let logger = unsafe { &*user_data.cast::<Logger>() };
    logger.calls.set(logger.calls.get() + 1);
    if !logger.is_in_it.replace(true) {
        (logger.react)();
        logger.is_in_it.set(false);
    }
}

#[test]
fn x02_a_logger_may_free_the_calling_manager() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    make_brief(&manager);
    let raw = manager.raw();
    let is_free = Cell::new(false);
    let logger = Logger::of(&manager, || {
        if !is_free.replace(true) {
            // SAFETY: made by RedLock_New and freed once, because its owner forgets it.
            unsafe { RedLock_Free(raw) };
        }
    });
    mem::forget(manager);
    cluster[..2].iter().for_each(Server::kill);
    let lease = Lease::new();
    // SAFETY: the manager is freed only after this call has begun, and the call keeps it alive.
    let status = unsafe { RedLock_Lock(raw, c"r".as_ptr(), TTL, lease.raw()) };
    assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
    assert!(is_free.get() && logger.calls.get() > 0);
    assert!(!lease.is_held());
    wait_until("the connections are closed", || cluster[2].clients().is_empty());
    wait_until("nothing is left", || !cluster[2].exists("r"));
}

/// Also for the resource of the call that is being logged, and with its lease.
#[test]
fn x02_a_logger_may_make_any_call() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    assert_eq!(manager.set_retry(2, 5), REDLOCK_OK);
    let (lease, other) = (Lease::new(), Lease::new());
    let logger = Logger::of(&manager, || {
        let status = manager.confirm(&lease, 0);
        assert!([REDLOCK_OK, REDLOCK_LOST, REDLOCK_UNREACHABLE].contains(&status), "{status:?}");
        let _ = (lease.is_held(), manager.is_locked("r"), manager.connect(100));
        for status in [manager.try_lock("r", TTL, 20, &other), manager.lock("r", TTL, &other)] {
            let is_outcome = [REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status);
            assert!(is_outcome || other.is_held(), "{status:?}: {}", other.message());
        }
        manager.unlock(&other);
    });
    for _ in 0..10 {
        let before = logger.calls.get();
        wait_until("the logger is called in a call", || {
            cluster.iter().for_each(Server::hang_up);
            if manager.try_lock("r", TTL, 1_000, &lease) == REDLOCK_OK {
                assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            }
            logger.calls.get() > before
        });
    }
    let status = manager.try_lock("r", TTL, 5_000, &lease);
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    wait_until("nothing is left", || {
        manager.is_locked("another") == Ok(false) && cluster.having("r") == 0
    });
}

/// Whenever the logger is called in a call, the remaining validity is no more than the servers have.
#[test]
fn x02_the_time_of_a_logger_reduces_the_validity() {
    const TTL_MS: i64 = 1_000;
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let logger = Logger::of(&manager, || thread::sleep(Duration::from_millis(600)));
    let lease = Lease::new();
    for _ in 0..3 {
        let before = logger.calls.get();
        wait_until("the logger is called in a call", || {
            cluster[0].hang_up();
            manager.unlock(&lease);
            let _ = manager.lock("r", TTL_MS, &lease);
            let _ = manager.extend(&lease, TTL_MS);
            let mut left: Vec<_> = cluster.iter().map(|it| it.pttl("r")).collect();
            left.sort_unstable();
            let remaining = lease.remaining_ms();
            assert!(remaining == 0 || remaining <= left[1], "{remaining}: {left:?}");
            logger.calls.get() > before
        });
    }
    manager.unlock(&lease);
    cluster.wait_until_gone("r");
}

/// The logger is called when everything else is done. A success would no longer be true when the logger
/// returns.
#[test]
fn x02_a_lock_expired_in_the_logger_is_not_taken() {
    const TTL_MS: i64 = 300;
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = Lease::new();
    let logger = Logger::of(&manager, || {
        // The remaining time is rounded down. With less than a millisecond left, the lock is still held.
        wait_until("it has expired", || !lease.is_held());
    });
    let calls: [(&dyn Fn() -> RedLockStatus, RedLockStatus); 3] = [
        (&|| manager.try_lock("r", TTL_MS, PATIENT_MS, &lease), REDLOCK_TOO_SLOW),
        (&|| manager.extend(&lease, TTL_MS), REDLOCK_LOST),
        (&|| manager.confirm(&lease, 0), REDLOCK_LOST),
    ];
    for (call, status) in calls {
        wait_until("the logger is called in a call that would have succeeded", || {
            manager.unlock(&lease);
            if status == REDLOCK_LOST
                && manager.try_lock("r", TTL_MS, PATIENT_MS, &lease) != REDLOCK_OK
            {
                return false;
            }
            cluster[0].hang_up();
            let before = logger.calls.get();
            let said = call();
            assert!(said != REDLOCK_OK || lease.is_held() || logger.calls.get() == before);
            logger.calls.get() > before
                && said == status
                && lease.message().contains("ended before the program read")
        });
        assert!(!lease.is_held() && lease.token().is_empty(), "{}", lease.message());
    }
    cluster.wait_until_gone("r");
}

/// Each of two threads is in its logger while the other is. Both confirm the lease of the other thread. A
/// logger that reports whether a lock is still there may do that.
#[test]
fn x02_loggers_may_confirm_each_others_leases() {
    let cluster = Cluster::start(3);
    Program::compile("loggers_cross").run(&cluster.urls());
}
