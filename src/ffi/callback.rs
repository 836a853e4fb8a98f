//! What comes with a function of the program's that the library calls.

use std::ffi::c_void;

use crate::system::process::{Generation, this_process};

/// Is told that nobody will use a callback's user_data any more. See RedLock_SetLoggerWithDestroy.
///
/// @param user_data what was given along with the callback.
pub type RedLockDestroy = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// The user_data of a callback, and who is told when it is dropped.
pub(super) struct UserData {
    pointer: *mut c_void,
    destroy: RedLockDestroy,
    /// The process that it was given in. A child has a copy, which is not its to destroy: what it stands
    /// for, such as bytes in a buffer that are to be written once, is the parent's.
    process: Generation,
}

// SAFETY: the pointer is never looked at here, only handed back to the functions it came with; that
// these may be used from any thread that calls the library is in the contract of the functions that
// take them.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl UserData {
    pub(super) fn new(pointer: *mut c_void, destroy: RedLockDestroy) -> Self {
        Self { pointer, destroy, process: this_process() }
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy
            && self.process == this_process()
        {
            // SAFETY: `destroy` is what the caller gave as a RedLockDestroy for this very pointer, and
            // this is the only call: there is one UserData of each.
            unsafe { destroy(self.pointer) }
        }
    }
}
