//! The C functions that give a lock away and take one over.

use std::ffi::c_char;

use super::arguments::{Room, text};
use super::call::lease_call;
use super::handle::RedLock;
use super::lease::RedLockLease;
use super::status::RedLockStatus;
use crate::error::Status;

/// Gives a held lock away: writes a ticket, by which another process, or another lease of this one, takes it over
/// with RedLock_Adopt. The lock stays as it is on the servers, with its token and its fencing token; until it is adopted nobody
/// extends it, and it ends when its time is over. No I/O.
///
/// After this the lease holds nothing, nor does any other handle of the lock (RedLock_ContinueLock): RedLock_Unlock,
/// RedLock_Extend and RedLock_Confirm answer REDLOCK_LOST and say so, it is not kept any more, and freeing a handle, or the
/// manager, releases nothing. The lease may be used for another lock. Only a lock that nobody has begun to release is
/// given away.
///
/// The ticket is as secret as the token, which is in it: who knows it can release the lock. Hand it over by a
/// descriptor or by the environment, not in the arguments of a program, which everybody can see. What has become of a
/// ticket that nobody adopts, the library cannot know.
///
/// A server that had not answered the call that took the lock, or repaired it there, may carry that out after
/// whoever adopted the lock has released it: then its key ends with its TTL.
///
/// @param rl     a manager with the servers that the lock was taken on.
/// @param lease  the lock.
/// @param ticket receives the ticket: printable ASCII without spaces, and a NUL.
/// @param size   bytes of room, with the NUL: REDLOCK_TICKET_SIZE(n) is enough for a resource of n bytes. Of several, n is
///               what all have together, and 2 for each.
/// @return REDLOCK_OK. REDLOCK_LOST: it is not held; there is no ticket. REDLOCK_INVALID_ARGUMENT: also if there is too
///         little room; the lock stays held. REDLOCK_CANCELLED, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Detach(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    ticket: *mut c_char,
    size: usize,
) -> RedLockStatus {
    lease_call(rl, lease, Status::Lost, |manager, lease| {
        let mut room = Room::new(ticket, size, "ticket")?;
        let ticket = manager.detach(lease, room.bytes())?;
        room.write(&ticket);
        Ok(())
    })
}

/// Takes over a lock that was given away by RedLock_Detach, in this process or another. The servers are asked, as
/// by RedLock_Confirm, and nothing is changed on them: where a quorum has the lock, the lease holds it for as long as they
/// have it still, less what is allowed for drift. To have it for longer, extend it.
///
/// Adopt a ticket once. Nothing on the servers tells two adopters of one ticket apart: they would share the
/// lock, as threads that share a lease do, and the first to unlock it would release it for both. Of a call that failed, or was
/// cancelled, the ticket is as good as before.
///
/// Every server that has the lock counts, as after RedLock_Lock. Whether somebody else has had it between the two
/// holders nobody can tell if servers lost their memory in between without a guard (RedLock_SetRestartGuard).
///
/// @param rl     a manager of the same servers, in any order.
/// @param ticket what RedLock_Detach has written, in any process. As secret as a token, and quoted nowhere.
/// @param lease  receives the lock. Must not hold one. Its resource, token and fencing token are those of the lock.
/// @return REDLOCK_OK. REDLOCK_LOST: the lock has ended, or never was on these servers. REDLOCK_UNREACHABLE: too few
///         servers answered; try again. REDLOCK_TOO_SLOW: it ended while log lines were told. REDLOCK_CANCELLED.
///         REDLOCK_INVALID_ARGUMENT: also for what is no ticket, or only a part of one, or one of another version.
///         REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Adopt(
    rl: *mut RedLock,
    ticket: *const c_char,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::TooSlow, |manager, lease| {
        manager.adopt(text(ticket, "ticket")?, lease)
    })
}
