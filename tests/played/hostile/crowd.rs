//! Servers that do what is asked of them, except where a script says otherwise.

use std::collections::HashMap;

use crate::choices::Choices;
use crate::peer::Peer;
use crate::resp;
use crate::world::Connection;

/// Which servers there are: by path and by address.
pub(crate) const SERVERS: usize = 24;

/// The places of all of them. There is no server anywhere else.
pub(crate) fn place(server: usize) -> String {
    let number = server % 8;
    match server / 8 {
        0 => format!("/s{number}"),
        1 => format!("127.0.0.1:700{number}"),
        _ => format!("[::1]:700{number}"),
    }
}

/// The servers, their keys, and the script: one byte, and what that wants, for each connection and
/// each command. At its end they are good servers.
pub(crate) struct Crowd {
    script: Vec<u8>,
    at: usize,
    keys: HashMap<(usize, Vec<u8>), Key>,
}

struct Key {
    value: Vec<u8>,
    expires_at: i64,
}

impl Crowd {
    pub(crate) fn new(script: &[u8]) -> Self {
        Self { script: script.to_vec(), at: 0, keys: HashMap::new() }
    }

    /// Takes from the script.
    fn choose<T>(&mut self, choice: impl FnOnce(&mut Choices<'_>) -> T) -> T {
        let mut choices = Choices::new(&self.script[self.at..]);
        let chosen = choice(&mut choices);
        self.at = self.script.len() - choices.rest().len();
        chosen
    }

    fn answer(&mut self, connection: &mut Connection, words: &[Vec<u8>], now: i64) {
        let right = self.carry_out(connection.server, words, now);
        let (reply, delay_ms, ends) = self.choose(|it| Self::twist(right, it));
        connection.to_come.push((now + i64::from(delay_ms) * 1_000_000, reply));
        connection.ends |= ends;
    }

    /// What is said instead of the right reply, after how many milliseconds, and whether it is the
    /// last of all.
    fn twist(right: Vec<u8>, script: &mut Choices<'_>) -> (Vec<u8>, u8, bool) {
        let said = match script.byte() % 18 {
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
            (b"SET", _) => self.set((server, word(1)), word(2), &word(4), now),
            (b"PTTL", _) => match self.keys.get(&(server, word(1))) {
                Some(key) => integer((key.expires_at - now) / 1_000_000),
                None => integer(-2),
            },
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

    fn set(&mut self, name: (usize, Vec<u8>), value: Vec<u8>, ttl: &[u8], now: i64) -> Vec<u8> {
        if self.keys.contains_key(&name) {
            return b"$-1\r\n".to_vec();
        }
        self.keys.insert(name, Key { value, expires_at: end(ttl, now) });
        b"+OK\r\n".to_vec()
    }

    fn extend(&mut self, name: &(usize, Vec<u8>), value: &[u8], ttl: &[u8], now: i64) -> Vec<u8> {
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

    fn delete(&mut self, name: &(usize, Vec<u8>), value: &[u8]) -> Vec<u8> {
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
        while let Some((words, length)) = resp::command(&heard[at..]).filter(|_| at < heard.len()) {
            at += length;
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

fn integer(number: i64) -> Vec<u8> {
    format!(":{number}\r\n").into_bytes()
}

fn pair(first: i64, second: i64) -> Vec<u8> {
    [b"*2\r\n".to_vec(), integer(first), integer(second)].concat()
}

fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// When a key expires that lives for so long. What we send is a number.
fn end(ttl: &[u8], now: i64) -> i64 {
    let ttl_ms: i64 = String::from_utf8_lossy(ttl).parse().expect("a TTL");
    now.saturating_add(ttl_ms.saturating_mul(1_000_000))
}
