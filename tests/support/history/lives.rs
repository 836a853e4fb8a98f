//! The lives of processes: beginnings, ends, violent ends, and times during which they were stopped.

use super::line::Event;
use super::read::History;
use super::verdict::{Rule, Violation};

/// A process, by the numbers of the lines about it.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) begin: usize,
    /// The line that names a parent, if it has one.
    pub(crate) parent: Option<usize>,
    pub(crate) end: Option<usize>,
    pub(crate) last: usize,
    pub(crate) kill: Option<usize>,
    pub(crate) dead: Option<usize>,
    /// The longest possible periods during which it was stopped.
    pub(crate) pauses: Vec<(i64, i64)>,
}

impl Life {
    pub(crate) fn new(begin: usize) -> Self {
        Self { begin, parent: None, end: None, last: begin, kill: None, dead: None, pauses: vec![] }
    }

    /// For how much of a span it may have been stopped.
    pub(crate) fn paused(&self, from: i64, to: i64) -> i64 {
        self.pauses.iter().map(|(stop, cont)| (to.min(*cont) - from.max(*stop)).max(0)).sum()
    }
}

/// Adds what was done to processes to their lives.
pub(super) fn note_driver(history: &mut History<'_>) {
    let mut wrong = Vec::new();
    for (at, line) in history.lines.iter().enumerate() {
        let (Event::Stop { process }
        | Event::Cont { process }
        | Event::Kill { process }
        | Event::Dead { process }) = line.event
        else {
            continue;
        };
        let Some(life) = history.lives.get_mut(process) else {
            if matches!(line.event, Event::Kill { .. }) {
                history.unborn.insert(process);
            }
            continue;
        };
        let pause = life.pauses.last_mut().filter(|it| it.1 == i64::MAX);
        match line.event {
            Event::Kill { .. } => life.kill = Some(at),
            Event::Dead { .. } => life.dead = Some(at),
            Event::Stop { .. } => life.pauses.push((line.time, i64::MAX)),
            _ => match pause {
                Some(pause) => pause.1 = line.time,
                None => wrong.push(format!("{line}: it was not stopped")),
            },
        }
    }
    wrong.into_iter().for_each(|words| history.malform(words));
}

/// Every process has an end, and writes nothing after it.
pub(super) fn check(history: &History<'_>, found: &mut Vec<Violation>) {
    let mut lives: Vec<_> = history.lives.iter().collect();
    lives.sort_by_key(|it| it.1.begin);
    for (process, life) in lives {
        let last = &history.lines[life.last];
        if life.end.is_none() && !history.was_killed(process) {
            let words = format!("{process} has not ended, and nobody killed it; this was its last");
            found.push(Violation::new(Rule::Unaccounted, words, &[last]));
        }
        let dead = life.dead.map(|dead| &history.lines[dead]);
        if let Some(dead) = dead.filter(|dead| dead.time < last.time) {
            let words = format!("{process} speaks after its death");
            found.push(Violation::new(Rule::Unaccounted, words, &[dead, last]));
        }
    }
}
