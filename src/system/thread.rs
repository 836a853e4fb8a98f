//! Starting a thread of the library, for a program that has asked for it.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread;

/// A thread that was started.
pub(crate) type Thread = thread::JoinHandle<()>;

/// Starts a thread to which no signal is delivered: signals belong to the program.
pub(crate) fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both are memory for a set of signals, and the first is filled before it is read. A thread
    // inherits the mask of the thread that starts it.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let started = thread::Builder::new().name(name.to_owned()).spawn(body);
    // SAFETY: the set was filled in above, and no other code changes the mask of this thread.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    started
}

/// Waits until the thread has ended.
pub(crate) fn await_end(thread: Thread) {
    let _ = thread.join();
}
