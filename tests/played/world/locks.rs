//! What servers do with scripts. The scripts that release and extend a lock are in this file.

use crate::protocol::command::guard::{MARK, RAISE};
use crate::protocol::command::identity::PROMOTION;
use crate::protocol::command::release_after;
use crate::schedules::plants::Plant;
use crate::world::commands::{Command, EXTEND, NOT_IN_SCRIPTS, RELEASE, number};
use crate::world::store::{Deed, Refusal};

impl<'a> Command<'a, '_> {
    pub(super) fn eval(&mut self) -> Deed<'a> {
        let special = self.eval_fenced().or_else(|| self.eval_line());
        let special = special.or_else(|| self.eval_waiting());
        let special = special.or_else(|| self.eval_several()).or_else(|| self.eval_shared());
        if let Some(deed) = special.or_else(|| self.eval_permits()) {
            return deed;
        }
        if self.words[1] == PROMOTION.as_bytes() {
            return self.tell_promotion();
        }
        let [_, script, b"1", _, value, ..] = self.words else { return Deed::Unknown };
        if *script == MARK.as_bytes() {
            return self.mark();
        } else if *script == RAISE.as_bytes() {
            return self.raise();
        }
        if *script == RELEASE.as_bytes() {
            self.release(value)
        } else if *script == release_after::SCRIPT.as_bytes() && self.words.len() == 6 {
            let words = self.words;
            self.shorten(&words[3..4], value)
        } else if *script == EXTEND.as_bytes() && self.words.len() == 6 {
            self.extend(value)
        } else {
            self.error("ERR Error compiling script");
            Deed::Unknown
        }
    }

    /// A key with another value is left alone before anything is written. So it does not matter what the
    /// server refuses to write.
    pub(super) fn release(&mut self, value: &'a [u8]) -> Deed<'a> {
        let key = self.words[1 + 2 * usize::from(self.words[0].eq_ignore_ascii_case(b"EVAL"))];
        let found = self.store.find(self.session.database, key);
        let is_deleted = |it: &usize| {
            let key = &self.store.keys[*it];
            !key.is_reader && *key.value == *value || self.has(Plant::DeletesAll)
        };
        let found = found.filter(|it| is_deleted(it) && !self.has(Plant::DeletesNothing));
        if found.is_some()
            && let Some(why) = self.write_refusal("del", false)
        {
            return self.script_error(&why);
        }
        found.map(|it| self.store.keys.remove(it));
        self.integer(found.is_some().into());
        Deed::Release { key, value, done: found.is_some() }
    }

    /// Makes those of these keys that have the value end after a time, unless they end sooner.
    pub(super) fn shorten(&mut self, keys: &[&[u8]], value: &'a [u8]) -> Deed<'a> {
        let Some(left_ms) = self.words.last().and_then(|it| number(it)) else {
            return self.error("ERR value is not an integer or out of range");
        };
        let mut count = 0;
        for key in keys {
            let found = self.store.find(self.session.database, key);
            let is_ours = |it: &usize| {
                let key = &self.store.keys[*it];
                !key.is_reader && *key.value == *value
            };
            let Some(found) = found.filter(is_ours) else { continue };
            count += 1;
            if self.store.refusal == Some(Refusal::NoPermLook) {
                return self.script_error(NOT_IN_SCRIPTS);
            }
            if self.left_ms(found) >= 0 && self.left_ms(found) <= left_ms {
                continue;
            }
            if let Some(why) = self.write_refusal("pexpire", false) {
                return self.script_error(&why);
            }
            self.store.keys[found].expires_ms = Some(self.expires_ms(left_ms));
        }
        self.integer(i64::from(count == keys.len()));
        Deed::Shorten { value, done: count > 0 }
    }

    fn extend(&mut self, value: &'a [u8]) -> Deed<'a> {
        let key = self.words[3];
        let Some(ttl_ms) = number(self.words[5]) else {
            return self.error("ERR value is not an integer or out of range");
        };
        let Some(found) = self.store.find(self.session.database, key) else {
            let repaired = self.has(Plant::SetsAgain);
            if repaired {
                self.put(key, value, Some(ttl_ms));
            }
            match repaired || self.has(Plant::ExtendsAll) {
                true => self.pair(1, ttl_ms),
                false => self.pair(0, -2),
            }
            return Deed::Extend { key, value, done: false, absent: true, repaired };
        };
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self.script_error(NOT_IN_SCRIPTS);
        }
        let left_ms = self.left_ms(found);
        if self.store.keys[found].is_reader || *self.store.keys[found].value != *value {
            self.pair(if self.has(Plant::ExtendsAll) { 1 } else { 2 }, left_ms);
            return Deed::Extend { key, value, done: false, absent: false, repaired: false };
        }
        if self.has(Plant::Shortens) {
            self.store.keys[found].expires_ms = Some(self.now_ms + 1 + ttl_ms / 8);
        } else if left_ms < ttl_ms {
            if let Some(why) = self.write_refusal("pexpire", false) {
                return self.script_error(&why);
            }
            let is_halved = self.has(Plant::HalvesRenewals);
            let ttl_ms = if is_halved { left_ms.max(ttl_ms / 2) } else { ttl_ms };
            self.store.keys[found].expires_ms = Some(self.expires_ms(ttl_ms));
        }
        self.pair(1, left_ms);
        Deed::Extend { key, value, done: true, absent: false, repaired: false }
    }

    /// The answer of a script that returns two numbers.
    pub(super) fn pair(&mut self, first: i64, second: i64) {
        let pair = format!("*2\r\n:{first}\r\n:{second}\r\n");
        self.out.extend_from_slice(pair.as_bytes());
    }

    /// Reports an error of a command in a script, in a server's wording.
    pub(super) fn script_error(&mut self, why: &str) -> Deed<'a> {
        if self.words[0].eq_ignore_ascii_case(b"EVAL") {
            self.error(&format!("{why} script: 0, on @user_script:1."))
        } else {
            self.error(why)
        }
    }
}
