//! The C functions about locks that several may have at the same time.

use std::ffi::c_void;

use super::acquire::{REDLOCK_EXCLUSIVE, REDLOCK_SHARED};
use super::call::lease_call;
use super::handle::RedLock;
use super::lease::{RedLockLease, read};
use super::status::RedLockStatus;
use super::submit::submit;
use crate::error::Status;

/// Makes a shared lock of an exclusive one: its holder goes on as a reader, and others that want it shared are let
/// in. Nobody can have it alone in between. The lock keeps its token, its fencing token and its end. Of a lock that is shared
/// already nothing is changed.
///
/// There is no way back: two readers that wait for each other to leave would wait for ever. To have it alone again,
/// unlock it and take it anew.
///
/// @param rl    a manager with the servers that the lock was taken on.
/// @param lease the lock.
/// @return REDLOCK_OK: a quorum has it as a shared one. REDLOCK_LOST: as for RedLock_Extend; the lease is empty now.
///         REDLOCK_UNREACHABLE: too few servers answered; it is held still, until its old end. If any server was asked, it
///         counts as shared from then on, and RedLockLease_Mode says so: others may be let in at any time. Calling again is
///         allowed, and an extension does it, too. REDLOCK_CANCELLED: the same.
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Downgrade(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::Lost, |manager, lease| manager.downgrade(lease))
}

/// Begins to make a shared lock of an exclusive one, as RedLock_Downgrade does. See RedLock_SubmitAcquire.
///
/// @param rl        as for RedLock_Downgrade.
/// @param lease     the lock.
/// @param user_data comes with the event.
/// @return as for RedLock_SubmitExtend. The status of the event is one of RedLock_Downgrade.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SubmitDowngrade(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    user_data: *mut c_void,
) -> RedLockStatus {
    submit(rl, lease, user_data, false, |handle, own, tag| {
        handle.manager.submit_downgrade(own, tag)
    })
}

/// How a lease holds its lock, or held it if it has ended. No I/O.
///
/// @param lease a lease, or NULL.
/// @return REDLOCK_SHARED: others may have it at the same time. REDLOCK_EXCLUSIVE: nobody else; or the lease is empty, or
///         NULL. Other values may follow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_Mode(lease: *const RedLockLease) -> i32 {
    let is_shared = read(lease, false, |state| state.lease.is_shared());
    if is_shared { REDLOCK_SHARED } else { REDLOCK_EXCLUSIVE }
}
