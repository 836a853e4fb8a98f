//! The record of an operation. It is written while the operation runs, and counted when the operation has
//! ended.

use std::sync::Arc;

use super::counts::{Counts, Outcome, Outcomes};
use super::trace::Tracing;
use crate::protocol::moment::Moment;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    Acquire,
    Extend,
    Confirm,
    Release,
    Adopt,
    Inspect,
    Detach,
    /// An operation that is not counted.
    #[default]
    Other,
}

/// What an operation reports about itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub(crate) kind: Kind,
    /// For a release: since when the lock has been held.
    pub(crate) held_since: Option<Moment>,
}

/// An event that is counted while an operation still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A lock that is kept alive was extended.
    Renewed,
    /// A lock that is kept alive could not be extended.
    NotRenewed,
    /// A lock cannot be kept alive.
    Unkept,
}

/// The record of one operation.
#[derive(Debug)]
pub(crate) struct Record {
    kind: Kind,
    held_since: Option<Moment>,
    /// None before the first step of the operation.
    began: Option<Moment>,
    /// Set if the operation has to wait for a lock.
    waits_since: Option<Moment>,
    attempts: u32,
    /// For traces that name the resource.
    resource: Option<Arc<[u8]>>,
}

impl Record {
    pub(crate) fn new(account: Account, resource: Option<Arc<[u8]>>) -> Self {
        let Account { kind, held_since } = account;
        Self { kind, held_since, began: None, waits_since: None, attempts: 0, resource }
    }

    /// The operation began at this moment at the latest.
    pub(crate) fn begin(&mut self, now: Moment) {
        self.began.get_or_insert(now);
    }

    /// The servers are asked for a lock.
    pub(crate) fn note_attempt(&mut self, counts: &mut Counts) {
        self.attempts = self.attempts.saturating_add(1);
        counts.attempts += 1;
    }

    /// The operation waits for something other than servers.
    pub(crate) fn note_wait(&mut self, now: Moment, counts: &mut Counts) {
        if self.kind == Kind::Acquire && self.waits_since.is_none() {
            self.waits_since = Some(now);
            counts.waits += 1;
        }
    }

    /// Whether the operation waits for a lock.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits_since.is_some()
    }

    /// The operation has ended with this outcome. Returns a line for the log, if tracing is on.
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

    /// Counts an event while the operation still runs. Returns a line as [`Self::end`] does.
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

/// The event to log for an operation that ended with this outcome. Only the events of locks are logged.
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
