//! Leases.

use redlock::ffi::acquire::REDLOCK_SHARED;
use redlock::ffi::fencing::RedLockLease_FencingToken;
use redlock::ffi::lease::{
    RedLockLease, RedLockLease_ErrorMessage, RedLockLease_Free, RedLockLease_IsHeld,
    RedLockLease_New, RedLockLease_RemainingMs, RedLockLease_Resource, RedLockLease_SetDoneEvents,
    RedLockLease_Token, RedLockLease_ValidityMs,
};
use redlock::ffi::reentrant::{RedLock_Retain, RedLockLease_Levels};
use redlock::ffi::resources::{RedLockLease_ResourceAt, RedLockLease_ResourceCount};
use redlock::ffi::shared_lock::RedLockLease_Mode;
use redlock::ffi::status::RedLockStatus;

use super::{discreet, owned};

/// A `RedLockLease`, freed with its owner.
pub(crate) struct Lease {
    pub(super) raw: *mut RedLockLease,
}

// SAFETY: the header allows a lease to move between threads.
unsafe impl Send for Lease {}

// SAFETY: according to the header, the second of two calls at the same time waits. The strings are copied
// at once, but a call of another thread may change them meanwhile. Tests that share a lease while it
// changes do not use the strings.
unsafe impl Sync for Lease {}

impl Lease {
    /// An empty lease.
    pub(crate) fn new() -> Self {
        let raw = RedLockLease_New();
        assert!(!raw.is_null());
        Self { raw }
    }

    /// An empty lease whose submitted calls have no events of their ends.
    pub(crate) fn without_done_events() -> Self {
        let lease = Self::new();
        assert_eq!(lease.set_done_events(false), RedLockStatus::REDLOCK_OK);
        lease
    }

    pub(crate) fn set_done_events(&self, enabled: bool) -> RedLockStatus {
        // SAFETY: the lease is alive.
        unsafe { RedLockLease_SetDoneEvents(self.raw, enabled) }
    }

    pub(crate) fn raw(&self) -> *mut RedLockLease {
        self.raw
    }

    pub(crate) fn is_held(&self) -> bool {
        // SAFETY: the lease is alive.
        unsafe { RedLockLease_IsHeld(self.raw) }
    }

    pub(crate) fn retain(&self) -> RedLockStatus {
        // SAFETY: the lease is alive.
        unsafe { RedLock_Retain(self.raw) }
    }

    pub(crate) fn levels(&self) -> i32 {
        // SAFETY: the lease is alive.
        unsafe { RedLockLease_Levels(self.raw) }
    }

    pub(crate) fn remaining_ms(&self) -> i64 {
        // SAFETY: the lease is alive.
        unsafe { RedLockLease_RemainingMs(self.raw) }
    }

    pub(crate) fn validity_ms(&self) -> i64 {
        // SAFETY: the lease is alive.
        unsafe { RedLockLease_ValidityMs(self.raw) }
    }

    /// 0 if it has none.
    pub(crate) fn fencing_token(&self) -> i64 {
        // SAFETY: the lease is alive.
        unsafe { RedLockLease_FencingToken(self.raw) }
    }

    pub(crate) fn is_shared(&self) -> bool {
        // SAFETY: the lease is alive.
        unsafe { RedLockLease_Mode(self.raw) == REDLOCK_SHARED }
    }

    pub(crate) fn resource(&self) -> String {
        // SAFETY: the lease is alive; the string is read at once.
        unsafe { owned(RedLockLease_Resource(self.raw)) }
    }

    /// All of them, in order.
    pub(crate) fn resources(&self) -> Vec<String> {
        // SAFETY: the lease is alive.
        let count = unsafe { RedLockLease_ResourceCount(self.raw) };
        // SAFETY: as above; each string is read at once.
        let resource = |index| unsafe { owned(RedLockLease_ResourceAt(self.raw, index)) };
        (0..count).map(resource).collect()
    }

    /// Empty if it holds no lock.
    pub(crate) fn token(&self) -> String {
        // SAFETY: the lease is alive; the string is read at once.
        unsafe { owned(RedLockLease_Token(self.raw)) }
    }

    pub(crate) fn message(&self) -> String {
        // SAFETY: the lease is alive; the string is read at once.
        discreet(unsafe { owned(RedLockLease_ErrorMessage(self.raw)) })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: it was made by RedLockLease_New, and is freed once.
        unsafe { RedLockLease_Free(self.raw) }
    }
}
