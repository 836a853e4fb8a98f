//! What a connection has received: the rest of connecting, and answers.

use super::{Delivery, Effects, Server};
use crate::command::Answer;
use crate::failure::Failure;
use crate::log::Level;
use crate::moment::Moment;
use crate::quorum::offset::Course;
use crate::system::clock;
use crate::transport::close_reason::CloseReason;
use crate::transport::event_log::Event;
use crate::transport::inbox::Received;
use crate::transport::queue::Settled;

impl Server {
    /// Goes on with connecting, or reads the available data.
    pub(super) fn read_on(&mut self, now: Moment, effects: &mut Effects) {
        let change = self.link.handle_connected(now);
        self.handle_change(change, effects);
        self.receive(now, effects);
    }

    /// Reads until there is no more data. The stream may have ended behind the received data. A reader that
    /// stopped earlier would take a closed connection for one that is up.
    pub(super) fn look(&mut self, now: Moment, effects: &mut Effects) {
        while self.receive(now, effects) {}
    }

    /// Also reads from the connection before this one, if its successor is not up yet. Returns whether the
    /// last read received something, so that more may be there.
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
            // The data may have been sent after `now` was read.
            let now = clock::now().max(now);
            self.queue.hear(now);
            let change = self.link.read_handshake(now);
            self.handle_change(change, effects);
            if self.link.is_up() && self.is_stuck() {
                self.replace_predecessor(now, effects);
            }
            if let Err(close_reason) = self.read_answers(now, effects) {
                let change = self.link.break_off(close_reason.to_string(), now);
                self.handle_change(change, effects);
                return false;
            }
            if received == Received::All {
                return true;
            }
        }
    }

    /// Logs that the server's clock was set.
    pub(super) fn tell_of_clock(&mut self, now: Moment, effects: &mut Effects) {
        let line = match self.lasting.clock.take_news() {
            None => return,
            Some(Course::Back { ms }) => (Level::Info, format!("clock set back by {ms} ms")),
            Some(_) => match self.queue.doubt(now) {
                Some(doubt) => (Level::Warning, doubt.to_string()),
                None => return,
            },
        };
        self.event_log.say(Event::ClockSet, line, now, &mut effects.lines);
    }

    /// Logs that the server has lost its fencing tokens, or has them again.
    fn tell_of_numbers(&mut self, now: Moment, effects: &mut Effects) {
        if let Some(numbers) = self.queue.news_of_numbers() {
            self.event_log.say(Event::Numbers, numbers.line(), now, &mut effects.lines);
        }
    }

    /// Logs once that a loss of the server's memory is not noticed.
    pub(super) fn tell_of_blindness(&mut self, now: Moment, effects: &mut Effects) {
        if self.queue.is_blind() && !self.is_known_blind {
            let line = (Level::Warning, self.queue.caveat().into_owned());
            self.event_log.say(Event::Unguarded, line, now, &mut effects.lines);
        }
        self.is_known_blind = self.queue.is_blind();
    }

    fn read_answers(&mut self, now: Moment, effects: &mut Effects) -> Result<(), CloseReason> {
        while self.link.is_up() {
            let inbox = &mut self.link.inbox;
            let Some(settled) = self.queue.next_settled(inbox, &mut self.capabilities, now)? else {
                self.note_pushes(false, effects);
                return Ok(());
            };
            self.note_pushes(true, effects);
            let Settled { kind, ticket, answer } = settled;
            self.traffic.note_answer(self.queue.round_trip_us());
            let is_replica = matches!(&answer, Answer::Failed(it) if it.is_of_a_replica());
            self.event_log.note_answer(kind, &answer, clock::now, &mut effects.lines);
            self.tell_of_clock(now, effects);
            effects.restores |= answer.asks_to_restore();
            self.tell_of_numbers(now, effects);
            self.tell_of_blindness(now, effects);
            if let Some(ticket) = ticket {
                effects.deliveries.push(Delivery {
                    ticket,
                    server: self.index,
                    answer,
                    sent: true,
                });
            }
            if is_replica && self.link.is_followed() {
                return Err(CloseReason::Demoted);
            }
        }
        Ok(())
    }

    /// Fails all waiting tickets. A request that must reach the server is kept for the next connection.
    pub(super) fn fail_all(&mut self, failure: &Failure, effects: &mut Effects) {
        let mut fail = |ticket, sent| {
            let answer = Answer::Failed(failure.clone());
            effects.deliveries.push(Delivery { ticket, server: self.index, answer, sent });
        };
        self.awaiting_connection.drain(..).for_each(|ticket| fail(ticket, false));
        self.queue.fail(fail);
    }
}
