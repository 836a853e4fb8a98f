//! The C function that takes a lock in any way, and its options.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use super::arguments::{Versioned, bytes, text, texts, versioned};
use super::call::lease_call;
use super::event::Tag;
use super::handle::RedLock;
use super::lease::{RedLockLease, held_lease};
use super::status::RedLockStatus;
use crate::check::RESOURCES_MAX;
use crate::error::{Error, Status};
use crate::lock_kind::LockKind;
use crate::redlock::AcquireOptions;
use crate::slot_set::SLOTS_MAX;

/// How a lock is to be taken. Begin with REDLOCK_ACQUIRE_OPTIONS_INIT: then what later versions add has its
/// default, as 0 is the default of every field.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockAcquireOptions {
    /// sizeof(RedLockAcquireOptions).
    pub size: usize,
    /// What to lock: 1 to 65536 bytes. It is the name of the key on the servers, as given. NULL if there are
    /// several.
    pub resource: *const c_char,
    /// How many bytes that is, so that a NUL may be one of them; 0: up to the NUL.
    pub resource_size: usize,
    /// Several resources, to be locked at once: all of them, or none. So many strings, each the name of a key on
    /// the servers and different from the others, in any order; 65536 bytes in all. NULL if there is one.
    pub resources: *const *const c_char,
    /// How many they are: 1 to 128; 0 if there is one resource.
    pub resource_count: usize,
    /// How long the lock lasts unless it is extended or released, as for RedLock_Lock.
    pub ttl_ms: i64,
    /// 0: one attempt. More than 0: try until so long has passed. Less than 0: until the lock is had. The
    /// pauses are those of RedLock_TryLock.
    pub wait_ms: i64,
    /// More than 0: so many tries, with the pauses of RedLock_Lock; wait_ms is not looked at. 0: as wait_ms
    /// says.
    pub tries: i32,
    /// REDLOCK_EXCLUSIVE or REDLOCK_SHARED.
    pub mode: i32,
    /// 0: a lock. More than 0: one permit of a semaphore that has so many, at most 256. Then so many may have the
    /// resource at the same time, if all say the same number; if not, as many as the greatest of these. 1 is the
    /// same as a lock, and who locks the resource uses one permit.
    pub permits: i32,
    /// Not 0: the lock is kept until it is unlocked, as by RedLock_KeepAlive.
    pub keep_alive: i32,
}

// SAFETY: it is made of numbers and pointers, and begins with its size.
unsafe impl Versioned for RedLockAcquireOptions {
    const LEAST: usize = size_of::<Self>();
    const INIT: &'static str = "REDLOCK_ACQUIRE_OPTIONS_INIT";
}

/// For `mode`: nobody else has the lock at the same time.
pub const REDLOCK_EXCLUSIVE: i32 = 0;

/// For `mode`: others may have it at the same time that want it so, too. Those are readers, and who has it alone is a
/// writer; RedLock_Lock and every other Redlock client are writers. Each has it on a quorum.
///
/// Readers stand in a key that is named as the resource with :r behind it, and a writer that waits says so in one with
/// :i. So do not lock a resource of such a name, beside one that is locked shared. While a writer waits, no reader is let
/// in that comes later, in this process or another; one that is there may be extended. A shared lock has no
/// fencing token, and is never made an exclusive one; the other way it goes, by RedLock_Downgrade. The user needs the
/// right to use these keys, and EVAL, GET, SET, DEL, TYPE, TIME, PTTL, PEXPIREAT, ZADD, ZREM, ZRANGE, ZSCORE, ZCARD, ZCOUNT and
/// ZREMRANGEBYSCORE.
pub const REDLOCK_SHARED: i32 = 1;

/// Takes a lock as the options say, and waits for that: RedLock_Lock and RedLock_TryLock are short forms of
/// it. Callers wait in a queue as for RedLock_Lock.
///
/// Several resources (`resources`) are one lock, with one token, one validity and one fencing token: it is had on a
/// server when all of its keys are set there, in one step, and none is set where one of them is another's. It is extended as a
/// whole, and lost as a whole. Each key is that of a lock of this resource alone, so everybody who locks one of them
/// is kept out, and keeps this lock out. Who wants { a, b } and who wants { b, a } never wait for each other. The words
/// tell which resource is in the way by its number: "resource 3 of 5 held by another (8211 ms left)".
///
/// In the queue of this manager, who wants several resources keeps one that is free from others for 100 ms at most while it
/// waits for the rest; then they come first, until what it waits for is let go of.
///
/// @param rl      the manager.
/// @param options how; read during the call only.
/// @param lease   as for RedLock_Lock.
/// @return as for RedLock_Lock, and REDLOCK_CANCELLED: RedLock_Cancel ended the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Acquire(
    rl: *mut RedLock,
    options: *const RedLockAcquireOptions,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::TooSlow, |manager, own| {
        let options = read(options)?;
        let keep = |handle| Tag::new(&handle, ptr::null_mut()).boxed();
        let keep = if options.keep_alive == 0 { None } else { held_lease(lease).map(keep) };
        manager.acquire(AcquireOptions { keep, ..plain(&options)? }, own)
    })
}

/// The same for callers that must not block for long, as RedLock_TryLockSlice for RedLock_TryLock: this call is a
/// slice of the wait, and the next one with the same lease and options goes on with it.
///
/// @param rl       the manager.
/// @param options  how; read during the call only. wait_ms is how much of the wait is left, and tries has to be 0.
/// @param slice_ms how long this call may wait, at least 0; see RedLock_TryLockSlice.
/// @param lease    as for RedLock_TryLockSlice.
/// @return as for RedLock_Acquire.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_AcquireSlice(
    rl: *mut RedLock,
    options: *const RedLockAcquireOptions,
    slice_ms: i64,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    lease_call(rl, lease, Status::TooSlow, |manager, own| {
        let options = read(options)?;
        if slice_ms < 0 {
            return Err(Error::invalid(format!("slice_ms is {slice_ms}, less than 0")));
        }
        if options.tries != 0 {
            let words = format!("tries is {}, and a wait in slices goes by wait_ms", options.tries);
            return Err(Error::invalid(words));
        }
        let keep = |handle| Tag::new(&handle, ptr::null_mut()).boxed();
        let keep = if options.keep_alive == 0 { None } else { held_lease(lease).map(keep) };
        manager.acquire(AcquireOptions { slice_ms: Some(slice_ms), keep, ..plain(&options)? }, own)
    })
}

/// A copy of the options, as this version knows them.
pub(super) fn read(options: *const RedLockAcquireOptions) -> Result<RedLockAcquireOptions, Error> {
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

/// The options without what a lock is kept for.
pub(super) fn plain<'a>(options: &RedLockAcquireOptions) -> Result<AcquireOptions<'a>, Error> {
    let kind = kind(options)?;
    let (resource, kind) = match several(options)? {
        Some(names) => of_several(&names, kind)?,
        None if options.resource_size == 0 => (text(options.resource, "resource")?, kind),
        None => (bytes(options.resource, options.resource_size, "resource")?, kind),
    };
    let &RedLockAcquireOptions { ttl_ms, wait_ms, tries, .. } = options;
    Ok(AcquireOptions { resource, kind, ttl_ms, wait_ms, tries, slice_ms: None, keep: None })
}

/// What kind of lock is wanted. No more than one of the fields that say so may differ from its default.
fn kind(options: &RedLockAcquireOptions) -> Result<LockKind, Error> {
    if options.permits != 0 {
        return permits(options);
    }
    match options.mode {
        REDLOCK_EXCLUSIVE => Ok(LockKind::Exclusive),
        REDLOCK_SHARED => Ok(LockKind::Shared),
        mode => Err(Error::invalid(format!("mode is {mode}, which is none"))),
    }
}

/// The names of several resources, if these are wanted.
fn several<'a>(options: &RedLockAcquireOptions) -> Result<Option<Vec<&'a [u8]>>, Error> {
    let &RedLockAcquireOptions { resources, resource_count: count, .. } = options;
    let wrong = |words: &str| Err(Error::invalid(words));
    match (resources.is_null(), count) {
        (true, 0) => return Ok(None),
        (true, _) => return wrong("resources is NULL, and resource_count is not 0"),
        (false, 0) => return wrong("resource_count is 0, and resources is not NULL"),
        (false, 1..=RESOURCES_MAX) => {}
        (false, _) => {
            let words = format!("resource_count is {count}, more than {RESOURCES_MAX}");
            return Err(Error::invalid(words));
        }
    }
    if !options.resource.is_null() || options.resource_size != 0 {
        return wrong("resource and resources are both given: leave one of them out");
    }
    texts(resources, count, "resource").map(Some)
}

/// What is to be locked by these names. One is a lock as any other.
fn of_several<'a>(names: &[&'a [u8]], kind: LockKind) -> Result<(&'a [u8], LockKind), Error> {
    match (names, &kind) {
        (&[only], _) => Ok((only, kind)),
        (&[first, ..], LockKind::Exclusive) => {
            let names: Vec<Arc<[u8]>> = names.iter().map(|&name| Arc::from(name)).collect();
            Ok((first, LockKind::Several(Arc::from(names))))
        }
        _ => Err(Error::invalid("several resources can be locked exclusively only")),
    }
}

fn permits(options: &RedLockAcquireOptions) -> Result<LockKind, Error> {
    if options.mode != REDLOCK_EXCLUSIVE {
        return Err(Error::invalid("a permit of a semaphore has no mode: mode has to be 0"));
    }
    Ok(LockKind::Permit { of: permits_of(options.permits)? })
}

/// How many permits a semaphore has.
pub(super) fn permits_of(permits: i32) -> Result<u16, Error> {
    match u16::try_from(permits) {
        Ok(of @ 1..=SLOTS_MAX) => Ok(of),
        _ => {
            let words = format!("permits is {permits}, and a semaphore has 1 to {SLOTS_MAX}");
            Err(Error::invalid(words))
        }
    }
}
