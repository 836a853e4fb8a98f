//! A lock that becomes a shared one: from then on others may have it, too.

use std::sync::atomic::Ordering;

use super::{HeldLock, View};
use crate::lock_kind::{LockKind, Target};

impl HeldLock {
    /// What it has on the servers: of a semaphore a slot, which is an ordinary lock; and it may have become a shared one.
    pub(crate) fn key(&self) -> Target {
        let mut key = self.permit.get().map_or(&self.target, |permit| &permit.key).clone();
        if self.is_shared() {
            key.kind = LockKind::Shared;
        }
        key
    }

    /// Whether others may have it at the same time, or may soon.
    pub(crate) fn is_shared(&self) -> bool {
        self.target.kind == LockKind::Shared || self.downgraded_in.load(Ordering::Acquire) != 0
    }

    /// Whether that round asked for the exclusive lock that it was before: then the readers that a server has may be we.
    pub(super) fn was_exclusive_in(&self, number: u32) -> bool {
        number < self.downgraded_in.load(Ordering::Acquire)
    }
}

impl View {
    /// It is a shared lock from now on, whatever its servers say to the request of this round: it may be carried out there
    /// at any time.
    pub(crate) fn begin_downgrade(&self) -> u32 {
        let number = self.begin_round();
        let first = &self.hold.downgraded_in;
        let _ = first.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
        number
    }
}
