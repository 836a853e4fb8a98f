//! The report that a lock can no longer be kept alive.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::protocol::error::Error;

/// Resolves when a lock that is kept alive can no longer be kept alive. The output is the reason.
/// [`crate::Status::Unreachable`]: at least a tenth of the TTL is left to stop the work that the lock guards
/// ([`super::Lease::remaining`]). [`crate::Status::Lost`]: the lock is not held any more.
///
/// This is a future for any number of tasks (`Clone`), and a flag for code that checks from time to time. It
/// never resolves for a lock that is unlocked, dropped, or not kept alive.
#[derive(Debug)]
pub struct Lost {
    news: Arc<News>,
    /// Identifies this future among those that wait. 0: it has not waited yet.
    number: u64,
}

/// What is known of one lock that is kept alive, for all futures that wait for it.
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

    /// Whether the lock can no longer be kept alive. Any thread may call this. It does not wait.
    pub fn is_lost(&self) -> bool {
        self.news.is_lost()
    }

    /// The reason why the lock cannot be kept alive. None as long as it can be kept.
    pub fn reason(&self) -> Option<Error> {
        self.news.state().error.clone()
    }
}

impl News {
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// The lock cannot be kept alive. Wakes all waiting tasks. No mutex is held then, because a waker runs
    /// foreign code.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::task::Task;
    use crate::protocol::error::Status;

    /// A task that needs the mutex when it is woken, and at its end.
    fn task(news: &Arc<News>) -> Arc<Task<impl Fn() + use<>>> {
        let news = Arc::clone(news);
        Task::new(move || assert!(news.state.try_lock().is_ok()))
    }

    fn poll(lost: &mut Lost, task: &Arc<Task<impl Fn() + Send + Sync + 'static>>) -> Poll<Error> {
        let waker = task.waker();
        Pin::new(lost).poll(&mut Context::from_waker(&waker))
    }

    fn error(words: &str) -> Error {
        Error::new(Status::Lost, words)
    }

    #[test]
    fn a_loss_wakes_every_waiter_once_with_the_first_reason() {
        let news = Arc::<News>::default();
        let [first, second] = [(); 2].map(|()| task(&news));
        let mut lost = Lost::new(&news);
        // This task ends when the future moves to another one.
        let before = task(&news);
        let is_left = Arc::downgrade(&before);
        assert!(poll(&mut lost, &before).is_pending());
        drop(before);
        let mut other = lost.clone();
        assert!(poll(&mut lost, &first).is_pending() && poll(&mut other, &second).is_pending());
        assert!(is_left.upgrade().is_none());
        assert!(!lost.is_lost() && lost.reason().is_none());
        news.tell(error("first"));
        news.tell(error("second"));
        assert_eq!([first.woken(), second.woken()], [1, 1]);
        assert!(lost.is_lost() && lost.reason() == Some(error("first")));
        assert_eq!(poll(&mut lost, &second), Poll::Ready(error("first")));
    }

    #[test]
    fn a_dropped_loss_report_leaves_nothing() {
        let news = Arc::<News>::default();
        let task = task(&news);
        let mut lost = Lost::new(&news);
        assert!(poll(&mut lost, &task).is_pending());
        let waker = Arc::downgrade(&task);
        drop(task);
        assert!(waker.upgrade().is_some(), "it is kept");
        drop(lost);
        assert!(waker.upgrade().is_none());
        assert!(news.state().wakers.is_empty());
    }
}
