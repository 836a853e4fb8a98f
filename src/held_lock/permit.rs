//! A permit of a semaphore: which of its slots it has. From then on it is an ordinary lock of that slot.

use super::HeldLock;
use super::slot::{Granted, Permit};
use crate::command::Verb;
use crate::moment::Moment;
use crate::quorum::standing::Word;

impl HeldLock {
    /// This slot is had.
    pub(crate) fn take_slot(&self, slot: u16, granted: &Granted<'_>, now: Moment) {
        let &Granted { voters, sent, moved, given } = granted;
        let key = self.target.slot(slot);
        if self.permit.set(Permit { key, slot, moved }).is_err() {
            return;
        }
        self.take(voters, sent);
        for &(server, got) in given.iter().filter(|&&(server, _)| !voters.contains(server)) {
            self.hear_of_slot(server, got == Some(slot), got.is_some(), now);
        }
    }

    /// The slot that it has, of a semaphore.
    pub(crate) fn slot(&self) -> Option<u16> {
        self.permit.get().map(|permit| permit.slot)
    }

    /// A server has given it this slot, or none. Before it is known which one is had, that says nothing: then it is told
    /// to [`Self::take_slot`].
    pub(super) fn hear_slot(&self, server: usize, verb: Verb, got: Option<u16>, now: Moment) {
        let Some(permit) = self.permit.get() else { return };
        if verb == Verb::Acquire && permit.moved.contains(server) {
            return;
        }
        self.hear_of_slot(server, got == Some(permit.slot), got.is_some(), now);
    }

    fn hear_of_slot(&self, server: usize, is_ours: bool, has_other: bool, now: Moment) {
        let mut standings = self.standings();
        if is_ours {
            let in_time = now <= self.window_end();
            return standings.hear(server, 0, Word::Granted { in_time });
        }
        standings.hear(server, 0, Word::NotSet);
        if has_other {
            // The other one is given up there: it may be given this one.
            standings.hear(server, 0, Word::Absent);
        }
    }
}
