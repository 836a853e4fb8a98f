//! Two clients that want the same lock, and whether both have it.

use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::usage::{PATIENT_MS, TTL, connected, connected_unguarded};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

/// What they want.
pub(crate) const RESOURCE: &str = "r";

/// Somebody who holds the lock, and somebody else who wants it.
pub(crate) struct Rivals {
    pub(crate) holder: Manager,
    pub(crate) held: Lease,
    pub(crate) rival: Manager,
    pub(crate) wanted: Lease,
}

impl Rivals {
    /// The holder has the lock, on every server.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let rivals = Self::among(connected(cluster), connected(cluster));
        cluster.wait_until_everywhere(RESOURCE);
        rivals
    }

    /// The same where servers that forget have their votes at once: then a majority of them breaks the promise.
    pub(crate) fn unguarded(cluster: &Cluster) -> Self {
        let rivals = Self::among(connected_unguarded(cluster), connected_unguarded(cluster));
        cluster.wait_until_everywhere(RESOURCE);
        rivals
    }

    /// The holder has the lock.
    pub(crate) fn among(holder: Manager, rival: Manager) -> Self {
        let held = holder.take(RESOURCE, TTL);
        Self { holder, held, rival, wanted: Lease::new() }
    }

    /// The rival tries once.
    pub(crate) fn try_to_take_over(&self) -> RedLockStatus {
        self.rival.try_lock(RESOURCE, TTL, 0, &self.wanted)
    }

    /// How many of them believe that they have the lock.
    pub(crate) fn holders(&self) -> usize {
        usize::from(self.held.is_held()) + usize::from(self.wanted.is_held())
    }

    /// The holder has it, keeps it, and the rival does not get it.
    #[track_caller]
    pub(crate) fn one_holds(&self) {
        let status = answered(|| self.try_to_take_over());
        assert_eq!(status, REDLOCK_TAKEN, "{}", self.wanted.message());
        assert_eq!(self.holder_confirms(), REDLOCK_OK, "{}", self.held.message());
        assert_eq!(self.holder_extends(), REDLOCK_OK, "{}", self.held.message());
        assert_eq!(self.holders(), 1);
    }

    /// The same until a server that was without the key has it again: it gets it with an extension that knows
    /// by then what it said, and that has no rival's key in its way.
    #[track_caller]
    pub(crate) fn one_holds_until_it_is_back(&self, server: &Server) {
        wait_until("the key is back", || {
            self.one_holds();
            server.get(RESOURCE) == Some(self.held.token())
        });
    }

    /// An assumption of the promise was broken, and so the promise is: the rival gets what the holder
    /// believes to hold. Whoever asks the servers is told.
    #[track_caller]
    pub(crate) fn both_hold(&self) {
        self.the_rival_takes_it();
        assert_eq!(self.holders(), 2, "nothing was broken, so this test shows nothing");
        self.the_holder_is_told();
        assert_eq!(self.holders(), 1);
        assert_eq!(self.rival.confirm(&self.wanted, 1000), REDLOCK_OK, "{}", self.wanted.message());
        assert_eq!(self.rival.unlock(&self.wanted), REDLOCK_OK, "{}", self.wanted.message());
    }

    /// The rival gets it, as soon as it has its connections.
    #[track_caller]
    pub(crate) fn the_rival_takes_it(&self) {
        let status = self.rival.try_lock(RESOURCE, TTL, PATIENT_MS, &self.wanted);
        assert_eq!(status, REDLOCK_OK, "{}", self.wanted.message());
    }

    /// The holder asks, and is told that the lock is lost; extending it then changes nothing.
    #[track_caller]
    pub(crate) fn the_holder_is_told(&self) {
        assert_eq!(self.holder_confirms(), REDLOCK_LOST, "{}", self.held.message());
        assert!(!self.held.is_held());
        assert_eq!(self.holder_extends(), REDLOCK_LOST, "{}", self.held.message());
        assert_eq!((self.held.is_held(), self.held.remaining_ms()), (false, 0));
    }

    /// The holder extends, without having asked, and is told that the lock is lost.
    #[track_caller]
    pub(crate) fn the_holder_is_told_by_extending(&self) {
        assert_eq!(self.holder_extends(), REDLOCK_LOST, "{}", self.held.message());
        assert_eq!((self.held.is_held(), self.held.remaining_ms()), (false, 0));
    }

    /// Nor anything that servers could not be told: each manager tells them itself, while it is used.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self, cluster: &Cluster) {
        wait_until("the key is gone from all servers", || {
            let is_used = |it: &Manager| it.is_locked("another") == Ok(false);
            is_used(&self.holder) && is_used(&self.rival) && cluster.having(RESOURCE) == 0
        });
    }

    fn holder_confirms(&self) -> RedLockStatus {
        answered(|| self.holder.confirm(&self.held, 0))
    }

    fn holder_extends(&self) -> RedLockStatus {
        answered(|| self.holder.extend(&self.held, TTL))
    }
}

/// The servers are up; whether the connections are, a call may have to find out.
#[track_caller]
fn answered(call: impl Fn() -> RedLockStatus) -> RedLockStatus {
    let mut status = REDLOCK_UNREACHABLE;
    wait_until("the servers are reached", || {
        status = call();
        status != REDLOCK_UNREACHABLE
    });
    status
}
