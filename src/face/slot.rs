//! The result of a submitted call, stored until its future takes it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::lost::News;
use crate::manager::event;
use crate::manager::event::{Event, SubmittedCall};
use crate::manager::lease::Lease;
use crate::protocol::error::Error;
use crate::protocol::moment::Moment;
use crate::system::clock;

/// The result of a call: its lease, and whether the call succeeded.
pub(super) type Outcome = (Lease, Result<(), Error>);

/// The tag that comes back with an event.
pub(super) enum Tag {
    Call(Arc<Slot>),
    Kept(Arc<News>),
}

/// Wakes a thread that waits in [`Slot::await_end`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// One submitted call.
pub(super) struct Slot {
    /// Whether the call takes a lock. If no future waits any more when the lock is granted, the lock is
    /// released.
    takes: bool,
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Open,
    Awaited(Waker),
    Ended(Box<Outcome>),
    /// The result was taken, or no future waits any more.
    Closed,
}

impl Tag {
    pub(super) fn boxed(self) -> event::Tag {
        Box::new(self)
    }
}

impl Slot {
    pub(super) fn new(takes: bool) -> Self {
        Self { takes, state: Mutex::default() }
    }

    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Outcome> {
        let waker = context.waker().clone();
        let mut state = self.state();
        let (next, outcome) = match std::mem::take(&mut *state) {
            State::Ended(outcome) => (State::Closed, Poll::Ready(*outcome)),
            State::Closed => (State::Closed, Poll::Pending),
            State::Open => (State::Awaited(waker), Poll::Pending),
            State::Awaited(old) => {
                *state = State::Awaited(waker);
                drop(state);
                drop(old);
                return Poll::Pending;
            }
        };
        *state = next;
        outcome
    }

    /// Waits in this thread for the result, until then.
    pub(super) fn await_end(&self, until: Moment) -> Option<Outcome> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(outcome) = self.poll(&context) {
                return Some(outcome);
            }
            let left = until - clock::now();
            if left <= 0 {
                return None;
            }
            thread::park_timeout(Duration::from_nanos(left.unsigned_abs()));
        }
    }

    /// Ends the call with this result. If no future waits for it, returns the lock that the call has taken.
    fn end(&self, outcome: Outcome) -> Option<Lease> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Closed) {
            State::Closed => return self.taken(outcome),
            old => {
                *state = State::Ended(Box::new(outcome));
                drop(state);
                // No mutex is held here, because a waker runs foreign code.
                if let State::Awaited(waker) = old {
                    waker.wake();
                }
            }
        }
        None
    }

    /// No future waits any more. If the call has ended and has taken a lock, returns that lock.
    pub(super) fn close(&self) -> Option<Lease> {
        let old = std::mem::replace(&mut *self.state(), State::Closed);
        match old {
            State::Ended(outcome) => self.taken(*outcome),
            _ => None,
        }
    }

    fn taken(&self, (lease, outcome): Outcome) -> Option<Lease> {
        (self.takes && outcome.is_ok()).then_some(lease)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes an event to the future that waits for it. `discard` releases a lock that no future waits for.
pub(super) fn deliver(event: Event, discard: impl FnOnce(&Lease)) {
    match event {
        Event::Done { call, outcome } => {
            let SubmittedCall { lease, tag, .. } = *call;
            let Ok(tag) = tag.downcast::<Tag>() else { return };
            let Tag::Call(slot) = *tag else { return };
            if let Some(lease) = slot.end((lease, outcome)) {
                discard(&lease);
            }
        }
        Event::Lost { tag, error, .. } => {
            if let Ok(tag) = tag.downcast::<Tag>()
                && let Tag::Kept(news) = *tag
            {
                news.tell(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::task::Task;
    use crate::protocol::error::Status;

    /// A task that needs the mutex when it is woken, and at its end.
    fn task(slot: &Arc<Slot>) -> Arc<Task<impl Fn() + use<>>> {
        let slot = Arc::clone(slot);
        Task::new(move || assert!(slot.state.try_lock().is_ok()))
    }

    fn poll(slot: &Slot, task: &Arc<Task<impl Fn() + Send + Sync + 'static>>) -> Poll<Outcome> {
        let waker = task.waker();
        slot.poll(&Context::from_waker(&waker))
    }

    fn taken() -> Outcome {
        (Lease::new(), Ok(()))
    }

    fn failed() -> Outcome {
        (Lease::new(), Err(Error::new(Status::Taken, "another has it")))
    }

    #[test]
    fn the_last_polling_task_is_woken() {
        let slot = Arc::new(Slot::new(true));
        let [before, after] = [(); 2].map(|()| task(&slot));
        // This task ends when the future moves to another one.
        let is_left = Arc::downgrade(&before);
        assert!(poll(&slot, &before).is_pending());
        drop(before);
        assert!(poll(&slot, &after).is_pending());
        assert!(is_left.upgrade().is_none());
        assert!(slot.end(taken()).is_none(), "somebody waits for it");
        assert_eq!(after.woken(), 1);
        let task = task(&slot);
        assert!(matches!(poll(&slot, &task), Poll::Ready((_, Ok(())))));
        assert!(slot.close().is_none(), "it was taken");
    }

    /// Whether it ends before its future is dropped, or after that.
    #[test]
    fn an_unclaimed_lock_is_released() {
        for (takes, outcome, is_given_back) in
            [(true, taken as fn() -> Outcome, true), (true, failed, false), (false, taken, false)]
        {
            let slot = Slot::new(takes);
            assert!(slot.close().is_none());
            assert_eq!(slot.end(outcome()).is_some(), is_given_back);
            let slot = Slot::new(takes);
            assert!(slot.end(outcome()).is_none());
            assert_eq!(slot.close().is_some(), is_given_back);
            assert!(slot.close().is_none());
        }
    }
}
