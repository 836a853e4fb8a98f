//! A logger of the fuzzed program, which may call the library at the end of a call.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::ptr;

use crate::ffi::lease::RedLockLease;
use crate::ffi::status::RedLockStatus::REDLOCK_INVALID_ARGUMENT;
use crate::ffi::{RedLock, RedLock_Confirm, RedLock_IsLocked};
use crate::handles::{self, look};

type InUse = (*mut RedLock, *mut RedLockLease);

const NOTHING: InUse = (ptr::null_mut(), ptr::null_mut());

/// Tells a logger to call the library.
pub(crate) static CALLS_BACK: u8 = 0;

thread_local! {
    /// The handles of the call at whose end the logger is called.
    static IN_USE: Cell<InUse> = const { Cell::new(NOTHING) };
}

/// A logger, which may use the manager and the lease of the call at whose end it is called.
pub(crate) unsafe extern "C" fn listen(level: i32, line: *const c_char, user_data: *mut c_void) {
    assert!([1, 2].contains(&level));
    // SAFETY: the header promises a string.
    assert!(!unsafe { handles::words(line) }.is_empty());
    let (rl, lease) = IN_USE.replace(NOTHING);
    if !user_data.is_null() && !rl.is_null() {
        look(lease);
        let mut locked = false;
        // SAFETY: both are alive, or NULL: the call that has ended was made with them.
        unsafe {
            RedLock_IsLocked(rl, c"r".as_ptr(), &raw mut locked);
            let status = RedLock_Confirm(rl, lease, -1);
            assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "the lease, or the time, is none");
        }
        IN_USE.set((rl, lease));
    }
}

/// Makes a call with these handles, which a logger that calls back uses.
pub(crate) fn in_call<T>(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    call: impl FnOnce() -> T,
) -> T {
    IN_USE.set((rl, lease));
    let result = call();
    IN_USE.set(NOTHING);
    result
}
