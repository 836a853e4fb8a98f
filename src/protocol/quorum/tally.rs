//! One round over all servers: what each vote means, and when the round is decided.

use super::ballot::{Ballot, Vote};
use crate::protocol::moment::Moment;

/// What a round is for. Each goal has its own rule for when there is nothing more to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// To take a lock that is valid until then. Yes: granted. No: another client has it.
    Acquire { valid_until: Moment },
    /// To bring the fencing token of a lock to a quorum, valid until then. Yes: the server has the token. No:
    /// the server has lost the lock.
    Raise { valid_until: Moment },
    /// To extend, or to confirm, a lock that is valid until then. Yes: the server has our lock. No: the lock is
    /// gone there, or it is another client's.
    Extend { valid_until: Moment },
    /// To release a lock. Yes: the server had our lock, and has deleted it. No: the server did not have our
    /// lock.
    Release,
    /// To have connections. Yes: the server is connected.
    Connect,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A quorum said yes, in time.
    Reached,
    /// A quorum said yes, but after the end of the validity.
    TooLate,
    /// Too many servers said no.
    Refused,
    /// Too many servers gave no usable answer.
    Unreachable,
}

/// One round.
#[derive(Clone, Debug)]
pub struct Tally {
    goal: Goal,
    ballot: Ballot,
    outcome: Option<Outcome>,
}

impl Tally {
    /// A round in which no server has answered yet.
    pub fn new(goal: Goal, servers: usize) -> Self {
        Self { goal, ballot: Ballot::new(servers), outcome: None }
    }

    /// Counts a vote that was heard at `now`. Returns whether the round is decided. Once it is decided, votes do not
    /// change the outcome.
    ///
    /// Every server must be heard of in the end. A server that stays silent votes [`Vote::Unusable`]. Then the
    /// round is always decided.
    pub fn handle_vote(&mut self, server: usize, vote: Vote, now: Moment) -> bool {
        self.ballot.cast(server, vote);
        if self.outcome.is_none() {
            self.outcome = self.decide(now);
        }
        self.outcome.is_some()
    }

    /// How the round ended, if it has.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// What the round is for.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// The votes so far.
    pub fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    fn decide(&self, now: Moment) -> Option<Outcome> {
        if self.ballot.yes() >= self.ballot.quorum() {
            return Some(self.reached(now));
        }
        if self.ballot.is_unopposed() {
            // The servers that have not voted yet can make it a quorum.
            return None;
        }
        match self.goal {
            Goal::Acquire { .. } | Goal::Raise { .. } => self.out_of_reach(),
            Goal::Extend { .. } => self.lost_or_unheard(),
            Goal::Release => self.released_or_untold(),
            Goal::Connect => self.out_of_reach(),
        }
    }

    fn reached(&self, now: Moment) -> Outcome {
        match self.goal {
            Goal::Acquire { valid_until }
            | Goal::Raise { valid_until }
            | Goal::Extend { valid_until }
                if now >= valid_until =>
            {
                Outcome::TooLate
            }
            _ => Outcome::Reached,
        }
    }

    /// A quorum is out of reach when the servers that said yes and those that still may are too few. A tie is a
    /// failure, never a wait. The round is refused if too many servers said no, and unreachable if too many
    /// gave no usable answer. If only both together are too many, the answers that are still to come decide
    /// which of the two it is. If none are to come, the round is refused.
    fn out_of_reach(&self) -> Option<Outcome> {
        let (no, unusable) = (self.ballot.no(), self.ballot.unusable());
        let (pending, tolerance) = (self.ballot.pending(), self.ballot.tolerance());
        let is_out_of_reach = self.ballot.yes() + pending < self.ballot.quorum();
        if unusable > tolerance {
            Some(Outcome::Unreachable)
        } else if no > tolerance || (is_out_of_reach && unusable + pending <= tolerance) {
            Some(Outcome::Refused)
        } else {
            None
        }
    }

    /// A lock is lost when so many servers said no that no quorum can have it. If silent servers may still have
    /// the lock, it is not lost. Therefore servers that may still say no are waited for.
    fn lost_or_unheard(&self) -> Option<Outcome> {
        let (no, pending) = (self.ballot.no(), self.ballot.pending());
        if no > self.ballot.tolerance() {
            Some(Outcome::Refused)
        } else if self.ballot.yes() + pending < self.ballot.quorum()
            && no + pending <= self.ballot.tolerance()
        {
            Some(Outcome::Unreachable)
        } else {
            None
        }
    }

    /// A release is done when a quorum was told, even if some of these servers had nothing to delete, because
    /// the other servers cannot keep anybody out. The release came too late only if so many servers had nothing
    /// to delete that no quorum can have had the lock.
    fn released_or_untold(&self) -> Option<Outcome> {
        if self.ballot.no() > self.ballot.tolerance() {
            Some(Outcome::Refused)
        } else if self.ballot.unusable() > self.ballot.tolerance() {
            Some(Outcome::Unreachable)
        } else if self.ballot.pending() == 0 {
            Some(Outcome::Reached)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Vote::{No, Unusable, Yes};
    use super::*;

    const END: Moment = Moment::from_nanos(1_000);
    const BEFORE: Moment = Moment::from_nanos(999);
    const TAKE: Goal = Goal::Acquire { valid_until: END };
    const KEEP: Goal = Goal::Extend { valid_until: END };

    /// The outcome after these votes, and the number of votes after which it was clear.
    fn play(goal: Goal, servers: usize, votes: &[Vote], now: Moment) -> Option<(Outcome, usize)> {
        let mut round = Tally::new(goal, servers);
        let heard = votes.iter().enumerate().position(|(i, &it)| round.handle_vote(i, it, now))?;
        Some((round.outcome()?, heard + 1))
    }

    #[test]
    fn a_quorum_of_votes_takes_the_lock() {
        assert_eq!(play(TAKE, 1, &[Yes], BEFORE), Some((Outcome::Reached, 1)));
        assert_eq!(play(TAKE, 2, &[Yes], BEFORE), None);
        assert_eq!(
            play(TAKE, 5, &[No, Yes, Unusable, Yes, Yes], BEFORE),
            Some((Outcome::Reached, 5))
        );
        assert_eq!(play(TAKE, 4, &[Yes, Yes], BEFORE), None);
    }

    #[test]
    fn a_quorum_after_the_validity_is_too_late() {
        assert_eq!(play(TAKE, 3, &[Yes, Yes], END), Some((Outcome::TooLate, 2)));
        assert_eq!(play(KEEP, 3, &[Yes, Yes], END), Some((Outcome::TooLate, 2)));
    }

    #[test]
    fn a_tie_is_a_definite_failure() {
        assert_eq!(play(TAKE, 2, &[Yes, No], BEFORE), Some((Outcome::Refused, 2)));
        assert_eq!(play(TAKE, 4, &[Yes, No, Yes, No], BEFORE), Some((Outcome::Refused, 4)));
        // The server that has not answered yet can only make it a tie.
        assert_eq!(play(TAKE, 4, &[No, Yes, No], BEFORE), Some((Outcome::Refused, 3)));
    }

    #[test]
    fn a_refusal_differs_from_unreachable_servers() {
        assert_eq!(play(TAKE, 5, &[No, No, No], BEFORE), Some((Outcome::Refused, 3)));
        assert_eq!(play(TAKE, 5, &[No, No, Unusable], BEFORE), None);
        assert_eq!(play(TAKE, 5, &[No, No, Unusable, No], BEFORE), Some((Outcome::Refused, 4)));
        assert_eq!(play(TAKE, 5, &[Unusable; 3], BEFORE), Some((Outcome::Unreachable, 3)));
        let mixed = [Yes, Yes, Unusable, Unusable, Unusable];
        assert_eq!(play(TAKE, 5, &mixed, BEFORE), Some((Outcome::Unreachable, 5)));
    }

    /// The outcome is the same whichever answer comes first.
    #[test]
    fn the_order_of_answers_does_not_change_the_outcome() {
        let orders = [[No, Unusable, Unusable], [Unusable, No, Unusable], [Unusable, Unusable, No]];
        for order in orders {
            let (outcome, _) = play(TAKE, 3, &order, BEFORE).expect("all have answered");
            assert_eq!(outcome, Outcome::Unreachable, "{order:?}");
        }
        for order in [[No, No, Unusable], [No, Unusable, No], [Unusable, No, No]] {
            let (outcome, _) = play(TAKE, 3, &order, BEFORE).expect("all have answered");
            assert_eq!(outcome, Outcome::Refused, "{order:?}");
        }
    }

    #[test]
    fn a_lock_is_lost_only_if_no_quorum_can_have_it() {
        assert_eq!(play(KEEP, 3, &[No, No], BEFORE), Some((Outcome::Refused, 2)));
        // Two say yes, one says no, and the silent ones may still have the lock.
        let silent = [Yes, Yes, No, Unusable, Unusable];
        assert_eq!(play(KEEP, 5, &silent, BEFORE), Some((Outcome::Unreachable, 5)));
        // The third server may still make it a loss, so it is waited for.
        assert_eq!(play(KEEP, 3, &[No, Unusable], BEFORE), None);
        assert_eq!(play(KEEP, 3, &[No, Unusable, No], BEFORE), Some((Outcome::Refused, 3)));
        assert_eq!(play(KEEP, 3, &[Unusable, Unusable], BEFORE), Some((Outcome::Unreachable, 2)));
    }

    #[test]
    fn a_release_is_done_with_a_quorum_of_answers() {
        assert_eq!(play(Goal::Release, 3, &[Yes, Yes], END), Some((Outcome::Reached, 2)));
        assert_eq!(play(Goal::Release, 3, &[No, No], END), Some((Outcome::Refused, 2)));
        assert_eq!(play(Goal::Release, 3, &[Yes, No], END), None);
        assert_eq!(play(Goal::Release, 3, &[Yes, No, Unusable], END), Some((Outcome::Reached, 3)));
        assert_eq!(
            play(Goal::Release, 3, &[Unusable, Yes, Unusable], END),
            Some((Outcome::Unreachable, 3))
        );
    }

    #[test]
    fn a_decided_round_stays_decided() {
        let mut round = Tally::new(TAKE, 3);
        assert!(!round.handle_vote(0, Yes, BEFORE));
        assert!(round.handle_vote(1, Yes, BEFORE));
        assert!(round.handle_vote(2, No, END));
        assert_eq!(round.outcome(), Some(Outcome::Reached));
    }

    /// A round in which every server was heard of is decided, whatever the answers are and in whatever order
    /// they come. It is won exactly if a quorum had said yes by then.
    #[test]
    fn every_round_ends() {
        for goal in [TAKE, Goal::Raise { valid_until: END }, KEEP, Goal::Release, Goal::Connect] {
            for servers in 1..=5 {
                for code in 0..3_usize.pow(servers) {
                    let votes: Vec<Vote> = (0..servers)
                        .map(|i| [Yes, No, Unusable][code / 3_usize.pow(i) % 3])
                        .collect();
                    let (outcome, heard) = play(goal, votes.len(), &votes, BEFORE)
                        .unwrap_or_else(|| panic!("{goal:?} is not decided by {votes:?}"));
                    let yes = votes[..heard].iter().filter(|&&it| it == Yes).count();
                    if goal != Goal::Release {
                        assert_eq!(outcome == Outcome::Reached, yes > votes.len() / 2);
                    }
                }
            }
        }
    }
}
