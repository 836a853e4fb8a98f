//! A server as the world knows it: its clock, whether it runs, and its connections.

use std::mem;

use crate::protocol::command::guard::{MARK, RAISE};
use crate::protocol::command::identity::PROMOTION;
use crate::protocol::command::waking::{
    ENROL, ENROL_PERMITS, LEAVE, LEAVE_PERMITS, LEAVE_SLOT, RELEASE_PERMITS,
};
use crate::protocol::command::{
    acquire_with_token, raise_fence, release_permits, several, take_permit,
};
use crate::schedules::generate::PASSWORD;
use crate::schedules::holes::Loss;
use crate::schedules::promises::Promise;
use crate::schedules::records::Sender;
use crate::schedules::schedule::ServerPlan;
use crate::world::World;
use crate::world::clocks::{Clock, MS};
use crate::world::masters::View;
use crate::world::network::{Connection, End, Way};
use crate::world::resp;
use crate::world::several::ALL;
use crate::world::store::{self, Dataset, Deed, Key, NO_SCRIPT, Refusal, Store, tag};

pub(crate) struct Server {
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    /// The keys that it has lost, and when, for a server that gets them back.
    pub(crate) lost: Vec<(i64, Key)>,
    /// How many reasons there are for it to be down, and to be frozen.
    pub(crate) down: usize,
    pub(crate) frozen: usize,
    pub(crate) refusals: Vec<Refusal>,
    /// A copy of its data, the log that it had when that was turned off, and what has happened to its data.
    pub(crate) copy: Dataset,
    pub(crate) old_log: Option<Dataset>,
    pub(crate) losses: Vec<Loss>,
    /// What it says of the masters, if it is a Sentinel.
    pub(crate) views: Vec<View>,
}

impl Server {
    pub(crate) fn new(plan: &ServerPlan) -> Self {
        let password = plan.password.then_some(PASSWORD);
        Self {
            clock: Clock::new(plan.ahead, plan.per_million),
            store: Store::new(plan.dialect, plan.early_ms, password),
            lost: Vec::new(),
            down: 0,
            frozen: 0,
            refusals: Vec::new(),
            copy: Dataset::default(),
            old_log: None,
            losses: Vec::new(),
            views: Vec::new(),
        }
    }

    /// Whether its system accepts connections.
    pub(crate) fn is_up(&self) -> bool {
        self.down == 0
    }

    pub(crate) fn now_ms(&self, now: i64) -> i64 {
        self.clock.read(now).div_euclid(MS)
    }

    /// Until when it will have a value with this tag, if nothing more happens; `i64::MIN` if it does not
    /// have one.
    pub(crate) fn kept_until(&self, tag: u64) -> i64 {
        let end = self.store.expiry_of(tag);
        end.map_or(i64::MIN, |it| self.clock.will_show(it.saturating_mul(MS)))
    }

    /// Until when at least one key with this tag is left.
    pub(crate) fn left_until(&self, tag: u64) -> i64 {
        let end = self.store.last_expiry_of(tag);
        end.map_or(i64::MIN, |it| self.clock.will_show(it.saturating_mul(MS)))
    }

    /// How many keys it has.
    pub(crate) fn count_keys(&mut self, now: i64) -> usize {
        let now_ms = self.now_ms(now);
        self.store.expire(now_ms);
        self.store.len()
    }
}

impl World {
    /// The server executes what it was sent.
    pub(crate) fn serve(&mut self, connection: usize) {
        let server = self.connections[connection].server;
        if self.servers[server].frozen > 0 || !self.servers[server].is_up() {
            return;
        }
        let mut received = mem::take(&mut self.connections[connection].received);
        let mut ranges = mem::take(&mut self.ranges);
        let mut out = Vec::new();
        let mut done = 0;
        loop {
            match resp::parse(&received[done..], &mut ranges) {
                Ok(Some(length)) => {
                    let request = &received[done..done + length];
                    let mut words = [&request[..0]; resp::WORDS_MAX];
                    for (word, range) in words.iter_mut().zip(&ranges) {
                        *word = &request[range.clone()];
                    }
                    let count = ranges.len().min(resp::WORDS_MAX);
                    self.connections[connection].sight.begin_request(length);
                    match &self.script {
                        Some(_) => self.execute_on_trip(connection, &words[..count], length),
                        None => self.execute(connection, &words[..count], &mut out),
                    }
                    done += length;
                }
                Ok(None) => break,
                Err(()) => {
                    self.records
                        .violate(Promise::KnownRequests, "a server was sent what is no request");
                    break;
                }
            }
        }
        self.ranges = ranges;
        received.drain(..done);
        self.connections[connection].received = received;
        if !out.is_empty() {
            self.transmit(connection, Way::Back, &out);
        }
        if self.connections[connection].has_hung_up {
            self.connections[connection].is_served = false;
            self.transmit_end(connection, Way::Back, End::Closed);
        }
    }

    pub(crate) fn execute(&mut self, connection: usize, words: &[&[u8]], out: &mut Vec<u8>) {
        let Connection { client, manager, server: at, .. } = self.connections[connection];
        if self.is_sentinel(at) {
            return self.answer_as_sentinel(at, words, out);
        }
        let (now, sender) = (self.now, Sender { client, manager, connection });
        self.bring_back_keys(at);
        let mut before = mem::take(&mut self.keys_before);
        let server = &mut self.servers[at];
        server.store.refusal = server.refusals.last().copied();
        let now_ms = server.now_ms(now);
        server.store.expire(now_ms);
        before.clear();
        before.extend(server.store.keys.iter().map(|it| (it.tag, tag(&it.name), it.expires_ms)));
        let connections = &self.connections;
        server.store.channels.listeners.retain(|it| connections[it.1].is_served);
        let session = &mut self.connections[connection].session;
        let start = out.len();
        let deed = server.store.execute(session, words, now_ms, out);
        let said = mem::take(&mut server.store.channels.said);
        self.records.note(now, sender, at, &deed);
        if let (true, Deed::Release { value, .. }) = (self.schedule.is_guarded, &deed) {
            self.records.note_given_up(now, tag(value));
        }
        if out[start..] == *NO_SCRIPT {
            let it = &mut self.connections[connection];
            it.text_wanted = it.sent_back() + out.len();
        }
        if out.get(start) == Some(&b'-') {
            self.records.note_denied(at, &deed);
        }
        self.note_possession(at, &deed);
        self.note_offered(connection, &deed);
        self.note_done(connection, &deed, words);
        self.note_answer(connection, &deed, words[0], (start, out));
        self.note_reading(connection, words, &deed, (&out[start..], out.len()));
        self.note_told(connection, words, (&out[start..], out.len()));
        self.judge_keys(at, &deed, &before);
        self.keys_before = before;
        self.connections[connection].has_worked |= deed != Deed::Nothing;
        let reply = &out[start..];
        self.say(|_| format!("    server {at} to client {client}: {}", words_of(words, reply)));
        self.publish(connection, said, out);
        if self.schedule.plant.is_some() {
            self.play_a_trick(connection, words, &deed);
        }
    }

    /// Delivers messages that a server sends by itself, unless they are lost.
    fn publish(&mut self, connection: usize, said: Vec<(usize, Vec<u8>)>, out: &mut Vec<u8>) {
        for (listener, push) in said {
            let loses_in = self.schedule.loses_pushes_in;
            if loses_in > 0 && self.turns.once_in(loses_in) {
                self.say(|_| format!("    what is told over #{listener} is lost"));
            } else if listener == connection {
                out.extend(push);
            } else if self.script.is_some() {
                self.tell_as_scripted(listener, push);
            } else {
                self.transmit(listener, Way::Back, &push);
            }
        }
    }

    /// The answer to an acquire includes the answer to the commands that come with it.
    fn note_answer(
        &mut self,
        connection: usize,
        deed: &Deed<'_>,
        command: &[u8],
        (start, out): (usize, &[u8]),
    ) {
        let acquiring = match *deed {
            Deed::Acquire { value, .. } | Deed::Move { value, .. }
                if out.get(start) != Some(&b'-') =>
            {
                Some(tag(value))
            }
            _ => None,
        };
        // This command comes between the two.
        if command == b"ZCARD" && matches!(deed, Deed::Nothing) {
            return;
        }
        // With a fencing token there is one reply.
        if let (Some(tag), b"EVAL" | b"EVALSHA") = (acquiring, command) {
            return self.expect_answer(connection, out.len(), tag);
        }
        let before = mem::replace(&mut self.connections[connection].acquiring, acquiring);
        if let (Some(tag), Deed::Notice { .. }) = (before, deed) {
            self.expect_answer(connection, out.len(), tag);
        }
    }

    /// Whatever a client sends, it changes only its own keys, and only in the expected way.
    fn judge_keys(&mut self, server: usize, deed: &Deed<'_>, before: &[(u64, u64, Option<i64>)]) {
        let own = match *deed {
            Deed::Acquire { value, .. }
            | Deed::Move { value, .. }
            | Deed::GiveUp { value, .. }
            | Deed::Extend { value, .. }
            | Deed::Shorten { value, .. }
            | Deed::Release { value, .. } => tag(value),
            _ => return,
        };
        let keys = &self.servers[server].store.keys;
        let mut broken = None;
        for (index, &(tag, name, expires_ms)) in before.iter().enumerate() {
            let is_it = |it: &&Key| it.tag == tag && store::tag(&it.name) == name;
            // Most keys are where they were. There may be thousands.
            let same = keys.get(index).filter(is_it);
            let after = same.or_else(|| keys.iter().find(is_it)).map(|it| it.expires_ms);
            let is_right = match (after, deed) {
                (Some(after), _) if after == expires_ms => true,
                (None, Deed::Release { .. } | Deed::GiveUp { .. }) if tag == own => true,
                (Some(Some(after)), Deed::Shorten { .. }) if tag == own => {
                    expires_ms.is_none_or(|it| after < it)
                }
                // A move replaces the old slot with the new one, and changes nothing else.
                (None, Deed::Move { key, done: true, .. }) if tag == own => {
                    let mut slots = keys.iter().filter(|it| it.tag == own).map(|it| &*it.name);
                    slots.next() == Some(key) && slots.next().is_none()
                }
                // A repair of several keys extends those that are there. A reader that joins again does the
                // same.
                (
                    Some(after),
                    Deed::Extend { .. }
                    | Deed::Acquire { key: ALL, .. }
                    | Deed::Acquire { done: true, .. },
                ) if tag == own => {
                    if after.is_some_and(|after| expires_ms.is_none_or(|it| after < it)) {
                        broken = Some((Promise::DeadlineGrows, "a server made a lock shorter"));
                    }
                    true
                }
                _ => false,
            };
            if !is_right {
                broken = Some((Promise::OthersKeys, "a key was changed that is another's"));
            }
        }
        let is_new = |tag| !before.iter().any(|it| it.0 == tag);
        if matches!(deed, Deed::Acquire { key: ALL, done: false, .. })
            && keys.iter().any(|it| is_new(it.tag))
        {
            let words = "a server set some of several keys";
            broken = Some((Promise::AllOrNothing, words));
        }
        if !matches!(deed, Deed::Acquire { .. } | Deed::Move { .. })
            && keys.iter().any(|it| is_new(it.tag))
        {
            broken = Some((Promise::ExtensionSetsNothing, "an extension or a release set a key"));
        }
        if let Some((promise, words)) = broken {
            self.records.violate(promise, words);
        }
    }

    /// Data that has arrived while the server stood still is processed now.
    pub(crate) fn thaw(&mut self, server: usize) {
        let count = self.connections.len();
        // The order is unknown.
        let first = (self.now as usize).checked_rem(count).unwrap_or(0);
        for index in 0..count {
            let connection = (first + index) % count;
            let it = &self.connections[connection];
            if it.server == server && it.is_served {
                self.serve(connection);
            }
        }
    }

    /// The server ends. The system tells the clients, unless it has ended, too.
    pub(crate) fn kill(&mut self, server: usize, quietly: bool) {
        for connection in 0..self.connections.len() {
            let it = &mut self.connections[connection];
            if it.server == server && it.is_served {
                it.is_served = false;
                it.received.clear();
                if !quietly {
                    self.transmit_end(connection, Way::Back, End::Reset);
                }
            }
        }
    }
}

/// A request and its reply, for the story: with the beginnings of tokens, and the names of scripts.
fn words_of(words: &[&[u8]], reply: &[u8]) -> String {
    let word = |it: &&[u8]| match it.len() {
        40 => format!("<{:04x}>", tag(it) & 0xFFFF),
        ..30 => String::from_utf8_lossy(it).into_owned(),
        _ if **it == *acquire_with_token::SCRIPT.as_bytes() => "(acquire)".to_owned(),
        _ if **it == *raise_fence::SCRIPT.as_bytes() => "(raise)".to_owned(),
        _ if **it == *MARK.as_bytes() => "(mark)".to_owned(),
        _ if **it == *RAISE.as_bytes() => "(raise the TTL)".to_owned(),
        _ if **it == *PROMOTION.as_bytes() => "(promoted?)".to_owned(),
        _ if **it == *ENROL.as_bytes() => "(enrol)".to_owned(),
        _ if **it == *LEAVE.as_bytes() => "(leave)".to_owned(),
        _ if **it == *several::acquire::SCRIPT.as_bytes() => "(acquire all)".to_owned(),
        _ if **it == *several::acquire::SCRIPT_MSETEX.as_bytes() => "(acquire all)".to_owned(),
        _ if **it == *several::repair::SCRIPT.as_bytes() => "(repair all)".to_owned(),
        _ if **it == *several::extend::SCRIPT.as_bytes() => "(extend all)".to_owned(),
        _ if **it == *several::release::SCRIPT.as_bytes() => "(release all)".to_owned(),
        _ if **it == *several::waking::ENROL_SCRIPT.as_bytes() => "(enrol for all)".to_owned(),
        _ if **it == *several::waking::RELEASE_SCRIPT.as_bytes() => {
            "(release all and wake)".to_owned()
        }
        _ if **it == *take_permit::SCRIPT.as_bytes() => "(permit)".to_owned(),
        _ if **it == *release_permits::SCRIPT.as_bytes() => "(give up)".to_owned(),
        _ if **it == *RELEASE_PERMITS.as_bytes() => "(give up and wake)".to_owned(),
        _ if **it == *ENROL_PERMITS.as_bytes() => "(enrol for a permit)".to_owned(),
        _ if **it == *LEAVE_PERMITS.as_bytes() || **it == *LEAVE_SLOT.as_bytes() => {
            "(leave)".to_owned()
        }
        _ if it.starts_with(b"if") => "(release)".to_owned(),
        _ => "(extend)".to_owned(),
    };
    let words: Vec<String> = words.iter().map(word).collect();
    let reply = String::from_utf8_lossy(reply).replace("\r\n", " ");
    // Of a note: what stands behind the name of the process.
    let is_note = reply.len() > 70 && reply.contains(" 1 0");
    let reply =
        if is_note { reply.split(' ').skip(3).collect::<Vec<_>>().join(" ") } else { reply };
    let reply = if reply.len() > 46 { "(a value or an error)" } else { reply.trim_end() };
    format!("{} → {reply}", words.join(" "))
}
