//! The C functions about fencing tokens.

use super::call::manager_call;
use super::handle::RedLock;
use super::lease::{RedLockLease, read};
use super::status::RedLockStatus;

/// Sets whether locks come with a fencing token: a number that is greater than those of all locks of the same
/// resource before. Hand it to what the lock protects with each write, and have it refuse a number that is less
/// than the greatest it has seen, as a database does with UPDATE ... WHERE fence <= :token. Then a holder that
/// was paused beyond the end of its lock cannot undo what the next holder wrote.
///
/// To draw tokens, each server keeps a counter for the resource, in the key that is named as the resource with :f
/// behind it. So do not lock a resource of such a name. The counter has a TTL of its own: an hour, or a hundred times that of
/// the lock if that is longer. The user needs the right to use it, and EVAL, TIME, GET, SET and PTTL. Taking a lock
/// needs a second round trip only if the counters of the servers differ, as after an outage of one.
///
/// All who lock the resource must use this: locks that are taken without it draw no token, and a token only tells its
/// holder from those with other tokens. Tokens grow as long as no quorum of servers loses its memory
/// at once, with the restart guard on (RedLock_SetRestartGuard); and, where one server after another loses it, if
/// the servers' clocks differ by less than a second. The clocks of clients do not matter.
///
/// @param rl      the manager.
/// @param enabled true: locks that are taken from now on have a token. false, the default: they have none.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetFencing(rl: *mut RedLock, enabled: bool) -> RedLockStatus {
    manager_call(rl, |handle| {
        handle.manager.set_fencing(enabled);
        Ok(())
    })
}

/// The fencing token of the lock. It does not change when the lock is extended, and is there still when the lock
/// has expired or was lost, until the lease is unlocked or used for another lock. No I/O.
///
/// @param lease a lease, or NULL.
/// @return a number above 0 and below 2^53, which a double holds exactly; 0 if the lease is empty, the lock was
///         taken without one (RedLock_SetFencing), and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_FencingToken(lease: *const RedLockLease) -> i64 {
    read(lease, 0, |state| state.lease.fencing_token())
}
