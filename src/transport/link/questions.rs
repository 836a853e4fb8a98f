//! What must be asked before a connection can be opened: the addresses of a name, and the password.

use std::net::SocketAddr;

use super::{Addresses, Change, Link};
use crate::moment::Moment;
use crate::transport::account::PasswordRequest;
use crate::transport::place::{Lookup, Place};
use crate::transport::why::Why;
use crate::trouble::Trouble;

impl Link {
    /// The name to look up, if a look-up is due. The caller looks it up with no mutex held and passes the
    /// result to [`Self::handle_addresses`].
    pub(in crate::transport) fn name_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        self.name_where(|addresses| addresses.begin_look_up(now))
    }

    /// The same if nobody lacks the server so far: cannot resolve the host name yet, or it is down and may have moved.
    pub(in crate::transport) fn name_of_lost_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        match self.down_since {
            Some(since) => self.name_where(|it| it.begin_look_up_of_lost(since, now)),
            None => self.name_to_look_up(now),
        }
    }

    /// When [`Self::name_of_lost_to_look_up`] is due, for a server that is down.
    pub(in crate::transport) fn look_up_of_lost_at(&self) -> Moment {
        let Some(since) = self.down_since else { return Moment::NEVER };
        let own = match self.endpoint.place().or(self.master.as_ref()) {
            Some(Place::Name(..)) => self.addresses.look_up_of_lost_at(since),
            _ => Moment::NEVER,
        };
        let of_sentinels = self.sentinel_client.as_ref().map(|it| it.look_up_of_lost_at(since));
        own.min(of_sentinels.unwrap_or(Moment::NEVER))
    }

    /// The first name whose addresses begin a look-up: of a Sentinel, or of the server itself.
    fn name_where(&mut self, mut begin: impl FnMut(&mut Addresses) -> bool) -> Option<Lookup> {
        let sentinel_client = self.sentinel_client.as_mut();
        let of_sentinel = sentinel_client.and_then(|it| it.name_where(&mut begin));
        if let Some((which, name, port)) = of_sentinel {
            return Some(Lookup { name, port, sentinel: Some(which) });
        }
        match self.endpoint.place().or(self.master.as_ref()) {
            Some(Place::Name(name, port)) if begin(&mut self.addresses) => {
                Some(Lookup { name: name.clone(), port: *port, sentinel: None })
            }
            _ => None,
        }
    }

    pub(in crate::transport) fn handle_addresses(
        &mut self,
        lookup: &Lookup,
        found: Result<Vec<SocketAddr>, String>,
        began: Moment,
        now: Moment,
    ) -> Option<Change> {
        let error = found.as_ref().err().cloned();
        if let (Some(which), Some(sentinel_client)) = (lookup.sentinel, &mut self.sentinel_client) {
            if sentinel_client.end_look_up(which, found.ok(), began, now) {
                self.retry_at = now;
            }
            let error = error.filter(|_| self.is_nameless())?;
            let why = format!("cannot resolve the Sentinel host names: {error}");
            return Some(self.note_failure(why.into(), now));
        }
        let is_it = matches!(self.target(), Some(Place::Name(name, _)) if *name == lookup.name);
        // A master with another name may have taken its place meanwhile.
        if !is_it {
            return None;
        }
        if self.addresses.end_look_up(found.ok(), began, now) {
            self.retry_at = now;
        }
        let error = error.filter(|_| self.addresses.is_empty())?;
        let words = format!("cannot resolve the host name: {error}");
        Some(self.note_failure(Why::new(Trouble::UnknownName, words), now))
    }

    /// The source to ask for the password, if that is due. The caller asks with no mutex held and passes the
    /// answer to [`Self::handle_password`].
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
        // The login may have been changed meanwhile. There may then be a connection, with answers owed on it,
        // that does not depend on this question.
        if !self.is_down() {
            return None;
        }
        if is_known {
            self.retry_at = now;
            return None;
        }
        let words = "the password callback gave no password";
        Some(self.note_failure(Why::new(Trouble::NoPassword, words), now))
    }

    /// Whether some thread is asking for something that must be known before connecting.
    pub(in crate::transport) fn is_asked_about(&self) -> bool {
        let is_of_sentinel = self
            .sentinel_client
            .as_ref()
            .is_some_and(|sentinel_client| sentinel_client.is_looked_up());
        let name = self.is_nameless() && (self.addresses.is_looked_up() || is_of_sentinel);
        let master = self.is_followed() && self.is_down() && self.addresses.is_looked_up();
        name || master || (self.is_down() && self.account.is_asking())
    }

    /// Whether the link is up, or has addresses that may work.
    pub(in crate::transport) fn is_promising(&self) -> bool {
        self.is_up() || (self.failures == 0 && !self.is_nameless())
    }

    /// Whether the name must be looked up before connecting.
    pub(super) fn is_nameless(&self) -> bool {
        match &self.sentinel_client {
            Some(sentinel_client) => sentinel_client.is_nameless(),
            None => matches!(self.target(), Some(Place::Name(..))) && self.addresses.is_empty(),
        }
    }
}
