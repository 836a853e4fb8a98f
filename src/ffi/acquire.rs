//! The C function that takes a lock in any way, and its options.

use std::ffi::c_char;
use std::ptr;

use super::arguments::{Versioned, bytes, text, versioned};
use super::call::lease_call;
use super::event::Tag;
use super::handle::RedLock;
use super::lease::{RedLockLease, held_lease};
use super::status::RedLockStatus;
use crate::error::{Error, Status};
use crate::lock_kind::LockKind;
use crate::redlock::AcquireOptions;

/// How a lock is to be taken. Begin with REDLOCK_ACQUIRE_OPTIONS_INIT: then what later versions add has its
/// default, as 0 is the default of every field.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockAcquireOptions {
    /// sizeof(RedLockAcquireOptions).
    pub size: usize,
    /// What to lock: 1 to 65536 bytes. It is the name of the key on the servers, as given.
    pub resource: *const c_char,
    /// How many bytes that is, so that a NUL may be one of them; 0: up to the NUL.
    pub resource_size: usize,
    /// For several resources at once. Not yet: NULL.
    pub resources: *const *const c_char,
    /// For several resources at once. Not yet: 0.
    pub resource_count: usize,
    /// How long the lock lasts unless it is extended or released, as for RedLock_Lock.
    pub ttl_ms: i64,
    /// 0: one attempt. More than 0: try until so long has passed. Less than 0: until the lock is had. The
    /// pauses are those of RedLock_TryLock.
    pub wait_ms: i64,
    /// More than 0: so many tries, with the pauses of RedLock_Lock; wait_ms is not looked at. 0: as wait_ms
    /// says.
    pub tries: i32,
    /// REDLOCK_EXCLUSIVE. Not yet: REDLOCK_SHARED.
    pub mode: i32,
    /// For a semaphore. Not yet: 0.
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

/// For `mode`: others may have it at the same time that want it so, too. Not yet.
pub const REDLOCK_SHARED: i32 = 1;

/// Takes a lock as the options say, and waits for that: RedLock_Lock and RedLock_TryLock are short forms of
/// it. Callers wait in a queue as for RedLock_Lock.
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
    let resource = match options.resource_size {
        0 => text(options.resource, "resource")?,
        size => bytes(options.resource, size, "resource")?,
    };
    let &RedLockAcquireOptions { ttl_ms, wait_ms, tries, .. } = options;
    Ok(AcquireOptions { resource, kind, ttl_ms, wait_ms, tries, keep: None })
}

/// What kind of lock is wanted. No more than one of the fields that say so may differ from its default.
fn kind(options: &RedLockAcquireOptions) -> Result<LockKind, Error> {
    let not_yet = |what: &str| Err(Error::invalid(format!("{what} is not known to this version")));
    if !options.resources.is_null() || options.resource_count != 0 {
        return not_yet("a lock of several resources");
    }
    if options.permits != 0 {
        return not_yet("a semaphore");
    }
    match options.mode {
        REDLOCK_EXCLUSIVE => Ok(LockKind::Exclusive),
        REDLOCK_SHARED => Ok(LockKind::Shared),
        mode => Err(Error::invalid(format!("mode is {mode}, which is none"))),
    }
}
