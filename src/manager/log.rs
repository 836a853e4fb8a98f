//! The log of the library, for a program that sets a logger. Silent by default.
//!
//! Lines come up while connections are in use. They are kept in a queue. A thread whose call has ended, and
//! that holds no mutex any more, passes them to the logger. The logger is foreign code: it may call the
//! library, wait for other threads, or fork.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fork::{ForkGuard, ForkMutex};
use crate::protocol::error::Error;
use crate::protocol::log_line::{Level, LogLine};
use crate::system::process::{Generation, this_process};

/// How many lines wait for the logger at most, and how many bytes. `LINES_MAX` is also the maximum number
/// of lines that are passed to the logger at the end of one call.
const LINES_MAX: usize = 256;
const BYTES_MAX: usize = 64 * 1024;

/// No process.
const NOBODY: Generation = 0;

/// A function that receives log lines.
pub type Logger = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// The queue of lines, and the logger.
#[derive(Default)]
pub(crate) struct Log {
    state: ForkMutex<State>,
    /// The process that has lines for the logger, or [`NOBODY`]. With this, a call without lines takes no mutex.
    waiting: AtomicU64,
}

#[derive(Default)]
struct State {
    logger: Option<Logger>,
    /// The process whose lines these are.
    process: Generation,
    lines: VecDeque<LogLine>,
    bytes: usize,
    left_out: u64,
    /// Whether a thread is passing lines to the logger. Only one thread does so at a time, so that the
    /// lines stay in order.
    is_telling: bool,
}

impl Log {
    /// Changes the logger. After this has returned, the old logger receives nothing more, except for one
    /// line that another thread may be passing to it at that moment.
    pub(crate) fn set(&self, logger: Option<Logger>) -> Result<(), Error> {
        let mut state = self.state()?;
        if logger.is_none() {
            state.forget_lines();
        }
        // The old logger is dropped after the mutex is free again, because it is foreign code.
        let old = std::mem::replace(&mut state.logger, logger);
        drop(state);
        drop(old);
        Ok(())
    }

    /// Keeps lines until a thread passes them to the logger. This calls no foreign code, so the caller may
    /// hold any mutex.
    pub(crate) fn keep(&self, lines: Vec<LogLine>) {
        if lines.is_empty() {
            return;
        }
        // A child that was forked while its parent was keeping lines has no log.
        let Ok(mut state) = self.state() else { return };
        if state.logger.is_some() {
            lines.into_iter().for_each(|line| state.keep(line));
            self.waiting.store(state.process, Ordering::Relaxed);
        }
    }

    /// Whether there are lines for the logger.
    pub(crate) fn has_lines(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == this_process()
    }

    /// Passes the kept lines to the logger. If another thread is doing that, or this thread in a call
    /// further up the stack, that call goes on with these lines instead. No mutex is held, and the caller
    /// must not hold any either. If the logger's own calls produce one line after another, this ends at
    /// some point: the remaining lines wait for the end of the next call. Returns whether the logger was
    /// called, which may have taken some time.
    pub(crate) fn tell(&self) -> bool {
        if !self.has_lines() {
            return false;
        }
        let Some(mut turn) = Turn::take(self) else { return false };
        for count in 0..LINES_MAX {
            let Some((logger, (level, line))) = turn.next() else { return count > 0 };
            logger(level, &line);
            if this_process() != turn.process {
                // The logger has forked, and this is the child: the parent passes on the remaining lines.
                break;
            }
        }
        true
    }

    fn state(&self) -> Result<ForkGuard<'_, State>, Error> {
        let mut state = self.state.lock()?;
        let process = this_process();
        if state.process != process {
            // Lines that are here are copies. The parent passes them to the logger.
            state.forget_lines();
            (state.process, state.is_telling) = (process, false);
        }
        Ok(state)
    }
}

impl State {
    /// If there is no room, drops the oldest lines: the last ones describe the present state.
    fn keep(&mut self, line: LogLine) {
        self.bytes += line.1.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX && self.lines.len() > 1 {
            self.take();
            self.left_out += 1;
        }
    }

    fn take(&mut self) -> Option<LogLine> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.1.len();
        Some(line)
    }

    fn next(&mut self) -> Option<LogLine> {
        match std::mem::take(&mut self.left_out) {
            0 => self.take(),
            count => {
                let words = format!("{count} earlier lines were dropped");
                Some((Level::Warning, words))
            }
        }
    }

    fn forget_lines(&mut self) {
        self.lines.clear();
        (self.bytes, self.left_out) = (0, 0);
    }
}

/// The right to pass lines to the logger, and the duty to give that right back.
struct Turn<'a> {
    log: &'a Log,
    process: Generation,
    is_over: bool,
}

impl<'a> Turn<'a> {
    fn take(log: &'a Log) -> Option<Self> {
        let mut state = log.state().ok().filter(|state| !state.is_telling)?;
        state.is_telling = true;
        Some(Self { log, process: state.process, is_over: false })
    }

    /// The next line, and the logger for it. If there is none, the turn ends at the same moment: a later
    /// line is passed on by the thread that adds it.
    fn next(&mut self) -> Option<(Logger, LogLine)> {
        let mut state = self.log.state().ok()?;
        if let Some(logger) = state.logger.clone()
            && let Some(line) = state.next()
        {
            return Some((logger, line));
        }
        state.forget_lines();
        state.is_telling = false;
        self.log.waiting.store(NOBODY, Ordering::Relaxed);
        self.is_over = true;
        None
    }
}

impl Drop for Turn<'_> {
    /// This also runs when a logger panics.
    fn drop(&mut self) {
        if !self.is_over
            && this_process() == self.process
            && let Ok(mut state) = self.log.state()
        {
            state.is_telling = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use super::*;

    type Told = Arc<Mutex<Vec<String>>>;

    fn log_to(told: &Told) -> Arc<Log> {
        let (log, told) = (Arc::new(Log::default()), Arc::clone(told));
        let logger = move |_: Level, line: &str| told.lock().unwrap().push(line.to_owned());
        log.set(Some(Arc::new(logger))).unwrap();
        log
    }

    fn lines(numbers: impl Iterator<Item = usize>) -> Vec<LogLine> {
        numbers.map(|it| (Level::Info, it.to_string())).collect()
    }

    fn taken(told: &Told) -> Vec<String> {
        std::mem::take(&mut told.lock().unwrap())
    }

    #[test]
    fn the_logger_gets_each_line_once_in_order() {
        let told = Told::default();
        let log = log_to(&told);
        log.tell();
        assert!(taken(&told).is_empty());
        log.keep(lines(1..3));
        log.keep(lines(3..4));
        log.tell();
        assert_eq!(taken(&told), ["1", "2", "3"]);
        log.tell();
        assert!(taken(&told).is_empty());
    }

    #[test]
    fn the_log_keeps_the_last_lines_and_counts_the_rest() {
        let told = Told::default();
        let log = log_to(&told);
        log.keep(lines(0..LINES_MAX + 7));
        assert_eq!(log.state().unwrap().lines.len(), LINES_MAX);
        log.tell();
        log.tell();
        let said = taken(&told);
        assert_eq!(said[..2], ["7 earlier lines were dropped", "7"]);
        assert_eq!(said.len(), 1 + LINES_MAX);

        let long = "x".repeat(BYTES_MAX / 4);
        log.keep((0..9).map(|_| (Level::Info, long.clone())).collect());
        assert!(log.state().unwrap().bytes <= BYTES_MAX);
        log.tell();
        assert_eq!(taken(&told)[0], "5 earlier lines were dropped");
        log.keep(vec![(Level::Info, "x".repeat(2 * BYTES_MAX))]);
        log.tell();
        assert_eq!(taken(&told).len(), 1, "a line is told, however long");
        assert_eq!(log.state().unwrap().bytes, 0);
    }

    #[test]
    fn without_a_logger_no_line_is_kept() {
        let told = Told::default();
        let log = log_to(&told);
        log.keep(lines(0..3));
        log.set(None).unwrap();
        log.keep(lines(3..6));
        log.tell();
        let other = Arc::clone(&told);
        let logger = move |_: Level, line: &str| other.lock().unwrap().push(line.to_owned());
        log.set(Some(Arc::new(logger))).unwrap();
        log.tell();
        assert!(taken(&told).is_empty());
        log.keep(lines(6..7));
        log.tell();
        assert_eq!(taken(&told), ["6"]);
    }

    /// The logger makes calls that produce one line each. At the end of such a call, the line would be
    /// passed to the logger.
    #[test]
    fn a_logger_is_not_called_from_within_itself() {
        let (log, told) = (Arc::new(Log::default()), Told::default());
        let (inner, heard) = (Arc::downgrade(&log), Arc::clone(&told));
        let is_in_it = AtomicBool::new(false);
        let logger = move |_: Level, line: &str| {
            assert!(!is_in_it.swap(true, Ordering::Relaxed), "it is called from within itself");
            heard.lock().unwrap().push(line.to_owned());
            let log = inner.upgrade().unwrap();
            log.keep(lines(0..1));
            log.tell();
            is_in_it.store(false, Ordering::Relaxed);
        };
        log.set(Some(Arc::new(logger))).unwrap();
        log.keep(lines(0..1));
        for _ in 0..2 {
            log.tell();
            assert_eq!(taken(&told).len(), LINES_MAX);
        }
        log.set(None).unwrap();
    }

    #[test]
    fn a_panic_of_the_logger_does_not_stop_the_log() {
        let (log, told) = (Arc::new(Log::default()), Told::default());
        log.set(Some(Arc::new(|_, _: &str| panic!("drawn")))).unwrap();
        log.keep(lines(0..2));
        assert!(panic::catch_unwind(AssertUnwindSafe(|| log.tell())).is_err());
        let heard = Arc::clone(&told);
        let logger = move |_: Level, line: &str| heard.lock().unwrap().push(line.to_owned());
        log.set(Some(Arc::new(logger))).unwrap();
        log.tell();
        assert_eq!(taken(&told), ["1"]);
    }

    #[test]
    fn a_child_does_not_log_lines_of_its_parent() {
        let told = Told::default();
        let log = log_to(&told);
        log.keep(lines(0..2));
        let mut state = log.state.lock().unwrap();
        (state.process, state.is_telling) = (u64::MAX, true);
        drop(state);
        log.tell();
        assert!(taken(&told).is_empty());
        log.keep(lines(2..3));
        log.tell();
        assert_eq!(taken(&told), ["2"]);
    }
}
