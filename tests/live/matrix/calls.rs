//! Calls that are cancelled on their way. Each is a blocking call or a submitted call.

use std::thread;

use redlock::ffi::status::RedLockStatus::{self, REDLOCK_CANCELLED, REDLOCK_OK};

use crate::rig::Rig;
use crate::support::events::Wanted;
use crate::support::usage::TTL;
use crate::support::{Lease, Manager, wait_until};

pub(crate) const KEY: &str = "r";
/// The user data of the events of submitted calls.
pub(crate) const TAG: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Acquire,
    Extend,
    Confirm,
    Unlock,
}

/// How a call is made: a thread waits for it, or it is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Blocking,
    Submitted,
}

pub(crate) const VERBS: [Verb; 4] = [Verb::Acquire, Verb::Extend, Verb::Confirm, Verb::Unlock];
pub(crate) const MANNERS: [Manner; 2] = [Manner::Blocking, Manner::Submitted];

impl Verb {
    /// A lease for the call. If the call needs a lock, this manager has taken it.
    #[track_caller]
    pub(crate) fn lease(self, holder: &Manager) -> Lease {
        match self {
            Self::Acquire => Lease::new(),
            _ => holder.take(KEY, TTL),
        }
    }

    fn run(self, manager: &Manager, lease: &Lease) -> RedLockStatus {
        match self {
            Self::Acquire => manager.acquire(&Wanted::new(KEY, TTL), lease),
            Self::Extend => manager.extend(lease, 2 * TTL),
            Self::Confirm => manager.confirm(lease, 0),
            Self::Unlock => manager.unlock(lease),
        }
    }

    #[track_caller]
    pub(crate) fn submit(self, manager: &Manager, lease: &Lease, tag: usize) {
        let status = match self {
            Self::Acquire => manager.submit_acquire(&Wanted::new(KEY, TTL), lease, tag),
            Self::Extend => manager.submit_extend(lease, 2 * TTL, tag),
            Self::Confirm => manager.submit_confirm(lease, 0, tag),
            Self::Unlock => manager.submit_unlock(lease, tag),
        };
        assert_eq!(status, REDLOCK_OK, "{self:?}: {}", lease.message());
    }

    /// Makes the call. Cancels it once when `is_there` returns true, or when the call has ended by itself.
    /// Returns its status.
    #[track_caller]
    pub(crate) fn cancelled_once(
        self,
        manner: Manner,
        manager: &Manager,
        lease: &Lease,
        is_there: impl FnMut() -> bool,
    ) -> RedLockStatus {
        let (run, submit) = (|| self.run(manager, lease), || self.submit(manager, lease, TAG));
        cancelled_once(manner, (manager, lease), (run, submit), is_there)
    }

    /// The lease has the state that it must have after a cancelled call.
    #[track_caller]
    pub(crate) fn check_lease(self, lease: &Lease) {
        assert!(lease.message().contains("cancelled"), "{self:?}: {}", lease.message());
        let is_held = matches!(self, Self::Extend | Self::Confirm);
        assert_eq!(lease.is_held(), is_held, "{self:?}");
        // A release that was cancelled may be repeated, and needs its token for that.
        assert_eq!(lease.token().is_empty(), self == Self::Acquire, "{self:?}");
    }

    /// All is well after a cancelled call, once nothing is held back any more: a lock that was held is held,
    /// and nothing else is. Other clients lock at once.
    #[track_caller]
    pub(crate) fn check_servers(self, manager: &Manager, lease: &Lease, rig: &Rig) {
        let is_connected = || manager.is_locked("another") == Ok(false);
        wait_until("the manager has its servers again", is_connected);
        // A server that is connected last gets its release then, if a thread drives.
        let is_gone = || is_connected() && rig.servers.having(KEY) == 0;
        if matches!(self, Self::Extend | Self::Confirm) {
            assert_eq!(manager.confirm(lease, 0), REDLOCK_OK, "{self:?}: {}", lease.message());
        } else {
            wait_until("what was cancelled is undone, or done", is_gone);
        }
        if self != Self::Acquire {
            assert_eq!(manager.unlock(lease), REDLOCK_OK, "{self:?}: {}", lease.message());
        }
        wait_until("the key is gone from all servers", is_gone);
        let rival = rig.servers.manager();
        let lease = rival.take(KEY, TTL);
        assert_eq!(rival.unlock(&lease), REDLOCK_OK, "{self:?}: {}", lease.message());
        rig.servers.wait_until_gone(KEY);
        assert_eq!(manager.next_event(0), None, "one event for one call");
    }
}

/// The same for any call on this lease, in the given manner. A submitted call has [`TAG`].
#[track_caller]
pub(crate) fn cancelled_once(
    manner: Manner,
    (manager, lease): (&Manager, &Lease),
    (run, submit): (impl FnOnce() -> RedLockStatus + Send, impl FnOnce()),
    mut is_there: impl FnMut() -> bool,
) -> RedLockStatus {
    match manner {
        Manner::Blocking => thread::scope(|scope| {
            let call = scope.spawn(run);
            wait_until("the call is there", || is_there() || call.is_finished());
            assert_eq!(manager.cancel(lease), REDLOCK_OK);
            call.join().expect("no panic")
        }),
        Manner::Submitted => {
            submit();
            let mut event = None;
            wait_until("the call is there", || {
                event = event.or_else(|| manager.next_event(0));
                event.is_some() || is_there()
            });
            assert_eq!(manager.cancel(lease), REDLOCK_OK);
            let event = event.unwrap_or_else(|| manager.event());
            assert_eq!((event.is_lost, event.user_data), (false, TAG));
            assert_eq!(event.lease, lease.raw().addr());
            assert_eq!(manager.next_event(0), None, "one event for one call");
            event.status
        }
    }
}

/// Whether the call was cancelled. Otherwise it had ended before and has done its work.
#[track_caller]
pub(crate) fn is_cancelled(verb: Verb, status: RedLockStatus, lease: &Lease) -> bool {
    if status == REDLOCK_CANCELLED {
        verb.check_lease(lease);
        return true;
    }
    assert_eq!(status, REDLOCK_OK, "{verb:?}: {}", lease.message());
    assert_eq!(lease.is_held(), verb != Verb::Unlock, "{verb:?}");
    false
}
