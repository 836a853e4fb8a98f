//! The data that comes with a callback, which is a function of the program that the library calls.

use std::ffi::c_void;

use crate::system::process::{Generation, this_process};

/// Called when a callback's user_data is no longer used. See RedLock_SetLogger.
///
/// @param user_data the user_data that was given with the callback.
pub type RedLockDestroy = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// The user_data of a callback, and the function to call when it is dropped.
pub(super) struct UserData {
    pointer: *mut c_void,
    destroy: RedLockDestroy,
    /// The process in which it was given. A forked child has a copy and must not destroy it, because the
    /// resource behind it belongs to the parent. An example is buffered bytes that must be written only once.
    process: Generation,
}

// SAFETY: the pointer is never dereferenced here, only passed back to the functions that it came with. The
// contract of the functions that take these callbacks allows any thread that calls the library to use them.
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
            // SAFETY: the caller gave `destroy` as a RedLockDestroy for this pointer. This is the only call,
            // because there is one UserData for each pointer.
            unsafe { destroy(self.pointer) }
        }
    }
}
