//! What the library has to say to whoever wants to listen. Silent by default.
//!
//! Lines come up while connections are in use. They are kept in a queue, and told by a thread whose call
//! has ended and that holds nothing any more: the logger is somebody else's code, which may call the
//! library, wait for other threads, or fork.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::fork::{ForkGuard, ForkMutex};
use crate::system::process::{Generation, this_process};

/// How many lines wait to be told, and of how many bytes, and how many are told at the end of one call.
const LINES_MAX: usize = 256;
const BYTES_MAX: usize = 64 * 1024;

/// No process.
const NOBODY: Generation = 0;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A fault of a server that a lock may suffer from.
    Warning = 1,
    /// A fault mended, or something that a reader of logs may care for.
    Info = 2,
    /// An event of a lock, for those who asked to be told.
    Event = 3,
}

/// A function that is told.
pub type Logger = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// One line and how much it matters.
pub(crate) type Line = (Level, String);

/// Where the lines go.
#[derive(Default)]
pub(crate) struct Log {
    state: ForkMutex<State>,
    /// The process that has lines to tell, or [`NOBODY`]: so a call that has none takes no mutex.
    waiting: AtomicU64,
}

#[derive(Default)]
struct State {
    logger: Option<Logger>,
    /// The process whose lines these are.
    process: Generation,
    lines: VecDeque<Line>,
    bytes: usize,
    left_out: u64,
    /// Whether a thread is telling them: one at a time, so that they stay in order.
    is_telling: bool,
}

impl Log {
    /// Changes who is told. The old logger is told nothing more once this has returned, but for the one
    /// line that another thread may be telling it.
    pub(crate) fn set(&self, logger: Option<Logger>) -> Result<(), Error> {
        let mut state = self.state()?;
        if logger.is_none() {
            state.forget_lines();
        }
        // The old one is dropped after the mutex is free again: it is somebody else's code.
        let old = std::mem::replace(&mut state.logger, logger);
        drop(state);
        drop(old);
        Ok(())
    }

    /// Keeps lines until somebody tells them. Calls nobody, so the caller may hold what it likes.
    pub(crate) fn keep(&self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        // A child that was forked while its parent kept lines goes without.
        let Ok(mut state) = self.state() else { return };
        if state.logger.is_some() {
            lines.into_iter().for_each(|line| state.keep(line));
            self.waiting.store(state.process, Ordering::Relaxed);
        }
    }

    /// Whether there is something to tell.
    pub(crate) fn has_lines(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == this_process()
    }

    /// Tells what there is to tell, unless another thread does, or this one in a call further up: then
    /// that goes on with these lines. Nothing is held, neither by the caller. A logger whose own calls
    /// bring up one line after another is not listened to for ever: what is left waits for the end of
    /// the next call. Returns whether somebody was told something, which may have taken its time.
    pub(crate) fn tell(&self) -> bool {
        if !self.has_lines() {
            return false;
        }
        let Some(mut turn) = Turn::take(self) else { return false };
        for count in 0..LINES_MAX {
            let Some((logger, (level, line))) = turn.next() else { return count > 0 };
            logger(level, &line);
            if this_process() != turn.process {
                // It forked, and this is the child: the parent tells the rest.
                break;
            }
        }
        true
    }

    fn state(&self) -> Result<ForkGuard<'_, State>, Error> {
        let mut state = self.state.lock()?;
        let process = this_process();
        if state.process != process {
            // What there may be is a copy, and the parent's to tell.
            state.forget_lines();
            (state.process, state.is_telling) = (process, false);
        }
        Ok(state)
    }
}

impl State {
    /// Where there is no room, the oldest go: the last ones tell how things stand.
    fn keep(&mut self, line: Line) {
        self.bytes += line.1.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX && self.lines.len() > 1 {
            self.take();
            self.left_out += 1;
        }
    }

    fn take(&mut self) -> Option<Line> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.1.len();
        Some(line)
    }

    fn next(&mut self) -> Option<Line> {
        match std::mem::take(&mut self.left_out) {
            0 => self.take(),
            count => {
                let words = format!("{count} lines that came before the next are left out");
                Some((Level::Warning, words))
            }
        }
    }

    fn forget_lines(&mut self) {
        self.lines.clear();
        (self.bytes, self.left_out) = (0, 0);
    }
}

/// The right to tell lines, and the duty to let go of it.
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

    /// What is told next, and to whom. Without anything the turn is over, in the same moment: a line that
    /// comes up later is told by whoever brings it.
    fn next(&mut self) -> Option<(Logger, Line)> {
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
    /// Also when a logger panics.
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

    fn lines(numbers: impl Iterator<Item = usize>) -> Vec<Line> {
        numbers.map(|it| (Level::Info, it.to_string())).collect()
    }

    fn taken(told: &Told) -> Vec<String> {
        std::mem::take(&mut told.lock().unwrap())
    }

    #[test]
    fn lines_are_told_once_and_in_order() {
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
    fn the_last_lines_are_kept_and_the_others_counted() {
        let told = Told::default();
        let log = log_to(&told);
        log.keep(lines(0..LINES_MAX + 7));
        assert_eq!(log.state().unwrap().lines.len(), LINES_MAX);
        log.tell();
        log.tell();
        let said = taken(&told);
        assert_eq!(said[..2], ["7 lines that came before the next are left out", "7"]);
        assert_eq!(said.len(), 1 + LINES_MAX);

        let long = "x".repeat(BYTES_MAX / 4);
        log.keep((0..9).map(|_| (Level::Info, long.clone())).collect());
        assert!(log.state().unwrap().bytes <= BYTES_MAX);
        log.tell();
        assert_eq!(taken(&told)[0], "5 lines that came before the next are left out");
        log.keep(vec![(Level::Info, "x".repeat(2 * BYTES_MAX))]);
        log.tell();
        assert_eq!(taken(&told).len(), 1, "a line is told, however long");
        assert_eq!(log.state().unwrap().bytes, 0);
    }

    #[test]
    fn nothing_is_kept_for_nobody() {
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

    /// A logger whose calls bring up a line each, at whose end they would be told.
    #[test]
    fn a_logger_that_brings_up_lines_is_not_called_from_within_itself_nor_for_ever() {
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
    fn a_logger_that_panics_keeps_nobody_from_telling() {
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
    fn a_child_tells_nothing_of_its_parents() {
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
