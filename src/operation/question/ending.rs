//! When a lock ends that the servers were asked about.
//!
//! It ends when fewer than a quorum of the servers have it. Servers may have it for different times: a server was not
//! reached by the last extension, or its clock was set. What the first servers say then depends on who they are. So the
//! others are heard, too, if what they say can make a difference. Usually it cannot.

use super::{Count, Question, Wanted};
use crate::command::Answer;
use crate::moment::Moment;
use crate::quorum::round::Outcome;
use crate::quorum::validity::{Drift, TTL_MAX_MS};

impl Question {
    /// When a quorum no longer has the lock, by the answers that were heard. If the servers were asked to
    /// extend the lock, `ttl_ms` is its new TTL. Returns two moments: the latest possible one if the clocks are
    /// right, and the one until which a quorum certainly has the lock. The second counts from `asked_at`.
    pub(crate) fn end(&self, drift: Drift, ttl_ms: i64, asked_at: Moment) -> (Moment, Moment) {
        let (servers, quorum) = (self.ballot().servers() as usize, self.ballot().quorum() as usize);
        // An extension takes nothing away: servers that were not heard may have the lock for as long as they should.
        // Whoever asks whether the lock is there wants to be sure: once a quorum was heard, they count as servers that
        // do not have it.
        let unheard = match &self.count {
            Count::Confirm(..) if self.is_held() => 0,
            _ => servers.saturating_sub(self.lefts.len()),
        };
        let Some(place) = (quorum - 1).checked_sub(unheard).filter(|it| *it < self.lefts.len())
        else {
            return (Moment::NEVER, Moment::NEVER);
        };
        // Answers come at different times. Therefore the longest remaining time and the latest end may belong
        // to different servers.
        let mut times: Vec<i64> = self.lefts.iter().map(|&(ms, _)| ms.max(ttl_ms)).collect();
        times.sort_unstable_by(|one, other| other.cmp(one));
        (self.ends(ttl_ms)[place], asked_at.plus_ms(drift.validity_ms(times[place])))
    }

    /// When the lock ends on each server that said so, the latest end first.
    fn ends(&self, ttl_ms: i64) -> Vec<Moment> {
        let end = |&(ms, heard_at): &(i64, Moment)| heard_at.plus_ms(ms.max(ttl_ms));
        let mut ends: Vec<Moment> = self.lefts.iter().map(end).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        ends
    }

    /// Notes for how long a server has the lock.
    pub(super) fn note_left(&mut self, answer: &Answer, now: Moment) {
        if self.view.is_none() {
            return;
        }
        let left_ms = match *answer {
            Answer::Extended { left_ms } => Some(left_ms),
            Answer::Found { left_ms, .. } if self.is_ours(answer) => Some(left_ms),
            Answer::Found { .. } | Answer::Absent | Answer::Lacking { .. } => Some(0),
            ref other => other.is_foreign().then_some(0),
        };
        // A negative time means that the key has no end.
        let left_ms = left_ms.map(|ms| if ms < 0 { TTL_MAX_MS } else { ms });
        self.lefts.extend(left_ms.map(|ms| (ms, now)));
    }

    /// Whether the servers that have not answered cannot change what is known of the end.
    pub(super) fn is_end_known(&self) -> bool {
        match (self.wanted, &self.count) {
            (Wanted::End, Count::Holders(holders)) => holders.is_end_sure(),
            (Wanted::End, Count::Taken(taken)) => taken.is_end_sure(),
            (Wanted::Until(until, ttl_ms), _) => {
                let is_all = self.heard >= self.ballot().servers();
                is_all || !self.is_held() || self.lasts(until, ttl_ms)
            }
            _ => true,
        }
    }

    /// Whether a quorum of the servers has said for how long it has the lock.
    fn is_held(&self) -> bool {
        match self.outcome() {
            Outcome::Reached => true,
            // Not for as long as was asked.
            Outcome::Refused => {
                let is_quorum = self.lefts.len() >= self.ballot().quorum() as usize;
                is_quorum && self.lefts.iter().all(|&(ms, _)| ms > 0)
            }
            Outcome::TooLate | Outcome::Unreachable => false,
        }
    }

    /// Whether a quorum of the servers that were heard has the lock until this moment.
    fn lasts(&self, until: Moment, ttl_ms: i64) -> bool {
        let end = self.ends(ttl_ms).get(self.ballot().quorum() as usize - 1).copied();
        end.is_some_and(|end| end.plus_ms(Drift::PRECISION_MS) >= until)
    }
}
