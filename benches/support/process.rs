//! Child processes that never outlive the bench, and the wish of a user to end it early.

use std::ffi::c_int;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

use super::Outcome;

const SIGHUP: c_int = 1;
const SIGINT: c_int = 2;
const SIGKILL: c_int = 9;
const SIGTERM: c_int = 15;
#[cfg(target_os = "linux")]
const SIGSTOP: c_int = 19;
#[cfg(not(target_os = "linux"))]
const SIGSTOP: c_int = 17;
#[cfg(target_os = "linux")]
const SIGCONT: c_int = 18;
#[cfg(not(target_os = "linux"))]
const SIGCONT: c_int = 19;

unsafe extern "C" {
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    fn kill(process: c_int, number: c_int) -> c_int;
    #[cfg(target_os = "linux")]
    fn prctl(option: c_int, ...) -> c_int;
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_interrupt(_: c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From now on a signal that asks for the end shows in [`go_on`], so that everything is put away
/// on the usual way out.
pub(crate) fn catch_interrupts() {
    for number in [SIGHUP, SIGINT, SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
        unsafe { signal(number, note_interrupt) };
    }
}

/// An error once the user has asked for the end.
pub(crate) fn go_on() -> Outcome<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err("interrupted".into());
    }
    Ok(())
}

/// A child process, killed with its own children and waited for when this is dropped.
pub(crate) struct Leashed(pub(crate) Child);

impl Leashed {
    /// Starts it, in a process group of its own: a user's Ctrl-C is for this process, which puts
    /// everything away. Where the system can do so, it dies with this process even if that is
    /// killed.
    pub(crate) fn start(command: &mut Command) -> Outcome<Self> {
        let name = command.get_program().display().to_string();
        // SAFETY: the closure runs between fork and exec and makes one system call, no more.
        let child = unsafe { command.process_group(0).pre_exec(die_with_parent) }.spawn();
        Ok(Self(child.map_err(|e| format!("{name}: {e}"))?))
    }

    pub(crate) fn freeze(&self) {
        self.send(SIGSTOP);
    }

    pub(crate) fn thaw(&self) {
        self.send(SIGCONT);
    }

    pub(crate) fn kill(&self) {
        self.send(SIGKILL);
    }

    /// To its process group.
    fn send(&self, number: c_int) {
        let id = self.0.id().cast_signed();
        // SAFETY: no memory is involved. The group is that of a child of ours which was made its
        // leader before it could make others; nobody else is in it.
        unsafe { kill(-id, number) };
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        // Also where the child is dead already: its own children may not be.
        self.kill();
        let _ = self.0.wait();
    }
}

#[cfg(target_os = "linux")]
fn die_with_parent() -> io::Result<()> {
    const PR_SET_PDEATHSIG: c_int = 1;
    // SAFETY: sets a number in the kernel's record of this process; no memory is involved.
    match unsafe { prctl(PR_SET_PDEATHSIG, SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() -> io::Result<()> {
    Ok(())
}
