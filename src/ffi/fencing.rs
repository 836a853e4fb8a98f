//! The C functions for fencing tokens.

use super::call::manager_call;
use super::handle::RedLock;
use super::lease::{RedLockLease, read};
use super::status::RedLockStatus;

/// Sets whether locks come with a fencing token. This is a number that is greater than the numbers of all
/// earlier locks of the same resource. Pass it with each write to the system that the lock protects. That
/// system must refuse a number that is less than the greatest it has seen, as a database does with UPDATE ...
/// WHERE fence <= :token. Then a holder that was paused beyond the end of its lock cannot undo what the next
/// holder wrote.
///
/// To draw tokens, each server keeps numbers for all resources in the key redlock:fence, which has no TTL. Do
/// not lock a resource with this name. The user needs the right to use this key, and TIME, HMGET, HSET, HDEL
/// and HGETALL in addition to what other locks need. Taking a lock needs a second round trip only if the
/// numbers of the servers differ, as after an outage of one server.
///
/// All clients that lock the resource must use this. A lock that is taken without it draws no token, and a
/// token distinguishes its holder only from holders of other tokens. Tokens grow whatever the clocks show, as
/// long as servers lose their memory one after another, with the restart guard on (RedLock_SetRestartGuard). A
/// server that lost its memory has no vote for locks with tokens until its numbers are restored from the other
/// servers. If too many lose it at once, tokens grow unless clocks are set back.
///
/// @param rl      the manager.
/// @param enabled true: locks that are taken from now on have a token. false, the default: they have none.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetFencing(rl: *mut RedLock, enabled: bool) -> RedLockStatus {
    manager_call(rl, |handle| {
        handle.manager.settings().set_fencing(enabled);
        Ok(())
    })
}

/// The fencing token of the lock. It does not change when the lock is extended. It stays available when the
/// lock has expired or was lost, until the lease is unlocked or used for another lock. No I/O.
///
/// @param lease a lease, or NULL.
/// @return a number above 0 and below 2^53, which a double holds exactly. 0 if the lease is empty, if the
///         lock was taken without a token (RedLock_SetFencing), and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_FencingToken(lease: *const RedLockLease) -> i64 {
    read(lease, 0, |state| state.lease.fencing_token())
}
