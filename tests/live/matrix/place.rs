//! A place that only the holder of a lock may be in.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Place {
    is_taken: AtomicBool,
    visits: AtomicUsize,
}

impl Place {
    /// Enters and leaves, so slowly that another visitor would be noticed.
    #[track_caller]
    pub(crate) fn visit(&self) {
        assert!(!self.is_taken.swap(true, Ordering::SeqCst), "two hold the lock at once");
        thread::sleep(Duration::from_micros(300));
        assert!(self.is_taken.swap(false, Ordering::SeqCst), "two held the lock at once");
        self.visits.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}
