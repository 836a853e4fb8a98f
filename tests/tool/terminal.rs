//! A terminal: the program may read from it, Ctrl-C and Ctrl-Z reach the program, and `top` is a page.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::{self, JoinHandle};

use nix::pty::openpty;

use crate::beyond::has_cgroup_of;
use crate::command::{is_alive, redlock};
use crate::support::{Cluster, wait_until};

/// A terminal, and what was written to it.
struct Terminal {
    ours: File,
    shown: std::sync::Arc<std::sync::Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// A terminal, and the command that runs in it as a session leader.
    fn start(mut command: Command) -> (Self, Child) {
        let pty = openpty(None, None).expect("a terminal");
        let its: OwnedFd = pty.slave;
        let copy = || its.try_clone().expect("a copy");
        command.stdin(copy()).stdout(copy()).stderr(copy());
        let number = its.as_raw_fd();
        let lead = move || {
            // SAFETY: system calls with numbers alone.
            unsafe {
                libc::setsid();
                libc::ioctl(number, libc::TIOCSCTTY, 0);
                // A shell hands on what it was started with, such as by a job in the background.
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                libc::signal(libc::SIGQUIT, libc::SIG_DFL);
            }
            Ok(())
        };
        // SAFETY: the closure makes system calls and allocates nothing.
        unsafe { command.pre_exec(lead) };
        let child = command.spawn().expect("it runs");
        drop((command, its));
        let ours = File::from(pty.master);
        let shown = std::sync::Arc::<std::sync::Mutex<String>>::default();
        let (mut from, to) = (ours.try_clone().expect("a copy"), std::sync::Arc::clone(&shown));
        let read = move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.lock()
                    .expect("not poisoned")
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        };
        let reader = Some(thread::spawn(read));
        (Self { ours, shown, reader }, child)
    }

    fn types(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).expect("it is there");
    }

    /// What it has shown so far is of no importance any more.
    fn forget(&self) {
        self.shown.lock().expect("not poisoned").clear();
    }

    fn shown(&self) -> String {
        self.shown.lock().expect("not poisoned").clone()
    }

    #[track_caller]
    fn shows(&self, words: &str) {
        crate::support::wait_until_ok("the terminal shows it", || {
            let shown = self.shown();
            if shown.contains(words) { Ok(()) } else { Err(format!("{words}: {shown:?}")) }
        });
    }

    /// The number between these words and a full stop.
    #[track_caller]
    fn shows_number_after(&self, words: &str) -> u32 {
        let mut number = None;
        wait_until("the terminal shows a number", || {
            let shown = self.shown();
            let rest = shown.split_once(words).and_then(|it| it.1.split_once('.'));
            number = rest.and_then(|it| it.0.parse().ok());
            number.is_some()
        });
        number.expect("it is shown")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It ends when nobody has the other end any more.
        drop(self.reader.take());
    }
}

#[test]
fn the_program_has_the_terminal() {
    let cluster = Cluster::start(3);
    // The group of the program, and the group that may read from the terminal: proc_pid_stat(5).
    let script = "set -- $(cat /proc/$$/stat); [ $5 = $8 ] && echo in front; \
                  echo ask; read x; echo got $x; exit 3";
    let (mut terminal, mut child) =
        Terminal::start(redlock(&cluster, &["run", "r", "--", "sh", "-c", script]));
    terminal.shows("in front");
    terminal.shows("ask");
    terminal.types("blue\n");
    terminal.shows("got blue");
    assert_eq!(child.wait().expect("a child").code(), Some(3));
}

#[test]
fn ctrl_c_reaches_the_program_once_and_frees_the_lock() {
    let cluster = Cluster::start(3);
    // A signal that comes just before a program is started is heeded when that has ended: so they are short.
    let script = "n=0; trap 'n=$((n + 1)); echo interrupted $n' INT; echo ready; \
                  while [ $n -lt 2 ]; do sleep 0.01; done; echo over; exit 8";
    let (mut terminal, mut child) =
        Terminal::start(redlock(&cluster, &["run", "r", "--", "sh", "-c", script]));
    terminal.shows("ready");
    terminal.types("\x03");
    terminal.shows("interrupted 1");
    terminal.types("\x03");
    terminal.shows("over");
    assert_eq!(child.wait().expect("a child").code(), Some(8));
    assert_eq!(terminal.shown().matches("interrupted").count(), 2);
    cluster.wait_until_gone("r");
}

/// A shell with job control, in whose foreground it runs.
#[test]
fn ctrl_z_stops_both_and_fg_continues_both() {
    let cluster = Cluster::start(3);
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "$ ");
    shell.env("REDLOCK_SERVERS", cluster.urls().join(",")).env("HISTFILE", "/dev/null");
    let (mut terminal, mut child) = Terminal::start(shell);
    let command = env!("CARGO_BIN_EXE_redlock");
    terminal.types(&format!(
        "{command} run --ttl 60s r -- sh -c 'echo program=$$=; read x; echo got $x'\n"
    ));
    terminal.shows("program=");
    let program = || {
        let shown = terminal.shown();
        shown.split("program=").filter_map(|it| it.split('=').next()?.parse::<u32>().ok()).next()
    };
    wait_until("its number is shown", || program().is_some());
    let program = program().expect("it is shown");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    let stat = std::fs::read_to_string(format!("/proc/{program}/stat")).expect("it is there");
    assert!(stat.contains(") T"), "{stat}");
    terminal.types("fg\n");
    terminal.types("blue\n");
    terminal.shows("got blue");
    terminal.types("exit 5\n");
    assert_eq!(child.wait().expect("a child").code(), Some(5));
    assert!(!is_alive(program));
}

/// A shell with job control that runs a script, which runs the command; and the file of the script.
fn shell_with_script(cluster: &Cluster, script: &str) -> (Terminal, Child, String) {
    let file = cluster[0].file("script.sh");
    std::fs::write(&file, script).expect("it can be written");
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "$ ").env("HISTFILE", "/dev/null");
    shell.env("REDLOCK_SERVERS", cluster.urls().join(","));
    shell.env("REDLOCK", env!("CARGO_BIN_EXE_redlock"));
    let (terminal, child) = Terminal::start(shell);
    (terminal, child, file)
}

#[test]
fn ctrl_z_also_stops_the_script_and_the_pipeline() {
    let cluster = Cluster::start(3);
    let script = "$REDLOCK run --ttl 60s r -- sh -c 'echo begun; read x; echo got $x'; echo over";
    let (mut terminal, mut child, file) = shell_with_script(&cluster, script);
    terminal.types(&format!("sh {file} | cat\n"));
    terminal.shows("begun");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    terminal.types("fg\n");
    terminal.types("blue\n");
    terminal.shows("got blue");
    terminal.shows("over");
    terminal.types("exit 5\n");
    assert_eq!(child.wait().expect("a child").code(), Some(5));
}

#[test]
fn ctrl_c_also_ends_the_script() {
    let cluster = Cluster::start(3);
    let script =
        "$REDLOCK run --ttl 60s r -- sh -c 'echo begun by $PPID.; exec sleep 1000'; echo went on";
    let (mut terminal, mut child, file) = shell_with_script(&cluster, script);
    for shell in ["sh", "bash"] {
        terminal.types(&format!("{shell} {file}\n"));
        let wrapper = terminal.shows_number_after("begun by ");
        terminal.types("\x03");
        cluster.wait_until_gone("r");
        wait_until("its control group is gone", || !has_cgroup_of(wrapper));
        terminal.types(&format!("echo at the prompt of $((1 + 1)) {shell}\n"));
        terminal.shows(&format!("prompt of 2 {shell}"));
        assert!(!terminal.shown().contains("went on"), "{shell}: {:?}", terminal.shown());
        terminal.forget();
    }
    terminal.types("exit 5\n");
    assert_eq!(child.wait().expect("a child").code(), Some(5));
}

#[test]
fn ctrl_z_restores_the_screen_of_the_shell() {
    let cluster = Cluster::start(3);
    let script = "exec $REDLOCK top --interval 200ms";
    let (mut terminal, mut child, file) = shell_with_script(&cluster, script);
    terminal.types(&format!("sh {file}\n"));
    terminal.shows("hand-overs/s");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    assert!(terminal.shown().contains("\x1b[?25h\x1b[?1049l"), "{:?}", terminal.shown());
    terminal.forget();
    terminal.types("fg\n");
    terminal.shows("\x1b[?1049h");
    terminal.types("q");
    terminal.shows("\x1b[?1049l");
    terminal.types("exit 5\n");
    assert_eq!(child.wait().expect("a child").code(), Some(5));
}

#[test]
fn top_ends_with_q_and_restores_the_terminal() {
    let cluster = Cluster::start(3);
    for (keys, status) in [("q", Some(0)), ("\x03", Some(0))] {
        let (mut terminal, mut child) =
            Terminal::start(redlock(&cluster, &["top", "--interval", "200ms"]));
        terminal.shows("hand-overs/s");
        terminal.types(keys);
        assert_eq!(child.wait().expect("a child").code(), status);
        terminal.shows("\x1b[?1049l");
        assert!(terminal.shown().contains("\x1b[?1049h"));
    }
}
