//! Open questions: answers, timeouts, and closing.

use std::iter;
use std::mem;
use std::time::Duration;

use super::Engine;
use super::lanes::Reason;
use crate::command::Answer;
use crate::failure::Failure;
use crate::moment::Moment;
use crate::operation::Event;
use crate::system::clock;
use crate::transport::ticket::Ticket;

/// A hasty question waits for a server this many times as long as its last answer took, and at least
/// `HASTE_MIN`: a busy machine may keep a server from running for that long.
const USUAL_TIMES: u32 = 8;
const HASTE_MIN: Duration = Duration::from_millis(20);

/// How many operations that are due one turn takes from the timers. To take one is much less work than a step.
const DUE_MAX: usize = 4096;

impl Engine {
    /// Delivers the servers' answers to the operations. Decided questions are closed only after all answers
    /// are delivered: a late answer still shows that its request was sent.
    ///
    /// The clock is read after all answers were received. A remaining time that a server reports counts from
    /// that moment at the latest, and this thread may have been kept from running before it read the answer.
    pub(super) fn deliver(&mut self) {
        let now = clock::now();
        let mut deliveries = mem::take(&mut self.state.effects.deliveries);
        let mut pushes = mem::take(&mut self.state.effects.pushes).into_iter().peekable();
        for (nth, it) in deliveries.drain(..).enumerate() {
            while let Some(pushed) = pushes.next_if(|pushed| pushed.behind <= nth) {
                self.hear_push(pushed, now);
            }
            let Some(slot) = self.state.find(it.ticket) else { continue };
            let Some(open) = slot.question.as_mut().filter(|open| open.pending.contains(it.server))
            else {
                continue;
            };
            open.pending = open.pending.without(it.server);
            if it.sent {
                open.sent = open.sent.with(it.server);
            }
            let Some(operation) = slot.operation.as_mut() else { continue };
            if operation.hear(it.server, it.answer, now) {
                self.decided.push(it.ticket);
            } else if let Some(doublings) = operation.haste(now) {
                self.hasten(it.ticket, doublings, now);
            }
        }
        pushes.for_each(|pushed| self.hear_push(pushed, now));
        // The vector is kept for its memory. A request sent meanwhile may have ended a connection, which
        // adds deliveries.
        deliveries.append(&mut self.state.effects.deliveries);
        self.state.effects.deliveries = deliveries;
    }

    /// Shortens the wait of a question that makes haste: see [`crate::operation::Operation::haste`].
    fn hasten(&mut self, ticket: Ticket, doublings: u32, now: Moment) {
        let servers = &self.state.servers;
        let slot = self.state.slots.get_mut(ticket.place());
        let Some(open) = slot.and_then(|slot| slot.question.as_mut()) else { return };
        let pending = servers.iter().enumerate().filter(|(index, _)| open.pending.contains(*index));
        let usual_us = pending.filter_map(|(_, server)| server.round_trip_us()).max();
        let usual = Duration::from_micros(usual_us.unwrap_or_default().max(0).unsigned_abs());
        let wait = (USUAL_TIMES * usual).max(HASTE_MIN).saturating_mul(1 << doublings);
        open.limit = open.limit.min(now.plus(wait));
        let (limit, until) = (open.limit, self.state.due_at(ticket.place()));
        self.state.set_until(ticket.place(), until.min(limit));
    }

    /// Readiness was found out before the clock was read, and this thread may have been kept from running
    /// in between. So all servers are checked once more before any question times out.
    fn look_again(&mut self, due: &[usize], now: Moment) {
        let asks = |&place: &usize| {
            self.state.slots.get(place).is_some_and(|slot| slot.question.is_some())
        };
        if due.iter().any(asks) {
            self.state.visit_servers(|server, effects| server.handle_ready(now, effects));
            self.settle(now);
        }
    }

    /// Ends the waits that are over and the questions whose time is up. Such a question hears no more servers.
    /// If more are due than one turn may take, the others stay due.
    pub(super) fn expire(&mut self, now: Moment) {
        let mut due = mem::take(&mut self.due);
        due.extend(iter::from_fn(|| self.state.take_due(now)).take(DUE_MAX));
        self.look_again(&due, now);
        for place in due.drain(..) {
            self.expire_one(place, now);
            self.settle(now);
        }
        self.due = due;
    }

    /// Does nothing if the operation has changed since it was found to be due.
    fn expire_one(&mut self, place: usize, now: Moment) {
        let slot = self.state.slots.get(place).filter(|slot| now >= slot.until);
        let Some(slot) = slot else { return };
        let ticket = Ticket::new(place, slot.generation);
        let Some(open) = &slot.question else {
            return self.state.call(ticket, Event::TimeOut, Reason::IsDue);
        };
        let until = open.answer_by(ticket, slot.until, &self.state.servers);
        self.state.set_until(place, until);
        if now >= until {
            self.give_up_on_servers(ticket, now);
            self.close(ticket, now);
        }
    }

    /// Reports every server that has not answered to the operation as failed.
    fn give_up_on_servers(&mut self, ticket: Ticket, now: Moment) {
        for (index, server) in self.state.servers.iter_mut().enumerate() {
            let Some(slot) = self.state.slots.get_mut(ticket.place()) else { return };
            let (Some(open), Some(operation)) = (&mut slot.question, &mut slot.operation) else {
                return;
            };
            if !open.pending.contains(index) {
                continue;
            }
            let sent_at = server.abandon(ticket, now, &mut self.state.effects);
            let failure = match sent_at {
                Some(sent_at) => Failure::NoAnswer { ms: now.ms_since(sent_at) },
                None => server.not_in_time(now.ms_since(open.since)),
            };
            open.note_sent(index, sent_at);
            open.pending = open.pending.without(index);
            operation.hear(index, Answer::Failed(failure), now);
        }
    }

    /// Closes the question. It does not wait for servers that have not answered.
    pub(super) fn close(&mut self, ticket: Ticket, now: Moment) {
        let slot = self.state.find(ticket).filter(|slot| slot.question.is_some());
        let Some((Some(mut open), Some(mut operation))) =
            slot.map(|slot| (slot.question.take(), slot.operation.take()))
        else {
            return;
        };
        let wanted = operation.wanted_conditions();
        for (index, server) in self.state.servers.iter_mut().enumerate() {
            let sent_at = match open.pending.contains(index) {
                true => server.abandon(ticket, now, &mut self.state.effects),
                false => None,
            };
            open.note_sent(index, sent_at);
            if wanted.contains(index) {
                let condition = server.condition(sent_at, now, &mut self.state.effects);
                operation.note_condition(index, condition);
            }
        }
        if let Some(slot) = self.state.find(ticket) {
            slot.operation = Some(operation);
        }
        self.state.note_closed(ticket.place());
        self.step(ticket.place(), Event::Closed { sent: open.sent });
    }
}
