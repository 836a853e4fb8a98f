//! The effect of Ctrl-Z and Ctrl-C on a process and on its group.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, killpg, sigaction};
use nix::unistd::{getpgrp, getpid};

/// Stops this process as Ctrl-Z does, and returns when the process continues. The kernel does not stop the
/// process if no shell could continue it.
pub(crate) fn stop_self() {
    by_default(Signal::SIGTSTP, || kill(getpid(), Signal::SIGTSTP));
}

/// Stops the whole group of this process. The terminal would have stopped it, if the program did not own
/// the terminal. The group contains the script that started this process, and the other processes of its
/// pipeline. A shell waits until all of them have stopped.
pub(crate) fn stop_group() {
    by_default(Signal::SIGTSTP, || killpg(getpgrp(), Signal::SIGTSTP));
}

/// Ends this process and its group as Ctrl-C does. Otherwise a script would continue with its next command.
pub(crate) fn interrupt_group() {
    by_default(Signal::SIGINT, || killpg(getpgrp(), Signal::SIGINT));
}

/// Sends a signal with its default action set for this process.
fn by_default(signal: Signal, send: impl FnOnce() -> nix::Result<()>) {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action is no handler.
    if let Ok(before) = unsafe { sigaction(signal, &default) } {
        let _ = send();
        // SAFETY: this action was set before.
        let _ = unsafe { sigaction(signal, &before) };
    }
}
