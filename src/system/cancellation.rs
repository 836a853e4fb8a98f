//! Threads that are cancelled (`pthread_cancel`).
//!
//! The C library ends such a thread by unwinding it out of the system call that it is in. Frames of
//! Rust may be unwound by nobody else: the process would be aborted. So nothing of ours is cancelled
//! in the middle; the thread ends at the first opportunity after that.

/// While it lives, a request to cancel the calling thread waits.
pub(crate) struct Uncancelled {
    #[cfg(target_os = "linux")]
    before: libc::c_int,
}

#[cfg(target_os = "linux")]
mod state {
    /// `PTHREAD_CANCEL_DISABLE`, in all C libraries of Linux. The libc crate has none of this.
    pub(super) const DISABLED: libc::c_int = 1;

    /// Changes the calling thread's. Returns what it was.
    pub(super) fn set(state: libc::c_int) -> libc::c_int {
        unsafe extern "C" {
            fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
        }
        let mut before = 0;
        // SAFETY: `before` may be written to. It fails for an unknown state alone, and changes
        // nothing then.
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
