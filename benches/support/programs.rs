//! The two C programs that are measured: compiled, started, and talked to as `measure.h` says.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::Outcome;
use super::figures::Figures;
use super::process::{Leashed, go_on};

/// How long a program may take beyond the time it was told to run, before it counts as hung.
const GRACE: Duration = Duration::from_secs(15);

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

pub(crate) struct Program {
    file: PathBuf,
    library: Option<PathBuf>,
}

impl Program {
    /// The same cycle over bare sockets.
    pub(crate) fn floor(dir: &Path) -> Outcome<Self> {
        let file = compile("floor", dir, None)?;
        Ok(Self { file, library: None })
    }

    /// The cycle through the library's C interface, with the shared library of a release build.
    pub(crate) fn ours(dir: &Path) -> Outcome<Self> {
        let library = build_library()?;
        let file = compile("ours", dir, Some(&library))?;
        Ok(Self { file, library: Some(library) })
    }

    /// Warms up, runs, and gives its figures; `start` is called the moment the run begins.
    pub(crate) fn cycle(
        &self,
        key: &str,
        (warm, run): (Duration, Duration),
        ports: impl Iterator<Item = String>,
        start: impl FnOnce(),
    ) -> Outcome<Figures> {
        let times = [warm, run].map(|t| t.as_millis().to_string());
        let args = [key.to_owned()].into_iter().chain(times).chain(ports);
        let mut talk = Talk::begin(self.command().args(args))?;
        talk.expect("ready", warm + GRACE)?;
        talk.say("go")?;
        talk.expect("running", GRACE)?;
        start();
        Figures::parse(&talk.hear(run + GRACE)?)
    }

    /// What a manager of these servers takes up.
    pub(crate) fn idle(&self, ports: impl Iterator<Item = String>) -> Outcome<Figures> {
        let mut talk = Talk::begin(self.command().arg("--idle").args(ports))?;
        Figures::parse(&talk.hear(GRACE)?)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.file);
        if let Some(library) = &self.library {
            // The program asks for the soname, and no file of that name stands beside the build.
            // A library loaded beforehand under its soname satisfies it.
            command.env("LD_PRELOAD", library);
        }
        command
    }
}

/// A running program and the lines it prints.
struct Talk {
    process: Leashed,
    lines: Receiver<String>,
}

impl Talk {
    fn begin(command: &mut Command) -> Outcome<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Leashed::start(command)?;
        let output = process.0.stdout.take().ok_or("a program without output")?;
        Ok(Self { process, lines: lines_of(output) })
    }

    fn say(&mut self, line: &str) -> Outcome<()> {
        let input = self.process.0.stdin.as_mut().ok_or("a program without input")?;
        Ok(writeln!(input, "{line}")?)
    }

    fn expect(&mut self, line: &str, patience: Duration) -> Outcome<()> {
        let heard = self.hear(patience)?;
        if heard != line {
            return Err(format!("a program said {heard:?} rather than {line:?}").into());
        }
        Ok(())
    }

    /// Looks up now and then, so that a user who wants the end need not wait for the line.
    fn hear(&mut self, patience: Duration) -> Outcome<String> {
        let end = Instant::now() + patience;
        loop {
            go_on()?;
            match self.lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.process.0.wait()?;
                    return Err(format!("a program ended early: {status}").into());
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > end => {
                    return Err("a program does not answer".into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Ends when the program does, or when nobody listens any more.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (tell, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn compile(name: &str, dir: &Path, library: Option<&Path>) -> Outcome<PathBuf> {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let file = dir.join(name);
    let mut command = Command::new(&compiler);
    command
        .args(["-std=c11", "-O2", "-I"])
        .arg(Path::new(ROOT).join("include"))
        .arg(Path::new(ROOT).join("benches").join(format!("{name}.c")))
        .args(library)
        .arg("-o")
        .arg(&file);
    succeed(&mut command)?;
    Ok(file)
}

/// Cargo builds nothing where the library is up to date.
fn build_library() -> Outcome<PathBuf> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    succeed(
        Command::new(cargo).args(["build", "--release", "--lib", "--quiet"]).current_dir(ROOT),
    )?;

    // This program is target/release/deps/lock-…, or wherever else cargo was told to put it.
    let program = env::current_exe()?;
    let library = program.parent().and_then(Path::parent).map(|d| d.join("libredlock.so"));
    library
        .filter(|l| l.exists())
        .ok_or_else(|| "the release build left no libredlock.so where this bench was built".into())
}

fn succeed(command: &mut Command) -> Outcome<()> {
    let name = command.get_program().display().to_string();
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    go_on()?;
    if !status.success() {
        return Err(format!("{name}: {status}").into());
    }
    Ok(())
}
