//! What a program is told while no thread of it waits: that a submitted call has ended, or that a lock cannot be kept
//! alive.

use std::sync::Arc;

use crate::engine::call_handle::CallHandle;
use crate::engine::{Notice, Wakening};
use crate::manager::conclusion::Conclusion;
use crate::manager::lease::Lease;
use crate::manager::runtime::Runtime;
use crate::protocol::error::{Error, Status};
use crate::protocol::keeper::{Keeper, Kept};
use crate::protocol::lock::{Lock, Phase, View};
use crate::protocol::moment::Moment;
use crate::protocol::operation::acquire::Keeping;
use crate::protocol::operation::release::Release;
use crate::protocol::operation::renew::Renew;
use crate::protocol::operation::{End, Ended, Operation};

/// A value that a caller passes with a call, and gets back with its event.
pub type Tag = Box<dyn std::any::Any + Send>;

/// Something that happened while no thread waited for it.
pub enum Event {
    /// A submitted call has ended.
    Done {
        /// The call.
        call: Box<SubmittedCall>,
        /// Its result.
        outcome: Result<(), Error>,
    },
    /// A lock cannot be kept alive.
    Lost {
        /// The tag of the call that began to keep the lock alive.
        tag: Tag,
        /// Why: [`crate::Status::Lost`] or [`crate::Status::Unreachable`].
        error: Error,
        /// How long the lock is still valid, in milliseconds.
        remaining_ms: i64,
    },
}

/// A submitted call. It stays in one place from its beginning until its event is taken.
pub struct SubmittedCall {
    /// The lease that was passed to the call.
    pub lease: Lease,
    /// The tag that was passed to the call.
    pub tag: Tag,
    ending: Conclusion,
}

/// The holder of a lock that is kept alive, who is told if that is no longer possible.
struct Holder {
    kept: Kept,
    tag: Tag,
}

impl Event {
    /// Does the work that is due, and waits until this moment for an event; see [`Runtime::next_notice`].
    pub(crate) fn next(runtime: &Runtime, until: Moment) -> Result<Option<Self>, Error> {
        runtime.ask_for_passwords();
        runtime.check_process()?;
        loop {
            let Some(notice) = runtime.next_notice(until) else { return Ok(None) };
            if let Some(event) = Self::of(runtime, notice) {
                return Ok(Some(event));
            }
        }
    }

    /// Waits until this moment for the end of this submitted call. There is then no other event for it. `None`
    /// if the call is still under way.
    pub(crate) fn of_call(
        runtime: &Runtime,
        call: &Arc<CallHandle>,
        until: Moment,
    ) -> Result<Option<Self>, Error> {
        runtime.ask_for_passwords();
        runtime.check_process()?;
        if !call.is_on(runtime.number()) {
            return Err(no_call());
        }
        match runtime.await_call(call, until) {
            Some(Wakening::Noticed(notice)) => {
                Self::of(runtime, notice).map(Some).ok_or_else(no_call)
            }
            Some(Wakening::TimeUp) => Ok(None),
            Some(Wakening::NoCall | Wakening::Ended(_)) => Err(no_call()),
            None => Err(Error::forked_within()),
        }
    }

    /// Stands by; see [`Runtime::stand_by_for_notice`].
    pub(crate) fn while_standing_by(runtime: &Runtime, listens: bool) -> Option<Self> {
        runtime.ask_for_passwords();
        if !runtime.is_ours() {
            return None;
        }
        runtime.stand_by_for_notice(listens).and_then(|notice| Self::of(runtime, notice))
    }

    /// The event for the end of an operation. `None` if nobody is told.
    fn of(runtime: &Runtime, Notice { payload, end, .. }: Notice) -> Option<Self> {
        match payload.downcast::<SubmittedCall>() {
            Ok(mut call) => {
                call.lease.call.end();
                let outcome = call.ending.apply(runtime, end, &mut call.lease);
                Some(Self::Done { call, outcome })
            }
            Err(other) => Self::of_kept_lock(runtime, *other.downcast::<Holder>().ok()?, end),
        }
    }

    fn of_kept_lock(runtime: &Runtime, Holder { kept, tag }: Holder, end: End) -> Option<Self> {
        let (lock, error) = match end {
            Ok(Ended::Unkept { lock, error }) => (Some(lock), error),
            Ok(_) => return None,
            Err(error) => (None, error),
        };
        let is_over = kept.is_given_up() || lock.as_ref().is_some_and(|it| it.was_released());
        let left = |lock: Arc<Lock>| lock.remaining_ms(runtime.now());
        (!is_over).then(|| Self::Lost { tag, error, remaining_ms: lock.map_or(0, left) })
    }

    /// The event for a caller that gets it now: see [`in_time`].
    pub(crate) fn in_time(mut self, runtime: &Runtime) -> Self {
        if let Self::Done { call, outcome } = &mut self
            && outcome.is_ok()
        {
            *outcome = in_time(runtime, &mut call.lease);
        }
        self
    }
}

fn no_call() -> Error {
    Error::invalid(
        "the lease has no submitted call on this manager, or another thread waits for it",
    )
}

/// Submits the operation of a call. The event of its end has the lease and the tag.
pub(crate) fn submit(
    runtime: &Runtime,
    operation: Box<dyn Operation>,
    ending: Conclusion,
    lease: Lease,
    tag: Tag,
) {
    let call = Arc::clone(&lease.call);
    call.begin(runtime.number());
    let submitted = SubmittedCall { lease, tag, ending };
    runtime.submit(operation, Box::new(submitted), Some(&call));
}

/// Keeps a held lock alive: extends it in time, again and again.
pub(crate) fn keep_alive(runtime: &Runtime, lease: &mut Lease, tag: Tag) -> Result<(), Error> {
    let view = view_to_keep(runtime, lease)?;
    let Keeping { keeper, kept, payload } = keeping(tag);
    runtime.submit(Box::new(Renew::new(view, kept)), payload, None);
    // This ends an earlier keep-alive, if there was one.
    lease.keeper = Some(keeper);
    lease.is_new = false;
    Ok(())
}

/// The lock of this lease, which must be held if it is to be kept.
pub(crate) fn view_to_keep(runtime: &Runtime, lease: &Lease) -> Result<View, Error> {
    let lock = lease.required_lock()?;
    let view = runtime.view(lock)?;
    match lock.is_held(runtime.now()) {
        true => Ok(view),
        false => Err(Error::new(Status::Lost, "the lock is no longer held")),
    }
}

/// Everything that is needed to keep a lock alive, and to report with this tag if that is no longer possible.
pub(crate) fn keeping(tag: Tag) -> Keeping {
    let keeper = Keeper::new();
    let kept = keeper.kept();
    let payload = Box::new(Holder { kept: kept.clone(), tag });
    Keeping { keeper, kept, payload }
}

/// The last step of every call that reports a held lock, whoever gets the report: a lock counts only if it is held
/// when the caller gets the result. A logger, an event loop or an executor may have taken its time since the servers
/// answered. If the lock has ended, the call fails, and what is left of the lock is released without waiting.
pub(crate) fn in_time(runtime: &Runtime, lease: &mut Lease) -> Result<(), Error> {
    match &lease.lock {
        Some(lock) if lease.is_over() => {
            if !lease.is_new {
                // The holder does not release the lock here. The keep-alive must report that it was lost.
                lock.pass_to(Phase::Lost);
            } else if let Some(keeper) = &lease.keeper {
                // The caller was never told that it holds the lock, so it is not told that the lock was lost.
                keeper.give_up();
            }
            runtime.continued().forget(lock);
        }
        _ => return Ok(()),
    }
    discard(runtime, lease);
    lease.clear();
    let status = if lease.is_new { Status::TooSlow } else { Status::Lost };
    Err(Error::new(status, "the lock ended before the program read the result of the call"))
}

/// Releases the lock of a lease that nobody wants, without waiting.
pub(crate) fn discard(runtime: &Runtime, lease: &Lease) {
    lease.lock.iter().for_each(|lock| discard_lock(runtime, lock));
}

/// Nobody takes events any more: releases the locks whose events were not taken.
pub(crate) fn discard_untold(runtime: &Runtime) {
    while let Some(notice) = runtime.next_notice_at_once() {
        discard_end(runtime, &notice);
    }
}

/// Nobody waits for calls any more: releases the locks of calls whose ends were kept for a caller.
pub(crate) fn discard_kept(runtime: &Runtime) {
    while let Some(notice) = runtime.next_kept_notice() {
        discard_end(runtime, &notice);
    }
}

/// Cancels a submitted call whose end is kept for a caller, and releases what it has taken.
pub(crate) fn discard_call(runtime: &Runtime, call: &Arc<CallHandle>) {
    runtime.forget_call(call).iter().for_each(|notice| discard_end(runtime, notice));
}

fn discard_end(runtime: &Runtime, notice: &Notice) {
    if let Ok(Ended::Acquired { lock, .. }) = &notice.end {
        discard_lock(runtime, lock);
    }
}

fn discard_lock(runtime: &Runtime, lock: &Arc<Lock>) {
    if let Ok(view) = runtime.view(lock) {
        // Nobody is told of the end.
        runtime.submit_and_send(Box::new(Release::new(view)), Box::new(()));
    }
}
