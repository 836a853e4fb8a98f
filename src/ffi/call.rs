//! What happens around the C calls that ask servers: where their messages go, when log lines reach the
//! logger, and what a fork within a call means.

use super::guard::catch;
use super::handle::{RedLock, shared};
use super::lease::{RedLockLease, shared_lease};
use super::status::RedLockStatus;
use crate::manager::call::Call;
use crate::manager::lease::Lease;
use crate::manager::redlock::{LeaseHolder, RedLock as Manager};
use crate::protocol::argument::Language;
use crate::protocol::error::Error;
use crate::system::cancellation::Uncancelled;
use crate::system::process::this_process;

/// A call on a manager without a lease. Its message goes to the manager.
pub(super) fn manager_call(
    rl: *mut RedLock,
    call: impl FnOnce(&RedLock) -> Result<(), Error>,
) -> RedLockStatus {
    let mut call = Some(call);
    manager_call_once(rl, &mut |handle| call.take().map_or(Ok(()), |call| call(handle)))
}

/// The part of `manager_call` that does not depend on the type of the call, so that it is compiled once.
fn manager_call_once(
    rl: *mut RedLock,
    call: &mut dyn FnMut(&RedLock) -> Result<(), Error>,
) -> RedLockStatus {
    side_call(rl, |handle| {
        handle.message.set("");
        call(handle).map(|()| RedLockStatus::REDLOCK_OK)
    })
}

/// Like `manager_call`, for calls that are made repeatedly beside calls of other threads. A successful call
/// does not change the message of another call, because the thread of that call may not have read it yet.
pub(super) fn side_call(
    rl: *mut RedLock,
    call: impl FnOnce(&RedLock) -> Result<RedLockStatus, Error>,
) -> RedLockStatus {
    // Lasts until the manager is released. This call may be the last that uses the manager.
    let _uncancelled = Uncancelled::new();
    let Some(handle) = shared(rl) else { return RedLockStatus::REDLOCK_INVALID_ARGUMENT };
    let outcome = catch(|| call(&handle));
    outcome.unwrap_or_else(|error| {
        handle.message.set(&error.words(handle.language.get()));
        error.status().into()
    })
}

/// Makes one of the calls on a lease, and waits for its end.
pub(super) fn run(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    call: Result<Call<'_>, Error>,
) -> RedLockStatus {
    lease_call(rl, lease, |manager, lease| manager.run_quietly(call?, lease))
}

/// A call on a manager with a lease. Its message goes to the lease, or to the manager if there is no lease.
pub(super) fn lease_call(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    call: impl FnOnce(&Manager, &mut Lease) -> Result<(), Error>,
) -> RedLockStatus {
    let mut call = Some(call);
    lease_call_once(rl, lease, &mut |manager, lease| {
        call.take().map_or(Ok(()), |call| call(manager, lease))
    })
}

/// The part of `lease_call` that does not depend on the type of the call, so that it is compiled once.
fn lease_call_once(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
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
    status_of(catch(|| {
        let Some(handle) = handle else {
            return lease.call(|_| Err(Error::invalid("rl is NULL")));
        };
        let process = this_process();
        let mut turns = Turns { lease, language: handle.language.get() };
        let outcome = handle.manager.ask_on(&mut turns, |own| call(&handle.manager, own));
        // Releasing the manager may call a function of the program, which may fork.
        drop(handle);
        if this_process() == process {
            outcome
        } else {
            lease.call(|_| Err(Error::forked_within()))
        }
    }))
}

/// Uses the lease of a C program for one step at a time. Between two steps, other threads and the logger may use it.
struct Turns<'a> {
    lease: &'a RedLockLease,
    language: Language,
}

impl LeaseHolder for Turns<'_> {
    fn with(&mut self, step: &mut dyn FnMut(&mut Lease) -> Result<(), Error>) -> Result<(), Error> {
        self.lease.call(|own| step(own).map_err(|error| error.told_in(self.language)))
    }

    fn may_be_over(&self) -> bool {
        self.lease.is_over()
    }
}

fn status_of(outcome: Result<(), Error>) -> RedLockStatus {
    match outcome {
        Ok(()) => RedLockStatus::REDLOCK_OK,
        Err(error) => error.status().into(),
    }
}
