//! Giving a lock away. No server is asked.

use std::sync::Arc;

use super::round::Round;
use super::{Actions, Ended, Event, Operation, Urgency, cancelled, forget};
use crate::protocol::lock::View;
use crate::protocol::stats::{Account, Kind};

/// Gives a lock away.
pub(crate) struct Detach {
    view: View,
}

impl Detach {
    pub(crate) fn new(view: View) -> Self {
        Self { view }
    }
}

impl Operation for Detach {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        if let Event::Cancelled { .. } = event {
            return actions.end(Err(cancelled()));
        }
        let lock = self.view.held_lock();
        let check = lock.check_valid(actions.now());
        if check.is_ok() && lock.detach() {
            // From now on, waiters of this manager wait for another holder.
            forget(lock, actions);
            return actions.end(Ok(Ended::Detached));
        }
        // Another handle may have released the lock at this moment.
        let check = check.and_then(|()| lock.check_valid(actions.now()));
        actions.end(check.map(|()| Ended::Stopped));
    }

    fn urgency(&self) -> Urgency {
        Urgency::Holds
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Detach, ..Account::default() }
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(self.view.held_lock().resource())
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }
}
