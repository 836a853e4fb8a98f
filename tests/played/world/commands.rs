//! What servers do with the commands that the library sends, and what they answer. `differential` compares
//! this with a real server.

use std::fmt::Write;
use std::io;

use crate::protocol::command::shared;
use crate::schedules::plants::Plant;
use crate::world::readers::shared_tag;
use crate::world::store::{Deed, Dialect, Key, Refusal, Session, Store, tag};

/// The library's scripts, by their text: a server executes what it is sent. If a script changes, this
/// server must learn the new one, and `differential` must compare it.
pub(crate) const RELEASE: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";
pub(crate) const EXTEND: &str = "local v=redis.call('GET',KEYS[1]) \
    if not v then return {0,-2} end \
    local t=redis.call('PTTL',KEYS[1]) \
    if v~=ARGV[1] then return {2,t} end \
    if t<tonumber(ARGV[2]) then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end \
    return {1,t}";

/// The key of the note that servers keep about their memory.
pub(crate) const NOTE: &[u8] = b"redlock:guard";

/// The error for a command in a script that the user may not use.
pub(super) const NOT_IN_SCRIPTS: &str =
    "ERR The user executing the script can't run this command or subcommand";

pub(super) const FORBIDDEN: &str = "NOPERM this user may not";

/// The longest name of a command.
const NAME_MAX: usize = 16;

/// A command during its execution.
pub(crate) struct Command<'a, 'b> {
    pub(crate) store: &'b mut Store,
    pub(crate) session: &'b mut Session,
    pub(crate) words: &'b [&'a [u8]],
    pub(crate) now_ms: i64,
    pub(crate) out: &'b mut Vec<u8>,
}

/// Commands that come before a server is asked for anything.
pub(crate) fn is_talk(name: &[u8]) -> bool {
    [&b"PING"[..], b"AUTH", b"SELECT"].iter().any(|it| it.eq_ignore_ascii_case(name))
}

impl<'a> Command<'a, '_> {
    pub(crate) fn run(&mut self) -> Deed<'a> {
        let mut name = [0; NAME_MAX];
        let length = self.words[0].len().min(NAME_MAX);
        name[..length].copy_from_slice(&self.words[0][..length]);
        name.make_ascii_uppercase();
        let name = &name[..length];
        if self.store.password.is_some() && !self.session.is_known && name != b"AUTH" {
            return self.error("NOAUTH Authentication required.");
        }
        match self.store.refusal {
            Some(Refusal::Loading) if name != b"AUTH" => {
                return self.error("LOADING Redis is loading the dataset in memory");
            }
            Some(Refusal::Busy) if !is_talk(name) => {
                return self.error(
                    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                     SHUTDOWN NOSAVE.",
                );
            }
            _ => {}
        }
        let words = self.words.len();
        match name {
            b"PING" if words == 1 => self.say("+PONG\r\n"),
            b"INFO" if words == 2 && self.words[1] == b"server" => self.tell_run_id(),
            b"INFO" if words == 2 && self.words[1] == b"replication" => self.tell_role(),
            b"INFO" if words == 2 && self.words[1] == b"persistence" => self.tell_log(),
            b"CONFIG" if words == 3 => self.tell_syncing(),
            b"INFO" | b"CONFIG" if words > 1 => self.error(FORBIDDEN),
            b"TIME" if words == 1 => self.tell_time(),
            b"GETRANGE" if words == 4 && self.words[1] == NOTE => self.tell_note(),
            b"AUTH" if words > 1 => self.log_in(),
            b"SELECT" if words == 2 => self.select(),
            b"SET" if words > 2 => self.set(),
            b"GET" if words == 2 => self.get(0, i64::MAX),
            b"GETRANGE" if words == 4 => self.get_range(),
            b"PTTL" if words == 2 => self.pttl(),
            b"ZCARD" if words == 2 => self.zcard(),
            b"PEXPIRETIME" if !self.tells_ends() => self.unknown(),
            b"PEXPIRETIME" if words == 2 => self.pexpiretime(),
            b"PEXPIRETIME" => self.wrong_number(name),
            b"PEXPIRE" if words == 3 => self.pexpire(),
            b"DEL" if words == 2 => self.del(),
            b"EVAL" if words > 2 => self.eval(),
            b"HELLO" if words > 1 => self.hello(),
            b"EXISTS" if words == 2 || words == 3 => self.has_line(),
            b"SUBSCRIBE" if words == 2 && self.session.is_resp3 => self.subscribe(),
            b"DELIFEQ" if self.store.dialect == Dialect::Delifeq && words == 3 => {
                self.own_delete(self.words[2])
            }
            b"DELEX" if self.store.dialect == Dialect::Delex && words == 4 => {
                self.own_delete(self.words[3])
            }
            b"DELIFEQ" if self.store.dialect == Dialect::Delifeq => self.wrong_number(name),
            b"DELEX" if self.store.dialect == Dialect::Delex => self.wrong_number(name),
            b"MSETEX" if self.store.dialect == Dialect::Delex => self.wrong_number(name),
            b"DELIFEQ" | b"DELEX" | b"MSETEX" => self.unknown(),
            _ => {
                self.wrong_number(name);
                Deed::Unknown
            }
        }
    }

    pub(super) fn has(&self, plant: Plant) -> bool {
        self.store.plant == Some(plant)
    }

    pub(super) fn say(&mut self, words: &str) -> Deed<'a> {
        self.out.extend_from_slice(words.as_bytes());
        Deed::Nothing
    }

    pub(super) fn error(&mut self, words: &str) -> Deed<'a> {
        self.say("-");
        self.say(words);
        self.say("\r\n")
    }

    pub(super) fn integer(&mut self, number: i64) {
        let _ = io::Write::write_fmt(self.out, format_args!(":{number}\r\n"));
    }

    fn wrong_number(&mut self, name: &[u8]) -> Deed<'a> {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        self.error(&format!("ERR wrong number of arguments for '{name}' command"))
    }

    pub(super) fn unknown(&mut self) -> Deed<'a> {
        let mut words = format!(
            "ERR unknown command '{}', with args beginning with: ",
            String::from_utf8_lossy(self.words[0])
        );
        for it in &self.words[1..] {
            let _ = write!(words, "'{}' ", String::from_utf8_lossy(it));
        }
        self.error(&words)
    }

    fn log_in(&mut self) -> Deed<'a> {
        let given = self.words.last().copied().unwrap_or_default();
        match self.store.password {
            Some(password) if password.as_bytes() == given => {
                self.session.is_known = true;
                self.say("+OK\r\n")
            }
            Some(_) => self.error("WRONGPASS invalid username-password pair or user is disabled."),
            None => self.error(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ),
        }
    }

    fn select(&mut self) -> Deed<'a> {
        match number(self.words[1]) {
            Some(database @ 0..16) => {
                self.session.database = database;
                self.say("+OK\r\n")
            }
            Some(_) => self.error("ERR DB index is out of range"),
            None => self.error("ERR value is not an integer or out of range"),
        }
    }

    /// Why a command that writes is not executed.
    pub(super) fn write_refusal(&self, name: &str, needs_memory: bool) -> Option<String> {
        Some(match self.store.refusal? {
            Refusal::ReadOnly => "READONLY You can't write against a read only replica.".into(),
            Refusal::Misconf => "MISCONF Redis is configured to save RDB snapshots, but it's \
                currently unable to persist to disk."
                .into(),
            Refusal::Oom if needs_memory => {
                "OOM command not allowed when used memory > 'maxmemory'.".into()
            }
            Refusal::NoPerm if name == "set" => {
                format!("NOPERM this user has no permissions to run the '{name}' command")
            }
            _ => return None,
        })
    }

    fn set(&mut self) -> Deed<'a> {
        if let Some(why) = self.write_refusal("set", true) {
            return self.error(&why);
        }
        let (key, value) = (self.words[1], self.words[2]);
        let (mut only_new, mut ttl_ms) = (false, None);
        let mut options = self.words[3..].iter();
        while let Some(option) = options.next() {
            match &option.to_ascii_uppercase()[..] {
                b"NX" => only_new = true,
                b"PX" => match options.next().map(|it| number(it)) {
                    Some(Some(ms @ 1..)) => ttl_ms = Some(ms),
                    Some(Some(_)) => return self.error("ERR invalid expire time in 'set' command"),
                    Some(None) => return self.error("ERR value is not an integer or out of range"),
                    None => return self.error("ERR syntax error"),
                },
                _ => return self.error("ERR syntax error"),
            }
        }
        let found = self.store.find(self.session.database, key);
        let old = found.map(|it| self.store.keys[it].tag);
        let done = !(only_new && (found.is_some() || self.store.lies_ms.is_some()));
        if done {
            found.map(|it| self.store.keys.remove(it));
            self.put(key, value, ttl_ms);
        }
        let says_so = done || self.has(Plant::GrantsAll);
        self.say(if says_so { "+OK\r\n" } else { self.nil() });
        match old {
            Some(tag) if done => Deed::Trample { key, tag },
            _ => Deed::Acquire { key, value, ttl_ms, done },
        }
    }

    pub(super) fn put(&mut self, name: &[u8], value: &[u8], ttl_ms: Option<i64>) {
        let expires_ms = ttl_ms.map(|it| self.expires_ms(it));
        let database = self.session.database;
        let (tag, name, value) = (tag(value), Box::from(name), Box::from(value));
        let is_reader = false;
        self.store.keys.push(Key { database, name, value, tag, expires_ms, is_reader });
    }

    pub(super) fn expires_ms(&self, ttl_ms: i64) -> i64 {
        let ttl_ms = if self.has(Plant::HalvesTtls) { (ttl_ms / 2).max(1) } else { ttl_ms };
        self.now_ms.saturating_add(ttl_ms).saturating_sub(self.store.early_ms)
    }

    fn get_range(&mut self) -> Deed<'a> {
        match (number(self.words[2]), number(self.words[3])) {
            (Some(first @ 0..), Some(last @ 0..)) => self.get(first, last),
            _ => self.error("ERR value is not an integer or out of range"),
        }
    }

    fn get(&mut self, first: i64, last: i64) -> Deed<'a> {
        let key = self.words[1];
        let Some(found) = self.store.find(self.session.database, key) else {
            let is_range = last < i64::MAX;
            self.say(if is_range { "$0\r\n\r\n" } else { self.nil() });
            return Deed::Inspect { key, tag: None };
        };
        let it = &self.store.keys[found];
        let value = if it.is_reader { shared::VALUE } else { &it.value };
        let tag = Some(if it.is_reader { shared_tag() } else { it.tag });
        let end = value.len().min(usize::try_from(last).unwrap_or(usize::MAX).saturating_add(1));
        let part = &value[usize::try_from(first).unwrap_or(0).min(end)..end];
        self.out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        self.out.extend_from_slice(part);
        self.say("\r\n");
        Deed::Inspect { key, tag }
    }

    fn pttl(&mut self) -> Deed<'a> {
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self.error("NOPERM this user has no permissions to run the 'pttl' command");
        }
        let key = self.words[1];
        if let Some(left_ms) = self.store.lies_ms {
            self.integer(left_ms);
            return Deed::Nothing;
        }
        let found = self.store.find(self.session.database, key);
        self.integer(found.map_or(-2, |it| self.left_ms(it)));
        Deed::Notice { key, tag: found.map(|it| self.tag_of(it)) }
    }

    /// Whether it is Redis 7.0 or later.
    fn tells_ends(&self) -> bool {
        self.store.memory.as_ref().is_some_and(|it| it.tells_ends)
    }

    fn pexpiretime(&mut self) -> Deed<'a> {
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self
                .error("NOPERM this user has no permissions to run the 'pexpiretime' command");
        }
        let key = self.words[1];
        if let Some(left_ms) = self.store.lies_ms {
            self.integer(self.now_ms + left_ms);
            return Deed::Nothing;
        }
        let found = self.store.find(self.session.database, key);
        let end_ms = |it: usize| {
            let expires_ms = self.store.keys[self.last_of(it)].expires_ms;
            expires_ms.map_or(-1, |it| it + self.store.early_ms)
        };
        self.integer(found.map_or(-2, end_ms));
        Deed::Notice { key, tag: found.map(|it| self.tag_of(it)) }
    }

    /// The tag of the key.
    fn tag_of(&self, found: usize) -> u64 {
        let it = &self.store.keys[found];
        if it.is_reader { shared_tag() } else { it.tag }
    }

    /// Readers last as long as the last of them.
    fn last_of(&self, found: usize) -> usize {
        let one = &self.store.keys[found];
        let is_beside = |it: &Key| {
            it.is_reader && one.is_reader && it.database == one.database && it.name == one.name
        };
        let beside = (0..self.store.keys.len()).filter(|at| is_beside(&self.store.keys[*at]));
        let end = |at: &usize| self.store.keys[*at].expires_ms.unwrap_or(i64::MAX);
        beside.max_by_key(end).unwrap_or(found)
    }

    /// A server that deletes its keys a moment after their expiry says 0 in that moment.
    pub(super) fn left_ms(&self, found: usize) -> i64 {
        let expires_ms = self.store.keys[self.last_of(found)].expires_ms;
        let late_ms = (-self.store.early_ms).max(0);
        expires_ms.map_or(-1, |it| (it - late_ms - self.now_ms).max(0))
    }

    fn pexpire(&mut self) -> Deed<'a> {
        if let Some(why) = self.write_refusal("pexpire", false) {
            return self.error(&why);
        }
        let Some(ttl_ms) = number(self.words[2]) else {
            return self.error("ERR value is not an integer or out of range");
        };
        let key = self.words[1];
        let Some(found) = self.store.find(self.session.database, key) else {
            self.integer(0);
            return Deed::Nothing;
        };
        let tag = self.store.keys[found].tag;
        if ttl_ms > 0 {
            self.store.keys[found].expires_ms = Some(self.expires_ms(ttl_ms));
        } else {
            self.store.keys.remove(found);
        }
        self.integer(1);
        Deed::Trample { key, tag }
    }

    fn del(&mut self) -> Deed<'a> {
        if let Some(why) = self.write_refusal("del", false) {
            return self.error(&why);
        }
        let key = self.words[1];
        let found = self.store.find(self.session.database, key);
        let old = found.map(|it| self.store.keys.remove(it).tag);
        self.integer(old.is_some().into());
        old.map_or(Deed::Nothing, |tag| Deed::Trample { key, tag })
    }

    fn own_delete(&mut self, value: &'a [u8]) -> Deed<'a> {
        if self.store.refusal == Some(Refusal::NoPermDelete) {
            return self.error("NOPERM this user has no permissions to run the command");
        }
        match self.write_refusal("del", false) {
            Some(why) => self.error(&why),
            None => self.release(value),
        }
    }
}

pub(super) fn number(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
