//! What attempts leave behind: a granted lock whose fencing token is not on a quorum yet, and the release of a
//! lock that was not taken.

use std::sync::Arc;

use crate::protocol::command::Request;
use crate::protocol::lock::Lock;
use crate::protocol::operation::round::Round;
use crate::protocol::operation::{Actions, waking_release};
use crate::protocol::server_set::ServerSet;

/// A lock that was granted, while its token is raised.
pub(super) struct Raising {
    pub(super) granted: Box<Round>,
    /// The servers that were sent the request for the lock.
    pub(super) sent: ServerSet,
    /// Whether a quorum has the token, once that is asked.
    pub(super) raised: Option<Box<Round>>,
}

impl Raising {
    pub(super) fn new(granted: Box<Round>, sent: ServerSet) -> Self {
        Self { granted, sent, raised: None }
    }

    pub(super) fn round(&mut self) -> Option<&mut Round> {
        self.raised.as_deref_mut()
    }

    /// Releases the lock, because it cannot be taken.
    pub(super) fn release(&self, actions: &mut dyn Actions) {
        release(&self.granted, self.sent, actions);
    }

    pub(super) fn held_lock(&self) -> Option<&Arc<Lock>> {
        self.granted.attempted()
    }
}

/// Releases what servers may have of a lock that was not taken.
pub(super) fn release(round: &Round, sent: ServerSet, actions: &mut dyn Actions) {
    if let Some(lock) = round.attempted() {
        let (target, ttl_ms) = (lock.target().clone(), lock.longest_ttl_ms());
        // The grants of some servers may have kept out other waiting clients.
        let verb = waking_release(actions);
        let release = Request::new(verb, target, *lock.token(), ttl_ms);
        actions.tell(release.to(round.may_have_it(sent)));
    }
}
