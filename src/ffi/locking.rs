//! The C functions that take, extend and release locks, and ask for them.

use std::ffi::c_char;

use super::arguments::{Argument, text};
use super::call::{lease_call, manager_call, told};
use super::handle::RedLock;
use super::lease::RedLockLease;
use super::status::RedLockStatus;
use crate::error::Status;

/// Takes a lock, trying as often as RedLock_SetRetry says.
///
/// Callers that want one resource through one manager wait in a queue: the head of it asks the
/// servers, and RedLock_Unlock hands the lock over to the head within a round trip, even
/// in the middle of its pause. Every 200 ms (every 40 ms while other processes want the lock) it is
/// released openly instead, and the queue stands back for up to 8 ms, so that others get it, too.
/// While this manager has the lock, the head of the queue asks once a second: if the servers have lost it,
/// it is to be had.
///
/// @param rl       the manager.
/// @param resource what to lock: 1 to 65536 bytes, any but NUL. It is the name of the key on the
///                 servers, as given.
/// @param ttl_ms   how long the lock lasts unless it is extended or released: at least 4 with the
///                 default drift (some validity must be left of it), at most 315360000000 (ten
///                 years).
/// @param lease    receives the lock. Must not hold one. On failure it holds none, and
///                 RedLockLease_ErrorMessage tells what each server said.
/// @return REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE, REDLOCK_TOO_SLOW, REDLOCK_CANCELLED,
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
///         After each but REDLOCK_OK nothing of this call stays locked: what servers may have
///         granted is released at once, or queued behind the request where one does not answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Lock(
    rl: *mut RedLock,
    resource: *const c_char,
    ttl_ms: i64,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::TooSlow, |manager, lease| {
        manager.lock(text(resource, "resource")?, ttl_ms, lease)
    })
}

/// Takes a lock, trying for a time rather than a number of times. Callers wait in a queue as for
/// RedLock_Lock. The pause between two tries is random, from nothing up to a bound: four round
/// trips at first, doubled by each refusal up to what RedLock_SetRetry allows, no more than 16 ms
/// while the lock changes hands, and never past the moment when the lock can have expired.
///
/// @param rl       the manager.
/// @param resource as for RedLock_Lock.
/// @param ttl_ms   as for RedLock_Lock.
/// @param wait_ms  0: one attempt. More than 0: try until so long has passed. Less than 0: until
///                 the lock is had. One attempt is made, and not cut short, in any case.
/// @param lease    as for RedLock_Lock.
/// @return as for RedLock_Lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_TryLock(
    rl: *mut RedLock,
    resource: *const c_char,
    ttl_ms: i64,
    wait_ms: i64,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::TooSlow, |manager, lease| {
        manager.try_lock(text(resource, "resource")?, ttl_ms, wait_ms, lease)
    })
}

/// RedLock_TryLock for callers that must look up from a wait now and then: one call of this function
/// is a slice of the wait, and the next one with the same lease and resource goes on with it. It
/// asks no sooner than the wait would have done in one piece, and the pauses go on growing; so a
/// wait in slices sends what one in a piece sends. In between the caller has no place in the line.
/// Any other locking call on the lease, or another resource, ends the wait.
///
/// @param rl       the manager.
/// @param resource as for RedLock_Lock.
/// @param ttl_ms   as for RedLock_Lock.
/// @param wait_ms  how much of the wait is left, this slice included. 0: one attempt, at once. More
///                 than 0: as long as that. Less than 0: for ever.
/// @param slice_ms how long this call may wait, at least 0. Where that is less than wait_ms, there is
///                 no last attempt at its end; an attempt that is under way then is not cut short.
///                 Otherwise this is the last slice, and ends as RedLock_TryLock does.
/// @param lease    as for RedLock_Lock. It keeps what the next slice has to know. To give the wait up
///                 between two slices, free it, or use it for something else.
/// @return as for RedLock_Lock. At the end of a slice it is what the last attempt of the wait has come
///         to, as a rule REDLOCK_TAKEN: whether the wait is over, the caller knows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_TryLockSlice(
    rl: *mut RedLock,
    resource: *const c_char,
    ttl_ms: i64,
    wait_ms: i64,
    slice_ms: i64,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::TooSlow, |manager, lease| {
        let resource = text(resource, "resource")?;
        manager.try_lock_slice(resource, ttl_ms, (wait_ms, slice_ms), lease)
    })
}

/// Takes a lock or renews it. Where the lease passed, or an earlier one passed to this function
/// with the same manager and resource, still holds it, this is RedLock_Extend and the lease passed
/// becomes one more handle of that lock; otherwise it is RedLock_Lock. Both try as RedLock_SetRetry
/// says.
///
/// @param rl       the manager.
/// @param resource as for RedLock_Lock.
/// @param ttl_ms   as for RedLock_Lock, counted from now.
/// @param lease    empty, or the holder of this very resource. A lease that holds another
///                 resource is REDLOCK_INVALID_ARGUMENT.
/// @return as RedLock_Lock where it had to be taken, as RedLock_Extend where it was held:
///         REDLOCK_LOST tells once that a lock had slipped away before its time; the next call takes
///         it anew. One that had come to its end by itself is taken anew at once, with REDLOCK_OK and
///         another token, whoever may have had it in between. After REDLOCK_UNREACHABLE a lock that was held still is, until its old end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_ContinueLock(
    rl: *mut RedLock,
    resource: *const c_char,
    ttl_ms: i64,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::TooSlow, |manager, lease| {
        manager.continue_lock(text(resource, "resource")?, ttl_ms, lease)
    })
}

/// Gives a held lock a new TTL, counted from now, under the same token. One round, no retries. A
/// TTL shorter than what is left shortens nothing, and is REDLOCK_OK.
///
/// @param rl     a manager with the servers that the lock was taken on.
/// @param lease  the lock.
/// @param ttl_ms as for RedLock_Lock.
/// @return REDLOCK_OK: RedLockLease_ValidityMs tells the new validity. REDLOCK_LOST: it had
///         expired, been deleted or been taken over; the lease is empty now. REDLOCK_UNREACHABLE: too
///         few servers answered; what was valid stays valid until its old end. REDLOCK_CANCELLED: the same.
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Extend(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    ttl_ms: i64,
) -> RedLockStatus {
    lease_call(rl, lease, Status::Lost, |manager, lease| manager.extend(lease, ttl_ms))
}

/// Releases a lock: deletes it on the servers where it is still this lease's. Nobody else's is
/// ever touched.
///
/// @param rl    the manager that took it. Another one with the same servers does, too; but a server
///              that is still about to carry out the call that took the lock may keep the key then
///              until its TTL is over, and callers that wait hear of it up to a second later.
/// @param lease the lock.
/// @return REDLOCK_OK: released; the lease is empty now, unless RedLock_Retain has added levels: then one is left, and the
///         lock is held still. REDLOCK_LOST: it had already ended, or
///         the lease holds none. REDLOCK_UNREACHABLE: some servers could not be told, and will be
///         when they are back if this manager is in use then, else the lock expires there; the
///         lease counts as released but keeps its token, and calling again is allowed. REDLOCK_CANCELLED: the
///         same.
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Unlock(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::Lost, |manager, lease| manager.unlock(lease))
}

/// Asks the servers whether a lock is still this lease's on a quorum, and for how long; for the
/// moment before a step that cannot be undone. Changes nothing.
///
/// @param rl       a manager with the servers that the lock was taken on.
/// @param lease    the lock.
/// @param least_ms how much validity is needed, at least 0.
/// @return REDLOCK_OK: it is, for at least that long. REDLOCK_TOO_SHORT: it is, but not for that long; it stays
///         held. REDLOCK_LOST: it is not. REDLOCK_UNREACHABLE: too few servers answered. REDLOCK_CANCELLED.
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Confirm(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    least_ms: i64,
) -> RedLockStatus {
    lease_call(rl, lease, Status::Lost, |manager, lease| manager.confirm(lease, least_ms))
}

/// Asks the servers whether anybody holds a resource, on a quorum. The answer may be out of date
/// when it arrives: to take a lock, take it. RedLock_Inspect tells more.
///
/// @param rl       the manager.
/// @param resource as for RedLock_Lock.
/// @param locked   receives the answer; false on failure.
/// @return REDLOCK_OK, REDLOCK_UNREACHABLE, REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED
///         (a callback forked, and this is the child), REDLOCK_INTERNAL; RedLock_ErrorMessage(rl) has the
///         words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_IsLocked(
    rl: *mut RedLock,
    resource: *const c_char,
    locked: *mut bool,
) -> RedLockStatus {
    let locked = Argument::new(locked, "locked", false);
    manager_call(rl, |handle| {
        let mut locked = locked?;
        let ask = || handle.manager.is_locked(text(resource, "resource")?);
        let (answer, _) = told(&handle.manager, ask);
        let answer = answer?;
        // A logger may have made calls of its own, and they have left their words.
        handle.message.set("");
        locked.set(answer);
        Ok(())
    })
}
