//! What another thread needs to know about a call in order to cancel it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The call that uses a lease, if there is one. Only one call uses it at a time.
#[derive(Debug, Default)]
pub(crate) struct CallHandle {
    /// The number of the runtime that the call is made on. 0: there is no call.
    manager: AtomicU64,
    /// The place of its operation, once it has one.
    place: AtomicUsize,
    is_cancelled: AtomicBool,
    /// The number of the notice of its end. 0: there is no notice that nobody has taken.
    notice: AtomicU64,
    /// Whether its end is kept for the caller that waits for this call, and is never an event.
    is_without_event: AtomicBool,
}

impl CallHandle {
    /// A call begins on the runtime of this number.
    pub(crate) fn begin(&self, manager: u64) {
        self.is_cancelled.store(false, Ordering::Relaxed);
        self.place.store(usize::MAX, Ordering::Relaxed);
        self.notice.store(0, Ordering::Relaxed);
        self.manager.store(manager, Ordering::Release);
    }

    /// The call is over.
    pub(crate) fn end(&self) {
        self.manager.store(0, Ordering::Release);
    }

    /// Whether there is a call on the runtime of this number.
    pub(crate) fn is_on(&self, manager: u64) -> bool {
        self.manager.load(Ordering::Acquire) == manager
    }

    /// Marks the call as cancelled. This function and the next one are called with the mutex of the engine held.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    /// The operation of the call is at this place from now on. Returns whether the call was cancelled before.
    pub(crate) fn begin_operation(&self, place: usize) -> bool {
        self.place.store(place, Ordering::Relaxed);
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Whether the end of each call from now on is kept for the caller that waits for it.
    pub(crate) fn set_without_event(&self, is_without_event: bool) {
        self.is_without_event.store(is_without_event, Ordering::Relaxed);
    }

    pub(crate) fn is_without_event(&self) -> bool {
        self.is_without_event.load(Ordering::Relaxed)
    }

    /// The notice of the end has this number. 0: somebody has taken it.
    pub(crate) fn set_notice(&self, number: u64) {
        self.notice.store(number, Ordering::Relaxed);
    }

    pub(crate) fn notice(&self) -> u64 {
        self.notice.load(Ordering::Relaxed)
    }

    pub(crate) fn place_of_operation(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }
}
