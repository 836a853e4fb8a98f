//! The world of a scenario, in which nothing is left to chance. Each request and each reply takes as long
//! as the scenario says. Callers continue as soon as they can and in the order in which they came. The
//! actions of the servers are recorded.

use crate::protocol::command::identity::PROMOTION;
use crate::protocol::command::several::waking::ENROL_SCRIPT;
use crate::protocol::command::shared::{enrol as enrol_reader, intend};
use crate::protocol::command::waking::{ENROL, ENROL_PERMITS, LEAVE, LEAVE_PERMITS, LEAVE_SLOT};
use crate::schedules::schedule::{ClientPlan, Cut, Schedule, ServerPlan};
use crate::world::clocks::MS;
use crate::world::commands::NOTE;
use crate::world::hashes::text_of;
use crate::world::network::End;
use crate::world::server::Server;
use crate::world::store::{Deed, Dialect, Key, Refusal, tag};
use crate::world::{World, resp};

/// What happens to one request and its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    /// How long the request takes, and how long the reply takes. Neither overtakes the ones before it.
    pub(crate) there: i64,
    /// [`Trip::NEVER`]: neither this nor any later one arrives on this connection.
    pub(crate) back: i64,
    pub(crate) fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The server executes the request, and answers with an error.
    ErrorAfter,
    /// The server does nothing, and answers with an error.
    ErrorInstead,
}

impl Trip {
    pub(crate) const NEVER: i64 = i64::MAX;

    pub(crate) fn ms(there_ms: i64, back_ms: i64) -> Self {
        Self { there: there_ms * MS, back: back_ms * MS, fault: Fault::None }
    }

    pub(crate) fn failing(fault: Fault) -> Self {
        Self { fault, ..Self::default() }
    }
}

impl Default for Trip {
    fn default() -> Self {
        Self::ms(1, 1)
    }
}

/// What a server was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Acquire,
    Extend,
    Release,
    Shorten,
    Inspect,
    /// For a semaphore: to take another slot, or to keep one slot and no other.
    Move,
    GiveUp,
    /// To receive the messages of a channel.
    Subscribe,
    /// To join the wait queue, or else to learn that the lock is free.
    Look,
    Leave,
    /// To announce that a writer waits.
    AnnounceWriter,
    /// Nothing: the server reported by itself that something is free. The message may or may not arrive.
    Told,
}

/// What happens to a message that a server sends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Telling {
    Usual,
    Lost,
    /// It takes this long, and so does everything behind it.
    Late(i64),
    Twice,
}

/// Something that a server did.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) at: i64,
    pub(crate) client: usize,
    pub(crate) server: usize,
    pub(crate) verb: Verb,
    /// Empty for a question.
    pub(crate) token: String,
}

/// The scenario's part of the world.
#[derive(Default)]
pub(crate) struct Script {
    /// The trip of requests that have no trip of their own.
    pub(crate) usual: Trip,
    /// What the servers did, in order.
    pub(crate) done: Vec<Done>,
    /// What the clients have sent to each server, if the scenario wants to know.
    pub(crate) tape: Option<Vec<(usize, Vec<u8>)>>,
    /// Callers that have ended: their numbers are reused.
    pub(crate) spare: Vec<usize>,
}

/// The requests in a stream of bytes: where each ends, and whether it is about a lock. A question of two
/// commands, one behind the other, is one request.
fn requests(bytes: &[u8]) -> Vec<(usize, bool)> {
    let (mut ends, mut at, mut words) = (Vec::<(usize, bool)>::new(), 0, Vec::new());
    while let Ok(Some(length)) = resp::parse(&bytes[at..], &mut words) {
        let word = |it: usize| words.get(it).map(|word| &bytes[at..][word.clone()]);
        let is_note = [NOTE, PROMOTION.as_bytes()].map(Some).contains(&word(1));
        let name = word(0).unwrap_or_default();
        at += length;
        match (name, ends.last_mut()) {
            (b"PTTL" | b"ZCARD", Some(last)) => last.0 = at,
            _ => ends.push((at, !is_note && is_request(name, words.len()))),
        }
    }
    if at < bytes.len() {
        ends.push((bytes.len(), false));
    }
    ends
}

/// Whether this begins a request, and is not a part of the handshake.
fn is_request(name: &[u8], words: usize) -> bool {
    let greeting = [&b"AUTH"[..], b"SELECT", b"INFO", b"CONFIG", b"HELLO", b"SUBSCRIBE"];
    words > 1 && ![&b"PTTL"[..], b"ZCARD"].contains(&name) && !greeting.contains(&name)
}

/// What a command does with wait queues and channels.
fn about_lines(words: &[&[u8]]) -> Option<Verb> {
    let script = match *words {
        [b"SUBSCRIBE", ..] => return Some(Verb::Subscribe),
        [name, word, ..] => text_of(name, word)?,
        _ => return None,
    };
    let is_one = |all: &[&str]| all.iter().any(|it| it.as_bytes() == script);
    if is_one(&[ENROL, ENROL_PERMITS, ENROL_SCRIPT, enrol_reader::SCRIPT]) {
        return Some(Verb::Look);
    }
    if is_one(&[LEAVE, LEAVE_PERMITS, LEAVE_SLOT]) {
        return Some(Verb::Leave);
    }
    is_one(&[intend::SCRIPT]).then_some(Verb::AnnounceWriter)
}

impl World {
    /// A world with this number of servers that run correctly, without a client. The first client that is
    /// added is the scenario itself.
    pub(crate) fn of_scenario(servers: usize, password: bool) -> Self {
        let server = ServerPlan {
            ahead: 0,
            per_million: 1_000_000,
            // The clock is read once for many commands. With the rounding, a key may expire up to 2 ms
            // early.
            early_ms: 1,
            dialect: Dialect::Plain,
            password,
        };
        let schedule = Schedule { servers: vec![server; servers], ..Schedule::empty() };
        let mut world = Self { script: Some(Script::default()), ..Self::new(schedule.into()) };
        for Server { store, .. } in &mut world.servers {
            (store.knows_resp3, store.loses_scripts) = (true, None);
        }
        world
    }

    /// Returns the client's number.
    pub(crate) fn add_client(&mut self, ahead: i64, per_million: i64) -> usize {
        let plan = ClientPlan {
            list: (0..self.servers.len()).collect(),
            others: Vec::new(),
            ahead,
            per_million,
            drift: 0.0,
            tries: 0,
            delay_ms: 0,
            connect_ms: 0,
            reply_ms: 0,
            callers: Vec::new(),
            hitches: Vec::new(),
        };
        let client = self.add_client_of(&plan);
        self.clients[client].set_wall_ahead(0);
        client
    }

    /// Data is sent request by request, and each request has a trip of its own.
    pub(crate) fn transmit_requests(&mut self, connection: usize, bytes: &[u8]) {
        let (client, server) =
            (self.connections[connection].client, self.connections[connection].server);
        if let Some(tape) = self.script.as_mut().and_then(|it| it.tape.as_mut()) {
            tape.push((server, bytes.to_vec()));
        }
        let mut from = 0;
        for (end, has_trip) in requests(bytes) {
            let usual = self.script.as_ref().map_or_else(Trip::default, |it| it.usual);
            let trips = &mut self.wire(client, server).trips;
            let trip = if has_trip { trips.pop_front().unwrap_or(usual) } else { usual };
            self.load_request(connection, &bytes[from..end], trip);
            from = end;
        }
    }

    /// Executes a command of this length as its trip says, and sends the reply.
    pub(crate) fn execute_on_trip(&mut self, connection: usize, words: &[&[u8]], length: usize) {
        let (trip, server) =
            (self.take_trip(connection, length), self.connections[connection].server);
        let refusal = match trip.fault {
            Fault::None => None,
            Fault::ErrorAfter => Some(Refusal::AfterAll),
            Fault::ErrorInstead => Some(Refusal::Busy),
        };
        self.servers[server].refusals.extend(refusal);
        let mut out = Vec::new();
        self.execute(connection, words, &mut out);
        if refusal.is_some() {
            self.servers[server].refusals.pop();
        }
        self.load_reply(connection, out, trip.back);
    }

    /// The trip of a command of this length. A socket may have taken the command in parts: the last part counts.
    fn take_trip(&mut self, connection: usize, mut length: usize) -> Trip {
        let trips = &mut self.connections[connection].trips;
        loop {
            let Some((left, trip)) = trips.front_mut() else {
                panic!("each byte has come as a part of a request")
            };
            let (trip, part) = (*trip, length.min(*left));
            (*left, length) = (*left - part, length - part);
            if *left == 0 {
                trips.pop_front();
            }
            if length == 0 {
                return trip;
            }
        }
    }

    /// Records what a server did, if a scenario wants to know.
    pub(crate) fn note_done(&mut self, connection: usize, deed: &Deed<'_>, words: &[&[u8]]) {
        if self.script.is_none() {
            return;
        }
        let (verb, token) = match *deed {
            Deed::Acquire { value, .. } => (Verb::Acquire, value),
            Deed::Extend { value, .. } => (Verb::Extend, value),
            Deed::Release { value, .. } => (Verb::Release, value),
            Deed::Shorten { value, .. } => (Verb::Shorten, value),
            Deed::Move { value, .. } => (Verb::Move, value),
            Deed::GiveUp { value, .. } => (Verb::GiveUp, value),
            Deed::Inspect { .. } => (Verb::Inspect, &b""[..]),
            _ => match about_lines(words) {
                Some(verb) => (verb, &b""[..]),
                None => return,
            },
        };
        self.write_down(connection, verb, token);
    }

    fn write_down(&mut self, connection: usize, verb: Verb, token: &[u8]) {
        let Some(script) = &mut self.script else { return };
        let (client, server) =
            (self.connections[connection].client, self.connections[connection].server);
        let token = String::from_utf8_lossy(token).into_owned();
        script.done.push(Done { at: self.now, client, server, verb, token });
    }

    /// A server sends a message by itself, as the scenario determines.
    pub(crate) fn tell_as_scripted(&mut self, listener: usize, push: Vec<u8>) {
        self.write_down(listener, Verb::Told, b"");
        let (client, server) =
            (self.connections[listener].client, self.connections[listener].server);
        let telling = self.wire(client, server).tellings.pop_front().unwrap_or(Telling::Usual);
        let usual = self.script.as_ref().map_or(MS, |it| it.usual.back);
        match telling {
            Telling::Usual => self.load_reply(listener, push, usual),
            Telling::Lost => {}
            Telling::Late(ns) => self.load_reply(listener, push, ns),
            Telling::Twice => {
                self.load_reply(listener, push.clone(), usual);
                self.load_reply(listener, push, usual);
            }
        }
    }

    /// A client's connections to a server are lost. Data under way to the server arrives, unless it is
    /// swallowed.
    pub(crate) fn sever(&mut self, client: usize, server: usize, is_swallowed: bool) {
        if is_swallowed {
            return self.cut(client, server, Cut::Reset);
        }
        for connection in 0..self.connections.len() {
            let it = &self.connections[connection];
            if (it.client, it.server) == (client, server) && it.is_usable() {
                self.break_for_client(connection, End::Reset);
                self.notice(client, connection);
            }
        }
    }

    /// Writes the key by hand.
    pub(crate) fn put(&mut self, server: usize, resource: &str, value: &str, ttl_ms: i64) {
        let expires_ms = self.servers[server].now_ms(self.now) + ttl_ms;
        let store = &mut self.servers[server].store;
        store.keys.retain(|it| *it.name != *resource.as_bytes());
        store.keys.push(Key {
            database: 0,
            name: resource.as_bytes().into(),
            value: value.as_bytes().into(),
            tag: tag(value.as_bytes()),
            expires_ms: Some(expires_ms),
            is_reader: false,
        });
    }

    /// The value under this name, and when the server deletes it; if it is there.
    pub(crate) fn kept(&mut self, server: usize, resource: &str) -> Option<(String, i64)> {
        let now = self.now;
        let server = &mut self.servers[server];
        server.count_keys(now);
        let key = server.store.keys.iter().find(|it| *it.name == *resource.as_bytes())?;
        let value = String::from_utf8_lossy(&key.value).into_owned();
        Some((value, server.kept_until(key.tag)))
    }
}
