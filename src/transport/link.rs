//! The connection to one server: how it is opened and closed.
//!
//! Nothing here blocks, and nothing here notifies callers. Each call returns how the connection has changed,
//! and the server that owns the link notifies the interested calls.

mod following;
mod opening;
mod questions;
mod remembering;
mod setting_aside;

use std::mem;
use std::sync::Arc;

use super::access::Access;
use super::account::Account;
use super::addresses::Addresses;
use super::endpoint::Endpoint;
use super::guard::Guard;
use super::inbox::{Inbox, Received};
use super::interest::Interest;
use super::memories::Lasting;
use super::place::Place;
use super::sentinel_client::SentinelClient;
use super::server_registry::ServerRegistry;
use super::timeouts::Timeouts;
use super::tls_mismatch;
use super::why::Why;
use super::wire::{KEPT_MAX, Wire};
use crate::command::Capabilities;
use crate::command::guard::MemoryId;
use crate::command::handshake::Handshake;
use crate::command::identity::{Identity, RunId};
use crate::moment::Moment;
use crate::system::socket::{InheritedDescriptor, Socket};

/// The minimum time between two attempts to connect, even when a caller needs the server.
const RETRY_GAP_MS: i64 = 20;

/// The reason for having no connection to a server that no caller has needed.
pub(super) const NOT_TRIED: &str = "not tried yet";

pub(super) struct Link {
    endpoint: Endpoint,
    timeouts: Arc<Timeouts>,
    access: Arc<Access>,
    account: Account,
    server_registry: Arc<ServerRegistry>,
    lasting: Arc<Lasting>,
    /// The index of this server in `server_registry`.
    place: usize,
    /// `sentinel_client` finds the server's address if its URL does not give it. `master` is the place that this client
    /// named last. `master_aside` is the place before the search for another master.
    sentinel_client: Option<Box<SentinelClient>>,
    master: Option<Place>,
    master_aside: Option<Place>,
    /// Where the descriptor is shown to a forked child. A connection that was set aside uses the other slot.
    inherited: [InheritedDescriptor; 2],
    place_shown: usize,
    state: State,
    addresses: Addresses,
    /// The number of failures to connect since the last success, and when to try again.
    failures: u32,
    /// Since when there is no connection, if one was lost or could not be made.
    down_since: Option<Moment>,
    retry_at: Moment,
    tried_at: Option<Moment>,
    why_down: Why,
    /// What the server said about itself when it was last asked.
    identity: Identity,
    /// What the handshake has found out that a person should know.
    remark: Option<&'static str>,
    heard_at: Moment,
    pub(super) inbox: Inbox,
    pub(super) outbox: Vec<u8>,
}

enum State {
    Down,
    /// The Sentinels are asked for the server's address.
    Searching,
    Connecting {
        socket: Socket,
        since: Moment,
    },
    /// With TLS, the TLS handshake is a part of this state.
    Handshake {
        wire: Wire,
        since: Moment,
        /// When the server was last asked.
        asked_at: Moment,
        handshake: Box<Handshake>,
        /// The memory that begins with this handshake, once the server was told to note that.
        begun: Option<MemoryId>,
    },
    Up {
        wire: Wire,
    },
}

/// A connection that is up.
#[derive(Debug)]
pub(super) struct Up {
    pub(super) capabilities: Capabilities,
    pub(super) process: Option<RunId>,
    pub(super) guard: Guard,
    pub(super) took_us: i64,
    /// Whether it failed before.
    pub(super) again: bool,
    /// A warning about the server.
    pub(super) remark: Option<&'static str>,
}

/// How a connection has changed.
#[derive(Debug)]
pub(super) enum Change {
    Up(Box<Up>),
    /// No connection can be made for now. `first` is set if this is the first failure since the last
    /// connection.
    Failed {
        why: String,
        first: bool,
    },
    /// The connection was up and is lost.
    Lost {
        how: String,
    },
}

impl Link {
    pub(super) fn new(
        (place, server_registry, lasting): (usize, Arc<ServerRegistry>, Arc<Lasting>),
        endpoint: Endpoint,
        timeouts: Arc<Timeouts>,
        access: Arc<Access>,
    ) -> Self {
        let addresses = endpoint.place().map_or_else(Addresses::unknown, Addresses::of);
        let sentinel_client =
            endpoint.sentinels().map(|it| SentinelClient::new(it, endpoint.has_tls(), &access));
        let account = Account::new(&endpoint, Arc::clone(&access));
        let start = Moment::from_nanos(0);
        Self {
            endpoint,
            timeouts,
            access,
            account,
            server_registry,
            lasting,
            place,
            sentinel_client: sentinel_client.map(Box::new),
            master: None,
            master_aside: None,
            inherited: [InheritedDescriptor::new(), InheritedDescriptor::new()],
            place_shown: 0,
            state: State::Down,
            addresses,
            failures: 0,
            down_since: None,
            retry_at: start,
            tried_at: None,
            why_down: NOT_TRIED.into(),
            identity: Identity::default(),
            remark: None,
            heard_at: start,
            inbox: Inbox::default(),
            outbox: Vec::new(),
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn inherited(&self) -> impl Iterator<Item = InheritedDescriptor> {
        let sentinel_client =
            self.sentinel_client.as_ref().map(|sentinel_client| sentinel_client.inherited());
        self.inherited.clone().into_iter().chain(sentinel_client)
    }

    pub(super) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    pub(super) fn is_down(&self) -> bool {
        matches!(self.state, State::Down)
    }

    /// Whether the link is down, or is being opened again after a failure, or has been opening for longer
    /// than a reply may take. A caller that can do without the server does not wait for such a link.
    pub(super) fn is_failing(&self, reply_ms: i64, now: Moment) -> bool {
        let is_slow = self.tried_at.is_none_or(|tried_at| now.ms_since(tried_at) > reply_ms);
        !self.is_up() && (self.failures > 0 || is_slow)
    }

    pub(super) fn why_down(&self) -> Why {
        match self.failures == 0 && !self.is_down() {
            true => "still connecting".into(),
            false => self.why_down.clone(),
        }
    }

    /// What the server said about itself when it was last asked.
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What the server has not done yet, if it has accepted the connection.
    pub(super) fn lacking(&self) -> String {
        let State::Handshake { wire, .. } = &self.state else { return String::new() };
        tls_mismatch::lacking(wire)
    }

    /// When the server last sent something.
    pub(super) fn heard_at(&self) -> Moment {
        self.heard_at
    }

    /// Connects without regard to the pause after a failure, because a caller needs the server.
    pub(super) fn hurry(&mut self, now: Moment) {
        let tried = self.tried_at.is_some_and(|tried_at| now < tried_at.plus_ms(RETRY_GAP_MS));
        if !tried && self.retry_at > now {
            self.retry_at = now;
        }
    }

    /// When [`Self::handle_due`] must be called, unless something happens before. A connection that is up has
    /// no such time of its own.
    pub(super) fn next_due(&self) -> Moment {
        match &self.state {
            State::Down if self.is_nameless() || self.account.is_lacking() => Moment::NEVER,
            State::Down => self.retry_at,
            State::Searching => {
                self.sentinel_client.as_ref().map_or(Moment::NEVER, |it| it.next_due())
            }
            State::Connecting { since, .. } => since.plus_ms(self.connect_share_ms()),
            State::Handshake { handshake, since, .. } => {
                self.handshake_due(handshake.is_asking(), *since)
            }
            State::Up { .. } => Moment::NEVER,
        }
    }

    /// Connects, or gives up connecting.
    pub(super) fn handle_due(&mut self, now: Moment) -> Option<Change> {
        match &self.state {
            State::Down => self.connect(now),
            State::Searching => self.search(now),
            State::Connecting { since, .. } => {
                let why = format!("timed out after {} ms", now.ms_since(*since));
                self.connect_failed(why.into(), now)
            }
            State::Handshake { handshake, .. } if !handshake.is_asking() => self.end_waiting(now),
            State::Handshake { wire, since, .. } => {
                let why = format!(
                    "timed out after {} ms{}",
                    now.ms_since(*since),
                    tls_mismatch::lacking(wire)
                );
                self.connect_failed(why.into(), now)
            }
            State::Up { .. } => None,
        }
    }

    /// What to poll for: the descriptor, and whether to wait until it is writable.
    pub(super) fn interest(&self) -> Option<Interest> {
        match &self.state {
            State::Down => None,
            State::Searching => self.sentinel_client.as_ref()?.interest(),
            State::Connecting { socket, .. } => Some(Interest::of(socket, true)),
            State::Handshake { wire, .. } | State::Up { wire } => {
                // TLS accepts little data before its handshake is complete. Until then, do not wait for the
                // socket to become writable.
                let is_waiting = !self.outbox.is_empty() && !wire.is_shaking_hands();
                Some(Interest::of(wire.socket(), is_waiting || wire.has_unsent()))
            }
        }
    }

    /// Whether there is something to send on the present connection. Always false without a connection.
    pub(super) fn has_unsent(&self) -> bool {
        match &self.state {
            State::Handshake { wire, .. } | State::Up { wire } => {
                !self.outbox.is_empty() || wire.has_unsent()
            }
            State::Down | State::Searching | State::Connecting { .. } => false,
        }
    }

    /// Sends as much of the outbox as the socket takes.
    pub(super) fn send(&mut self, now: Moment) -> Option<Change> {
        let (State::Up { wire } | State::Handshake { wire, .. }) = &mut self.state else {
            return None;
        };
        match wire.send_from(&mut self.outbox) {
            Ok(()) => None,
            Err(error) => self.break_off(Why::of_error(&error), now),
        }
    }

    /// Receives the available data into the inbox.
    pub(super) fn receive(&mut self, now: Moment) -> Result<Received, Option<Change>> {
        let (State::Up { wire } | State::Handshake { wire, .. }) = &mut self.state else {
            return Ok(Received::Nothing);
        };
        match self.inbox.receive(wire) {
            Ok(Received::Nothing) => Ok(Received::Nothing),
            Ok(received) => {
                self.heard_at = now;
                Ok(received)
            }
            Err(error) => Err(self.break_off(Why::of_error(&error), now)),
        }
    }

    /// Closes this connection because it is of no use any more.
    pub(super) fn break_off(&mut self, how: impl Into<Why>, now: Moment) -> Option<Change> {
        let mut how = how.into();
        if !self.is_up() {
            how.words += self.hint();
            return self.connect_failed(how, now);
        }
        self.close();
        self.server_registry.leave(self.place);
        // The connection worked until now, so a new one may be opened at once. The minimum gap still applies,
        // so that a server that keeps closing does not keep us busy.
        self.failures = 1;
        self.down_since = Some(now);
        self.retry_at = self.tried_at.map_or(now, |at| now.max(at.plus_ms(RETRY_GAP_MS)));
        self.why_down = how.clone();
        Some(Change::Lost { how: how.words })
    }

    /// Forgets a socket that [`InheritedDescriptor::close_inherited`] has closed.
    pub(super) fn forget_socket(&mut self) {
        match mem::replace(&mut self.state, State::Down) {
            State::Down | State::Searching => {}
            State::Connecting { socket, .. } => socket.forget(),
            State::Handshake { wire, .. } | State::Up { wire } => wire.forget(),
        }
        self.sentinel_client.iter_mut().for_each(|sentinel_client| sentinel_client.forget_socket());
    }

    fn note_failure(&mut self, why: Why, now: Moment) -> Change {
        self.server_registry.leave(self.place);
        self.failures = self.failures.saturating_add(1);
        self.down_since.get_or_insert(now);
        self.why_down = why.clone();
        Change::Failed { why: why.words, first: self.failures == 1 }
    }

    fn close(&mut self) {
        self.state = State::Down;
        self.remark = None;
        self.inbox.clear();
        self.outbox.clear();
        self.outbox.shrink_to(KEPT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::iter;
    use std::net::SocketAddr;

    use super::*;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    fn link_to(host: &str) -> Link {
        link_at(host, 1)
    }

    fn link_at(host: &str, port: i32) -> Link {
        let endpoint = Endpoint::parse(host, port).unwrap();
        let server_registry = Arc::new(ServerRegistry::new(1, Arc::default()));
        Link::new((0, server_registry, Arc::default()), endpoint, Arc::default(), Arc::default())
    }

    fn link() -> Link {
        link_to("127.0.0.1")
    }

    fn fail(link: &mut Link) -> Option<Change> {
        link.break_off("closed".to_owned(), NOW)
    }

    #[test]
    fn unsent_bytes_do_not_reach_the_next_connection() {
        let mut link = link();
        link.outbox.extend(b"the rest of a request");
        fail(&mut link);
        assert!(link.outbox.is_empty());
    }

    #[test]
    fn addresses_of_a_name_share_the_connect_time() {
        let mut link = link_to("name");
        let addresses = [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let lookup = link.name_to_look_up(NOW).expect("a name");
        assert!(link.handle_addresses(&lookup, Ok(addresses.to_vec()), NOW, NOW).is_none());
        assert_eq!(link.connect_share_ms(), link.timeouts.connect_ms() / 3);
    }

    /// Nobody lacks it so far.
    #[test]
    fn a_lost_server_has_its_name_looked_up() {
        let mut link = link_to("name");
        let addresses = || Ok(vec![SocketAddr::from(([127, 0, 0, 1], 1))]);
        let lookup = link.name_of_lost_to_look_up(NOW).expect("its addresses are not known");
        assert!(link.handle_addresses(&lookup, addresses(), NOW, NOW).is_none());
        assert_eq!(link.look_up_of_lost_at(), Moment::NEVER);
        let lost_at = NOW.plus_ms(60_000);
        link.break_off("closed".to_owned(), lost_at);
        link.break_off("refused".to_owned(), lost_at.plus_ms(500));
        let due = lost_at.plus_ms(2_000);
        assert_eq!(link.look_up_of_lost_at(), due);
        assert!(link.name_of_lost_to_look_up(due.plus_ms(-1)).is_none());
        let lookup = link.name_of_lost_to_look_up(due).expect("it may have moved");
        assert_eq!((&*lookup.name, lookup.port, lookup.sentinel), ("name", 1, None));
        assert_eq!(link.look_up_of_lost_at(), Moment::NEVER, "that is under way");
        link.handle_addresses(&lookup, addresses(), due, due);
        assert!(link.look_up_of_lost_at() > due);
        link.come_up(Capabilities::default(), Guard::default(), due);
        assert_eq!(link.look_up_of_lost_at(), Moment::NEVER, "it is up");
        assert_eq!(link_to("127.0.0.1").look_up_of_lost_at(), Moment::NEVER);
    }

    /// The Sentinels may have moved, too.
    #[test]
    fn a_lost_server_has_its_sentinels_looked_up() {
        let mut link = link_at("redis-sentinel://one,127.0.0.1,two/master", 0);
        let look_up = |link: &mut Link, at| {
            let names: Vec<_> = iter::from_fn(|| link.name_of_lost_to_look_up(at)).collect();
            for lookup in &names {
                let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 1))];
                link.handle_addresses(lookup, Ok(addresses), at, at);
            }
            names.into_iter().map(|it| (it.name, it.sentinel)).collect::<Vec<_>>()
        };
        let sentinels = [("one".to_owned(), Some(0)), ("two".to_owned(), Some(2))];
        assert_eq!(look_up(&mut link, NOW), sentinels);
        let lost_at = NOW.plus_ms(60_000);
        link.break_off("closed".to_owned(), lost_at);
        let due = lost_at.plus_ms(2_000);
        assert_eq!(link.look_up_of_lost_at(), due);
        assert_eq!(look_up(&mut link, due.plus_ms(-1)), []);
        assert_eq!(look_up(&mut link, due), sentinels);
    }

    #[test]
    fn a_needed_server_is_retried_after_a_gap() {
        let mut link = link();
        link.tried_at = Some(NOW);
        // Enough failures to make the pause long.
        (0..9).for_each(|_| drop(fail(&mut link)));
        let gap = NOW.plus_ms(RETRY_GAP_MS);
        link.hurry(NOW.plus_ms(RETRY_GAP_MS - 1));
        assert!(link.next_due() > gap);
        link.hurry(gap);
        assert_eq!(link.next_due(), gap);
    }
}
