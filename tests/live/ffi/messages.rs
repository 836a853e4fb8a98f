//! The error message of a manager that threads share.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use redlock::ffi::language::{
    REDLOCK_LANGUAGE_C, REDLOCK_LANGUAGE_CPP, REDLOCK_LANGUAGE_GO, REDLOCK_LANGUAGE_NODE,
    REDLOCK_LANGUAGE_PYTHON, REDLOCK_LANGUAGE_RUBY,
};
use redlock::ffi::status::RedLockStatus;
use redlock::ffi::{RedLock_ErrorMessage, RedLock_LookUp};

use crate::support::events::Wanted;
use crate::support::{Lease, Manager};

const READERS: usize = 2;
const READS: usize = 600_000;

/// Calls that are refused, each in its own words.
const FAULTS: [fn(&Manager) -> RedLockStatus; 4] = [
    |it| it.set_retry(0, 200),
    |it| it.set_timeouts(-7, 0),
    |it| it.add("", 70_000),
    |it| it.set_clock_drift_factor(7.5),
];

/// As C reads them: byte by byte, from wherever the pointer leads.
fn read(pointer: *const c_char) -> &'static CStr {
    // SAFETY: the header promises a string that lives as long as the manager, and the test ends first.
    unsafe { CStr::from_ptr(pointer) }
}

#[test]
fn a_message_is_never_torn_between_threads() {
    let manager = Manager::new();
    let whole = FAULTS.map(|fault| {
        fault(&manager);
        manager.message()
    });
    assert!(whole.iter().all(|it| it.len() > 10), "{whole:?}");
    // SAFETY: the manager lives.
    let early = unsafe { RedLock_ErrorMessage(manager.raw()) };
    let (is_over, torn) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for turn in 0..2 {
            let (manager, is_over) = (&manager, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    FAULTS.iter().skip(turn).for_each(|fault| _ = fault(manager));
                    // A success leaves no words.
                    manager.set_retry(3, 200);
                }
            });
        }
        let readers = [(); READERS].map(|()| {
            scope.spawn(|| {
                for _ in 0..READS {
                    // SAFETY: the manager lives.
                    let words = read(unsafe { RedLock_ErrorMessage(manager.raw()) });
                    let is_whole = words.is_empty()
                        || whole.iter().any(|it| it.as_bytes() == words.to_bytes());
                    torn.fetch_add(usize::from(!is_whole), Ordering::Relaxed);
                }
            })
        });
        readers.into_iter().for_each(|it| it.join().expect("it does not panic"));
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(torn.into_inner(), 0, "of {} reads", READERS * READS);
    assert_eq!(read(early).to_bytes(), whole[3].as_bytes(), "words that were handed out changed");
}

/// A thread looks names up beside the calls of others, which may not have read their words yet.
#[test]
fn a_look_up_keeps_the_message_of_another_call() {
    let manager = Manager::new();
    assert_eq!(manager.add("127.0.0.1", 1), RedLockStatus::REDLOCK_OK);
    FAULTS[0](&manager);
    let words = manager.message();
    assert!(!words.is_empty());
    // SAFETY: the manager lives.
    assert_eq!(unsafe { RedLock_LookUp(manager.raw()) }, RedLockStatus::REDLOCK_OK);
    assert_eq!(manager.message(), words);
}

/// A binding sets its language, so that its programs read the names and units that they use.
#[test]
fn messages_name_arguments_for_the_language_that_was_set() {
    let (manager, lease) = (Manager::new(), Lease::new());
    assert_eq!(manager.add("127.0.0.1", 1), RedLockStatus::REDLOCK_OK);
    for (language, delay, ttl) in [
        (REDLOCK_LANGUAGE_C, "delay_ms is -500: it must be 0 to", "ttl_ms is 0: it must be 1 to"),
        (REDLOCK_LANGUAGE_CPP, "delay is -500 ms: ", "ttl is 0 ms: it must be 1 ms to"),
        (REDLOCK_LANGUAGE_GO, "RetryDelay is -500ms: ", "ttl is 0ms: "),
        (REDLOCK_LANGUAGE_NODE, "retryDelay is -500 ms: ", "ttl is 0 ms: "),
        (REDLOCK_LANGUAGE_PYTHON, "retry_delay is -0.5 s: ", "ttl is 0 s: it must be 0.001 s to"),
        (REDLOCK_LANGUAGE_RUBY, "retry_delay is -0.5 s: ", "ttl is 0 s: "),
    ] {
        assert_eq!(manager.set_language(language), RedLockStatus::REDLOCK_OK);
        assert_eq!(manager.set_retry(1, -500), RedLockStatus::REDLOCK_INVALID_ARGUMENT);
        assert!(manager.message().starts_with(delay), "{}", manager.message());
        for status in [
            manager.lock("r", 0, &lease),
            manager.submit_acquire(&Wanted { ttl_ms: 0, ..Wanted::new("r", 10_000) }, &lease, 0),
        ] {
            assert_eq!(status, RedLockStatus::REDLOCK_INVALID_ARGUMENT);
            assert!(lease.message().starts_with(ttl), "{}", lease.message());
        }
    }
    for unknown in [-1, 6, 256] {
        let status = manager.set_language(unknown);
        assert_eq!(status, RedLockStatus::REDLOCK_INVALID_ARGUMENT);
        let words = format!("language is {unknown}: use a REDLOCK_LANGUAGE_ constant");
        assert_eq!(manager.message(), words);
    }
}
