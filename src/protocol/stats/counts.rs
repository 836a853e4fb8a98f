//! The outcomes of calls.

use super::histogram::Histogram;
use crate::protocol::error::Status;

/// The outcome of a call, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    Taken,
    Unreachable,
    TooSlow,
    Lost,
    TooShort,
    Cancelled,
    /// Any other outcome.
    Failed,
}

impl Outcome {
    pub(crate) const ALL: [Self; 8] = [
        Self::Ok,
        Self::Taken,
        Self::Unreachable,
        Self::TooSlow,
        Self::Lost,
        Self::TooShort,
        Self::Cancelled,
        Self::Failed,
    ];

    /// The name in the text for Prometheus and in traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Taken => "taken",
            Self::Unreachable => "unreachable",
            Self::TooSlow => "too_slow",
            Self::Lost => "lost",
            Self::TooShort => "too_short",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Self {
        match status {
            Status::Taken => Self::Taken,
            Status::Unreachable => Self::Unreachable,
            Status::TooSlow => Self::TooSlow,
            Status::Lost => Self::Lost,
            Status::TooShort => Self::TooShort,
            Status::Cancelled => Self::Cancelled,
            _ => Self::Failed,
        }
    }
}

/// The number of calls for each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes([u64; Outcome::ALL.len()]);

impl Outcomes {
    pub(crate) fn count(&mut self, outcome: Outcome) {
        self.0[outcome as usize] += 1;
    }

    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }
}

/// The counters for the operations of a manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub acquire: Outcomes,
    pub extend: Outcomes,
    pub confirm: Outcomes,
    pub release: Outcomes,
    pub adopt: Outcomes,
    pub inspect: Outcomes,
    /// Locks that were given away.
    pub detached: u64,
    /// How often servers were asked for a lock.
    pub attempts: u64,
    /// Calls that had to wait for a lock, with any outcome.
    pub waits: u64,
    /// Successful extensions of locks that are kept alive.
    pub renewed: u64,
    /// Failed extensions of such locks, which were tried again as long as there was time.
    pub not_renewed: u64,
    /// Locks that could not be kept alive.
    pub kept_lost: u64,
    /// How long it took to take a lock, for locks that were taken.
    pub acquire_time: Histogram,
    /// The waiting time of calls that had to wait, with any outcome.
    pub wait_time: Histogram,
    /// How long released locks were held.
    pub hold_time: Histogram,
}
