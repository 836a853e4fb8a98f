//! The C functions of a lease.

use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use super::arguments::copy_words;
use super::guard::{catch, guard};
use super::handle::RedLock;
use super::lease_state::State;
use super::status::RedLockStatus;
use crate::fork::{ForkGuard, ForkMutex};
use crate::manager::canceller::Canceller;
use crate::manager::lease::Lease;
use crate::protocol::error::{Error, Status};
use crate::protocol::keeper::Keeper;
use crate::system::process::{this_process, this_thread};

/// One lock, held or not: resource, token, validity and, after a failed call, the reason as text. The caller
/// creates the lease, passes it to calls, and may use it again when it holds no lock. One call at a time: a
/// second call at the same time waits for the first.
pub struct RedLockLease {
    /// Held during a call, by the thread that `caller` names.
    turn: ForkMutex<()>,
    caller: AtomicUsize,
    /// The process with a submitted call that has not ended; 0 if there is none.
    submitted: AtomicU64,
    /// The manager of the submitted call, which is cancelled when the lease is freed.
    submitted_to: ForkMutex<Weak<RedLock>>,
    is_freed: AtomicBool,
    /// Cancels the call that uses the lease, blocking or submitted.
    canceller: Canceller,
    /// Locked for short moments only.
    state: ForkMutex<State>,
}

/// Creates an empty lease.
///
/// @return the lease. The caller owns it and must free it with RedLockLease_Free. NULL if the lease could not
///         be created. Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn RedLockLease_New() -> *mut RedLockLease {
    let made = guard(|| {
        let state = State::default();
        Ok(Arc::into_raw(Arc::new(RedLockLease {
            turn: ForkMutex::default(),
            caller: AtomicUsize::new(NOBODY),
            submitted: AtomicU64::new(0),
            submitted_to: ForkMutex::default(),
            is_freed: AtomicBool::new(false),
            canceller: Canceller::from(&state.lease),
            state: ForkMutex::new(state),
        }))
        .cast_mut())
    });
    made.unwrap_or(ptr::null_mut())
}

/// Frees the memory of a lease, and nothing else. A lock that the lease holds stays held until it expires,
/// and is no longer kept alive. A submitted call that uses the lease is cancelled, but its event still comes,
/// unless RedLockLease_SetDoneEvents has switched it off.
/// This function does not wait. In a child process it touches nothing that belongs to the parent.
///
/// @param lease a lease, or NULL, which does nothing. The lease must not be used after this call, nor freed
///              twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_Free(lease: *mut RedLockLease) {
    let _ = guard(|| {
        if !lease.is_null() {
            // SAFETY: `lease` came from RedLockLease_New's Arc::into_raw and, as the contract
            // of this function says, is given back only once and used by nobody else.
            unsafe { Arc::from_raw(lease.cast_const()) }.free();
        }
        Ok(())
    });
}

/// Sets whether each call that is submitted with this lease has an event of its end (REDLOCK_EVENT_DONE). Without
/// one, only RedLock_Wait returns the result, and no other thread can take it. REDLOCK_EVENT_LOST comes in any case.
///
/// @param lease   the lease.
/// @param enabled true, the default: the end of a call is an event. false: it is kept for RedLock_Wait.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT: the lease is NULL, or in use by a call. REDLOCK_FORKED. No I/O.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_SetDoneEvents(
    lease: *mut RedLockLease,
    enabled: bool,
) -> RedLockStatus {
    let set = guard(|| match shared_lease(lease) {
        Some(lease) => {
            let set = lease.set_done_events(enabled);
            set.inspect_err(|error| lease.note_error(error))
        }
        None => Err(Error::invalid("lease is NULL")),
    });
    match set {
        Ok(()) => RedLockStatus::REDLOCK_OK,
        Err(error) => error.status().into(),
    }
}

/// Tells whether the lock is held and valid now, by this machine's clock. No I/O.
///
/// @param lease a lease, or NULL.
/// @return true if the lock is held and valid; false for NULL, and in a child process for a lock of its
///         parent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_IsHeld(lease: *const RedLockLease) -> bool {
    read(lease, false, |state| state.lease.is_held())
}

/// Returns how long the lock is valid from now on. The value counts down, and is never more than the servers
/// would report. After a server's clock was set, this is true again once RedLock_Extend or RedLock_Confirm
/// has asked the servers. No I/O.
///
/// @param lease a lease, or NULL.
/// @return milliseconds, rounded down; 0 if the lock is not held, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_RemainingMs(lease: *const RedLockLease) -> i64 {
    read(lease, 0, |state| state.lease.remaining_ms())
}

/// Returns the validity of the lock when it was granted, or last extended with this lease. The value does not
/// count down. It does not change when the lock expires, or ends through another handle.
/// RedLockLease_RemainingMs returns the remaining validity. No I/O.
///
/// @param lease a lease, or NULL.
/// @return milliseconds; 0 if the lease is empty, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_ValidityMs(lease: *const RedLockLease) -> i64 {
    read(lease, 0, |state| state.lease.validity_ms())
}

/// Returns the resource of the last locking call on this lease; the first of several.
///
/// @param lease a lease, or NULL.
/// @return a string that belongs to the lease, valid until the next call that changes the lease; empty if
///         there was no such call yet, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_Resource(lease: *const RedLockLease) -> *const c_char {
    read(lease, c"".as_ptr(), State::resource)
}

/// Returns the size of the resource that RedLockLease_Resource returns. If the resource contains NULs, that
/// string seems to end early. No I/O.
///
/// @param lease a lease, or NULL.
/// @return bytes, without the NUL at the end; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_ResourceSize(lease: *const RedLockLease) -> usize {
    read(lease, 0, |state| state.lease.resource().len())
}

/// Returns the token, which is the value of the key on the servers. It has 40 upper-case hexadecimal digits:
/// 20 bytes from the operating system's random source. Keep the token secret, because anyone who knows it can
/// release the lock.
///
/// @param lease a lease, or NULL.
/// @return a string that belongs to the lease, valid until the next call that changes the lease. The token
///         stays when the lock expires, is found to be lost, or ends through another handle, because the
///         lease may still be needed to clean up. Empty if the lease is empty, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_Token(lease: *const RedLockLease) -> *const c_char {
    read(lease, c"".as_ptr(), State::token)
}

/// Returns the message of the last locking call on this lease. After a failure: what was wrong, or the votes
/// counted and what each server answered. After a success: which servers could not take part, and why.
///
/// @param lease a lease, or NULL.
/// @return a human-readable string that belongs to the lease, valid until the next call that changes the
///         lease; empty after a success in which no server failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_ErrorMessage(lease: *const RedLockLease) -> *const c_char {
    if lease.is_null() {
        return c"lease is NULL".as_ptr();
    }
    let forked = c"the lease belongs to the parent process".as_ptr();
    read(lease, forked, |state| state.message.as_ptr())
}

/// Copies the message that RedLockLease_ErrorMessage returns. Use this for a lease that another thread may
/// use at the same time, because that thread could change the string while it is read.
///
/// @param lease   a lease, or NULL.
/// @param message receives the text, truncated to the size of the buffer, and a NUL. May be NULL if size is 0.
/// @param size    the size of the buffer in bytes, including the NUL.
/// @return the length of the text in bytes, without the NUL. If it is not less than size, the text was
///         truncated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_CopyErrorMessage(
    lease: *const RedLockLease,
    message: *mut c_char,
    size: usize,
) -> usize {
    let forked = || c"the lease belongs to the parent process".to_owned();
    let words = match shared_lease(lease) {
        None => c"lease is NULL".to_owned(),
        Some(_) => read(lease, None, |state| Some(state.message.clone())).unwrap_or_else(forked),
    };
    copy_words(&words, message, size)
}

impl RedLockLease {
    /// Runs one locking call on the lease, and stores its message. The state is not locked meanwhile, because
    /// a password callback may look at the lease, and so may other threads.
    pub(super) fn call(
        &self,
        call: impl FnOnce(&mut Lease) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut call = Some(call);
        self.call_once(&mut |lease| call.take().map_or(Ok(()), |call| call(lease)))
    }

    /// The part of `call` that does not depend on the type of the closure.
    fn call_once(
        &self,
        call: &mut dyn FnMut(&mut Lease) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _turn = match self.take_turn() {
            Ok(turn) => turn,
            Err(error) => {
                self.state.lock()?.refresh(Some(&error));
                return Err(error);
            }
        };
        let mut lease = self.state.lock()?.lease.clone();
        let outcome = catch(|| call(&mut lease));
        self.state.lock()?.keep(lease, outcome.as_ref().err());
        outcome
    }

    /// Whether the lock that a call has reported as held is not held any more.
    pub(super) fn is_over(&self) -> bool {
        self.state.lock().is_ok_and(|state| state.lease.is_over())
    }

    pub(super) fn canceller(&self) -> &Canceller {
        &self.canceller
    }

    pub(super) fn is_freed(&self) -> bool {
        self.is_freed.load(Ordering::Acquire)
    }

    /// Submits a call that uses the lease until its event is taken. `acquires`: whether the call is for
    /// another lock.
    pub(super) fn submit(
        &self,
        manager: &Arc<RedLock>,
        acquires: bool,
        submit: impl FnOnce(Lease) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let turn = self.take_turn_at_once()?;
        let mut state = self.state.lock()?;
        let own = state.lease.clone();
        // A call that acquires ends the keep-alive of the previous lock now, and not when its event is taken.
        let keeper = if acquires { state.lease.keeper.take() } else { None };
        drop(state);
        *self.submitted_to.lock()? = Arc::downgrade(manager);
        self.submitted.store(this_process(), Ordering::Release);
        // The event may be taken before this function returns, and the lease used for the next call.
        drop(turn);
        let outcome = catch(|| submit(own));
        if let Err(error) = &outcome {
            if let Ok(mut state) = self.state.lock() {
                if keeper.is_some() {
                    state.lease.keeper = keeper;
                }
                state.refresh(Some(error));
            }
            self.submitted.store(0, Ordering::Release);
        }
        outcome
    }

    /// Ends the submitted call with this result; None means that the manager was freed.
    pub(super) fn end_submitted(&self, news: Option<(Lease, Option<&Error>)>) {
        if let Ok(mut state) = self.state.lock() {
            match news {
                Some((lease, error)) => {
                    state.keep(lease, error);
                }
                None => {
                    let error = Error::new(Status::Cancelled, "the manager of the call was freed");
                    state.refresh(Some(&error));
                }
            }
        }
        self.submitted.store(0, Ordering::Release);
    }

    /// The program has freed the lease. A submitted call is cancelled.
    fn free(self: Arc<Self>) {
        self.is_freed.store(true, Ordering::Release);
        // A submitted call has a copy of the keeper, so it is not enough to drop this one.
        if let Ok(mut state) = self.state.lock() {
            state.lease.keeper.take().iter().for_each(Keeper::give_up);
        }
        if self.submitted.load(Ordering::Acquire) == this_process()
            && let Ok(manager) = self.submitted_to.lock().map(|manager| manager.upgrade())
            && let Some(manager) = manager
        {
            match self.canceller.call().is_without_event() {
                // Nobody will wait for the call.
                true => manager.manager.discard_call(&self.canceller),
                false => manager.manager.cancel(&self.canceller),
            }
        }
    }

    /// Sets whether the calls that are submitted from now on have events.
    fn set_done_events(&self, are_enabled: bool) -> Result<(), Error> {
        let _turn = self.take_turn_at_once()?;
        self.canceller.call().set_without_event(!are_enabled);
        Ok(())
    }

    /// Fails if no submitted call uses the lease.
    pub(super) fn check_has_submitted(&self) -> Result<(), Error> {
        match self.has_submitted()? {
            true => Ok(()),
            false => Err(Error::invalid("the lease has no submitted call")),
        }
    }

    /// Stores the message of a call that has changed nothing.
    pub(super) fn note_error(&self, error: &Error) {
        if let Ok(mut state) = self.state.lock() {
            state.refresh(Some(error));
        }
    }

    /// Whether a submitted call uses the lease. Fails if that is a call of the parent process.
    fn has_submitted(&self) -> Result<bool, Error> {
        match self.submitted.load(Ordering::Acquire) {
            0 => Ok(false),
            process if process == this_process() => Ok(true),
            _ => Err(Error::new(
                Status::Forked,
                "the lease is in use by a call of the parent process",
            )),
        }
    }

    /// Fails if a submitted call uses the lease.
    fn check_submitted(&self) -> Result<(), Error> {
        match self.has_submitted()? {
            true => Err(Error::invalid("the lease is in use by a submitted call")),
            false => Ok(()),
        }
    }

    /// Takes the turn, or fails if another call is under way.
    fn take_turn_at_once(&self) -> Result<Turn<'_>, Error> {
        self.check_submitted()?;
        let guard = self.turn.try_lock()?;
        let guard = guard.ok_or_else(|| Error::invalid("the lease is in use by another call"))?;
        self.check_submitted()?;
        self.caller.store(this_thread(), Ordering::Relaxed);
        Ok(Turn { caller: &self.caller, _guard: guard })
    }

    /// Waits until no other call is under way. If the other call is one of this same thread, it cannot end
    /// meanwhile, so this fails: a password callback of that call uses the lease again. In a child, calls of
    /// the parent's threads are not under way, and a thread of the child may only look like one of those
    /// threads.
    fn take_turn(&self) -> Result<Turn<'_>, Error> {
        let is_within = self.caller.load(Ordering::Relaxed) == this_thread();
        if is_within && self.turn.is_ours() {
            let words = "the lease is in use by the call whose callback made this call";
            return Err(Error::invalid(words));
        }
        self.check_submitted()?;
        let guard = self.turn.lock()?;
        self.check_submitted()?;
        self.caller.store(this_thread(), Ordering::Relaxed);
        Ok(Turn { caller: &self.caller, _guard: guard })
    }
}

/// Returns the lease behind the pointer.
pub(super) fn shared_lease<'a>(lease: *const RedLockLease) -> Option<&'a RedLockLease> {
    // SAFETY: as the header requires, a pointer that is not NULL came from RedLockLease_New's Arc::into_raw
    // and was not freed yet. Only shared references are made from it: its state is behind a mutex.
    unsafe { lease.as_ref() }
}

/// Like `shared_lease`, but kept alive for as long as a submitted call needs it.
pub(super) fn held_lease(lease: *mut RedLockLease) -> Option<Arc<RedLockLease>> {
    if lease.is_null() {
        return None;
    }
    // SAFETY: as above. The count is raised first, so the Arc made here is ours.
    unsafe {
        Arc::increment_strong_count(lease.cast_const());
        Some(Arc::from_raw(lease.cast_const()))
    }
}

/// The right to change a lease.
struct Turn<'a> {
    caller: &'a AtomicUsize,
    _guard: ForkGuard<'a, ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.caller.store(NOBODY, Ordering::Relaxed);
    }
}

const NOBODY: usize = 0;

pub(super) fn read<T>(
    lease: *const RedLockLease,
    otherwise: T,
    look: impl FnOnce(&State) -> T,
) -> T {
    let found = guard(|| match shared_lease(lease) {
        Some(handle) => Ok(look(&*handle.state.lock()?)),
        None => Err(Error::new(Status::InvalidArgument, "lease is NULL")),
    });
    found.unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_outlives_a_panic_in_a_call_on_it() {
        let lease = RedLockLease_New();
        let handle = shared_lease(lease).unwrap();
        assert!(handle.call(|_| panic!("in the middle")).is_err());
        assert!(handle.call(|_| Ok(())).is_ok());
        // SAFETY: made above, freed once.
        unsafe { RedLockLease_Free(lease) };
    }
}
