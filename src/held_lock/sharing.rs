//! A lock that becomes a shared one. From then on, others may hold it, too.

use std::sync::atomic::Ordering;

use super::{HeldLock, View};
use crate::lock_kind::{LockKind, Target};

impl HeldLock {
    /// What the lock has on the servers. A permit of a semaphore has a slot, which is an ordinary lock. The
    /// lock may also have become a shared one.
    pub(crate) fn key(&self) -> Target {
        let mut key = self.permit.get().map_or(&self.target, |permit| &permit.key).clone();
        if self.is_shared() {
            key.kind = LockKind::Shared;
        }
        key
    }

    /// Whether others may hold the lock at the same time, or may soon.
    pub(crate) fn is_shared(&self) -> bool {
        self.target.kind == LockKind::Shared || self.downgraded_in.load(Ordering::Acquire) != 0
    }

    /// Whether that round asked for the exclusive lock that this was before. If so, the readers that a server
    /// has may be this holder itself.
    pub(super) fn was_exclusive_in(&self, number: u32) -> bool {
        number < self.downgraded_in.load(Ordering::Acquire)
    }
}

impl View {
    /// Makes this a shared lock from now on, whatever its servers answer to the request of this round, because
    /// they may carry out the request at any time.
    pub(crate) fn begin_downgrade(&self) -> u32 {
        let number = self.begin_round();
        let first = &self.hold.downgraded_in;
        let _ = first.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
        number
    }
}
