//! The C functions for locks that several callers can hold at the same time.

use std::ffi::c_void;

use super::acquire::{REDLOCK_EXCLUSIVE, REDLOCK_SHARED};
use super::call::run;
use super::handle::RedLock;
use super::lease::{RedLockLease, read};
use super::status::RedLockStatus;
use super::submit::submit;
use crate::manager::call::Call;

/// Makes an exclusive lock shared. Its holder continues as a reader, and other readers can take the lock. No
/// writer can hold the lock in between. The lock keeps its token, its fencing token and its expiry. A lock
/// that is already shared does not change.
///
/// A shared lock cannot be made exclusive, because two readers that wait for each other to leave would wait
/// forever. To hold the lock exclusively again, unlock it and take it again.
///
/// @param rl    a manager with the servers that the lock was taken on.
/// @param lease the lock.
/// @return REDLOCK_OK: a quorum holds the lock as shared. REDLOCK_LOST: as for RedLock_Extend; the lease is
///         now empty. REDLOCK_UNREACHABLE: too few servers answered. The lock is still held until its old
///         expiry. If any server was asked, the lock counts as shared from then on, and RedLockLease_Mode
///         says so, because readers may be let in at any time. The caller may call this function again, and
///         an extension also makes the lock shared. REDLOCK_CANCELLED: the same. REDLOCK_INVALID_ARGUMENT,
///         REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Downgrade(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    run(rl, lease, Ok(Call::Downgrade))
}

/// Begins to make an exclusive lock shared, as RedLock_Downgrade does. See RedLock_SubmitAcquire.
///
/// @param rl        as for RedLock_Downgrade.
/// @param lease     the lock.
/// @param user_data comes with the event.
/// @return as for RedLock_SubmitExtend. The status of the event is one that RedLock_Downgrade can return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SubmitDowngrade(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    user_data: *mut c_void,
) -> RedLockStatus {
    submit(rl, lease, user_data, Ok(Call::Downgrade))
}

/// Returns how a lease holds its lock, or held it if the lock has ended. No I/O.
///
/// @param lease a lease, or NULL.
/// @return REDLOCK_SHARED: others can hold the lock at the same time. REDLOCK_EXCLUSIVE: nobody else can, or
///         the lease is empty or NULL. More values may be added later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_Mode(lease: *const RedLockLease) -> i32 {
    let is_shared = read(lease, false, |state| state.lease.is_shared());
    if is_shared { REDLOCK_SHARED } else { REDLOCK_EXCLUSIVE }
}
