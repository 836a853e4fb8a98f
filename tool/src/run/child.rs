//! The program that runs while the lock is held: a process group of its own.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

use super::cgroup::Cgroup;
use super::guard::Announcement;
use super::terminal::Terminal;
use super::tree;
use crate::failure::{Failure, Kind};
use crate::keys;
use crate::time::now;

pub(crate) struct Child {
    process: Pid,
    guard: Pid,
    cgroup: Option<Cgroup>,
    /// Whether processes can be found that have left the group.
    finds_all: bool,
    /// A process that this user may not kill, and that was told of.
    unkillable: Option<Pid>,
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

/// What has become of a child.
#[derive(Clone, Copy)]
enum Change {
    Ended(End),
    Stopped,
}

impl Child {
    pub(crate) fn start(
        mut command: Command,
        cgroup: Option<Cgroup>,
        guard: Pid,
        announcement: Announcement,
    ) -> Result<Self, Failure> {
        // Also beside a control group: a process can leave that, or may not have been let in.
        let adopts = tree::adopt_orphans();
        let entry = cgroup.as_ref().map(Cgroup::entry);
        let mut terminal = Terminal::find();
        let lent = terminal.as_ref().filter(|it| it.is_ours()).map(Terminal::descriptor);
        let parent = getpid();
        let prepare = move || prepare(parent, lent, entry, announcement);
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
        let is_inside = |it: &Cgroup| it.processes().contains(&process.as_raw());
        let finds_all = adopts || cgroup.as_ref().is_some_and(is_inside);
        Ok(Self {
            process,
            guard,
            cgroup,
            finds_all,
            unkillable: None,
            terminal,
            was_sent_interrupt: false,
            end: End::default(),
        })
    }

    /// Whether processes of the program can be found, and so be killed, that have left its group.
    pub(crate) fn finds_all(&self) -> bool {
        self.finds_all
    }

    /// Another guard has taken the place of the one that was killed.
    pub(crate) fn note_guard(&mut self, guard: Pid) {
        self.guard = guard;
    }

    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// The program's processes, except those that have made a group of their own.
    pub(crate) fn group(&self) -> Pid {
        self.process
    }

    /// The state of the program. Also reaps its orphans that have ended. Fails if the system does not tell.
    pub(crate) fn state(&mut self) -> io::Result<State> {
        // The program is not reaped before the guard knows: until then no other process can have its
        // number.
        if let Some(Change::Ended(end)) = look(self.process, libc::WEXITED | libc::WNOWAIT)? {
            self.end = end;
            return Ok(State::Ended);
        }
        if let Some(Change::Stopped) = look(self.process, libc::WSTOPPED)? {
            return Ok(State::Stopped);
        }
        self.let_orphans_go();
        Ok(State::Running)
    }

    fn let_orphans_go(&self) {
        for orphan in tree::children().filter(|&it| it != self.process && it != self.guard) {
            let _ = waitpid(orphan, Some(WaitPidFlag::WNOHANG));
        }
    }

    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// Whether processes of the program other than the first still exist. Reaps those that have ended.
    pub(crate) fn has_processes(&self) -> bool {
        self.let_orphans_go();
        let is_other = |process| process != self.process && tree::is_alive(process);
        let in_cgroup = self.cgroup.iter().flat_map(Cgroup::processes);
        in_cgroup.map(Pid::from_raw).any(is_other) || tree::has_others(&[self.process, self.guard])
    }

    /// Reaps the program, which has ended, removes its control group, and takes the terminal back. Returns whether Ctrl-C has ended
    /// the program, and no other process has received that SIGINT.
    pub(crate) fn leave(&mut self) -> bool {
        let _ = waitpid(self.process, None);
        drop(self.cgroup.take());
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

    /// Kills the program with all its processes. Returns a process that this user may not kill: once.
    pub(crate) fn kill(&mut self) -> Option<Pid> {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        let refused = tree::kill_all(self.process, self.guard);
        // The kernel may have killed it for us. Then it ends soon.
        let is_in_cgroup = |process: Pid| {
            self.cgroup.as_ref().is_some_and(|it| it.processes().contains(&process.as_raw()))
        };
        let refused = refused.filter(|&it| !is_in_cgroup(it) && tree::is_alive(it))?;
        self.unkillable.replace(refused).is_none().then_some(refused)
    }

    /// Whether the program, or a process of it, went on although it was to be killed.
    pub(crate) fn was_beyond_us(&self) -> bool {
        self.unkillable.is_some()
    }

    /// Kills the program although the system does not tell when it has ended. Returns when it has, or after this time.
    pub(crate) fn kill_blindly(&mut self, time: Duration) {
        let until = now() + time;
        while tree::is_alive(self.process) && !self.was_beyond_us() && now() < until {
            let _ = self.kill();
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Whether this child has ended, or has stopped, by these flags of `waitid`. The type of `nix` knows no real-time
/// signals: it takes an end by one of them for a failure.
fn look(process: Pid, flags: i32) -> io::Result<Option<Change>> {
    // SAFETY: all bytes of this structure may be zero.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let id = libc::id_t::try_from(process.as_raw()).unwrap_or_default();
    loop {
        // SAFETY: the structure is alive.
        let done = unsafe { libc::waitid(libc::P_PID, id, &raw mut info, flags | libc::WNOHANG) };
        if done == 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: `waitid` has filled it in, or left it zero.
    let (who, status) = unsafe { (info.si_pid(), info.si_status()) };
    if who == 0 {
        return Ok(None);
    }
    Ok(match info.si_code {
        libc::CLD_EXITED => {
            let status = u8::try_from(status & 0xFF).unwrap_or(u8::MAX);
            Some(Change::Ended(End { status, signal: None }))
        }
        libc::CLD_KILLED | libc::CLD_DUMPED => {
            let signal = Some(status);
            Some(Change::Ended(End { status: Kind::Signal(status).status(), signal }))
        }
        libc::CLD_STOPPED => Some(Change::Stopped),
        _ => None,
    })
}

/// Runs in the child, before it becomes the program.
fn prepare(
    parent: Pid,
    lent: Option<i32>,
    entry: Option<RawFd>,
    announcement: Announcement,
) -> io::Result<()> {
    // SAFETY: these are system calls with numbers, and the byte and the structs for signal sets are alive.
    unsafe {
        libc::setpgid(0, 0);
        if let Some(entry) = entry {
            libc::write(entry, b"0".as_ptr().cast(), 1);
        }
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
