//! The C functions that take a lock of any kind as their options say, and these options.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use super::arguments::{Versioned, bytes, text, texts, versioned};
use super::call::run;
use super::event::Tag;
use super::handle::RedLock;
use super::lease::{RedLockLease, held_lease};
use super::status::RedLockStatus;
use crate::manager::call::{AcquireOptions, Call, Patience};
use crate::protocol::check::RESOURCES_MAX;
use crate::protocol::error::Error;
use crate::protocol::lock_kind::LockKind;
use crate::protocol::slot_set::SLOTS_MAX;

/// How to take a lock. Initialize this with REDLOCK_ACQUIRE_OPTIONS_INIT, so that fields of later versions
/// have their defaults. 0 is the default of every field.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockAcquireOptions {
    /// sizeof(RedLockAcquireOptions).
    pub size: usize,
    /// The resource to lock: 1 to 65536 bytes. It is used unchanged as the name of the key on the servers.
    /// NULL if there are several resources.
    pub resource: *const c_char,
    /// The size of the resource in bytes, so that it may contain NULs. 0: the resource ends at its NUL.
    pub resource_size: usize,
    /// Several resources to lock at once: all of them, or none. The array holds resource_count strings in any
    /// order. Each is the name of a key on the servers and different from the others. 65536 bytes in total.
    /// NULL if there is one resource.
    pub resources: *const *const c_char,
    /// The number of strings in `resources`: 1 to 128. 0 if there is one resource.
    pub resource_count: usize,
    /// How long the lock lasts, in milliseconds, unless it is extended or released, as for RedLock_Lock.
    pub ttl_ms: i64,
    /// 0: one attempt. More than 0: try until this many milliseconds have passed. Less than 0: try until the
    /// lock is taken. The pauses are those of RedLock_TryLock.
    pub wait_ms: i64,
    /// More than 0: the number of tries, with the pauses of RedLock_Lock; wait_ms is ignored. 0: wait_ms
    /// applies.
    pub tries: i32,
    /// REDLOCK_EXCLUSIVE or REDLOCK_SHARED.
    pub mode: i32,
    /// 0: a lock. More than 0: one permit of a semaphore with this number of permits, at most 256. That many
    /// callers can then hold the resource at the same time if all give the same number. If the numbers
    /// differ, the greatest applies. 1 is the same as a lock. A caller that locks the resource uses one
    /// permit.
    pub permits: i32,
    /// Not 0: the lock is kept alive until it is unlocked, as by RedLock_KeepAlive. RedLock_Acquire refuses this if
    /// nothing drives the manager: see there.
    pub keep_alive: i32,
}

// SAFETY: the structure consists of numbers and pointers, and begins with its size.
unsafe impl Versioned for RedLockAcquireOptions {
    const LEAST: usize = offset_of!(Self, keep_alive) + size_of::<i32>();
    const INIT: &'static str = "REDLOCK_ACQUIRE_OPTIONS_INIT";
}

/// For `mode`: nobody else holds the lock at the same time.
pub const REDLOCK_EXCLUSIVE: i32 = 0;

/// For `mode`: other readers can hold the lock at the same time. A reader is a caller with this mode, and a
/// caller that holds the lock exclusively is a writer. RedLock_Lock and every other Redlock client are
/// writers. Each reader and each writer holds the lock on a quorum.
///
/// Readers are recorded in a key whose name is the resource followed by :r. A waiting writer announces itself
/// in a key whose name is the resource followed by :i. So do not lock resources with these names beside a
/// resource that is locked shared. While a writer waits, later readers do not get the lock, in this process
/// or in another. A reader that already holds the lock can still extend it. A shared lock has no fencing
/// token, and cannot be made exclusive. The reverse is possible with RedLock_Downgrade. The ACL user needs
/// the right to use these keys, and EVAL, GET, GETRANGE, SET, DEL, TIME, PTTL, PEXPIREAT, ZADD, ZREM, ZRANGE,
/// ZSCORE, ZCARD, ZCOUNT and ZREMRANGEBYSCORE.
pub const REDLOCK_SHARED: i32 = 1;

/// Takes a lock as the options say, and waits for it. RedLock_Lock and RedLock_TryLock are short forms of
/// this function. Callers wait in a queue as for RedLock_Lock.
///
/// Several resources (`resources`) are one lock, with one token, one validity and one fencing token. A server
/// grants the lock by setting all of its keys in one step. It sets no key if another holder has one of them.
/// The lock is extended as a whole, and lost as a whole. Each key is the same as for a lock of that resource
/// alone. This lock and every lock of one of its resources therefore exclude each other. A caller that wants
/// { a, b } and a caller that wants { b, a } never wait for each other. The message names the resource that
/// is in the way by its number: "resource 3 of 5 held by another client (8211 ms left)".
///
/// In the queue of this manager, a caller that waits for several resources keeps a free resource from other
/// callers for at most 100 ms. After that, the other callers come first, until the resource that it waits for
/// is released.
///
/// @param rl      the manager.
/// @param options the options; read during the call only.
/// @param lease   as for RedLock_Lock.
/// @return as for RedLock_Lock, and REDLOCK_CANCELLED: RedLock_Cancel ended the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Acquire(
    rl: *mut RedLock,
    options: *const RedLockAcquireOptions,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    run(rl, lease, call(options, lease, ptr::null_mut()))
}

/// The call of a program that takes a lock as its options say. If the lock cannot be kept, the event has this lease and
/// this value.
pub(super) fn call<'a>(
    options: *const RedLockAcquireOptions,
    lease: *mut RedLockLease,
    user_data: *mut c_void,
) -> Result<Call<'a>, Error> {
    let options = read(options)?;
    let keep = |lease: Arc<RedLockLease>| Tag::new(&lease, user_data).boxed();
    let keep = if options.keep_alive == 0 { None } else { held_lease(lease).map(keep) };
    Ok(Call::Acquire(AcquireOptions { keep, ..plain(&options)? }))
}

/// Returns a copy of the options as this version knows them.
fn read(options: *const RedLockAcquireOptions) -> Result<RedLockAcquireOptions, Error> {
    let none = RedLockAcquireOptions {
        size: 0,
        resource: ptr::null(),
        resource_size: 0,
        resources: ptr::null(),
        resource_count: 0,
        ttl_ms: 0,
        wait_ms: 0,
        tries: 0,
        mode: REDLOCK_EXCLUSIVE,
        permits: 0,
        keep_alive: 0,
    };
    let options = versioned(options, none, "options")?;
    if options.tries < 0 {
        return Err(Error::invalid(format!("tries is {}, less than 0", options.tries)));
    }
    Ok(options)
}

/// Converts the options, except for keep_alive.
fn plain<'a>(options: &RedLockAcquireOptions) -> Result<AcquireOptions<'a>, Error> {
    let kind = kind(options)?;
    let (resource, kind) = match several(options)? {
        Some(names) => of_several(&names, kind)?,
        None if options.resource_size == 0 => (text(options.resource, "resource")?, kind),
        None => (bytes(options.resource, options.resource_size, "resource")?, kind),
    };
    let &RedLockAcquireOptions { ttl_ms, wait_ms, tries, .. } = options;
    let patience = if tries > 0 { Patience::Tries(tries.into()) } else { Patience::Ms(wait_ms) };
    Ok(AcquireOptions { resource, kind, ttl_ms, patience, keep: None })
}

/// Returns the kind of lock that the options ask for. At most one of the fields that select the kind may
/// differ from its default.
fn kind(options: &RedLockAcquireOptions) -> Result<LockKind, Error> {
    if options.permits != 0 {
        return permits(options);
    }
    match options.mode {
        REDLOCK_EXCLUSIVE => Ok(LockKind::Exclusive),
        REDLOCK_SHARED => Ok(LockKind::Shared),
        mode => {
            Err(Error::invalid(format!("mode is {mode}: use REDLOCK_EXCLUSIVE or REDLOCK_SHARED")))
        }
    }
}

/// Returns the names of several resources, if the options name several.
fn several<'a>(options: &RedLockAcquireOptions) -> Result<Option<Vec<&'a [u8]>>, Error> {
    let &RedLockAcquireOptions { resources, resource_count: count, .. } = options;
    let wrong = |words: &str| Err(Error::invalid(words));
    match (resources.is_null(), count) {
        (true, 0) => return Ok(None),
        (true, _) => return wrong("resources is NULL, but resource_count is not 0"),
        (false, 0) => return wrong("resource_count is 0, but resources is not NULL"),
        (false, 1..=RESOURCES_MAX) => {}
        (false, _) => {
            let words = format!("resource_count is {count}: the maximum is {RESOURCES_MAX}");
            return Err(Error::invalid(words));
        }
    }
    if !options.resource.is_null() || options.resource_size != 0 {
        return wrong("resource and resources are both set: set only one");
    }
    texts(resources, count, "resources").map(Some)
}

/// Returns what these names lock. A single name is an ordinary lock.
fn of_several<'a>(names: &[&'a [u8]], kind: LockKind) -> Result<(&'a [u8], LockKind), Error> {
    match (names, &kind) {
        (&[only], _) => Ok((only, kind)),
        (&[first, ..], LockKind::Exclusive) => {
            let names: Vec<Arc<[u8]>> = names.iter().map(|&name| Arc::from(name)).collect();
            Ok((first, LockKind::Several(Arc::from(names))))
        }
        _ => Err(Error::invalid("a lock of several resources must be exclusive")),
    }
}

fn permits(options: &RedLockAcquireOptions) -> Result<LockKind, Error> {
    if options.mode != REDLOCK_EXCLUSIVE {
        return Err(Error::invalid("mode must be 0 for a semaphore permit"));
    }
    Ok(LockKind::Permit { of: permits_of(options.permits)? })
}

/// Checks the number of permits of a semaphore.
pub(super) fn permits_of(permits: i32) -> Result<u16, Error> {
    match u16::try_from(permits) {
        Ok(of @ 1..=SLOTS_MAX) => Ok(of),
        _ => {
            let words = format!("permits is {permits}: it must be 1 to {SLOTS_MAX}");
            Err(Error::invalid(words))
        }
    }
}
