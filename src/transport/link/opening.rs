//! How a connection is opened: the socket, TLS on it, and the first commands.

use std::{io, mem};

use super::{Change, Link, State, Up};
use crate::command::Capabilities;
use crate::command::handshake::{Handshake, Progress, Requirements};
use crate::moment::Moment;
use crate::quorum::backoff;
use crate::system::clock;
use crate::system::entropy::SystemEntropy;
use crate::system::socket::Socket;
use crate::token::random;
use crate::transport::guard::Guard;
use crate::transport::place::Place;
use crate::transport::tls_mismatch;
use crate::transport::why::Why;
use crate::transport::wire::Wire;

impl Link {
    /// The socket may be ready. Goes on with connecting, if the link is connecting.
    pub(in crate::transport) fn handle_connected(&mut self, now: Moment) -> Option<Change> {
        if let State::Searching = self.state {
            return self.search(now);
        }
        let State::Connecting { socket, .. } = &self.state else { return None };
        // The poll result may be about another socket that has been closed meanwhile.
        if !socket.is_writable() {
            return None;
        }
        match socket.connected() {
            Ok(()) => self.begin_handshake(now),
            Err(error) => self.connect_failed(Why::of_error(&error), now),
        }
    }

    /// Reads the replies to the first commands, if a handshake is under way.
    pub(in crate::transport) fn read_handshake(&mut self, now: Moment) -> Option<Change> {
        while let State::Handshake { handshake, .. } = &mut self.state {
            let progress = match self.inbox.next() {
                Err(_) if !handshake.has_begun() && self.inbox.first() == tls_mismatch::ALERT => {
                    return self.connect_failed(tls_mismatch::SPEAKS_TLS.into(), now);
                }
                Ok(Some(value)) => handshake.handle_reply(&value),
                Ok(None) => return None,
                Err(protocol_error) => {
                    return self.connect_failed(protocol_error.to_string().into(), now);
                }
            };
            match progress {
                Progress::More => {}
                Progress::Done(_) => return self.admit(now),
                Progress::Refused { failure, is_of_credentials } => {
                    self.identity = handshake.identity().clone();
                    if failure.is_of_a_replica()
                        && let Some(process) = self.identity.run_id()
                    {
                        self.lasting.memories.note_replica(process, now);
                    }
                    if is_of_credentials {
                        self.account.handle_refusal();
                    }
                    return self.connect_failed(Why::of_failure(&failure), now);
                }
            }
        }
        None
    }

    /// Why the server may have closed a connection that has just begun.
    pub(super) fn hint(&self) -> &'static str {
        let State::Handshake { wire, handshake, .. } = &self.state else { return "" };
        let has_spoken = handshake.has_begun() || !self.inbox.is_empty();
        tls_mismatch::hint(wire, has_spoken, self.target())
    }

    /// How long one of several addresses may delay the attempt on the next.
    pub(super) fn connect_share_ms(&self) -> i64 {
        let share = i64::try_from(self.addresses.count()).unwrap_or(i64::MAX);
        // The Sentinels have had the other half of the time.
        let share = if self.is_followed() { share.saturating_mul(2) } else { share };
        (self.timeouts.connect_ms() / share).max(1)
    }

    /// Begins to connect to the server's current address.
    pub(super) fn dial(&mut self, now: Moment) -> Option<Change> {
        let inherited = &self.inherited[self.place_shown];
        let socket = match self.endpoint.place() {
            Some(Place::Path(path)) => Socket::to_path(path, inherited),
            _ => match self.addresses.current() {
                Some(address) => Socket::to_address(address, inherited),
                None => {
                    Err(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"))
                }
            },
        };
        match socket {
            Ok(socket) => {
                self.state = State::Connecting { socket, since: now };
                None
            }
            Err(error) => self.connect_failed(Why::of_error(&error), now),
        }
    }

    fn begin_handshake(&mut self, now: Moment) -> Option<Change> {
        let State::Connecting { socket, .. } = mem::replace(&mut self.state, State::Down) else {
            return None;
        };
        let begun = self.account.credentials().and_then(|credentials| {
            let (is_guarded, is_waking) =
                (self.server_registry.rules().are_kept(), self.access.is_waking());
            let requirements = Requirements { is_guarded, is_waking };
            let database = self.endpoint.database();
            let handshake = Box::new(Handshake::new(credentials.as_ref(), database, requirements));
            self.inbox.begin(is_waking);
            Ok((self.wire(socket)?, handshake))
        });
        match begun {
            Ok((wire, handshake)) => {
                handshake.write_to(&mut self.outbox);
                self.state =
                    State::Handshake { wire, since: now, asked_at: now, handshake, begun: None };
                self.send(now)
            }
            Err(why) => self.connect_failed(why.into(), now),
        }
    }

    fn wire(&self, socket: Socket) -> Result<Wire, String> {
        if !self.endpoint.has_tls() {
            return Ok(Wire::Plain(socket));
        }
        let place = self.target().ok_or("the address of the master is not known")?;
        let session = self.access.tls().begin(place, socket)?;
        Ok(Wire::Tls(Box::new(session)))
    }

    pub(super) fn come_up(
        &mut self,
        capabilities: Capabilities,
        guard: Guard,
        now: Moment,
    ) -> Option<Change> {
        let mut took_us = 0;
        if let State::Handshake { wire, since, .. } = mem::replace(&mut self.state, State::Down) {
            took_us = clock::now().max(now).us_since(since);
            self.state = State::Up { wire };
        }
        let again = mem::take(&mut self.failures) > 0;
        self.down_since = None;
        let remark = mem::take(&mut self.remark);
        let process = self.identity.run_id();
        Some(Change::Up(Box::new(Up { capabilities, process, guard, took_us, again, remark })))
    }

    /// One address failed. Tries the next one. If there is none, no connection can be made for now.
    pub(super) fn connect_failed(&mut self, why: Why, now: Moment) -> Option<Change> {
        let why = Why { words: self.of_master(why.words), ..why };
        self.close();
        // Without a password, another address does not help.
        if !self.account.is_lacking() && self.addresses.try_next() {
            return self.dial(now);
        }
        // The place that a Sentinel gave was of no use.
        self.sentinel_client.iter_mut().for_each(|sentinel_client| sentinel_client.distrust());
        Some(self.give_up(why, now))
    }

    /// Notes that no connection can be made for now, and plans the next attempt.
    pub(super) fn give_up(&mut self, why: Why, now: Moment) -> Change {
        let failed = self.note_failure(why, now);
        let jitter = random(&SystemEntropy).unwrap_or(0);
        self.retry_at = now.plus(backoff::reconnect(self.failures, jitter));
        failed
    }
}
