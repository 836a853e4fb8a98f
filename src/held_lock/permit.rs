//! A permit of a semaphore: which slot it has. Once it has a slot, it is an ordinary lock of that slot.

use super::HeldLock;
use super::slot::{Granted, Permit};
use crate::moment::Moment;
use crate::quorum::standing::Word;

impl HeldLock {
    /// Takes this slot.
    pub(crate) fn take_slot(&self, slot: u16, granted: &Granted<'_>, now: Moment) {
        let &Granted { voters, sent, given } = granted;
        let key = self.target.slot(slot);
        if self.permit.set(Permit { key, slot }).is_err() {
            return;
        }
        self.take(voters, sent);
        for &(server, got) in given.iter().filter(|&&(server, _)| !voters.contains(server)) {
            self.hear_of_slot(server, got == Some(slot), got.is_some(), now);
        }
    }

    /// The slot that the lock has, if it is a permit of a semaphore.
    pub(crate) fn slot(&self) -> Option<u16> {
        self.permit.get().map(|permit| permit.slot)
    }

    /// Hears that a server has given the lock this slot, or none. Before the lock has taken a slot, this says
    /// nothing. In that case [`Self::take_slot`] is told of it. Afterwards it is the answer to the last request
    /// that the server was sent, because no server is sent a move before it has answered.
    pub(super) fn hear_slot(&self, server: usize, got: Option<u16>, now: Moment) {
        let Some(permit) = self.permit.get() else { return };
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
            // The other slot is released there, so the server may be given this one.
            standings.hear(server, 0, Word::Absent);
        }
    }
}
