//! Child processes that never outlive the test program.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, mpsc};
use std::{io, mem, process, thread};

/// A child process. It ends with its owner, and also when the test program ends in any way.
pub(crate) struct Process {
    child: Mutex<Child>,
    id: u32,
    owner: u32,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let child = Mutex::new(spawn(command.stdin(Stdio::null()))?);
        let id = child.lock().expect("not poisoned").id();
        Ok(Self { child, id, owner: process::id() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn has_ended(&self) -> bool {
        let mut child = self.child.lock().expect("not poisoned");
        !matches!(child.try_wait(), Ok(None))
    }

    /// Its exit status, if it has ended.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.child.lock().expect("not poisoned").try_wait().expect("it is a child")
    }

    /// Stops it, as Ctrl-Z does. Returns when it has stopped.
    pub(crate) fn freeze(&self) {
        self.signal(libc::SIGSTOP);
        await_stop(self.id);
    }

    pub(crate) fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Ends it as `abort` does: a runtime may first report where it was.
    pub(crate) fn abort(&self) {
        self.signal(libc::SIGABRT);
    }

    /// Ends it at once, even if it is frozen. Returns when it is gone.
    pub(crate) fn kill(&self) {
        let mut child = self.child.lock().expect("not poisoned");
        let _ = child.kill();
        let _ = child.wait();
    }

    fn signal(&self, signal: libc::c_int) {
        assert!(!self.has_ended(), "process {} ended by itself", self.id);
        send(self.id, signal);
    }
}

/// Sends a signal to a child that was not waited for yet, so the id still belongs to that child.
pub(crate) fn send(child: u32, signal: libc::c_int) {
    let id = libc::pid_t::try_from(child).expect("a process id");
    // SAFETY: no memory is involved.
    let result = unsafe { libc::kill(id, signal) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// Returns when a child has stopped.
pub(crate) fn await_stop(child: u32) {
    // SAFETY: all zeros is a value of this plain C structure.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let events = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
    // SAFETY: `info` may be written to. WNOWAIT leaves the child to be waited for by `Child`.
    let result = unsafe { libc::waitid(libc::P_PID, child, &raw mut info, events) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    assert_eq!(info.si_code, libc::CLD_STOPPED, "it ended instead of stopping");
}

impl Drop for Process {
    fn drop(&mut self) {
        // A forked child must not end what belongs to its parent.
        if self.owner == process::id() {
            self.kill();
        }
    }
}

/// Linux sends the death signal when the *thread* that made the child ends. The thread of a test ends with
/// its test. So all children are made by one thread that lasts as long as the program.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    type Job = (Command, mpsc::Sender<(Command, io::Result<Child>)>);
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

    let spawner = SPAWNER.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (mut command, answer) in jobs {
                let child = command.spawn();
                let _ = answer.send((command, child));
            }
        });
        sender
    });
    die_with_parent(command);
    let lent = mem::replace(command, Command::new(""));
    let (answer, spawned) = mpsc::channel();
    spawner.send((lent, answer)).expect("the spawner lasts");
    let (returned, child) = spawned.recv().expect("the spawner answers");
    *command = returned;
    child
}

fn die_with_parent(command: &mut Command) {
    let parent = process::id();
    let arrange = move || {
        // SAFETY: no memory is involved.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // If tests run in the background, or under nohup, these signals are ignored. Programs here are
        // ended by them, and an interpreter that finds a signal ignored leaves it ignored.
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: no handler is set.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        // SAFETY: no memory is involved.
        let parent_now = unsafe { libc::getppid() };
        if u32::try_from(parent_now) == Ok(parent) {
            Ok(())
        } else {
            // The parent died before the death signal was set.
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: the closure makes a few system calls and allocates nothing.
    unsafe { command.pre_exec(arrange) };
}
