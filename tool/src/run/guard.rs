//! A process that stands by. It kills the program when this process dies, or when this process stands still
//! until the lock is about to end. If it is killed itself, another one takes its place.
//!
//! The guard knows nothing of locks. It receives the process group to kill, and the deadline, through a
//! pipe. The control group, if there is one, is inherited. The end of the pipe means the end of this process.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, setsid};

use super::cgroup::{Cgroup, Remover};
use super::hold::Hold;
use crate::failure::Failure;
use crate::time::now;

/// `poll` does not count the time during which the machine slept, so the guard reads the clock again after
/// this time.
const LOOK: Duration = Duration::from_millis(500);

/// How often the control group is tried to be removed, and the pause in between: a second.
const REMOVALS: usize = 100;
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// A message: a process group and a deadline in nanoseconds, as bytes. Without a group, the guard is no
/// longer needed.
const MESSAGE: usize = 16;

pub(crate) struct Guard {
    pipe: UnixStream,
    process: Pid,
    group: i32,
    told: Duration,
}

impl Guard {
    /// A guard that knows of no program yet.
    pub(crate) fn start(cgroup: Option<&Cgroup>) -> Result<Self, Failure> {
        Self::of(Watched {
            group: 0,
            deadline: Duration::MAX,
            cgroup: cgroup.and_then(Cgroup::remover),
        })
    }

    /// If the guard was killed, another one takes its place. It knows all that this one knew. Returns whether it is
    /// another one.
    pub(crate) fn stand_in(&mut self, cgroup: Option<&Cgroup>) -> Result<bool, Failure> {
        // An end by a real-time signal is an error of `nix`, and an end all the same.
        if waitpid(self.process, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive) {
            return Ok(false);
        }
        let cgroup = cgroup.and_then(Cgroup::remover);
        *self = Self::of(Watched { group: self.group, deadline: self.told, cgroup })?;
        Ok(true)
    }

    fn of(mut watched: Watched) -> Result<Self, Failure> {
        let fail = |words: String| Failure::usage(format!("cannot start a process: {words}"));
        let (ours, its) = UnixStream::pair().map_err(|error| fail(error.to_string()))?;
        let (group, told) = (watched.group, watched.deadline);
        // SAFETY: other threads may have locked anything. The child only makes system calls, and allocates nothing.
        match unsafe { fork() }.map_err(|error| fail(error.to_string()))? {
            ForkResult::Parent { child } => {
                drop(its);
                Ok(Self { pipe: ours, process: child, group, told })
            }
            ForkResult::Child => {
                drop(ours);
                let _ = setsid();
                set_name();
                let kill = watched.cgroup.as_ref().map(Remover::descriptor);
                close_all_but(&[Some(its.as_raw_fd()), kill]);
                stand_by(its, &mut watched);
                // SAFETY: nothing of the parent must be flushed or dropped here.
                unsafe { libc::_exit(0) }
            }
        }
    }

    pub(crate) fn id(&self) -> Pid {
        self.process
    }

    /// Tells the guard that the program has begun.
    pub(crate) fn tell_child(&mut self, group: Pid, hold: &mut Hold) {
        self.group = group.as_raw();
        self.told = Duration::ZERO;
        self.tell_deadline(hold);
    }

    /// Tells the guard until when the program may run, if that has changed.
    pub(crate) fn tell_deadline(&mut self, hold: &mut Hold) {
        let deadline = hold.last_moment();
        // Without an extension, a lock ends when it did before, except for rounding.
        let change = deadline.abs_diff(self.told);
        if self.group != 0 && change > Duration::from_millis(2) {
            self.told = deadline;
            self.send(self.group, deadline);
        }
    }

    /// Tells the guard that there is nothing to kill any more. Returns when the guard has ended.
    pub(crate) fn dismiss(mut self) {
        self.send(0, Duration::ZERO);
        let _ = waitpid(self.process, None);
    }

    /// The message by which the program's process announces itself before it becomes the program. This
    /// process may be killed before it can do that.
    pub(crate) fn announcement(&self, hold: &mut Hold) -> Announcement {
        Announcement { pipe: self.pipe.as_raw_fd(), deadline: nanos(hold.last_moment()) }
    }

    fn send(&mut self, group: i32, deadline: Duration) {
        // If the guard is gone, nobody needs the message.
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
    /// Makes a system call, and allocates nothing, because it runs in a child between fork and exec.
    /// `group` is the group of that child.
    pub(crate) fn make(self, group: i32) {
        let message = message(group, self.deadline);
        // If nobody reads the message, the child must not end.
        #[cfg(target_os = "linux")]
        let flags = libc::MSG_NOSIGNAL;
        #[cfg(not(target_os = "linux"))]
        let flags = 0;
        // SAFETY: the message is alive, and has the given length.
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

/// What the guard watches.
struct Watched {
    /// The process group of the program; 0 if there is none yet.
    group: i32,
    deadline: Duration,
    cgroup: Option<Remover>,
}

impl Watched {
    fn kill(&self) {
        if self.group > 0 {
            if let Some(cgroup) = &self.cgroup {
                cgroup.kill();
            }
            let _ = killpg(Pid::from_raw(self.group), Signal::SIGKILL);
        }
    }

    /// Nobody else removes the control group: the other process is dead. It is empty when those that were killed have
    /// ended.
    fn remove(&self) {
        let Some(cgroup) = &self.cgroup else { return };
        for _ in 0..REMOVALS {
            if cgroup.remove() {
                return;
            }
            let _ = poll(&mut [], timeout(REMOVAL_PAUSE));
        }
    }
}

/// The main loop of the guard.
fn stand_by(mut pipe: UnixStream, watched: &mut Watched) {
    loop {
        let left = watched.deadline.saturating_sub(now());
        if left.is_zero() {
            watched.kill();
        }
        let pause = if left.is_zero() { LOOK } else { left.min(LOOK) };
        let pause = if watched.group > 0 { timeout(pause) } else { PollTimeout::NONE };
        let mut source = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        if poll(&mut source, pause).is_ok_and(|ready| ready == 0) {
            continue;
        }
        let mut message = [0; MESSAGE];
        if pipe.read_exact(&mut message).is_err() {
            // The other process is dead.
            watched.kill();
            return watched.remove();
        }
        let (mut number, mut nanos) = ([0; 4], [0; 8]);
        number.copy_from_slice(&message[..4]);
        nanos.copy_from_slice(&message[8..]);
        watched.group = i32::from_ne_bytes(number);
        watched.deadline = Duration::from_nanos(u64::from_ne_bytes(nanos));
        if watched.group == 0 {
            return;
        }
    }
}

fn timeout(time: Duration) -> PollTimeout {
    PollTimeout::try_from(time.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
}

/// Sets a name, so that a process list does not show the guard as another `redlock`.
fn set_name() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(c"redlock-guard");
}

/// Closes all other descriptors. A reader of the program's output waits until no process can write to it
/// any more.
fn close_all_but(kept: &[Option<RawFd>]) {
    for descriptor in (0..1024).filter(|&it| !kept.contains(&Some(it))) {
        // SAFETY: this process uses no descriptor other than those that are kept.
        unsafe { libc::close(descriptor) };
    }
}
