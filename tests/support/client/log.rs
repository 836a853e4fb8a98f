//! A manager's log.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Mutex;

use redlock::ffi::RedLock_SetLogger;
use redlock::ffi::status::RedLockStatus;

use super::{Manager, discreet, owned};

/// The lines that a manager has logged since `Manager::log`.
pub(crate) struct Log<'a> {
    manager: &'a Manager,
    lines: Box<Mutex<Vec<(i32, String)>>>,
}

impl<'a> Log<'a> {
    pub(super) fn start(manager: &'a Manager) -> Self {
        let lines = Box::new(Mutex::new(Vec::new()));
        let user_data = ptr::from_ref(&*lines).cast_mut().cast();
        // SAFETY: the manager is alive, and the box lives until the logger is removed again.
        let status = unsafe { RedLock_SetLogger(manager.raw, Some(record), user_data, None) };
        assert_eq!(status, RedLockStatus::REDLOCK_OK);
        Self { manager, lines }
    }

    /// The lines so far, each with its level.
    pub(crate) fn lines(&self) -> Vec<(i32, String)> {
        let lines = self.lines.lock().expect("not poisoned").clone();
        lines.into_iter().map(|(level, line)| (level, discreet(line))).collect()
    }

    /// The lines so far, without levels, one per line.
    pub(crate) fn text(&self) -> String {
        self.lines().into_iter().map(|(_, line)| line + "\n").collect()
    }
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        // SAFETY: the manager is alive, because it is borrowed.
        unsafe { RedLock_SetLogger(self.manager.raw, None, ptr::null_mut(), None) };
    }
}

unsafe extern "C" fn record(level: i32, message: *const c_char, user_data: *mut c_void) {
    // SAFETY: `user_data` was set by Log::start, and lives as long as this logger is set.
    let lines = unsafe { &*user_data.cast::<Mutex<Vec<(i32, String)>>>() };
    // SAFETY: the header promises a C string.
    let message = unsafe { owned(message) };
    lines.lock().expect("not poisoned").push((level, message));
}
