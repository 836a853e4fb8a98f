//! A connection that owes an answer for so long that another one is made in its place.
//!
//! What lies between us and the server may have dropped it and acknowledge all the same (a proxy, a
//! NAT), or the server may be frozen: nothing tells them apart. So it is not closed, for what was sent
//! may be carried out still, and be carried out late. Until its successor is up it goes on as before.
//! From then on nothing is asked over it but what undoes that which was sent over it, and it is closed when
//! it guards nothing any more.

use std::sync::Arc;

use super::effects::Effects;
use super::inbox::Received;
use super::interest::Interest;
use super::queue::{Queue, Settled};
use super::stream::Stream;
use super::wire::error_words;
use crate::command::{Capabilities, Request};
use crate::moment::Moment;
use crate::system::clock;

pub(super) struct Predecessor {
    stream: Stream,
    pub(super) queue: Queue,
    pub(super) capabilities: Capabilities,
    /// Whether the successor is up.
    pub(super) is_replaced: bool,
    /// Until when something may be there that was left over it.
    guards_until: Moment,
}

impl Predecessor {
    pub(super) fn new(stream: Stream, queue: Queue, capabilities: Capabilities) -> Self {
        let guards_until = Moment::from_nanos(0);
        Self { stream, queue, capabilities, is_replaced: false, guards_until }
    }

    /// The parts, for who goes on with it.
    pub(super) fn into_parts(self) -> (Stream, Queue, Capabilities) {
        (self.stream, self.queue, self.capabilities)
    }

    /// What to wait for: the descriptor, and whether it is to be writable.
    pub(super) fn interest(&self) -> Interest {
        let Stream { wire, outbox, .. } = &self.stream;
        Interest::of(wire.socket(), !outbox.is_empty() || wire.has_unsent())
    }

    /// When it is given up, if nothing is heard before: with a successor when it guards nothing any
    /// more, else when it was silent for too long.
    pub(super) fn given_up_at(&self) -> Moment {
        match self.is_replaced {
            true => self.guards_until,
            false => self.queue.give_up_at().unwrap_or(Moment::NEVER),
        }
    }

    /// Looks anew at what it guards.
    pub(super) fn look_what_is_guarded(&mut self) {
        self.guards_until = self.queue.guarded_until().unwrap_or(Moment::from_nanos(0));
    }

    /// Sends what is queued, or as much as the socket takes. If the connection is lost, says how.
    pub(super) fn flush(&mut self, now: Moment) -> Result<u64, String> {
        self.queue.send(&mut self.stream.outbox, self.capabilities, now);
        let sent = self.stream.wire.send_from(&mut self.stream.outbox);
        let written = self.queue.note_written(self.stream.outbox.capacity(), clock::now);
        sent.map_err(|error| error_words(&error)).map(|_| written)
    }

    /// Receives what is there, once.
    pub(super) fn receive(&mut self, now: Moment) -> Result<Received, String> {
        let received = self.stream.inbox.receive(&mut self.stream.wire);
        let received = received.map_err(|error| error_words(&error))?;
        if received != Received::Nothing {
            self.stream.heard_at = now;
            self.queue.hear(now);
        }
        Ok(received)
    }

    /// The next request whose replies are all there, if there is one.
    pub(super) fn next_settled(&mut self, now: Moment) -> Result<Option<Settled>, String> {
        let Self { stream, queue, capabilities, .. } = self;
        let settled = queue.next_settled(&mut stream.inbox, capabilities, now);
        settled.map_err(|useless| useless.to_string())
    }

    /// Takes note of what the server has said by itself.
    pub(super) fn note_pushes(&mut self, server: usize, effects: &mut Effects) {
        effects.note_pushes(
            server,
            self.queue.channel(),
            self.stream.inbox.pushes_amid(self.queue.replies_of_oldest()),
        );
    }

    /// Sends a request behind what it undoes, if that is under way here: elsewhere it might be carried out
    /// first. Nobody waits for its answer. One is enough.
    pub(super) fn guard(&mut self, undoing: &Arc<Request>, now: Moment) {
        if self.queue.wants(undoing) {
            self.queue.push(undoing, None, now);
        }
    }

    pub(super) fn heard_at(&self) -> Moment {
        self.stream.heard_at
    }

    /// Lets go of a socket that a forked child has closed.
    pub(super) fn forget_socket(self) {
        self.stream.wire.forget();
    }
}
