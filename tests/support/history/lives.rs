//! Who lived when: beginnings, ends, violent ends, and times of standing still.

use super::line::Event;
use super::read::History;
use super::verdict::{Rule, Violation};

/// A process, by the numbers of the lines that tell of it.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) begin: usize,
    /// The line that names a parent, if it has one.
    pub(crate) parent: Option<usize>,
    pub(crate) end: Option<usize>,
    pub(crate) last: usize,
    pub(crate) kill: Option<usize>,
    pub(crate) dead: Option<usize>,
    /// From when to when it was stopped, at the most.
    pub(crate) pauses: Vec<(i64, i64)>,
}

impl Life {
    pub(crate) fn new(begin: usize) -> Self {
        Self { begin, parent: None, end: None, last: begin, kill: None, dead: None, pauses: vec![] }
    }

    /// How much of a span it may have stood still.
    pub(crate) fn paused(&self, from: i64, to: i64) -> i64 {
        self.pauses.iter().map(|(stop, cont)| (to.min(*cont) - from.max(*stop)).max(0)).sum()
    }
}

/// Puts what was done to processes into their lives.
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

/// Everybody has an end, and nobody speaks after it.
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
