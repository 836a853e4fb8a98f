//! A lock that goes from one holder to another: who gives it away sends nothing of it any more.

use std::sync::atomic::Ordering;

use super::{HeldLock, Phase};
use crate::moment::Moment;
use crate::server_set::ServerSet;

impl HeldLock {
    /// Its holder gives it away. From now on nothing is sent that could release it, or set it anywhere again. Returns
    /// false, and changes nothing, if it was released or lost before.
    pub(crate) fn detach(&self) -> bool {
        // Repairs begin with this mutex held: none begins after it.
        let _standings = self.standings();
        let (taken, detached) = (Phase::Taken as u8, Phase::Detached as u8);
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.phase.compare_exchange(taken, detached, success, failure).is_ok()
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.phase.load(Ordering::Acquire) == Phase::Detached as u8
    }

    /// It is adopted: these servers have said that they have it, of all that may have it, and a quorum has it until then.
    pub(crate) fn adopt(&self, having: ServerSet, all: ServerSet, valid_until: Moment) {
        self.standings().take(having.bits(), all.bits());
        self.servers.store(all.bits(), Ordering::Release);
        self.note_ttl(valid_until.ms_since(self.asked.at));
        self.extend_to(valid_until, self.asked.ttl_ms);
    }
}
