//! Push messages of a server, and whether the server sends them.

use super::{Effects, Server};
use crate::command::Request;
use crate::failure::Failure;

impl Server {
    /// Why this request is not for the server, if so. It relies on later push messages, and the server would not
    /// send them, or it is not known whether it would. Or it is a move, and another request that may set a slot
    /// is under way.
    pub(super) fn left_out(&self, request: &Request) -> Option<Failure> {
        if request.leaves_out(self.index) {
            return Some(Failure::NotMoved);
        }
        if !request.needs_pushes() {
            return None;
        }
        if !self.link.is_up() {
            return Some(self.not_connected());
        }
        let mute = || (!self.capabilities.has_pushes()).then_some(Failure::Mute);
        self.queue.unheard().or_else(mute)
    }

    /// Notes the server's push messages: all of them, or with `is_early` only those that came before the last
    /// answer.
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
