//! What this process waits for: the sockets of the lock, and signals.

use std::future::Future;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal;
use redlock::Manager;
use signal_hook::consts::signal::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::waiting::Waiting;
use crate::failure::{Failure, Kind};
use crate::keys;

/// The signals that are passed on to the program unchanged, and those that need more than that.
const PASSED_ON: [i32; 7] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH];
const HANDLED: [i32; 3] = [SIGCHLD, SIGCONT, SIGTSTP];

/// The signals that end the wait for a lock.
const ENDING: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];

/// A signal that has arrived.
pub(crate) enum Signal {
    /// The state of a child has changed.
    Child,
    Stop,
    Continue,
    Other(i32),
}

pub(crate) struct Watch {
    signals: SignalDelivery<UnixStream, SignalOnly>,
    lock: RawFd,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Watch {
    /// Signals that are ignored, such as under nohup, remain ignored.
    pub(crate) fn new(manager: &Manager) -> Result<Self, Failure> {
        let heeded = PASSED_ON.into_iter().filter(|&it| !is_ignored(it));
        let heeded: Vec<i32> = heeded.chain(HANDLED).collect();
        let fail = |error: std::io::Error| Failure::usage(format!("cannot watch signals: {error}"));
        let (read, write) = UnixStream::pair().map_err(fail)?;
        let signals = SignalDelivery::with_pipe(read, write, SignalOnly, heeded).map_err(fail)?;
        Ok(Self { signals, lock: manager.descriptor()? })
    }

    /// Waits until there is something to do, or until this time has passed.
    pub(crate) fn wait(&self, time: Option<Duration>) -> Result<(), Failure> {
        // Round up: if the wait were shorter, there would be nothing to do yet.
        let timeout = time.map_or(PollTimeout::NONE, |time| {
            let ms = time.as_micros().div_ceil(1000);
            PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
        });
        // SAFETY: the manager keeps the descriptor open for as long as leases and futures of the manager
        // exist.
        let lock = unsafe { BorrowedFd::borrow_raw(self.lock) };
        let signals = self.signals.get_read().as_fd();
        let mut sources = [lock, signals].map(|it| PollFd::new(it, PollFlags::POLLIN));
        match poll(&mut sources, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(Failure::usage(format!("poll: {error}"))),
        }
    }

    /// The signals that have arrived since the last call.
    pub(crate) fn signals(&mut self) -> Vec<Signal> {
        let signal = |number: i32| match number {
            SIGCHLD => Signal::Child,
            SIGTSTP => Signal::Stop,
            SIGCONT => Signal::Continue,
            other => Signal::Other(other),
        };
        self.signals.pending().map(signal).collect()
    }

    /// Drives the manager until the future ends, or until a signal ends the wait. In that case the future
    /// is dropped, and nothing stays locked.
    pub(crate) fn wait_for<T>(
        &mut self,
        manager: &Manager,
        future: impl Future<Output = T>,
        waiting: &mut Waiting<'_>,
    ) -> Result<T, Failure> {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut future = pin!(future);
        loop {
            if woken.0.swap(false, Ordering::Relaxed)
                && let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return Ok(value);
            }
            if !woken.0.load(Ordering::Relaxed) {
                self.wait(Some(waiting.time_to_next_look()))?;
            }
            manager.drive()?;
            if !woken.0.load(Ordering::Relaxed) {
                waiting.look();
            }
            for signal in self.signals() {
                match signal {
                    Signal::Other(number) if ENDING.contains(&number) => {
                        return Err(Failure::new(
                            Kind::Signal(number),
                            "interrupted by a signal while waiting for the lock",
                        ));
                    }
                    Signal::Stop => keys::stop_self(),
                    _ => {}
                }
            }
        }
    }
}

/// Whether the process that started this one wants a signal to be ignored.
fn is_ignored(number: i32) -> bool {
    let Ok(number) = signal::Signal::try_from(number) else { return false };
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no action is set. The old action is written to memory that has room for it, and is read only
    // then.
    unsafe {
        libc::sigaction(number as i32, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
