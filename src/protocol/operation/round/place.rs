//! A question about our place in line for a resource.

use crate::protocol::command::Answer;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::ballot::{Ballot, Vote};
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

    pub(super) fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    pub(super) fn heard(&self) -> &[(usize, QueueRank)] {
        &self.heard
    }

    /// A quorum of answers is enough. Slow servers are not waited for.
    pub(super) fn is_enough(&self) -> bool {
        self.ballot.yes() + self.ballot.no() >= self.ballot.quorum() || self.ballot.pending() == 0
    }

    /// Hears an answer. Returns the same answer in the form that an attempt would get: why the lock cannot be
    /// taken.
    pub(super) fn hear(&mut self, server: usize, answer: Answer) -> Option<Answer> {
        let (vote, place, reason) = match answer {
            Answer::Free => (Vote::Yes, Some(QueueRank::Free), None),
            Answer::Enrolled { left_ms, rank } => {
                // PTTL returns this value if the key has gone at this very moment.
                let left_ms = (left_ms != -2).then_some(left_ms);
                (Vote::No, Some(QueueRank::Behind(rank)), Some(Answer::Foreign { left_ms }))
            }
            Answer::EnrolledForPermit { rank, .. } => {
                (Vote::No, Some(QueueRank::Behind(rank)), Some(answer))
            }
            Answer::EnrolledForOne { rank, .. } => {
                (Vote::No, rank.map(QueueRank::Behind), Some(answer))
            }
            Answer::EnrolledBehindReaders { left_ms, rank } => {
                let left_ms = (left_ms != -2).then_some(left_ms);
                let reason = Answer::Shared { readers: 0, left_ms };
                (Vote::No, Some(QueueRank::Behind(rank)), Some(reason))
            }
            Answer::EnrolledBehindWriter { left_ms, rank } => {
                (Vote::No, Some(QueueRank::Behind(rank)), Some(Answer::WriterWaits { left_ms }))
            }
            other => (Vote::Unusable, None, Some(other)),
        };
        self.ballot.cast(server, vote);
        self.heard.extend(place.map(|place| (server, place)));
        reason
    }
}
