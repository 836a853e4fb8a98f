//! The requests to one server, in the order in which they were made. Some wait to be sent. The others were
//! sent and wait for their replies.
//!
//! A request that was sent stays in the queue until its replies have arrived, even if nobody waits for its
//! answer any more. So a reply is never assigned to the wrong request.

mod bounds;
mod guarding;
mod numbers;
mod readings;
mod retries;
#[cfg(test)]
pub(super) mod samples;
mod sending;
mod silence;
mod subscribing;
mod succession;

use std::sync::Arc;

use redis::Value;

use super::close_reason::CloseReason;
use super::entries::{Entries, Entry};
use super::guard::{Guard, Rules};
use super::inbox::Inbox;
use super::memories::Lasting;
use super::numbers::Numbers;
use super::reading::Reading;
use super::reply::ProtocolError;
use super::scripts::Scripts;
use super::subscription::Subscription;
use super::ticket::Ticket;
use crate::command::guard::Borne;
use crate::command::identity::RunId;
use crate::command::{Answer, Capabilities, Encoder, KeyEffect, Kind, Request};
use crate::moment::Moment;

pub(super) struct Queue {
    server: usize,
    rules: Arc<Rules>,
    /// What is known of the server behind this connection: its process, and its memory.
    process: Option<RunId>,
    guard: Guard,
    /// What is known of the server beyond this connection.
    lasting: Arc<Lasting>,
    /// What was read of the server's memory for the requests that are settled next.
    reading: Option<Reading>,
    /// The note that was read last, and its meaning.
    last_note: Option<(Value, Option<Borne>)>,
    encoder: Encoder,
    scripts: Scripts,
    unsent: Entries,
    awaiting: Entries,
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
pub(super) struct Settled {
    pub(super) kind: Kind,
    /// The ticket that waited for the answer, if any.
    pub(super) ticket: Option<Ticket>,
    pub(super) answer: Answer,
}

impl Queue {
    /// The queue of the server at this index in the list.
    pub(super) fn new(server: usize, rules: &Arc<Rules>, lasting: &Arc<Lasting>) -> Self {
        let (encoder, scripts, unsent, awaiting, refused) = Default::default();
        Self {
            server,
            rules: Arc::clone(rules),
            process: None,
            guard: Guard::default(),
            lasting: Arc::clone(lasting),
            reading: None,
            last_note: None,
            encoder,
            scripts,
            unsent,
            awaiting,
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
    pub(super) fn push(&mut self, request: &Arc<Request>, ticket: Option<Ticket>, now: Moment) {
        let is_required = request.must_reach(self.server);
        if !self.is_full() || (is_required && !self.is_crammed()) {
            let keep_until = is_required.then(|| now.plus_ms(request.ttl_ms()));
            let request = Arc::clone(request);
            self.unsent.push_back(Entry::new(request, ticket, now, keep_until));
        }
    }

    /// Stops waiting for this ticket's answer. A request that was not sent yet is never sent, unless it must
    /// reach the server. Returns when it was sent, if it was.
    pub(super) fn abandon(&mut self, ticket: Ticket) -> Option<Moment> {
        self.unsent.retain_mut(|entry| {
            let is_it = entry.ticket == Some(ticket);
            if is_it {
                entry.ticket = None;
            }
            !is_it || entry.keep_until.is_some()
        });
        let entry = self.awaiting.find_mut(|entry| entry.ticket == Some(ticket))?;
        entry.ticket = None;
        Some(entry.first_sent_at())
    }

    /// When the request was sent whose answer this ticket waits for, if it was sent.
    pub(super) fn sent_at(&self, ticket: Ticket) -> Option<Moment> {
        self.awaiting
            .iter()
            .rev()
            .find(|entry| entry.ticket == Some(ticket))
            .map(Entry::first_sent_at)
    }

    /// Whether something waits to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The server has answered something outside this queue, after so many microseconds.
    pub(super) fn note_round_trip(&mut self, us: i64) {
        self.round_trip_us = Some(us);
    }

    /// How long the last answer took, from sending to reading, in microseconds.
    pub(super) fn round_trip_us(&self) -> Option<i64> {
        self.round_trip_us
    }

    /// Whether there is nothing to send, to send again, or to wait for.
    pub(super) fn is_done(&self) -> bool {
        self.length() == 0
    }

    /// The number of replies to the oldest request.
    pub(super) fn replies_of_oldest(&self) -> usize {
        self.awaiting.front().map_or(0, Entry::replies)
    }

    /// The next request whose replies have all arrived, if there is one.
    pub(super) fn next_settled(
        &mut self,
        inbox: &mut Inbox,
        capabilities: &mut Capabilities,
        now: Moment,
    ) -> Result<Option<Settled>, CloseReason> {
        loop {
            let Some(oldest) = self.awaiting.front() else {
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
            if self.awaiting.len() == 1 && inbox.has_surplus()? {
                // There is one reply too many. It is unknown which of the replies is the answer.
                return Err(ProtocolError::Unwanted.into());
            }
            if let Some(settled) = self.settle(inbox.take_replies(own), now)? {
                return Ok(Some(settled));
            }
            // The server has a special command that this user may not use. If the request goes by hash, the
            // server only lacks the text of the script.
            if let Some(entry) = self.unsent.iter().next_back().filter(|it| !it.goes_by_hash) {
                *capabilities = entry.request.after_refusal(*capabilities, entry.form, entry.wakes);
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
        let mut entry = self.awaiting.pop_front().ok_or(ProtocolError::Unwanted)?;
        let answer = self.answer(&entry, replies, now);
        self.count_reading();
        let answer = match answer {
            Ok(answer) => answer,
            Err(close_reason) => {
                self.awaiting.push_front(entry);
                return Err(close_reason);
            }
        };
        self.round_trip_us = Some(now.us_since(entry.since));
        if self.awaiting.is_empty() {
            self.silent_until = None;
        }
        // A request that may set a key is sent once more only while a call waits for it. Otherwise a release
        // may be queued behind it.
        let may_go_again = entry.request.effect() == KeyEffect::Undoes || entry.ticket.is_some();
        entry.goes_by_hash = self.scripts.wants_text(&entry, &answer);
        let is_of_the_form =
            entry.is_special && matches!(&answer, Answer::Failed(it) if it.is_of_the_form());
        if may_go_again && (entry.goes_by_hash || is_of_the_form) {
            entry.is_again = true;
            self.unsent.push_back(entry);
            return Ok(None);
        }
        entry.request.note(self.server, &answer, now);
        let (kind, ticket) = (entry.request.kind(), entry.ticket.take());
        self.count_grants(&entry, &answer);
        let answer = self.vote(&entry, answer, now);
        if entry.request.undoes() {
            let answer = match answer {
                Answer::Absent if entry.is_repeated => Answer::AbsentOrReleased,
                answer => answer,
            };
            self.retry(entry, &answer, now);
            return Ok(Some(Settled { kind, ticket, answer }));
        }
        Ok(Some(Settled { kind, ticket, answer }))
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{
        NOW, OTHER, TICKET, fresh, of_reader, of_semaphore, request, send, settle,
    };
    use super::*;
    use crate::command::Verb;

    #[test]
    fn an_abandoned_request_is_unsent_unless_it_releases() {
        let mut queue = fresh();
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        assert_eq!(queue.abandon(TICKET), None);
        assert_eq!(send(&mut queue, NOW), 0);
        queue.push(&request(Verb::Release), Some(TICKET), NOW);
        assert_eq!(queue.abandon(TICKET), None);
        assert!(send(&mut queue, NOW) > 0);
    }

    #[test]
    fn the_reply_to_an_abandoned_request_is_dropped() {
        let mut queue = fresh();
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        queue.push(&request(Verb::Acquire), Some(OTHER), NOW);
        send(&mut queue, NOW);
        assert_eq!(queue.abandon(TICKET), Some(NOW));
        let granted = settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert_eq!((granted.ticket, granted.answer), (None, Answer::Done));
        let taken = settle(&mut queue, &[Value::Nil, Value::Int(5)]).unwrap();
        assert_eq!(taken.ticket, Some(OTHER));
        assert_eq!(taken.answer, Answer::Foreign { left_ms: Some(5) });
        assert_eq!(settle(&mut queue, &[Value::Okay]), Err(ProtocolError::Unwanted.into()));
    }

    #[test]
    fn a_forbidden_release_command_is_repeated_as_a_script() {
        let mut queue = fresh();
        queue.push(&request(Verb::Release), Some(TICKET), NOW);
        let (mut command, mut script) = (Vec::new(), Vec::new());
        queue.send(&mut command, Capabilities::DELIFEQ, NOW);
        let error = redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
        assert_eq!(queue.settle(&mut vec![error.clone()], NOW), Ok(None));
        assert!(queue.has_unsent());
        queue.send(&mut script, Capabilities::default(), NOW);
        assert!(command.starts_with(b"*3") && script.starts_with(b"*5"));
        // The waiting call receives the refusal of the script, and there is no further attempt.
        let settled = settle(&mut queue, std::slice::from_ref(&error)).unwrap();
        assert_eq!(settled.ticket, Some(TICKET));
        assert!(matches!(settled.answer, Answer::Failed(_)));
        assert!(!queue.has_unsent());
    }

    /// The deleting command is refused, and the question behind it reports a waiter. Later releases must
    /// still wake waiters. The same holds when two such commands are refused.
    #[test]
    fn a_forbidden_waking_release_is_repeated_as_a_waking_script() {
        let (mut queue, mut inbox) = (fresh(), Inbox::default());
        let mut capabilities = Capabilities::WAKING_DELIFEQ;
        for ticket in [TICKET, OTHER] {
            queue.push(&request(Verb::ReleaseAndWake), Some(ticket), NOW);
        }
        queue.send(&mut Vec::new(), capabilities, NOW);
        inbox.put(&b"-NOPERM no\r\n:1\r\n".repeat(2));
        assert_eq!(queue.next_settled(&mut inbox, &mut capabilities, NOW), Ok(None));
        assert_eq!(capabilities, Capabilities::WAKING);
        let mut outbox = Vec::new();
        queue.send(&mut outbox, capabilities, NOW);
        let sent = String::from_utf8_lossy(&outbox);
        assert_eq!((sent.matches("EVAL").count(), sent.matches("r:w").count()), (2, 2), "{sent}");
        for ticket in [TICKET, OTHER] {
            let told = settle(&mut queue, &[Value::Int(2)]).unwrap();
            assert_eq!((told.ticket, told.answer), (Some(ticket), Answer::Woke));
        }
    }

    #[test]
    fn a_repeated_request_gets_no_extra_time() {
        let mut queue = fresh();
        queue.push(&request(Verb::Release), Some(TICKET), NOW);
        queue.send(&mut Vec::new(), Capabilities::DELIFEQ, NOW);
        queue.note_written(0, || NOW.plus_ms(1));
        assert_eq!(queue.sent_at(TICKET), Some(NOW.plus_ms(1)));
        let error = redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
        assert_eq!(queue.settle(&mut vec![error], NOW.plus_ms(5)), Ok(None));
        queue.send(&mut Vec::new(), Capabilities::default(), NOW.plus_ms(7));
        queue.note_written(0, || NOW.plus_ms(9));
        assert_eq!(queue.owes_since(), Some(NOW.plus_ms(9)));
        assert_eq!(queue.sent_at(TICKET), Some(NOW.plus_ms(1)));
        assert_eq!(queue.abandon(TICKET), Some(NOW.plus_ms(1)));
    }

    /// The reply 2 to a request about permits means that two were deleted. Only in the form that wakes it
    /// means that a waiter was woken.
    #[test]
    fn only_the_waking_form_reports_a_woken_client() {
        let settled = |request: Arc<Request>, capabilities| {
            let mut queue = fresh();
            queue.push(&request, Some(TICKET), NOW);
            queue.send(&mut Vec::new(), capabilities, NOW);
            settle(&mut queue, &[Value::Int(2)]).map(|it| it.answer)
        };
        let protocol_error = || Err(ProtocolError::Unwanted.into());
        let (plain, waking) = (Capabilities::PLAIN, Capabilities::WAKING);
        for (request, without) in [
            (of_reader(Verb::ReleaseAndWake), protocol_error()),
            (request(Verb::ReleaseAndWake), protocol_error()),
            (of_semaphore(Verb::ReleaseAndWake), Ok(Answer::Done)),
            (of_semaphore(Verb::ReleaseRestAndWake), Ok(Answer::Done)),
        ] {
            assert_eq!(settled(Arc::clone(&request), waking), Ok(Answer::Woke));
            assert_eq!(settled(request, plain), without);
        }
    }

    #[test]
    fn an_awaited_release_is_sent_even_late() {
        let mut queue = fresh();
        queue.push(&request(Verb::Release), Some(TICKET), NOW);
        queue.push(&request(Verb::Release), None, NOW);
        send(&mut queue, NOW.plus_ms(10_000));
        let told = settle(&mut queue, &[Value::Int(0)]).unwrap();
        assert_eq!((told.ticket, told.answer), (Some(TICKET), Answer::Absent));
        assert_eq!(settle(&mut queue, &[Value::Int(0)]), Err(ProtocolError::Unwanted.into()));
    }
}
