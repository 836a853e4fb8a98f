//! Which calls need a connection, and what must be asked before one can be opened.

use std::net::SocketAddr;

use super::{Effects, Server};
use crate::command::Answer;
use crate::moment::Moment;
use crate::transport::account::PasswordRequest;
use crate::transport::place::Lookup;
use crate::transport::ticket::Ticket;

impl Server {
    /// Connects now if there is no connection, because a caller needs the server.
    pub(crate) fn hurry(&mut self, now: Moment, effects: &mut Effects) {
        if self.is_stuck() {
            // Nobody waits for a second connection, and a frozen server does not accept one, so it is opened
            // when it is due. It may be up by now.
            self.read_on(now, effects);
        } else {
            if self.link.is_up() {
                // A connection that the server has closed is of no use, however recently it was used.
                self.looked_at = now;
                self.look(now, effects);
            }
            self.follow_master(now, effects);
            self.link.hurry(now);
        }
        // The thread that polls the sockets does not poll this one yet.
        effects.changed = true;
        self.advance(now, effects);
    }

    /// Tells the ticket as soon as there is a connection, or as soon as none can be made for now.
    pub(crate) fn await_connection(
        &mut self,
        ticket: Ticket,
        reply_ms: i64,
        now: Moment,
        effects: &mut Effects,
    ) {
        if self.link.is_asked_about() {
            return self.awaiting_connection.push(ticket);
        }
        let answer = match self.obstacle(reply_ms, now, effects) {
            Some(failure) => Answer::Failed(failure),
            None if self.link.is_up() => Answer::Done,
            None => return self.awaiting_connection.push(ticket),
        };
        self.deliver(ticket, answer, effects);
    }

    /// Checks whether another server has become the master, if Sentinels watch it.
    pub(super) fn follow_master(&mut self, now: Moment, effects: &mut Effects) {
        let change = self.link.follow(now);
        self.handle_change(change, effects);
    }

    /// The name to look up, if a look-up is due; see [`Self::handle_addresses`].
    pub(crate) fn name_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        self.link.name_to_look_up(now)
    }

    /// The same if nobody lacks the server so far: cannot resolve the host name yet, or it is down and may have moved.
    pub(crate) fn name_of_lost_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        self.link.name_of_lost_to_look_up(now)
    }

    /// When [`Self::name_of_lost_to_look_up`] is due, for a server that is down.
    pub(crate) fn look_up_of_lost_at(&self) -> Moment {
        self.link.look_up_of_lost_at()
    }

    /// Handles the result of the look-up that began at `began`.
    pub(crate) fn handle_addresses(
        &mut self,
        lookup: &Lookup,
        found: Result<Vec<SocketAddr>, String>,
        began: Moment,
        now: Moment,
        effects: &mut Effects,
    ) {
        effects.changed = true;
        let change = self.link.handle_addresses(lookup, found, began, now);
        self.handle_change(change, effects);
        self.hurry(now, effects);
    }

    /// The source to ask for the password, if that is due; see [`Self::handle_password`].
    pub(crate) fn password_request(&mut self, now: Moment) -> Option<PasswordRequest> {
        self.link.password_request(now)
    }

    /// Handles the answer to the question that was asked at `began`.
    pub(crate) fn handle_password(
        &mut self,
        password: Option<Vec<u8>>,
        began: Moment,
        now: Moment,
        effects: &mut Effects,
    ) {
        effects.changed = true;
        let change = self.link.handle_password(password, began, now);
        self.handle_change(change, effects);
        self.hurry(now, effects);
    }

    /// Whether a connection may succeed without asking the system's resolver first.
    pub(crate) fn is_promising(&self) -> bool {
        self.link.is_promising()
    }
}
