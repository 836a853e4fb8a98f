//! The terminal, if there is one: which process group may read from it.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// The controlling terminal of this process.
pub(crate) struct Terminal {
    file: File,
    /// Whether this process has lent the terminal to the program.
    is_lent: bool,
}

impl Terminal {
    pub(crate) fn find() -> Option<Self> {
        let file = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { file, is_lent: false })
    }

    /// Whether this process's group is in the foreground.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(self.file.as_fd()).is_ok_and(|group| group == getpgrp())
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Notes that the program has taken the terminal by itself.
    pub(crate) fn note_lent(&mut self) {
        self.is_lent = true;
    }

    pub(crate) fn lend(&mut self, group: Pid) {
        if self.is_ours() {
            self.give(group);
            self.is_lent = true;
        }
    }

    /// Takes the terminal back. Returns whether the program had it.
    pub(crate) fn take_back(&mut self) -> bool {
        let was_lent = std::mem::take(&mut self.is_lent);
        if was_lent {
            self.give(getpgrp());
        }
        was_lent
    }

    /// Blocks SIGTTOU, because a process in the background is stopped by this call otherwise.
    fn give(&self, group: Pid) {
        let mut background = SigSet::empty();
        background.add(Signal::SIGTTOU);
        let mut old = SigSet::empty();
        let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&background), Some(&mut old));
        let _ = tcsetpgrp(self.file.as_fd(), group);
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&old), None);
    }
}
