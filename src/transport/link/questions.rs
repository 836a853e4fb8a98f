//! What has to be asked before there can be a connection: the addresses of a name, and the password.

use std::net::SocketAddr;

use super::{Change, Link};
use crate::moment::Moment;
use crate::transport::account::PasswordRequest;
use crate::transport::place::Place;

impl Link {
    /// The name to look up, if that is due. The caller looks it up without holding anything, and
    /// brings the result to [`Self::handle_addresses`].
    pub(in crate::transport) fn name_to_look_up(&mut self, now: Moment) -> Option<(String, u16)> {
        match self.endpoint.place() {
            Place::Name(name, port) if self.addresses.begin_look_up(now) => {
                Some((name.clone(), *port))
            }
            _ => None,
        }
    }

    pub(in crate::transport) fn handle_addresses(
        &mut self,
        found: Result<Vec<SocketAddr>, String>,
        began: Moment,
        now: Moment,
    ) -> Option<Change> {
        let error = found.as_ref().err().cloned();
        if self.addresses.end_look_up(found.ok(), began, now) {
            self.retry_at = now;
        }
        let error = error.filter(|_| self.addresses.is_empty())?;
        Some(self.note_failure(format!("its name is not known: {error}")))
    }

    /// Whom to ask for the password, if that is due. The caller asks without holding anything, and
    /// brings the answer to [`Self::handle_password`].
    pub(in crate::transport) fn password_request(
        &mut self,
        now: Moment,
    ) -> Option<PasswordRequest> {
        if self.is_up() { None } else { self.account.password_request(now) }
    }

    pub(in crate::transport) fn handle_password(
        &mut self,
        password: Option<Vec<u8>>,
        began: Moment,
        now: Moment,
    ) -> Option<Change> {
        let is_known = password.is_some();
        self.account.handle_answer(password, began, now);
        // Who we are may have been said otherwise meanwhile: then there may be a connection, with answers
        // owed on it, that knows nothing of this question.
        if !self.is_down() {
            return None;
        }
        if is_known {
            self.retry_at = now;
            return None;
        }
        Some(self.note_failure("nobody gave its password when asked".to_owned()))
    }

    /// Whether somebody is asked, by some thread, for what has to be known before connecting.
    pub(in crate::transport) fn is_asked_about(&self) -> bool {
        let name = self.is_nameless() && self.addresses.is_looked_up();
        name || (self.is_down() && self.account.is_asking())
    }

    /// Whether it is up, or there are addresses that may do.
    pub(in crate::transport) fn is_promising(&self) -> bool {
        self.is_up() || (self.failures == 0 && !self.is_nameless())
    }

    /// Whether the name has to be looked up before connecting.
    pub(super) fn is_nameless(&self) -> bool {
        matches!(self.endpoint.place(), Place::Name(..)) && self.addresses.is_empty()
    }
}
