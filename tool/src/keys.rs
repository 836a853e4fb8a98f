//! What Ctrl-Z and Ctrl-C do to a process and to its group.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, killpg, sigaction};
use nix::unistd::{getpgrp, getpid};

/// Stops this process as Ctrl-Z does. It goes on here; where no shell could let it go on, the kernel does not stop it.
pub(crate) fn stop_self() {
    by_default(Signal::SIGTSTP, || kill(getpid(), Signal::SIGTSTP));
}

/// The same with all that the terminal would have stopped, had the program not got it: the script that has started this
/// process, and what stands beside it in a pipeline. A shell waits until all of them have stopped.
pub(crate) fn stop_group() {
    by_default(Signal::SIGTSTP, || killpg(getpgrp(), Signal::SIGTSTP));
}

/// Ends this process and its group as Ctrl-C does: otherwise a script would go on with what comes next.
pub(crate) fn interrupt_group() {
    by_default(Signal::SIGINT, || killpg(getpgrp(), Signal::SIGINT));
}

/// Sends a signal that does to this process what it does to others.
fn by_default(signal: Signal, send: impl FnOnce() -> nix::Result<()>) {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: that is no handler.
    if let Ok(before) = unsafe { sigaction(signal, &default) } {
        let _ = send();
        // SAFETY: it was there before.
        let _ = unsafe { sigaction(signal, &before) };
    }
}
