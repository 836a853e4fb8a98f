//! What is noted of an operation while it goes on, and counted when it has ended.

use std::sync::Arc;

use super::counts::{Counts, Outcome, Outcomes};
use super::trace::Tracing;
use crate::moment::Moment;

/// What an operation is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    Acquire,
    Extend,
    Confirm,
    Release,
    Adopt,
    Inspect,
    Detach,
    /// It is not counted.
    #[default]
    Other,
}

/// What an operation says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub(crate) kind: Kind,
    /// Since when the lock is held that it releases.
    pub(crate) held_since: Option<Moment>,
    /// What the slices of the wait before have noted, if it goes on with one.
    pub(crate) stretch: Option<Stretch>,
}

/// What is noted of a wait from one slice to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    began: Moment,
    waits_since: Option<Moment>,
    attempts: u32,
}

/// Something in the midst of an operation that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A lock that is kept was extended, or was not.
    Renewed,
    NotRenewed,
    /// A lock cannot be kept.
    Unkept,
}

/// Of one operation.
#[derive(Debug)]
pub(crate) struct Record {
    kind: Kind,
    held_since: Option<Moment>,
    /// Nothing before its first step.
    began: Option<Moment>,
    /// For a lock that has to be waited for.
    waits_since: Option<Moment>,
    attempts: u32,
    /// For traces that name it.
    resource: Option<Arc<[u8]>>,
}

impl Record {
    pub(crate) fn new(account: Account, resource: Option<Arc<[u8]>>) -> Self {
        let Account { kind, held_since, stretch } = account;
        Self {
            kind,
            held_since,
            began: stretch.map(|it| it.began),
            waits_since: stretch.and_then(|it| it.waits_since),
            attempts: stretch.map_or(0, |it| it.attempts),
            resource,
        }
    }

    /// It has begun, at this moment at the latest.
    pub(crate) fn begin(&mut self, now: Moment) {
        self.began.get_or_insert(now);
    }

    /// Servers are asked for a lock.
    pub(crate) fn note_attempt(&mut self, counts: &mut Counts) {
        self.attempts = self.attempts.saturating_add(1);
        counts.attempts += 1;
    }

    /// It waits for something else than servers.
    pub(crate) fn note_wait(&mut self, now: Moment, counts: &mut Counts) {
        if self.kind == Kind::Acquire && self.waits_since.is_none() {
            self.waits_since = Some(now);
            counts.waits += 1;
        }
    }

    /// Whether a lock is waited for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits_since.is_some()
    }

    /// What the next slice is to go on with.
    pub(crate) fn stretch(&self, now: Moment) -> Stretch {
        let Self { began, waits_since, attempts, .. } = *self;
        Stretch { began: began.unwrap_or(now), waits_since, attempts }
    }

    /// It has ended with this. Returns a line for whoever follows what happens, if somebody does.
    pub(crate) fn end(
        &self,
        outcome: Outcome,
        now: Moment,
        tracing: Tracing,
        counts: &mut Counts,
    ) -> Option<String> {
        let took_us = now.us_since(self.began.unwrap_or(now));
        let waited_us = self.waits_since.map(|since| now.us_since(since));
        let held_us = self.held_since.map(|since| now.us_since(since));
        if let Some(outcomes) = outcomes(self.kind, counts) {
            outcomes.count(outcome);
        }
        match (self.kind, outcome) {
            (Kind::Acquire, Outcome::Ok) => counts.acquire_time.observe(took_us),
            (Kind::Release, Outcome::Ok) => {
                held_us.into_iter().for_each(|us| counts.hold_time.observe(us));
            }
            (Kind::Detach, Outcome::Ok) => counts.detached += 1,
            _ => {}
        }
        waited_us.into_iter().for_each(|us| counts.wait_time.observe(us));
        if !tracing.is_on() {
            return None;
        }
        let event = event(self.kind, outcome)?;
        let mut line = tracing.line(event, self.resource.as_deref());
        if outcome != Outcome::Ok {
            line.word("outcome", outcome.name());
        }
        line.time("duration_ms", Some(took_us));
        if self.kind == Kind::Acquire {
            line.number("attempts", u64::from(self.attempts));
            line.time("waited_ms", waited_us);
        }
        if self.kind == Kind::Release {
            line.time("held_ms", held_us);
        }
        Some(line.finish())
    }

    /// Something has happened in its midst. Returns a line as above.
    pub(crate) fn mark(&self, mark: Mark, tracing: Tracing, counts: &mut Counts) -> Option<String> {
        let event = match mark {
            Mark::Renewed => {
                counts.renewed += 1;
                "renewed"
            }
            Mark::NotRenewed => {
                counts.not_renewed += 1;
                "not_renewed"
            }
            Mark::Unkept => {
                counts.kept_lost += 1;
                "kept_lost"
            }
        };
        tracing.is_on().then(|| tracing.line(event, self.resource.as_deref()).finish())
    }
}

fn outcomes(kind: Kind, counts: &mut Counts) -> Option<&mut Outcomes> {
    match kind {
        Kind::Acquire => Some(&mut counts.acquire),
        Kind::Extend => Some(&mut counts.extend),
        Kind::Confirm => Some(&mut counts.confirm),
        Kind::Release => Some(&mut counts.release),
        Kind::Adopt => Some(&mut counts.adopt),
        Kind::Inspect => Some(&mut counts.inspect),
        Kind::Detach | Kind::Other => None,
    }
}

/// What is told of an operation that has ended with this: only what becomes of locks.
fn event(kind: Kind, outcome: Outcome) -> Option<&'static str> {
    let is_lost = outcome == Outcome::Lost;
    match (kind, outcome) {
        (Kind::Acquire, Outcome::Ok) => Some("acquired"),
        (Kind::Acquire, _) => Some("refused"),
        (Kind::Adopt, Outcome::Ok) => Some("adopted"),
        (Kind::Detach, Outcome::Ok) => Some("detached"),
        (Kind::Release, Outcome::Ok) => Some("released"),
        (Kind::Extend, Outcome::Ok) => Some("extended"),
        (Kind::Extend | Kind::Confirm | Kind::Release, _) if is_lost => Some("lost"),
        (Kind::Extend, _) => Some("not_extended"),
        (Kind::Release, _) => Some("not_released"),
        (Kind::Confirm | Kind::Inspect | Kind::Adopt | Kind::Detach | Kind::Other, _) => None,
    }
}

#[cfg(test)]
mod tests;
