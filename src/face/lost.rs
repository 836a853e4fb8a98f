//! The news that a lock cannot be kept.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::Error;

/// Ends when a lock that is kept cannot be kept any more, with the reason: [`crate::Status::Unreachable`], and then at
/// least a tenth of the TTL is left to stop what the lock guards ([`super::Lease::remaining`]); or
/// [`crate::Status::Lost`], and it is held no more.
///
/// A future that any number of tasks may have (`Clone`), and a flag for who looks now and then. For a lock that is
/// unlocked, dropped, or not kept it never ends.
#[derive(Debug)]
pub struct Lost {
    news: Arc<News>,
    /// Its place among those that wait; 0: none yet.
    number: u64,
}

/// What is known of one lock that is kept, for all that wait for it.
#[derive(Debug, Default)]
pub(super) struct News {
    is_lost: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    error: Option<Error>,
    numbers: u64,
    wakers: Vec<(u64, Waker)>,
}

impl Lost {
    pub(super) fn new(news: &Arc<News>) -> Self {
        Self { news: Arc::clone(news), number: 0 }
    }

    /// Whether it has ended. Any thread may look; nothing is waited for.
    pub fn is_lost(&self) -> bool {
        self.news.is_lost()
    }

    /// Why the lock cannot be kept, once that is so.
    pub fn reason(&self) -> Option<Error> {
        self.news.state().error.clone()
    }
}

impl News {
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// It cannot be kept. Wakes all that wait, with nothing held: what a waker does is somebody else's code.
    pub(super) fn tell(&self, error: Error) {
        let mut state = self.state();
        state.error.get_or_insert(error);
        let wakers = std::mem::take(&mut state.wakers);
        self.is_lost.store(true, Ordering::Release);
        drop(state);
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Lost {
    fn clone(&self) -> Self {
        Self::new(&self.news)
    }
}

impl Future for Lost {
    type Output = Error;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Error> {
        let news = Arc::clone(&self.news);
        let waker = context.waker().clone();
        let mut state = news.state();
        if let Some(error) = &state.error {
            return Poll::Ready(error.clone());
        }
        if self.number == 0 {
            state.numbers += 1;
            self.number = state.numbers;
        }
        let number = self.number;
        let old = state.wakers.iter().position(|it| it.0 == number);
        let old = old.map(|place| state.wakers.swap_remove(place));
        state.wakers.push((number, waker));
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        if self.number == 0 {
            return;
        }
        let mut state = self.news.state();
        let place = state.wakers.iter().position(|it| it.0 == self.number);
        let waker = place.map(|place| state.wakers.swap_remove(place));
        drop(state);
        drop(waker);
    }
}
