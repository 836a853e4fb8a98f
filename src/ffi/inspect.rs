//! The C function that reports the state of a resource, and the struct that it fills.

use std::ffi::c_char;
use std::mem::offset_of;

use super::acquire::{REDLOCK_EXCLUSIVE, REDLOCK_SHARED, permits_of};
use super::arguments::{Versioned, bytes, text, versioned, words, write_versioned};
use super::call::manager_call;
use super::handle::RedLock;
use super::status::RedLockStatus;
use crate::manager::inspection::{Inspection, Permits};
use crate::manager::redlock::RedLock as Manager;
use crate::protocol::error::Error;

/// The state of a resource, from RedLock_Inspect. Begin with REDLOCK_INFO_INIT.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockInfo {
    /// sizeof(RedLockInfo).
    pub size: usize,
    /// 1 if somebody holds the resource on a quorum, else 0.
    pub locked: i32,
    /// How the resource is held: REDLOCK_EXCLUSIVE (also if nobody holds it) or REDLOCK_SHARED. Later
    /// versions may add values.
    pub mode: i32,
    /// How long the resource is still held, in milliseconds, if the lock is neither extended nor released: until
    /// fewer than a quorum of the servers have it. If the first servers that answer have it for different times,
    /// the others are waited for, for as long as a server may take to answer.
    /// -1: forever, as with a program that set no TTL. 0: the lock is just expiring, or the user may not ask
    /// (PTTL), or nobody holds the resource.
    pub remaining_ms: i64,
    /// The number of holders at the same time, in a mode that allows several: a quorum of servers has at
    /// least this many. Else 0.
    pub readers: i64,
    /// After REDLOCK_OK: which servers could not answer, and why; empty if all servers that were needed could
    /// answer. After a failure: what was wrong. Ends with a NUL; a longer text is cut.
    pub words: [c_char; 1024],
    /// Set this before the call. 0: the resource is a lock. More than 0: the resource is a semaphore with
    /// this many permits, at most 256. `locked` is then 1 if all permits are taken. `remaining_ms` is then
    /// the time until the first of the taken permits expires.
    pub permits: i32,
    /// The number of permits that are taken.
    pub permits_taken: i32,
}

// SAFETY: the struct consists of numbers, and begins with its size. Of the values that a program sets, only
// the size and the permits are read.
unsafe impl Versioned for RedLockInfo {
    const LEAST: usize = offset_of!(Self, permits);
    const INIT: &'static str = "REDLOCK_INFO_INIT";
}

/// The content if nothing is known.
const NONE: RedLockInfo = RedLockInfo {
    size: 0,
    locked: 0,
    mode: REDLOCK_EXCLUSIVE,
    remaining_ms: 0,
    readers: 0,
    words: [0; 1024],
    permits: 0,
    permits_taken: 0,
};

/// Asks the servers whether anybody holds a resource, and for how long. The resource counts as held if it is
/// held on a quorum, and the lock of any client is found. All servers are asked at once. If readers hold the
/// resource, the servers are asked again for the number of readers. Nothing is changed on the servers. The
/// answer may be out of date when it arrives: only taking the lock tells whether it is free. For a semaphore,
/// set `info->permits` to its number of permits: the call then reports how many are taken.
///
/// @param rl            the manager.
/// @param resource      as for RedLock_Lock.
/// @param resource_size the size of the resource in bytes, so that it may contain a NUL. 0: the resource ends
///                      at its NUL.
/// @param info          receives the answer. On failure it says that nobody holds the resource. Its size must
///                      be set.
/// @return REDLOCK_OK. REDLOCK_UNREACHABLE: too few servers answered to tell; also while a server is down and
///         those that answered differ, as they do for a moment when a lock ends. REDLOCK_INVALID_ARGUMENT,
///         REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this is the child), REDLOCK_INTERNAL.
///         RedLock_ErrorMessage(rl) also returns the message. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Inspect(
    rl: *mut RedLock,
    resource: *const c_char,
    resource_size: usize,
    info: *mut RedLockInfo,
) -> RedLockStatus {
    let asked = versioned(info.cast_const(), NONE, "info");
    let (size, permits) =
        (asked.as_ref().map(|it| it.size), asked.as_ref().map_or(0, |it| it.permits));
    let fill = |found: RedLockInfo, said: &str| {
        if let Ok(size) = size {
            let found = RedLockInfo { size, permits, words: words(said), ..found };
            write_versioned(info, &found, size);
        }
    };
    fill(NONE, if rl.is_null() { "rl is NULL" } else { "" });
    manager_call(rl, |handle| {
        size.map_err(Clone::clone)?;
        let ask = || {
            let resource = match resource_size {
                0 => text(resource, "resource")?,
                size => bytes(resource, size, "resource")?,
            };
            look(&handle.manager, resource, permits)
        };
        let answer = ask();
        // A logger may have made calls of its own, which have left their messages.
        handle.message.set("");
        let (found, absent) = answer.inspect_err(|error| fill(NONE, &error.to_string()))?;
        fill(found, &absent);
        Ok(())
    })
}

/// Asks about a lock, or about a semaphore with this number of permits. Also returns a message about servers
/// that could not answer.
fn look(manager: &Manager, resource: &[u8], permits: i32) -> Result<(RedLockInfo, String), Error> {
    if permits == 0 {
        let Inspection { left_ms, readers, absent } = manager.inspect(resource)?;
        let (locked, remaining_ms) = (i32::from(left_ms.is_some()), left_ms.unwrap_or(0));
        let mode = readers.map_or(REDLOCK_EXCLUSIVE, |_| REDLOCK_SHARED);
        let readers = readers.unwrap_or(0);
        return Ok((RedLockInfo { locked, mode, remaining_ms, readers, ..NONE }, absent));
    }
    let of = permits_of(permits)?;
    let Permits { taken, left_ms, absent } = manager.inspect_permits(resource, of)?;
    let (locked, remaining_ms) = (i32::from(taken == of), left_ms.unwrap_or(0));
    Ok((RedLockInfo { locked, remaining_ms, permits_taken: taken.into(), ..NONE }, absent))
}
