//! What happens around the C calls that ask servers: where their messages go, when log lines reach the
//! logger, and what a fork within a call means.

use super::guard::{catch, guard};
use super::handle::{RedLock, shared};
use super::lease::{RedLockLease, shared_lease};
use super::status::RedLockStatus;
use crate::error::Error;
use crate::lease::Lease;
use crate::redlock::RedLock as Manager;
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
        let (manager, language) = (&handle.manager, handle.language.get());
        let call = |lease: &mut Lease| call(manager, lease).map_err(|it| it.told_in(language));
        let (mut outcome, was_told) = told(manager, || lease.call(call));
        if was_told && outcome.is_ok() && lease.is_over() {
            outcome = lease.call(|lease| manager.in_time(lease));
        }
        // Releasing the manager may call a function of the program, which may fork.
        drop(handle);
        if this_process() == process {
            outcome
        } else {
            lease.call(|_| Err(Error::forked_within()))
        }
    }))
}

/// Makes a call. When the call holds nothing any more, passes the pending log lines to the logger. Also
/// returns whether there were any lines. If a callback forks, the result of the call belongs to the parent,
/// and the call fails in the child.
pub(super) fn told<T>(
    manager: &Manager,
    call: impl FnOnce() -> Result<T, Error>,
) -> (Result<T, Error>, bool) {
    let process = this_process();
    let outcome = guard(call);
    let was_told = manager.has_lines() && guard(|| Ok(manager.tell())).unwrap_or(true);
    let is_same = this_process() == process;
    (if is_same { outcome } else { Err(Error::forked_within()) }, was_told)
}

fn status_of(outcome: Result<(), Error>) -> RedLockStatus {
    match outcome {
        Ok(()) => RedLockStatus::REDLOCK_OK,
        Err(error) => error.status().into(),
    }
}
