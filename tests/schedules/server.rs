//! A server as the world knows it: its clock, whether it runs, and whom it serves.

use std::mem;

use crate::clocks::{Clock, MS};
use crate::generate::PASSWORD;
use crate::network::{End, Way};
use crate::resp;
use crate::schedule::ServerPlan;
use crate::store::{Deed, Refusal, Store, tag};
use crate::world::World;

pub(crate) struct Server {
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    /// How many reasons there are for it not to run, and to stand still.
    pub(crate) down: usize,
    pub(crate) frozen: usize,
    pub(crate) refusals: Vec<Refusal>,
}

impl Server {
    pub(crate) fn new(plan: &ServerPlan) -> Self {
        let password = plan.password.then_some(PASSWORD);
        Self {
            clock: Clock::new(plan.ahead, plan.per_million),
            store: Store::new(plan.dialect, plan.early_ms, password),
            down: 0,
            frozen: 0,
            refusals: Vec::new(),
        }
    }

    /// Whether its system takes connections.
    pub(crate) fn is_up(&self) -> bool {
        self.down == 0
    }

    fn now_ms(&self, now: i64) -> i64 {
        self.clock.read(now).div_euclid(MS)
    }

    /// Until when it will have a value of this tag if nothing more happens; no time if it has it not.
    pub(crate) fn kept_until(&self, tag: u64) -> i64 {
        let end = self.store.expiry_of(tag);
        end.map_or(i64::MIN, |it| self.clock.will_show(it.saturating_mul(MS)))
    }

    /// How many keys it has.
    pub(crate) fn count_keys(&mut self, now: i64) -> usize {
        let now_ms = self.now_ms(now);
        self.store.expire(now_ms);
        self.store.len()
    }
}

impl World {
    /// The server does what it was sent.
    pub(crate) fn serve(&mut self, connection: usize) {
        let server = self.connections[connection].server;
        if self.servers[server].frozen > 0 || !self.servers[server].is_up() {
            return;
        }
        let mut received = mem::take(&mut self.connections[connection].received);
        let mut ranges = mem::take(&mut self.ranges);
        let mut out = Vec::new();
        let mut done = 0;
        loop {
            match resp::parse(&received[done..], &mut ranges) {
                Ok(Some(length)) => {
                    let request = &received[done..done + length];
                    let mut words = [&request[..0]; resp::WORDS_MAX];
                    for (word, range) in words.iter_mut().zip(&ranges) {
                        *word = &request[range.clone()];
                    }
                    let count = ranges.len().min(resp::WORDS_MAX);
                    self.execute(connection, &words[..count], &mut out);
                    done += length;
                }
                Ok(None) => break,
                Err(()) => {
                    self.records.violate("a server was sent what is no request");
                    break;
                }
            }
        }
        self.ranges = ranges;
        received.drain(..done);
        self.connections[connection].received = received;
        if !out.is_empty() {
            self.transmit(connection, Way::Back, &out);
        }
        if self.connections[connection].has_hung_up {
            self.connections[connection].is_served = false;
            self.transmit_end(connection, Way::Back, End::Closed);
        }
    }

    fn execute(&mut self, connection: usize, words: &[&[u8]], out: &mut Vec<u8>) {
        let (now, client) = (self.now, self.connections[connection].client);
        let at = self.connections[connection].server;
        let server = &mut self.servers[at];
        server.store.refusal = server.refusals.last().copied();
        let now_ms = server.now_ms(now);
        let session = &mut self.connections[connection].session;
        let start = out.len();
        let deed = server.store.execute(session, words, now_ms, out);
        self.records.note(now, client, at, &deed);
        self.connections[connection].has_worked |= deed != Deed::Nothing;
        let reply = &out[start..];
        self.say(|_| format!("    server {at} to client {client}: {}", words_of(words, reply)));
    }

    /// What has come while the server stood still is done now.
    pub(crate) fn thaw(&mut self, server: usize) {
        let count = self.connections.len();
        // Nobody knows in which order.
        let first = (self.now as usize).checked_rem(count).unwrap_or(0);
        for index in 0..count {
            let connection = (first + index) % count;
            let it = &self.connections[connection];
            if it.server == server && it.is_served {
                self.serve(connection);
            }
        }
    }

    /// The server ends. The system tells the clients, unless it has ended, too.
    pub(crate) fn kill(&mut self, server: usize, quietly: bool) {
        for connection in 0..self.connections.len() {
            let it = &mut self.connections[connection];
            if it.server == server && it.is_served {
                it.is_served = false;
                it.received.clear();
                if !quietly {
                    self.transmit_end(connection, Way::Back, End::Reset);
                }
            }
        }
    }
}

/// A request and its reply, for the story: with the beginnings of tokens, and the names of scripts.
fn words_of(words: &[&[u8]], reply: &[u8]) -> String {
    let word = |it: &&[u8]| match it.len() {
        40 => format!("<{:04x}>", tag(it) & 0xFFFF),
        ..30 => String::from_utf8_lossy(it).into_owned(),
        _ if it.starts_with(b"if") => "(release)".to_owned(),
        _ => "(extend)".to_owned(),
    };
    let words: Vec<String> = words.iter().map(word).collect();
    let reply = String::from_utf8_lossy(reply).replace("\r\n", " ");
    let reply = if reply.len() > 46 { "(a value or an error)" } else { reply.trim_end() };
    format!("{} → {reply}", words.join(" "))
}
