//! The C functions for a lock that is held at several levels.

use super::lease::{RedLockLease, read, shared_lease};
use super::status::RedLockStatus;
use crate::system::cancellation::Uncancelled;

/// Adds a level to a held lock: one more RedLock_Unlock is needed to release it. Use this for code that calls
/// code that takes the same lock. The count belongs to the lease: all code that has the lease holds the lock,
/// at any level and on any thread. No I/O.
///
/// An inner level lasts no longer than the lock. If RedLockLease_RemainingMs is less than the inner level
/// needs, call RedLock_Extend first.
///
/// The other functions treat a lock with several levels as follows:
///  - RedLock_Unlock and RedLock_SubmitUnlock leave the innermost level. Only the last unlock asks servers.
///    The others end with REDLOCK_OK, or with REDLOCK_LOST if the lock is known to be lost or has expired.
///    The level is left in both cases. A lost lock is therefore reported at every level.
///  - RedLock_Extend, RedLock_Confirm and RedLock_KeepAlive apply to the lock, at whatever level they are
///    called. The lock is kept alive until it is released. If RedLock_Extend finds the lock lost, the lease
///    is empty, and each RedLock_Unlock returns REDLOCK_LOST.
///  - RedLock_ContinueLock extends the lock, and the levels stay. Another lease that continues the lock has a
///    count of its own: its RedLock_Unlock releases the lock for all leases.
///  - RedLock_Detach refuses the lock: REDLOCK_INVALID_ARGUMENT.
///  - RedLock_Cancel and RedLockLease_Free do what they do without levels. RedLockLease_Free releases
///    nothing.
///  - A lease that is used for another lock begins with one level.
///  - A child process holds no lock of its parent, at any level: REDLOCK_FORKED.
///
/// @param lease the lock.
/// @return REDLOCK_OK. REDLOCK_LOST: the lock is not held, and no level was added. REDLOCK_INVALID_ARGUMENT:
///         also if there are 2147483647 levels, or a submitted call uses the lease. REDLOCK_FORKED,
///         REDLOCK_INTERNAL. RedLockLease_ErrorMessage(lease) has the message. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Retain(lease: *mut RedLockLease) -> RedLockStatus {
    let _uncancelled = Uncancelled::new();
    let Some(lease) = shared_lease(lease) else {
        return RedLockStatus::REDLOCK_INVALID_ARGUMENT;
    };
    match lease.call(crate::manager::lease::Lease::retain) {
        Ok(()) => RedLockStatus::REDLOCK_OK,
        Err(error) => error.status().into(),
    }
}

/// Returns the number of levels of the lock: how many calls of RedLock_Unlock it takes to release it. No I/O.
///
/// @param lease a lease, or NULL.
/// @return 1 for a lock without RedLock_Retain, also when it has expired. 0 if the lease is empty, for NULL,
///         and in a child process for a lock of its parent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_Levels(lease: *const RedLockLease) -> i32 {
    read(lease, 0, |state| i32::try_from(state.lease.levels()).unwrap_or(i32::MAX))
}
