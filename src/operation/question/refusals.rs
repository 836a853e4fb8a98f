//! What is known after the servers refused a lock.

use std::time::Duration;

use super::{Count, Question};
use crate::command::Answer;
use crate::moment::Moment;
use crate::quorum::backoff::{Claim, Refusal};
use crate::quorum::validity::Drift;
use crate::server_set::ServerSet;

impl Question {
    /// Which of these servers may have the key of a lock that this question was to take. A server that says
    /// that the key belongs to another client has set nothing. No other answer makes that certain.
    pub(crate) fn may_have_it(&self, sent: ServerSet) -> ServerSet {
        let is_foreign = |reason: &&(usize, Answer)| reason.1.is_foreign();
        let foreign = self.reasons.iter().filter(is_foreign);
        sent.minus(foreign.map(|&(server, _)| server).collect())
    }

    /// Whether no later try can reach a quorum, because too many servers refuse for a reason that lasts.
    pub(crate) fn is_hopeless(&self) -> bool {
        let lasts = |reason: &&(usize, Answer)| matches!(&reason.1, Answer::Failed(failure) if failure.is_lasting());
        let lasting: ServerSet = self.reasons.iter().filter(lasts).map(|reason| reason.0).collect();
        lasting.len() > self.ballot().tolerance() as usize
    }

    /// Whether readers are in the way.
    pub(crate) fn has_readers(&self) -> bool {
        self.reasons.iter().any(|reason| matches!(reason.1, Answer::Shared { .. }))
    }

    /// Whether only clients of this library can be in the way as servers say, and those tell waiters when they
    /// are gone: readers, a writer that waits for readers, or holders of permits.
    fn will_be_told(&self) -> bool {
        self.reasons.iter().any(|(_, answer)| {
            matches!(
                answer,
                Answer::Shared { .. }
                    | Answer::WriterWaits { .. }
                    | Answer::EnrolledForPermit { .. }
                    | Answer::EnrolledForOne { is_shared: true, .. }
            )
        })
    }

    /// What is known after the servers refused.
    pub(crate) fn refusal(&self, drift: Drift, now: Moment) -> Refusal {
        let asked_at = match &self.count {
            Count::Line(places) => places.asked_at(),
            _ => self.attempt.as_ref().map_or(now, |hold| hold.asked_at()),
        };
        let round_trip = Duration::from_nanos((now - asked_at).max(0).unsigned_abs());
        let claim = |&(server, ref answer): &(usize, Answer)| {
            let left_ms = answer.in_the_way_ms()?;
            if left_ms < 0 {
                return Some(Claim { server, expiry: Moment::NEVER, earliest: Moment::NEVER });
            }
            let earliest = asked_at.plus_ms(left_ms - drift.share_ms(left_ms));
            Some(Claim { server, expiry: asked_at.plus_ms(left_ms), earliest })
        };
        let claims: Vec<Claim> = self.reasons.iter().filter_map(claim).collect();
        // How many more servers refuse than may. A server that has not answered may be free. A server that
        // cannot be used is not.
        let (ballot, refusing) = (self.ballot(), self.reasons.len());
        let to_expire = refusing.saturating_sub(ballot.tolerance() as usize);
        let is_complete = claims.len() == refusing;
        let will_be_told = self.will_be_told();
        Refusal { round_trip, claims, to_expire, is_complete, will_be_told }
    }
}
