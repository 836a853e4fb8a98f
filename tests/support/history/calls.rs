//! Calls: they end in time, with an allowed status. After the last fault each lock can be acquired again.

use std::collections::BTreeMap;

use super::Limits;
use super::line::{Call, Event, Op, Return};
use super::read::History;
use super::verdict::{Rule, Violation, ms};

pub(super) fn check(history: &History<'_>, limits: &Limits, found: &mut Vec<Violation>) {
    for (at, line) in history.lines.iter().enumerate() {
        match line.event {
            Event::Call(call) => check_time(history, limits, at, call, found),
            Event::Return(it) => check_status(history, at, it, found),
            _ => {}
        }
    }
    check_recovery(history, found);
}

/// A stopped process cannot end its calls. For a killed process, the time until its death counts.
fn check_time(
    history: &History<'_>,
    limits: &Limits,
    at: usize,
    call: Call<'_>,
    found: &mut Vec<Violation>,
) {
    let line = &history.lines[at];
    let Some(life) = history.life(line.process) else { return };
    let over = history.partner(at).map(|end| &history.lines[end]);
    let kill = life.kill.map(|kill| &history.lines[kill]);
    let Some(end) = over.or(kill) else { return };
    let took = end.time - line.time - life.paused(line.time, end.time);
    let limit = (call.bound_ms + limits.late_ms).saturating_mul(1_000_000);
    if took > limit {
        let words = format!("a call of at most {} ms has taken {}", call.bound_ms, ms(took));
        found.push(Violation::new(Rule::LateCall, words, &[line, end]));
    }
}

fn check_status(history: &History<'_>, at: usize, it: Return<'_>, found: &mut Vec<Violation>) {
    let line = &history.lines[at];
    let call = history.call_of(at);
    let is_wrong = match it.status {
        "INVALID_ARGUMENT" | "NO_SERVERS" | "INTERNAL" => true,
        "TAKEN" | "TOO_SLOW" => !it.op.acquires(),
        "LOST" => matches!(it.op, Op::Lock | Op::TryLock | Op::Share),
        _ => false,
    };
    if is_wrong {
        let words = format!("{} is no answer to this", it.status);
        let proof: Vec<_> = call.into_iter().chain([line]).collect();
        found.push(Violation::new(Rule::Status, words, &proof));
    }
}

fn check_recovery(history: &History<'_>, found: &mut Vec<Violation>) {
    let Some(healed) = history.lines.iter().find(|it| matches!(it.event, Event::Healed)) else {
        return;
    };
    // By each resource that was requested after that: whether the lock was acquired.
    let mut had: BTreeMap<&str, bool> = BTreeMap::new();
    for (at, line) in history.lines.iter().enumerate() {
        if let Event::Return(it) = line.event
            && it.op.acquires()
            && history.call_of(at).is_some_and(|call| call.time >= healed.time)
        {
            *had.entry(it.resource).or_default() |= it.status == "OK";
        }
    }
    for (resource, _) in had.iter().filter(|it| !it.1) {
        let words = format!("{resource} was not had again after the last fault");
        found.push(Violation::new(Rule::NotRecovered, words, &[healed]));
    }
}
