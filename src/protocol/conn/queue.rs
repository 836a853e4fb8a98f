//! The requests to one server, in the order in which they were made. Some wait to be sent. The others were
//! sent and wait for their replies.
//!
//! A request that was sent stays in the queue until its replies have arrived, even if nobody waits for its
//! answer any more. So a reply is never assigned to the wrong request.

#[cfg(test)]
pub(crate) mod samples;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use redis::Value;

use super::close_reason::CloseReason;
use super::entries::{Entries, Entry};
use super::guard::{Forgotten, Guard, Rules};
use super::inbox::Inbox;
use super::memories::Lasting;
use super::numbers::Numbers;
use super::reply::ProtocolError;
use super::scripts::Scripts;
use super::simple_reply;
use super::subscription::Subscription;
use crate::protocol::command::fence::name_memory;
use crate::protocol::command::guard::{self, Borne, TIME, is_forbidden, raise, time_us};
use crate::protocol::command::identity::{RoleTold, RunId, ask_promotion};
use crate::protocol::command::waking::{subscribe, subscribed};
use crate::protocol::command::{
    Answer, Capabilities, Encoder, Fences, FencesState, KeyEffect, Kind, Request, has_lost_slot,
};
use crate::protocol::failure::Failure;
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::offset::Showing;
use crate::protocol::token::Token;
use crate::protocol::trouble::Trouble;

/// What was read of a server's memory along with acquires, beside the note itself.
struct Reading {
    /// How many of the requests that are settled next it counts for.
    left: usize,
    /// Whether this user may not read the note.
    is_forbidden: bool,
}

/// A note that was read, and its meaning. It is nearly always the same as before, and comparing it is cheaper than
/// parsing it.
struct LastNote {
    said: Value,
    /// The reply. Empty if it was no string.
    reply: Vec<u8>,
    note: Option<Borne>,
}

impl LastNote {
    fn of(said: Value) -> Self {
        let note = Borne::of(&said);
        let reply = match &said {
            Value::BulkString(text) => {
                [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
            }
            _ => Vec::new(),
        };
        Self { said, reply, note }
    }
}

pub(crate) struct Queue {
    server: usize,
    rules: Arc<Rules>,
    /// What is known of the server behind this connection: its process, and its memory.
    process: Option<RunId>,
    guard: Guard,
    /// What is known of the server beyond this connection.
    lasting: Arc<Lasting>,
    /// What was read of the server's memory for the requests that are settled next.
    reading: Option<Reading>,
    /// The note that was read last.
    last_note: Option<LastNote>,
    encoder: Encoder,
    /// Reads the note.
    note_question: Box<[u8]>,
    scripts: Scripts,
    requests: Entries,
    /// Requests that must reach the server and were answered with an error, because the server may be a
    /// replica or busy for now. One of them is tried again now and then, and all of them when that succeeds.
    refused: Entries,
    probe_at: Moment,
    /// When the server has been silent for long enough to be given up. Only meaningful while an answer is
    /// awaited.
    silent_until: Option<Moment>,
    /// The memory in use for data that was sent and that the socket has not taken yet.
    outbox_bytes: usize,
    /// How long the last answer took.
    round_trip_us: Option<i64>,
    /// Whether the server forwards messages that are published to our channel.
    subscription: Subscription,
    /// Whether the last release found a waiter.
    expects_waiters: bool,
    /// The state of the numbers that the server draws, and the one that was logged last.
    numbers: Numbers,
    told_numbers: Numbers,
    /// How many attempts to take a lock were granted since the last attempt that was not.
    granted: u32,
    /// How many requests were moved into the outbox since the last write to the socket.
    unwritten: usize,
}

/// A request that was answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) kind: Kind,
    /// The ticket that waited for the answer, if any.
    pub(crate) ticket: Option<OpId>,
    pub(crate) answer: Answer,
    /// When the request was sent at the latest, and whether the answer claims that a lock is held.
    pub(crate) sent_at: Moment,
    pub(crate) claims: bool,
}

impl Queue {
    /// The queue of the server at this index in the list.
    pub(crate) fn new(server: usize, rules: &Arc<Rules>, lasting: &Arc<Lasting>) -> Self {
        let (scripts, requests, refused) = Default::default();
        let encoder = Encoder::with_prefix(&lasting.prefix);
        let note_question = guard::read(&lasting.prefix).into();
        Self {
            server,
            rules: Arc::clone(rules),
            process: None,
            guard: Guard::default(),
            lasting: Arc::clone(lasting),
            reading: None,
            last_note: None,
            encoder,
            note_question,
            scripts,
            requests,
            refused,
            probe_at: Moment::NEVER,
            silent_until: None,
            outbox_bytes: 0,
            round_trip_us: None,
            subscription: Subscription::None,
            expects_waiters: false,
            numbers: Numbers::default(),
            told_numbers: Numbers::default(),
            granted: 0,
            unwritten: 0,
        }
    }

    /// Puts a request in the queue. A ticket is given if a call waits for the answer.
    pub(crate) fn push(&mut self, request: &Arc<Request>, ticket: Option<OpId>, now: Moment) {
        let is_required = request.must_reach(self.server);
        if !self.is_full() || (is_required && !self.is_crammed()) {
            let keep_until = is_required.then(|| now.plus_ms(request.ttl_ms()));
            let request = Arc::clone(request);
            self.requests.push(Entry::new(request, ticket, now, keep_until));
        }
    }

    /// Stops waiting for this ticket's answer. A request that was not sent yet is never sent, unless it must
    /// reach the server. Returns when it was sent, if it was.
    pub(crate) fn abandon(&mut self, ticket: OpId) -> Option<Moment> {
        self.requests
            .drop_unsent(|entry| entry.ticket == Some(ticket) && entry.keep_until.is_none());
        let (entry, was_sent) = self.requests.find(ticket)?;
        entry.ticket = None;
        was_sent.then(|| entry.first_sent_at())
    }

    /// When the request was sent whose answer this ticket waits for, if it was sent.
    pub(crate) fn sent_at(&self, ticket: OpId) -> Option<Moment> {
        self.requests
            .sent()
            .rev()
            .find(|entry| entry.ticket == Some(ticket))
            .map(Entry::first_sent_at)
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.requests.unsent_count() > 0
    }

    /// The server has answered something outside this queue, after so many microseconds.
    pub(crate) fn note_round_trip(&mut self, us: i64) {
        self.round_trip_us = Some(us);
    }

    /// How long the last answer took, from sending to reading, in microseconds.
    pub(crate) fn round_trip_us(&self) -> Option<i64> {
        self.round_trip_us
    }

    /// Whether there is nothing to send, to send again, or to wait for.
    pub(crate) fn is_done(&self) -> bool {
        self.length() == 0
    }

    /// The number of replies to the oldest request.
    pub(crate) fn replies_of_oldest(&self) -> usize {
        self.requests.oldest_sent().map_or(0, Entry::replies)
    }

    /// The next request whose replies have all arrived, if there is one.
    pub(crate) fn next_settled(
        &mut self,
        inbox: &mut Inbox,
        capabilities: &mut Capabilities,
        now: Moment,
    ) -> Result<Option<Settled>, CloseReason> {
        let usual = self.next_usual(inbox, now);
        if !matches!(usual, Ok(None)) {
            return usual;
        }
        self.next_unusual(inbox, capabilities, now)
    }

    /// The same for any replies.
    ///
    /// Never inlined, because the usual replies would then need all of its memory.
    #[inline(never)]
    fn next_unusual(
        &mut self,
        inbox: &mut Inbox,
        capabilities: &mut Capabilities,
        now: Moment,
    ) -> Result<Option<Settled>, CloseReason> {
        loop {
            let Some(oldest) = self.requests.oldest_sent() else {
                // Nothing is owed, so any received data is an error.
                return match inbox.has_surplus()? {
                    true => Err(ProtocolError::Unwanted.into()),
                    false => Ok(None),
                };
            };
            let (own, subscribes) = (oldest.replies(), oldest.subscribes);
            let rest = self.rest_of_group().map(Entry::replies).sum::<usize>();
            if !inbox.has_replies(own + rest, subscribes)? {
                return Ok(None);
            }
            if rest > 0 {
                self.read_ahead(inbox, own + rest, now);
            }
            if self.requests.sent_count() == 1 && inbox.has_surplus()? {
                // There is one reply too many. It is unknown which of the replies is the answer.
                return Err(ProtocolError::Unwanted.into());
            }
            if let Some(settled) = self.settle(inbox.take_replies(own), now)? {
                return Ok(Some(settled));
            }
            // The server has a special command that this user may not use. If the request goes by hash, the
            // server only lacks the text of the script.
            if let Some(entry) = self.requests.unsent().next_back().filter(|it| !it.goes_by_hash) {
                *capabilities = entry.request.after_refusal(*capabilities, &entry.form);
            }
        }
    }

    /// Handles the replies to the oldest request. Returns nothing if the request must be sent once more. That
    /// happens if it used a command that this user may not use after all. It is then sent in the form that
    /// all servers know. It also happens if the server needs the text of the script.
    ///
    /// Never inlined, because the compiler would then keep all values of both functions in memory.
    #[inline(never)]
    fn settle(
        &mut self,
        replies: &mut Vec<Value>,
        now: Moment,
    ) -> Result<Option<Settled>, CloseReason> {
        let mut entry = self.requests.take_sent().ok_or(ProtocolError::Unwanted)?;
        let answer = self.answer(&entry, replies, now);
        self.conclude(&mut entry, answer, now)
    }

    /// The oldest request, which was taken out, has this answer. Returns nothing if it must be sent once more.
    ///
    /// Inlined, because the answer would otherwise be copied once more.
    #[inline(always)]
    fn conclude(
        &mut self,
        entry: &mut Entry,
        answer: Result<Answer, CloseReason>,
        now: Moment,
    ) -> Result<Option<Settled>, CloseReason> {
        let answer = self.take_in(entry, answer, now)?;
        // A request that may set a key is sent once more only while a call waits for it. Otherwise a release
        // may be queued behind it.
        let may_go_again = entry.request.effect() == KeyEffect::Undoes || entry.ticket.is_some();
        entry.goes_by_hash = self.scripts.wants_text(entry, &answer);
        let is_of_the_form =
            entry.form.is_special && matches!(&answer, Answer::Failed(it) if it.is_of_the_form());
        if may_go_again && (entry.goes_by_hash || is_of_the_form) {
            entry.is_again = true;
            self.requests.push(entry.renew());
            return Ok(None);
        }
        Ok(Some(self.finish(entry, answer, now)))
    }

    /// The oldest request, which was taken out, has this answer. If there is none, the request is put back.
    #[inline(always)]
    fn take_in<T>(
        &mut self,
        entry: &mut Entry,
        answer: Result<T, CloseReason>,
        now: Moment,
    ) -> Result<T, CloseReason> {
        self.count_reading();
        if answer.is_err() {
            self.requests.put_back_sent(entry.renew());
            return answer;
        }
        self.round_trip_us = Some(now.us_since(entry.since));
        if self.requests.sent_count() == 0 {
            self.silent_until = None;
        }
        answer
    }

    /// The request needs not be sent once more: tells whoever wants to know what this answer means.
    #[inline(always)]
    fn finish(&mut self, entry: &mut Entry, answer: Answer, now: Moment) -> Settled {
        entry.request.note(self.server, &answer, now);
        let (kind, ticket, sent_at) = (entry.request.kind(), entry.ticket.take(), entry.since);
        // Changed where it is, because it is long.
        let mut settled = Settled { kind, ticket, answer, sent_at, claims: false };
        let answer = &mut settled.answer;
        self.count_grants(entry, answer);
        self.vote(entry, answer, now);
        settled.claims = entry.request.claims(answer);
        if entry.request.undoes() {
            if entry.is_repeated && matches!(answer, Answer::Absent) {
                *answer = Answer::AbsentOrReleased;
            }
            self.retry(entry, answer, now);
        }
        settled
    }
}

/// The replies that nearly every request gets, told by their bytes: it has done what was asked, and the server's note is
/// the same as before. All other replies are read as values ([`Queue::settle`]).
struct Usual {
    /// How many bytes they have.
    length: usize,
    /// When the key ends, and the server's time in microseconds.
    end_ms: Option<i64>,
    time_us: Option<i64>,
}

impl Queue {
    /// The next request, if it and those that share its reading have the usual replies, and all of these have arrived.
    #[inline(always)]
    fn next_usual(
        &mut self,
        inbox: &mut Inbox,
        now: Moment,
    ) -> Result<Option<Settled>, CloseReason> {
        let Some(bytes) = inbox.unread().filter(|it| !it.is_empty()) else { return Ok(None) };
        let Some(usual) = self.requests.oldest_sent().and_then(|it| self.usual(it, bytes)) else {
            return Ok(None);
        };
        if self.requests.sent_count() == 1 && usual.length < bytes.len() {
            // It may be a push message, or one reply too many.
            return Ok(None);
        }
        if !self.read_usual(&usual, bytes, now) {
            return Ok(None);
        }
        inbox.skip(usual.length);
        let Some(mut entry) = self.requests.take_sent() else { return Ok(None) };
        // The usual replies of a release name no waiter.
        self.expects_waiters &= !entry.request.wakes();
        let learnt = self.learn(&entry, &Answer::Done, now);
        self.take_in(&mut entry, learnt, now)?;
        if let Some(end_ms) = usual.end_ms {
            self.note_end(&entry, end_ms, now);
        }
        Ok(Some(self.finish(&mut entry, Answer::Done, now)))
    }

    /// Reads the usual replies to a request. Returns nothing if they are others, or incomplete.
    fn usual(&self, entry: &Entry, bytes: &[u8]) -> Option<Usual> {
        let mut rest = entry.usual()?.strip_from(bytes)?;
        let (mut end_ms, mut time_us) = (None, None);
        if entry.form.tells_end {
            let (end, length) = simple_reply::number(rest).filter(|it| it.0 >= 0)?;
            rest = &rest[length..];
            end_ms = Some(end);
        } else if entry.form.replies > 1 {
            return None;
        }
        if entry.looks {
            rest = rest.strip_prefix(b":0\r\n")?;
        }
        if entry.reads {
            let known = self.last_note.as_ref().filter(|it| !it.reply.is_empty())?;
            rest = rest.strip_prefix(&*known.reply)?;
        }
        if entry.reads_clock {
            let (us, length) = simple_reply::time_us(rest)?;
            rest = &rest[length..];
            time_us = Some(us);
        }
        Some(Usual { length: bytes.len() - rest.len(), end_ms, time_us })
    }

    /// Takes note of what was read behind the oldest request, or behind a later one for both. Returns whether the replies
    /// are the usual ones up to there.
    fn read_usual(&mut self, oldest: &Usual, bytes: &[u8], now: Moment) -> bool {
        let behind = self.requests.oldest_sent().and_then(|it| it.read_behind);
        let Some(behind) = behind.filter(|_| self.reading.is_none()) else { return true };
        let (mut length, mut time_us) = (oldest.length, oldest.time_us);
        for entry in self.requests.sent().skip(1).take(behind.into()) {
            let Some(usual) = self.usual(entry, &bytes[length..]) else { return false };
            length += usual.length;
            time_us = usual.time_us;
        }
        let Some(carrier) = self.requests.sent_at(behind.into()) else { return false };
        if let Some(us) = time_us {
            self.note_clock(carrier.written_at, us.saturating_mul(US), US, now);
        }
        self.reading = Some(Reading { left: usize::from(behind) + 1, is_forbidden: false });
        true
    }
}

/// The approximate size of a request on the wire.
const USUAL_BYTES: usize = 256;

/// How the waiting requests are written.
impl Queue {
    /// Moves the waiting requests into the outbox. From then on they count as sent; see
    /// [`Self::note_written`].
    pub(crate) fn send(&mut self, outbox: &mut Vec<u8>, capabilities: Capabilities, now: Moment) {
        outbox.reserve(self.requests.unsent_count() * USUAL_BYTES);
        self.scripts.begin_write();
        let capabilities = capabilities.expecting(self.expects_waiters);
        let leaves_out_ends = self.leaves_out_ends();
        // Taken out, because what is written also changes what is known of the server.
        let mut requests = mem::take(&mut self.requests);
        // A caller that waits for the answer must get one, even if its thread did not run for a while after it asked.
        requests.drop_unsent(|entry| entry.ticket.is_none() && entry.is_over(now));
        let mut group = Group::default();
        while let Some(entry) = requests.next_to_send() {
            if entry.request.needs_pushes() && group.length > 0 {
                group.read_note(&mut requests, &self.note_question, outbox);
                continue;
            }
            let capabilities = match leaves_out_ends && entry.request.may_leave_out_end() {
                true => capabilities.without_end(),
                false => capabilities,
            };
            self.write(entry, outbox, capabilities, now);
            entry.note_sent(now);
            entry.written_at = now;
            group.add(entry);
            requests.note_sent();
            self.unwritten += 1;
            if group.is_full() {
                group.read_note(&mut requests, &self.note_question, outbox);
            }
        }
        group.read_note(&mut requests, &self.note_question, outbox);
        self.requests = requests;
    }

    /// The socket was given the contents of the outbox. `outbox_bytes` is the size of the buffer for data
    /// that the socket did not take. The requests count as sent from now on. This thread may not have run for
    /// a while since it last read the clock, and that time must not count against the server. Returns the
    /// number of these requests.
    pub(crate) fn note_written(
        &mut self,
        outbox_bytes: usize,
        clock: impl FnOnce() -> Moment,
    ) -> u64 {
        self.outbox_bytes = outbox_bytes;
        let written = mem::take(&mut self.unwritten);
        if written == 0 {
            return 0;
        }
        let now = clock();
        let mut longest_ms = 0;
        for entry in self.requests.latest_sent(written) {
            entry.note_sent(now);
            longest_ms = longest_ms.max(entry.request.ttl_ms());
        }
        self.bear_silence(longest_ms, now);
        written as u64
    }
}

/// The maximum number of grants that share a reading, and the maximum number of requests from the first of
/// these grants to the reading. The caller with the first grant waits for the replies to all of them. Redis
/// reads 16 KiB at once and answers all requests in it together.
const GRANTS_MAX: usize = 8;
const LENGTH_MAX: usize = 16;

/// After so many granted attempts in a row, the next ones are expected to be granted, too.
const GRANTED_LEAST: u32 = 8;

/// In nanoseconds.
const US: i64 = 1_000;

/// Requests that share a reading, while they are written.
#[derive(Default)]
struct Group {
    /// The number of requests since the first one whose grant depends on the note, and how many of them
    /// depend on it.
    length: usize,
    grants: usize,
    /// Whether the clock must be read as well, because the answer to one of the requests does not show it.
    reads_clock: bool,
}

/// How the server's note of its own memory is read: once for several requests that are sent in one write.
///
/// A note that is read some requests after a grant vouches for that grant as well as a note that is read
/// right behind it. If the server loses its memory in between, it has another note, and all grants before the
/// reading are no votes. The same holds for the clock: a step before the reading shows in it.
///
/// Several acquires in one write usually come from a program with many free locks. Asking when each key ends
/// would cost the server as much as half an acquire. So the question is left out until an acquire is refused.
impl Group {
    /// Adds a request that was written behind the others.
    fn add(&mut self, entry: &Entry) {
        let is_guarded = entry.read_behind.is_some();
        if is_guarded || self.length > 0 {
            self.length += 1;
            self.grants += usize::from(is_guarded);
            let leaves = entry.request.effect() == KeyEffect::Leaves;
            self.reads_clock |= is_guarded && leaves && !entry.form.tells_end;
        }
    }

    fn is_full(&self) -> bool {
        self.grants == GRANTS_MAX || self.length == LENGTH_MAX
    }

    /// Reads the note behind the requests that were written last, if a grant depends on it. Another group begins.
    fn read_note(&mut self, requests: &mut Entries, question: &[u8], outbox: &mut Vec<u8>) {
        if self.length == 0 {
            return;
        }
        let Self { length, reads_clock, .. } = mem::take(self);
        for (behind, entry) in (0..).zip(requests.latest_sent(length)) {
            if behind == 0 {
                (entry.reads, entry.reads_clock) = (true, reads_clock);
                outbox.extend_from_slice(question);
                outbox.extend_from_slice(if reads_clock { TIME } else { b"" });
            }
            entry.read_behind = entry.read_behind.map(|_| behind);
        }
    }
}

impl Queue {
    /// Whether the acquires that wait to be sent do not ask when their keys end. That is so if there are
    /// several and none was refused lately.
    fn leaves_out_ends(&self) -> bool {
        if self.granted < GRANTED_LEAST || self.requests.unsent_count() < 2 {
            return false;
        }
        let attempts = self.requests.unsent().filter(|entry| entry.request.may_leave_out_end());
        attempts.take(2).count() == 2
    }

    /// A request was answered.
    fn count_grants(&mut self, entry: &Entry, answer: &Answer) {
        if entry.request.is_attempt() {
            self.granted = if answer.is_grant() { self.granted.saturating_add(1) } else { 0 };
        }
    }

    /// The requests behind the oldest one whose replies must also arrive before the oldest can be settled.
    fn rest_of_group(&self) -> impl Iterator<Item = &Entry> {
        let behind = self.requests.oldest_sent().and_then(|entry| entry.read_behind);
        let count = behind.filter(|_| self.reading.is_none()).unwrap_or_default();
        (1..=usize::from(count)).filter_map(|place| self.requests.sent_at(place))
    }

    /// `wanted` replies have arrived, and the oldest request needs no more. Takes out the readings that were
    /// made behind later requests.
    fn read_ahead(&mut self, inbox: &mut Inbox, wanted: usize, now: Moment) {
        let left = self.rest_of_group().count() + 1;
        let Some(carrier) = self.requests.sent_at(left - 1) else { return };
        let (reads_clock, sent) = (carrier.reads_clock, carrier.written_at);
        let mut take =
            |place: usize| inbox.found(place).map(|value| mem::replace(value, Value::Nil));
        let time = if reads_clock { take(wanted - 1) } else { None };
        let note = take(wanted - 1 - usize::from(reads_clock));
        self.note_reading(left, note, time, sent, now);
    }

    /// Takes the readings that were made behind this settled request out of its replies.
    fn read(&mut self, entry: &Entry, replies: &mut Vec<Value>, now: Moment) {
        let time = if entry.reads_clock { replies.pop() } else { None };
        let note = if entry.reads { replies.pop() } else { None };
        if entry.read_behind == Some(0) && self.reading.is_none() {
            self.note_reading(1, note, time, entry.written_at, now);
        }
    }

    fn note_reading(
        &mut self,
        left: usize,
        note: Option<Value>,
        time: Option<Value>,
        sent: Moment,
        now: Moment,
    ) {
        if let Some(Ok(Some(us))) = time.as_ref().map(time_us) {
            self.note_clock(sent, us.saturating_mul(US), US, now);
        }
        let Some(said) = note else { return };
        // A node that has given the slot away keeps nothing secret. It says nothing of its memory, and no grant counts.
        let is_forbidden = is_forbidden(&said) && !self.has_lost_slot(&said);
        self.reading = Some(Reading { left, is_forbidden });
        if self.last_note.as_ref().is_none_or(|known| known.said != said) {
            self.last_note = Some(LastNote::of(said));
        }
    }

    /// One more request is settled.
    fn count_reading(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.left -= 1;
        }
        self.reading.take_if(|reading| reading.left == 0);
    }
}

/// In nanoseconds.
const MS: i64 = 1_000_000;

/// The guard against servers that forget, which goes along with acquires. The server's note is read behind
/// each acquire, and a longer TTL is noted before it. A grant becomes a vote only if the server has known all
/// locks that may exist. The server's clock is read, too, because a server whose clock was set forward has
/// dropped locks before their time.
impl Queue {
    /// The queue of the next connection to the server. Nothing is known of that connection yet.
    pub(crate) fn next(&self) -> Self {
        Self::new(self.server, &self.rules, &self.lasting)
    }

    /// Sets what is known of the server behind the new connection: its process, and its memory.
    pub(crate) fn remember(&mut self, process: Option<RunId>, guard: Guard) {
        (self.process, self.guard) = (process, guard);
        self.lasting.lost_requests.meet(process);
    }

    /// Why the server's grants would be no votes now, whatever the TTL.
    pub(crate) fn doubt(&self, now: Moment) -> Option<Failure> {
        self.guard.doubt(self.lasting.clock.step(), now, &self.rules)
    }

    /// How far the server's clock is ahead of ours, in microseconds.
    pub(crate) fn clock_offset_us(&self, now: Moment, wall_us: i64) -> Option<i64> {
        self.lasting.clock.ahead_us(now, wall_us)
    }

    /// Whether a loss of the server's memory is not noticed for want of rights.
    pub(crate) fn is_blind(&self) -> bool {
        self.guard.is_blind()
    }

    /// What to report about the server although its grants are votes.
    pub(crate) fn caveat(&self) -> Cow<'static, str> {
        let caveat = self.guard.caveat();
        if caveat.is_empty() { self.numbers.caveat() } else { caveat }
    }

    /// The same for programs.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        if self.is_blind() {
            return Some(Trouble::NotGuarded);
        }
        (self.numbers == Numbers::Damaged).then_some(Trouble::FenceKey)
    }

    /// Writes a request and everything that goes along with it.
    fn write(
        &mut self,
        entry: &mut Entry,
        outbox: &mut Vec<u8>,
        capabilities: Capabilities,
        now: Moment,
    ) {
        (entry.raises, entry.reads, entry.reads_clock) = (false, false, false);
        entry.asks_role = entry.request.asks_for_vote() && self.guard.asks_role(now);
        if entry.asks_role {
            outbox.extend_from_slice(&ask_promotion());
            // Requests behind this one need not ask.
            self.guard.role_asked(now);
        }
        if entry.request.may_prolong()
            && let Some((life, ttl_ms)) = self.guard.raises(entry.request.ttl_ms(), &self.rules)
        {
            outbox.extend_from_slice(&raise(&self.lasting.prefix, life, ttl_ms));
            entry.raises = true;
        }
        entry.subscribes = self.subscribe(&entry.request, outbox);
        let encoded = entry.request.encoded(capabilities, &mut self.encoder);
        let form = *encoded.form();
        entry.goes_by_hash = self.scripts.put(encoded, entry, outbox);
        entry.form = form;
        self.name_memory(&entry.request, outbox);
        let look = entry.request.look_for_waiters(capabilities, &self.lasting.prefix);
        entry.looks = look.is_some();
        if let Some(look) = look {
            outbox.extend_from_slice(&look);
        }
        let is_guarded = entry.request.asks_for_vote() && self.guard.reads();
        entry.read_behind = is_guarded.then_some(0);
    }

    /// The server is a replica. So it has another server's data when it is a primary again, which it may not show by then.
    fn note_replica(&mut self, now: Moment) {
        if let Some((process, _)) = self.guard.source() {
            self.lasting.memories.note_replica(process, now);
        }
        self.guard.note_replica();
    }

    /// Whether a node of a cluster says that the slot with all keys is not at this node, or not all of it.
    fn has_lost_slot(&self, reply: &Value) -> bool {
        !self.lasting.prefix.is_empty() && has_lost_slot(reply)
    }

    fn hear_role(&mut self, told: RoleTold, now: Moment) -> Result<(), Forgotten> {
        if told == RoleTold::Replica {
            self.note_replica(now);
        }
        let is_known = self.guard.note_role(told);
        if is_known.is_err()
            && let Some((_, life)) = self.guard.source()
        {
            // The next connection may find the same note, and no promotion any more.
            self.lasting.memories.doubt(life, now);
        }
        is_known
    }

    /// The connection ends. What was read for a note behind this request holds nevertheless: the next connection may find
    /// an older one.
    fn keep_told(&mut self, entry: &Entry, now: Moment) {
        let is_read = self.reading.is_some() && entry.read_behind.is_some();
        let note = self.last_note.as_ref().filter(|_| is_read).and_then(|it| it.note.as_ref());
        let _ = self.guard.learn(note, &self.lasting.memories, now, &self.rules);
    }

    /// The meaning of the replies, received at `now`. They are the replies to the request, and what was read
    /// of the server's memory and clock.
    fn answer(
        &mut self,
        entry: &Entry,
        replies: &mut Vec<Value>,
        now: Moment,
    ) -> Result<Answer, CloseReason> {
        if replies.iter().any(|it| self.has_lost_slot(it)) {
            return Err(CloseReason::SlotMoved);
        }
        let is_known = match entry.asks_role {
            true => self.hear_role(RoleTold::of(&replies.remove(0)), now),
            false => Ok(()),
        };
        if entry.raises && is_forbidden(&replies.remove(0)) {
            self.guard.leave_out_notes();
        }
        if entry.subscribes {
            self.note_subscription(&replies.remove(0))?;
        }
        self.read(entry, replies, now);
        if let Err(forgotten) = is_known {
            self.keep_told(entry, now);
            return Err(forgotten.into());
        }
        let waiters = if entry.looks { replies.pop() } else { None };
        let end_ms = match replies.last() {
            Some(&Value::Int(end_ms)) if entry.form.tells_end => Some(end_ms),
            _ => None,
        };
        let answer =
            entry.request.answer(entry.form.wakes, replies).ok_or(ProtocolError::Unwanted)?;
        let answer = self.note_waiters(entry, waiters.as_ref(), answer);
        self.judge(entry, answer, end_ms, now)
    }

    /// What the answer means with what is known of the server: whether it counts, and what it shows of the server. Its key
    /// ends at `end_ms` by the server's clock, if the answer tells that.
    fn judge(
        &mut self,
        entry: &Entry,
        answer: Answer,
        end_ms: Option<i64>,
        now: Moment,
    ) -> Result<Answer, CloseReason> {
        if entry.request.needs_pushes()
            && let Some(failure) = self.unheard()
        {
            return Ok(Answer::Failed(failure));
        }
        self.learn(entry, &answer, now)?;
        match (end_ms, &answer) {
            // A key that was just set ends one TTL after the time on the server's clock.
            (Some(end_ms @ 0..), Answer::Done) => self.note_end(entry, end_ms, now),
            // The key has expired at this very moment. That says nothing reliable about the clock, and nobody
            // holds the lock on this server.
            (Some(_), Answer::Done) => return Ok(Answer::Absent),
            (Some(end_ms @ 0..), &Answer::Foreign { .. } | &Answer::Shared { .. }) => {
                let shown_ms = self.lasting.clock.shown_ms(now);
                let left_ms = shown_ms.map(|it| end_ms.saturating_sub(it).max(0));
                return Ok(match answer {
                    Answer::Shared { readers, .. } => Answer::Shared { readers, left_ms },
                    _ => Answer::Foreign { left_ms },
                });
            }
            _ => {}
        }
        Ok(answer)
    }

    /// Learns from an answer, and from what was read for it, which memory and which role the server has.
    #[inline(always)]
    fn learn(&mut self, entry: &Entry, answer: &Answer, now: Moment) -> Result<(), CloseReason> {
        match self.reading.as_ref().filter(|_| entry.read_behind.is_some()) {
            Some(reading) if reading.is_forbidden => self.guard.go_blind(),
            Some(_) => {
                let note = self.last_note.as_ref().and_then(|it| it.note.as_ref());
                let memories = &self.lasting.memories;
                match answer.is_grant() {
                    true => self.guard.check(note, memories, now, &self.rules)?,
                    false => self.guard.learn(note, memories, now, &self.rules)?,
                }
            }
            None => {}
        }
        if answer.is_grant() {
            self.guard.note_primary(entry.written_at);
        } else if matches!(answer, Answer::Failed(it) if it.is_of_a_replica()) {
            self.note_replica(now);
        }
        Ok(())
    }

    /// The key that was just set ends then by the server's clock.
    fn note_end(&self, entry: &Entry, end_ms: i64, now: Moment) {
        let shown = end_ms.saturating_sub(entry.request.ttl_ms()).saturating_mul(MS);
        self.note_clock(entry.written_at, shown, MS, now);
    }

    /// The server's clock has shown at least `shown` and less than `shown` plus `grain`, both in nanoseconds.
    fn note_clock(&self, sent: Moment, shown: i64, grain: i64, heard: Moment) {
        if let Some((process, life)) = self.guard.source() {
            let showing = Showing { shown, grain, sent, heard };
            self.lasting.clock.note((process, Some(life)), &showing, self.rules.drift());
        }
    }

    /// The answer for counting votes: a grant may be no vote.
    #[inline(always)]
    fn vote(&mut self, entry: &Entry, answer: &mut Answer, now: Moment) {
        if !entry.request.asks_for_vote() || !answer.is_grant() {
            return self.note_refusal_of_numbers(&entry.request, answer);
        }
        let (ttl_ms, step) = (entry.request.ttl_ms(), self.lasting.clock.step());
        match self.guard.objection(ttl_ms, step, entry.since, now, &self.rules) {
            Some(objection) => *answer = Answer::Failed(objection),
            None => self.vote_of_numbers(entry, answer, now),
        }
    }
}

/// How long a server must have been without its numbers, although they could be restored, before its clock stands for
/// other servers that cannot be read. A connection that has died unnoticed is replaced in this time, so those servers
/// are down, and not only slow.
const UNREAD_MS: i64 = 2_000;

/// What a connection knows of the numbers that its server draws as fencing tokens. The numbers belong to a memory of
/// the server, as locks do. A server that has lost its numbers has no vote for a lock with a fencing token, although it
/// has one for any other lock.
impl Queue {
    /// Tells the server which memory its numbers must belong to. The request is at the end of the outbox. A server whose
    /// note is not read draws numbers whatever they belong to.
    fn name_memory(&self, request: &Request, outbox: &mut [u8]) {
        if request.names_memory()
            && let Some((_, life)) = self.guard.source()
        {
            name_memory(life, outbox);
        }
    }

    /// The new state of the server's numbers, if it has changed since the last call.
    #[inline]
    pub(crate) fn news_of_numbers(&mut self) -> Option<Numbers> {
        // Nearly always. To compare all that the states may contain takes longer.
        if matches!(self.told_numbers, Numbers::Known) && matches!(self.numbers, Numbers::Known) {
            return None;
        }
        let is_new = self.told_numbers != self.numbers;
        self.told_numbers = self.numbers;
        is_new.then_some(self.numbers)
    }

    /// Notes why a server has given no answer about its numbers.
    fn note_refusal_of_numbers(&mut self, request: &Request, answer: &Answer) {
        match answer {
            Answer::Failed(Failure::NoFences) => self.numbers = Numbers::Damaged,
            Answer::Failed(Failure::Refused(refusal))
                if request.reads_fences() && refusal.is_of_the_form() =>
            {
                self.numbers = Numbers::Forbidden(*refusal);
            }
            _ => {}
        }
    }

    /// The answer about numbers, for counting votes.
    #[inline]
    fn vote_of_numbers(&mut self, entry: &Entry, answer: &mut Answer, now: Moment) {
        match *answer {
            Answer::Granted { .. } => self.numbers = Numbers::Known,
            Answer::GrantedByClock { .. } => self.numbers = Numbers::ByClock,
            Answer::Unfenced { ago_ms } => {
                self.numbers = Numbers::Lost;
                let restored_at = self.to_restore_at(ago_ms, entry.request.ttl_ms(), now);
                let left_s = (now.ms_until(restored_at) + 999) / 1_000;
                *answer = Answer::Failed(Failure::Unfenced { left_s });
            }
            Answer::Fences(fences) => *answer = self.vote_of_fences(entry, fences, now),
            _ => {}
        }
    }

    fn vote_of_fences(&mut self, entry: &Entry, fences: Fences, now: Moment) -> Answer {
        self.numbers = match fences.state {
            _ if self.guard.noted().is_none() => Numbers::Known,
            FencesState::Whole => Numbers::Known,
            FencesState::ByClock => Numbers::ByClock,
            FencesState::Lost { .. } | FencesState::ToRestore { .. } => Numbers::Lost,
        };
        let state = match fences.state {
            // The other servers are read after this one was asked.
            FencesState::Lost { ago_ms } => {
                let restored_at = self.to_restore_at(ago_ms, 0, now);
                let may_go_by_clock = entry.since >= restored_at.plus_ms(UNREAD_MS);
                match entry.since >= restored_at {
                    true => FencesState::ToRestore { may_go_by_clock },
                    false => fences.state,
                }
            }
            state => state,
        };
        match self.guard.noted() {
            Some(memory) => Answer::Fences(Fences { state, memory: Some(memory), ..fences }),
            // Without its note, nothing tells whether these numbers are all that it ever drew. It draws from them.
            None => Answer::Failed(Failure::Unfenced { left_s: 0 }),
        }
    }

    /// When the numbers may be restored that were lost so long ago: once no attempt can be under way any more for which
    /// this server drew a number before.
    fn to_restore_at(&self, ago_ms: i64, ttl_ms: i64, now: Moment) -> Moment {
        // One more, because the server's times were cut to whole milliseconds.
        now.plus_ms(1 - ago_ms).plus_ms(self.rules.wait_ms(ttl_ms) + self.guard.lead_ms())
    }
}

/// What goes along with the first request to join a wait queue on the server: a subscription to the channel
/// that wakes us.
impl Queue {
    /// Why the server sends no push messages, if that is known.
    pub(crate) fn unheard(&self) -> Option<Failure> {
        match &self.subscription {
            Subscription::Refused(why) => Some(why.clone()),
            Subscription::None | Subscription::To(_) => None,
        }
    }

    /// The token of our channel, if we have subscribed to it.
    pub(crate) fn channel(&self) -> Option<Token> {
        match &self.subscription {
            Subscription::To(token) => Some(*token),
            Subscription::None | Subscription::Refused(_) => None,
        }
    }

    /// Subscribes, if the request needs that and this connection has not subscribed yet. Returns whether it
    /// subscribes.
    fn subscribe(&mut self, request: &Request, outbox: &mut Vec<u8>) -> bool {
        if !request.needs_pushes() || self.subscription != Subscription::None {
            return false;
        }
        outbox.extend_from_slice(&subscribe(request.token()));
        self.subscription = Subscription::To(*request.token());
        true
    }

    /// The server's reply to the subscription.
    fn note_subscription(&mut self, reply: &Value) -> Result<(), ProtocolError> {
        if let Err(why) = subscribed(reply).ok_or(ProtocolError::Unwanted)? {
            self.subscription = Subscription::Refused(why);
        }
        Ok(())
    }

    /// A release was answered, and the reply may report a waiter. If it does and the release did not wake the
    /// waiter, a request to wake it is queued now.
    fn note_waiters(&mut self, entry: &Entry, waiters: Option<&Value>, answer: Answer) -> Answer {
        if !entry.request.wakes() {
            return answer;
        }
        let is_waited_for = entry.looks && matches!(waiters, Some(Value::Int(1..)));
        self.expects_waiters = is_waited_for || answer == Answer::Woke;
        if !is_waited_for || answer != Answer::Done {
            return answer;
        }
        let late = Arc::new(entry.request.wake_late());
        self.requests.push(Entry::new(late, None, entry.since, None));
        Answer::Woke
    }

    /// The connection is gone, and so is its subscription.
    fn forget_subscription(&mut self) {
        drop(mem::take(&mut self.subscription));
        self.expects_waiters = false;
    }
}

/// The minimum time to wait for an answer before the connection is given up as dead.
const SILENCE_MIN_MS: i64 = 5_000;

/// How long an answer must be owed before another connection is opened: at least so many milliseconds, and at
/// least so many reply timeouts.
const OVERDUE_MIN_MS: i64 = 1_000;
const OVERDUE_TIMEOUTS: i64 = 4;

/// How long an answer is waited for before another connection is opened, and before this one is given up.
impl Queue {
    /// When the oldest unanswered request was sent.
    pub(crate) fn owes_since(&self) -> Option<Moment> {
        self.requests.oldest_sent().map(|entry| entry.since)
    }

    /// When something is due next: giving up a silent server, probing it, or opening another connection.
    pub(crate) fn next_due(&self, policy: &Policy) -> Moment {
        match self.requests.sent_count() {
            0 => self.probe_at,
            _ => {
                let give_up_at = self.silent_until.unwrap_or(Moment::NEVER);
                give_up_at.min(self.probe_at).min(self.overdue_at(policy))
            }
        }
    }

    /// When the oldest request has been unanswered for so long that another connection is opened.
    pub(crate) fn overdue_at(&self, policy: &Policy) -> Moment {
        let Some(oldest) = self.requests.oldest_sent() else { return Moment::NEVER };
        let reply_ms = policy.reply_ms(oldest.request.ttl_ms());
        let most_ms = reply_ms.saturating_mul(OVERDUE_TIMEOUTS).max(OVERDUE_MIN_MS);
        oldest.since.plus_ms(most_ms)
    }

    /// A request with this TTL is sent now.
    fn bear_silence(&mut self, ttl_ms: i64, now: Moment) {
        let enough = now.plus_ms(ttl_ms.max(SILENCE_MIN_MS));
        self.silent_until = self.silent_until.max(Some(enough));
    }

    /// The server has sent something, so the connection is alive.
    pub(crate) fn hear(&mut self, now: Moment) {
        let enough = now.plus_ms(SILENCE_MIN_MS);
        self.silent_until = self.silent_until.max(Some(enough));
    }

    /// When a silent server is given up: once the longest TTL in flight is over.
    pub(crate) fn give_up_at(&self) -> Option<Moment> {
        if self.requests.sent_count() == 0 { None } else { self.silent_until }
    }

    /// Whether the server has been silent for so long that it is given up.
    pub(crate) fn is_silent(&self, now: Moment) -> bool {
        self.give_up_at().is_some_and(|at| now >= at)
    }
}

/// How often a server is probed that refuses requests which must reach it, and how many more requests are
/// sent with each that succeeds.
const PROBE_MS: i64 = 200;
const RESENT_MAX: usize = 8;

/// Requests that must reach a server which refuses them for now. One is tried again now and then, and all of
/// them when that succeeds.
impl Queue {
    /// Tries one of the refused requests again, if that is due.
    pub(crate) fn probe(&mut self, now: Moment) {
        if now >= self.probe_at {
            self.refused.drop_unsent(|refused| !refused.is_worth_sending(now));
            self.requests.take_from(&mut self.refused, 1);
            self.probe_at = Moment::NEVER;
            self.plan_probe(now);
        }
    }

    /// A request that undoes another was answered. If it was refused, it is kept for another try, as long as
    /// it must reach the server. Otherwise more of the refused requests are sent.
    fn retry(&mut self, entry: &mut Entry, answer: &Answer, now: Moment) {
        match answer {
            Answer::Failed(_) if entry.is_worth_sending(now) => self.refused.push(entry.renew()),
            Answer::Failed(_) => {}
            // Nearly always. No probe is planned then.
            _ if self.refused.is_empty() => return,
            _ => self.requests.take_from(&mut self.refused, RESENT_MAX),
        }
        self.plan_probe(now);
    }

    fn plan_probe(&mut self, now: Moment) {
        if self.refused.is_empty() {
            self.probe_at = Moment::NEVER;
        } else if self.probe_at == Moment::NEVER {
            self.probe_at = now.plus_ms(PROBE_MS);
        }
    }
}

/// The maximum number of waiting requests before no more are accepted, and the maximum including later
/// requests that must reach the server.
const REQUESTS_MAX: usize = 1024;
const REQUIRED_MAX: usize = 16 * REQUESTS_MAX;

/// The same bounds in bytes. They include requests that were sent and that the socket has not taken yet. 64
/// callers with the longest names may ask at once, and names of 1,000 bytes reach the other bound first.
const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;
const REQUIRED_BYTES_MAX: usize = 4 * REQUEST_BYTES_MAX;

/// Every queue is bounded, in requests and in bytes.
impl Queue {
    /// Whether so many requests are unanswered, sent or not, that no more are accepted.
    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= REQUESTS_MAX || self.bytes() >= REQUEST_BYTES_MAX
    }

    /// Whether there is no room even for another request that must reach the server. Such a request is then
    /// not sent to this server, and what it should undo ends with its TTL.
    fn is_crammed(&self) -> bool {
        self.length() >= REQUIRED_MAX || self.bytes() + self.refused.bytes() >= REQUIRED_BYTES_MAX
    }

    /// The bytes of all unanswered requests, and the memory for data that the socket has not taken yet.
    fn bytes(&self) -> usize {
        self.requests.bytes() + self.outbox_bytes
    }

    fn length(&self) -> usize {
        self.requests.len() + self.refused.len()
    }
}

/// What happens to a queue when its connection is lost, or when another one is opened beside it. Requests
/// that must reach the server go over the next connection, in the right order.
impl Queue {
    /// Until when something may exist on the server that an unanswered request has left, if the server
    /// executed the request when it was sent.
    pub(crate) fn guarded_until(&self) -> Option<Moment> {
        let leaves = |entry: &&Entry| entry.request.effect() == KeyEffect::Leaves;
        let ends = self.requests.sent().filter(leaves);
        ends.map(|entry| entry.since.plus_ms(entry.request.ttl_ms())).max()
    }

    /// Whether an unanswered request may leave what this request undoes, or undo what this request does, and no
    /// undoing request is behind it yet.
    pub(crate) fn wants(&self, undoing: &Request) -> bool {
        let matters = |entry: &&Entry| {
            let request = &entry.request;
            let is_same = request.token() == undoing.token();
            is_same && request.effect() == KeyEffect::Undoes || undoing.may_be_undone_by(request)
        };
        let mut latest_first = self.requests.iter().rev();
        latest_first.find(matters).is_some_and(|entry| undoing.may_be_undone_by(&entry.request))
    }

    /// The connection is gone, so no request in the queue will be answered. Tells the waiting tickets, with
    /// whether their request was sent. Keeps the requests that must reach the server for the next connection.
    pub(crate) fn fail(&mut self, mut tell: impl FnMut(OpId, bool)) {
        (self.silent_until, self.probe_at) = (None, Moment::NEVER);
        (self.outbox_bytes, self.unwritten) = (0, 0);
        self.reading = None;
        self.scripts = Scripts::default();
        self.forget_subscription();
        let (refused, requests) = (mem::take(&mut self.refused), mem::take(&mut self.requests));
        self.give_up_setters(&requests);
        let sent = refused.len() + requests.sent_count();
        for (nth, mut entry) in refused.into_iter().chain(requests).enumerate() {
            if let Some(ticket) = entry.ticket.take() {
                tell(ticket, nth < sent);
            }
            if entry.keep_until.is_some() {
                self.requests.push(entry);
            }
        }
    }

    /// Requests that may set a key are dropped. Those that were sent may still be carried out.
    fn give_up_setters(&self, requests: &Entries) {
        let setter = |entry: &Entry| entry.request.setter(self.server);
        requests.unsent().filter_map(setter).for_each(|it| it.note_end());
        self.lasting.lost_requests.add(self.process, requests.sent().filter_map(setter));
    }

    /// Copies the requests that must reach the server from the queue of a connection that owes answers. They
    /// go over both connections: over the other one they overtake nothing, and over this one they are
    /// executed now. The waiting calls get the answers from this connection.
    pub(crate) fn repeat_required(&mut self, other: &mut Self) {
        other.probe_at = Moment::NEVER;
        let refused = mem::take(&mut other.refused).into_iter();
        let others = other.requests.iter_mut();
        let others = others.filter(|entry| entry.keep_until.is_some()).map(Entry::hand_over);
        self.add_required(refused.chain(others));
    }

    /// Takes over the requests that must reach the server from a connection that is given up. Tells the
    /// waiting tickets, as [`Self::fail`] does.
    pub(crate) fn take_required(&mut self, mut other: Self, tell: impl FnMut(OpId, bool)) {
        other.fail(tell);
        self.add_required(other.requests.into_iter());
    }

    /// Adds requests of another connection that must reach the server. Of several waiting requests that do
    /// the same, one is enough. Otherwise their number would double with each connection that is given up.
    fn add_required(&mut self, entries: impl Iterator<Item = Entry>) {
        let what = |entry: &Entry| (entry.token(), entry.request.effect() == KeyEffect::UndoesRest);
        let mut waiting: BTreeSet<(Token, bool)> = self.requests.unsent().map(what).collect();
        for entry in entries {
            let is_new = waiting.insert(what(&entry));
            if entry.ticket.is_some() || (is_new && !self.is_crammed()) {
                self.requests.push(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests;
