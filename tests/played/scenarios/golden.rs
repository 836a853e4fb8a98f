//! What each call sends to the servers, and what it says: each kind of lock, on servers of each ability, in each
//! situation, recorded in `golden/calls.txt`. A change that is meant to change none of it leaves the file as it is.
//! Otherwise `make golden-record` writes it again, and the commit says what has changed, and why.

use std::env;
use std::fmt::Write;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::client::Client;
use super::cluster::Cluster;
use crate::manager::call::{AcquireOptions, Call, Patience};
use crate::manager::event::Event;
use crate::manager::lease::Lease;
use crate::protocol::error::Error;
use crate::protocol::lock_kind::LockKind;
use crate::world::resp;
use crate::world::store::{Dialect, Refusal};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/played/golden/calls.txt");

/// Set in the environment: the file is written instead of compared.
const RECORD: &str = "REDLOCK_RECORD_GOLDEN";

const TTL: i64 = 10_000;

/// The length of a token: 20 bytes in hexadecimal.
const TOKEN_HEX_LEN: usize = 40;

/// Only two of the three servers take part in what fails.
const FAILING: [usize; 2] = [0, 1];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Exclusive,
    Shared,
    Permit,
    Several,
}

const KINDS: [Kind; 4] = [Kind::Exclusive, Kind::Shared, Kind::Permit, Kind::Several];

/// What the servers can do, and what the client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    /// A server of today, and a client that is not woken.
    Plain,
    Woken,
    Fenced,
    /// The servers tell what they remember.
    Guarded,
    /// Redis 8.4 and Valkey 9.0.
    Delex,
    Delifeq,
    Resp2,
    /// The servers refuse a part of the commands.
    RefusesOwnDelete,
    RefusesLooks,
    RefusesChannels,
}

const WORLDS: [World; 10] = [
    World::Plain,
    World::Woken,
    World::Fenced,
    World::Guarded,
    World::Delex,
    World::Delifeq,
    World::Resp2,
    World::RefusesOwnDelete,
    World::RefusesLooks,
    World::RefusesChannels,
];

/// What happens to the calls.
#[derive(Clone, Copy, Debug)]
enum Course {
    Connecting,
    Granted,
    Refused,
    Silent,
    Lost,
}

const COURSES: [Course; 5] =
    [Course::Connecting, Course::Granted, Course::Refused, Course::Silent, Course::Lost];

/// One kind of lock in one world, and what was written about it.
struct Tale {
    cluster: Cluster,
    kind: Kind,
    world: World,
    text: String,
}

impl Tale {
    fn new(kind: Kind, world: World) -> Self {
        let cluster = Cluster::new(3);
        if world == World::Guarded {
            cluster.tell_notes();
        }
        for server in 0..3 {
            let refuse = |what| cluster.refuse(server, what);
            let speak = |dialect| cluster.with(|it| it.servers[server].store.dialect = dialect);
            match world {
                World::Delex => speak(Dialect::Delex),
                World::Delifeq => speak(Dialect::Delifeq),
                World::Resp2 => cluster.speaks_resp2(server),
                World::RefusesOwnDelete => {
                    speak(Dialect::Delex);
                    refuse(Refusal::NoPermDelete);
                }
                World::RefusesLooks => refuse(Refusal::NoPermLook),
                World::RefusesChannels => refuse(Refusal::NoPermTell),
                World::Plain | World::Woken | World::Fenced | World::Guarded => {}
            }
        }
        cluster.with(|it| it.script.as_mut().expect("it is a scenario").tape = Some(Vec::new()));
        Self { cluster, kind, world, text: String::new() }
    }

    /// A client that tries once unless it is told to wait.
    fn client(&mut self, name: &str) -> Client {
        let (client, said) = self.connecting_client();
        assert!(said.is_ok(), "{name} cannot connect");
        // The handshake is a course of its own.
        self.tape();
        client
    }

    fn connecting_client(&mut self) -> (Client, Result<String, Error>) {
        let client = self.cluster.client().tries(1, 0).waits_ms(100);
        let manager = &client.manager;
        let has_pushes = [World::Woken, World::Resp2, World::RefusesChannels, World::Guarded];
        manager.settings().set_waking(has_pushes.contains(&self.world));
        manager.settings().set_fencing(self.world == World::Fenced && self.kind != Kind::Permit);
        client.rig(Some(0));
        let said = self.cluster.call(client.me, || manager.connect(0));
        (client, said)
    }

    fn connecting(&mut self) {
        let (_client, said) = self.connecting_client();
        let _ = writeln!(self.text, "connect: {said:?}");
        self.write_tape();
    }

    /// Makes a call, and writes down its result and what it has sent.
    fn tell<T>(
        &mut self,
        what: &str,
        client: &Client,
        call: impl FnOnce() -> Result<T, Error>,
    ) -> Option<T> {
        let said = self.cluster.call(client.me, call);
        self.cluster.run_ms(5);
        let words = match &said {
            Ok(_) => "OK".to_owned(),
            Err(error) => format!("{:?}: {error}", error.status()),
        };
        let _ = writeln!(self.text, "{what}: {words}");
        self.write_tape();
        said.ok()
    }

    /// What was sent since. What all servers were sent alike stands once.
    fn write_tape(&mut self) {
        let texts = self.tape().map(|it| shown(&it));
        if texts.iter().all(|it| *it == texts[0]) {
            self.write_sent("each", &texts[0]);
        } else {
            (0..).zip(&texts).for_each(|(server, it)| self.write_sent(&format!("{server}"), it));
        }
    }

    /// What was sent to each server since the last look.
    fn tape(&self) -> [Vec<u8>; 3] {
        let tape = self.cluster.with(|world| world.script.as_mut()?.tape.replace(Vec::new()));
        let mut by_server = [const { Vec::new() }; 3];
        for (server, bytes) in tape.into_iter().flatten() {
            by_server[server].extend(bytes);
        }
        by_server
    }

    fn write_sent(&mut self, server: &str, requests: &[String]) {
        for request in requests {
            let _ = writeln!(self.text, "    {server} < {request}");
        }
    }

    fn lock_kind(&self) -> LockKind {
        match self.kind {
            Kind::Exclusive => LockKind::Exclusive,
            Kind::Shared => LockKind::Shared,
            Kind::Permit => LockKind::Permit { of: 2 },
            Kind::Several => {
                LockKind::Several(["a", "b"].map(|it| Arc::from(it.as_bytes())).into())
            }
        }
    }

    fn acquire(&mut self, client: &Client, wait_ms: i64, lease: &mut Lease) -> Option<()> {
        self.acquire_as(self.lock_kind(), client, wait_ms, lease)
    }

    fn acquire_as(
        &mut self,
        kind: LockKind,
        client: &Client,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Option<()> {
        let what = format!("lock, waiting {wait_ms} ms");
        let taken = self.tell(&what, client, || {
            let (resource, ttl_ms) = (&b"a"[..], TTL);
            let (patience, keep) = (Patience::Ms(wait_ms), None);
            let options = AcquireOptions { resource, kind, ttl_ms, patience, keep };
            client.manager.run(Call::Acquire(options), lease)
        });
        let _ = writeln!(
            self.text,
            "    valid for {} ms, fencing token {}, absent: {:?}",
            lease.validity_ms(),
            lease.fencing_token(),
            lease.absent()
        );
        taken
    }

    fn extend(&mut self, client: &Client, lease: &mut Lease) {
        self.tell("extend", client, || client.manager.run(Call::Extend { ttl_ms: 2 * TTL }, lease));
        let _ = writeln!(self.text, "    valid for {} ms", lease.validity_ms());
    }

    fn confirm(&mut self, client: &Client, lease: &mut Lease) {
        self.tell("confirm", client, || client.manager.run(Call::Confirm { least_ms: 100 }, lease));
    }

    fn unlock(&mut self, client: &Client, lease: &mut Lease) {
        self.tell("unlock", client, || client.manager.run(Call::Unlock, lease));
    }

    fn look(&mut self, client: &Client) {
        let found = self.tell("inspect", client, || client.manager.inspect(b"a"));
        if let Some(found) = found {
            let _ = writeln!(self.text, "    locked for {:?} ms", found.left_ms);
        }
    }

    /// Waits for the news of a kept lock.
    fn attend(&mut self, client: &Client, wait_ms: i64) {
        let news = self.tell(&format!("{wait_ms} ms of events"), client, || {
            client.manager.next_event(wait_ms)
        });
        let words = match news.flatten() {
            None => "none".to_owned(),
            Some(Event::Lost { error, .. }) => format!("lost, {:?}: {error}", error.status()),
            Some(Event::Done { outcome, .. }) => {
                format!("done: {:?}", outcome.map_err(|it| it.to_string()))
            }
        };
        let _ = writeln!(self.text, "    event: {words}");
    }

    fn keep_alive(&mut self, client: &Client, lease: &mut Lease) {
        self.tell("keep alive", client, || {
            client.manager.own()?.has_event_loop.store(true, Ordering::Relaxed);
            client.manager.keep_alive(lease, Box::new(()))
        });
    }

    fn granted(&mut self) {
        let (client, other) = (self.client("client"), self.client("other client"));
        let mut lease = Lease::new();
        self.acquire(&client, 0, &mut lease);
        self.confirm(&client, &mut lease);
        self.extend(&client, &mut lease);
        self.look(&other);
        let ticket = self.tell("detach", &client, || client.manager.detach(&mut lease, 100_000));
        let mut adopted = Lease::new();
        if let Some(ticket) = ticket {
            self.tell("adopt", &other, || {
                other.manager.run(Call::Adopt { ticket: ticket.as_bytes() }, &mut adopted)
            });
        }
        self.unlock(&other, &mut adopted);
        self.acquire(&client, 0, &mut lease);
        self.keep_alive(&client, &mut lease);
        self.attend(&client, TTL);
        if self.kind == Kind::Exclusive {
            self.tell("downgrade", &client, || client.manager.run(Call::Downgrade, &mut lease));
        }
        self.unlock(&client, &mut lease);
    }

    /// Somebody else has the lock, and then lets it go.
    fn refused(&mut self) {
        let (holder, client) = (self.client("holder"), self.client("client"));
        let mut leases = [Lease::new(), Lease::new(), Lease::new()];
        let [first, second, lease] = &mut leases;
        match self.kind {
            Kind::Permit => {
                self.acquire(&holder, 0, first);
                self.acquire(&holder, 0, second);
            }
            _ => drop(self.acquire_as(LockKind::Exclusive, &holder, 0, first)),
        }
        self.acquire(&client, 0, lease);
        self.acquire(&client, 30, lease);
        self.look(&client);
        self.unlock(&holder, first);
        self.acquire(&client, 30, lease);
        self.unlock(&client, lease);
    }

    /// A majority of the servers does not answer.
    fn silent(&mut self) {
        let client = self.client("client");
        let mut lease = Lease::new();
        self.acquire(&client, 0, &mut lease);
        FAILING.iter().for_each(|it| self.cluster.freeze(*it));
        self.confirm(&client, &mut lease);
        self.extend(&client, &mut lease);
        self.look(&client);
        self.unlock(&client, &mut lease);
        self.acquire(&client, 0, &mut lease);
        FAILING.iter().for_each(|it| self.cluster.thaw(*it));
        self.cluster.run_ms(200);
        let _ = writeln!(self.text, "the servers answer again");
        self.write_tape();
        self.acquire(&client, 1_000, &mut lease);
        self.unlock(&client, &mut lease);
    }

    /// One server loses the lock, and then a majority does.
    fn lost(&mut self) {
        let client = self.client("client");
        let mut lease = Lease::new();
        self.acquire(&client, 0, &mut lease);
        self.forget(2..3);
        self.extend(&client, &mut lease);
        self.confirm(&client, &mut lease);
        self.keep_alive(&client, &mut lease);
        self.forget(0..2);
        self.confirm(&client, &mut lease);
        self.attend(&client, TTL);
        self.extend(&client, &mut lease);
        self.unlock(&client, &mut lease);
        self.acquire(&client, 0, &mut lease);
        self.forget(0..3);
        self.unlock(&client, &mut lease);
    }

    fn forget(&mut self, servers: std::ops::Range<usize>) {
        let _ = writeln!(self.text, "servers {servers:?} lose their keys");
        self.cluster.with(|world| {
            servers.for_each(|it| world.servers[it].store.keys.clear());
        });
    }
}

/// The requests in these bytes, one a line. A script is shown by its fingerprint, because its text stands in the
/// sources.
fn shown(bytes: &[u8]) -> Vec<String> {
    let (mut requests, mut at, mut words) = (Vec::new(), 0, Vec::new());
    while let Ok(Some(length)) = resp::parse(&bytes[at..], &mut words) {
        let words: Vec<&[u8]> = words.iter().map(|it| &bytes[at..][it.clone()]).collect();
        let word = |(place, word): (usize, &&[u8])| match (words[0], place) {
            (b"EVAL", 1) => {
                let text = String::from_utf8_lossy(word);
                format!("(script {})", &redis::Script::new(&text).get_hash()[..8])
            }
            (b"EVALSHA", 1) => format!("(script {})", word[..8].escape_ascii()),
            _ => word.escape_ascii().to_string(),
        };
        requests.push(words.iter().enumerate().map(word).collect::<Vec<_>>().join(" "));
        at += length;
    }
    if at < bytes.len() {
        requests.push(format!("and in part: {}", bytes[at..].escape_ascii()));
    }
    requests
}

fn tale(kind: Kind, world: World, course: Course) -> String {
    let mut tale = Tale::new(kind, world);
    match course {
        Course::Connecting => tale.connecting(),
        Course::Granted => tale.granted(),
        Course::Refused => tale.refused(),
        Course::Silent => tale.silent(),
        Course::Lost => tale.lost(),
    }
    with_short_tokens(&tale.text)
}

/// The same text, in which tokens are numbered in the order in which they appear.
fn with_short_tokens(text: &str) -> String {
    let is_of_token = |it: char| it.is_ascii_digit() || ('A'..='F').contains(&it);
    let (mut short, mut tokens) = (String::new(), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|it| !is_of_token(it)).unwrap_or(rest.len());
        let (word, next) = rest.split_at(length);
        if word.len() == TOKEN_HEX_LEN {
            let place = tokens.iter().position(|it| *it == word).unwrap_or_else(|| {
                tokens.push(word);
                tokens.len() - 1
            });
            let _ = write!(short, "token{place}");
        } else {
            short += word;
        }
        let other = next.find(is_of_token).unwrap_or(next.len());
        short += &next[..other];
        rest = &next[other..];
    }
    short
}

#[test]
fn golden_calls() {
    let mut now = String::new();
    for (kind, course) in KINDS.iter().flat_map(|it| COURSES.map(|course| (*it, course))) {
        let plain = tale(kind, World::Plain, course);
        for world in WORLDS {
            let text = tale(kind, world, course);
            let is_same = world != World::Plain && text == plain;
            let text = if is_same { "as on plain servers\n" } else { &text };
            let _ = writeln!(now, "== {kind:?} {course:?} {world:?}\n{text}");
        }
    }
    if env::var_os(RECORD).is_some() {
        return fs::write(RECORDED, now).expect("it can be written");
    }
    let recorded = fs::read_to_string(RECORDED).expect("the recorded calls");
    let differs =
        recorded.lines().zip(now.lines()).enumerate().find(|(_, (one, other))| one != other);
    if let Some((line, (one, other))) = differs {
        let line = line + 1;
        panic!(
            "tests/played/golden/calls.txt, line {line}:\n  recorded: {one}\n  now:      {other}"
        );
    }
    assert_eq!(recorded.lines().count(), now.lines().count());
}
