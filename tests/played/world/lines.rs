//! What servers do for waiting clients: wait queues, channels, and published messages. `differential`
//! compares this with a real server.

use crate::protocol::command::shared;
use crate::protocol::command::waking::{ENROL, LEAVE, RELEASE_AND_WAKE};
use crate::schedules::plants::Plant;
use crate::world::commands::{Command, NOT_IN_SCRIPTS, number};
use crate::world::store::{Deed, Refusal, Session, tag};

/// The wait queue of a resource. Each waiting client has its channel, in the order of the scores, which
/// count half microseconds. The scores of readers are odd.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    database: i64,
    name: Box<[u8]>,
    expires_ms: i64,
    members: Vec<(i64, Box<[u8]>)>,
}

/// Messages that are published to listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channels {
    /// Listeners, each with the tag of its channel's name.
    pub(crate) listeners: Vec<(u64, usize)>,
    /// The messages and their recipients since the last check.
    pub(crate) said: Vec<(usize, Vec<u8>)>,
}

/// How many clients of a queue are told at most, until one of them is there.
const TOLD_MAX: usize = 64;

impl Line {
    pub(crate) fn is_of(&self, name: &[u8]) -> bool {
        *self.name == *name
    }

    /// The length of the queue.
    pub(crate) fn len(&self, now_ms: i64) -> usize {
        if now_ms < self.expires_ms { self.members.len() } else { 0 }
    }
}

impl<'a> Command<'a, '_> {
    /// The server speaks RESP3 from now on, if it knows RESP3.
    pub(super) fn hello(&mut self) -> Deed<'a> {
        if !self.store.knows_resp3 {
            return self.unknown();
        }
        if self.words.get(1) != Some(&&b"3"[..]) {
            return self.error("NOPROTO unsupported protocol version");
        }
        self.session.is_resp3 = true;
        self.say("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n")
    }

    pub(super) fn subscribe(&mut self) -> Deed<'a> {
        let refusal = self.store.refusal;
        if matches!(refusal, Some(Refusal::NoPermLook | Refusal::NoPermTell)) {
            return self.error("NOPERM No permissions to access a channel");
        }
        let name = self.words[1];
        let Session { connection, .. } = *self.session;
        self.store.channels.listeners.push((tag(name), connection));
        let head = format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n", name.len());
        self.out.extend_from_slice(head.as_bytes());
        self.out.extend_from_slice(name);
        self.say("\r\n:1\r\n")
    }

    /// How many of these queues have waiting clients.
    pub(super) fn has_line(&mut self) -> Deed<'a> {
        let words = self.words;
        let is_there = |it: &&&[u8]| self.line(it).is_some_and(|line| !line.members.is_empty());
        let count = words[1..].iter().filter(is_there).count();
        self.integer(count as i64);
        Deed::Nothing
    }

    /// A nil in the protocol of this client.
    pub(super) fn nil(&self) -> &'static str {
        if self.session.is_resp3 { "_\r\n" } else { "$-1\r\n" }
    }

    /// Scripts that name a resource and its wait queue. Returns `None` for other scripts.
    pub(super) fn eval_line(&mut self) -> Option<Deed<'a>> {
        if let [_, script, b"3", key, name, intent, channel, since_us, ttl_ms, _] = self.words
            && **script == *shared::enrol::SCRIPT.as_bytes()
        {
            let times = (number(since_us)?, number(ttl_ms)?);
            return Some(self.enrol_reader((key, name, intent), channel, times));
        }
        let [_, script, b"2", key, name, value, rest @ ..] = self.words else { return None };
        if *script == RELEASE_AND_WAKE.as_bytes() {
            return Some(self.release_and_wake(name, value));
        }
        if *script == LEAVE.as_bytes() {
            return Some(self.leave(key, name, value));
        }
        if *script == ENROL.as_bytes() {
            let &[since_us, ttl_ms] = rest else { return None };
            return Some(self.enrol((key, name), value, number(since_us)?, number(ttl_ms)?));
        }
        None
    }

    fn release_and_wake(&mut self, name: &[u8], value: &'a [u8]) -> Deed<'a> {
        let deed = self.release(value);
        if let Deed::Release { key, done: true, .. } = deed
            && self.wake(key, name, false)
        {
            self.out.truncate(self.out.len() - b":1\r\n".len());
            self.integer(2);
        }
        deed
    }

    fn leave(&mut self, key: &[u8], name: &[u8], channel: &[u8]) -> Deed<'a> {
        if let Some(why) = self.write_refusal("zrem", false) {
            return self.script_error(&why);
        }
        let was_there = self.take_out(name, channel);
        let found = self.store.find(self.session.database, key);
        let has_readers = found.is_some_and(|it| self.store.keys[it].is_reader);
        let said = match was_there || (found.is_some() && !has_readers) {
            true => 0,
            false => {
                let was_told = self.wake(key, name, has_readers);
                1 + i64::from(was_told || has_readers)
            }
        };
        self.integer(said);
        Deed::Nothing
    }

    fn enrol(
        &mut self,
        (key, name): (&[u8], &[u8]),
        channel: &[u8],
        since_us: i64,
        ttl_ms: i64,
    ) -> Deed<'a> {
        let found = self.store.find(self.session.database, key);
        if found.is_none() && self.store.lies_ms.is_none() {
            self.say("*3\r\n:1\r\n:0\r\n:0\r\n");
            return Deed::Nothing;
        }
        let has_readers = found.is_some_and(|found| self.store.keys[found].is_reader);
        let left_ms = self.store.lies_ms.or_else(|| found.map(|it| self.left_ms(it)));
        let said = (if has_readers { 2 } else { 0 }, left_ms.unwrap_or(-2));
        self.stand_in_line(name, (channel, false), (since_us, ttl_ms), said)
    }

    /// The same for a reader.
    fn enrol_reader(
        &mut self,
        (key, name, intent): (&[u8], &[u8], &[u8]),
        channel: &[u8],
        times: (i64, i64),
    ) -> Deed<'a> {
        let found = self.store.find(self.session.database, key);
        let writer = found.filter(|it| !self.store.keys[*it].is_reader);
        if writer.is_some() || self.store.lies_ms.is_some() {
            let left_ms = self.store.lies_ms.or_else(|| writer.map(|it| self.left_ms(it)));
            let said = (0, left_ms.unwrap_or(-2));
            return self.stand_in_line(name, (channel, true), times, said);
        }
        match self.intent_left_ms(intent) {
            Some(left_ms) => self.stand_in_line(name, (channel, true), times, (2, left_ms)),
            None => self.say("*3\r\n:1\r\n:0\r\n:0\r\n"),
        }
    }

    fn stand_in_line(
        &mut self,
        name: &[u8],
        (channel, is_reader): (&[u8], bool),
        (since_us, ttl_ms): (i64, i64),
        (what, left_ms): (i64, i64),
    ) -> Deed<'a> {
        if let Some(why) = self.write_refusal("zadd", true) {
            return self.script_error(&why);
        }
        let rank = self.stand_in_as(is_reader, name, (channel, since_us, ttl_ms));
        if self.store.refusal == Some(Refusal::NoPermLook) {
            return self.script_error(NOT_IN_SCRIPTS);
        }
        self.say(&format!("*3\r\n:{what}\r\n:{left_ms}\r\n:{rank}\r\n"))
    }

    /// Removes a channel from a queue. Returns whether it was there.
    pub(super) fn take_out(&mut self, name: &[u8], channel: &[u8]) -> bool {
        self.line(name).is_some_and(|line| {
            let before = line.members.len();
            line.members.retain(|member| *member.1 != *channel);
            line.members.len() < before
        })
    }

    /// Puts a channel into a queue, with its time of arrival. Returns how many are before it.
    pub(super) fn stand_in(&mut self, name: &[u8], waiter: (&[u8], i64, i64)) -> usize {
        self.stand_in_as(false, name, waiter)
    }

    fn stand_in_as(
        &mut self,
        is_reader: bool,
        name: &[u8],
        (channel, since_us, ttl_ms): (&[u8], i64, i64),
    ) -> usize {
        let (database, now_us) = (self.session.database, self.now_ms * 1_000);
        let since_us = since_us.clamp(now_us - 600_000_000, now_us + 1_000_000);
        let expires_ms = self.now_ms + ttl_ms;
        if self.line(name).is_none() {
            let members = Vec::new();
            self.store.lines.push(Line { database, name: name.into(), expires_ms, members });
        }
        let mut rank = 0;
        if let Some(line) = self.line(name) {
            line.expires_ms = expires_ms;
            line.members.retain(|member| *member.1 != *channel);
            line.members.push((2 * since_us + i64::from(is_reader), channel.into()));
            line.members.sort();
            rank = line.members.iter().position(|member| *member.1 == *channel).unwrap_or(0);
        }
        if self.has(Plant::SendsToTheEnd) { 1_000 } else { rank }
    }

    /// Tells the first client in the queue that is connected. If that is a reader, also tells the readers
    /// right behind it. Returns whether a client was told.
    pub(super) fn wake(&mut self, key: &[u8], name: &[u8], only_readers: bool) -> bool {
        let (mut was_told, mut only_readers) = (false, only_readers);
        for _ in 0..TOLD_MAX {
            let is_wanted = |score: i64| !only_readers || score % 2 != 0;
            let line = self.line(name);
            let line = line.filter(|line| line.members.first().is_some_and(|it| is_wanted(it.0)));
            let Some(line) = line else { break };
            let (score, channel) = line.members.remove(0);
            if self.store.refusal == Some(Refusal::NoPermTell) {
                break;
            }
            if self.tell(key, &channel) {
                was_told = true;
                if score % 2 == 0 {
                    break;
                }
                only_readers = true;
            }
        }
        was_told
    }

    /// Tells the first writer in the queue that is connected. Returns whether there is one.
    pub(super) fn wake_writer(&mut self, key: &[u8], name: &[u8]) -> bool {
        let writers: Vec<Box<[u8]>> = self.line(name).map_or_else(Vec::new, |line| {
            let writers = line.members.iter().filter(|it| it.0 % 2 == 0);
            writers.map(|it| it.1.clone()).collect()
        });
        writers.iter().any(|channel| {
            if let Some(line) = self.line(name) {
                line.members.retain(|it| it.1 != *channel);
            }
            self.tell(key, channel)
        })
    }

    /// Publishes to a channel. Returns whether anybody listens.
    fn tell(&mut self, key: &[u8], channel: &[u8]) -> bool {
        if self.store.refusal == Some(Refusal::NoPermTell) {
            return false;
        }
        let listeners = self.store.channels.listeners.iter();
        let heard: Vec<usize> =
            listeners.filter(|it| it.0 == tag(channel)).map(|it| it.1).collect();
        let silent = self.has(Plant::TellsNobody) || self.has(Plant::TellsOfNoPermit);
        for &connection in heard.iter().filter(|_| !silent) {
            let lengths = (channel.len(), key.len());
            let head = format!(">3\r\n$7\r\nmessage\r\n${}\r\n", lengths.0).into_bytes();
            let middle = format!("\r\n${}\r\n", lengths.1).into_bytes();
            let push = [&head, channel, &middle, key, b"\r\n"].concat();
            self.store.channels.said.push((connection, push));
        }
        !heard.is_empty()
    }

    fn line(&mut self, name: &[u8]) -> Option<&mut Line> {
        let (database, now_ms) = (self.session.database, self.now_ms);
        self.store.lines.retain(|line| now_ms < line.expires_ms);
        self.store.lines.iter_mut().find(|it| it.database == database && *it.name == *name)
    }
}
