//! The counters that only the lock protects: every acknowledged write is one step, and none is lost.

use std::collections::{BTreeMap, BTreeSet};

use super::line::Event;
use super::read::History;
use super::verdict::{Rule, Violation};

#[derive(Default)]
struct Counter {
    /// By value, the lines of its writers.
    wrote: BTreeMap<u64, Vec<usize>>,
    /// Values that a process was about to write when it was killed: they may or may not have been written.
    maybe: BTreeSet<u64>,
    last: Option<(u64, usize)>,
}

pub(super) fn check(history: &History<'_>, found: &mut Vec<Violation>) {
    let mut counters: BTreeMap<&str, Counter> = BTreeMap::new();
    for (at, line) in history.lines.iter().enumerate() {
        match line.event {
            Event::Wrote(it) => {
                let counter = counters.entry(it.resource).or_default();
                counter.wrote.entry(it.value).or_default().push(at);
            }
            Event::Writing(it) if history.partner(at).is_none() => {
                counters.entry(it.resource).or_default().maybe.insert(it.value);
            }
            Event::Counter { resource, value } => {
                counters.entry(resource).or_default().last = Some((value, at));
            }
            _ => {}
        }
    }
    for (resource, counter) in &counters {
        counter.check(history, resource, found);
    }
}

impl Counter {
    fn check(&self, history: &History<'_>, resource: &str, found: &mut Vec<Violation>) {
        for (value, lines) in self.wrote.iter().filter(|it| it.1.len() > 1) {
            let words = format!("{} wrote {value} to {resource}: one is lost", lines.len());
            let proof: Vec<_> = lines.iter().map(|&at| &history.lines[at]).collect();
            found.push(Violation::new(Rule::LostUpdate, words, &proof));
        }
        let Some((last, at)) = self.last else {
            let words = format!("nobody tells what the counter of {resource} was at the end");
            found.push(Violation::new(Rule::Malformed, words, &[]));
            return;
        };
        let line = &history.lines[at];
        if let Some((value, lines)) = self.wrote.range(last.saturating_add(1)..).next_back() {
            let words = format!("{value} was written to {resource}, but at the end it is {last}");
            let proof = [&history.lines[lines[0]], line];
            found.push(Violation::new(Rule::LostUpdate, words, &proof));
        }
        let known = |value: &u64| self.wrote.contains_key(value) || self.maybe.contains(value);
        // To find a missing value, it is enough to check as many values as can have been written.
        let most = (self.wrote.len() + self.maybe.len()) as u64;
        if let Some(value) = (1..=last.min(most + 1)).find(|value| !known(value)) {
            let words = format!("the counter of {resource} is {last}, but nobody wrote {value}");
            found.push(Violation::new(Rule::Unexplained, words, &[line]));
        }
    }
}
