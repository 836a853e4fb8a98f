//! The C function about being woken.

use super::call::manager_call;
use super::handle::RedLock;
use super::status::RedLockStatus;

/// Sets whether calls that wait for a lock are told when it is released, by whatever process; and whether what this
/// manager releases is told to those that wait. That is so by default, and costs little: a lock that is held for long is
/// asked for seldom, and changes hands in a few round trips all the same. Servers need no configuration.
///
/// Who waits (RedLock_TryLock, RedLock_Acquire and RedLock_SubmitAcquire with a wait_ms that is not 0) stands in a line on each
/// server: in the sorted set that is named as the resource with :w behind it, which ends by itself when nobody has waited
/// for a while. So do not lock a resource of such a name. It listens to a channel of its own, redlock:w: and 32 hexadecimal digits. A release
/// publishes to the channel of whoever has waited longest. The order is nearly that in which they came, and no promise.
///
/// All of this is about when to ask: who has a lock does not depend on it. Where it is not to be had, a caller asks now and then,
/// as it does for locks that expire or that another kind of client releases: servers older than Redis 6.0, a user without the
/// right to the channel (Redis 7.0 gives new users none), to the key :w, or to HELLO, SUBSCRIBE, PUBLISH, EVAL, EXISTS, TIME, PTTL,
/// PEXPIRE and the commands of sorted sets. A line in the log says so.
///
/// @param rl      the manager.
/// @param enabled true, the default, or false: this manager's callers ask now and then, and its releases are told to
///                nobody. Set it before the first call that asks servers: connections that there are stay as they are.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetWaking(rl: *mut RedLock, enabled: bool) -> RedLockStatus {
    manager_call(rl, |handle| {
        handle.manager.set_waking(enabled);
        Ok(())
    })
}
