//! How a server gets a second connection when the first one owes an answer for too long.
//!
//! A connection can be dead behind a device that acknowledges what is sent over it. Waiting for such a server
//! would leave it out until the longest TTL in flight is over, which may take years. Closing the connection
//! would let requests over the next connection overtake the requests that they undo. So the connection is set
//! aside ([`Predecessor`]). The server counts as behind until another connection is up, or until the first
//! one has answered after all.

use std::mem;
use std::sync::Arc;

use super::{Delivery, Effects, Server};
use crate::command::{Answer, Request};
use crate::failure::Failure;
use crate::log::Level;
use crate::moment::Moment;
use crate::system::clock;
use crate::transport::event_log::Event;
use crate::transport::inbox::Received;
use crate::transport::link::Change;
use crate::transport::predecessor::Predecessor;
use crate::transport::queue::{Queue, Settled};
use crate::transport::ticket::Ticket;

impl Server {
    /// Whether this connection owes an answer for too long, and its successor is not up yet.
    pub(super) fn is_stuck(&self) -> bool {
        self.predecessor.as_ref().is_some_and(|predecessor| !predecessor.is_replaced)
    }

    /// Since when the oldest answer is owed on the connection in use.
    pub(super) fn owes_since(&self) -> Option<Moment> {
        match &self.predecessor {
            Some(it) if !it.is_replaced => it.queue.owes_since(),
            _ => self.queue.owes_since(),
        }
    }

    /// Puts a request in the queue. A request that undoes another one which may be under way over the
    /// connection before this one is sent over both.
    pub(super) fn push(&mut self, request: &Arc<Request>, ticket: Option<Ticket>, now: Moment) {
        match &mut self.predecessor {
            Some(it) if !it.is_replaced => return it.queue.push(request, ticket, now),
            Some(it) if request.must_reach(self.index) => it.guard(request, now),
            _ => {}
        }
        self.queue.push(request, ticket, now);
    }

    /// Whether something waits to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        let predecessor =
            self.predecessor.as_ref().is_some_and(|predecessor| predecessor.queue.has_unsent());
        predecessor || self.queue.has_unsent()
    }

    /// The same as [`Queue::sent_at`], for the connection that has the request.
    pub(crate) fn sent_at(&self, ticket: Ticket) -> Option<Moment> {
        let before =
            || self.predecessor.as_ref().and_then(|predecessor| predecessor.queue.sent_at(ticket));
        self.queue.sent_at(ticket).or_else(before)
    }

    /// The same as [`Queue::abandon`], for the connection that has the request.
    pub(super) fn abandon_request(&mut self, ticket: Ticket) -> Option<Moment> {
        let sent_at = self.queue.abandon(ticket);
        let abandon = |predecessor: &mut Box<Predecessor>| predecessor.queue.abandon(ticket);
        sent_at.or_else(|| self.predecessor.as_mut().and_then(abandon))
    }

    /// Handles a connection that owes an answer for too long. The connection before this one is given up when
    /// its time is over.
    pub(super) fn handle_overdue(&mut self, now: Moment, effects: &mut Effects) {
        if self.predecessor.as_ref().is_some_and(|predecessor| now >= predecessor.given_up_at()) {
            self.receive_from_predecessor(now, effects);
        }
        let is_given_up = |predecessor: &mut Box<Predecessor>| now >= predecessor.given_up_at();
        if let Some(predecessor) = self.predecessor.take_if(is_given_up) {
            let ms = now.ms_since(predecessor.heard_at());
            self.lose_predecessor(*predecessor, format!("no data received for {ms} ms"), effects);
        }
        if now >= self.queue.overdue_at(self.link.timeouts()) && !self.queue.is_silent(now) {
            self.set_aside(now, effects);
        }
    }

    /// Sets the connection aside, so that another one is opened. At most one is kept beside the connection in
    /// use, so an older one is closed.
    fn set_aside(&mut self, now: Moment, effects: &mut Effects) {
        let Some(stream) = self.link.set_aside(now) else { return };
        if let Some(older) = self.predecessor.take() {
            self.lose_predecessor(*older, "a newer connection is overdue".to_owned(), effects);
        }
        let ms = now.ms_since(self.queue.owes_since().unwrap_or(now));
        let words = format!("no reply for {ms} ms: opening a second connection");
        self.event_log.say(Event::Overdue, (Level::Warning, words), now, &mut effects.lines);
        effects.health.spoil();
        effects.changed = true;
        let next = self.queue.next();
        let queue = mem::replace(&mut self.queue, next);
        self.predecessor = Some(Box::new(Predecessor::new(stream, queue, self.capabilities)));
    }

    /// The successor is up. Requests over the connection before it that must reach the server are sent over
    /// the successor, too.
    pub(super) fn replace_predecessor(&mut self, now: Moment, effects: &mut Effects) {
        // The old connection may have answered at the same moment. In that case it stays in use.
        self.receive_from_predecessor(now, effects);
        let Some(mut predecessor) =
            self.predecessor.take_if(|predecessor| !predecessor.is_replaced)
        else {
            return;
        };
        let line = (Level::Info, "second connection is open".to_owned());
        self.event_log.say(Event::Replaced, line, now, &mut effects.lines);
        self.queue.repeat_required(&mut predecessor.queue);
        predecessor.is_replaced = true;
        predecessor.look_what_is_guarded();
        if now < predecessor.given_up_at() {
            self.predecessor = Some(predecessor);
        } else {
            self.fail_waiting(predecessor.queue, "replaced by a newer connection", effects);
        }
    }

    /// Reads the available data of the connection before this one.
    pub(super) fn receive_from_predecessor(&mut self, now: Moment, effects: &mut Effects) {
        let Some(mut predecessor) = self.predecessor.take() else { return };
        let owed_since = predecessor.queue.owes_since();
        if let Err(how) = self.read(&mut predecessor, now, effects) {
            return self.lose_predecessor(*predecessor, how, effects);
        }
        let has_answered = predecessor.queue.owes_since() != owed_since;
        let is_overdue = now >= predecessor.queue.overdue_at(self.link.timeouts());
        if has_answered && !is_overdue && !predecessor.is_replaced {
            return self.take_back(*predecessor, now, effects);
        }
        self.predecessor = Some(predecessor);
    }

    fn read(
        &mut self,
        predecessor: &mut Predecessor,
        now: Moment,
        effects: &mut Effects,
    ) -> Result<(), String> {
        loop {
            let received = predecessor.receive(now)?;
            let now = clock::now().max(now);
            if received == Received::Nothing {
                return Ok(());
            }
            while let Some(Settled { kind, ticket, answer }) = predecessor.next_settled(now)? {
                self.traffic.note_answer(predecessor.queue.round_trip_us());
                if !predecessor.is_replaced {
                    self.event_log.note_answer(kind, &answer, clock::now, &mut effects.lines);
                }
                let server = self.index;
                let deliver = |ticket| Delivery { ticket, server, answer, sent: true };
                effects.deliveries.extend(ticket.map(deliver));
            }
            predecessor.note_pushes(self.index, effects);
            predecessor.look_what_is_guarded();
            if received == Received::All {
                return Ok(());
            }
        }
    }

    /// The connection that was set aside has answered before there is another one.
    fn take_back(&mut self, predecessor: Predecessor, now: Moment, effects: &mut Effects) {
        let line = (Level::Info, "replies again".to_owned());
        self.event_log.say(Event::AnswersAgain, line, now, &mut effects.lines);
        let (stream, queue, capabilities) = predecessor.into_parts();
        self.link.take_back(stream);
        (self.queue, self.capabilities) = (queue, capabilities);
        for ticket in mem::take(&mut self.awaiting_connection) {
            self.deliver(ticket, Answer::Done, effects);
        }
        effects.changed = true;
    }

    /// Gives up the connection before this one. Requests that must reach the server are sent over its
    /// successor.
    fn lose_predecessor(&mut self, predecessor: Predecessor, how: String, effects: &mut Effects) {
        effects.changed = true;
        if predecessor.is_replaced {
            let index = self.index;
            let failure = Failure::Lost(how);
            self.queue.take_required(predecessor.queue, |ticket, sent| {
                let answer = Answer::Failed(failure.clone());
                effects.deliveries.push(Delivery { ticket, server: index, answer, sent });
            });
        } else {
            self.queue = predecessor.queue;
            self.link.note_loss(&how);
            self.handle_change(Some(Change::Lost { how }), effects);
        }
    }

    /// Fails the tickets that wait for answers over a connection that is not used any more.
    fn fail_waiting(&self, mut queue: Queue, how: &str, effects: &mut Effects) {
        queue.fail(|ticket, sent| {
            let answer = Answer::Failed(Failure::Lost(how.to_owned()));
            effects.deliveries.push(Delivery { ticket, server: self.index, answer, sent });
        });
    }

    /// Sends the queued requests of the connection before this one.
    pub(super) fn flush_predecessor(&mut self, now: Moment, effects: &mut Effects) {
        let Some(mut predecessor) = self.predecessor.take() else { return };
        match predecessor.flush(now) {
            Ok(written) => {
                self.traffic.requests += written;
                self.predecessor = Some(predecessor);
            }
            Err(how) => self.lose_predecessor(*predecessor, how, effects),
        }
    }
}
