//! The C functions of the lock manager.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::arguments::{copy_words, text};
use super::call::{manager_call, side_call};
use super::callback::{RedLockDestroy, UserData};
use super::guard::guard;
use super::handle::{RedLock, shared};
use super::status::RedLockStatus;
use crate::manager::log::Logger;
use crate::manager::redlock::RedLock as Manager;
use crate::protocol::error::Error;
use crate::system::cancellation::Uncancelled;

/// A function that receives log lines. A line says that a server is lost, refuses or comes back, and why.
/// Similar lines are reported once a second, with a count of the lines left out. See RedLock_SetLogger.
///
/// @param level     1: a server fault that may affect a lock. 2: a repaired fault, or another fact that may
///                  interest a reader of logs. 3: an event of a lock, if RedLock_SetTracing asks for that.
///                  More values may be added later.
/// @param message   one line without a line end, valid during the call only.
/// @param user_data the value that was passed to RedLock_SetLogger.
pub type RedLockLogger =
    Option<unsafe extern "C" fn(level: i32, message: *const c_char, user_data: *mut c_void)>;

/// Creates a lock manager without servers and with the default settings.
///
/// @return the manager. The caller owns it and must free it with RedLock_Free. NULL if the manager could not
///         be created. No I/O. Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn RedLock_New() -> *mut RedLock {
    let made = guard(|| {
        let (message, kept_log, language) = Default::default();
        let handle = RedLock { manager: Manager::new(), message, kept_log, language };
        Ok(Arc::into_raw(Arc::new(handle)).cast_mut())
    });
    made.unwrap_or(ptr::null_mut())
}

/// Frees a manager. This function does not wait. Held locks stay held until they expire, and their leases
/// stay valid handles. Submitted calls are cancelled, and locks are no longer kept alive. From then on, only
/// an event callback receives events (RedLock_SetEventCallback).
///
/// Other threads finish the calls that they have begun, and may use callbacks with their user_data until
/// then. RedLock_NextEvent returns. The connections are closed, as at the end of the process. A server that
/// had fallen behind the others may therefore not carry out the last releases. It then keeps those keys until
/// their TTL expires.
///
/// @param rl a manager, or NULL, which does nothing. The manager must not be used after this call, nor freed
///           twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Free(rl: *mut RedLock) {
    let _ = guard(|| {
        if !rl.is_null() {
            // SAFETY: `rl` came from RedLock_New's Arc::into_raw and, as the contract of this
            // function says, is given back only once.
            let handle = unsafe { Arc::from_raw(rl.cast_const()) };
            // In a child, the handle may stay alive because of a thread that exists only in the parent.
            handle.manager.close_inherited();
            // Nobody can take events any more: submitted calls end, and calls that wait for events return.
            handle.manager.abandon();
        }
        Ok(())
    });
}

/// Adds a server. All clients that must exclude each other must add the same servers. Each server must be an
/// independent primary. The quorum is more than half of the servers added, including servers that are down.
/// No I/O: an unreachable server shows at the first lock.
///
/// @param rl          the manager.
/// @param host_or_url a host name or an IPv4 or IPv6 address, with its port in the port parameter. With
///                    port 0: host:port ([address]:port for IPv6), or a whole URL. A URL is
///                    redis://[user][:password@]host[:port][/database], unix:///path or redis+unix:///path.
///                    The last two accept ?db=, &user= and &pass=. With rediss:// in place of redis://, TLS
///                    is used. valkey:// and its variants mean the same. A URL can also be
///                    redis-sentinel://[user][:password@]hosts/master[/database], where hosts is
///                    host[:port][,host[:port]...]. It names the master that these Sentinels report under
///                    this name, and counts as one voter. With rediss-sentinel://, the Sentinels and the
///                    master are reached over TLS. The user and the password are those of the master. Those
///                    of the Sentinels are ?sentinel_username= and &sentinel_password=. After a failover, the
///                    new master has no vote until every lock that may be unknown to it has ended.
///                    redis-cluster://[user][:password@]hosts?tag=name names the node of a Redis Cluster that
///                    has the slot of the tag, and counts as one voter, too. All keys there have the tag in
///                    braces before their names. A tag is 1 to 32 of A-Z, a-z, 0-9, ".", "-" and "_";
///                    "redlock" if there is none. Masters of one cluster are several voters if each has a tag
///                    of its own. In a URL,
///                    IPv6 addresses must be in brackets, and users and passwords must be percent-encoded.
///                    An address on one link has a zone: fe80::1%eth0, or in a URL [fe80::1%25eth0].
///                    RedLock_SetCredentials needs no encoding. The system's resolver looks up a name, which
///                    may block. An address never blocks.
/// @param port        1 to 65535. 0 if host_or_url names the port, as host:port and URLs do.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT: an argument is malformed; the same server was added before,
///         or a master of the same name that one of the same Sentinels watches; there are already 64 servers;
///         or the list is closed. The first call that asks servers or connects to them closes the list. Also
///         for rediss:// if this build has no TLS. RedLock_ErrorMessage(rl) names the fault.
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

/// Connects to the servers now instead of at the first lock. Optional. Returns when a quorum is connected,
/// after a moment for the other servers to follow.
///
/// @param rl         the manager.
/// @param timeout_ms how long to wait at most, in milliseconds. 0: as long as connecting may take
///                   (RedLock_SetTimeouts).
/// @return REDLOCK_OK if a quorum is connected. RedLock_ErrorMessage(rl) then names the servers that are not
///         connected, have no vote, or are not guarded. It is empty if there are none.
///         REDLOCK_UNREACHABLE if too few servers could be reached. The message then
///         gives the reason for each server. REDLOCK_NO_SERVERS, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED (a
///         callback forked, and this process is the child), REDLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Connect(rl: *mut RedLock, timeout_ms: i64) -> RedLockStatus {
    manager_call(rl, |handle| {
        let absent = handle.manager.connect(timeout_ms)?;
        handle.message.set(&absent);
        Ok(())
    })
}

/// Looks up the names that submitted calls wait for (RedLock_IsLookUpDue), and those of servers that may have moved:
/// those that have been unreachable for 2 s, and those whose addresses are not known yet. If a server is down while a quorum is up, no call lacks it, so no call looks up its
/// name. If all servers move, one after the other (a rolling restart under Kubernetes), a lock that is kept for long
/// would be lost. The pauses between two look-ups of a name grow to a minute. A server that has moved is connected
/// to, and takes part again with the next call or renewal. The background thread (RedLock_SetBackgroundThread) does
/// this by itself. Without it, a program that keeps locks for long calls this function, for example every few
/// seconds or whenever RedLock_IsLookUpDue says so, in a thread that may wait.
///
/// @param rl the manager.
/// @return REDLOCK_OK, also if no name was due or a name is not known: RedLock_Servers and the logger tell that.
///         This waits for the system's resolver, perhaps for many seconds, and holds up no other call on the
///         manager. REDLOCK_NO_SERVERS, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED (a callback forked, and this
///         process is the child), REDLOCK_INTERNAL. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_LookUp(rl: *mut RedLock) -> RedLockStatus {
    side_call(rl, |handle| handle.manager.look_up().map(|()| RedLockStatus::REDLOCK_OK))
}

/// Whether RedLock_LookUp would ask the system's resolver now for a call that is under way or a lock that is kept
/// alive. A program with an event loop of its own asks this once before its first call, and whenever RedLock_NextEvent
/// or RedLock_Wait has returned without a result. It has RedLock_LookUp called in a thread that may wait. From the first
/// time on, RedLock_NextEvent and RedLock_Wait leave the resolver to that thread: a submitted call that needs a name
/// waits for it, until it is cancelled. Calls that block still look up names themselves. This function does not wait.
///
/// @param rl the manager, or NULL.
/// @return true if a look-up is due. false if none is, if no call has used the servers in this process, or if rl is
///         NULL. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_IsLookUpDue(rl: *const RedLock) -> bool {
    guard(|| Ok(shared(rl).is_some_and(|handle| handle.manager.is_look_up_due()))).unwrap_or(false)
}

/// Sets the number of tries, and the pause between two tries. RedLock_Lock and RedLock_ContinueLock make this
/// number of tries. Their pause is random in [delay_ms / 2, 3 * delay_ms / 2), as in the CRedLock class.
/// There is no pause after the last try. RedLock_TryLock begins with shorter pauses, and its pauses are
/// shorter than 3 * delay_ms / 2. A caller that waits to be woken (RedLock_SetWaking), or cannot reach the
/// servers, may pause for longer.
///
/// @param rl       the manager.
/// @param count    total number of tries, at least 1. Default 3.
/// @param delay_ms mean pause in milliseconds, at least 0. Default 200.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetRetry(
    rl: *mut RedLock,
    count: c_int,
    delay_ms: c_int,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.settings().set_retry(count, delay_ms))
}

/// Sets how long calls wait for a server.
///
/// @param rl         the manager.
/// @param connect_ms timeout for connecting, including the login, in milliseconds. 1 to 86400000 (a day).
///                   Default 1500.
/// @param reply_ms   timeout for a reply on an established connection, in milliseconds. 0 to 86400000. 0, the
///                   default, means a twentieth of the TTL, at least 25 and at most 500. This is the advice
///                   of the Redlock page (5 to 50 ms for a TTL of 10 s), rounded up for slow networks. If a
///                   server owes a reply for four times as long, and for at least a second, a second
///                   connection to it is opened. The first connection is closed when no key that was
///                   requested over it can be left.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTimeouts(
    rl: *mut RedLock,
    connect_ms: i64,
    reply_ms: i64,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.settings().set_timeouts(connect_ms, reply_ms))
}

/// Sets how much faster a server's clock may run than this machine's. A lock of ttl_ms is valid for
/// ttl_ms - ceil(ttl_ms * factor) - 2 ms, less the time that the call took. The 2 ms cover the precision of
/// expiry in Redis.
///
/// @param rl     the manager.
/// @param factor at least 0, less than 1. Default 0.01, as in the Redlock page.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetClockDriftFactor(
    rl: *mut RedLock,
    factor: f64,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.settings().set_drift(factor))
}

/// Sets the logger: a function that is called when servers are lost, refuse or come back. Without a logger,
/// the library reports nothing anywhere.
///
/// The logger is called at the end of calls that ask servers, on the thread that made the call. The thread of
/// RedLock_SetBackgroundThread, and threads in RedLock_NextEvent and RedLock_Wait, call it at once while they do the
/// work that is due. At that point the thread holds nothing, not even a lease.
/// The logger may therefore call this library with any lease, wait for calls of other threads, free the
/// manager, or fork. If it forks, the call ends in the child with REDLOCK_FORKED. The logger must not unwind
/// (longjmp, throw) through the library. The time that the logger takes counts against the lock's validity.
/// If the lock has expired when the logger returns, the call returns REDLOCK_TOO_SLOW, or REDLOCK_LOST if the
/// lock was held before the call.
///
/// For one manager, the logger is never called by two threads at once, nor from within itself. Lines
/// therefore come in their order: the thread that calls the logger also reports the lines of other threads,
/// and the lines of calls that the logger makes. Lines that arise while a long call such as RedLock_TryLock does the
/// work that is due are reported when that call ends, or when another call on this manager ends. Up to
/// 256 lines, 64 KiB in total, wait to be reported. Beyond that, the oldest lines are left out, and one line
/// reports how many.
///
/// @param rl        the manager.
/// @param callback  the function, or NULL for no logger.
/// @param user_data passed to the function unchanged; may be NULL. When this function or RedLock_Free
///                  returns, another thread may still be using user_data. It must stay valid until all calls
///                  on the manager that had begun by then have ended: destroy tells when that is.
/// @param destroy   called once, with user_data, when the library no longer needs user_data. That is when
///                  another logger was set or the manager was freed, and every call that might use
///                  user_data has ended. If callback is NULL, or this function fails, destroy is called
///                  before this function returns. The last thread that needed user_data calls destroy: in
///                  this function, in RedLock_Free, at the end of a call on the manager, or on the thread of
///                  RedLock_SetBackgroundThread. The library holds nothing then. destroy may call the
///                  library, but the manager may have been freed. destroy must not unwind (longjmp, throw)
///                  through the library. A forked child has only a copy of its parent's user_data, and does
///                  not call destroy for it. NULL: nobody needs to be told.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetLogger(
    rl: *mut RedLock,
    callback: RedLockLogger,
    user_data: *mut c_void,
    destroy: RedLockDestroy,
) -> RedLockStatus {
    // Also while a `user_data` that was not stored is destroyed.
    let _uncancelled = Uncancelled::new();
    let user_data = UserData::new(user_data, destroy);
    manager_call(rl, |handle| handle.manager.set_logger(logger(callback, user_data)))
}

/// Returns the message of the last call on this manager that has no lease. Such calls are
/// RedLock_AddServerUrl, RedLock_Connect, RedLock_Set..., RedLock_IsLocked, RedLock_Inspect, and any call
/// whose lease was NULL. RedLock_NextEvent, RedLock_Descriptor and RedLock_Cancel change the message only if
/// they fail. A thread that takes events therefore leaves the messages of other threads' calls unchanged.
///
/// @param rl the manager, or NULL.
/// @return a human-readable text of at most 4095 bytes; empty if there is nothing to report. It is the
///         complete message of one call, of any thread. The string never changes: after the next call, call
///         this function again. The string belongs to the manager and lives as long as the manager. The
///         manager therefore limits its messages. After it has handed out a megabyte of different messages,
///         it leaves times out of new ones ("timed out after some ms"). After two megabytes, a sentence that
///         says so replaces messages that were never handed out before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_ErrorMessage(rl: *const RedLock) -> *const c_char {
    match shared(rl) {
        Some(handle) => handle.message.as_ptr(),
        None => c"rl is NULL".as_ptr(),
    }
}

/// Copies the message of RedLock_ErrorMessage, and keeps nothing of it. For programs with many managers, or
/// many different messages.
///
/// @param rl      the manager, or NULL.
/// @param message receives the text, truncated to the size of the buffer, and a NUL. May be NULL if size is 0.
/// @param size    the size of the buffer in bytes, including the NUL; 4096 is enough for every message.
/// @return the length of the text in bytes, without the NUL. If it is not less than size, the text was
///         truncated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_CopyErrorMessage(
    rl: *const RedLock,
    message: *mut c_char,
    size: usize,
) -> usize {
    let words = shared(rl).map(|handle| handle.message.words());
    copy_words(&words.unwrap_or_else(|| c"rl is NULL".to_owned()), message, size)
}

/// Wraps the C function and its argument as a logger of the manager.
fn logger(callback: RedLockLogger, user_data: UserData) -> Option<Logger> {
    let function = callback?;
    Some(Arc::new(move |level, message: &str| {
        let message = super::message::c_string(message);
        // SAFETY: the caller passed `function` as a RedLockLogger for this user_data, and `message` is a C
        // string that outlives the call.
        unsafe { function(level as i32, message.as_ptr(), user_data.pointer()) }
    }))
}
