//! What a queue has to do with the lines on the servers.

use super::{RIVAL_MS, WaitQueue, Wants};
use crate::moment::Moment;

impl WaitQueue {
    /// A release of this manager has woken another client, which must get its chance now. The next waiter asks
    /// at this moment.
    pub(in crate::wait_queue) fn woke(&mut self, until: Moment, now: Moment) {
        (self.rival_at, self.woken_at) = (Some(now), Some(now));
        if self.head.is_none() {
            self.open_at = Some(until);
        }
    }

    /// Whether another client was woken lately.
    pub(in crate::wait_queue) fn was_woken(&self, now: Moment) -> bool {
        self.woken_at.is_some_and(|woken_at| now.ms_since(woken_at) < RIVAL_MS)
    }

    /// Whether this waiter may stand in line on the servers: it is the head, and no lock of this manager is in
    /// its way.
    pub(in crate::wait_queue) fn may_stand_in_line(&self, number: u64) -> bool {
        self.is_head(number) && self.is_free_for_head()
    }

    /// Whether this is the only waiter that uses the queue's place in line. A waiter that wants several
    /// resources has its own place.
    pub(in crate::wait_queue) fn is_alone(&self, number: u64) -> bool {
        self.is_head(number) && self.behind.values().all(|waiter| waiter.wants == Wants::Several)
    }

    /// The number of the head, if it wants other resources, too.
    pub(in crate::wait_queue) fn head_of_several(&self) -> Option<u64> {
        self.head.as_ref().filter(|head| head.wants == Wants::Several).map(|head| head.number)
    }

    pub(in crate::wait_queue) fn has_head(&self) -> bool {
        self.head.is_some()
    }
}
