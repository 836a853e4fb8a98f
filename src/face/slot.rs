//! Where the end of a submitted call is put, and taken from by whoever waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::lost::News;
use crate::error::Error;
use crate::lease::Lease;
use crate::submitted::{self, Event};

/// What a call has come to: its lease, and whether it succeeded.
pub(super) type Outcome = (Lease, Result<(), Error>);

/// What comes back with an event.
pub(super) enum Tag {
    Call(Arc<Slot>),
    Kept(Arc<News>),
}

/// One call that was submitted.
pub(super) struct Slot {
    /// Whether the call takes a lock. If nobody waits for it any more when it is granted, it goes back.
    takes: bool,
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Open,
    Awaited(Waker),
    Ended(Box<Outcome>),
    /// It was taken, or nobody waits any more.
    Closed,
}

impl Tag {
    pub(super) fn boxed(self) -> submitted::Tag {
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

    /// The call has ended. Returns the lock that it has taken, if nobody waits for that.
    fn end(&self, outcome: Outcome) -> Option<Lease> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Closed) {
            State::Closed => return self.taken(outcome),
            old => {
                *state = State::Ended(Box::new(outcome));
                drop(state);
                // With nothing held: what a waker does is somebody else's code.
                if let State::Awaited(waker) = old {
                    waker.wake();
                }
            }
        }
        None
    }

    /// Nobody waits any more. Returns the lock that it has taken, if it has ended with one.
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

/// Hands an event to whoever waits for it. A lock that nobody waits for is released by `discard`.
pub(super) fn deliver(event: Event, discard: impl FnOnce(&Lease)) {
    match event {
        Event::Done { lease, tag, outcome } => {
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
