//! What is asked of one server, in the order in which it was asked: what waits to be sent, and what
//! was sent and waits for its replies.
//!
//! What was sent stays in the queue until its replies have come, whoever still cares: so no reply
//! ever goes to the wrong request.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use redis::Value;

use super::command::{Answer, Dialect, Pen, Request, Verb};
use super::entries::{Entries, Entry};
use super::inbox::Inbox;
use super::reply::Nonsense;
use super::{Ticket, Timeouts};
use crate::moment::Moment;
use crate::token::Token;

/// How many requests may wait before no more are taken, and how many with the releases that come
/// behind them.
const REQUESTS_MAX: usize = 1024;
const NEEDED_MAX: usize = 16 * REQUESTS_MAX;

/// The same in bytes, with those that were sent and that the socket has not taken yet. 64 callers
/// with the longest of names may ask at once, and names of 1,000 bytes reach the other bound first.
const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;
const NEEDED_BYTES_MAX: usize = 4 * REQUEST_BYTES_MAX;

/// How often a server that refuses releases is asked whether it still does, and how many more are
/// sent with each that succeeds.
const PROBE_MS: i64 = 200;
const RESENT_MAX: usize = 8;

/// How long an answer is waited for, at least, before the connection is given up as dead.
const SILENCE_MIN_MS: i64 = 5_000;

/// How long an answer is owed, at least and in reply timeouts, before another connection is made.
const OVERDUE_MIN_MS: i64 = 1_000;
const OVERDUE_TIMEOUTS: i64 = 4;

pub(super) struct Queue {
    server: usize,
    pen: Pen,
    unsent: Entries,
    awaiting: Entries,
    /// Releases that are needed and were answered with an error: the server may be a replica, or
    /// busy, for now. One of them is tried again now and then, and all when that succeeds.
    refused: Entries,
    probe_at: Moment,
    /// When so long a silence is enough; of a meaning only while something is awaited.
    silent_until: Option<Moment>,
    /// How much memory there is for what was sent and the socket has not taken yet.
    outbox_bytes: usize,
    /// How many of the requests were moved into the outbox since the socket was last written to.
    unwritten: usize,
}

/// A request that was answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) verb: Verb,
    /// Who waited for the answer, if anybody did.
    pub(super) ticket: Option<Ticket>,
    pub(super) answer: Answer,
}

impl Queue {
    /// The queue of the server at this place in the list.
    pub(super) fn new(server: usize) -> Self {
        let (pen, unsent, awaiting, refused) = Default::default();
        Self {
            server,
            pen,
            unsent,
            awaiting,
            refused,
            probe_at: Moment::NEVER,
            silent_until: None,
            outbox_bytes: 0,
            unwritten: 0,
        }
    }

    /// Whether so much was asked already, sent or not, that nothing more is.
    pub(super) fn is_full(&self) -> bool {
        let count = self.unsent.len() + self.awaiting.len();
        count >= REQUESTS_MAX || self.bytes() >= REQUEST_BYTES_MAX
    }

    /// Whether there is no room for another release either. Then it is not sent to this server, and
    /// the key ends with its TTL there.
    fn is_crammed(&self) -> bool {
        self.length() >= NEEDED_MAX || self.bytes() + self.refused.bytes() >= NEEDED_BYTES_MAX
    }

    /// Of what was asked and is not answered, and of the room for what the socket has not taken yet.
    fn bytes(&self) -> usize {
        self.unsent.bytes() + self.awaiting.bytes() + self.outbox_bytes
    }

    /// The socket was given what is in the outbox, which has so much room for what it did not take. The
    /// requests count as sent from now on: this thread may have been kept from running since it last read
    /// the clock, and that is not the server's time.
    pub(super) fn note_written(&mut self, outbox_bytes: usize, clock: impl FnOnce() -> Moment) {
        self.outbox_bytes = outbox_bytes;
        let written = mem::take(&mut self.unwritten);
        if written == 0 {
            return;
        }
        let now = clock();
        for entry in self.awaiting.iter_mut().rev().take(written) {
            entry.since = now;
            let enough = now.plus_ms(entry.request.ttl_ms().max(SILENCE_MIN_MS));
            self.silent_until = self.silent_until.max(Some(enough));
        }
    }

    /// Puts a request in the queue, for somebody who waits for the answer or for nobody.
    pub(super) fn push(&mut self, request: &Arc<Request>, ticket: Option<Ticket>, now: Moment) {
        let is_needed = request.is_needed_by(self.server);
        if !self.is_full() || (is_needed && !self.is_crammed()) {
            let keep_until = is_needed.then(|| now.plus_ms(request.ttl_ms()));
            let request = Arc::clone(request);
            let entry = Entry { request, ticket, since: now, is_native: false, keep_until };
            self.unsent.push_back(entry);
        }
    }

    /// Nobody waits for this ticket's answer any more. A request that was not sent yet never will
    /// be, unless it is a release that is needed. Returns when it was sent, if it was.
    pub(super) fn abandon(&mut self, ticket: Ticket) -> Option<Moment> {
        self.unsent.retain_mut(|entry| {
            let is_it = entry.ticket == Some(ticket);
            if is_it {
                entry.ticket = None;
            }
            !is_it || entry.keep_until.is_some()
        });
        let entry = self.awaiting.iter_mut().rev().find(|it| it.ticket == Some(ticket))?;
        entry.ticket = None;
        Some(entry.since)
    }

    /// When the request was sent whose answer this ticket waits for, if it was.
    pub(super) fn sent_at(&self, ticket: Ticket) -> Option<Moment> {
        self.awaiting.iter().rev().find(|it| it.ticket == Some(ticket)).map(|it| it.since)
    }

    /// Whether something waits to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Moves what waits to be sent into the outbox. From then on it counts as sent; see
    /// [`Self::note_written`].
    pub(super) fn send(&mut self, outbox: &mut Vec<u8>, dialect: Dialect, now: Moment) {
        while let Some(mut entry) = self.unsent.pop_front() {
            // Whoever waits for the answer, and was kept from running since it asked, is owed one.
            if entry.ticket.is_none() && entry.keep_until.is_some_and(|it| now >= it) {
                continue;
            }
            outbox.extend_from_slice(entry.request.bytes(dialect, &mut self.pen));
            entry.since = now;
            entry.is_native = entry.request.is_native(dialect);
            self.awaiting.push_back(entry);
            self.unwritten += 1;
        }
    }

    /// The oldest request was sent then, and is not answered yet.
    pub(super) fn owes_since(&self) -> Option<Moment> {
        self.awaiting.front().map(|it| it.since)
    }

    /// When the oldest request is unanswered for so long that another connection is made.
    pub(super) fn overdue_at(&self, timeouts: &Timeouts) -> Moment {
        let Some(oldest) = self.awaiting.front() else { return Moment::NEVER };
        let reply_ms = timeouts.reply_ms(oldest.request.ttl_ms());
        let most_ms = reply_ms.saturating_mul(OVERDUE_TIMEOUTS).max(OVERDUE_MIN_MS);
        oldest.since.plus_ms(most_ms)
    }

    /// Until when a key may be there that a request has set which was sent and is not answered, if it
    /// was carried out when it was sent.
    pub(super) fn guarded_until(&self) -> Option<Moment> {
        let setters = self.awaiting.iter().filter(|it| it.request.sets_the_key());
        setters.map(|it| it.since.plus_ms(it.request.ttl_ms())).max()
    }

    /// Whether what this releases may be set by a request that is not answered, and no release of it
    /// is behind that.
    pub(super) fn wants(&self, release: &Request) -> bool {
        let matters = |it: &Request| it.sets_the_key() || it.verb() == Verb::Release;
        let mut latest_first = self.unsent.iter().rev().chain(self.awaiting.iter().rev());
        let last =
            latest_first.find(|it| it.request.token() == release.token() && matters(&it.request));
        last.is_some_and(|it| it.request.sets_the_key())
    }

    /// The server was heard, so the connection is alive.
    pub(super) fn hear(&mut self, now: Moment) {
        let enough = now.plus_ms(SILENCE_MIN_MS);
        self.silent_until = self.silent_until.max(Some(enough));
    }

    /// When a server that says nothing is to be given up: once the longest TTL in flight is over.
    pub(super) fn give_up_at(&self) -> Option<Moment> {
        if self.awaiting.is_empty() { None } else { self.silent_until }
    }

    /// Whether it said nothing for so long that it is given up.
    pub(super) fn is_silent(&self, now: Moment) -> bool {
        self.give_up_at().is_some_and(|it| now >= it)
    }

    /// When [`Self::probe`] is due.
    pub(super) fn probe_at(&self) -> Moment {
        self.probe_at
    }

    /// Tries one of the refused releases again, if that is due.
    pub(super) fn probe(&mut self, now: Moment) {
        if now >= self.probe_at {
            self.refused.retain_mut(|it| it.is_worth_sending(now));
            self.unsent.take_from(&mut self.refused, 1);
            self.probe_at = Moment::NEVER;
            self.plan_probe(now);
        }
    }

    /// How many replies the oldest request still has to get in all.
    fn replies_wanted(&self) -> Option<usize> {
        self.awaiting.front().map(|it| it.request.replies())
    }

    /// The next request whose replies are all there, if there is one.
    pub(super) fn next_settled(
        &mut self,
        inbox: &mut Inbox,
        dialect: &mut Dialect,
        now: Moment,
    ) -> Result<Option<Settled>, Nonsense> {
        loop {
            let Some(wanted) = self.replies_wanted() else {
                // Nothing is owed, so nothing may be there.
                return if inbox.is_empty() { Ok(None) } else { Err(Nonsense::Unwanted) };
            };
            if !inbox.has_replies(wanted)? {
                return Ok(None);
            }
            if self.awaiting.len() == 1 && !inbox.is_empty() {
                // One too many is there: who knows which of them is the answer?
                return Err(Nonsense::Unwanted);
            }
            if let Some(settled) = self.settle(inbox.replies(), now)? {
                return Ok(Some(settled));
            }
            // The server knows a command of its own that this user may not use.
            *dialect = Dialect::default();
        }
    }

    /// The oldest request has got its replies. Nothing is settled if it is to be sent once more, as a
    /// script: a release that was sent as a command which this user may not use after all.
    fn settle(
        &mut self,
        replies: &mut Vec<Value>,
        now: Moment,
    ) -> Result<Option<Settled>, Nonsense> {
        let mut entry = self.awaiting.pop_front().ok_or(Nonsense::Unwanted)?;
        let Some(answer) = entry.request.answer(replies) else {
            self.awaiting.push_front(entry);
            return Err(Nonsense::Unwanted);
        };
        entry.request.note(self.server, &answer, now);
        if self.awaiting.is_empty() {
            self.silent_until = None;
        }
        if entry.is_native && matches!(&answer, Answer::Failed(it) if it.is_of_the_command()) {
            self.unsent.push_back(entry);
            return Ok(None);
        }
        let (verb, ticket) = (entry.request.verb(), entry.ticket.take());
        if verb == Verb::Release {
            if !matches!(answer, Answer::Failed(_)) {
                self.unsent.take_from(&mut self.refused, RESENT_MAX);
            } else if entry.is_worth_sending(now) {
                self.refused.push_back(entry);
            }
            self.plan_probe(now);
        }
        Ok(Some(Settled { verb, ticket, answer }))
    }

    fn plan_probe(&mut self, now: Moment) {
        if self.refused.is_empty() {
            self.probe_at = Moment::NEVER;
        } else if self.probe_at == Moment::NEVER {
            self.probe_at = now.plus_ms(PROBE_MS);
        }
    }

    /// There is no connection any more: nothing in the queue will be answered. Tells who waited, and
    /// whether the request was sent, and keeps the releases for the next connection.
    pub(super) fn fail(&mut self, mut tell: impl FnMut(Ticket, bool)) {
        (self.silent_until, self.probe_at) = (None, Moment::NEVER);
        (self.outbox_bytes, self.unwritten) = (0, 0);
        let parts = [&mut self.refused, &mut self.awaiting, &mut self.unsent].map(mem::take);
        for (part, was_sent) in parts.into_iter().zip([true, true, false]) {
            for mut entry in part {
                if let Some(ticket) = entry.ticket.take() {
                    tell(ticket, was_sent);
                }
                if entry.keep_until.is_some() {
                    self.unsent.push_back(entry);
                }
            }
        }
    }

    /// What is to be released over a connection that owes answers is released over this one, too: there
    /// it overtakes nothing, and here it is carried out now. Whoever waits for it is told what is
    /// answered here.
    pub(super) fn repeat_releases(&mut self, other: &mut Self) {
        other.probe_at = Moment::NEVER;
        let refused = mem::take(&mut other.refused).into_iter();
        let entries = other.awaiting.iter_mut().chain(other.unsent.iter_mut());
        let others = entries.filter(|it| it.keep_until.is_some()).map(Entry::hand_over);
        self.add_releases(refused.chain(others));
    }

    /// What was to be released over a connection that is given up is released over this one. Tells who
    /// waited, as [`Self::fail`] does.
    pub(super) fn take_releases(&mut self, mut other: Self, tell: impl FnMut(Ticket, bool)) {
        other.fail(tell);
        self.add_releases(other.unsent.into_iter());
    }

    /// Adds releases of another connection. Of each token one that waits is enough: else there would be
    /// twice as many after each connection that is given up.
    fn add_releases(&mut self, releases: impl Iterator<Item = Entry>) {
        let mut waiting: BTreeSet<Token> = self.unsent.iter().map(Entry::token).collect();
        for entry in releases {
            let is_new = waiting.insert(entry.token());
            if entry.ticket.is_some() || (is_new && !self.is_crammed()) {
                self.unsent.push_back(entry);
            }
        }
    }

    fn length(&self) -> usize {
        self.unsent.len() + self.awaiting.len() + self.refused.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Servers;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);
    const TICKET: Ticket = Ticket { place: 0, generation: 1 };
    const OTHER: Ticket = Ticket { place: 1, generation: 2 };

    const SERVER: usize = 3;

    fn request(verb: Verb) -> Arc<Request> {
        let (resource, token) = (Arc::from(&b"r"[..]), Token::from_random([7; 20]));
        Arc::new(match verb {
            Verb::Release => {
                Request::new(verb, resource, token, 10_000).to(Servers::default().with(SERVER))
            }
            _ => Request::new(verb, resource, token, 10_000),
        })
    }

    /// With a name of so many bytes, and a token of its own.
    fn long(verb: Verb, length: usize, token: u8) -> Arc<Request> {
        let (resource, token) = (Arc::from(vec![b'r'; length]), Token::from_random([token; 20]));
        Arc::new(match verb {
            Verb::Release => {
                Request::new(verb, resource, token, 10_000).to(Servers::default().with(SERVER))
            }
            _ => Request::new(verb, resource, token, 10_000),
        })
    }

    fn refused() -> Value {
        redis::parse_redis_value(b"-READONLY no\r\n").unwrap()
    }

    fn settle(queue: &mut Queue, replies: &[Value]) -> Result<Settled, Nonsense> {
        queue.settle(&mut replies.to_vec(), NOW).map(|it| it.expect("it is not sent once more"))
    }

    fn send(queue: &mut Queue, now: Moment) -> usize {
        let mut outbox = Vec::new();
        queue.send(&mut outbox, Dialect::default(), now);
        queue.note_written(0, || now);
        outbox.len()
    }

    #[test]
    fn what_nobody_waits_for_is_not_sent_unless_it_is_a_release() {
        let mut queue = Queue::new(SERVER);
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        assert_eq!(queue.abandon(TICKET), None);
        assert_eq!(send(&mut queue, NOW), 0);
        queue.push(&request(Verb::Release), Some(TICKET), NOW);
        assert_eq!(queue.abandon(TICKET), None);
        assert!(send(&mut queue, NOW) > 0);
    }

    #[test]
    fn the_reply_to_an_abandoned_request_goes_to_nobody_else() {
        let mut queue = Queue::new(SERVER);
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        queue.push(&request(Verb::Acquire), Some(OTHER), NOW);
        send(&mut queue, NOW);
        assert_eq!(queue.abandon(TICKET), Some(NOW));
        let granted = settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert_eq!((granted.ticket, granted.answer), (None, Answer::Done));
        let taken = settle(&mut queue, &[Value::Nil, Value::Int(5)]).unwrap();
        assert_eq!(taken.ticket, Some(OTHER));
        assert_eq!(taken.answer, Answer::Foreign { left_ms: Some(5) });
        assert_eq!(settle(&mut queue, &[Value::Okay]), Err(Nonsense::Unwanted));
    }

    #[test]
    fn a_release_that_is_refused_is_tried_again_until_it_succeeds() {
        let mut queue = Queue::new(SERVER);
        for _ in 0..3 {
            queue.push(&request(Verb::Release), None, NOW);
        }
        send(&mut queue, NOW);
        let error = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
        for _ in 0..3 {
            settle(&mut queue, std::slice::from_ref(&error)).unwrap();
        }
        assert_eq!(send(&mut queue, NOW), 0);
        let later = queue.probe_at();
        queue.probe(later);
        let one = send(&mut queue, later);
        assert!(one > 0);
        settle(&mut queue, &[Value::Int(1)]).unwrap();
        assert_eq!(send(&mut queue, later), 2 * one);
        assert_eq!(queue.probe_at(), Moment::NEVER);
    }

    #[test]
    fn a_release_by_a_command_that_is_not_permitted_is_sent_once_more_as_a_script() {
        let mut queue = Queue::new(SERVER);
        queue.push(&request(Verb::Release), Some(TICKET), NOW);
        let (mut command, mut script) = (Vec::new(), Vec::new());
        queue.send(&mut command, Dialect::native(), NOW);
        let error = redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
        assert_eq!(queue.settle(&mut vec![error.clone()], NOW), Ok(None));
        assert!(queue.has_unsent());
        queue.send(&mut script, Dialect::default(), NOW);
        assert!(command.starts_with(b"*3") && script.starts_with(b"*5"));
        // Whoever waits for it hears of the script, and it ends there.
        let settled = settle(&mut queue, std::slice::from_ref(&error)).unwrap();
        assert_eq!(settled.ticket, Some(TICKET));
        assert!(matches!(settled.answer, Answer::Failed(_)));
        assert!(!queue.has_unsent());
    }

    #[test]
    fn releases_that_are_refused_until_the_key_has_expired_are_forgotten() {
        let mut queue = Queue::new(SERVER);
        (0..3).for_each(|_| queue.push(&request(Verb::Release), None, NOW));
        send(&mut queue, NOW);
        let error = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
        (0..3).for_each(|_| drop(settle(&mut queue, std::slice::from_ref(&error)).unwrap()));
        assert_eq!(queue.length(), 3);
        queue.probe(NOW.plus_ms(10_000));
        assert_eq!((queue.length(), queue.probe_at()), (0, Moment::NEVER));
    }

    #[test]
    fn releases_outlive_the_connection_but_not_the_key() {
        let mut queue = Queue::new(SERVER);
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        queue.push(&request(Verb::Release), None, NOW);
        send(&mut queue, NOW);
        let mut told = Vec::new();
        queue.fail(|ticket, sent| told.push((ticket, sent)));
        assert_eq!(told, [(TICKET, true)]);
        assert!(send(&mut queue, NOW.plus_ms(9_999)) > 0);
        queue.fail(|_, _| {});
        assert_eq!(send(&mut queue, NOW.plus_ms(10_000)), 0);
    }

    #[test]
    fn a_release_that_is_waited_for_is_sent_however_late() {
        let mut queue = Queue::new(SERVER);
        queue.push(&request(Verb::Release), Some(TICKET), NOW);
        queue.push(&request(Verb::Release), None, NOW);
        send(&mut queue, NOW.plus_ms(10_000));
        let told = settle(&mut queue, &[Value::Int(0)]).unwrap();
        assert_eq!((told.ticket, told.answer), (Some(TICKET), Answer::Absent));
        assert_eq!(settle(&mut queue, &[Value::Int(0)]), Err(Nonsense::Unwanted));
    }

    #[test]
    fn silence_is_borne_for_the_longest_ttl_in_flight() {
        let mut queue = Queue::new(SERVER);
        assert_eq!(queue.give_up_at(), None);
        queue.push(&request(Verb::Acquire), None, NOW);
        send(&mut queue, NOW);
        assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(10_000)));
        queue.hear(NOW.plus_ms(9_000));
        assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(14_000)));
        // What was answered is no reason to bear it with what is asked next.
        settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert_eq!(queue.give_up_at(), None);
        queue.push(&request(Verb::Acquire), None, NOW);
        send(&mut queue, NOW);
        assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(10_000)));
    }

    #[test]
    fn there_is_a_bound_with_room_for_the_releases() {
        let mut queue = Queue::new(SERVER);
        (0..2 * REQUESTS_MAX).for_each(|_| queue.push(&request(Verb::Acquire), None, NOW));
        assert!(queue.is_full());
        assert_eq!(queue.length(), REQUESTS_MAX);
        (0..2 * NEEDED_MAX).for_each(|_| queue.push(&request(Verb::Release), None, NOW));
        assert_eq!(queue.length(), NEEDED_MAX);
    }

    #[test]
    fn what_was_sent_and_is_not_answered_counts_as_what_waits_does() {
        let mut queue = Queue::new(SERVER);
        for _ in 0..2 {
            (0..REQUESTS_MAX / 2).for_each(|_| queue.push(&request(Verb::Acquire), None, NOW));
            send(&mut queue, NOW);
        }
        assert!(queue.is_full() && !queue.has_unsent());
        settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert!(!queue.is_full());
    }

    #[test]
    fn the_bound_is_one_of_bytes_too() {
        const LENGTH: usize = 65_536;
        // Each names its resource twice.
        const MOST: usize = REQUEST_BYTES_MAX / (2 * LENGTH);
        let acquire = long(Verb::Acquire, LENGTH, 1);
        for is_sent in [false, true] {
            let mut queue = Queue::new(SERVER);
            for _ in 0..2 * MOST {
                queue.push(&acquire, None, NOW);
                if is_sent {
                    send(&mut queue, NOW);
                }
            }
            assert!(queue.is_full());
            assert_eq!(queue.length(), MOST);
            let release = long(Verb::Release, LENGTH, 1);
            (0..2 * NEEDED_MAX).for_each(|_| queue.push(&release, None, NOW));
            let bytes = queue.bytes();
            assert!((NEEDED_BYTES_MAX..NEEDED_BYTES_MAX + 2 * LENGTH).contains(&bytes), "{bytes}");
        }
    }

    #[test]
    fn what_the_socket_does_not_take_counts_once_more() {
        let mut queue = Queue::new(SERVER);
        queue.note_written(REQUEST_BYTES_MAX - 1, || NOW);
        assert!(!queue.is_full());
        queue.push(&request(Verb::Acquire), None, NOW);
        assert!(queue.is_full());
        queue.note_written(0, || NOW);
        assert!(!queue.is_full());
        // With as many releases that were refused there is no room for another.
        let release = long(Verb::Release, 65_536, 1);
        while !queue.is_crammed() {
            queue.push(&release, None, NOW);
            send(&mut queue, NOW);
            while !queue.awaiting.is_empty() {
                let replies = vec![refused(); queue.replies_wanted().unwrap_or(0)];
                settle(&mut queue, &replies).unwrap();
            }
        }
        assert!(!queue.is_full());
        assert!(queue.refused.bytes() >= NEEDED_BYTES_MAX);
        // Somebody waits for this one.
        queue.push(&release, Some(TICKET), NOW);
        assert!(queue.has_unsent());
    }

    #[test]
    fn releases_that_were_refused_outlive_the_connection() {
        let mut queue = Queue::new(SERVER);
        queue.push(&request(Verb::Release), None, NOW);
        send(&mut queue, NOW);
        settle(&mut queue, &[refused()]).unwrap();
        assert!(!queue.has_unsent());
        queue.fail(|_, _| {});
        assert!(send(&mut queue, NOW.plus_ms(9_999)) > 0);
    }

    #[test]
    fn an_answer_is_overdue_after_a_second_or_four_reply_timeouts() {
        let timeouts = Timeouts::default();
        let mut queue = Queue::new(SERVER);
        assert_eq!(queue.overdue_at(&timeouts), Moment::NEVER);
        queue.push(&request(Verb::Acquire), None, NOW.plus_ms(-700));
        assert_eq!(queue.overdue_at(&timeouts), Moment::NEVER, "it was not even sent");
        send(&mut queue, NOW);
        queue.push(&request(Verb::Acquire), None, NOW.plus_ms(5));
        send(&mut queue, NOW.plus_ms(5));
        // A twentieth of 10 s is a reply timeout, unless one is set.
        for (set_ms, overdue_ms) in [(0, 2_000), (1, 1_000), (250, 1_000), (251, 1_004)] {
            timeouts.set(1_500, set_ms);
            assert_eq!(queue.overdue_at(&timeouts), NOW.plus_ms(overdue_ms), "{set_ms}");
        }
        timeouts.set(1_500, i64::MAX);
        assert_eq!(queue.overdue_at(&timeouts), Moment::NEVER);
        // Answered, it is the next that counts, whatever it is.
        timeouts.set(1_500, 0);
        settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert_eq!(queue.overdue_at(&timeouts), NOW.plus_ms(2_005));
    }

    #[test]
    fn what_may_be_set_is_guarded_for_its_ttl_from_when_it_was_sent() {
        let mut queue = Queue::new(SERVER);
        for verb in [Verb::Release, Verb::Inspect] {
            queue.push(&request(verb), None, NOW);
        }
        send(&mut queue, NOW);
        assert_eq!(queue.guarded_until(), None);
        for ms in [3, 7] {
            queue.push(&request(Verb::Acquire), None, NOW);
            send(&mut queue, NOW.plus_ms(ms));
        }
        assert_eq!(queue.guarded_until(), Some(NOW.plus_ms(10_007)));
    }

    #[test]
    fn a_release_is_wanted_behind_what_may_set_its_key_and_only_one() {
        let mut queue = Queue::new(SERVER);
        let (ours, other) = (long(Verb::Release, 1, 1), long(Verb::Release, 1, 2));
        assert!(!queue.wants(&ours));
        queue.push(&long(Verb::Acquire, 1, 1), None, NOW);
        send(&mut queue, NOW);
        queue.push(&long(Verb::Inspect, 1, 1), None, NOW);
        assert!(queue.wants(&ours) && !queue.wants(&other));
        queue.push(&ours, None, NOW);
        assert!(!queue.wants(&ours));
        // It is answered, so nothing of ours comes late.
        settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert!(!queue.wants(&ours));
    }

    #[test]
    fn releases_go_over_another_connection_too_with_who_waits_for_them() {
        let (mut old, mut new) = (Queue::new(SERVER), Queue::new(SERVER));
        old.push(&long(Verb::Release, 1, 1), None, NOW);
        send(&mut old, NOW);
        settle(&mut old, &[refused()]).unwrap();
        old.push(&long(Verb::Acquire, 1, 2), Some(OTHER), NOW);
        old.push(&long(Verb::Release, 1, 2), Some(TICKET), NOW);
        send(&mut old, NOW);
        new.repeat_releases(&mut old);
        assert_eq!((old.length(), new.length()), (2, 2));
        assert_eq!(new.abandon(TICKET), None);
        assert_eq!(old.abandon(TICKET), None, "nobody waits for it there any more");
        assert_eq!(old.abandon(OTHER), Some(NOW));
        send(&mut new, NOW);
        assert_eq!(new.length(), 2);
    }

    #[test]
    fn releases_do_not_multiply_with_each_connection_that_is_given_up() {
        let (mut old, mut new) = (Queue::new(SERVER), Queue::new(SERVER));
        new.push(&request(Verb::Release), None, NOW);
        for _ in 0..9 {
            new.take_releases(mem::replace(&mut old, Queue::new(SERVER)), |_, _| {});
            send(&mut new, NOW);
            old = mem::replace(&mut new, Queue::new(SERVER));
            new.repeat_releases(&mut old);
            send(&mut new, NOW);
        }
        assert_eq!((old.length(), new.length()), (2, 1));
    }
}
