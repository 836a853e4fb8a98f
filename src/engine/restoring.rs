//! When the numbers of servers that have lost them are restored: when an acquire has found such a server. Nothing else
//! starts that, so a manager without fencing tokens never does, and there is no timer for it.

use super::Engine;
use super::lanes::Reason;
use super::state::Caller;
use crate::moment::Moment;
use crate::operation::Event;
use crate::operation::restore::Restore;

/// The minimum time from one start to the next. Each reads all numbers of all servers, which takes them a millisecond.
const APART_MS: i64 = 1_000;

impl Engine {
    /// Whether an acquire has found a server whose numbers are to be restored, and it is time for that.
    pub(super) fn is_to_restore(&self, now: Moment) -> bool {
        self.state.effects.restores && now >= self.restore_from
    }

    /// Begins to restore them.
    pub(super) fn restore(&mut self, now: Moment) {
        self.state.effects.restores = false;
        self.restore_from = now.plus_ms(APART_MS);
        let ticket =
            self.state.add(Box::new(Restore::default()), Caller::Program(Box::new(())), None);
        self.state.call(ticket, Event::Started, Reason::Begins);
    }
}
