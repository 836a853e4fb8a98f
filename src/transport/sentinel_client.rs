//! Asks the Sentinels where a master is, over a connection of its own, and listens there for news of another
//! master.
//!
//! The Sentinels are asked one after the other, beginning with the one that answered last time. While the
//! master is connected, nobody polls this socket. It is checked whenever the server is asked something. If
//! the Sentinel has heard of another master, that news is in the socket by then.

mod words;

use std::collections::VecDeque;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;

use super::interest::Interest;
use super::security::Security;
use super::wire::Wire;
use crate::protocol::command::sentinel::{Heard, MasterLocation, SentinelQuery};
use crate::protocol::conn::addresses::Addresses;
use crate::protocol::conn::inbox::{Inbox, Received};
use crate::protocol::conn::why::error_words;
use crate::protocol::failure::Failure;
use crate::protocol::moment::Moment;
use crate::protocol::servers::address::Address;
use crate::protocol::servers::sentinels::Sentinels;
use crate::system::socket::{InheritedDescriptor, Socket};

/// The minimum time between two checks of the Sentinel that this client listens to.
const LOOK_MS: i64 = 1;

/// A Sentinel that was silent for this long is pinged, and may take as long to answer.
const SILENCE_MS: i64 = 1_000;

/// While the master is connected, the Sentinels are asked again after this time: if all were asked in vain,
/// or if the one that answered cannot announce another master.
const PAUSE_MS: i64 = 1_000;

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

pub(super) struct SentinelClient {
    sentinels: Arc<Sentinels>,
    /// The addresses of each Sentinel.
    addresses: Vec<Addresses>,
    access: Arc<Security>,
    has_tls: bool,
    inherited: InheritedDescriptor,
    state: State,
    /// The index of the Sentinel that answered last, or that is asked now.
    current: usize,
    /// The Sentinels to ask if the current one does not know, the time that each one has, and the deadline of
    /// the current one.
    others: VecDeque<(usize, SocketAddr)>,
    share_ms: i64,
    until: Moment,
    /// What the Sentinels said that did not know.
    said: Vec<String>,
    inbox: Inbox,
    outbox: Vec<u8>,
    looked_at: Moment,
    heard_at: Moment,
    pinged_at: Option<Moment>,
}

enum State {
    /// No Sentinel is asked or listened to. While the master is connected, they are asked again at
    /// `again_at`.
    Idle {
        again_at: Moment,
    },
    Connecting(Socket),
    Asking(Wire, SentinelQuery),
    Listening(Wire, SentinelQuery),
}

/// Where the master is, or why no Sentinel says so.
pub(super) type Found = Result<Address, String>;

impl SentinelClient {
    pub(super) fn new(sentinels: &Arc<Sentinels>, has_tls: bool, access: &Arc<Security>) -> Self {
        let start = Moment::from_nanos(0);
        Self {
            sentinels: Arc::clone(sentinels),
            addresses: sentinels.places().iter().map(Addresses::of).collect(),
            access: Arc::clone(access),
            has_tls,
            inherited: InheritedDescriptor::new(),
            state: State::Idle { again_at: start },
            current: 0,
            others: VecDeque::new(),
            share_ms: 0,
            until: start,
            said: Vec::new(),
            inbox: Inbox::default(),
            outbox: Vec::new(),
            looked_at: start,
            heard_at: start,
            pinged_at: None,
        }
    }

    pub(super) fn inherited(&self) -> InheritedDescriptor {
        self.inherited.clone()
    }

    /// Forgets a socket that [`InheritedDescriptor::close_inherited`] has closed.
    pub(super) fn forget_socket(&mut self) {
        match self.rest(Moment::NEVER) {
            State::Idle { .. } => {}
            State::Connecting(socket) => socket.forget(),
            State::Asking(wire, _) | State::Listening(wire, _) => wire.forget(),
        }
    }

    /// Whether no Sentinel's address is known.
    pub(super) fn is_nameless(&self) -> bool {
        self.addresses.iter().all(Addresses::is_empty)
    }

    pub(super) fn is_looked_up(&self) -> bool {
        self.addresses.iter().any(Addresses::is_looked_up)
    }

    /// The next name of a Sentinel whose addresses begin a look-up, and the index of that Sentinel.
    pub(super) fn name_where(
        &mut self,
        mut begin: impl FnMut(&mut Addresses) -> bool,
    ) -> Option<(usize, String, u16)> {
        let all = self.sentinels.places().iter().zip(&mut self.addresses).enumerate();
        all.filter_map(|(which, (place, addresses))| match place {
            Address::Name(name, port) if begin(addresses) => Some((which, name.clone(), *port)),
            _ => None,
        })
        .next()
    }

    /// When to look up the name of a Sentinel although others may answer, because the master has been down since
    /// then.
    pub(super) fn look_up_of_lost_at(&self, down_since: Moment) -> Moment {
        let all = self.sentinels.places().iter().zip(&self.addresses);
        let named = all.filter(|(place, _)| matches!(place, Address::Name(..)));
        let due = named.map(|(_, addresses)| addresses.look_up_of_lost_at(down_since));
        due.fold(Moment::NEVER, Moment::min)
    }

    /// The result of a look-up. Returns whether the addresses have changed.
    pub(super) fn end_look_up(
        &mut self,
        which: usize,
        found: Option<Vec<SocketAddr>>,
        began: Moment,
        now: Moment,
    ) -> bool {
        let addresses = self.addresses.get_mut(which);
        addresses.is_some_and(|it| it.end_look_up(found, began, now))
    }

    /// Asks all Sentinels, within `within_ms`, until one of them knows where the master is.
    pub(super) fn begin(&mut self, within_ms: i64, now: Moment) {
        self.rest(Moment::NEVER);
        self.said.clear();
        self.others.clear();
        let count = self.addresses.len();
        for which in (self.current..count).chain(0..self.current) {
            let addresses = &self.addresses[which];
            self.others.extend(addresses.iter().map(|address| (which, address)));
            if addresses.is_empty() {
                self.said.push(format!(
                    "{}: cannot resolve the host name",
                    self.sentinels.places()[which]
                ));
            }
        }
        self.share_ms = (within_ms / i64::try_from(self.others.len()).unwrap_or(1).max(1)).max(1);
        self.ask_next(now);
    }

    /// Goes on with asking. Returns the result once.
    pub(super) fn advance(&mut self, now: Moment) -> Option<Found> {
        loop {
            let asked = match &self.state {
                State::Idle { .. } if self.others.is_empty() => return Some(self.failed()),
                State::Idle { .. } => Ok(()),
                State::Connecting(_) => self.greet(),
                State::Asking(..) => match self.hear(now) {
                    Ok(None) => Ok(()),
                    Ok(Some(place)) => return Some(Ok(place)),
                    Err(why) => Err(why),
                },
                State::Listening(..) => return None,
            };
            match asked {
                Ok(()) if matches!(self.state, State::Idle { .. }) => self.ask_next(now),
                Ok(()) if now < self.until => return None,
                Ok(()) => self.pass_over(self.too_late(), now),
                Err(why) => self.pass_over(why, now),
            }
        }
    }

    /// When [`Self::advance`] must be called if nothing happens before.
    pub(super) fn next_due(&self) -> Moment {
        match &self.state {
            State::Idle { .. } => Moment::from_nanos(0),
            _ => self.until,
        }
    }

    pub(super) fn interest(&self) -> Option<Interest> {
        match &self.state {
            State::Idle { .. } => None,
            State::Connecting(socket) => Some(Interest::of(socket, true)),
            State::Asking(wire, _) | State::Listening(wire, _) => {
                let is_waiting = !self.outbox.is_empty() && !wire.is_shaking_hands();
                Some(Interest::of(wire.socket(), is_waiting || wire.has_unsent()))
            }
        }
    }

    /// With the master connected at `master`: whether the news so far says that another master has taken its
    /// place.
    pub(super) fn listen(&mut self, master: Option<&Address>, within_ms: i64, now: Moment) -> bool {
        let unseen_ms = now.ms_since(self.looked_at);
        if unseen_ms < LOOK_MS {
            return false;
        }
        if unseen_ms > self.share_ms {
            // Nobody has looked for an answer meanwhile.
            self.until = now.plus_ms(self.share_ms);
        }
        self.looked_at = now;
        match &self.state {
            State::Idle { again_at } if now < *again_at => return false,
            State::Idle { .. } => self.begin(within_ms, now),
            State::Listening(..) => match self.hear_news(master, now) {
                Ok(has_moved) => return has_moved,
                // Another Sentinel may know more.
                Err(()) => {
                    self.distrust();
                    self.begin(within_ms, now);
                }
            },
            _ => {}
        }
        match self.advance(now) {
            None => false,
            Some(Ok(place)) => master != Some(&place),
            Some(Err(_)) => {
                self.rest(now.plus_ms(PAUSE_MS));
                false
            }
        }
    }

    /// The known place may be out of date, so the Sentinels must be asked again soon.
    pub(super) fn doubt(&mut self) {
        self.rest(Moment::from_nanos(0));
    }

    /// The place that the current Sentinel gave was of no use. The next time, another Sentinel is asked
    /// first.
    pub(super) fn distrust(&mut self) {
        self.current = (self.current + 1) % self.addresses.len().max(1);
    }

    fn rest(&mut self, again_at: Moment) -> State {
        self.inbox.clear();
        self.outbox.clear();
        self.pinged_at = None;
        mem::replace(&mut self.state, State::Idle { again_at })
    }

    fn ask_next(&mut self, now: Moment) {
        while let Some((which, address)) = self.others.pop_front() {
            self.current = which;
            self.until = now.plus_ms(self.share_ms);
            match Socket::to_address(address, &self.inherited) {
                Ok(socket) => return self.state = State::Connecting(socket),
                Err(error) => self.note(format!(": {}", error_words(&error))),
            }
        }
    }

    /// The Sentinel that was asked does not know. The next one may.
    fn pass_over(&mut self, why: String, now: Moment) {
        self.note(why);
        drop(self.rest(Moment::NEVER));
        self.ask_next(now);
    }

    fn too_late(&self) -> String {
        let perhaps = match &self.state {
            State::Asking(wire, _) => words::of_silence(wire),
            _ => "",
        };
        format!(": timed out after {} ms{perhaps}", self.share_ms)
    }

    fn note(&mut self, why: String) {
        self.said.push(format!("{}{why}", self.sentinels.places()[self.current]));
    }

    fn failed(&mut self) -> Found {
        let said = mem::take(&mut self.said).join(", ");
        Err(format!("no Sentinel knows the address of master {}: {said}", self.sentinels.master()))
    }

    /// Sends the question, if the connection is up.
    fn greet(&mut self) -> Result<(), String> {
        let State::Connecting(socket) = &self.state else { return Ok(()) };
        if !socket.is_writable() {
            return Ok(());
        }
        let failed = |error| format!(": {}", error_words(&error));
        socket.connected().map_err(failed)?;
        let State::Connecting(socket) = self.rest(Moment::NEVER) else { return Ok(()) };
        let place = &self.sentinels.places()[self.current];
        let mut wire = match self.has_tls {
            false => Wire::Plain(socket),
            true => {
                let session = self.access.tls().begin(place, socket);
                Wire::Tls(Box::new(session.map_err(|why| format!(": {why}"))?))
            }
        };
        let credentials = self.sentinels.credentials();
        let query = SentinelQuery::new(self.sentinels.master(), credentials, &mut self.outbox);
        wire.send_from(&mut self.outbox).map_err(failed)?;
        self.state = State::Asking(wire, query);
        Ok(())
    }

    /// Reads what the current Sentinel answers.
    fn hear(&mut self, now: Moment) -> Result<Option<Address>, String> {
        let State::Asking(wire, query) = &mut self.state else { return Ok(None) };
        loop {
            wire.send_from(&mut self.outbox)
                .map_err(|error| words::of_breaking(wire, query, &error))?;
            let received = wire
                .receive_into(&mut self.inbox)
                .map_err(|error| words::of_breaking(wire, query, &error))?;
            while let Some(reply) =
                self.inbox.next().map_err(|protocol_error| format!(": {protocol_error}"))?
            {
                match query.handle_reply(&reply) {
                    Heard::More => {}
                    Heard::Refused(failure) => return Err(words::of_failure(&failure)),
                    Heard::Found { at, will_tell } => {
                        let place = place_of(&at)
                            .ok_or_else(|| words::of_failure(&Failure::ProtocolError))?;
                        self.settle(will_tell, now);
                        return Ok(Some(place));
                    }
                }
            }
            if received == Received::Nothing {
                return Ok(None);
            }
        }
    }

    /// The question is answered.
    fn settle(&mut self, will_tell: bool, now: Moment) {
        self.others.clear();
        self.said.clear();
        self.heard_at = now;
        match mem::replace(&mut self.state, State::Idle { again_at: Moment::NEVER }) {
            State::Asking(wire, query) if will_tell => {
                self.state = State::Listening(wire, query);
            }
            // The Sentinel is asked again from time to time.
            _ => drop(self.rest(now.plus_ms(PAUSE_MS))),
        }
    }

    /// Whether the Sentinel that this client listens to has announced another master. Fails if the connection
    /// to it is of no use any more.
    fn hear_news(&mut self, master: Option<&Address>, now: Moment) -> Result<bool, ()> {
        let State::Listening(wire, query) = &mut self.state else { return Err(()) };
        let mut has_moved = false;
        loop {
            let received = match wire.receive_into(&mut self.inbox) {
                Ok(received) => received,
                // The last message before the failure counts.
                Err(_) if has_moved => return Ok(true),
                Err(_) => return Err(()),
            };
            while let Some(message) = self.inbox.next().map_err(drop)? {
                if let Some(at) = query.new_master(&message) {
                    has_moved = place_of(&at).as_ref() != master;
                }
            }
            if received == Received::Nothing {
                break;
            }
            (self.heard_at, self.pinged_at) = (now, None);
        }
        match self.pinged_at {
            Some(pinged_at) if now.ms_since(pinged_at) > SILENCE_MS => return Err(()),
            None if now.ms_since(self.heard_at) > SILENCE_MS => {
                self.outbox.extend_from_slice(PING);
                self.pinged_at = Some(now);
            }
            _ => {}
        }
        wire.send_from(&mut self.outbox).map_err(drop)?;
        Ok(has_moved)
    }
}

/// Makes sure that what a Sentinel says is a name or an address.
fn place_of((host, port): &MasterLocation) -> Option<Address> {
    Address::of(host, *port).ok()
}

#[cfg(test)]
mod tests;
