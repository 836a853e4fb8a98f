//! How many readers does a resource have? As many as a quorum of servers has at least.

use super::ballot::{Ballot, Vote};
use super::tally::Outcome;

/// How many readers each server has.
#[derive(Clone, Debug)]
pub struct Readers {
    ballot: Ballot,
    counts: Vec<i64>,
}

impl Readers {
    /// A count in which no server has answered yet.
    pub fn new(servers: usize) -> Self {
        Self { ballot: Ballot::new(servers), counts: Vec::new() }
    }

    /// Counts a server that has this many readers. Returns whether the count is decided.
    pub fn handle_count(&mut self, server: usize, count: i64) -> bool {
        self.ballot.cast(server, Vote::Yes);
        let place = self.counts.partition_point(|&other| other >= count);
        self.counts.insert(place, count);
        self.outcome().is_some()
    }

    /// Counts a server that gave no usable answer. Returns whether the count is decided.
    pub fn handle_silence(&mut self, server: usize) -> bool {
        self.ballot.cast(server, Vote::Unusable);
        self.outcome().is_some()
    }

    /// Whether a quorum has answered, if the servers that have not answered would change nothing.
    pub fn outcome(&self) -> Option<Outcome> {
        let quorum = self.ballot.quorum() as usize;
        if self.ballot.unusable() > self.ballot.tolerance() {
            return Some(Outcome::Unreachable);
        }
        let has_quorum = self.counts.len() >= quorum;
        let is_sure = self.counts.first() == self.counts.get(quorum - 1);
        (has_quorum && (is_sure || self.ballot.pending() == 0)).then_some(Outcome::Reached)
    }

    /// How many readers a quorum has.
    pub fn count(&self) -> i64 {
        self.counts.get(self.ballot.quorum() as usize - 1).copied().unwrap_or(0)
    }

    /// Which servers have answered.
    pub fn ballot(&self) -> &Ballot {
        &self.ballot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count after these servers have answered. A number below 0 stands for a server that did not answer.
    fn count(servers: usize, counts: &[i64]) -> (Option<Outcome>, i64) {
        let mut readers = Readers::new(servers);
        for (server, &count) in counts.iter().enumerate() {
            let is_decided = match count {
                0.. => readers.handle_count(server, count),
                _ => readers.handle_silence(server),
            };
            assert_eq!(is_decided, readers.outcome().is_some());
        }
        (readers.outcome(), readers.count())
    }

    #[test]
    fn readers_are_counted_with_a_quorum() {
        let reached = Some(Outcome::Reached);
        assert_eq!(count(3, &[3]).0, None);
        assert_eq!(count(3, &[3, 3]), (reached, 3));
        // A server that lost its memory is waited for no longer than a server that is down.
        assert_eq!(count(3, &[3, 0]).0, None);
        assert_eq!(count(3, &[3, 0, 3]), (reached, 3));
        assert_eq!(count(3, &[3, 0, -1]), (reached, 0));
        assert_eq!(count(5, &[1, 4, 3, 2, 5]), (reached, 3));
        assert_eq!(count(3, &[-1, 3, -1]).0, Some(Outcome::Unreachable));
        assert_eq!(count(1, &[7]), (reached, 7));
    }
}
