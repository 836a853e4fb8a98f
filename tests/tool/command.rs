//! The command as a test runs it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::support::Cluster;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// One that runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

/// The command, with these arguments, that knows no servers.
pub(crate) fn bare(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlock"));
    for name in ["SERVERS", "CONFIG", "USER", "PASSWORD", "TICKET", "NAME", "FENCING_TOKEN"] {
        command.env_remove(format!("REDLOCK_{name}"));
    }
    command.args(arguments).stdin(Stdio::null());
    // Whoever runs the tests may have some ignored, as nohup and background jobs have it; the command leaves these so.
    let heed = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: no handler is set.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls and allocates nothing.
    unsafe { command.pre_exec(heed) };
    command
}

/// The command for these servers.
pub(crate) fn redlock(cluster: &Cluster, arguments: &[&str]) -> Command {
    let mut command = bare(arguments);
    command.env("REDLOCK_SERVERS", cluster.urls().join(","));
    command
}

/// Runs it to its end.
pub(crate) fn finish(mut command: Command) -> Outcome {
    let output = command.output().expect("it runs");
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Runs it beside the test.
pub(crate) fn start(mut command: Command) -> Running {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    Running { child, stdout, stderr }
}

impl Running {
    /// The next line that it writes.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        assert!(line.ends_with('\n'), "it has ended: {}", self.words());
        line.trim_end().to_owned()
    }

    /// The next line as the number of a process.
    #[track_caller]
    pub(crate) fn process(&mut self) -> u32 {
        self.line().parse().expect("a number")
    }

    /// Reads what it tells on standard error until this event, as JSON.
    #[track_caller]
    pub(crate) fn event(&mut self, name: &str) -> Value {
        loop {
            let mut line = String::new();
            self.stderr.read_line(&mut line).expect("a line");
            assert!(line.ends_with('\n'), "it has ended without {name}");
            let event: Value = serde_json::from_str(&line).expect("JSON");
            if event["event"] == name {
                return event;
            }
        }
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Outcome {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).expect("text");
        self.stderr.read_to_string(&mut stderr).expect("text");
        let status = self.child.wait().expect("it is a child");
        Outcome { status: status.code(), stdout, stderr }
    }

    fn words(&mut self) -> String {
        let mut words = String::new();
        let _ = self.stderr.read_to_string(&mut words);
        words
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    /// What it tells on standard output, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What it tells on standard error, line by line, as JSON.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let event = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        // A shell that it runs says a word of its own when its child is killed.
        self.stderr.lines().filter(|it| it.starts_with('{')).map(event).collect()
    }

    #[track_caller]
    pub(crate) fn event(&self, name: &str) -> Value {
        let events = self.events();
        let event = events.iter().find(|it| it["event"] == name);
        event.unwrap_or_else(|| panic!("no {name} in {self:?}")).clone()
    }
}

/// Whether there is such a process, and it has not ended.
pub(crate) fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|it| !it.1.starts_with(['Z', 'X']))
}
