//! Which requests wake who waits, and in which form.

use std::sync::Arc;

use super::capabilities::Capabilities;
use super::release_and_wake;
use super::{Request, Verb};
use crate::lock_kind::LockKind;

impl Verb {
    /// What is done where nobody can be woken.
    pub(super) fn without_waking(self) -> Self {
        match self {
            Self::ReleaseAndWake => Self::Release,
            Self::ReleaseRestAndWake => Self::ReleaseRest,
            other => other,
        }
    }
}

impl Request {
    /// Whether it is to wake somebody.
    pub(crate) fn wakes(&self) -> bool {
        self.verb == Verb::ReleaseAndWake
    }

    /// Whether it does so in the form that it is sent in to a server with these capabilities.
    pub(crate) fn wakes_in(&self, capabilities: Capabilities) -> bool {
        self.form(capabilities) != self.form(capabilities.without_waking())
    }

    /// What is sent behind it to find out whether it has to wake somebody, if that is not a part of it.
    pub(crate) fn look_for_waiters(&self, capabilities: Capabilities) -> Option<Vec<u8>> {
        let is_one = self.subject.kind == LockKind::Exclusive;
        let looks = is_one && self.wakes() && release_and_wake::looks_for_waiters(capabilities);
        looks.then(|| release_and_wake::look_for_waiters(self.resource()))
    }

    /// What wakes somebody, where that was found out only after the release.
    pub(crate) fn wake_late(&self) -> Self {
        // Under the name of a channel that nobody has.
        let resource = Arc::clone(&self.subject.resource);
        Self::new(Verb::Leave, resource, *self.token(), self.ttl_ms())
    }
}
