//! The calls that ask servers: where their words go, what is told meanwhile, and what a fork within them
//! means.

use super::guard::{catch, guard};
use super::handle::{RedLock, shared};
use super::lease::{RedLockLease, shared_lease};
use super::status::RedLockStatus;
use crate::error::{Error, Status};
use crate::lease::Lease;
use crate::redlock::RedLock as Manager;
use crate::system::cancellation::Uncancelled;
use crate::system::process::this_process;

/// A call on a manager without a lease: its words go to the manager.
pub(super) fn manager_call(
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
    side_call(rl, |handle| {
        handle.message.set("");
        call(handle).map(|()| RedLockStatus::REDLOCK_OK)
    })
}

/// The same for calls that are made again and again beside those of other threads: where they succeed, they
/// leave alone what another call has said, which its thread may not have read yet.
pub(super) fn side_call(
    rl: *mut RedLock,
    call: impl FnOnce(&RedLock) -> Result<RedLockStatus, Error>,
) -> RedLockStatus {
    // Until the manager, which this may be the last to use, is let go of.
    let _uncancelled = Uncancelled::new();
    let Some(handle) = shared(rl) else { return RedLockStatus::REDLOCK_INVALID_ARGUMENT };
    let outcome = catch(|| call(&handle));
    outcome.unwrap_or_else(|error| {
        handle.message.set(&error.to_string());
        error.status().into()
    })
}

/// A call on a manager with a lease: its words go to the lease, or to the manager if there is no
/// lease. `late` is what a success is worth if the lock is over when the logger is done.
pub(super) fn lease_call(
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
    status_of(catch(|| {
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
    // At all its levels.
    lease.inner_levels = 0;
    let _ = manager.unlock(lease);
    Err(Error::new(late, "the lock expired while log lines were told"))
}

/// Makes a call, and tells what log lines there are when nothing of it is held any more; also returns
/// whether there were any. If a callback forks, what the call has done in the child is the parent's.
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
