//! Threads that are cancelled (`pthread_cancel`).
//!
//! The C library ends such a thread by unwinding it out of the system call that it is in. Foreign code must
//! not unwind Rust frames: the process would be aborted. So the library's code is never cancelled in the
//! middle. The thread ends at the first opportunity after that code.

/// While this value lives, a request to cancel the calling thread has to wait.
pub(crate) struct Uncancelled {
    #[cfg(target_os = "linux")]
    before: libc::c_int,
}

#[cfg(target_os = "linux")]
mod state {
    /// `PTHREAD_CANCEL_DISABLE`, in all C libraries of Linux. The libc crate does not define it.
    pub(super) const DISABLED: libc::c_int = 1;

    /// Changes the cancel state of the calling thread. Returns the previous state.
    pub(super) fn set(state: libc::c_int) -> libc::c_int {
        unsafe extern "C" {
            fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
        }
        let mut before = 0;
        // SAFETY: `before` may be written to. The call fails only for an unknown state, and changes nothing then.
        unsafe { pthread_setcancelstate(state, &raw mut before) };
        before
    }
}

impl Uncancelled {
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            before: state::set(state::DISABLED),
        }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        state::set(self.before);
    }
}
