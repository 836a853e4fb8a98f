//! What another thread needs to know of a call in order to cancel it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The call that a lease is used by, if there is one: one at a time.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// The number of the manager's state that it is made on; 0: there is none.
    manager: AtomicU64,
    /// Where its operation is, once it has one.
    place: AtomicUsize,
    is_cancelled: AtomicBool,
}

impl Call {
    /// A call begins on the manager of this number.
    pub(crate) fn begin(&self, manager: u64) {
        self.is_cancelled.store(false, Ordering::Relaxed);
        self.place.store(usize::MAX, Ordering::Relaxed);
        self.manager.store(manager, Ordering::Release);
    }

    /// It is over.
    pub(crate) fn end(&self) {
        self.manager.store(0, Ordering::Release);
    }

    /// Whether there is one on the manager of this number.
    pub(crate) fn is_on(&self, manager: u64) -> bool {
        self.manager.load(Ordering::Acquire) == manager
    }

    /// It is to end. Called with the mutex of the engine held, as the following.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    /// Its operation is at this place from now on. Returns whether it was cancelled before.
    pub(crate) fn begin_operation(&self, place: usize) -> bool {
        self.place.store(place, Ordering::Relaxed);
        self.is_cancelled.load(Ordering::Acquire)
    }

    pub(crate) fn place_of_operation(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }
}
