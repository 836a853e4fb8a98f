//! What servers do with the scripts about fencing tokens. `differential` compares this with a real server.

use crate::command::{acquire_fenced, raise_fence, several};
use crate::schedules::plants::Plant;
use crate::world::commands::{Command, NOT_IN_SCRIPTS, number};
use crate::world::store::{Counter, Deed, Refusal};

/// The greatest number that is drawn: a double holds it exactly.
const LAST_MAX: i64 = 9_007_199_254_740_991;

impl<'a> Command<'a, '_> {
    /// Scripts that name a resource and its counter. Returns `None` for other scripts.
    pub(crate) fn eval_fenced(&mut self) -> Option<Deed<'a>> {
        let [_, script, b"2", key, name, rest @ ..] = self.words else { return None };
        if *script == acquire_fenced::SCRIPT.as_bytes() {
            let &[value, ttl_ms, proposed, spread, counter_ttl_ms] = rest else { return None };
            let (lock, bounds) = ((value, number(ttl_ms)?), (number(proposed)?, number(spread)?));
            return Some(self.acquire_fenced((key, name), lock, bounds, number(counter_ttl_ms)?));
        }
        if *script == raise_fence::SCRIPT.as_bytes() {
            let &[value, token, counter_ttl_ms] = rest else { return None };
            let (token, counter_ttl_ms) = (number(token)?, number(counter_ttl_ms)?);
            return Some(self.raise_fence((key, name), value, token, counter_ttl_ms));
        }
        None
    }

    fn acquire_fenced(
        &mut self,
        (key, name): (&'a [u8], &[u8]),
        (value, ttl_ms): (&'a [u8], i64),
        (proposed, spread): (i64, i64),
        counter_ttl_ms: i64,
    ) -> Deed<'a> {
        let last = self.last(name);
        if last >= LAST_MAX {
            self.pair(2, 0);
            return Deed::Nothing;
        }
        // The server refuses to set before it checks whether the key exists.
        if let Some(why) = self.refusal_to_set() {
            return self.script_error(&why);
        }
        let found = self.store.find(self.session.database, key);
        let is_free = found.is_none() && self.store.lies_ms.is_none();
        if !is_free && !self.has(Plant::GrantsAll) {
            if self.store.refusal == Some(Refusal::NoPermLook) {
                return self.script_error(NOT_IN_SCRIPTS);
            }
            let left_ms = self.store.lies_ms.or_else(|| found.map(|it| self.left_ms(it)));
            let is_shared = found.is_some_and(|it| self.store.keys[it].is_reader);
            self.pair(if is_shared { 3 } else { 0 }, left_ms.unwrap_or(-2));
            return Deed::Acquire { key, value, ttl_ms: Some(ttl_ms), done: false };
        }
        if is_free {
            self.put(key, value, Some(ttl_ms));
        }
        let now_us = self.now_ms * 1_000;
        let drawn = proposed.min(now_us + spread).max(now_us - spread).max(last + 1);
        self.count(name, drawn, counter_ttl_ms);
        self.pair(1, drawn);
        Deed::Acquire { key, value, ttl_ms: Some(ttl_ms), done: is_free }
    }

    fn raise_fence(
        &mut self,
        (key, name): (&'a [u8], &[u8]),
        value: &[u8],
        number: i64,
        counter_ttl_ms: i64,
    ) -> Deed<'a> {
        let found = self.store.find(self.session.database, key);
        if found.is_none_or(|it| *self.store.keys[it].value != *value) {
            self.integer(0);
            return Deed::Nothing;
        }
        if self.last(name) < number {
            if let Some(why) = self.refusal_to_set() {
                return self.script_error(&why);
            }
            self.count(name, number, counter_ttl_ms);
        }
        self.integer(1);
        Deed::Nothing
    }

    pub(super) fn refusal_to_set(&self) -> Option<String> {
        match self.store.refusal {
            Some(Refusal::NoPerm) => Some(NOT_IN_SCRIPTS.to_owned()),
            _ => self.write_refusal("set", true),
        }
    }

    /// The value of the counter; 0 without one.
    fn last(&self, name: &[u8]) -> i64 {
        let database = self.session.database;
        let is_it = |it: &&Counter| it.database == database && *it.name == *name;
        let counter = self.store.counters.iter().find(is_it);
        counter.filter(|it| self.now_ms < it.expires_ms).map_or(0, |it| it.last)
    }

    fn count(&mut self, name: &[u8], last: i64, ttl_ms: i64) {
        if self.has(Plant::ForgetsNumbers) {
            return;
        }
        let database = self.session.database;
        let ahead_us = (last - self.now_ms * 1_000).max(0);
        let expires_ms = self.now_ms + ttl_ms + (ahead_us + 999) / 1_000;
        self.store.counters.retain(|it| it.database != database || *it.name != *name);
        self.store.counters.push(Counter { database, name: Box::from(name), last, expires_ms });
    }
}

/// The same for two resources at once.
impl<'a> Command<'a, '_> {
    pub(crate) fn eval_fenced_several(&mut self) -> Option<Deed<'a>> {
        let [_, script, b"4", one, other, counter, last, rest @ ..] = self.words else {
            return None;
        };
        let (keys, counters) = ([*one, *other], [*counter, *last]);
        if *script == several::fenced::SCRIPT.as_bytes() {
            let &[value, ttl_ms, proposed, spread, counter_ttl_ms] = rest else { return None };
            let (lock, bounds) = ((value, number(ttl_ms)?), (number(proposed)?, number(spread)?));
            let counter_ttl_ms = number(counter_ttl_ms)?;
            return Some(self.acquire_all_fenced(keys, counters, lock, (bounds, counter_ttl_ms)));
        }
        if *script == several::raise::SCRIPT.as_bytes() {
            let &[value, token, counter_ttl_ms] = rest else { return None };
            let (token, counter_ttl_ms) = (number(token)?, number(counter_ttl_ms)?);
            return Some(self.raise_all(keys, counters, value, (token, counter_ttl_ms)));
        }
        None
    }

    fn acquire_all_fenced(
        &mut self,
        keys: [&'a [u8]; 2],
        counters: [&[u8]; 2],
        (value, ttl_ms): (&'a [u8], i64),
        ((proposed, spread), counter_ttl_ms): ((i64, i64), i64),
    ) -> Deed<'a> {
        let last = counters.map(|name| self.last(name)).into_iter().max().unwrap_or(0);
        if last >= LAST_MAX {
            self.pair(-1, 0);
            return Deed::Nothing;
        }
        let before = self.out.len();
        let deed = self.acquire_several(keys, value, ttl_ms);
        if !self.out[before..].starts_with(b"*2\r\n:0\r\n:0\r\n") {
            return deed;
        }
        let now_us = self.now_ms * 1_000;
        let drawn = proposed.min(now_us + spread).max(now_us - spread).max(last + 1);
        counters.iter().for_each(|name| self.count(name, drawn, counter_ttl_ms));
        self.out.truncate(before);
        self.pair(0, drawn);
        deed
    }

    fn raise_all(
        &mut self,
        keys: [&[u8]; 2],
        counters: [&[u8]; 2],
        value: &[u8],
        (token, counter_ttl_ms): (i64, i64),
    ) -> Deed<'a> {
        let has = |key: &&[u8]| {
            let found = self.store.find(self.session.database, key);
            found.is_some_and(|it| *self.store.keys[it].value == *value)
        };
        if !keys.iter().all(has) {
            self.integer(0);
            return Deed::Nothing;
        }
        for name in counters {
            if self.last(name) < token {
                if let Some(why) = self.refusal_to_set() {
                    return self.script_error(&why);
                }
                self.count(name, token, counter_ttl_ms);
            }
        }
        self.integer(1);
        Deed::Nothing
    }
}
