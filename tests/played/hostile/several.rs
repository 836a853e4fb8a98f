//! What the servers of [`Crowd`] do with locks of several resources.

use std::collections::BTreeSet;

use crate::crowd::{Crowd, Key, end, integer, pair, push, three};
use crate::protocol::command::raise_fence;
use crate::protocol::command::several::{acquire, extend, fence, release, repair, waking};

/// Whether a script is about several resources.
pub(crate) fn is_one(script: &[u8]) -> bool {
    [
        acquire::SCRIPT,
        acquire::SCRIPT_MSETEX,
        repair::SCRIPT,
        fence::SCRIPT,
        raise_fence::SCRIPT,
        extend::SCRIPT,
        release::SCRIPT,
        waking::ENROL_SCRIPT,
        waking::RELEASE_SCRIPT,
    ]
    .iter()
    .any(|it| it.as_bytes() == script)
}

impl Crowd {
    pub(crate) fn serve_several(&mut self, server: usize, words: &[Vec<u8>], now: i64) -> Vec<u8> {
        let is = |script: &str| words[1] == script.as_bytes();
        let (keys, arguments) = words[3..].split_at(number(&words[2]));
        if is(waking::ENROL_SCRIPT) {
            return self.enrol_for_one(server, keys, arguments, now);
        }
        if is(waking::RELEASE_SCRIPT) {
            let (names, lines) = keys.split_at(number(&arguments[1]));
            let ours = self.delete_each(server, names, &arguments[0]);
            let mut places = arguments[2..].iter().map(|it| number(it) - 1);
            let is_waited_for = |line: &Vec<u8>| self.lines.contains_key(&(server, line.clone()));
            let told = lines.iter().any(|line| {
                places.next().is_some_and(|it| ours.contains(&it)) && is_waited_for(line)
            });
            return pair(ours.len() as i64, 1 + i64::from(told));
        }
        let is_fenced = is(fence::SCRIPT) || is(raise_fence::SCRIPT);
        let names = if is_fenced { &keys[..keys.len() - 1] } else { keys };
        let token = &arguments[0];
        if is(release::SCRIPT) {
            return integer(self.delete_each(server, names, token).len() as i64);
        }
        if is(extend::SCRIPT) {
            return self.extend_all(server, names, token, arguments.get(1), now);
        }
        let others = names.iter().position(|it| match self.keys.get(&(server, it.clone())) {
            Some(key) => key.value != *token,
            None => self.readers_of(server, it) > 0,
        });
        if is(raise_fence::SCRIPT) {
            let is_there = |it: &Vec<u8>| self.keys.contains_key(&(server, it.clone()));
            return integer((others.is_none() && names.iter().all(is_there)).into());
        }
        if is(repair::SCRIPT) {
            if let Some(place) = others {
                let left_ms = self.left_ms(server, &names[place], now).unwrap_or(-2);
                return pair(place as i64 + 1, left_ms);
            }
        } else if let Some((place, left_ms)) = self.in_the_way(server, names, now) {
            return pair(place, left_ms);
        }
        for name in names {
            let expires_at = end(&arguments[1], now);
            let key = self.keys.entry((server, name.clone()));
            let key = key.or_insert_with(|| Key { value: token.clone(), expires_at });
            key.expires_at = key.expires_at.max(expires_at);
        }
        match is_fenced {
            true => pair(-5, 1 + now / 1_000 + server as i64 % 2),
            false => pair(0, 0),
        }
    }

    /// For how long the holder, a writer or readers, still holds the lock.
    fn left_ms(&self, server: usize, name: &[u8], now: i64) -> Option<i64> {
        let readers = [name, b":r:"].concat();
        let is_it =
            |it: &(usize, Vec<u8>)| it.0 == server && (it.1 == name || it.1.starts_with(&readers));
        let ends = self.keys.iter().filter(|it| is_it(it.0)).map(|it| it.1.expires_at);
        ends.max().map(|it| (it - now) / 1_000_000)
    }

    /// The resource that is held for the longest time: its number, from 1, and that time.
    fn in_the_way(&self, server: usize, names: &[Vec<u8>], now: i64) -> Option<(i64, i64)> {
        let mut found: Option<(i64, i64)> = None;
        for (name, nth) in names.iter().zip(1..) {
            if let Some(left_ms) = self.left_ms(server, name, now)
                && found.is_none_or(|it| left_ms > it.1 + 1)
            {
                found = Some((nth, left_ms));
            }
        }
        found
    }

    /// Which of them had the token: their places, from 0.
    fn delete_each(&mut self, server: usize, names: &[Vec<u8>], token: &[u8]) -> BTreeSet<usize> {
        let mut delete = |name: &Vec<u8>| self.delete(&(server, name.clone()), token) == integer(1);
        let places = names.iter().enumerate().filter(|it| delete(it.1));
        places.map(|it| it.0).collect()
    }

    fn extend_all(
        &mut self,
        server: usize,
        names: &[Vec<u8>],
        token: &[u8],
        ttl: Option<&Vec<u8>>,
        now: i64,
    ) -> Vec<u8> {
        let mut gone = None;
        for (name, nth) in names.iter().zip(1..) {
            match self.keys.get(&(server, name.clone())) {
                Some(key) if key.value == token => {}
                Some(key) => return three(2, (key.expires_at - now) / 1_000_000, nth),
                None => {
                    gone.get_or_insert(nth);
                }
            }
        }
        if let Some(nth) = gone {
            return three(0, -2, nth);
        }
        let mut least = i64::MAX;
        for name in names {
            let key = self.keys.get_mut(&(server, name.clone())).expect("it is there");
            least = least.min((key.expires_at - now) / 1_000_000);
            if let Some(ttl) = ttl {
                key.expires_at = key.expires_at.max(end(ttl, now));
            }
        }
        three(1, least, 0)
    }

    /// A waiting client is in the wait queue of the resource that is in the way, and in no other.
    fn enrol_for_one(
        &mut self,
        server: usize,
        keys: &[Vec<u8>],
        arguments: &[Vec<u8>],
        now: i64,
    ) -> Vec<u8> {
        let (names, lines) = keys.split_at(number(&arguments[3]));
        let Some((at, left_ms)) = self.in_the_way(server, names, now) else {
            return four(1, 0, 0, 0);
        };
        let (place, channel) = (at as usize - 1, &arguments[0]);
        let is_shared = self.readers_of(server, &names[place]) > 0;
        let mut rank = -1;
        for (line, of) in lines.iter().zip(&arguments[4..]) {
            if number(of) - 1 == place {
                self.lines.insert((server, line.clone()), channel.clone());
                self.news.insert(server, push(&[b"message", channel, &names[place]]));
                rank = 0;
            } else {
                self.lines.remove(&(server, line.clone()));
            }
        }
        four(if is_shared { 2 } else { 0 }, left_ms, rank, at)
    }
}

fn number(word: &[u8]) -> usize {
    String::from_utf8_lossy(word).parse().expect("a number")
}

fn four(first: i64, second: i64, third: i64, fourth: i64) -> Vec<u8> {
    let numbers = [first, second, third, fourth].map(integer);
    [b"*4\r\n".to_vec(), numbers.concat()].concat()
}
