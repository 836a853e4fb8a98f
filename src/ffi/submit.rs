//! The C functions that begin a call without waiting for it, and the one that keeps a lock alive.

use std::ffi::{c_char, c_void};

use super::acquire::{RedLockAcquireOptions, call};
use super::arguments::text;
use super::call::lease_call;
use super::event::Tag;
use super::guard::catch;
use super::handle::{RedLock, shared};
use super::lease::{RedLockLease, held_lease};
use super::status::RedLockStatus;
use crate::manager::call::Call;
use crate::protocol::error::Error;
use crate::system::cancellation::Uncancelled;

/// Begins to take a lock as the options say. This function does not wait. The call is sent, and continues,
/// whenever a thread drives the library, as in RedLock_NextEvent. RedLock_Descriptor tells when that is due.
///
/// The lease belongs to the call until its event is taken. Until then, other calls on the lease are refused,
/// except RedLock_Cancel and calls that only read the lease. Freeing the lease cancels the call.
///
/// Any number of calls may be under way at once. At most 512 of them ask the servers at the same time. The
/// others wait their turn, and the time of their locks does not begin before that.
///
/// @param rl        the manager.
/// @param options   the options; read during the call only.
/// @param lease     as for RedLock_Lock.
/// @param user_data comes with the event.
/// @return REDLOCK_OK: exactly one event with REDLOCK_EVENT_DONE follows, whose status is one that
///         RedLock_Acquire can return. After any other status, no event follows. REDLOCK_INVALID_ARGUMENT,
///         REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SubmitAcquire(
    rl: *mut RedLock,
    options: *const RedLockAcquireOptions,
    lease: *mut RedLockLease,
    user_data: *mut c_void,
) -> RedLockStatus {
    submit(rl, lease, user_data, call(options, lease, user_data))
}

/// Begins to give a held lock a new TTL, as RedLock_Extend does. See RedLock_SubmitAcquire.
///
/// @param rl        as for RedLock_Extend.
/// @param lease     the lock.
/// @param ttl_ms    as for RedLock_Extend, counted from the moment when the request is sent.
/// @param user_data comes with the event.
/// @return as for RedLock_SubmitAcquire, and REDLOCK_LOST: the lease holds no lock. The status of the event
///         is one that RedLock_Extend can return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SubmitExtend(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    ttl_ms: i64,
    user_data: *mut c_void,
) -> RedLockStatus {
    submit(rl, lease, user_data, Ok(Call::Extend { ttl_ms }))
}

/// Begins to release a lock, as RedLock_Unlock does. See RedLock_SubmitAcquire.
///
/// @param rl        as for RedLock_Unlock.
/// @param lease     the lock.
/// @param user_data comes with the event.
/// @return as for RedLock_SubmitExtend. The status of the event is one that RedLock_Unlock can return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SubmitUnlock(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    user_data: *mut c_void,
) -> RedLockStatus {
    submit(rl, lease, user_data, Ok(Call::Unlock))
}

/// Begins to release a lock and to keep others out for a while, as RedLock_UnlockAfter does. See
/// RedLock_SubmitAcquire.
///
/// @param rl        as for RedLock_UnlockAfter.
/// @param lease     the lock.
/// @param least_ms  as for RedLock_UnlockAfter.
/// @param user_data comes with the event.
/// @return as for RedLock_SubmitExtend. The status of the event is one that RedLock_UnlockAfter can return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SubmitUnlockAfter(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    least_ms: i64,
    user_data: *mut c_void,
) -> RedLockStatus {
    submit(rl, lease, user_data, Ok(Call::UnlockAfter { least_ms }))
}

/// Begins to confirm a lock, as RedLock_Confirm does: asks the servers whether this lease still holds it. See
/// RedLock_SubmitAcquire.
///
/// @param rl        as for RedLock_Confirm.
/// @param lease     the lock.
/// @param least_ms  as for RedLock_Confirm.
/// @param user_data comes with the event.
/// @return as for RedLock_SubmitExtend. The status of the event is one that RedLock_Confirm can return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SubmitConfirm(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    least_ms: i64,
    user_data: *mut c_void,
) -> RedLockStatus {
    submit(rl, lease, user_data, Ok(Call::Confirm { least_ms }))
}

/// Begins to take over a lock that was given away, as RedLock_Adopt does. See RedLock_SubmitAcquire. If the
/// lease is freed after the lock was adopted and before the event is taken, the lock is released.
///
/// @param rl        as for RedLock_Adopt.
/// @param ticket    as for RedLock_Adopt; read during the call only.
/// @param lease     as for RedLock_Adopt.
/// @param user_data comes with the event.
/// @return as for RedLock_SubmitAcquire. The status of the event is one that RedLock_Adopt can return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SubmitAdopt(
    rl: *mut RedLock,
    ticket: *const c_char,
    lease: *mut RedLockLease,
    user_data: *mut c_void,
) -> RedLockStatus {
    submit(rl, lease, user_data, text(ticket, "ticket").map(|ticket| Call::Adopt { ticket }))
}

/// Keeps a held lock alive until it is unlocked. The lock is extended, with the TTL that it was given last,
/// when a sixth to a third of that TTL has passed. This is done by the thread that drives the library at that time,
/// in RedLock_NextEvent or in any call that waits. A driver is needed for as long as the lock is held: the thread
/// of RedLock_SetBackgroundThread, an event loop with RedLock_Descriptor, or threads that call RedLock_NextEvent or
/// are in RedLock_Wait, in this process (a forked child needs its own). Without one, this function fails. A
/// server that is slow or down does no harm as long as a quorum is left. A lost lock is never taken again.
///
/// If the lock cannot be kept alive, REDLOCK_EVENT_LOST follows once, while at least a tenth of the TTL is
/// left. From then on the lock is no longer extended. A call may find that the servers hold the lock for less
/// than that, because they lost keys or a clock was set. Then the event follows at once. If that call was
/// made on another manager, the event follows when the lock is next due to be extended. There is no event for
/// a lock that was unlocked, or whose lease was freed or used for another lock. Such a lock is no longer kept
/// alive either. A lock that is kept alive ends with its process, at the latest one TTL after it.
///
/// @param rl        a manager with the servers that the lock was taken on.
/// @param lease     the lock. It may be used for other calls. If this function is called twice, the later
///                  user_data applies.
/// @param user_data comes with the event.
/// @return REDLOCK_OK, REDLOCK_LOST: the lock is not held. REDLOCK_INVALID_ARGUMENT, also if nothing drives the
///         manager. REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL. No I/O.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_KeepAlive(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    user_data: *mut c_void,
) -> RedLockStatus {
    lease_call(rl, lease, |manager, own| {
        let tag = held_lease(lease).map(|lease| Tag::new(&lease, user_data).boxed());
        manager.keep_alive(own, tag.ok_or_else(|| Error::invalid("lease is NULL"))?)
    })
}

/// Submits one of the calls on a lease.
pub(super) fn submit(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    user_data: *mut c_void,
    call: Result<Call<'_>, Error>,
) -> RedLockStatus {
    let _uncancelled = Uncancelled::new();
    let handle = shared(rl);
    let Some(lease) = held_lease(lease) else {
        if let Some(handle) = handle {
            handle.message.set("lease is NULL");
        }
        return RedLockStatus::REDLOCK_INVALID_ARGUMENT;
    };
    let outcome = catch(|| {
        let Some(handle) = &handle else {
            return lease.call(|_| Err(Error::invalid("rl is NULL")));
        };
        let takes = call.as_ref().is_ok_and(Call::takes);
        lease.submit(handle, takes, |own| {
            let tag = Tag::of_call(&lease, user_data, takes).boxed();
            let submitted = call.and_then(|call| handle.manager.submit(call, own, tag));
            submitted.map_err(|error| error.told_in(handle.language.get()))
        })
    });
    match outcome {
        Ok(()) => RedLockStatus::REDLOCK_OK,
        Err(error) => error.status().into(),
    }
}
