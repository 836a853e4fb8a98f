//! What ContinueLock remembers: the lock of each resource that was continued, so that a fresh lease
//! renews what an earlier one took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::hold::Hold;
use crate::moment::Moment;

#[derive(Default)]
pub(crate) struct Continued {
    holds: Mutex<HashMap<Arc<[u8]>, Arc<Hold>>>,
}

impl Continued {
    /// The lock of a resource that is held still.
    pub(crate) fn find(&self, resource: &[u8], now: Moment) -> Option<Arc<Hold>> {
        self.holds().get(resource).filter(|it| it.is_held(now)).cloned()
    }

    /// Remembers a lock, and forgets those that have ended.
    pub(crate) fn remember(&self, hold: &Arc<Hold>, now: Moment) {
        let mut holds = self.holds();
        holds.retain(|_, it| it.is_held(now));
        holds.insert(Arc::clone(hold.resource()), Arc::clone(hold));
    }

    /// Forgets this lock, but not a later one of the same resource.
    pub(crate) fn forget(&self, hold: &Hold) {
        let mut holds = self.holds();
        if holds.get(hold.resource()).is_some_and(|it| it.token() == hold.token()) {
            holds.remove(hold.resource());
        }
    }

    /// Whether no thread is using it at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.holds.try_lock().is_ok()
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<Arc<[u8]>, Arc<Hold>>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
