//! The fencing token of a granted lock. If the servers drew different numbers, the greatest one is brought to a
//! quorum before the caller is told that it holds the lock.

use std::sync::Arc;

use super::raising::Raising;
use super::{Acquire, Stage};
use crate::command::{Request, Verb};
use crate::error::Status;
use crate::lock_kind::LockKind;
use crate::operation::question::Question;
use crate::operation::{Actions, Limits, Miss, reply_ms};
use crate::quorum::round::Outcome;

impl Acquire {
    /// The verb of the request to the servers. Without fencing tokens, the first request for an exclusive lock
    /// is the one that every Redlock client sends.
    pub(super) fn verb(&self, has_fencing: bool) -> Verb {
        match &self.wanted.target.kind {
            // A fencing token orders clients that change something, one after the other.
            LockKind::Shared | LockKind::Permit { .. } => Verb::Acquire,
            _ if has_fencing => Verb::AcquireFenced,
            LockKind::Exclusive if self.was_refused => Verb::AcquireAgain,
            _ => Verb::Acquire,
        }
    }

    /// Raises the token. The servers that drew it are asked, too, because each says whether it still has the
    /// lock.
    pub(super) fn raise(&mut self, mut raising: Raising, actions: &mut dyn Actions) {
        let Some(hold) = raising.hold().map(Arc::clone) else { return };
        let (target, ttl_ms) = (hold.key(), self.wanted.ttl_ms);
        let request = Request::new(Verb::RaiseFence, target, *hold.token(), ttl_ms)
            .with_fence(hold.fencing_token());
        let (since, until) = (actions.now(), hold.deadline().min(self.cut));
        let reply_ms = reply_ms(actions, ttl_ms);
        raising.raised = Some(Box::new(Question::raise(hold, actions.roster().len())));
        self.stage = Stage::Raising(Box::new(raising));
        actions.ask(request, Limits { since, until, reply_ms });
    }

    pub(super) fn conclude_raising(&mut self, mut raising: Raising, actions: &mut dyn Actions) {
        let (hold, raised) = (raising.hold().map(Arc::clone), raising.raised.take());
        let (Some(hold), Some(raised)) = (hold, raised) else { return };
        let status = match raised.outcome() {
            Outcome::Reached if actions.now() < hold.deadline() => {
                return self.take(hold, &raising.granted, raising.sent, actions);
            }
            Outcome::Reached | Outcome::TooLate => Status::TooSlow,
            // Servers that granted the lock have lost it since.
            Outcome::Refused | Outcome::Unreachable => Status::Unreachable,
        };
        raising.release(actions);
        let miss = Miss::Votes(status, raised);
        self.note(&miss, actions);
        self.miss(miss, actions);
    }
}
