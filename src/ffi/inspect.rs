//! The C function that tells what is known of a resource, and the struct that it fills.

use std::ffi::c_char;
use std::mem::offset_of;

use super::acquire::{REDLOCK_EXCLUSIVE, REDLOCK_SHARED, permits_of};
use super::arguments::{Versioned, bytes, text, versioned, words, write_versioned};
use super::call::{manager_call, told};
use super::handle::RedLock;
use super::status::RedLockStatus;
use crate::blocking::{Inspection, Permits};
use crate::error::Error;
use crate::redlock::RedLock as Manager;

/// What RedLock_Inspect tells of a resource. Begin with REDLOCK_INFO_INIT.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockInfo {
    /// sizeof(RedLockInfo).
    pub size: usize,
    /// 1 if somebody holds it on a quorum, else 0.
    pub locked: i32,
    /// How it is held: REDLOCK_EXCLUSIVE, as well if nobody holds it, or REDLOCK_SHARED. Other values may follow.
    pub mode: i32,
    /// For how long it is held still, in milliseconds, if it is neither extended nor released. -1: for ever, as by
    /// a program that has set no TTL. 0: it ends just now, or the user may not ask (PTTL), or nobody holds it.
    pub remaining_ms: i64,
    /// How many hold it at the same time in a mode in which several may: so many as a quorum of servers has at
    /// the least; else 0.
    pub readers: i64,
    /// After REDLOCK_OK: which servers could not answer, and why; empty if all that were needed could. After a
    /// failure: what was wrong. It ends with a NUL; longer words are cut.
    pub words: [c_char; 1024],
    /// To be set before the call. 0: the resource is a lock. More than 0: a semaphore of so many permits, at most 256.
    /// Then `locked` is 1 if all are taken, and `remaining_ms` is for how long the first of those that are taken still
    /// is.
    pub permits: i32,
    /// How many of them are taken.
    pub permits_taken: i32,
}

// SAFETY: it is made of numbers, and begins with its size. What a program has put there is never looked at, but
// for the size and the permits.
unsafe impl Versioned for RedLockInfo {
    const LEAST: usize = offset_of!(Self, permits);
    const INIT: &'static str = "REDLOCK_INFO_INIT";
}

/// What stands there if nothing is known.
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

/// Asks the servers whether anybody holds a resource, on a quorum, and for how long still: any client's lock is
/// found. All servers are asked at once, and once more if readers have it, for their number; nothing is changed. The
/// answer may be out of date when it arrives: to take a lock, take it. Of a semaphore, `info->permits` says how many
/// permits it has: it tells how many are taken.
///
/// @param rl            the manager.
/// @param resource      as for RedLock_Lock.
/// @param resource_size how many bytes it has, so that a NUL may be one of them; 0: up to the NUL.
/// @param info          receives the answer: nobody holds it, on failure. Its size must be set.
/// @return REDLOCK_OK. REDLOCK_UNREACHABLE: so few servers answered that nobody can say. REDLOCK_INVALID_ARGUMENT,
///         REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this is the child), REDLOCK_INTERNAL.
///         RedLock_ErrorMessage(rl) has the words, too. Any thread may call this.
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
        let (answer, _) = told(&handle.manager, ask);
        // A logger may have made calls of its own, and they have left their words.
        handle.message.set("");
        let (found, absent) = answer.inspect_err(|error| fill(NONE, &error.to_string()))?;
        fill(found, &absent);
        Ok(())
    })
}

/// Asks about a lock, or about a semaphore of so many permits. Returns words about servers that could not answer, too.
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
