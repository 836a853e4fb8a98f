//! The program that runs while the lock is held: a process group of its own.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid};

use super::guard::Announcement;
use super::terminal::Terminal;
use super::tree;
use crate::failure::{Failure, Kind};
use crate::keys;

pub(crate) struct Child {
    process: Pid,
    guard: Option<Pid>,
    terminal: Option<Terminal>,
    /// This command sent SIGINT, so the terminal did not.
    was_sent_interrupt: bool,
    end: End,
}

/// How the program has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct End {
    /// The exit status as a shell reports it.
    pub(crate) status: u8,
    pub(crate) signal: Option<i32>,
}

pub(crate) enum State {
    Running,
    Stopped,
    Ended,
}

impl Child {
    pub(crate) fn start(mut command: Command, announcement: Announcement) -> Result<Self, Failure> {
        // This process adopts orphans of the program, so that it can find them.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let mut terminal = Terminal::find();
        let lent = terminal.as_ref().filter(|it| it.is_ours()).map(Terminal::descriptor);
        let parent = getpid();
        let prepare = move || prepare(parent, lent, announcement);
        // SAFETY: between fork and exec, `prepare` only makes system calls, and allocates nothing.
        unsafe { command.pre_exec(prepare) };
        let started = command.process_group(0).spawn();
        if let Some(terminal) = terminal.as_mut().filter(|_| lent.is_some()) {
            terminal.note_lent();
        }
        let child = match started {
            Ok(child) => child,
            Err(error) => {
                if let Some(terminal) = &mut terminal {
                    terminal.take_back();
                }
                return Err(cannot_run(&command, &error));
            }
        };
        let process = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        let end = End::default();
        Ok(Self { process, guard: None, terminal, was_sent_interrupt: false, end })
    }

    /// The program's processes, except those that have made a group of their own.
    pub(crate) fn group(&self) -> Pid {
        self.process
    }

    /// The state of the program. Also reaps its orphans that have ended.
    pub(crate) fn state(&mut self, guard: Pid) -> State {
        self.guard = Some(guard);
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        // The program is not reaped before the guard knows: until then no other process can have its
        // number.
        let child = waitid(Id::Pid(self.process), look);
        if let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) = child {
            self.end = child.map_or_else(|_| End::default(), End::of);
            return State::Ended;
        }
        let stopped = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
        if let Ok(WaitStatus::Stopped(..)) = waitid(Id::Pid(self.process), stopped) {
            return State::Stopped;
        }
        self.let_orphans_go(guard);
        State::Running
    }

    fn let_orphans_go(&self, guard: Pid) {
        for orphan in tree::children().filter(|&it| it != self.process && it != guard) {
            let _ = waitpid(orphan, Some(WaitPidFlag::WNOHANG));
        }
    }

    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// Whether processes of the program other than the first still exist. Reaps those that have ended.
    pub(crate) fn has_processes(&self) -> bool {
        let guard = self.guard.unwrap_or(self.process);
        self.let_orphans_go(guard);
        tree::has_others(&[self.process, guard])
    }

    /// Reaps the program, which has ended, and takes the terminal back. Returns whether Ctrl-C has ended
    /// the program, and no other process has received that SIGINT.
    pub(crate) fn leave(&mut self) -> bool {
        let _ = waitpid(self.process, None);
        let was_lent = self.terminal.as_mut().is_some_and(Terminal::take_back);
        was_lent && self.end.signal == Some(libc::SIGINT) && !self.was_sent_interrupt
    }

    pub(crate) fn pass_on(&mut self, number: i32) {
        self.was_sent_interrupt |= number == libc::SIGINT;
        if let Ok(signal) = Signal::try_from(number) {
            let _ = killpg(self.process, signal);
        }
    }

    /// This process was asked to stop. The program is stopped first, and this process follows when the
    /// program has stopped.
    pub(crate) fn pass_on_stop(&self) {
        let _ = killpg(self.process, Signal::SIGTSTP);
    }

    /// The program has stopped. If there is a terminal, and so a shell, this process stops as well, so that
    /// the shell notices.
    pub(crate) fn follow_stop(&mut self) {
        let Some(terminal) = &mut self.terminal else { return };
        terminal.take_back();
        keys::stop_group();
        self.go_on();
    }

    /// Continues the program, in the foreground if this process is in the foreground.
    pub(crate) fn go_on(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.lend(self.process);
        }
        let _ = killpg(self.process, Signal::SIGCONT);
    }

    /// Asks the program to end by itself. A stopped program could not, so it is continued.
    pub(crate) fn terminate(&self) {
        let _ = killpg(self.process, Signal::SIGTERM);
        let _ = killpg(self.process, Signal::SIGCONT);
    }

    /// Kills the program with all its processes.
    pub(crate) fn kill(&self) {
        tree::kill_all(self.process, self.guard.unwrap_or(self.process));
    }
}

impl End {
    fn of(status: WaitStatus) -> Self {
        match status {
            WaitStatus::Exited(_, status) => {
                Self { status: u8::try_from(status & 0xFF).unwrap_or(u8::MAX), signal: None }
            }
            WaitStatus::Signaled(_, signal, _) => {
                let number = signal as i32;
                Self { status: Kind::Signal(number).status(), signal: Some(number) }
            }
            _ => Self::default(),
        }
    }
}

/// Runs in the child, before it becomes the program.
fn prepare(parent: Pid, lent: Option<i32>, announcement: Announcement) -> io::Result<()> {
    // SAFETY: these are system calls with numbers, and the structs for signal sets are alive.
    unsafe {
        libc::setpgid(0, 0);
        if let Some(terminal) = lent {
            // The signal is blocked, because a process that is still in the background would be stopped by
            // this call.
            let (mut background, mut old) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
            libc::sigemptyset(&raw mut background);
            libc::sigaddset(&raw mut background, libc::SIGTTOU);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const background, &raw mut old);
            libc::tcsetpgrp(terminal, libc::getpid());
            libc::sigprocmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut());
        }
        announcement.make(libc::getpid());
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // The parent may have died before that call.
        if libc::getppid() != parent.as_raw() {
            libc::_exit(137);
        }
    }
    Ok(())
}

pub(crate) fn cannot_run(command: &Command, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => Kind::NoProgram,
        _ => Kind::CannotRun,
    };
    Failure::new(kind, format!("{}: {error}", command.get_program().to_string_lossy()))
}
