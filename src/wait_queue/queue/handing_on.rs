//! What happens to a queue when this manager gives up the lock.

use super::{RUN_MS, RUN_WITH_RIVALS_MS, WaitQueue, Wants};
use crate::held_lock::HeldLock;
use crate::moment::Moment;
use crate::transport::ticket::Ticket;
use crate::wait_queue::turn::Next;

impl WaitQueue {
    pub(in crate::wait_queue) fn release(&mut self, hold: &HeldLock, now: Moment) -> (Next, bool) {
        self.let_go_of(hold);
        if !self.is_free_for_head() {
            return (Next::Nobody, false);
        }
        let has_rivals = self.has_rivals(now);
        let readers = self.call_readers(0);
        let Some(head) = &mut self.head else { return (Next::Nobody, has_rivals) };
        let run_ms = if has_rivals { RUN_WITH_RIVALS_MS } else { RUN_MS };
        if now.ms_since(self.run_since) >= run_ms {
            self.run_since = now;
            return (Next::Tell(merge(self.waiting_head(), readers)), true);
        }
        match head.ticket {
            _ if head.wants == Wants::Shared => {
                (self.open_at, self.is_handed_on) = (Some(now), true);
                (Next::Tell(readers), false)
            }
            Some(ticket) if head.wants == Wants::Several => {
                (self.open_at, self.is_handed_on) = (Some(now), true);
                (Next::Tell(vec![ticket]), false)
            }
            Some(ticket) => {
                (head.ticket, self.asks_in_vain) = (None, false);
                (Next::Ask(ticket), false)
            }
            None => {
                self.open_at = Some(now);
                (Next::Nobody, false)
            }
        }
    }

    pub(in crate::wait_queue) fn stand_back(&mut self, until: Moment) {
        self.open_at = Some(until);
    }

    pub(in crate::wait_queue) fn lost(&mut self, hold: &HeldLock, now: Moment) -> Vec<Ticket> {
        self.let_go_of(hold);
        if !self.is_free_for_head() {
            return Vec::new();
        }
        self.open_at = Some(now);
        let readers = self.call_readers(0);
        merge(self.waiting_head(), readers)
    }
}

/// The head and these readers. The head is not listed twice if it is one of the readers.
pub(super) fn merge(head: Option<Ticket>, readers: Vec<Ticket>) -> Vec<Ticket> {
    match head {
        Some(head) if readers.first() != Some(&head) => [vec![head], readers].concat(),
        _ => readers,
    }
}
