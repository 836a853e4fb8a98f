//! The locks by which this manager holds a resource shared. There may be thousands, and none of them is looked at
//! when a lock comes or goes.

use std::collections::HashMap;
use std::sync::Arc;

use super::turn::LOOK_MS;
use crate::held_lock::HeldLock;
use crate::moment::Moment;
use crate::room::Room;
use crate::token::Token;

/// How many of them one step may look at. They are looked at all at once, after so many steps that this is true on
/// average. So few of them are looked at in each step.
const LOOKED_AT: usize = 16;

/// The locks, by their tokens.
pub(super) struct OwnReaders {
    holds: HashMap<Token, Arc<HeldLock>>,
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
            holds: HashMap::new(),
            until: start,
            allowed: 0,
            look_at: start,
            #[cfg(test)]
            looked_at: 0,
        }
    }
}

impl OwnReaders {
    pub(super) fn add(&mut self, hold: &Arc<HeldLock>) {
        let until = if self.holds.is_empty() { hold.valid_until() } else { self.until };
        self.until = until.max(hold.valid_until());
        self.holds.insert(*hold.token(), Arc::clone(hold));
    }

    pub(super) fn remove(&mut self, hold: &HeldLock) {
        self.holds.remove(hold.token());
        self.holds.give_back();
    }

    pub(super) fn has(&self, hold: &HeldLock) -> bool {
        self.holds.contains_key(hold.token())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.holds.len()
    }

    /// When the last of them ends, if there are any. Where there are many, this may be as old as a waiter's look.
    pub(super) fn until(&self) -> Option<Moment> {
        (!self.holds.is_empty()).then_some(self.until)
    }

    /// Whether any of them is still valid.
    pub(super) fn is_valid(&self, now: Moment) -> bool {
        let is_valid = |hold: &Arc<HeldLock>| now < hold.valid_until();
        !self.holds.is_empty() && (now < self.until || self.holds.values().any(is_valid))
    }

    /// Forgets those that have ended, unless they were looked at a moment ago. Returns whether the last one was
    /// forgotten.
    pub(super) fn forget_ended(
        &mut self,
        has_ended: impl Fn(&Arc<HeldLock>) -> bool,
        now: Moment,
    ) -> bool {
        if self.holds.is_empty() {
            return false;
        }
        self.allowed += LOOKED_AT;
        if self.allowed < self.holds.len() && now < self.look_at.min(self.until) {
            return false;
        }
        #[cfg(test)]
        {
            self.looked_at += self.holds.len();
        }
        (self.allowed, self.look_at) = (0, now.plus_ms(LOOK_MS));
        self.holds.retain(|_, hold| !has_ended(hold));
        self.holds.give_back();
        self.until = self.holds.values().map(|hold| hold.valid_until()).max().unwrap_or(now);
        self.holds.is_empty()
    }
}
