//! For the unit tests: a task that waits for a future, and looks at something when it is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

/// It looks when it is woken, and at its end. So nobody may hold a mutex then that the look needs.
pub(super) struct Task<L: Fn()> {
    look: L,
    woken: AtomicUsize,
}

impl<L: Fn() + Send + Sync + 'static> Task<L> {
    pub(super) fn new(look: L) -> Arc<Self> {
        Arc::new(Self { look, woken: AtomicUsize::new(0) })
    }

    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// How often it was woken.
    pub(super) fn woken(&self) -> usize {
        self.woken.load(Ordering::Relaxed)
    }
}

impl<L: Fn() + Send + Sync + 'static> Wake for Task<L> {
    fn wake(self: Arc<Self>) {
        (self.look)();
        self.woken.fetch_add(1, Ordering::Relaxed);
    }
}

impl<L: Fn()> Drop for Task<L> {
    fn drop(&mut self) {
        (self.look)();
    }
}
