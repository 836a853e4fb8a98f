//! A process that stands by: it kills the program when this one dies, or stands still until the lock is about to end.
//!
//! It knows nothing of locks. It is told by a pipe which group of processes to kill, and when; the end of the pipe is
//! the end of this process.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, setsid};

use super::hold::Hold;
use crate::failure::Failure;
use crate::time::now;

/// The poll of a machine that slept does not count that: so it looks at the clock again after so long.
const LOOK: Duration = Duration::from_millis(500);

/// A group and a deadline in nanoseconds, as bytes. Without a group it is not needed any more.
const MESSAGE: usize = 16;

pub(crate) struct Guard {
    pipe: UnixStream,
    process: Pid,
    group: i32,
    told: Duration,
}

impl Guard {
    /// This process has one thread.
    pub(crate) fn start() -> Result<Self, Failure> {
        let fail = |words: String| Failure::usage(format!("no process can be started: {words}"));
        let (ours, its) = UnixStream::pair().map_err(|error| fail(error.to_string()))?;
        // SAFETY: there is one thread, so the child may do what it likes.
        match unsafe { fork() }.map_err(|error| fail(error.to_string()))? {
            ForkResult::Parent { child } => {
                drop(its);
                Ok(Self { pipe: ours, process: child, group: 0, told: Duration::ZERO })
            }
            ForkResult::Child => {
                drop(ours);
                let _ = setsid();
                set_name();
                close_all_but(its.as_raw_fd());
                stand_by(its);
                // SAFETY: nothing of the parent is to be flushed or dropped here.
                unsafe { libc::_exit(0) }
            }
        }
    }

    pub(crate) fn id(&self) -> Pid {
        self.process
    }

    /// The program has begun.
    pub(crate) fn tell_child(&mut self, group: Pid, hold: &mut Hold) {
        self.group = group.as_raw();
        self.told = Duration::ZERO;
        self.tell_deadline(hold);
    }

    /// Says until when the program may run, if that has changed.
    pub(crate) fn tell_deadline(&mut self, hold: &mut Hold) {
        let deadline = hold.last_moment();
        // A lock that nobody has extended ends when it did before, give or take a rounding.
        let change = deadline.abs_diff(self.told);
        if self.group != 0 && change > Duration::from_millis(2) {
            self.told = deadline;
            self.send(self.group, deadline);
        }
    }

    /// There is nothing to kill any more. Returns when it has ended.
    pub(crate) fn dismiss(mut self) {
        self.send(0, Duration::ZERO);
        let _ = waitpid(self.process, None);
    }

    /// By which the program itself says that it is there, before it begins: this process may be killed before it can.
    pub(crate) fn announcement(&self, hold: &mut Hold) -> Announcement {
        Announcement { pipe: self.pipe.as_raw_fd(), deadline: nanos(hold.last_moment()) }
    }

    fn send(&mut self, group: i32, deadline: Duration) {
        // If it is gone, there is nobody to tell.
        let _ = self.pipe.write_all(&message(group, nanos(deadline)));
    }
}

/// See [`Guard::announcement`].
#[derive(Clone, Copy)]
pub(crate) struct Announcement {
    pipe: RawFd,
    deadline: u64,
}

impl Announcement {
    /// Makes a system call, and allocates nothing: it is for a child between fork and exec, whose group this is.
    pub(crate) fn make(self, group: i32) {
        let message = message(group, self.deadline);
        // If nobody reads it, that is no reason to end.
        #[cfg(target_os = "linux")]
        let flags = libc::MSG_NOSIGNAL;
        #[cfg(not(target_os = "linux"))]
        let flags = 0;
        // SAFETY: the message lives, and is as long as is said.
        unsafe { libc::send(self.pipe, message.as_ptr().cast(), MESSAGE, flags) };
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn message(group: i32, deadline: u64) -> [u8; MESSAGE] {
    let mut message = [0; MESSAGE];
    message[..4].copy_from_slice(&group.to_ne_bytes());
    message[8..].copy_from_slice(&deadline.to_ne_bytes());
    message
}

/// What the process does.
fn stand_by(mut pipe: UnixStream) {
    let (mut group, mut deadline) = (0, Duration::MAX);
    loop {
        let left = deadline.saturating_sub(now());
        if group > 0 && left.is_zero() {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let pause = if left.is_zero() { LOOK } else { left.min(LOOK) };
        let pause = if group > 0 { timeout(pause) } else { PollTimeout::NONE };
        let mut source = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        if poll(&mut source, pause).is_ok_and(|ready| ready == 0) {
            continue;
        }
        let mut message = [0; MESSAGE];
        if pipe.read_exact(&mut message).is_err() {
            // The other one is dead.
            if group > 0 {
                let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
            }
            return;
        }
        let (mut number, mut nanos) = ([0; 4], [0; 8]);
        number.copy_from_slice(&message[..4]);
        nanos.copy_from_slice(&message[8..]);
        group = i32::from_ne_bytes(number);
        deadline = Duration::from_nanos(u64::from_ne_bytes(nanos));
        if group == 0 {
            return;
        }
    }
}

fn timeout(time: Duration) -> PollTimeout {
    PollTimeout::try_from(time.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
}

/// It is not to be taken for another `redlock` in a list of processes.
fn set_name() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(c"redlock-guard");
}

/// Whoever reads what the program writes waits until nobody can write any more.
fn close_all_but(kept: RawFd) {
    for descriptor in (0..1024).filter(|&it| it != kept) {
        // SAFETY: nothing of this process uses a descriptor but the one that is kept.
        unsafe { libc::close(descriptor) };
    }
}
