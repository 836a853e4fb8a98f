//! The C functions of the lock manager.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::arguments::{copy_words, text};
use super::call::{manager_call, told};
use super::callback::{RedLockDestroy, UserData};
use super::guard::guard;
use super::handle::{RedLock, shared};
use super::status::RedLockStatus;
use crate::error::Error;
use crate::log::Logger;
use crate::redlock::RedLock as Manager;
use crate::system::cancellation::Uncancelled;

/// What a logger may be told: of each server that it is lost, refuses or comes back, and why. Things that
/// are alike are told once a second, with a count of the lines left out. See RedLock_SetLogger.
///
/// @param level     1: a fault of a server that a lock may suffer from. 2: a fault mended, or
///                  something that a reader of logs may care for. 3: an event of a lock, if RedLock_SetTracing asks for that.
///                  Other values may follow.
/// @param message   one line without a line end, valid during the call only.
/// @param user_data what was given to RedLock_SetLogger.
pub type RedLockLogger =
    Option<unsafe extern "C" fn(level: i32, message: *const c_char, user_data: *mut c_void)>;

/// Makes a lock manager without servers and with the default settings.
///
/// @return the manager, owned by the caller: free it with RedLock_Free. NULL if it could not
///         be made. No I/O. Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn RedLock_New() -> *mut RedLock {
    let made = guard(|| {
        let (message, kept_log) = Default::default();
        let handle = RedLock { manager: Manager::told_by_caller(), message, kept_log };
        Ok(Arc::into_raw(Arc::new(handle)).cast_mut())
    });
    made.unwrap_or(ptr::null_mut())
}

/// Frees a manager. Waits for nothing: locks that are held stay held until they expire, and their leases stay
/// valid handles. Submitted calls are cancelled, and locks are kept no more; of events only those are told that a
/// callback is told (RedLock_SetEventCallback). Calls of other threads that have begun are finished by those
/// threads, and may use callbacks with their user_data until then; RedLock_NextEvent returns. The connections
/// are closed, as at the end of the process: a server that had fallen behind the others may not carry
/// out the last releases, and keeps those keys until their TTL is over.
///
/// @param rl a manager, or NULL, which is fine. Not to be used after this call, nor freed twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Free(rl: *mut RedLock) {
    let _ = guard(|| {
        if !rl.is_null() {
            // SAFETY: `rl` came from RedLock_New's Arc::into_raw and, as the contract of this
            // function says, is given back only once.
            let handle = unsafe { Arc::from_raw(rl.cast_const()) };
            // In a child, a thread of the parent may keep the handle alive that is not there.
            handle.manager.close_inherited();
            // What nobody can be told any more is not done any more; calls that wait for events end.
            handle.manager.abandon();
        }
        Ok(())
    });
}

/// Adds a server. All clients that are to exclude each other must name the same servers, each an
/// independent primary; the quorum is more than half of the servers added, also of those that are
/// down. No I/O: that a server cannot be reached shows at the first lock.
///
/// @param rl          the manager.
/// @param host_or_url a host name or an IPv4 or IPv6 address, with its port; or, with port 0,
///                    host:port ([address]:port for IPv6), or a whole URL: redis://[user][:password@]host[:port][/database],
///                    unix:///path or redis+unix:///path, these two with ?db=, &user= and &pass=
///                    as needed; with rediss:// in the place of redis://, TLS is used. valkey:// and
///                    its like are the same. redis-sentinel://[user][:password@]hosts/master[/database], with
///                    host[:port][,host[:port]...] for hosts, is the master of this name, wherever these
///                    Sentinels say it is, one voter; with
///                    rediss-sentinel:// they and the master are reached over TLS. The user and the
///                    password are the master's; those of the Sentinels are ?sentinel_username= and
///                    &sentinel_password=. After a failover the new master has no vote until every lock that
///                    it may not have heard of has ended. IPv6 addresses in a URL stand in brackets, and users and
///                    passwords are percent-encoded (RedLock_SetCredentials needs neither). A name is
///                    looked up by the system's resolver, which may block; an address never does.
/// @param port        1 to 65535; 0 if host_or_url names it, as host:port and URLs do.
/// @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if one of them is malformed, the same server (or a
///         master of the same name that one of the same Sentinels watches) was
///         added before, 64 servers are there already, or the first call was made that asks or
///         connects to servers: from then on the list is closed. Also for rediss:// if this build has
///         no TLS. RedLock_ErrorMessage(rl) names what was wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_AddServerUrl(
    rl: *mut RedLock,
    host_or_url: *const c_char,
    port: c_int,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let host_or_url = text(host_or_url, "host_or_url")?;
        let host_or_url = std::str::from_utf8(host_or_url)
            .map_err(|_| Error::invalid("host_or_url is not UTF-8"))?;
        handle.manager.add_server_url(host_or_url, port)
    })
}

/// Connects to the servers now rather than at the first lock. Optional. Returns when a quorum is
/// up, leaving the others a moment to follow.
///
/// @param rl         the manager.
/// @param timeout_ms how long to wait at most; 0: as long as connecting may take
///                   (RedLock_SetTimeouts).
/// @return REDLOCK_OK when a quorum is up; RedLock_ErrorMessage(rl) then names the servers that
///         are not, or is empty. REDLOCK_UNREACHABLE when too few could be reached: it says why,
///         server by server. REDLOCK_NO_SERVERS, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED (a callback
///         forked, and this is the child), REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Connect(rl: *mut RedLock, timeout_ms: i64) -> RedLockStatus {
    manager_call(rl, |handle| {
        let (absent, _) = told(&handle.manager, || handle.manager.connect(timeout_ms));
        handle.message.set(&absent?);
        Ok(())
    })
}

/// Sets how often RedLock_Lock and RedLock_ContinueLock try, and how long callers pause between two
/// tries. The pause of those two is random in [delay_ms / 2, 3 * delay_ms / 2), as in the CRedLock
/// class; there is none after the last try. RedLock_TryLock begins with shorter ones, and pauses
/// for less than 3 * delay_ms / 2 at most.
///
/// @param rl       the manager.
/// @param count    tries in all, at least 1. Default 3.
/// @param delay_ms mean pause in milliseconds, at least 0. Default 200.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetRetry(
    rl: *mut RedLock,
    count: c_int,
    delay_ms: c_int,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.set_retry(count, delay_ms))
}

/// Sets how long a server is waited for.
///
/// @param rl         the manager.
/// @param connect_ms for connecting, with the log-in. 1 to 86400000 (a day). Default 1500.
/// @param reply_ms   for a reply on a connection that is up. 0 to 86400000. 0, the default, means
///                   a twentieth of the TTL, at least 25 and at most 500: the advice of the
///                   Redlock page, 5 to 50 ms for a TTL of 10 s, rounded up for slow networks.
///                   A server that owes a reply for four times as long, and a second at least, gets
///                   a second connection; the first one is closed when no key that was asked for
///                   over it can be left.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTimeouts(
    rl: *mut RedLock,
    connect_ms: i64,
    reply_ms: i64,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.set_timeouts(connect_ms, reply_ms))
}

/// Sets how much faster a server's clock may run than this machine's. A lock of ttl_ms is valid
/// for ttl_ms - ceil(ttl_ms * factor) - 2 ms, less the time the call took; the 2 ms are for the
/// precision of expiry in Redis.
///
/// @param rl     the manager.
/// @param factor at least 0, less than 1. Default 0.01, as in the Redlock page.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetClockDriftFactor(
    rl: *mut RedLock,
    factor: f64,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.set_clock_drift_factor(factor))
}

/// Sets a function to be told of servers that are lost, refuse or come back. Without one,
/// nothing is said anywhere.
///
/// It is called at the end of calls that ask servers, on the thread that made the call, and the call
/// holds nothing any more then, not even its lease. So it may call this library, with any lease; wait
/// for calls of other threads; free the manager; or fork (then the call ends in the child with
/// REDLOCK_FORKED).
/// It must not unwind (longjmp, throw) through the library. Its time passes for the lock as well: one
/// that is over by then is REDLOCK_TOO_SLOW, or REDLOCK_LOST if it was held before.
///
/// For one manager it is never called by two threads at once, nor from within itself, so lines come in
/// their order: the thread that tells goes on with lines of other threads, and with those of its own
/// calls. What comes up
/// in a call that takes long, as RedLock_TryLock may, is told when that call ends, or another one on
/// this manager. Up to 256 lines of 64 KiB in all wait for it; then the oldest are left out, and a line
/// tells how many.
///
/// @param rl        the manager.
/// @param callback  the function, or NULL for silence.
/// @param user_data handed to the function as it is; may be NULL. Another thread may be using it when
///                  this function, or RedLock_Free, returns: it must stay valid until all calls on the
///                  manager that had begun by then are over. Who cannot tell when that is uses
///                  RedLock_SetLoggerWithDestroy.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetLogger(
    rl: *mut RedLock,
    callback: RedLockLogger,
    user_data: *mut c_void,
) -> RedLockStatus {
    set_logger(rl, callback, UserData::new(user_data, None))
}

/// RedLock_SetLogger with a function that is told when nobody uses user_data any more.
///
/// @param rl        the manager.
/// @param callback  as for RedLock_SetLogger.
/// @param user_data as for RedLock_SetLogger. It belongs to the manager from now on, also if this
///                  function fails.
/// @param destroy   is called exactly once, with user_data: when another logger was set, or the manager
///                  was freed, and the last call that might use it is over. At once, before this
///                  function returns, if callback is NULL or anything but REDLOCK_OK is returned. It is
///                  called by the thread that was the last to need user_data: in this function, in
///                  RedLock_Free, or at the end of a call on the manager, with nothing held: it may call
///                  this library, but the manager may have been freed. It must not unwind through the
///                  library. It is not called in a forked child for what was set by the parent: what the
///                  child has is a copy, and ends with it. NULL, if nobody needs to be told.
/// @return as for RedLock_SetLogger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetLoggerWithDestroy(
    rl: *mut RedLock,
    callback: RedLockLogger,
    user_data: *mut c_void,
    destroy: RedLockDestroy,
) -> RedLockStatus {
    set_logger(rl, callback, UserData::new(user_data, destroy))
}

/// What went wrong in the last call on this manager that has no lease: RedLock_AddServerUrl,
/// RedLock_Connect, RedLock_Set..., RedLock_IsLocked, RedLock_Inspect, or one whose lease was NULL. RedLock_NextEvent,
/// RedLock_Descriptor and RedLock_Cancel change it only if they fail: a thread that takes events leaves the
/// words of other threads' calls alone.
///
/// @param rl the manager, or NULL.
/// @return words for a person, at most 4095 bytes; empty if there is nothing to say. Whole words of one
///         call, of whichever thread, and they never change: after the next call, ask again. They belong
///         to the manager and live as long as it does. So that they can, a manager has bounds: once it
///         has handed out a megabyte of different words, times are left out of new ones ("no answer in
///         some ms"); after two, words that were never handed out before are replaced by a sentence that
///         says so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_ErrorMessage(rl: *const RedLock) -> *const c_char {
    match shared(rl) {
        Some(handle) => handle.message.as_ptr(),
        None => c"rl is NULL".as_ptr(),
    }
}

/// Copies what RedLock_ErrorMessage returns, and keeps nothing of it: for programs with many managers, or many
/// different words.
///
/// @param rl      the manager, or NULL.
/// @param message receives the words, cut to what there is room for, and a NUL. May be NULL if size is 0.
/// @param size    bytes of room, with the NUL; 4096 are enough for all.
/// @return how many bytes the words have, without the NUL: if that is not less than size, they were cut.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_CopyErrorMessage(
    rl: *const RedLock,
    message: *mut c_char,
    size: usize,
) -> usize {
    let words = shared(rl).map(|handle| handle.message.words());
    copy_words(&words.unwrap_or_else(|| c"rl is NULL".to_owned()), message, size)
}

fn set_logger(rl: *mut RedLock, callback: RedLockLogger, user_data: UserData) -> RedLockStatus {
    // Also while `user_data` is destroyed that nobody took.
    let _uncancelled = Uncancelled::new();
    manager_call(rl, |handle| handle.manager.set_logger(logger(callback, user_data)))
}

/// The C function and its argument as a logger of the manager.
fn logger(callback: RedLockLogger, user_data: UserData) -> Option<Logger> {
    let function = callback?;
    Some(Arc::new(move |level, message: &str| {
        let message = super::message::c_string(message);
        // SAFETY: `function` is what the caller gave as a RedLockLogger, for this user_data, and
        // `message` is a C string that outlives the call.
        unsafe { function(level as i32, message.as_ptr(), user_data.pointer()) }
    }))
}
