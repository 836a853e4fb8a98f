//! Log lines for callers that cannot be called back from C.

use std::ffi::{CStr, c_char};

use redlock::ffi::kept_log::{RedLock_KeepLog, RedLock_TakeLogLine};
use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::{Manager, Server, wait_until};
use crate::{accepted, refused};

/// A line with its level, in a buffer of this size.
fn take_into(manager: &Manager, size: usize) -> (i32, String) {
    let mut room = vec![c_char::MAX; size + 8];
    // SAFETY: the manager lives, and the buffer has at least the stated size.
    let level = unsafe { RedLock_TakeLogLine(manager.raw(), room.as_mut_ptr(), size) };
    assert!(
        room[size..].iter().all(|it| *it == c_char::MAX),
        "it wrote more than there is room for"
    );
    // SAFETY: a C string was written to the buffer.
    let line = unsafe { CStr::from_ptr(room.as_ptr()) };
    (level, line.to_str().expect("whole characters").to_owned())
}

fn keep(manager: &Manager, lines: i32) -> redlock::ffi::status::RedLockStatus {
    // SAFETY: the manager lives.
    unsafe { RedLock_KeepLog(manager.raw(), lines) }
}

/// A manager that has lost its server, and has kept the line about that.
fn one_that_complains(lines: i32) -> (Manager, Server) {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    accepted(&manager, keep(&manager, lines));
    assert_eq!(manager.connect(0), REDLOCK_OK, "{}", manager.message());
    while take_into(&manager, 1_000).0 != 0 {}
    server.kill();
    while manager.is_locked("r").is_ok() {}
    (manager, server)
}

#[test]
fn log_lines_are_kept_on_request() {
    let (manager, server) = one_that_complains(100);
    let (level, line) = take_into(&manager, 1_000);
    assert!(level == 1 && line.contains(&server.address()), "{level}: {line}");
    while take_into(&manager, 1_000).0 != 0 {}
    assert_eq!(take_into(&manager, 1_000), (0, String::new()));
}

#[test]
fn a_log_line_is_cut_to_its_room() {
    for size in [1, 2, 9] {
        let (manager, _) = one_that_complains(100);
        let (level, line) = take_into(&manager, size);
        assert_eq!((level, line.len()), (1, size - 1));
    }
    let (manager, _) = one_that_complains(100);
    // SAFETY: no buffer is needed for a size of zero.
    let level = unsafe { RedLock_TakeLogLine(manager.raw(), std::ptr::null_mut(), 0) };
    assert_eq!(level, 1, "a line that is not wanted is taken all the same");
}

#[test]
fn no_log_line_is_kept_without_a_request() {
    let (manager, _) = one_that_complains(100);
    accepted(&manager, keep(&manager, 0));
    assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE);
    assert_eq!(take_into(&manager, 100), (0, String::new()));
    for lines in [-1, 65_537] {
        refused(&manager, keep(&manager, lines), &["lines", &lines.to_string()]);
    }
}

/// The one that was set last gets the lines.
#[test]
fn a_logger_replaces_the_kept_log() {
    let (manager, server) = one_that_complains(100);
    while take_into(&manager, 1_000).0 != 0 {}
    let log = manager.log();
    server.restart();
    wait_until("the logger is told", || {
        let _ = manager.connect(0);
        log.text().contains(&server.address())
    });
    assert_eq!(take_into(&manager, 100), (0, String::new()));
}
