//! The non-blocking calls: each is submitted, and its end is reported as an event. Also the locks that are
//! kept alive.

use std::sync::Arc;

use crate::call::Call;
use crate::check;
use crate::engine::{Notice, Wakening};
use crate::error::{Error, Status};
use crate::keeper::{Keeper, Kept};
use crate::lease::Lease;
use crate::lease_call::{Begun, Demand, Then};
use crate::lock::{Lock, View};
use crate::moment::Moment;
use crate::operation::Ended;
use crate::operation::acquire::Keeping;
use crate::operation::release::Release;
use crate::operation::renew::Renew;
use crate::runtime::Runtime;

/// A value that a caller passes with a call, and gets back with its event.
pub type Tag = Box<dyn std::any::Any + Send>;

/// Something that happened while no thread waited for it.
pub enum Event {
    /// A submitted call has ended.
    Done {
        /// The lease that was passed to the call.
        lease: Lease,
        /// The tag that was passed to the call.
        tag: Tag,
        /// The result of the call.
        outcome: Result<(), Error>,
    },
    /// A lock cannot be kept alive.
    Lost {
        /// The tag of the call that began to keep the lock alive.
        tag: Tag,
        /// Why: [`Status::Lost`] or [`Status::Unreachable`].
        error: Error,
        /// How long the lock is still valid, in milliseconds.
        remaining_ms: i64,
    },
}

/// The data that belongs to an operation that no thread waits for.
enum Companion {
    Call {
        lease: Lease,
        then: Then,
        tag: Tag,
    },
    Kept {
        kept: Kept,
        tag: Tag,
    },
    /// Nobody is interested in the end.
    Nobody,
}

impl Runtime {
    pub(crate) fn submit_acquire(
        &self,
        demand: &Demand<'_>,
        keep: Option<Tag>,
        mut lease: Lease,
        tag: Tag,
    ) -> Result<(), Error> {
        self.check_demand(demand)?;
        let begun = self.begin_acquire(demand, keep.map(keeping), &mut lease)?;
        self.submit_call(begun, lease, tag);
        Ok(())
    }

    pub(crate) fn submit_extend(&self, lease: Lease, ttl_ms: i64, tag: Tag) -> Result<(), Error> {
        check::ttl(ttl_ms, self.settings().drift())?;
        let begun = self.begin_extend(lease.required_lock()?, ttl_ms, 1)?;
        self.submit_call(begun, lease, tag);
        Ok(())
    }

    pub(crate) fn submit_unlock(&self, lease: Lease, tag: Tag) -> Result<(), Error> {
        let begun = self.begin_unlock(&lease)?;
        self.submit_call(begun, lease, tag);
        Ok(())
    }

    pub(crate) fn submit_unlock_after(
        &self,
        lease: Lease,
        least_ms: i64,
        tag: Tag,
    ) -> Result<(), Error> {
        let begun = self.begin_unlock_after(&lease, least_ms)?;
        self.submit_call(begun, lease, tag);
        Ok(())
    }

    pub(crate) fn submit_confirm(
        &self,
        lease: Lease,
        least_ms: i64,
        tag: Tag,
    ) -> Result<(), Error> {
        let begun = self.begin_confirm(&lease, least_ms)?;
        self.submit_call(begun, lease, tag);
        Ok(())
    }

    pub(crate) fn submit_adopt(
        &self,
        ticket: &[u8],
        mut lease: Lease,
        tag: Tag,
    ) -> Result<(), Error> {
        let begun = self.begin_adopt(ticket, &mut lease)?;
        self.submit_call(begun, lease, tag);
        Ok(())
    }

    /// Keeps a held lock alive: extends it in time, again and again.
    pub(crate) fn keep_alive(&self, lease: &mut Lease, tag: Tag) -> Result<(), Error> {
        let view = self.view_to_keep(lease)?;
        let Keeping { keeper, kept, payload } = keeping(tag);
        self.submit(Box::new(Renew::new(view, kept)), payload, None);
        // This ends an earlier keep-alive, if there was one.
        lease.keeper = Some(keeper);
        lease.is_new = false;
        Ok(())
    }

    /// The lock of this lease, which must be held if it is to be kept.
    pub(crate) fn view_to_keep(&self, lease: &Lease) -> Result<View, Error> {
        let lock = lease.required_lock()?;
        let view = self.view(lock)?;
        match lock.is_held(self.now()) {
            true => Ok(view),
            false => Err(Error::new(Status::Lost, "the lock is no longer held")),
        }
    }

    /// Releases a lock that nobody wants, without waiting.
    pub(crate) fn discard(&self, lease: &Lease) {
        lease.lock.iter().for_each(|lock| self.release_unwanted(lock));
    }

    /// Nobody takes events any more: releases the locks whose events were not taken.
    pub(crate) fn discard_untold(&self) {
        while let Some(notice) = self.next_notice_at_once() {
            self.discard_notice(&notice);
        }
    }

    /// Nobody waits for calls any more: releases the locks of calls whose ends were kept for a caller.
    pub(crate) fn discard_kept(&self) {
        while let Some(notice) = self.next_kept_notice() {
            self.discard_notice(&notice);
        }
    }

    /// Cancels a submitted call whose end is kept for a caller, and releases what it has taken.
    pub(crate) fn discard_call(&self, call: &Arc<Call>) {
        if let Some(notice) = self.forget_call(call) {
            self.discard_notice(&notice);
        }
    }

    fn discard_notice(&self, notice: &Notice) {
        if let Ok(Ended::Acquired { lock, .. }) = &notice.end {
            self.release_unwanted(lock);
        }
    }

    fn release_unwanted(&self, lock: &Arc<Lock>) {
        if let Ok(view) = self.view(lock) {
            self.submit_and_send(Box::new(Release::new(view)), Box::new(Companion::Nobody));
        }
    }

    /// Waits until this moment for an event; see [`Self::next_notice`].
    pub(crate) fn next_event(&self, until: Moment) -> Result<Option<Event>, Error> {
        self.ask_for_passwords();
        self.check_process()?;
        loop {
            let Some(notice) = self.next_notice(until) else { return Ok(None) };
            if let Some(event) = self.event_of(notice) {
                return Ok(Some(event));
            }
        }
    }

    /// Waits until this moment for the end of this submitted call. There is then no other event for it. `None`
    /// if the call is still under way.
    pub(crate) fn wait_for(&self, call: &Arc<Call>, until: Moment) -> Result<Option<Event>, Error> {
        self.ask_for_passwords();
        self.check_process()?;
        if !call.is_on(self.number()) {
            return Err(no_call());
        }
        match self.await_call(call, until) {
            Some(Wakening::Noticed(notice)) => self.event_of(notice).map(Some).ok_or_else(no_call),
            Some(Wakening::TimeUp) => Ok(None),
            Some(Wakening::NoCall | Wakening::Ended(_)) => Err(no_call()),
            None => Err(Error::forked_within()),
        }
    }

    /// Stands by; see [`Self::stand_by_for_notice`].
    pub(crate) fn stand_by(&self, listens: bool) -> Option<Event> {
        self.ask_for_passwords();
        if !self.is_ours() {
            return None;
        }
        self.stand_by_for_notice(listens).and_then(|notice| self.event_of(notice))
    }

    pub(crate) fn submit_call(&self, Begun { operation, then }: Begun, lease: Lease, tag: Tag) {
        let call: Arc<Call> = Arc::clone(&lease.call);
        call.begin(self.number());
        let companion = Companion::Call { lease, then, tag };
        self.submit(operation, Box::new(companion), Some(&call));
    }

    /// The event for the end of an operation. `None` if nobody is interested any more.
    fn event_of(&self, Notice { payload, end, .. }: Notice) -> Option<Event> {
        match *payload.downcast::<Companion>().ok()? {
            Companion::Call { mut lease, then, tag } => {
                lease.call.end();
                let outcome = self.finish(then, end, &mut lease);
                Some(Event::Done { lease, tag, outcome })
            }
            Companion::Kept { kept, tag } => {
                let (lock, error) = match end {
                    Ok(Ended::Unkept { lock, error }) => (Some(lock), error),
                    Ok(_) => return None,
                    Err(error) => (None, error),
                };
                let is_over =
                    kept.is_given_up() || lock.as_ref().is_some_and(|it| it.was_released());
                let left = |lock: Arc<Lock>| lock.remaining_ms(self.now());
                (!is_over).then(|| Event::Lost { tag, error, remaining_ms: lock.map_or(0, left) })
            }
            Companion::Nobody => None,
        }
    }
}

impl Event {
    /// The event for a caller that gets it now: see [`Runtime::in_time`].
    pub(crate) fn in_time(self, in_time: impl FnOnce(&mut Lease) -> Result<(), Error>) -> Self {
        match self {
            Self::Done { mut lease, tag, outcome } => {
                let outcome = outcome.and_then(|()| in_time(&mut lease));
                Self::Done { lease, tag, outcome }
            }
            lost @ Self::Lost { .. } => lost,
        }
    }
}

fn no_call() -> Error {
    Error::invalid(
        "the lease has no submitted call on this manager, or another thread waits for it",
    )
}

/// Everything that is needed to keep a lock alive, and to report with this tag if that is no longer possible.
pub(crate) fn keeping(tag: Tag) -> Keeping {
    let keeper = Keeper::new();
    let kept = keeper.kept();
    let payload = Box::new(Companion::Kept { kept: kept.clone(), tag });
    Keeping { keeper, kept, payload }
}
