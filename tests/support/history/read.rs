//! Combines logs into a history: lines, related lines, and the lives of processes.

use std::collections::{HashMap, HashSet};
use std::str;

use super::line::{Event, Line};
use super::lives::{self, Life};
use super::verdict::{Rule, Violation};

/// A log as it was found: the name of its process, and all of its bytes.
pub(crate) struct File {
    pub(crate) process: String,
    pub(crate) bytes: Vec<u8>,
}

/// The lines of all logs. The lines of each log are in order.
pub(crate) struct History<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    /// For a call its return, and for a return its call; the same for `writing` and its result.
    partners: Vec<Option<usize>>,
    /// The lines in the order of their times.
    pub(crate) order: Vec<usize>,
    pub(crate) lives: HashMap<&'a str, Life>,
    /// The processes that were killed before they wrote a complete line.
    pub(super) unborn: HashSet<&'a str>,
    pub(crate) malformed: Vec<Violation>,
}

/// The state of a thread.
#[derive(Clone, Copy, Default)]
struct Thread {
    last: Option<usize>,
    /// A call or a write that has no end yet.
    open: Option<usize>,
}

impl<'a> History<'a> {
    pub(crate) fn read(files: &'a [File]) -> Self {
        let mut history = Self {
            lines: Vec::new(),
            partners: Vec::new(),
            order: Vec::new(),
            lives: HashMap::new(),
            unborn: HashSet::new(),
            malformed: Vec::new(),
        };
        let mut torn = Vec::new();
        for file in files {
            torn.extend(history.add(file).map(|words| (file, words)));
        }
        lives::note_driver(&mut history);
        history.judge_ends(&torn);
        history.order = (0..history.lines.len()).collect();
        history.order.sort_by_key(|&at| history.lines[at].time);
        history
    }

    /// For a call its return, and for a return its call; the same for `writing` and its result.
    pub(crate) fn partner(&self, at: usize) -> Option<usize> {
        self.partners[at]
    }

    /// The call whose return this line is.
    pub(crate) fn call_of(&self, at: usize) -> Option<&Line<'a>> {
        self.partner(at).map(|call| &self.lines[call])
    }

    pub(crate) fn life(&self, process: &str) -> Option<&Life> {
        self.lives.get(process)
    }

    /// The last time at which a process is known to have lived, if it has ended.
    pub(crate) fn last_alive(&self, process: &str) -> Option<i64> {
        let life = self.life(process)?;
        let last = self.lines[life.last].time;
        match (life.end, life.kill) {
            (Some(end), _) => Some(self.lines[end].time),
            (None, Some(kill)) => Some(last.max(self.lines[kill].time)),
            (None, None) => self.was_killed(process).then_some(last),
        }
    }

    /// Whether a process was killed, or a parent that takes its children along.
    pub(crate) fn was_killed(&self, process: &str) -> bool {
        let mut next = self.life(process);
        while let Some(life) = next {
            if life.kill.is_some() {
                return true;
            }
            next = life.parent.and_then(|begin| match self.lines[begin].event {
                Event::Begin { parent: Some(parent) } => self.life(parent),
                _ => None,
            });
        }
        self.unborn.contains(process)
    }

    /// Adds the lines of a log. Returns what is wrong with its last line, if that may be torn.
    fn add(&mut self, file: &'a File) -> Option<String> {
        let bytes = &file.bytes;
        let whole = bytes.iter().rposition(|it| *it == b'\n').map_or(0, |at| at + 1);
        let mut threads = HashMap::new();
        for (number, line) in bytes[..whole].split_inclusive(|it| *it == b'\n').enumerate() {
            let line = &line[..line.len() - 1];
            let parsed = str::from_utf8(line)
                .map_err(|_| "it is no text".to_owned())
                .and_then(|text| Line::parse(&file.process, number + 1, text));
            match parsed {
                Ok(line) => self.push(&file.process, line, &mut threads),
                Err(words) => {
                    let text = String::from_utf8_lossy(line);
                    self.malform(format!("{}.log:{}: {words}: {text}", file.process, number + 1));
                }
            }
        }
        (whole < bytes.len() || bytes.is_empty())
            .then(|| String::from_utf8_lossy(&bytes[whole..]).into_owned())
    }

    fn push(&mut self, file: &'a str, line: Line<'a>, threads: &mut HashMap<u32, Thread>) {
        let at = self.lines.len();
        let thread = threads.entry(line.thread).or_default();
        if let Some(words) = self.fault(file, &line, *thread) {
            self.malform(format!("{line}: {words}"));
        }
        let open = thread.open.filter(|&open| are_partners(&self.lines[open].event, &line.event));
        self.partners.push(open);
        if let Some(open) = open {
            self.partners[open] = Some(at);
        }
        thread.last = Some(at);
        thread.open = line.event.opens().then_some(at);
        let life = self.lives.entry(file).or_insert_with(|| Life::new(at));
        life.last = at;
        match line.event {
            Event::Begin { parent: Some(_) } => life.parent = Some(at),
            Event::End => life.end = Some(at),
            _ => {}
        }
        self.lines.push(line);
    }

    /// Why a line cannot occur where it does, if it cannot.
    fn fault(&self, file: &str, line: &Line<'_>, thread: Thread) -> Option<&'static str> {
        let life = self.life(file);
        if line.process != file {
            return Some("it is another process's");
        }
        if matches!(line.event, Event::Begin { .. }) == life.is_some() {
            return Some("the first line, and no other, has to be the beginning");
        }
        if life.is_some_and(|life| life.end.is_some()) {
            return Some("it comes after the end");
        }
        if thread.last.is_some_and(|last| self.lines[last].time > line.time) {
            return Some("it is earlier than the one before");
        }
        let open = thread.open.map(|open| &self.lines[open].event);
        match open {
            Some(open) if are_partners(open, &line.event) => None,
            _ if line.event.closes() => Some("nothing like that was begun"),
            Some(_) => Some("it is in the midst of another"),
            None => None,
        }
    }

    /// A torn line, or a call without a return, is allowed only if the process was killed.
    fn judge_ends(&mut self, torn: &[(&File, String)]) {
        let cut = torn.iter().filter(|(file, _)| !self.was_killed(&file.process));
        let mut wrong: Vec<_> = cut
            .map(|(file, rest)| format!("{}.log: its last line is torn: {rest:?}", file.process))
            .collect();
        for (at, line) in self.lines.iter().enumerate() {
            if line.event.opens() && self.partners[at].is_none() && !self.was_killed(line.process) {
                wrong.push(format!("{line}: nothing came of it"));
            }
        }
        wrong.into_iter().for_each(|words| self.malform(words));
    }

    pub(super) fn malform(&mut self, words: String) {
        self.malformed.push(Violation { rule: Rule::Malformed, words, proof: Vec::new() });
    }
}

fn are_partners(open: &Event<'_>, close: &Event<'_>) -> bool {
    match (open, close) {
        (Event::Call(call), Event::Return(it)) => (call.op, call.resource) == (it.op, it.resource),
        (Event::Writing(write), Event::Wrote(it) | Event::Abandon(it)) => {
            (write.resource, write.token, write.value) == (it.resource, it.token, it.value)
        }
        _ => false,
    }
}
