//! What servers do with the scripts about several resources at once. `differential` compares this with a
//! real server.

use crate::protocol::command::release_after;
use crate::protocol::command::several::{acquire, extend, release, repair};
use crate::schedules::plants::Plant;
use crate::world::commands::{Command, NOT_IN_SCRIPTS, number};
use crate::world::store::{Deed, Refusal, tag};

/// The key of a deed that is about all resources of a schedule.
pub(crate) const ALL: &[u8] = b"(all)";

impl<'a> Command<'a, '_> {
    /// Scripts about two resources. Returns `None` for other scripts.
    pub(crate) fn eval_several(&mut self) -> Option<Deed<'a>> {
        let [_, script, b"2", one, other, value, rest @ ..] = self.words else { return None };
        let (keys, script) = ([*one, *other], *script);
        let is = |text: &str| script == text.as_bytes();
        let ttl_ms = rest.first().and_then(|it| number(it));
        if is(acquire::SCRIPT) || is(acquire::SCRIPT_MSETEX) {
            return Some(self.acquire_several(keys, value, ttl_ms?));
        }
        if is(repair::SCRIPT) {
            return Some(self.repair_several(keys, value, ttl_ms?));
        }
        if is(extend::SCRIPT) {
            return Some(self.extend_several(keys, value, ttl_ms));
        }
        if is(release_after::SCRIPT) {
            return Some(self.shorten(&keys, value));
        }
        is(release::SCRIPT).then(|| self.release_several(keys, value))
    }

    pub(super) fn acquire_several(
        &mut self,
        keys: [&[u8]; 2],
        value: &'a [u8],
        ttl_ms: i64,
    ) -> Deed<'a> {
        let refused = Deed::Acquire { key: ALL, value, ttl_ms: Some(ttl_ms), done: false };
        if let Some(left_ms) = self.store.lies_ms {
            self.pair(1, left_ms);
            return refused;
        }
        let found = keys.map(|key| self.store.find(self.session.database, key));
        if found == [None, None] {
            if let Some(why) = self.refusal_to_set() {
                return self.script_error(&why);
            }
            self.set_several(&keys, value, ttl_ms);
            self.pair(0, 0);
            return Deed::Acquire { key: ALL, value, ttl_ms: Some(ttl_ms), done: true };
        }
        if self.has(Plant::GrantsSome) || self.has(Plant::GrantsAll) {
            let free = keys.iter().zip(found).filter(|it| it.1.is_none()).map(|it| *it.0);
            let free: Vec<&[u8]> = free.filter(|_| self.has(Plant::GrantsSome)).collect();
            self.set_several(&free, value, ttl_ms);
            self.pair(0, 0);
            return refused;
        }
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self.script_error(NOT_IN_SCRIPTS);
        }
        let lefts = found.map(|it| it.map(|it| self.left_ms(it)));
        // If both end within a millisecond, the first one counts.
        let longest = |left: Option<i64>| match left {
            None => -2,
            Some(left) if left < 0 => i64::MAX,
            Some(left) => left,
        };
        let place = usize::from(longest(lefts[1]) > longest(lefts[0]).saturating_add(1));
        self.pair(place as i64 + 1, lefts[place].unwrap_or(-2));
        refused
    }

    fn repair_several(&mut self, keys: [&[u8]; 2], value: &'a [u8], ttl_ms: i64) -> Deed<'a> {
        let deed = |done| Deed::Acquire { key: ALL, value, ttl_ms: Some(ttl_ms), done };
        if let Some((place, found)) = self.foreign(keys, value) {
            if self.store.refusal == Some(Refusal::NoPermLook) {
                return self.script_error(NOT_IN_SCRIPTS);
            }
            let left_ms = self.left_ms(found);
            self.pair(place, left_ms);
            return deed(false);
        }
        for key in keys {
            match self.store.find(self.session.database, key) {
                None => {
                    if let Some(why) = self.refusal_to_set() {
                        return self.script_error(&why);
                    }
                    self.set_several(&[key], value, ttl_ms);
                }
                Some(found) => {
                    if let Some(error) = self.prolong(found, ttl_ms) {
                        return error;
                    }
                }
            }
        }
        self.pair(0, 0);
        deed(true)
    }

    /// Without a TTL it only looks.
    fn extend_several(
        &mut self,
        keys: [&[u8]; 2],
        value: &'a [u8],
        ttl_ms: Option<i64>,
    ) -> Deed<'a> {
        let deed = |done, absent| match ttl_ms {
            Some(_) => Deed::Extend { key: ALL, value, done, absent, repaired: false },
            None if done => Deed::Inspect { key: ALL, tag: Some(tag(value)) },
            None if absent => Deed::Inspect { key: ALL, tag: None },
            None => Deed::Nothing,
        };
        let may_look = self.store.refusal != Some(Refusal::NoPermLook);
        let lies = self.has(Plant::ExtendsAll) && ttl_ms.is_some();
        if let Some((place, found)) = self.foreign(keys, value) {
            if !may_look {
                return self.script_error(NOT_IN_SCRIPTS);
            }
            let left_ms = self.left_ms(found);
            match lies {
                true => self.three(1, left_ms, 0),
                false => self.three(2, left_ms, place),
            }
            return deed(false, false);
        }
        let found = keys.map(|key| self.store.find(self.session.database, key));
        if let Some(place) = found.iter().position(Option::is_none) {
            match lies {
                true => self.three(1, ttl_ms.unwrap_or(0), 0),
                false => self.three(0, -2, place as i64 + 1),
            }
            return deed(false, true);
        }
        if !may_look {
            return self.script_error(NOT_IN_SCRIPTS);
        }
        let lefts = found.map(|it| self.left_ms(it.unwrap_or_default()));
        for found in found.into_iter().flatten() {
            if let Some(error) = ttl_ms.and_then(|ttl_ms| self.prolong(found, ttl_ms)) {
                return error;
            }
        }
        let least = lefts.into_iter().filter(|it| *it >= 0).min().unwrap_or(-1);
        self.three(1, least, 0);
        deed(true, false)
    }

    pub(super) fn release_several(&mut self, keys: [&[u8]; 2], value: &'a [u8]) -> Deed<'a> {
        let mut deleted = 0;
        for key in keys {
            let found = self.store.find(self.session.database, key);
            let is_ours = |it: &usize| *self.store.keys[*it].value == *value;
            let found = found.filter(|it| is_ours(it) && !self.has(Plant::DeletesNothing));
            let Some(found) = found else { continue };
            if let Some(why) = self.write_refusal("del", false) {
                return self.script_error(&why);
            }
            self.store.keys.remove(found);
            deleted += 1;
        }
        self.integer(deleted);
        Deed::Release { key: ALL, value, done: deleted > 0 }
    }

    /// The first of these keys that has another value: its number, from 1, and its place.
    fn foreign(&self, keys: [&[u8]; 2], value: &[u8]) -> Option<(i64, usize)> {
        let found = keys.map(|key| self.store.find(self.session.database, key));
        let is_foreign = |it: &usize| *self.store.keys[*it].value != *value;
        (1..).zip(found).find_map(|(place, it)| Some((place, it.filter(is_foreign)?)))
    }

    pub(super) fn set_several(&mut self, keys: &[&[u8]], value: &[u8], ttl_ms: i64) {
        keys.iter().for_each(|key| self.put(key, value, Some(ttl_ms)));
        self.store.several.push(tag(value));
    }

    /// Gives a key at least this TTL, or says why not.
    fn prolong(&mut self, found: usize, ttl_ms: i64) -> Option<Deed<'a>> {
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return Some(self.script_error(NOT_IN_SCRIPTS));
        }
        if self.left_ms(found) >= ttl_ms {
            return None;
        }
        if let Some(why) = self.write_refusal("pexpire", false) {
            return Some(self.script_error(&why));
        }
        let is_halved = self.has(Plant::HalvesRenewals);
        let ttl_ms = if is_halved { self.left_ms(found).max(ttl_ms / 2) } else { ttl_ms };
        self.store.keys[found].expires_ms = Some(self.expires_ms(ttl_ms));
        None
    }

    pub(super) fn three(&mut self, first: i64, second: i64, third: i64) {
        let three = format!("*3\r\n:{first}\r\n:{second}\r\n:{third}\r\n");
        self.out.extend_from_slice(three.as_bytes());
    }

    pub(super) fn four(&mut self, [first, second, third, fourth]: [i64; 4]) {
        let four = format!("*4\r\n:{first}\r\n:{second}\r\n:{third}\r\n:{fourth}\r\n");
        self.out.extend_from_slice(four.as_bytes());
    }
}
