//! A server: its keys, and the clock on which they expire.

use std::collections::BTreeMap;
use std::fmt;

use redlock::command::{Answer, Request, Verb};
use redlock::token::Token;

use crate::link::Way;
use crate::world::{Event, MS, World};

/// A clock that may be ahead, and may run faster or slower than true time.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    pub(crate) ahead: i64,
    /// How far it goes while a million passes.
    pub(crate) per_million: i64,
}

impl Clock {
    pub(crate) fn read(self, time: i64) -> i64 {
        let shown = i128::from(time) * i128::from(self.per_million) / 1_000_000;
        narrow(shown + i128::from(self.ahead))
    }

    /// When it will show this.
    pub(crate) fn when(self, shown: i64) -> i64 {
        let shown = (i128::from(shown) - i128::from(self.ahead)) * 1_000_000;
        let rate = i128::from(self.per_million);
        narrow((shown + rate - 1).div_euclid(rate))
    }
}

fn narrow(time: i128) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

impl Default for Clock {
    fn default() -> Self {
        Self { ahead: 0, per_million: 1_000_000 }
    }
}

#[derive(Default)]
pub(crate) struct Server {
    pub(crate) clock: Clock,
    keys: BTreeMap<Vec<u8>, Key>,
    is_down: bool,
    is_frozen: bool,
    /// What came while it was frozen.
    held: Vec<Event>,
    /// It says that every lock is another's, for so long.
    pub(crate) lies_ms: Option<i64>,
}

struct Key {
    value: Vec<u8>,
    /// On the server's clock.
    expires_ms: i64,
}

/// Something that a server did.
pub(crate) struct Deed {
    pub(crate) at: i64,
    pub(crate) way: Way,
    pub(crate) verb: Verb,
    pub(crate) token: Token,
    ttl_ms: i64,
    answer: Answer,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, Way { client, server }) = (self.at as f64 / MS as f64, self.way);
        write!(f, "{ms:.6} ms: client {client}, server {server}: {:?} ", self.verb)?;
        write!(f, "{:.6} for {} ms: {:?}", self.token.as_str(), self.ttl_ms, self.answer)
    }
}

impl Server {
    pub(crate) fn is_down(&self) -> bool {
        self.is_down
    }

    /// Keeps the event for later if the server is frozen, else gives it back.
    pub(crate) fn hold(&mut self, event: Event) -> Option<Event> {
        if self.is_frozen {
            self.held.push(event);
            return None;
        }
        Some(event)
    }

    /// Does what the real ones do at the verbs of `command`.
    pub(crate) fn execute(&mut self, request: &Request, now: i64) -> Answer {
        if self.lies_ms.is_some() && request.verb() == Verb::Acquire {
            return Answer::Foreign { left_ms: self.lies_ms };
        }
        let now_ms = self.now_ms(now);
        // The clock is read once for many commands, so what counts may be 1 ms ago. With the
        // rounding a key may go up to 2 ms early.
        let expires_ms = now_ms - 1 + request.ttl_ms();
        let ours = request.token().as_bytes();
        self.keys.retain(|_, it| now_ms < it.expires_ms);
        let Some(key) = self.keys.get_mut(request.resource()) else {
            let sets_the_key = matches!(request.verb(), Verb::Acquire | Verb::Repair);
            if sets_the_key {
                let key = Key { value: ours.to_vec(), expires_ms };
                self.keys.insert(request.resource().to_vec(), key);
            }
            return if sets_the_key { Answer::Done } else { Answer::Absent };
        };
        let left_ms = key.expires_ms - now_ms;
        let is_ours = key.value == ours;
        match request.verb() {
            Verb::Inspect => return Answer::Found { value: key.value.clone(), left_ms },
            Verb::Release if !is_ours => return Answer::Absent,
            Verb::Acquire | Verb::Repair => return Answer::Foreign { left_ms: Some(left_ms) },
            _ if !is_ours => return Answer::Foreign { left_ms: Some(left_ms) },
            Verb::Extend => {
                key.expires_ms = key.expires_ms.max(expires_ms);
                return Answer::Extended { left_ms };
            }
            Verb::Release => drop(self.keys.remove(request.resource())),
        }
        Answer::Done
    }

    /// What stands under the name, if it is alive.
    pub(crate) fn value(&self, resource: &str, now: i64) -> Option<&[u8]> {
        let key = self.keys.get(resource.as_bytes())?;
        (self.now_ms(now) < key.expires_ms).then_some(&key.value)
    }

    /// When the server lets go of this value by itself; the beginning of time if it has it not.
    pub(crate) fn kept_until(&self, resource: &str, value: &str) -> i64 {
        match self.keys.get(resource.as_bytes()) {
            Some(key) if key.value == value.as_bytes() => self.clock.when(key.expires_ms * MS),
            _ => i64::MIN,
        }
    }

    /// Somebody writes the key by hand.
    pub(crate) fn put(&mut self, resource: &str, value: &str, ttl_ms: i64, now: i64) {
        let expires_ms = self.now_ms(now) + ttl_ms;
        self.keys.insert(resource.into(), Key { value: value.into(), expires_ms });
    }

    /// It loses a key, as servers should not.
    pub(crate) fn lose(&mut self, resource: &str) {
        self.keys.remove(resource.as_bytes());
    }

    /// It loses all keys, as servers should not.
    pub(crate) fn lose_all(&mut self) {
        self.keys.clear();
    }

    fn now_ms(&self, now: i64) -> i64 {
        self.clock.read(now).div_euclid(MS)
    }
}

impl World {
    pub(crate) fn note(&self, way: Way, request: &Request, answer: Answer) {
        let (verb, token, ttl_ms) = (request.verb(), *request.token(), request.ttl_ms());
        self.deeds.borrow_mut().push(Deed { at: self.now(), way, verb, token, ttl_ms, answer });
    }

    /// Stops a server: what is sent to it waits, and what it has sent is on its way.
    pub(crate) fn freeze(&self, server: usize) {
        self.server(server).is_frozen = true;
    }

    /// Has a frozen server go on, with what has come meanwhile first.
    pub(crate) fn thaw(&self, server: usize) {
        self.server(server).is_frozen = false;
        let held = std::mem::take(&mut self.server(server).held);
        held.into_iter().for_each(|event| event(self));
    }

    /// Ends a server. Its disk keeps the keys, and their time goes on.
    pub(crate) fn kill(&self, server: usize) {
        self.server(server).is_down = true;
        for client in 0..self.peers() {
            self.cut(Way { client, server }, true);
        }
    }

    /// Starts a server that was ended.
    pub(crate) fn start(&self, server: usize) {
        self.server(server).is_down = false;
    }

    /// The servers lose this key.
    pub(crate) fn lose(&self, servers: impl IntoIterator<Item = usize>, resource: &str) {
        servers.into_iter().for_each(|it| self.server(it).lose(resource));
    }
}
