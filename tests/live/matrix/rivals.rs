//! Two clients that want the same lock, and whether both hold it.

use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::usage::{PATIENT_MS, TTL, connected, connected_unguarded};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

/// The resource that they want.
pub(crate) const RESOURCE: &str = "r";

/// A client that holds the lock, and another client that wants it.
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

    /// The same, but servers that forget have their votes at once. Then a forgetful majority breaks the
    /// promise.
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

    /// How many of them believe that they hold the lock.
    pub(crate) fn holders(&self) -> usize {
        usize::from(self.held.is_held()) + usize::from(self.wanted.is_held())
    }

    /// The holder holds the lock and extends it, and the rival does not get it.
    #[track_caller]
    pub(crate) fn one_holds(&self) {
        let status = answered(|| self.try_to_take_over());
        assert_eq!(status, REDLOCK_TAKEN, "{}", self.wanted.message());
        assert_eq!(self.holder_confirms(), REDLOCK_OK, "{}", self.held.message());
        assert_eq!(self.holder_extends(), REDLOCK_OK, "{}", self.held.message());
        assert_eq!(self.holders(), 1);
    }

    /// The same until a server that lacked the key has it again. The server gets the key with an extension that
    /// already knows the server's answer, and that finds no rival's key there.
    #[track_caller]
    pub(crate) fn one_holds_until_it_is_back(&self, server: &Server) {
        wait_until("the key is back", || {
            self.one_holds();
            server.get(RESOURCE) == Some(self.held.token())
        });
    }

    /// An assumption of the promise was broken, and so the promise is broken: the rival gets the lock that the
    /// holder believes it holds. A client that asks the servers is told.
    #[track_caller]
    pub(crate) fn both_hold(&self) {
        self.the_rival_takes_it();
        assert_eq!(self.holders(), 2, "nothing was broken, so this test shows nothing");
        self.the_holder_is_told();
        assert_eq!(self.holders(), 1);
        assert_eq!(self.rival.confirm(&self.wanted, 1000), REDLOCK_OK, "{}", self.wanted.message());
        assert_eq!(self.rival.unlock(&self.wanted), REDLOCK_OK, "{}", self.wanted.message());
    }

    /// The rival gets the lock, as soon as it has its connections.
    #[track_caller]
    pub(crate) fn the_rival_takes_it(&self) {
        let status = self.rival.try_lock(RESOURCE, TTL, PATIENT_MS, &self.wanted);
        assert_eq!(status, REDLOCK_OK, "{}", self.wanted.message());
    }

    /// The holder confirms, and is told that the lock is lost. Extending it then changes nothing.
    #[track_caller]
    pub(crate) fn the_holder_is_told(&self) {
        assert_eq!(self.holder_confirms(), REDLOCK_LOST, "{}", self.held.message());
        assert!(!self.held.is_held());
        assert_eq!(self.holder_extends(), REDLOCK_LOST, "{}", self.held.message());
        assert_eq!((self.held.is_held(), self.held.remaining_ms()), (false, 0));
    }

    /// The holder extends without a confirmation first, and is told that the lock is lost.
    #[track_caller]
    pub(crate) fn the_holder_is_told_by_extending(&self) {
        assert_eq!(self.holder_extends(), REDLOCK_LOST, "{}", self.held.message());
        assert_eq!((self.held.is_held(), self.held.remaining_ms()), (false, 0));
    }

    /// Nothing is left, not even a release that could not be sent before. Each manager sends its own releases
    /// while it is used.
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

/// The servers are up. A call may have to find out whether the connections are.
#[track_caller]
fn answered(call: impl Fn() -> RedLockStatus) -> RedLockStatus {
    let mut status = REDLOCK_UNREACHABLE;
    wait_until("the servers are reached", || {
        status = call();
        status != REDLOCK_UNREACHABLE
    });
    status
}
