//! A lock that goes from one holder to another. A holder that gives a lock away sends nothing about it any
//! more.

use std::sync::atomic::Ordering;

use super::{HeldLock, Phase};
use crate::moment::Moment;
use crate::server_set::ServerSet;

impl HeldLock {
    /// The holder gives the lock away. From now on, nothing is sent that could release the lock, or set it
    /// anywhere again. Returns false, and changes nothing, if the lock was already released or lost.
    pub(crate) fn detach(&self) -> bool {
        // Repairs begin while this mutex is held, so none begins after this.
        let _standings = self.standings();
        let (taken, detached) = (Phase::Taken as u8, Phase::Detached as u8);
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.phase.compare_exchange(taken, detached, success, failure).is_ok()
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.phase.load(Ordering::Acquire) == Phase::Detached as u8
    }

    /// Adopts the lock. `all` are the servers that may have it, and `having` those that said that they have it.
    /// A quorum has it until `valid_until`.
    pub(crate) fn adopt(&self, having: ServerSet, all: ServerSet, valid_until: Moment) {
        self.standings().take(having.bits(), all.bits());
        self.servers.store(all.bits(), Ordering::Release);
        self.note_ttl(valid_until.ms_since(self.asked.at));
        self.extend_to(valid_until, self.asked.ttl_ms);
    }
}
