//! Log lines that are kept until the caller fetches them, for callers that no thread may call back.

use std::collections::VecDeque;

use crate::fork::{ForkGuard, ForkMutex};
use crate::protocol::error::Error;
use crate::protocol::log_line::{Level, LogLine};
use crate::system::process::{Generation, this_process};

/// The maximum number of lines that a caller may ask to keep.
pub(crate) const LINES_MAX: i32 = 65_536;

/// The lines that have not been taken yet, the oldest first.
#[derive(Default)]
pub(crate) struct KeptLog {
    state: ForkMutex<State>,
}

#[derive(Default)]
struct State {
    most: usize,
    lines: VecDeque<LogLine>,
    /// The process that the lines belong to.
    process: Generation,
}

impl KeptLog {
    /// From now on, keeps at most this number of lines. Forgets the lines that were kept before.
    pub(crate) fn keep(&self, most: usize) -> Result<(), Error> {
        let mut state = self.state()?;
        state.most = most;
        state.lines.clear();
        Ok(())
    }

    /// Keeps a line. If there is no room for it, drops the oldest one.
    pub(crate) fn push(&self, level: Level, line: &str) {
        if let Ok(mut state) = self.state() {
            state.lines.push_back((level, line.to_owned()));
            while state.lines.len() > state.most {
                state.lines.pop_front();
            }
        }
    }

    /// Takes the oldest line.
    pub(crate) fn take(&self) -> Option<LogLine> {
        self.state().ok()?.lines.pop_front()
    }

    /// The parent takes its own lines: a child gets none of them.
    fn state(&self) -> Result<ForkGuard<'_, State>, Error> {
        let mut state = self.state.lock()?;
        if state.process != this_process() {
            state.process = this_process();
            state.lines.clear();
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(log: &KeptLog) -> Vec<String> {
        std::iter::from_fn(|| log.take()).map(|it| it.1).collect()
    }

    #[test]
    fn kept_lines_are_taken_once_in_order() {
        let log = KeptLog::default();
        log.keep(10).unwrap();
        log.push(Level::Warning, "first");
        log.push(Level::Info, "second");
        assert_eq!(log.take(), Some((Level::Warning, "first".into())));
        log.push(Level::Info, "third");
        assert_eq!(lines(&log), ["second", "third"]);
        assert_eq!(log.take(), None);
    }

    #[test]
    fn the_kept_log_is_bounded_and_keeps_the_last_lines() {
        let log = KeptLog::default();
        log.push(Level::Info, "nobody asked for this");
        assert_eq!(log.take(), None);
        log.keep(3).unwrap();
        (0..1_000).for_each(|it| log.push(Level::Info, &it.to_string()));
        assert_eq!(lines(&log), ["997", "998", "999"]);
        log.push(Level::Info, "it is kept no more");
        log.keep(0).unwrap();
        assert_eq!(log.take(), None);
    }

    #[test]
    fn a_child_does_not_take_lines_of_its_parent() {
        let log = KeptLog::default();
        log.keep(10).unwrap();
        log.push(Level::Info, "the parent's");
        log.state.lock().unwrap().process -= 1;
        log.push(Level::Info, "the child's");
        assert_eq!(lines(&log), ["the child's"]);
    }
}
