//! Who wants a lock to be kept, and what keeps it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// The wish that a lock be kept. It ends with the lease that has it, or when it is given up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keeper(Arc<AtomicBool>);

/// The same, for what keeps the lock.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Weak<AtomicBool>);

impl Keeper {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn kept(&self) -> Kept {
        Kept(Arc::downgrade(&self.0))
    }

    /// Nobody has it any more, whatever copies there are.
    pub(crate) fn give_up(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Kept {
    /// Whether nobody wants the lock to be kept any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.upgrade().is_none_or(|is_given_up| is_given_up.load(Ordering::Relaxed))
    }
}
