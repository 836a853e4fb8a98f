//! The C functions that take, extend, release and confirm locks, and that ask whether a resource is locked.

use std::ffi::c_char;

use super::arguments::{Argument, text};
use super::call::{manager_call, run};
use super::handle::RedLock;
use super::lease::RedLockLease;
use super::status::RedLockStatus;
use crate::manager::call::{AcquireOptions, Call, Patience};
use crate::protocol::error::Error;

/// Takes a lock, trying as often as RedLock_SetRetry says.
///
/// Callers that want the same resource through the same manager wait in a queue. The head of the queue asks
/// the servers. RedLock_Unlock hands the lock over to the head within a round trip, even in the middle of the
/// head's pause. Every 200 ms (every 40 ms while other processes want the lock), the lock is released openly
/// instead. The queue then stands back for up to 8 ms, so that other processes get the lock, too. Beside
/// clients of other libraries that wake nobody (RedLock_SetWaking), it does so only every 100 ms. While this
/// manager holds the lock, the head of the queue asks the servers once a second: if they have lost the lock,
/// the head can take it.
///
/// @param rl       the manager.
/// @param resource the resource to lock: 1 to 65536 bytes, any but NUL. It is used unchanged as the name of
///                 the key on the servers.
/// @param ttl_ms   how long the lock lasts, in milliseconds, unless it is extended or released. At least 4
///                 with the default drift, because some validity must be left. At most 315360000000 (ten
///                 years).
/// @param lease    receives the lock. Must not hold a lock. On failure it holds none, and
///                 RedLockLease_ErrorMessage reports what each server said.
/// @return REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE, REDLOCK_TOO_SLOW, REDLOCK_CANCELLED,
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL. After every status
///         but REDLOCK_OK, nothing of this call stays locked. Anything that servers may have granted is
///         released at once. If a server does not answer, the release is queued behind the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Lock(
    rl: *mut RedLock,
    resource: *const c_char,
    ttl_ms: i64,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    run(rl, lease, exclusive(resource, ttl_ms, Patience::TriesOfSettings))
}

/// Takes a lock, trying for a time instead of a number of times. Callers wait in a queue as for RedLock_Lock.
/// The pause between two tries is random, between zero and a bound. The bound is four round trips at first.
/// Each refusal doubles the bound, up to the limit of RedLock_SetRetry. While the lock changes hands, the
/// bound is at most 16 ms. A pause never extends past the moment when the lock can have expired.
///
/// @param rl       the manager.
/// @param resource as for RedLock_Lock.
/// @param ttl_ms   as for RedLock_Lock.
/// @param wait_ms  0: one attempt. More than 0: try until this many milliseconds have passed. Less than 0:
///                 try until the lock is taken. In any case one attempt is made, and that attempt is not cut
///                 short.
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
    run(rl, lease, exclusive(resource, ttl_ms, Patience::Ms(wait_ms)))
}

/// Takes a lock or renews it. If the lease passed still holds the lock, this function works as
/// RedLock_Extend. The same applies if an earlier lease that was passed to this function with the same
/// manager and resource still holds the lock. The lease passed then becomes one more handle of that lock.
/// Otherwise this function works as RedLock_Lock. In both cases it tries as often as RedLock_SetRetry says.
///
/// @param rl       the manager.
/// @param resource as for RedLock_Lock.
/// @param ttl_ms   as for RedLock_Lock, counted from now.
/// @param lease    empty, or a lease that holds this resource. A lease that holds another resource is
///                 REDLOCK_INVALID_ARGUMENT.
/// @return as for RedLock_Lock if the lock had to be taken, as for RedLock_Extend if it was held.
///         REDLOCK_LOST reports once that a lock was lost before its expiry; the next call takes the lock
///         again. A lock that had expired is taken again at once, with REDLOCK_OK and another token, even if
///         somebody else held it in between. After REDLOCK_UNREACHABLE, a lock that was held is still held
///         until its old expiry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_ContinueLock(
    rl: *mut RedLock,
    resource: *const c_char,
    ttl_ms: i64,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    let resource = text(resource, "resource");
    run(rl, lease, resource.map(|resource| Call::Continue { resource, ttl_ms }))
}

/// Gives a held lock a new TTL, counted from now, with the same token. One round, no retries. A TTL shorter
/// than the remaining time does not shorten the lock, and returns REDLOCK_OK.
///
/// @param rl     a manager with the servers that the lock was taken on.
/// @param lease  the lock.
/// @param ttl_ms as for RedLock_Lock.
/// @return REDLOCK_OK: RedLockLease_ValidityMs returns the new validity. REDLOCK_LOST: the lock had expired,
///         been deleted or been taken over; the lease is now empty. REDLOCK_UNREACHABLE: too few servers
///         answered; a valid lock stays valid until its old expiry. REDLOCK_CANCELLED: the same.
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Extend(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    ttl_ms: i64,
) -> RedLockStatus {
    run(rl, lease, Ok(Call::Extend { ttl_ms }))
}

/// Releases a lock: deletes it on the servers where it still belongs to this lease. A lock of another holder
/// is never changed.
///
/// @param rl    the manager that took the lock. Another manager with the same servers works, too. But then a
///              server that has not yet carried out the request that took the lock, or that set its key again
///              after the server had lost it, may keep the key until its TTL expires, and waiting callers may
///              learn of the release up to a second later.
/// @param lease the lock.
/// @return REDLOCK_OK: the lock is released, and the lease is now empty. If RedLock_Retain has added levels,
///         this call leaves one level instead, and the lock is still held. REDLOCK_LOST: the lock had already
///         ended, or the lease holds none. REDLOCK_UNREACHABLE: the release did not reach some servers. It
///         reaches them when they are back, if this manager is in use then; otherwise the lock expires there.
///         The lease counts as released but keeps its token, and the caller may call this function again.
///         REDLOCK_CANCELLED: the same. REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED,
///         REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Unlock(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    run(rl, lease, Ok(Call::Unlock))
}

/// Releases a lock, but keeps others out until a time after it was taken. The keys are not deleted: on each server, the
/// key ends least_ms after the lock was taken, and never later than it would have. The lease is empty from now on, as
/// after RedLock_Unlock. No waiting client is woken. Use this for a job that must run once in a fleet of machines whose
/// clocks differ: a machine that is late finds the lock taken although the job is done. If that time has passed, this
/// is RedLock_Unlock. The time counts from when the request that took the lock was sent, by this machine's clock. An
/// extension does not begin it anew; for an adopted lock it counts from the adoption. A server that is told of it late
/// keeps the key longer than the others, at most for its TTL. So does a server that has not yet carried out an extension
/// through another manager, if that extension was cancelled, or had no answer in time, before this call. The ACL user needs
/// the right to use EVAL, GET, PTTL and PEXPIRE.
///
/// @param rl       as for RedLock_Unlock.
/// @param lease    the lock. Not a shared lock, nor a permit. With several resources, this applies to each of them.
/// @param least_ms how long others are kept out, in milliseconds from when the lock was taken: 0 to its TTL.
/// @return as for RedLock_Unlock. If it is called again after REDLOCK_UNREACHABLE, or RedLock_Unlock is, the keys still
///         stay until the end of that time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_UnlockAfter(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    least_ms: i64,
) -> RedLockStatus {
    run(rl, lease, Ok(Call::UnlockAfter { least_ms }))
}

/// Asks the servers whether this lease still holds its lock on a quorum, and for how long. Use this right
/// before a step that cannot be undone. It changes nothing on the servers. Afterwards, the lease is valid no
/// longer than a quorum of the servers that answered has the lock.
///
/// @param rl       a manager with the servers that the lock was taken on.
/// @param lease    the lock.
/// @param least_ms the required validity in milliseconds, at least 0.
/// @return REDLOCK_OK: the lock is held for at least that long. REDLOCK_TOO_SHORT: the lock is held, but not
///         for that long; it stays held. REDLOCK_LOST: the lock is not held. REDLOCK_UNREACHABLE: too few
///         servers answered. REDLOCK_CANCELLED. REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED,
///         REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Confirm(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    least_ms: i64,
) -> RedLockStatus {
    run(rl, lease, Ok(Call::Confirm { least_ms }))
}

/// Asks the servers whether any client holds a resource on a quorum. The answer may be out of date when it
/// arrives: to get a lock, take it without asking first. RedLock_Inspect reports more.
///
/// @param rl       the manager.
/// @param resource as for RedLock_Lock.
/// @param locked   receives the answer; false on failure.
/// @return REDLOCK_OK, REDLOCK_UNREACHABLE, REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED (a
///         callback forked, and this process is the child), REDLOCK_INTERNAL. RedLock_ErrorMessage(rl) has
///         the message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_IsLocked(
    rl: *mut RedLock,
    resource: *const c_char,
    locked: *mut bool,
) -> RedLockStatus {
    let locked = Argument::new(locked, "locked", false);
    manager_call(rl, |handle| {
        let mut locked = locked?;
        let answer = handle.manager.is_locked(text(resource, "resource")?)?;
        // A logger may have made calls of its own, which have set the message.
        handle.message.set("");
        locked.set(answer);
        Ok(())
    })
}

fn exclusive<'a>(
    resource: *const c_char,
    ttl_ms: i64,
    patience: Patience,
) -> Result<Call<'a>, Error> {
    let options = Call::acquire(text(resource, "resource")?, ttl_ms);
    Ok(Call::Acquire(AcquireOptions { patience, ..options }))
}
