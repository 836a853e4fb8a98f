//! A running program and the lines that it prints, as described in `measure.h`.

use std::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Outcome;
use super::process::{Leashed, go_on};

/// The program still runs, but has not printed the expected line.
#[derive(Debug)]
pub(crate) struct Hung;

impl fmt::Display for Hung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("does not answer")
    }
}

impl Error for Hung {}

/// Ends the program when dropped.
pub(crate) struct Talk {
    process: Leashed,
    lines: Receiver<String>,
    complaint: Arc<Mutex<String>>,
}

impl Talk {
    pub(crate) fn begin(command: &mut Command) -> Outcome<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Leashed::start(command)?;
        let output = process.0.stdout.take().ok_or("a program without output")?;
        let errors = process.0.stderr.take().ok_or("a program without error output")?;
        Ok(Self { process, lines: lines_of(output), complaint: last_line_of(errors) })
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.0.id()
    }

    pub(crate) fn say(&mut self, line: &str) -> Outcome<()> {
        let input = self.process.0.stdin.as_mut().ok_or("a program without input")?;
        match writeln!(input, "{line}") {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(self.why_it_ended()?.into()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn expect(&mut self, line: &str, patience: Duration) -> Outcome<()> {
        let heard = self.hear(patience)?;
        if heard != line {
            return Err(format!("said {heard:?} rather than {line:?}").into());
        }
        Ok(())
    }

    /// Waits for a line. Checks now and then whether the user wants to end the bench.
    pub(crate) fn hear(&mut self, patience: Duration) -> Outcome<String> {
        self.hear_beside(patience, Duration::from_millis(100), || ())
    }

    /// The same, but repeatedly calls `act` while it waits.
    pub(crate) fn hear_beside(
        &mut self,
        patience: Duration,
        every: Duration,
        mut act: impl FnMut(),
    ) -> Outcome<String> {
        let end = Instant::now() + patience;
        loop {
            go_on()?;
            act();
            match self.lines.recv_timeout(every) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => return Err(self.why_it_ended()?.into()),
                Err(RecvTimeoutError::Timeout) if Instant::now() > end => {
                    return Err(Box::new(Hung));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn why_it_ended(&mut self) -> Outcome<String> {
        let status = self.process.0.wait()?;
        // The thread that reads the error output may be a moment behind.
        thread::sleep(Duration::from_millis(20));
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(format!("ended early, {status}: {complaint}"))
    }
}

/// The thread ends when the program ends, or when the receiver is gone.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
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

/// Keeps the last line of the error output, for a failure message. There may be many other lines.
fn last_line_of(errors: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let last = Arc::new(Mutex::new(String::new()));
    let keep = Arc::clone(&last);
    thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            if !line.trim().is_empty() {
                *keep.lock().unwrap_or_else(PoisonError::into_inner) = line.trim().to_owned();
            }
        }
    });
    last
}
