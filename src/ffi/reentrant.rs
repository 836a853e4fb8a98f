//! The C functions of a lock that is held at several levels.

use super::lease::{RedLockLease, read, shared_lease};
use super::status::RedLockStatus;
use crate::system::cancellation::Uncancelled;

/// Adds a level to a lock that is held: one more RedLock_Unlock is needed until it is released. For code that calls
/// code that takes the same lock. The count is the lease's: whoever has the lease holds the lock, at whatever level and
/// on whatever thread. No I/O.
///
/// An inner level lasts no longer than the lock: where RedLockLease_RemainingMs is less than it needs, call
/// RedLock_Extend first.
///
/// What the other functions do with a lock that has several levels:
///  - RedLock_Unlock and RedLock_SubmitUnlock leave the innermost level. Only the last of them asks servers. The others
///    answer REDLOCK_OK, or REDLOCK_LOST if the lock is known to be lost or its time is over; the level is left all the
///    same. So a lock that is lost is told at every level.
///  - RedLock_Extend, RedLock_Confirm and RedLock_KeepAlive are about the lock, whichever level they are called at. It is kept
///    until it is released. If RedLock_Extend finds it lost, the lease is empty, and each RedLock_Unlock answers REDLOCK_LOST.
///  - RedLock_ContinueLock extends it, and the levels stay. Another lease that continues the lock has a count of its
///    own: its RedLock_Unlock releases the lock for all.
///  - RedLock_Detach refuses it: REDLOCK_INVALID_ARGUMENT.
///  - RedLock_Cancel, and RedLockLease_Free, which releases nothing, do what they do without levels.
///  - A lease that is used for another lock begins with one level.
///  - A child process holds nothing of its parent's, at no level: REDLOCK_FORKED.
///
/// @param lease the lock.
/// @return REDLOCK_OK. REDLOCK_LOST: it is not held, and has no level more. REDLOCK_INVALID_ARGUMENT: also if there are
///         2147483647 levels, or a submitted call uses the lease. REDLOCK_FORKED, REDLOCK_INTERNAL.
///         RedLockLease_ErrorMessage(lease) has the words. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Retain(lease: *mut RedLockLease) -> RedLockStatus {
    let _uncancelled = Uncancelled::new();
    let Some(lease) = shared_lease(lease) else {
        return RedLockStatus::REDLOCK_INVALID_ARGUMENT;
    };
    match lease.call(crate::lease::Lease::retain) {
        Ok(()) => RedLockStatus::REDLOCK_OK,
        Err(error) => error.status().into(),
    }
}

/// At how many levels the lock is held: how many calls of RedLock_Unlock it takes to release it. No I/O.
///
/// @param lease a lease, or NULL.
/// @return 1 for a lock without RedLock_Retain, also when it has expired. 0 if the lease is empty, for NULL, and in a
///         child process for a lock of its parent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_Levels(lease: *const RedLockLease) -> i32 {
    read(lease, 0, |state| i32::try_from(state.lease.levels()).unwrap_or(i32::MAX))
}
