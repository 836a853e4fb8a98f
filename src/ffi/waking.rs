//! The C function that sets whether a release wakes waiting callers.

use super::call::manager_call;
use super::handle::RedLock;
use super::status::RedLockStatus;

/// Sets whether a release wakes waiting callers. If enabled, waiting calls of this manager are notified when any
/// process releases the lock, and the releases of this manager notify waiting callers. This is the default, and
/// costs little: a lock that is held for long is rarely asked for, and still changes hands in a few round
/// trips. Servers need no configuration.
///
/// While a call waits (RedLock_TryLock, RedLock_Acquire and RedLock_SubmitAcquire with a wait_ms that is
/// not 0), its manager has a place in a wait queue on each server. This queue is a sorted set whose name is
/// the resource followed by :w. It expires when nobody has waited for a while. So do not lock a resource with
/// such a name. The manager listens to a channel of its own: redlock:w: and 32 hexadecimal digits. A release
/// publishes to the channel of the manager that has waited longest. The order is nearly the order of arrival,
/// and is not guaranteed.
///
/// All of this only decides when a caller asks. It does not decide who holds a lock. If a caller cannot be
/// woken, it asks from time to time, as it does for locks that expire or that another kind of client releases.
/// If a lock changes hands twice and no client is woken, because clients of other libraries want it, too, one
/// waiting caller of this manager asks every 20 ms on average, until a caller is woken. This is the case with
/// servers older than Redis 6.0. It is also the case if the ACL user lacks the right to the channel (Redis 7.0
/// gives new users none), to the key :w, or to HELLO, SUBSCRIBE, PUBLISH, EXISTS, TIME, ZADD, ZCARD, ZRANK,
/// ZRANGE, ZREM and ZPOPMIN, which it needs in addition to what other locks need. A line in the log reports
/// this.
///
/// @param rl      the manager.
/// @param enabled true, the default, or false: callers of this manager ask from time to time, and its
///                releases notify nobody. Set this before the first call that asks servers, because existing
///                connections do not change.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetWaking(rl: *mut RedLock, enabled: bool) -> RedLockStatus {
    manager_call(rl, |handle| {
        handle.manager.settings().set_waking(enabled);
        Ok(())
    })
}
