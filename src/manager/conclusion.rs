//! What the end of a call changes in its lease.

use std::sync::Arc;

use crate::manager::lease::Lease;
use crate::manager::runtime::Runtime;
use crate::protocol::error::{Error, Status};
use crate::protocol::lock::View;
use crate::protocol::moment::Moment;
use crate::protocol::operation::{End, Ended};

/// What the end of a call changes in its lease.
pub(crate) struct Conclusion {
    effect: Effect,
    /// When the call began, if the lock is remembered for those who continue it.
    continued_at: Option<Moment>,
}

/// What a call that has ended did.
pub(crate) enum Effect {
    /// The lease holds the lock that was taken.
    Take,
    /// The lock has another end, or is shared.
    Change(View),
    Release(View),
    /// The holder has left an inner level.
    Leave,
    /// Only the message changes.
    Note(View),
}

impl Conclusion {
    pub(crate) fn new(effect: Effect) -> Self {
        Self { effect, continued_at: None }
    }

    /// The lock is remembered for those who continue it. The call began at this moment.
    pub(crate) fn continued(self, at: Moment) -> Self {
        Self { continued_at: Some(at), ..self }
    }

    /// Whether the lease gets a lock that it did not hold.
    pub(crate) fn takes(&self) -> bool {
        matches!(self.effect, Effect::Take)
    }

    /// Updates the lease with the result of the operation.
    pub(crate) fn apply(
        &self,
        runtime: &Runtime,
        end: End,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        lease.is_new = matches!(self.effect, Effect::Take);
        match &self.effect {
            Effect::Take => take(runtime, end, lease)?,
            Effect::Change(view) => change(runtime, view, end, lease)?,
            Effect::Release(view) => {
                if view.held_lock().is_over() || view.held_lock().is_detached() {
                    lease.clear();
                }
                lease.absent = words(end)?;
            }
            Effect::Leave => {
                let outcome = words(end);
                let is_left = !matches!(&outcome, Err(it) if it.status() == Status::Cancelled);
                lease.inner_levels -= u32::from(is_left && lease.inner_levels > 0);
                lease.absent = outcome?;
            }
            Effect::Note(view) => {
                if view.held_lock().has_ended() {
                    runtime.continued().forget(view.held_lock());
                }
                lease.absent = words(end)?;
            }
        }
        if let (Some(since), Some(lock)) = (self.continued_at, &lease.lock) {
            runtime.continued().remember(lock, since);
        }
        Ok(())
    }
}

/// The lease holds the lock, if it was taken.
fn take(runtime: &Runtime, end: End, lease: &mut Lease) -> Result<(), Error> {
    if let Ended::Acquired { lock, absent, keeper } = end? {
        lease.keeper = keeper;
        lease.keep(lock, absent, runtime.now());
    }
    Ok(())
}

/// The lease holds the lock that was extended or shared, or that a fresh lease continues.
fn change(runtime: &Runtime, view: &View, end: End, lease: &mut Lease) -> Result<(), Error> {
    let (lock, now) = (view.held_lock(), runtime.now());
    let error = match words(end) {
        Ok(absent) => {
            lease.keep(Arc::clone(lock), absent, now);
            return Ok(());
        }
        Err(error) => error,
    };
    if lock.has_ended() {
        runtime.continued().forget(lock);
        lease.clear();
    } else if lease.lock.is_none() {
        // A lock that was valid stays valid, and a fresh lease can hold it.
        lease.keep(Arc::clone(lock), String::new(), now);
    }
    Err(error)
}

/// The text about servers that could not take part, of an operation that has no other result.
pub(crate) fn words(end: End) -> Result<String, Error> {
    match end? {
        Ended::Extended { absent }
        | Ended::Confirmed { absent }
        | Ended::Released { absent }
        | Ended::Connected { absent } => Ok(absent),
        _ => Ok(String::new()),
    }
}
