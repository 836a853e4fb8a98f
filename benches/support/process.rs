//! Child processes that never outlive the bench, and a user's request to end it early.

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

/// After this call, a termination signal makes [`go_on`] fail. So the bench cleans up on the usual way out.
pub(crate) fn catch_interrupts() {
    for number in [SIGHUP, SIGINT, SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
        unsafe { signal(number, note_interrupt) };
    }
}

/// Returns an error after the user has asked for the end.
pub(crate) fn go_on() -> Outcome<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err("interrupted".into());
    }
    Ok(())
}

/// A child process. Dropping this kills the child and its own children, and waits for the child.
pub(crate) struct Leashed(pub(crate) Child);

impl Leashed {
    /// Starts the child in a process group of its own. A user's Ctrl-C goes only to this process, which cleans
    /// up. If the system supports it, the child dies with this process even if this process is killed.
    pub(crate) fn start(command: &mut Command) -> Outcome<Self> {
        let name = command.get_program().display().to_string();
        // SAFETY: the closure runs between fork and exec, and makes only one system call.
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

    /// Sends a signal to the child's process group.
    fn send(&self, number: c_int) {
        let id = self.0.id().cast_signed();
        // SAFETY: no memory is involved. The child became the group's leader before it could start processes, so
        // no other process is in the group.
        unsafe { kill(-id, number) };
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        // Also if the child is already dead, because its own children may be alive.
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
