//! The C interface: check, convert, call, map. No algorithm.
//!
//! Every function is a plain one, so that cbindgen sees it, and passes through [`guard`].

use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use self::lease::RedLockLease;
use self::redlock::RedLock;
use self::status::RedLockStatus;
use crate::error::{Error, Status};
use crate::lease::Lease;
use crate::redlock::RedLock as Manager;
use crate::system::cancellation::Uncancelled;
use crate::system::process::this_process;

pub mod access;
pub mod callback;
pub mod kept_log;
pub mod lease;
mod message;
pub mod redlock;
pub mod status;
pub mod version;

/// Runs `body` and turns a panic into an error: nothing unwinds into C, nor out of a system call when
/// the thread is cancelled, and nothing is printed.
fn guard<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let _uncancelled = Uncancelled::new();
    silence_panics_of_ours();
    let outer = GUARDED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(body));
    GUARDED.set(outer);
    outcome.unwrap_or_else(|panic| Err(Error::new(Status::Internal, panic_words(&*panic))))
}

/// A call on a manager without a lease: its words go to the manager.
fn manager_call(
    rl: *mut RedLock,
    call: impl FnOnce(&RedLock) -> Result<(), Error>,
) -> RedLockStatus {
    let mut call = Some(call);
    manager_call_once(rl, &mut |handle| call.take().map_or(Ok(()), |call| call(handle)))
}

/// The same for calls of all kinds.
fn manager_call_once(
    rl: *mut RedLock,
    call: &mut dyn FnMut(&RedLock) -> Result<(), Error>,
) -> RedLockStatus {
    // Until the manager, which this may be the last to use, is let go of.
    let _uncancelled = Uncancelled::new();
    let Some(handle) = shared(rl) else { return RedLockStatus::REDLOCK_INVALID_ARGUMENT };
    handle.message.set("");
    let outcome = guard(|| call(&handle));
    if let Err(error) = &outcome {
        handle.message.set(&error.to_string());
    }
    status_of(outcome)
}

/// A call on a manager with a lease: its words go to the lease, or to the manager if there is no
/// lease. `late` is what a success is worth if the lock is over when the logger is done.
fn lease_call(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    late: Status,
    call: impl FnOnce(&Manager, &mut Lease) -> Result<(), Error>,
) -> RedLockStatus {
    let mut call = Some(call);
    lease_call_once(rl, lease, late, &mut |manager, lease| {
        call.take().map_or(Ok(()), |call| call(manager, lease))
    })
}

/// The same for calls of all kinds: all that is done around them is there once.
fn lease_call_once(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    late: Status,
    call: &mut dyn FnMut(&Manager, &mut Lease) -> Result<(), Error>,
) -> RedLockStatus {
    let _uncancelled = Uncancelled::new();
    let handle = shared(rl);
    let Some(lease) = shared_lease(lease) else {
        if let Some(handle) = handle {
            handle.message.set("lease is NULL");
        }
        return RedLockStatus::REDLOCK_INVALID_ARGUMENT;
    };
    status_of(guard(|| {
        let Some(handle) = handle else {
            return lease.call(|_| Err(Error::invalid("rl is NULL")));
        };
        let process = this_process();
        let manager = &handle.manager;
        let (mut outcome, was_told) = told(manager, || lease.call(|lease| call(manager, lease)));
        if was_told && outcome.is_ok() && lease.has_expired() {
            outcome = lease.call(|lease| release_late(manager, lease, late));
        }
        // Who destroys something now may fork, too.
        drop(handle);
        if this_process() == process {
            outcome
        } else {
            lease.call(|_| Err(Error::forked_within()))
        }
    }))
}

/// A logger took so long that the lock of a call that succeeded is over: it did not succeed.
#[cold]
fn release_late(manager: &Manager, lease: &mut Lease, late: Status) -> Result<(), Error> {
    let _ = manager.unlock(lease);
    Err(Error::new(late, "the lock expired while log lines were told"))
}

/// Makes a call, and tells what log lines there are when nothing of it is held any more; also returns
/// whether there were any. If a callback forks, what the call has done in the child is the parent's.
fn told<T>(manager: &Manager, call: impl FnOnce() -> Result<T, Error>) -> (Result<T, Error>, bool) {
    let process = this_process();
    let outcome = guard(call);
    let was_told = guard(|| Ok(manager.tell())).unwrap_or(true);
    let is_same = this_process() == process;
    (if is_same { outcome } else { Err(Error::forked_within()) }, was_told)
}

/// The manager behind the pointer, kept alive for the length of the call.
fn shared(rl: *mut RedLock) -> Option<Arc<RedLock>> {
    if rl.is_null() {
        return None;
    }
    // SAFETY: a pointer that is not NULL came from RedLock_New's Arc::into_raw and was not freed
    // yet, as the header asks. The count is raised first, so the Arc made here is ours.
    unsafe {
        Arc::increment_strong_count(rl.cast_const());
        Some(Arc::from_raw(rl.cast_const()))
    }
}

/// The lease behind the pointer.
fn shared_lease<'a>(lease: *mut RedLockLease) -> Option<&'a RedLockLease> {
    // SAFETY: a pointer that is not NULL came from RedLockLease_New's Box::into_raw and was not
    // freed yet, as the header asks. Only shared references are ever made of it: its state lies
    // behind a mutex.
    unsafe { lease.as_ref() }
}

/// The bytes of a string argument.
fn text<'a>(string: *const c_char, name: &str) -> Result<&'a [u8], Error> {
    if string.is_null() {
        return Err(Error::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the pointer is not NULL, and the header asks for a C string that stays as it is
    // until the call returns; the result is not kept longer than that.
    Ok(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// The bytes of a string argument that may be NULL.
fn text_or_null<'a>(string: *const c_char, name: &str) -> Result<Option<&'a [u8]>, Error> {
    if string.is_null() { Ok(None) } else { text(string, name).map(Some) }
}

/// An argument that the call writes its answer to.
struct Argument<T> {
    place: *mut T,
}

impl<T> Argument<T> {
    /// Checks the pointer, and gives the argument a first value.
    fn new(place: *mut T, name: &str, first: T) -> Result<Self, Error> {
        if place.is_null() {
            return Err(Error::invalid(format!("{name} is NULL")));
        }
        let mut argument = Self { place };
        argument.set(first);
        Ok(argument)
    }

    fn set(&mut self, value: T) {
        // SAFETY: the pointer is not NULL, and the header asks for one that may be written to
        // during the call.
        unsafe { self.place.write(value) }
    }
}

fn status_of(outcome: Result<(), Error>) -> RedLockStatus {
    match outcome {
        Ok(()) => RedLockStatus::REDLOCK_OK,
        Err(error) => error.status().into(),
    }
}

thread_local! {
    /// Whether this thread is inside of [`guard`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the panic hook quiet for panics that [`guard`] is going to catch. Others are passed on
/// to the hook that was there: in a Rust program that is the program's own.
fn silence_panics_of_ours() {
    // Not a Once: a child that was forked during it would wait for ever.
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Relaxed) || DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !GUARDED.get() {
            before(info);
        }
    }));
}

/// Only words that stand in a program: those that were put together may quote what a caller passed.
fn panic_words(panic: &(dyn Any + Send)) -> String {
    match panic.downcast_ref::<&str>() {
        Some(words) => format!("the library panicked: {words}"),
        None => "the library panicked".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error_that_quotes_nobody() {
        let passed = String::from("s3cret");
        let sliced = || Err(Error::invalid(&passed[9..]));
        for (outcome, words) in [
            (guard::<()>(|| panic!("drawn")), "the library panicked: drawn"),
            (guard(|| panic!("drawn by {passed}")), "the library panicked"),
            // The standard library's words quote the string, too.
            (guard(sliced), "the library panicked"),
        ] {
            let error = outcome.unwrap_err();
            assert_eq!(error.status(), Status::Internal);
            assert_eq!(error.to_string(), words);
            assert!(!GUARDED.get());
        }
    }

    #[test]
    fn a_lease_outlives_a_panic_in_a_call_on_it() {
        let lease = lease::RedLockLease_New();
        let handle = shared_lease(lease).unwrap();
        assert!(handle.call(|_| panic!("in the middle")).is_err());
        assert!(handle.call(|_| Ok(())).is_ok());
        // SAFETY: made above, freed once.
        unsafe { lease::RedLockLease_Free(lease) };
    }
}
