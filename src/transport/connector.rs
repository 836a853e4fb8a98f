//! The connection to one server: how it is opened and closed.
//!
//! Nothing here blocks, and nothing here notifies callers. Each call returns how the connection has changed,
//! and the server that owns the link notifies the interested calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{io, mem};

use super::account::{Account, PasswordRequest};
use super::arbiters::{Arbiters, Owner, Standing};
use super::interest::Interest;
use super::security::Security;
use super::stream::Stream;
use super::tls_mismatch;
use super::wire::Wire;
use crate::protocol::command::Capabilities;
use crate::protocol::command::guard::{Borne, MemoryId, Note, Reading, Since};
use crate::protocol::command::handshake::{Handshake, Memory, Progress, Requirements};
use crate::protocol::command::identity::{Identity, RunId};
use crate::protocol::conn::addresses::Addresses;
use crate::protocol::conn::admission::{Admission, Known};
use crate::protocol::conn::clocks::Succession;
use crate::protocol::conn::guard::Guard;
use crate::protocol::conn::inbox::{Inbox, KEPT_MAX, Received};
use crate::protocol::conn::memories::Lasting;
use crate::protocol::conn::server_registry::{Seen, ServerRegistry, Verdict};
use crate::protocol::conn::why::Why;
use crate::protocol::electors::Electors;
use crate::protocol::moment::Moment;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::backoff;
use crate::protocol::quorum::offset::Showing;
use crate::protocol::quorum::ownership::{LEAD_MS, Support};
use crate::protocol::servers::address::{Address, Lookup};
use crate::protocol::servers::electorate::Electorate;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::token::random;
use crate::protocol::trouble::Trouble;
use crate::system::entropy::SystemEntropy;
use crate::system::socket::{InheritedDescriptor, Socket};

/// The minimum time between two attempts to connect, even when a caller needs the server.
const RETRY_GAP_MS: i64 = 20;

/// The minimum time between two searches for the server. Each asks all Sentinels, or all nodes of a cluster, and many clients
/// may search at once. A node may say for ever that the slot is elsewhere.
const SEARCH_GAP_MS: i64 = 100;

/// The reason for having no connection to a server that no caller has needed.
pub(super) const NOT_TRIED: &str = "not tried yet";

pub(super) struct Connector {
    endpoint: Endpoint,
    policy: Arc<Policy>,
    access: Arc<Security>,
    account: Account,
    server_registry: Arc<ServerRegistry>,
    lasting: Arc<Lasting>,
    /// The index of this server in `server_registry`.
    place: usize,
    /// If Sentinels watch the server, they are its arbiters: they say which server it is. `master` is the one that they
    /// named last.
    arbiters: Option<Box<Arbiters>>,
    master: Option<Owner>,
    /// Whether a majority of them must name it. That does not change while a connection is up.
    needs_majority: bool,
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
    /// When it may be searched again at the earliest.
    search_at: Moment,
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

impl Connector {
    pub(super) fn new(
        (place, server_registry, lasting): (usize, Arc<ServerRegistry>, Arc<Lasting>),
        endpoint: Endpoint,
        policy: Arc<Policy>,
        access: Arc<Security>,
    ) -> Self {
        let addresses = endpoint.place().map_or_else(Addresses::unknown, Addresses::of);
        let arbiters =
            endpoint.electorate().map(|it| Arbiters::new(it, endpoint.has_tls(), &access));
        let account = Account::new(&endpoint, Arc::clone(&access));
        let start = Moment::from_nanos(0);
        Self {
            endpoint,
            policy,
            access,
            account,
            server_registry,
            lasting,
            place,
            arbiters: arbiters.map(Box::new),
            master: None,
            needs_majority: false,
            inherited: [InheritedDescriptor::new(), InheritedDescriptor::new()],
            place_shown: 0,
            state: State::Down,
            addresses,
            failures: 0,
            down_since: None,
            retry_at: start,
            tried_at: None,
            search_at: start,
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
        let of_arbiters = self.arbiters.iter().flat_map(|it| it.inherited());
        self.inherited.clone().into_iter().chain(of_arbiters)
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
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
            State::Down => self.retry_at.max(self.search_at),
            State::Searching => self.arbiters.as_ref().map_or(Moment::NEVER, |it| it.next_due()),
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
            State::Down | State::Searching => None,
            State::Connecting { socket, .. } => Some(Interest::of(socket, true)),
            State::Handshake { wire, .. } | State::Up { wire } => {
                // TLS accepts little data before its handshake is complete. Until then, do not wait for the
                // socket to become writable.
                let is_waiting = !self.outbox.is_empty() && !wire.is_shaking_hands();
                Some(Interest::of(wire.socket(), is_waiting || wire.has_unsent()))
            }
        }
    }

    /// What to poll for beside that: the Sentinels that are being asked.
    pub(super) fn interests_in_arbiters(&self) -> impl Iterator<Item = Interest> + Clone {
        self.arbiters.iter().flat_map(|it| it.interests())
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
        match wire.receive_into(&mut self.inbox) {
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
        self.close(now);
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
        self.arbiters.iter_mut().for_each(|it| it.forget_sockets());
    }

    fn note_failure(&mut self, why: Why, now: Moment) -> Change {
        self.server_registry.leave(self.place);
        self.failures = self.failures.saturating_add(1);
        self.down_since.get_or_insert(now);
        self.why_down = why.clone();
        Change::Failed { why: why.words, first: self.failures == 1 }
    }

    fn close(&mut self, now: Moment) {
        self.keep_told(now);
        self.state = State::Down;
        self.remark = None;
        self.inbox.clear();
        self.outbox.clear();
        self.outbox.shrink_to(KEPT_MAX);
    }
}

/// How a connection is opened: the socket, TLS on it, and the first commands.
impl Connector {
    /// The socket may be ready. Goes on with connecting, if the link is connecting.
    pub(super) fn handle_connected(&mut self, now: Moment) -> Option<Change> {
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
    pub(super) fn read_handshake(&mut self, now: Moment) -> Option<Change> {
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
                    if let (true, Some(process)) =
                        (failure.is_of_a_replica(), self.identity.run_id())
                    {
                        self.lasting.memories.note_replica(process, now);
                    }
                    self.hear_rest();
                    if is_of_credentials {
                        self.account.handle_refusal();
                    }
                    return self.connect_failed(Why::of_failure(&failure), now);
                }
            }
        }
        None
    }

    /// The server is of no use. What it has said behind that may show that longer TTLs are in use.
    fn hear_rest(&mut self) {
        let State::Handshake { handshake, .. } = &mut self.state else { return };
        while let (true, Ok(Some(value))) = (handshake.is_asking(), self.inbox.next()) {
            handshake.handle_reply(&value);
        }
    }

    /// Why the server may have closed a connection that has just begun.
    fn hint(&self) -> &'static str {
        let State::Handshake { wire, handshake, .. } = &self.state else { return "" };
        let has_spoken = handshake.has_begun() || !self.inbox.is_empty();
        tls_mismatch::hint(wire, has_spoken, self.target())
    }

    /// How long one of several addresses may delay the attempt on the next.
    fn connect_share_ms(&self) -> i64 {
        let share = i64::try_from(self.addresses.count()).unwrap_or(i64::MAX);
        // The Sentinels have had the other half of the time.
        let share = if self.is_followed() { share.saturating_mul(2) } else { share };
        (self.policy.connect_ms() / share).max(1)
    }

    /// Begins to connect to the server's current address.
    fn dial(&mut self, now: Moment) -> Option<Change> {
        let inherited = &self.inherited[self.place_shown];
        let socket = match self.endpoint.place() {
            Some(Address::Path(path)) => Socket::to_path(path, inherited),
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
                (self.server_registry.rules().are_kept(), self.policy.has_waking());
            let requirements = Requirements { is_guarded, is_waking };
            let database = self.endpoint.database();
            let prefix = &self.lasting.prefix;
            let handshake = Handshake::new(credentials.as_ref(), database, prefix, requirements);
            let handshake = Box::new(handshake);
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

    fn come_up(&mut self, capabilities: Capabilities, guard: Guard, now: Moment) -> Option<Change> {
        let mut took_us = 0;
        if let State::Handshake { wire, since, .. } = mem::replace(&mut self.state, State::Down) {
            took_us = now.us_since(since);
            self.state = State::Up { wire };
        }
        let again = mem::take(&mut self.failures) > 0;
        self.down_since = None;
        let remark = mem::take(&mut self.remark);
        let process = self.identity.run_id();
        Some(Change::Up(Box::new(Up { capabilities, process, guard, took_us, again, remark })))
    }

    /// One address failed. Tries the next one. If there is none, no connection can be made for now.
    fn connect_failed(&mut self, why: Why, now: Moment) -> Option<Change> {
        let why = Why { words: self.of_master(why.words), ..why };
        self.close(now);
        // Without a password, another address does not help.
        if !self.account.is_lacking() && self.addresses.try_next() {
            return self.dial(now);
        }
        // The place that a Sentinel gave was of no use.
        let master = self.master.as_ref().map(|it| &it.place);
        self.arbiters.iter_mut().for_each(|it| it.distrust(master));
        Some(self.give_up(why, now))
    }

    /// Notes that no connection can be made for now, and plans the next attempt.
    fn give_up(&mut self, why: Why, now: Moment) -> Change {
        let failed = self.note_failure(why, now);
        let jitter = random(&SystemEntropy).unwrap_or(0);
        self.retry_at = now.plus(backoff::reconnect(self.failures, jitter));
        failed
    }
}

/// Other servers are waited for during 1 / this part of the connect timeout, because they decide whether a
/// server without a note is new.
const WAIT_PART: i64 = 2;

/// What is said of a server that is durable in part.
pub(super) const LOGGED_NO_MORE: &str = "appendfsync is no longer always: \
     after a restart, the server has no vote for a while";
const LOGGED_IN_PART: &str = "appendfsync is always now, but was not when redlock:guard was written: \
     after the next restart, the server has no vote for a while";

/// What is known of a server's memory before its connection is up. The server has a note already, or is given
/// one, or what it has must be rewritten first.
impl Connector {
    /// All questions of the handshake are answered. The connection is up, unless the server must be marked
    /// first. It is refused if the same server is in the list under another name as well.
    fn admit(&mut self, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, .. } = &self.state else { return None };
        let (memory, capabilities) = (handshake.memory().clone(), handshake.capabilities());
        self.identity = handshake.identity().clone();
        self.server_registry.meet(self.place, &self.identity);
        if let Some(id) = self.identity.run_id()
            && let Err(twin) = self.server_registry.enter(self.place, id, &self.name())
        {
            let why = format!("same server as {twin}: list each server once");
            return self.connect_failed(Why::new(Trouble::SameServer, why), now);
        }
        let (process, reading) = match memory {
            Memory::NotAsked => {
                return self.come_up(capabilities.without_clock(), Guard::default(), now);
            }
            Memory::Untold(refusal) => {
                self.server_registry.note(self.place, Seen::Untold);
                let guard = Guard::blind(refusal).with_loss(self.lasting.memories.lost_at());
                return self.come_up(capabilities.without_clock(), guard, now);
            }
            Memory::Read(process, reading) => (process, reading),
        };
        if reading.now_us <= 0 {
            let why = "clock shows a time before 1970: set the clock";
            return self.connect_failed(why.into(), now);
        }
        match &reading.borne {
            Borne::Unusable(unusable) => self.connect_failed((*unusable).into(), now),
            Borne::Nothing => {
                self.lasting.memories.note_missing(now);
                self.server_registry.note(self.place, Seen::Missing);
                self.note_clock((process, None), &reading, now);
                self.end_waiting(now)
            }
            Borne::Damaged => {
                self.lasting.memories.note_missing(now);
                self.note_clock((process, None), &reading, now);
                self.begin_memory(process, None, Since::Now, now)
            }
            Borne::Note(note) => match self.known(process, &reading).judge(note, now) {
                Admission::Accept { found_at } => {
                    let lost_at = self.note_succession(process, note, &reading, now);
                    // Another client has taken it for a new one, and this manager has seen that it is none.
                    let known_at = self.lasting.memories.lost_at().filter(|_| note.is_of_new());
                    let lost_at = lost_at.max(known_at);
                    let guard = self.remember(note, reading.now_ms(), found_at.max(lost_at), now);
                    self.come_up(capabilities, guard, now)
                }
                Admission::Lose => {
                    self.note_clock((process, None), &reading, now);
                    self.begin_memory(process, Some(note), Since::Now, now)
                }
                Admission::Rewrite(new, since) => {
                    self.note_succession(process, note, &reading, now);
                    if note.is_logged && !new.is_logged {
                        self.remark = Some(LOGGED_NO_MORE);
                    }
                    self.mark(&new, since, now)
                }
            },
        }
    }

    /// The connection ends. What the server has told in an unfinished handshake holds nevertheless: a later handshake may
    /// find an older note.
    fn keep_told(&self, now: Moment) {
        let State::Handshake { handshake, begun, .. } = &self.state else { return };
        self.server_registry.meet(self.place, handshake.identity());
        let &Memory::Read(process, ref reading) = handshake.memory() else { return };
        self.server_registry.rules().hear(&reading.borne);
        let is_judged = begun.is_some() || !handshake.is_asking();
        // A replica has the note of its primary.
        if is_judged || handshake.identity().is_replica() {
            return;
        }
        match &reading.borne {
            Borne::Nothing | Borne::Damaged => self.lasting.memories.note_missing(now),
            Borne::Note(note) => _ = self.known(process, reading).judge(note, now),
            Borne::Unusable(_) => {}
        }
    }

    fn known(&self, process: RunId, reading: &Reading) -> Known<'_> {
        let (identity, begun) = match &self.state {
            State::Handshake { handshake, begun, .. } => (handshake.identity(), *begun),
            _ => (&self.identity, None),
        };
        let memories = &self.lasting.memories;
        let epoch = self.master.as_ref().filter(|_| self.needs_majority).map(|it| it.epoch);
        Known { process, clock_ms: reading.now_ms(), identity, memories, begun, epoch }
    }

    /// Notes the clock that the server has shown together with this note. If this server has taken the place of another
    /// one, returns when its memory was lost, as far as that other one shows it.
    fn note_succession(
        &self,
        process: RunId,
        note: &Note,
        reading: &Reading,
        now: Moment,
    ) -> Option<Moment> {
        let succession = self.note_clock((process, Some(note.life)), reading, now)?;
        let ago_ms = note.age_ms(reading.now_ms());
        let lost_at = succession.lost_at(ago_ms, note.is_of_new(), now)?;
        self.lasting.memories.note_loss(note, lost_at);
        Some(lost_at)
    }

    /// Notes the clock that the server has shown, also if its memory has still to begin: what another client has it
    /// grant meanwhile is lost early if the clock is set.
    fn note_clock(
        &self,
        source: (RunId, Option<MemoryId>),
        reading: &Reading,
        now: Moment,
    ) -> Option<Succession> {
        let State::Handshake { asked_at, .. } = self.state else { return None };
        let in_ns = |us: i64| us.saturating_mul(1_000);
        let (shown, grain) = (in_ns(reading.now_us), in_ns(reading.grain_us));
        let showing = Showing { shown, grain, sent: asked_at, heard: now };
        self.lasting.clock.note(source, &showing, self.server_registry.rules().drift())
    }

    /// Handles a server that has a note of its own process.
    fn remember(
        &mut self,
        note: &Note,
        clock_ms: i64,
        found_at: Option<Moment>,
        now: Moment,
    ) -> Guard {
        let seen = match note.young_ms(clock_ms) {
            0 => Seen::Marked,
            left_ms => Seen::Young { until: now.plus_ms(left_ms) },
        };
        self.server_registry.note(self.place, seen);
        let is_logged_in_part = !note.is_logged && self.identity.is_durable() == Some(true);
        let in_part = is_logged_in_part.then_some(LOGGED_IN_PART);
        let rules = self.server_registry.rules();
        let asked_at = match self.state {
            State::Handshake { since, .. } => since,
            _ => now,
        };
        let guard = Guard::of(note, clock_ms, found_at, now, rules)
            .primary_since(asked_at)
            .with_caveat(self.remark.or(in_part).unwrap_or_default())
            .with_lead(if self.needs_majority { rules.lead_ms(LEAD_MS) } else { 0 });
        if self.identity.role().is_empty() { guard.without_role() } else { guard }
    }

    /// When [`Self::handle_due`] must be called for a handshake that began at `since`.
    fn handshake_due(&self, is_asking: bool, since: Moment) -> Moment {
        let connect_ms = self.policy.connect_ms();
        match is_asking {
            true => since.plus_ms(connect_ms),
            false => {
                let verdict_at = self.server_registry.verdict_at(self.place);
                verdict_at.min(since.plus_ms(connect_ms / WAIT_PART))
            }
        }
    }

    /// Handles a server without a note. Gives it one if it is known whether the server is new, or if the time
    /// to wait for other servers is over.
    fn end_waiting(&mut self, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, since, .. } = &self.state else { return None };
        let &Memory::Read(process, ref reading) = handshake.memory() else { return None };
        if self.lasting.memories.generation(process) > 0 {
            return self.begin_memory(process, None, Since::Now, now);
        }
        let connect_ms = self.policy.connect_ms();
        if now >= since.plus_ms(connect_ms / WAIT_PART) {
            self.server_registry.end_waiting(self.place);
        }
        // After this time it is too late to mark the server as new, because this connection has been given
        // up.
        let until_ms = reading.now_ms().saturating_add(connect_ms);
        let since = match self.server_registry.verdict(self.place, now)? {
            // With a later epoch, it has taken the place of another server.
            Verdict::Fresh if self.epoch() == 0 => Since::Fresh { until_ms },
            Verdict::Fresh | Verdict::Lost => Since::Now,
        };
        self.begin_memory(process, None, since, now)
    }

    /// Marks the server: a memory of this process begins. `old` is the note of the memory before it.
    fn begin_memory(
        &mut self,
        process: RunId,
        old: Option<&Note>,
        since: Since,
        now: Moment,
    ) -> Option<Change> {
        let Ok(number) = random(&SystemEntropy) else {
            let why = "no random bytes from the system for the key redlock:guard";
            return self.connect_failed(why.into(), now);
        };
        let life = MemoryId::from_random(number);
        let known = self.lasting.memories.generation(process);
        let longest_ms = self.server_registry.rules().longest_ms();
        let begun = Note::of_beginning((process, life), old, (known, longest_ms), &self.identity);
        let note = Note { epoch: self.epoch(), ..begun };
        if let State::Handshake { begun, .. } = &mut self.state {
            *begun = Some(life);
        }
        self.mark(&note, since, now)
    }

    /// The epoch in which the server became the master, if Sentinels watch it.
    fn epoch(&self) -> u64 {
        self.master.as_ref().map_or(0, |it| it.epoch)
    }

    fn mark(&mut self, note: &Note, since: Since, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, asked_at, .. } = &mut self.state else { return None };
        *asked_at = now;
        handshake.mark(note, since, &mut self.outbox);
        self.send(now)
    }
}

/// What must be asked before a connection can be opened: the addresses of a name, and the password.
impl Connector {
    /// The name to look up, if a look-up is due. The caller looks it up with no mutex held and passes the
    /// result to [`Self::handle_addresses`].
    pub(super) fn name_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        self.name_where(|addresses| addresses.begin_look_up(now))
    }

    /// The same, also for a server that was reached before: it is down, and may have moved.
    pub(super) fn name_of_lost_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        match self.down_since {
            Some(since) => self.name_where(|it| it.begin_look_up_of_lost(since, now)),
            None => self.name_to_look_up(now),
        }
    }

    /// When [`Self::name_of_lost_to_look_up`] is due, for a server that is down.
    pub(super) fn look_up_of_lost_at(&self) -> Moment {
        let Some(since) = self.down_since else { return Moment::NEVER };
        let own = match self.target() {
            Some(Address::Name(..)) => self.addresses.look_up_of_lost_at(since),
            _ => Moment::NEVER,
        };
        let of_sentinels = self.arbiters.as_ref().map(|it| it.look_up_of_lost_at(since));
        own.min(of_sentinels.unwrap_or(Moment::NEVER))
    }

    /// The first name whose addresses begin a look-up: of a Sentinel, or of the server itself.
    fn name_where(&mut self, mut begin: impl FnMut(&mut Addresses) -> bool) -> Option<Lookup> {
        let arbiters = self.arbiters.as_mut();
        let of_sentinel = arbiters.and_then(|it| it.name_where(&mut begin));
        if let Some((which, name, port)) = of_sentinel {
            return Some(Lookup { name, port, sentinel: Some(which) });
        }
        let Some(Address::Name(name, port)) = self.target().cloned() else { return None };
        begin(&mut self.addresses).then_some(Lookup { name, port, sentinel: None })
    }

    pub(super) fn handle_addresses(
        &mut self,
        lookup: &Lookup,
        found: Result<Vec<SocketAddr>, String>,
        began: Moment,
        now: Moment,
    ) -> Option<Change> {
        let error = found.as_ref().err().cloned();
        if let (Some(which), Some(arbiters)) = (lookup.sentinel, &mut self.arbiters) {
            if arbiters.end_look_up(which, found.ok(), began, now) {
                (self.retry_at, self.search_at) = (now, now);
            }
            let error = error.filter(|_| self.is_nameless())?;
            let why = format!("cannot resolve the Sentinel host names: {error}");
            return Some(self.note_failure(why.into(), now));
        }
        let is_it = matches!(self.target(), Some(Address::Name(name, _)) if *name == lookup.name);
        // A master with another name may have taken its place meanwhile.
        if !is_it {
            return None;
        }
        if self.addresses.end_look_up(found.ok(), began, now) {
            (self.retry_at, self.search_at) = (now, now);
        }
        let error = error.filter(|_| self.addresses.is_empty())?;
        let words = format!("cannot resolve the host name: {error}");
        Some(self.note_failure(Why::new(Trouble::UnknownName, words), now))
    }

    /// The source to ask for the password, if that is due. The caller asks with no mutex held and passes the
    /// answer to [`Self::handle_password`].
    pub(super) fn password_request(&mut self, now: Moment) -> Option<PasswordRequest> {
        if self.is_up() { None } else { self.account.password_request(now) }
    }

    pub(super) fn handle_password(
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
    pub(super) fn is_asked_about(&self) -> bool {
        let is_of_sentinel = self.arbiters.as_ref().is_some_and(|it| it.is_looked_up());
        let name = self.is_nameless() && (self.addresses.is_looked_up() || is_of_sentinel);
        let master = self.is_followed() && self.is_down() && self.addresses.is_looked_up();
        name || master || (self.is_down() && self.account.is_asking())
    }

    /// Whether the link is up, or has addresses that may work.
    pub(super) fn is_promising(&self) -> bool {
        self.is_up() || (self.failures == 0 && !self.is_nameless())
    }

    /// Whether the name must be looked up before connecting.
    fn is_nameless(&self) -> bool {
        match &self.arbiters {
            Some(arbiters) => arbiters.is_nameless(),
            None => matches!(self.target(), Some(Address::Name(..))) && self.addresses.is_empty(),
        }
    }
}

/// The Sentinels must say where the master is within 1 / this part of the connect timeout.
const SEARCH_PART: i64 = 2;

/// How a link finds a master that Sentinels watch, and leaves it when another server becomes the master.
impl Connector {
    /// Connects to the place in the URL, or to the place that the Sentinels give.
    fn connect(&mut self, now: Moment) -> Option<Change> {
        self.tried_at = Some(now);
        let within_ms = self.search_ms();
        let Some(arbiters) = &mut self.arbiters else { return self.dial(now) };
        // Without notes, nothing tells when the successor of a master may vote.
        let has_notes = self.server_registry.rules().are_kept();
        self.needs_majority = has_notes && self.policy.has_failover_guard();
        match self.account.credentials() {
            Ok(login) => {
                arbiters.begin(login, self.needs_majority, within_ms, now);
                self.search_at = now.plus_ms(SEARCH_GAP_MS);
            }
            Err(why) => return Some(self.give_up(why.into(), now)),
        }
        self.state = State::Searching;
        self.search(now)
    }

    /// Goes on with asking the Sentinels, if a search is under way.
    fn search(&mut self, now: Moment) -> Option<Change> {
        let found = self.arbiters.as_mut()?.advance(now)?;
        self.state = State::Down;
        match found {
            Ok(owner) => {
                self.have_master(Some(owner));
                self.dial(now)
            }
            Err(why) => Some(self.give_up(Why::new(Trouble::OwnerUnknown, why), now)),
        }
    }

    /// This is the master now. The addresses are always its own.
    fn have_master(&mut self, master: Option<Owner>) {
        let place = |it: &Option<Owner>| it.as_ref().map(|it| it.place.clone());
        let (before, now) = (place(&self.master), place(&master));
        if before != now {
            self.addresses = now.as_ref().map_or_else(Addresses::unknown, Addresses::of);
        }
        self.master = master;
    }

    /// If the connection is up, and is in use, checks whether it still leads to the master, as far as the Sentinels have
    /// said. They are asked again if it is time.
    pub(super) fn follow(&mut self, now: Moment) -> Option<Change> {
        let within_ms = self.search_ms();
        let (true, Some(arbiters), Some(master)) = (self.is_up(), &mut self.arbiters, &self.master)
        else {
            return None;
        };
        arbiters.follow(master, within_ms, now).then(|| self.leave_master(now))?
    }

    /// Reads what Sentinels have said to a question that is under way.
    pub(super) fn hear_arbiters(&mut self, now: Moment) -> Option<Change> {
        match self.state {
            State::Searching => self.search(now),
            State::Up { .. } => {
                let has_left = self.arbiters.as_mut()?.hear_news(self.master.as_ref()?, now);
                has_left.then(|| self.leave_master(now))?
            }
            // The majority has spoken, and the others still do. What is not read keeps the thread that polls awake.
            State::Down | State::Connecting { .. } | State::Handshake { .. } => {
                self.arbiters.as_mut()?.advance(now);
                None
            }
        }
    }

    fn leave_master(&mut self, now: Moment) -> Option<Change> {
        let by = self.electors();
        self.break_off(format!("failover: the {} report another {}", by.name(), by.office()), now)
    }

    /// The owner to whom the connection in use leads, if a majority of Sentinels must name it for its grants to count.
    pub(super) fn owner(&self) -> Option<&Owner> {
        self.master.as_ref().filter(|_| self.needs_majority && self.is_up())
    }

    /// Whether a Sentinel was asked since the last call.
    pub(super) fn take_asked(&mut self) -> bool {
        self.arbiters.as_mut().is_some_and(|it| it.take_asked())
    }

    /// Whether this owner is the master, for the answer to a request that was sent at this time.
    pub(super) fn standing(&mut self, owner: &Owner, sent_at: Moment, now: Moment) -> Standing {
        let arbiters = self.arbiters.as_mut();
        arbiters.map_or(Standing::Confirmed, |it| it.standing(owner, sent_at, now))
    }

    /// How many Sentinels have named the same master, for the answer to a request that was sent at this time.
    pub(super) fn support(&self, sent_at: Moment) -> Option<Support> {
        Some(self.arbiters.as_ref()?.support(sent_at))
    }

    /// Who names the owner, if somebody must.
    pub(super) fn electors(&self) -> Electors {
        self.endpoint.electorate().map_or(Electors::Sentinels, Electorate::kind)
    }

    /// Whether all keys on the server are in one slot of a cluster.
    pub(super) fn is_for_one_slot(&self) -> bool {
        !self.lasting.prefix.is_empty()
    }

    /// Whether Sentinels give the server's place.
    pub(super) fn is_followed(&self) -> bool {
        self.arbiters.is_some()
    }

    /// The server's place, as far as it is known.
    fn target(&self) -> Option<&Address> {
        self.endpoint.place().or_else(|| Some(&self.master.as_ref()?.place))
    }

    /// The server's name for people. It includes the address if the name itself does not.
    pub(super) fn name(&self) -> String {
        match (self.endpoint.electorate(), self.addresses.current()) {
            (Some(electorate), Some(address)) => format!("{} ({address})", electorate.voter()),
            _ => self.endpoint.to_string(),
        }
    }

    /// The reason why the master cannot be used, with its address.
    fn of_master(&self, why: String) -> String {
        match (&self.arbiters, self.addresses.current()) {
            (Some(_), Some(address)) => format!("{address}: {why}"),
            _ => why,
        }
    }

    fn search_ms(&self) -> i64 {
        self.policy.connect_ms() / SEARCH_PART
    }
}

/// How a connection that is up is set aside, so that another one can be opened.
impl Connector {
    /// Gives away the connection that is up. Another one is opened at once.
    pub(super) fn set_aside(&mut self, now: Moment) -> Option<Stream> {
        match mem::replace(&mut self.state, State::Down) {
            State::Up { wire } => {
                self.place_shown = 1 - self.place_shown;
                self.retry_at = now;
                let (inbox, outbox) = (mem::take(&mut self.inbox), mem::take(&mut self.outbox));
                let (master, needs_majority) = (self.master.clone(), self.needs_majority);
                let heard_at = self.heard_at;
                Some(Stream { wire, inbox, outbox, heard_at, master, needs_majority })
            }
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Takes back the connection that was set aside, in place of the one that was being opened.
    pub(super) fn take_back(&mut self, stream: Stream, now: Moment) {
        self.close(now);
        self.place_shown = 1 - self.place_shown;
        (self.failures, self.down_since) = (0, None);
        let Stream { wire, inbox, outbox, heard_at, master, needs_majority } = stream;
        (self.inbox, self.outbox, self.heard_at) = (inbox, outbox, heard_at);
        self.state = State::Up { wire };
        // It may lead to a server that is not the master any more, and the setting may have changed meanwhile.
        self.have_master(master);
        self.needs_majority = needs_majority;
    }

    /// The connection that was set aside is lost before there is another one.
    pub(super) fn note_loss(&mut self, how: &str) {
        if self.failures == 0 {
            self.failures = 1;
            self.why_down = how.into();
        }
    }
}

#[cfg(test)]
mod tests;
