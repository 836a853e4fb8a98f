//! The fencing token of a lock that was granted: where the servers drew different numbers, the greatest is brought to
//! a quorum before anybody is told that the lock is had.

use std::sync::Arc;

use super::{Acquire, Stage, release};
use crate::command::{Request, Verb};
use crate::error::Status;
use crate::held_lock::HeldLock;
use crate::operation::question::Question;
use crate::operation::{Actions, Limits, Miss, reply_ms};
use crate::quorum::round::Outcome;
use crate::server_set::ServerSet;

/// A lock that was granted, while its token is raised.
pub(super) struct Raising {
    granted: Box<Question>,
    /// The servers that were sent the request for the lock.
    sent: ServerSet,
    /// Whether the token stands on a quorum, once that is asked.
    raised: Option<Box<Question>>,
}

impl Raising {
    pub(super) fn new(granted: Box<Question>, sent: ServerSet) -> Self {
        Self { granted, sent, raised: None }
    }

    pub(super) fn question(&mut self) -> Option<&mut Question> {
        self.raised.as_deref_mut()
    }

    /// The lock is not to be had.
    pub(super) fn release(&self, actions: &mut dyn Actions) {
        release(&self.granted, self.sent, actions);
    }

    fn hold(&self) -> Option<&Arc<HeldLock>> {
        self.granted.attempted()
    }
}

impl Acquire {
    /// Has the token raised. The servers that drew it are asked as well: each says whether it has the lock still.
    pub(super) fn raise(&mut self, mut raising: Raising, actions: &mut dyn Actions) {
        let Some(hold) = raising.hold().map(Arc::clone) else { return };
        let (resource, ttl_ms) = (Arc::clone(hold.resource()), self.wanted.ttl_ms);
        let request = Request::new(Verb::RaiseFence, resource, *hold.token(), ttl_ms)
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
            // Servers that granted it have lost it since.
            Outcome::Refused | Outcome::Unreachable => Status::Unreachable,
        };
        raising.release(actions);
        let miss = Miss::Votes(status, raised);
        self.note(&miss, actions);
        self.miss(miss, actions);
    }
}
