//! What has come over the connection: the rest of connecting, and answers.

use super::{Delivery, Effects, Server};
use crate::command::Answer;
use crate::moment::Moment;
use crate::system::clock;
use crate::transport::inbox::Received;
use crate::transport::queue::Settled;
use crate::transport::useless::Useless;

impl Server {
    /// Goes on with connecting, or reads what there is.
    pub(super) fn read_on(&mut self, now: Moment, effects: &mut Effects) {
        let change = self.link.handle_connected(now);
        self.handle_change(change, effects);
        self.receive(now, effects);
    }

    /// Reads until there is nothing more: the stream may have ended behind what was received, and who stops
    /// there takes a closed connection for one that is up.
    pub(super) fn look(&mut self, now: Moment, effects: &mut Effects) {
        while self.receive(now, effects) {}
    }

    /// Also over the connection before this one, if there is no other yet. Returns whether something was
    /// received last, so that more may be there.
    fn receive(&mut self, now: Moment, effects: &mut Effects) -> bool {
        if self.is_stuck() {
            self.receive_from_predecessor(now, effects);
        }
        loop {
            let received = match self.link.receive(now) {
                Ok(Received::Nothing) => return false,
                Ok(received) => received,
                Err(change) => {
                    self.handle_change(change, effects);
                    return false;
                }
            };
            self.queue.hear(now);
            let change = self.link.read_handshake(now);
            self.handle_change(change, effects);
            if self.link.is_up() && self.is_stuck() {
                self.replace_predecessor(now, effects);
            }
            if let Err(useless) = self.read_answers(now, effects) {
                let change = self.link.break_off(useless.to_string(), now);
                self.handle_change(change, effects);
                return false;
            }
            if received == Received::All {
                return true;
            }
        }
    }

    fn read_answers(&mut self, now: Moment, effects: &mut Effects) -> Result<(), Useless> {
        while self.link.is_up() {
            let inbox = &mut self.link.inbox;
            let Some(settled) = self.queue.next_settled(inbox, &mut self.capabilities, now)? else {
                return Ok(());
            };
            let Settled { kind, ticket, answer } = settled;
            let is_replica = matches!(&answer, Answer::Failed(it) if it.is_of_a_replica());
            self.remarks.note_answer(kind, &answer, clock::now, &mut effects.lines);
            if let Some(ticket) = ticket {
                effects.deliveries.push(Delivery {
                    ticket,
                    server: self.index,
                    answer,
                    sent: true,
                });
            }
            if is_replica && self.link.is_followed() {
                return Err(Useless::Demoted);
            }
        }
        Ok(())
    }
}
