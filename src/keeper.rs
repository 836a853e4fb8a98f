//! Who wants a lock to be kept, and what keeps it.

use std::sync::{Arc, Weak};

/// The wish that a lock be kept. It ends with the lease that has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keeper(Arc<()>);

/// The same, for what keeps the lock.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Weak<()>);

impl Keeper {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn kept(&self) -> Kept {
        Kept(Arc::downgrade(&self.0))
    }
}

impl Kept {
    /// Whether nobody wants the lock to be kept any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.strong_count() == 0
    }
}
