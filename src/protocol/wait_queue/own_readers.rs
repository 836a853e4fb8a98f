//! The locks by which this manager holds a resource shared. There may be thousands, and none of them is looked at
//! when a lock comes or goes.

use std::collections::HashMap;
use std::sync::Arc;

use super::turn::LOOK_MS;
use crate::protocol::lock::Lock;
use crate::protocol::moment::Moment;
use crate::protocol::room::Room;
use crate::protocol::token::Token;

/// How many of them one step may look at. They are looked at all at once, after so many steps that this is true on
/// average. So few of them are looked at in each step.
const LOOKED_AT: usize = 16;

/// The locks, by their tokens.
pub(super) struct OwnReaders {
    locks: HashMap<Token, Arc<Lock>>,
    /// When the last of them ends, by what was seen last. It may have been extended, or released, since.
    until: Moment,
    /// How many may be looked at, by the number of steps since they were looked at last.
    allowed: usize,
    /// When to look at them at the latest: each may be released through another manager, or lost.
    look_at: Moment,
    /// How many were looked at in all.
    #[cfg(test)]
    pub(super) looked_at: usize,
}

impl Default for OwnReaders {
    fn default() -> Self {
        let start = Moment::from_nanos(0);
        Self {
            locks: HashMap::new(),
            until: start,
            allowed: 0,
            look_at: start,
            #[cfg(test)]
            looked_at: 0,
        }
    }
}

impl OwnReaders {
    pub(super) fn add(&mut self, lock: &Arc<Lock>) {
        let until = if self.locks.is_empty() { lock.valid_until() } else { self.until };
        self.until = until.max(lock.valid_until());
        self.locks.insert(*lock.token(), Arc::clone(lock));
    }

    pub(super) fn remove(&mut self, lock: &Lock) {
        // Most locks are taken alone. Then there is nothing to hash the token for.
        if !self.locks.is_empty() {
            self.locks.remove(lock.token());
            self.locks.give_back();
        }
    }

    pub(super) fn has(&self, lock: &Lock) -> bool {
        self.locks.contains_key(lock.token())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.locks.len()
    }

    /// When the last of them ends, if there are any. Where there are many, this may be as old as a waiter's look.
    pub(super) fn until(&self) -> Option<Moment> {
        (!self.locks.is_empty()).then_some(self.until)
    }

    /// Whether any of them is still valid.
    pub(super) fn is_valid(&self, now: Moment) -> bool {
        let is_valid = |lock: &Arc<Lock>| now < lock.valid_until();
        !self.locks.is_empty() && (now < self.until || self.locks.values().any(is_valid))
    }

    /// Forgets those that have ended, unless they were looked at a moment ago. Returns whether the last one was
    /// forgotten.
    pub(super) fn forget_ended(
        &mut self,
        has_ended: impl Fn(&Arc<Lock>) -> bool,
        now: Moment,
    ) -> bool {
        if self.locks.is_empty() {
            return false;
        }
        self.allowed += LOOKED_AT;
        if self.allowed < self.locks.len() && now < self.look_at.min(self.until) {
            return false;
        }
        #[cfg(test)]
        {
            self.looked_at += self.locks.len();
        }
        (self.allowed, self.look_at) = (0, now.plus_ms(LOOK_MS));
        self.locks.retain(|_, lock| !has_ended(lock));
        self.locks.give_back();
        self.until = self.locks.values().map(|lock| lock.valid_until()).max().unwrap_or(now);
        self.locks.is_empty()
    }
}
