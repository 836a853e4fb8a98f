//! What a server says by itself, and whether it does.

use super::{Effects, Server};
use crate::command::Request;
use crate::failure::Failure;

impl Server {
    /// Why this request is of no use, if it is not: the server would not tell us what we ask it to tell us later, or it is
    /// not known whether it would.
    pub(super) fn muteness(&self, request: &Request) -> Option<Failure> {
        if !request.needs_pushes() {
            return None;
        }
        if !self.link.is_up() {
            return Some(self.not_connected());
        }
        let mute = || (!self.capabilities.has_pushes()).then_some(Failure::Mute);
        self.queue.unheard().or_else(mute)
    }

    /// Takes note of what the server has said by itself: all of it, or what came before the last answer.
    pub(super) fn note_pushes(&mut self, is_early: bool, effects: &mut Effects) {
        let (channel, inbox) = (self.queue.channel(), &mut self.link.inbox);
        if !inbox.has_pushes() {
            return;
        }
        match is_early {
            true => effects.note_pushes(self.index, channel, inbox.early_pushes()),
            false => effects.note_pushes(
                self.index,
                channel,
                inbox.pushes_amid(self.queue.replies_of_oldest()),
            ),
        }
    }
}
