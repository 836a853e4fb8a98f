//! The C functions that give a lock away and take it over.

use std::ffi::c_char;

use super::arguments::{Room, text};
use super::call::{lease_call, run};
use super::handle::RedLock;
use super::lease::RedLockLease;
use super::status::RedLockStatus;
use crate::manager::call::Call;

/// Gives a held lock away, and writes a ticket for RedLock_Adopt. With this ticket another process, or
/// another lease of this process, takes the lock over. On the servers the lock stays as it is, with its token
/// and its fencing token. Until the lock is adopted nobody extends it, and it expires at the end of its TTL.
/// No I/O.
///
/// After this call the lease holds nothing. The same is true for any other handle of the lock
/// (RedLock_ContinueLock). RedLock_Unlock, RedLock_Extend and RedLock_Confirm return REDLOCK_LOST, and the
/// message says that the lock was given away. The lock is no longer kept alive. Freeing a handle or the
/// manager releases nothing. The lease may be used for another lock. A lock can be given away only if nobody
/// has begun to release it.
///
/// The ticket contains the token and is as secret as the token: anybody who knows it can release the lock.
/// Pass it by a descriptor or by the environment, not in the arguments of a program, which everybody can see.
/// The library cannot know what has become of a ticket that nobody adopts.
///
/// A server may not have answered the call that took the lock or repaired it there. Such a server may carry
/// out that call after the adopter has released the lock. Its key then expires with its TTL.
///
/// @param rl     a manager with the servers that the lock was taken on.
/// @param lease  the lock.
/// @param ticket receives the ticket: printable ASCII without spaces, and a NUL.
/// @param size   the size of the buffer in bytes, including the NUL: REDLOCK_TICKET_SIZE(n) is enough for a
///               resource of n bytes. For several resources, n is the sum of their sizes, plus 2 for each.
/// @return REDLOCK_OK. REDLOCK_LOST: the lock is not held, and there is no ticket. REDLOCK_INVALID_ARGUMENT:
///         also if the buffer is too small; the lock stays held. REDLOCK_CANCELLED, REDLOCK_NO_SERVERS,
///         REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Detach(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    ticket: *mut c_char,
    size: usize,
) -> RedLockStatus {
    lease_call(rl, lease, |manager, lease| {
        let mut room = Room::new(ticket, size, "ticket")?;
        let ticket = manager.detach_quietly(lease, room.bytes())?;
        room.write(&ticket);
        Ok(())
    })
}

/// Takes over a lock that RedLock_Detach gave away, in this process or another. Like RedLock_Confirm, this
/// asks the servers and changes nothing on them. If a quorum has the lock, the lease holds it for the time
/// that is left on these servers, minus the allowance for drift. To hold it longer, extend it.
///
/// Adopt a ticket only once. The servers cannot tell two adopters of one ticket apart. The adopters would
/// share the lock, as threads that share a lease do, and the first to unlock it would release it for both. A
/// call that failed or was cancelled does not use up the ticket.
///
/// Every server that has the lock counts, as after RedLock_Lock. If servers lost their memory between the two
/// holders without a guard (RedLock_SetRestartGuard), nobody can tell whether another client held the lock in
/// between.
///
/// @param rl     a manager of the same servers, in any order.
/// @param ticket the ticket that RedLock_Detach wrote, in any process. It is as secret as a token, and the
///               library never quotes it.
/// @param lease  receives the lock. Must not hold one. Its resource, token and fencing token become those of
///               the lock.
/// @return REDLOCK_OK. REDLOCK_LOST: the lock has ended, or was never on these servers. REDLOCK_UNREACHABLE:
///         too few servers answered; try again. REDLOCK_TOO_SLOW: the lock expired while the logger ran.
///         REDLOCK_CANCELLED. REDLOCK_INVALID_ARGUMENT: also if the text is not a ticket, is only a part of
///         one, or is a ticket of another version. REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Adopt(
    rl: *mut RedLock,
    ticket: *const c_char,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    run(rl, lease, text(ticket, "ticket").map(|ticket| Call::Adopt { ticket }))
}
