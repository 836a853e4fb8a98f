//! A connection that owes an answer for so long that another one is opened in its place.
//!
//! A proxy or a NAT on the way may have dropped the connection and may acknowledge data all the same. Or the
//! server may be frozen. Nothing tells these cases apart. So the connection is not closed, because the
//! requests on it may still be carried out, and late. Until its successor is up, it goes on as before. After
//! that, only requests that undo earlier requests on it are sent over it. It is closed when it guards nothing
//! any more.

use std::sync::Arc;

use super::arbiters::Owner;
use super::interest::Interest;
use super::stream::Stream;
use crate::protocol::command::{Capabilities, Request};
use crate::protocol::conn::effects::Effects;
use crate::protocol::conn::inbox::Received;
use crate::protocol::conn::queue::{Queue, Settled};
use crate::protocol::conn::why::error_words;
use crate::protocol::moment::Moment;
use crate::system::clock;

pub(super) struct DrainingConnection {
    stream: Stream,
    pub(super) queue: Queue,
    pub(super) capabilities: Capabilities,
    /// Whether the successor is up.
    pub(super) is_replaced: bool,
    /// Until when something may exist on the server that a request over this connection has left.
    guards_until: Moment,
}

impl DrainingConnection {
    pub(super) fn new(stream: Stream, queue: Queue, capabilities: Capabilities) -> Self {
        let guards_until = Moment::from_nanos(0);
        Self { stream, queue, capabilities, is_replaced: false, guards_until }
    }

    /// Returns the parts, for the caller that goes on with them.
    pub(super) fn into_parts(self) -> (Stream, Queue, Capabilities) {
        (self.stream, self.queue, self.capabilities)
    }

    /// To whom it leads, if its grants count only while the Sentinels confirm that.
    pub(super) fn owner(&self) -> Option<&Owner> {
        self.stream.master.as_ref().filter(|_| self.stream.needs_majority)
    }

    /// What to poll for: the descriptor, and whether to wait until it is writable.
    pub(super) fn interest(&self) -> Interest {
        let Stream { wire, outbox, .. } = &self.stream;
        Interest::of(wire.socket(), !outbox.is_empty() || wire.has_unsent())
    }

    /// When the connection is given up, if nothing is received before. With a successor, that is when it
    /// guards nothing any more. Without one, it is when it was silent for too long.
    pub(super) fn given_up_at(&self) -> Moment {
        match self.is_replaced {
            true => self.guards_until,
            false => self.queue.give_up_at().unwrap_or(Moment::NEVER),
        }
    }

    /// Updates until when this connection guards something.
    pub(super) fn look_what_is_guarded(&mut self) {
        self.guards_until = self.queue.guarded_until().unwrap_or(Moment::from_nanos(0));
    }

    /// Sends the queued requests, or as much as the socket takes. If the connection is lost, returns the
    /// reason.
    pub(super) fn flush(&mut self, now: Moment) -> Result<u64, String> {
        self.queue.send(&mut self.stream.outbox, self.capabilities, now);
        let sent = self.stream.wire.send_from(&mut self.stream.outbox);
        let written = self.queue.note_written(self.stream.outbox.capacity(), clock::now);
        sent.map_err(|error| error_words(&error)).map(|_| written)
    }

    /// Receives the available data, once.
    pub(super) fn receive(&mut self, now: Moment) -> Result<Received, String> {
        let received = self.stream.wire.receive_into(&mut self.stream.inbox);
        let received = received.map_err(|error| error_words(&error))?;
        if received != Received::Nothing {
            self.stream.heard_at = now;
            self.queue.hear(now);
        }
        Ok(received)
    }

    /// The next request whose replies have all arrived, if there is one.
    pub(super) fn next_settled(&mut self, now: Moment) -> Result<Option<Settled>, String> {
        let Self { stream, queue, capabilities, .. } = self;
        let settled = queue.next_settled(&mut stream.inbox, capabilities, now);
        settled.map_err(|close_reason| close_reason.to_string())
    }

    /// Notes the server's push messages.
    pub(super) fn note_pushes(&mut self, server: usize, effects: &mut Effects) {
        effects.note_pushes(
            server,
            self.queue.channel(),
            self.stream.inbox.pushes_amid(self.queue.replies_of_oldest()),
        );
    }

    /// Sends a request behind the one that it undoes, if that one is under way here. Over another connection
    /// the undoing request might be carried out first. Nobody waits for its answer. It is sent only once.
    pub(super) fn guard(&mut self, undoing: &Arc<Request>, now: Moment) {
        if self.queue.wants(undoing) {
            self.queue.push(undoing, None, now);
        }
    }

    pub(super) fn heard_at(&self) -> Moment {
        self.stream.heard_at
    }

    /// Forgets a socket that a forked child has closed.
    pub(super) fn forget_socket(self) {
        self.stream.wire.forget();
    }
}
