//! A question about our place in line for a resource.

use super::count_rule::{CountRule, Heard};
use crate::protocol::command::Answer;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::ballot::{Ballot, Vote};
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::wait_queue::QueueRank;

/// What the servers say of their lines.
pub(super) struct Places {
    asked_at: Moment,
    /// Yes: the resource is free. No: we stand in line.
    ballot: Ballot,
    heard: Vec<(usize, QueueRank)>,
}

impl Places {
    pub(super) fn new(asked_at: Moment, servers: usize) -> Self {
        Self { asked_at, ballot: Ballot::new(servers), heard: Vec::new() }
    }

    pub(super) fn asked_at(&self) -> Moment {
        self.asked_at
    }

    pub(super) fn heard(&self) -> &[(usize, QueueRank)] {
        &self.heard
    }
}

impl CountRule for Places {
    fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    /// A quorum of answers is enough. Slow servers are not waited for.
    fn outcome(&self) -> Option<Outcome> {
        let is_enough = self.ballot.yes() + self.ballot.no() >= self.ballot.quorum();
        (is_enough || self.ballot.pending() == 0).then_some(Outcome::Reached)
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        let (vote, place) = match *heard.answer {
            Answer::Free => (Vote::Yes, Some(QueueRank::Free)),
            Answer::Enrolled { rank, .. }
            | Answer::EnrolledForPermit { rank, .. }
            | Answer::EnrolledBehindReaders { rank, .. }
            | Answer::EnrolledBehindWriter { rank, .. } => {
                (Vote::No, Some(QueueRank::Behind(rank)))
            }
            Answer::EnrolledForOne { rank, .. } => (Vote::No, rank.map(QueueRank::Behind)),
            _ => (Vote::Unusable, None),
        };
        self.ballot.cast(heard.server, vote);
        self.heard.extend(place.map(|place| (heard.server, place)));
        vote
    }

    fn counts_on(&self) -> bool {
        true
    }

    /// The answer that an attempt would get: why the lock cannot be taken.
    fn reason(&self, answer: Answer) -> Answer {
        // PTTL returns this value if the key has gone at this very moment.
        let left = |left_ms| (left_ms != -2).then_some(left_ms);
        match answer {
            Answer::Enrolled { left_ms, .. } => Answer::Foreign { left_ms: left(left_ms) },
            Answer::EnrolledBehindReaders { left_ms, .. } => {
                Answer::Shared { readers: 0, left_ms: left(left_ms) }
            }
            Answer::EnrolledBehindWriter { left_ms, .. } => Answer::WriterWaits { left_ms },
            other => other,
        }
    }

    fn past_tense(&self) -> String {
        "report it free".to_owned()
    }
}
