//! What servers do with the scripts about readers. `differential` compares this with a real server.
//!
//! Here each reader is a key of its own, with the resource's name. It ends when the lock expired, and the
//! resource ends with the last reader. The server's answers are those of a server that has a set of
//! readers.

use crate::protocol::command::shared::{self, acquire, extend, inspect, intend, release};
use crate::schedules::plants::Plant;
use crate::world::commands::{Command, NOT_IN_SCRIPTS, RELEASE, number};
use crate::world::store::{Deed, Intent, Key, Refusal, tag};

/// The value that a waiting writer sets to announce itself.
const WRITER: &[u8] = b"redlock:writer";

impl<'a> Command<'a, '_> {
    /// Scripts about readers. Returns `None` for other scripts.
    pub(crate) fn eval_shared(&mut self) -> Option<Deed<'a>> {
        let [_, script, _, rest @ ..] = self.words else { return None };
        let is = |text: &str| **script == *text.as_bytes();
        match *rest {
            [key, _, intent, value, ttl_ms, _] if is(acquire::SCRIPT) => {
                Some(self.join_readers((key, intent), (value, number(ttl_ms)?)))
            }
            [key, _, value, ttl_ms, _] if is(extend::SCRIPT) => {
                Some(self.extend_reader(key, value, number(ttl_ms)?))
            }
            [key, _, value, _] if is(release::SCRIPT) => Some(self.release_reader(key, value)),
            [key, _, name, intent, value, _] if is(release::WAKING_SCRIPT) => {
                Some(self.release_reader_and_wake((key, name, intent), value))
            }
            [key, _, value, _, _] if is(inspect::SCRIPT) => Some(self.inspect_reader(key, value)),
            [key, intent, ms] if is(intend::SCRIPT) => Some(self.intend(key, intent, number(ms)?)),
            [intent, WRITER] if is(RELEASE) => {
                let before = self.store.intents.len();
                let database = self.session.database;
                self.store.intents.retain(|it| it.database != database || *it.name != *intent);
                self.integer(i64::from(self.store.intents.len() < before));
                Some(Deed::Nothing)
            }
            _ => None,
        }
    }

    /// `ZCARD`.
    pub(super) fn zcard(&mut self) -> Deed<'a> {
        let key = self.words[1].strip_suffix(b":r").unwrap_or_default();
        let count = self.readers_of(key).count();
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
        Deed::Nothing
    }

    /// The places of the readers of a resource.
    fn readers_of(&self, key: &[u8]) -> impl Iterator<Item = usize> {
        let database = self.session.database;
        let is_it = move |place: &usize| {
            let it = &self.store.keys[*place];
            it.is_reader && it.database == database && *it.name == *key
        };
        (0..self.store.keys.len()).filter(is_it)
    }

    /// The place of the key with this value, of a reader or of another holder.
    fn own(&self, key: &[u8], value: &[u8]) -> Option<usize> {
        let database = self.session.database;
        let keys = &self.store.keys;
        keys.iter()
            .position(|it| it.database == database && *it.name == *key && *it.value == *value)
    }

    fn own_left_ms(&self, place: usize) -> i64 {
        let late_ms = (-self.store.early_ms).max(0);
        let expires_ms = self.store.keys[place].expires_ms;
        expires_ms.map_or(-1, |it| (it - late_ms - self.now_ms).max(0))
    }

    fn join_readers(
        &mut self,
        (key, intent): (&'a [u8], &[u8]),
        (value, ttl_ms): (&'a [u8], i64),
    ) -> Deed<'a> {
        let refused = Deed::Acquire { key, value, ttl_ms: Some(ttl_ms), done: false };
        if self.store.refusal == Some(Refusal::NoPermLook) {
            self.script_error(NOT_IN_SCRIPTS);
            return refused;
        }
        let found = self.store.find(self.session.database, key);
        let writer = found.filter(|it| !self.store.keys[*it].is_reader);
        let writer = writer.filter(|_| !self.has(Plant::LetsReadersIn));
        if writer.is_some() || self.store.lies_ms.is_some() {
            let left_ms = self.store.lies_ms.or_else(|| writer.map(|it| self.left_ms(it)));
            self.pair(0, left_ms.unwrap_or(-2));
            return refused;
        }
        if let Some(left_ms) = self.intent_left_ms(intent) {
            self.pair(2, left_ms);
            return refused;
        }
        // The first reader sets the resource.
        let refusal = match self.store.refusal {
            Some(Refusal::NoPerm) if found.is_none() => Some(NOT_IN_SCRIPTS.to_owned()),
            _ => self.write_refusal("zadd", true),
        };
        if let Some(why) = refusal {
            self.script_error(&why);
            return refused;
        }
        match self.own(key, value) {
            // A late request finds what a repair has set, and never shortens it.
            Some(own) if self.own_left_ms(own) >= ttl_ms => {}
            Some(own) => self.store.keys[own].expires_ms = Some(self.expires_ms(ttl_ms)),
            None => {
                self.put(key, value, Some(ttl_ms));
                self.store.keys.last_mut().expect("it was put").is_reader = true;
            }
        }
        self.integer(1);
        Deed::Acquire { key, value, ttl_ms: Some(ttl_ms), done: true }
    }

    /// For how long a writer's announcement still applies, if there is one.
    pub(super) fn intent_left_ms(&self, name: &[u8]) -> Option<i64> {
        let database = self.session.database;
        let is_it = |it: &&Intent| it.database == database && *it.name == *name;
        let waits = self.store.intents.iter().find(is_it).map(|it| it.until_ms - self.now_ms);
        waits.filter(|it| *it > 0)
    }

    fn extend_reader(&mut self, key: &'a [u8], value: &'a [u8], ttl_ms: i64) -> Deed<'a> {
        let extended = |done, absent| Deed::Extend { key, value, done, absent, repaired: false };
        let Some(found) = self.store.find(self.session.database, key) else {
            self.pair(0, -2);
            return extended(false, true);
        };
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self.script_error(NOT_IN_SCRIPTS);
        }
        let Some(own) = self.own(key, value) else {
            if self.store.keys[found].is_reader {
                self.pair(0, -2);
                return extended(false, true);
            }
            let left_ms = self.left_ms(found);
            self.pair(2, left_ms);
            return extended(false, false);
        };
        let refusal = match self.store.refusal {
            Some(Refusal::NoPerm) if !self.store.keys[own].is_reader => {
                Some(NOT_IN_SCRIPTS.to_owned())
            }
            _ => self.write_refusal("zadd", true),
        };
        if let Some(why) = refusal {
            return self.script_error(&why);
        }
        let left_ms = self.own_left_ms(own);
        self.store.keys[own].is_reader = true;
        if left_ms < ttl_ms {
            self.store.keys[own].expires_ms = Some(self.expires_ms(ttl_ms));
        }
        self.pair(1, left_ms);
        extended(true, false)
    }

    fn release_reader(&mut self, key: &'a [u8], value: &'a [u8]) -> Deed<'a> {
        let own = self.own(key, value).filter(|_| !self.has(Plant::DeletesNothing));
        if own.is_some()
            && let Some(why) = self.write_refusal("zrem", false)
        {
            return self.script_error(&why);
        }
        own.map(|it| self.store.keys.remove(it));
        if own.is_some() && self.has(Plant::LastOutTooEarly) {
            let database = self.session.database;
            let stays = |it: &Key| !it.is_reader || it.database != database || *it.name != *key;
            self.store.keys.retain(stays);
        }
        self.integer(own.is_some().into());
        Deed::Release { key, value, done: own.is_some() }
    }

    fn release_reader_and_wake(
        &mut self,
        (key, name, intent): (&'a [u8], &[u8], &[u8]),
        value: &'a [u8],
    ) -> Deed<'a> {
        let deed = self.release_reader(key, value);
        let is_free = self.store.find(self.session.database, key).is_none();
        if matches!(deed, Deed::Release { done: true, .. }) && is_free {
            let waits = self.intent_left_ms(intent).is_some();
            if (waits && self.wake_writer(key, name)) || self.wake(key, name, false) {
                self.out.truncate(self.out.len() - b":1\r\n".len());
                self.integer(2);
            }
        }
        deed
    }

    fn inspect_reader(&mut self, key: &'a [u8], value: &'a [u8]) -> Deed<'a> {
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self.script_error(NOT_IN_SCRIPTS);
        }
        let Some(found) = self.store.find(self.session.database, key) else {
            self.out.extend_from_slice(b"*2\r\n$0\r\n\r\n:-2\r\n");
            return Deed::Inspect { key, tag: None };
        };
        let left_ms = self.left_ms(found);
        if !self.store.keys[found].is_reader {
            let it = &self.store.keys[found];
            let (value, tag) = (it.value.clone(), it.tag);
            self.out.extend_from_slice(format!("*2\r\n${}\r\n", value.len()).as_bytes());
            self.out.extend_from_slice(&value);
            self.out.extend_from_slice(format!("\r\n:{left_ms}\r\n").as_bytes());
            return Deed::Inspect { key, tag: Some(tag) };
        }
        if let Some(own) = self.own(key, value) {
            let left_ms = self.own_left_ms(own);
            self.pair(1, left_ms);
            return Deed::Inspect { key, tag: Some(tag(value)) };
        }
        let count = self.readers_of(key).count().max(1);
        self.out.extend_from_slice(format!("*3\r\n:0\r\n:{left_ms}\r\n:{count}\r\n").as_bytes());
        match value == [b'0'; 40] {
            // Nobody asks for a lock of its own.
            true => Deed::Inspect { key, tag: Some(shared_tag()) },
            false => Deed::Extend { key, value, done: false, absent: true, repaired: false },
        }
    }

    fn intend(&mut self, key: &[u8], name: &[u8], ms: i64) -> Deed<'a> {
        let has_readers = self.readers_of(key).next().is_some();
        if has_readers {
            if let Some(why) = self.write_refusal("set", true) {
                return self.script_error(&why);
            }
            if self.store.refusal == Some(Refusal::NoPerm) {
                return self.script_error(NOT_IN_SCRIPTS);
            }
            let (database, until_ms) = (self.session.database, self.now_ms + ms);
            self.store.intents.retain(|it| it.database != database || *it.name != *name);
            self.store.intents.push(Intent { database, name: Box::from(name), until_ms });
        }
        self.integer(has_readers.into());
        Deed::Nothing
    }
}

/// The tag of the value of a resource that readers hold.
pub(crate) fn shared_tag() -> u64 {
    tag(shared::VALUE)
}
