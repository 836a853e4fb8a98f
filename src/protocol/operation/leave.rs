//! Leaving an inner level of a lock that is held at several levels. No server is asked.

use super::round::Round;
use super::{Actions, Ended, Event, Operation, Urgency, cancelled};
use crate::protocol::lock::View;

/// Leaves an inner level, and tells whether the lock is still held.
pub(crate) struct Leave {
    view: View,
}

impl Leave {
    pub(crate) fn new(view: View) -> Self {
        Self { view }
    }
}

impl Operation for Leave {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        if let Event::Cancelled { .. } = event {
            return actions.end(Err(cancelled()));
        }
        let check = self.view.held_lock().check_valid(actions.now());
        actions.end(check.map(|()| Ended::Left));
    }

    fn urgency(&self) -> Urgency {
        Urgency::Holds
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }
}
