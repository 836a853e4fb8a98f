//! The terminal, if there is one: who reads from it.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// The terminal that this process is controlled by.
pub(crate) struct Terminal {
    file: File,
    /// Whether the program has it, by us.
    is_lent: bool,
}

impl Terminal {
    pub(crate) fn find() -> Option<Self> {
        let file = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { file, is_lent: false })
    }

    /// Whether we are the ones who read from it.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(self.file.as_fd()).is_ok_and(|group| group == getpgrp())
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The program has taken it by itself.
    pub(crate) fn note_lent(&mut self) {
        self.is_lent = true;
    }

    pub(crate) fn lend(&mut self, group: Pid) {
        if self.is_ours() {
            self.give(group);
            self.is_lent = true;
        }
    }

    /// Returns whether the program had it.
    pub(crate) fn take_back(&mut self) -> bool {
        let was_lent = std::mem::take(&mut self.is_lent);
        if was_lent {
            self.give(getpgrp());
        }
        was_lent
    }

    /// Who is in the background is stopped for that, unless the signal is blocked.
    fn give(&self, group: Pid) {
        let mut background = SigSet::empty();
        background.add(Signal::SIGTTOU);
        let mut old = SigSet::empty();
        let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&background), Some(&mut old));
        let _ = tcsetpgrp(self.file.as_fd(), group);
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&old), None);
    }
}
