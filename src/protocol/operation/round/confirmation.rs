//! A question whether a lock is there for at least a given time.

use crate::protocol::command::Answer;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::ballot::Vote;
use crate::protocol::quorum::validity::Drift;
use crate::protocol::token::Token;

/// What a confirmation asks for.
pub(crate) struct Confirmation {
    pub(crate) token: Token,
    pub(crate) drift: Drift,
    pub(crate) asked_at: Moment,
    pub(crate) least_ms: i64,
    /// For how many milliseconds, counted from the question, each server that voted yes certainly has the lock.
    pub(super) left_ms: Vec<i64>,
}

impl Confirmation {
    pub(crate) fn new(token: Token, drift: Drift, asked_at: Moment, least_ms: i64) -> Self {
        Self { token, drift, asked_at, least_ms, left_ms: Vec::new() }
    }

    pub(super) fn vote(&mut self, answer: &Answer, otherwise: Vote, now: Moment) -> Vote {
        match self.left_ms(answer) {
            Some(left_ms) if left_ms.saturating_sub(self.elapsed_ms(now)) >= self.least_ms => {
                self.left_ms.push(left_ms);
                Vote::Yes
            }
            _ => otherwise,
        }
    }

    /// For how many milliseconds, counted from the question, a server certainly has the lock. None if it does
    /// not have it.
    pub(super) fn left_ms(&self, answer: &Answer) -> Option<i64> {
        match answer {
            Answer::Found { value, left_ms: -1 } if value == self.token.as_bytes() => {
                Some(i64::MAX)
            }
            Answer::Found { value, left_ms } if value == self.token.as_bytes() => {
                Some(self.drift.validity_ms(*left_ms))
            }
            _ => None,
        }
    }

    /// Rounded up, so that the remaining time is never overstated.
    pub(super) fn elapsed_ms(&self, now: Moment) -> i64 {
        now.ms_since(self.asked_at) + 1
    }
}
