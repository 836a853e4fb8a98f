//! Who needs a connection, and what has to be asked before there can be one.

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
            // Nobody waits for a second connection, and a frozen server gives none: it comes when it is
            // due. But it may be there by now.
            self.read_on(now, effects);
        } else {
            if self.link.is_up() {
                // A connection that was closed is none, however lately it was used.
                self.looked_at = now;
                self.look(now, effects);
            }
            self.follow_master(now, effects);
            self.link.hurry(now);
        }
        // Whoever waits for the sockets does not wait for this one yet.
        effects.changed = true;
        self.advance(now, effects);
    }

    /// Has the ticket told as soon as there is a connection, or none to be had for now.
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

    /// Looks whether another server has taken its place, if Sentinels are to tell of that.
    pub(super) fn follow_master(&mut self, now: Moment, effects: &mut Effects) {
        let change = self.link.follow(now);
        self.handle_change(change, effects);
    }

    /// The name to look up, if that is due; see [`Self::handle_addresses`].
    pub(crate) fn name_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        self.link.name_to_look_up(now)
    }

    /// The result of the look-up, which began then.
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

    /// Whom to ask for the password, if that is due; see [`Self::handle_password`].
    pub(crate) fn password_request(&mut self, now: Moment) -> Option<PasswordRequest> {
        self.link.password_request(now)
    }

    /// The answer to a question that was asked then.
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

    /// Whether there is hope of a connection without asking the system's resolver first.
    pub(crate) fn is_promising(&self) -> bool {
        self.link.is_promising()
    }
}
