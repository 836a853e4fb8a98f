//! What each kind of question must say about how its answers are counted.

use crate::protocol::command::Answer;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::ballot::{Ballot, Vote};
use crate::protocol::quorum::tally::Outcome;

/// An answer, and what it is worth.
pub(super) struct Heard<'a> {
    pub(super) server: usize,
    pub(super) answer: &'a Answer,
    /// The vote that it is where a vote needs nothing else.
    pub(super) plain: Vote,
    /// Whether the word of this server that it has the lock is a vote.
    pub(super) is_vote: bool,
    pub(super) now: Moment,
}

/// How the answers to one kind of question are counted.
pub(super) trait CountRule {
    /// Which servers have answered, and what.
    fn ballot(&self) -> &Ballot;

    /// How the question ended, if enough was heard.
    fn outcome(&self) -> Option<Outcome>;

    /// Counts an answer. Returns the vote. What is no yes is a reason if the question fails.
    fn hear(&mut self, heard: &Heard<'_>) -> Vote;

    /// Notes an answer that came after the outcome was known.
    fn hear_late(&mut self, _: &Heard<'_>) {}

    /// Whether answers count also when the outcome is known.
    fn counts_on(&self) -> bool {
        false
    }

    /// The answer as a reason.
    fn reason(&self, answer: Answer) -> Answer {
        answer
    }

    /// Whether the servers that have not answered cannot change when the lock ends that was found.
    fn is_end_sure(&self) -> bool {
        true
    }

    /// How many servers did what was asked, and what that is in words.
    fn votes(&self) -> usize {
        self.ballot().yes() as usize
    }

    fn past_tense(&self) -> String;

    /// The words about a server, if its answer does not say them.
    fn said_of(&self, _: usize) -> Option<String> {
        None
    }
}
