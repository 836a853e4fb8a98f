//! The wish to keep a lock alive, and the view of it for the operation that does so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// The wish to keep a lock alive. It ends with the lease that contains it, or when it is given up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keeper(Arc<AtomicBool>);

/// The same, for the operation that keeps the lock alive.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Weak<AtomicBool>);

impl Keeper {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn kept(&self) -> Kept {
        Kept(Arc::downgrade(&self.0))
    }

    /// Ends the wish, no matter how many copies of it exist.
    pub(crate) fn give_up(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Kept {
    /// Whether nobody wants the lock to be kept alive any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.upgrade().is_none_or(|is_given_up| is_given_up.load(Ordering::Relaxed))
    }
}
