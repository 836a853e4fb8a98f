//! Servers that execute requests correctly, except where a script says otherwise.

use std::collections::HashMap;

use crate::choices::Choices;
use crate::hashes::with_text;
use crate::peer::Peer;
use crate::protocol::command::shared;
use crate::protocol::command::waking::{
    ENROL, ENROL_PERMITS, LEAVE, LEAVE_PERMITS, LEAVE_SLOT, RELEASE_AND_WAKE, RELEASE_PERMITS,
    RELEASE_SLOT,
};
use crate::resp;
use crate::several;
use crate::world::Connection;

/// The number of servers: by path and by address.
pub(crate) const SERVERS: usize = 24;

/// The places of all servers. There is no server anywhere else.
pub(crate) fn place(server: usize) -> String {
    let number = server % 8;
    match server / 8 {
        0 => format!("/s{number}"),
        1 => format!("127.0.0.1:700{number}"),
        _ => format!("[::1]:700{number}"),
    }
}

/// The servers, their keys, and the script. The script has one byte, with its arguments, for each
/// connection and each command. At its end the servers behave correctly.
pub(crate) struct Crowd {
    script: Vec<u8>,
    at: usize,
    pub(crate) keys: HashMap<(usize, Vec<u8>), Key>,
    /// Waiting clients, by the name of the queue: at most one each.
    pub(crate) lines: HashMap<(usize, Vec<u8>), Vec<u8>>,
    /// The messages that each server will send by itself.
    pub(crate) news: HashMap<usize, Vec<u8>>,
}

pub(crate) struct Key {
    pub(crate) value: Vec<u8>,
    pub(crate) expires_at: i64,
}

impl Crowd {
    pub(crate) fn new(script: &[u8]) -> Self {
        let (keys, lines, news) = Default::default();
        Self { script: script.to_vec(), at: 0, keys, lines, news }
    }

    /// Takes from the script.
    fn choose<T>(&mut self, choice: impl FnOnce(&mut Choices<'_>) -> T) -> T {
        let mut choices = Choices::new(&self.script[self.at..]);
        let chosen = choice(&mut choices);
        self.at = self.script.len() - choices.rest().len();
        chosen
    }

    fn answer(&mut self, connection: &mut Connection, words: &[Vec<u8>], now: i64) {
        let right = match self.carry_out(connection.server, words, now) {
            nil if nil == NIL && connection.judge.is_resp3 => b"_\r\n".to_vec(),
            right => right,
        };
        let news = self.news.get(&connection.server).map_or(NEWS, |it| it).to_vec();
        let (reply, delay_ms, ends) = self.choose(|it| Self::twist(right, &news, it));
        connection.to_come.push((now + i64::from(delay_ms) * 1_000_000, reply));
        connection.ends |= ends;
    }

    /// The bytes that are sent instead of the right reply, their delay in milliseconds, and whether they
    /// are the last ones.
    fn twist(right: Vec<u8>, news: &[u8], script: &mut Choices<'_>) -> (Vec<u8>, u8, bool) {
        let byte = script.byte();
        let said = match byte % 18 {
            _ if byte >= 254 => [news, &right].concat(),
            _ if byte >= 252 => [&right, news].concat(),
            1 => b"$-1\r\n".to_vec(),
            2 => b"+OK\r\n".to_vec(),
            3 => b":1\r\n".to_vec(),
            4 => b":0\r\n".to_vec(),
            5 => b":2\r\n".to_vec(),
            6 => script.pick(&ERRORS).as_bytes().to_vec(),
            7 => script.bytes().to_vec(),
            8 => return (Vec::new(), 0, true),
            9 => Vec::new(),
            10 => return (right, script.byte(), false),
            11 => return (right[..right.len() / 2].to_vec(), 0, true),
            12 => right.repeat(2),
            13 => format!(":{}\r\n", script.eight()).into_bytes(),
            14 => bulk(script.bytes()),
            15 => b"$131072\r\n".to_vec(),
            16 => b"*1\r\n*1\r\n:1\r\n".to_vec(),
            17 => format!(":{}\r\n", script.pick(&[i64::MAX, i64::MIN, -1, -3, 0])).into_bytes(),
            _ => right,
        };
        (said, 0, false)
    }

    fn carry_out(&mut self, server: usize, words: &[Vec<u8>], now: i64) -> Vec<u8> {
        self.keys.retain(|_, key| key.expires_at > now);
        let word = |it: usize| words.get(it).cloned().unwrap_or_default();
        match (&*words[0], words.len()) {
            (b"DELEX", 1) if server % 3 == 1 => ARGUMENTS.to_vec(),
            (b"DELIFEQ", 1) if server % 3 == 2 => ARGUMENTS.to_vec(),
            (b"DELEX" | b"DELIFEQ" | b"MSETEX" | b"PEXPIRETIME", 1) => {
                b"-ERR unknown command\r\n".to_vec()
            }
            (b"PING", _) => b"+PONG\r\n".to_vec(),
            (b"INFO", _) if server % 3 == 1 => bulk(b"role:master\r\nmaxmemory:0\r\n"),
            (b"INFO" | b"CONFIG" | b"TIME", _) => b"-NOPERM no\r\n".to_vec(),
            (b"HELLO", _) if server.is_multiple_of(3) => b"-ERR unknown command\r\n".to_vec(),
            (b"HELLO", _) => b"%1\r\n+proto\r\n:3\r\n".to_vec(),
            (b"SUBSCRIBE", _) if server % 3 == 2 => b"-NOPERM no\r\n".to_vec(),
            (b"SUBSCRIBE", _) => push(&[b"subscribe", &word(1), b"1"]),
            (b"EXISTS", _) => integer(self.lines.contains_key(&(server, word(1))).into()),
            (b"SET", _) => self.set((server, word(1)), word(2), &word(4), now),
            (b"PTTL", _) => match self.keys.get(&(server, word(1))) {
                Some(key) => integer((key.expires_at - now) / 1_000_000),
                None => integer(-2),
            },
            (b"EVAL", _) if self.is_of_readers(&word(1)) => self.serve_readers(server, words, now),
            (b"EVAL", _) if several::is_one(&word(1)) => self.serve_several(server, words, now),
            (b"ZCARD", _) => integer(self.readers_of(server, &word(1)[..word(1).len() - 2])),
            (b"EVAL", 3) => bulk(b""),
            (b"EVAL", 8) if word(1) == ENROL.as_bytes() => self.enrol(server, words, now),
            (b"EVAL", 6) if word(1) == LEAVE.as_bytes() => {
                integer(self.lines.remove(&(server, word(4))).is_none().into())
            }
            (b"EVAL", 6) if word(1) == RELEASE_AND_WAKE.as_bytes() => {
                let deleted = self.delete(&(server, word(3)), &word(5));
                let is_waited_for = self.lines.contains_key(&(server, word(4)));
                if is_waited_for && deleted == integer(1) { integer(2) } else { deleted }
            }
            (b"EVAL", 7) if word(1) == RELEASE_SLOT.as_bytes() => {
                self.delete(&(server, word(3)), &word(6))
            }
            (b"EVAL", 7) if word(1) == LEAVE_SLOT.as_bytes() => integer(0),
            (b"EVAL", 7) if word(1) == LEAVE_PERMITS.as_bytes() => {
                integer(self.lines.remove(&(server, word(5))).is_none().into())
            }
            (b"EVAL", 8) if word(1) == RELEASE_PERMITS.as_bytes() => {
                let words = [&words[..5], &words[6..]].concat();
                let deleted = self.release_permits(server, &words);
                let is_waited_for = self.lines.contains_key(&(server, word(3)));
                if is_waited_for && deleted == integer(1) { integer(2) } else { deleted }
            }
            (b"EVAL", 9) if word(1) == ENROL_PERMITS.as_bytes() => {
                // It waits for both slots, as if it waited only for the second one.
                let words = [&words[..3], &words[4..]].concat();
                self.enrol(server, &words, now)
            }
            (b"EVAL", 9) => self.take_permit(server, words, now),
            (b"EVAL", 7) => self.release_permits(server, words),
            (b"EVAL", 5) => self.delete(&(server, word(3)), &word(4)),
            (b"EVAL", 8) => match self.keys.get(&(server, word(3))) {
                Some(key) if key.value == word(5) => integer(1),
                _ => integer(0),
            },
            (b"EVAL", 10) => match &*self.set((server, word(3)), word(5), &word(6), now) {
                b"+OK\r\n" => pair(1, 1 + now / 1_000 + server as i64 % 2),
                _ => pair(0, 1),
            },
            (b"EVAL", _) => self.extend(&(server, word(3)), &word(4), &word(5), now),
            (b"DELEX", _) => self.delete(&(server, word(1)), &word(3)),
            (b"DELIFEQ", _) => self.delete(&(server, word(1)), &word(2)),
            (b"GETRANGE", _) => match self.keys.get(&(server, word(1))) {
                Some(key) => bulk(&key.value),
                None => bulk(b""),
            },
            _ => b"+OK\r\n".to_vec(),
        }
    }

    fn is_of_readers(&self, script: &[u8]) -> bool {
        [
            shared::acquire::SCRIPT,
            shared::extend::SCRIPT,
            shared::release::SCRIPT,
            shared::release::WAKING_SCRIPT,
            shared::inspect::SCRIPT,
            shared::enrol::SCRIPT,
            shared::intend::SCRIPT,
        ]
        .iter()
        .any(|it| it.as_bytes() == script)
    }

    /// How many readers have the resource. Here each reader is a key of its own, named by the resource and
    /// its token.
    pub(crate) fn readers_of(&self, server: usize, resource: &[u8]) -> i64 {
        let beginning = [resource, b":r:"].concat();
        let is_one = |it: &&(usize, Vec<u8>)| it.0 == server && it.1.starts_with(&beginning);
        self.keys.keys().filter(is_one).count() as i64
    }

    /// Executes the scripts about readers. The holder is a writer, with its remaining time, or a number of
    /// readers.
    fn serve_readers(&mut self, server: usize, words: &[Vec<u8>], now: i64) -> Vec<u8> {
        let is = |script: &str| words[1] == script.as_bytes();
        let (resource, count) = (&words[3], self.readers_of(server, &words[3]));
        let left_ms = |key: &Key| (key.expires_at - now) / 1_000_000;
        let writer = self.keys.get(&(server, resource.clone())).map(left_ms);
        let own = |token: &[u8]| (server, [&resource[..], b":r:", token].concat());
        let is_waking = is(shared::release::WAKING_SCRIPT);
        if is(shared::intend::SCRIPT) {
            return integer((count > 0).into());
        }
        if is(shared::enrol::SCRIPT) {
            return match writer {
                Some(_) => self.enrol(server, &[&words[..5], &words[6..]].concat(), now),
                None => three(1, 0, 0),
            };
        }
        if is(shared::acquire::SCRIPT) {
            if let Some(left_ms) = writer {
                return pair(0, left_ms);
            }
            let (value, expires_at) = (words[6].clone(), end(&words[7], now));
            self.keys.insert(own(&words[6]), Key { value, expires_at });
            return integer(1);
        }
        if is_waking || is(shared::release::SCRIPT) {
            let token = &words[if is_waking { 7 } else { 5 }];
            let was_writer = self.delete(&(server, resource.clone()), token) == integer(1);
            return if was_writer { integer(1) } else { self.delete(&own(token), token) };
        }
        let token = &words[5];
        if is(shared::extend::SCRIPT) {
            let name = (server, resource.clone());
            if self.keys.get(&name).is_some_and(|it| it.value == *token)
                && let Some(key) = self.keys.remove(&name)
            {
                self.keys.insert(own(token), key);
            }
            return match writer.filter(|_| self.keys.contains_key(&name)) {
                Some(left_ms) => pair(2, left_ms),
                None => self.extend(&own(token), token, &words[6], now),
            };
        }
        match (writer, self.keys.get(&own(token)).map(left_ms)) {
            (Some(left_ms), _) => {
                let value = self.keys[&(server, resource.clone())].value.clone();
                [b"*2\r\n".to_vec(), bulk(&value), integer(left_ms)].concat()
            }
            (None, Some(left_ms)) => pair(1, left_ms),
            (None, None) if count == 0 => [b"*2\r\n".to_vec(), bulk(b""), integer(-2)].concat(),
            (None, None) => three(0, 1, count),
        }
    }

    pub(crate) fn set(
        &mut self,
        name: (usize, Vec<u8>),
        value: Vec<u8>,
        ttl: &[u8],
        now: i64,
    ) -> Vec<u8> {
        if self.keys.contains_key(&name) || self.readers_of(name.0, &name.1) > 0 {
            return NIL.to_vec();
        }
        self.keys.insert(name, Key { value, expires_at: end(ttl, now) });
        b"+OK\r\n".to_vec()
    }

    pub(crate) fn extend(
        &mut self,
        name: &(usize, Vec<u8>),
        value: &[u8],
        ttl: &[u8],
        now: i64,
    ) -> Vec<u8> {
        match self.keys.get_mut(name) {
            Some(key) if key.value == value => {
                let left_ms = (key.expires_at - now) / 1_000_000;
                key.expires_at = key.expires_at.max(end(ttl, now));
                pair(1, left_ms)
            }
            Some(key) => pair(2, (key.expires_at - now) / 1_000_000),
            None => pair(0, -2),
        }
    }

    /// A client joins the wait queue, unless nobody holds the lock.
    fn enrol(&mut self, server: usize, words: &[Vec<u8>], now: i64) -> Vec<u8> {
        let Some(key) = self.keys.get(&(server, words[3].clone())) else { return three(1, 0, 0) };
        let left_ms = (key.expires_at - now) / 1_000_000;
        self.lines.insert((server, words[4].clone()), words[5].clone());
        self.news.insert(server, push(&[b"message", &words[5], &words[3]]));
        three(0, left_ms, 0)
    }

    /// Takes one of two slots.
    fn take_permit(&mut self, server: usize, words: &[Vec<u8>], now: i64) -> Vec<u8> {
        let slots = [3, 4].map(|it| (server, words[it].clone()));
        let number = |it: usize| String::from_utf8_lossy(&words[it]).parse().expect("a number");
        let (first, count): (usize, usize) = (number(7), number(8));
        let is_ours = |it: &Key| it.value == words[5];
        let own = slots.iter().position(|it| self.keys.get(it).is_some_and(is_ours));
        let mut wanted = (first - 1..first - 1 + count).map(|it| it % 2);
        let found = wanted.find(|&it| Some(it) == own || !self.keys.contains_key(&slots[it]));
        if let Some(slot) = found.filter(|&it| Some(it) != own) {
            own.map(|own| self.keys.remove(&slots[own]));
            self.set(slots[slot].clone(), words[5].clone(), &words[6], now);
        }
        let is_taken = |it: &(usize, Vec<u8>)| if self.keys.contains_key(it) { b'1' } else { b'0' };
        let map = bulk(&[is_taken(&slots[0]), is_taken(&slots[1])]);
        let left = slots.iter().filter_map(|it| self.keys.get(it)).map(|it| it.expires_at - now);
        let left_ms = left.min().map_or(-1, |it| it / 1_000_000);
        let got = found.or(own).map_or(0, |it| it as i64 + 1);
        let left_ms = if got > 0 { -1 } else { left_ms };
        [b"*3\r\n".to_vec(), integer(got), map, integer(left_ms)].concat()
    }

    fn release_permits(&mut self, server: usize, words: &[Vec<u8>]) -> Vec<u8> {
        let stays = format!("{}", String::from_utf8_lossy(&words[6]));
        let others = [(3, "1"), (4, "2")].into_iter().filter(|it| it.1 != stays);
        let others: Vec<_> = others.map(|it| (server, words[it.0].clone())).collect();
        let deleted = others.iter().map(|it| self.delete(it, &words[5]));
        integer(deleted.filter(|it| *it == integer(1)).count() as i64)
    }

    pub(crate) fn delete(&mut self, name: &(usize, Vec<u8>), value: &[u8]) -> Vec<u8> {
        if self.keys.get(name).is_some_and(|it| it.value == value) {
            self.keys.remove(name);
            return integer(1);
        }
        integer(0)
    }
}

impl Peer for Crowd {
    fn accept(&mut self, asked: &str) -> Option<(usize, u32)> {
        let server = (0..SERVERS).find(|&it| place(it) == asked)?;
        match self.choose(|it| it.byte()) & 15 {
            13 => None,
            14 => Some((server, 5)),
            15 => Some((server, 10_000)),
            _ => Some((server, 0)),
        }
    }

    fn serve(&mut self, connection: &mut Connection, now: i64) {
        let heard = std::mem::take(&mut connection.heard);
        let mut at = 0;
        while let Some((mut words, length)) =
            resp::command(&heard[at..]).filter(|_| at < heard.len())
        {
            at += length;
            with_text(&mut words);
            if !connection.ends {
                self.answer(connection, &words, now);
            }
        }
        connection.heard = heard[at..].to_vec();
    }

    fn locked(&self, now: i64) -> Vec<(usize, Vec<u8>)> {
        let keys = self.keys.iter().filter(|(_, key)| key.expires_at > now);
        keys.map(|((server, _), key)| (*server, key.value.clone())).collect()
    }
}

const NIL: &[u8] = b"$-1\r\n";

/// A message that a server sends by itself to a client that waits for nothing.
const NEWS: &[u8] = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nr\r\n";

const ARGUMENTS: &[u8] = b"-ERR wrong number of arguments\r\n";

const ERRORS: [&str; 8] = [
    "-ERR unknown command\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-NOPERM this user has no permissions\r\n",
    "-WRONGTYPE Operation\r\n",
    "-ERR max number of clients reached\r\n",
    "-NOAUTH Authentication required.\r\n",
    "-s3cr3t s3cr3t\r\n",
    "-\r\n",
];

pub(crate) fn integer(number: i64) -> Vec<u8> {
    format!(":{number}\r\n").into_bytes()
}

pub(crate) fn pair(first: i64, second: i64) -> Vec<u8> {
    [b"*2\r\n".to_vec(), integer(first), integer(second)].concat()
}

pub(crate) fn three(first: i64, second: i64, third: i64) -> Vec<u8> {
    [b"*3\r\n".to_vec(), integer(first), integer(second), integer(third)].concat()
}

pub(crate) fn push(parts: &[&[u8]]) -> Vec<u8> {
    let head = format!(">{}\r\n", parts.len()).into_bytes();
    [head, parts.iter().flat_map(|it| bulk(it)).collect()].concat()
}

pub(crate) fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// When a key with this TTL expires. The client sends a valid number.
pub(crate) fn end(ttl: &[u8], now: i64) -> i64 {
    let ttl_ms: i64 = String::from_utf8_lossy(ttl).parse().expect("a TTL");
    now.saturating_add(ttl_ms.saturating_mul(1_000_000))
}
