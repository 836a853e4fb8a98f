//! Which requests wake waiters, and in which form.

use std::sync::Arc;

use super::capabilities::Capabilities;
use super::release_and_wake;
use super::{Request, Verb};
use crate::lock_kind::LockKind;

impl Verb {
    /// What to do if no waiter can be woken.
    pub(super) fn without_waking(self) -> Self {
        match self {
            Self::ReleaseAndWake => Self::Release,
            Self::ReleaseRestAndWake => Self::ReleaseRest,
            other => other,
        }
    }
}

impl Request {
    /// Whether it must wake a waiter.
    pub(crate) fn wakes(&self) -> bool {
        self.verb == Verb::ReleaseAndWake
    }

    /// Whether it wakes in the form in which it is sent to a server with these capabilities.
    pub(crate) fn wakes_in(&self, capabilities: Capabilities) -> bool {
        self.form(capabilities) != self.form(capabilities.without_waking())
    }

    /// The question to send behind it whether it must wake a waiter, if that is no part of it.
    pub(crate) fn look_for_waiters(&self, capabilities: Capabilities) -> Option<Vec<u8>> {
        let is_one = self.subject.kind == LockKind::Exclusive;
        let looks = is_one && self.wakes() && release_and_wake::looks_for_waiters(capabilities);
        looks.then(|| release_and_wake::look_for_waiters(self.resource()))
    }

    /// The request that wakes a waiter if that turned out to be necessary only after the release.
    pub(crate) fn wake_late(&self) -> Self {
        // With the name of a channel that nobody uses.
        let resource = Arc::clone(&self.subject.resource);
        Self::new(Verb::Leave, resource, *self.token(), self.ttl_ms())
    }
}
