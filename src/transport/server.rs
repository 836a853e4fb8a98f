//! One server: its connection, and the one ordered queue of what is asked of it.
//!
//! A request is written once and its reply waited for as long as the connection lives, whoever still
//! cares: so replies never go to the wrong request, and a release never overtakes the acquire that
//! it takes back. Nothing here waits; the reactor calls in when a socket is ready.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::command::{Answer, Dialect, Request, Verb};
use super::endpoint::{Endpoint, Place};
use super::failure::Failure;
use super::greeting::{Greeting, Progress};
use super::inbox::Inbox;
use super::reply::Nonsense;
use super::socket::{Socket, Visible};
use super::{Ticket, Timeouts};
use crate::clock::Moment;
use crate::log::{Level, Line};
use crate::quorum::backoff;
use crate::token::{SystemEntropy, random};

/// How many requests may wait for their replies before no more are taken, and how many more
/// releases may wait behind them.
const QUEUE_MAX: usize = 1024;
const RELEASES_MAX: usize = 2 * QUEUE_MAX;

/// A connection that was quiet for so long is looked at before it is trusted with a request: the
/// server may have closed it.
const QUIET_MS: i64 = 50;

/// No two attempts to connect come closer than this, even when a caller needs the server.
const RETRY_GAP_MS: i64 = 20;

/// How long an answer is waited for, at least, before the connection is given up as dead.
const SILENCE_MIN_MS: i64 = 5_000;

/// Something to tell the call that holds the ticket.
pub(super) struct Delivery {
    pub(super) ticket: Ticket,
    pub(super) server: usize,
    pub(super) answer: Answer,
    /// Whether a byte of the request may have been sent.
    pub(super) sent: bool,
}

/// What a server has to tell others.
#[derive(Default)]
pub(super) struct News {
    pub(super) deliveries: Vec<Delivery>,
    pub(super) lines: Vec<Line>,
}

pub(super) struct Server {
    index: usize,
    endpoint: Endpoint,
    timeouts: Arc<Timeouts>,
    visible: Visible,
    link: Link,
    addresses: Addresses,
    /// Failures to connect since the last success, and when to try again.
    failures: u32,
    retry_at: Moment,
    tried_at: Option<Moment>,
    why_down: String,
    dialect: Dialect,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// Calls that wait for the connection itself.
    hopeful: Vec<Ticket>,
    unsent: VecDeque<Entry>,
    awaiting: VecDeque<Entry>,
    heard_at: Moment,
    /// When to give up a connection that stays silent.
    silent_until: Moment,
}

enum Link {
    Down,
    Connecting { socket: Socket, since: Moment },
    Greeting { socket: Socket, since: Moment, greeting: Greeting },
    Up { socket: Socket },
}

/// A request in the queue.
struct Entry {
    request: Arc<Request>,
    /// Who waits for the answer; nobody, if none.
    ticket: Option<Ticket>,
    /// When it was queued, and later when it was sent.
    since: Moment,
    /// A release is worth sending until then, over another connection if need be: after that, the
    /// key has expired.
    keep_until: Option<Moment>,
}

/// Where the server may be reached.
struct Addresses {
    list: Vec<SocketAddr>,
    next: usize,
    /// All were tried in vain: the name may have moved to others.
    stale: bool,
    /// When the name may be looked up again.
    look_up_at: Moment,
    looking_up: bool,
}

impl Addresses {
    fn new(list: Vec<SocketAddr>) -> Self {
        let look_up_at = Moment::from_nanos(0);
        Self { list, next: 0, stale: false, look_up_at, looking_up: false }
    }
}

impl Server {
    pub(super) fn new(index: usize, endpoint: Endpoint, timeouts: Arc<Timeouts>) -> Self {
        let list = endpoint.place().known_addresses().unwrap_or_default();
        let start = Moment::from_nanos(0);
        Self {
            index,
            endpoint,
            timeouts,
            visible: Visible::new(),
            link: Link::Down,
            addresses: Addresses::new(list),
            failures: 0,
            retry_at: start,
            tried_at: None,
            why_down: "not tried yet".to_owned(),
            dialect: Dialect::default(),
            inbox: Inbox::default(),
            outbox: Vec::new(),
            hopeful: Vec::new(),
            unsent: VecDeque::new(),
            awaiting: VecDeque::new(),
            heard_at: start,
            silent_until: Moment::NEVER,
        }
    }

    /// Its place in the list.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn visible(&self) -> Visible {
        self.visible.clone()
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.link, Link::Up { .. })
    }

    /// Makes sure that a connection that counts as up is one, as far as can be seen.
    pub(super) fn look_alive(&mut self, now: Moment, news: &mut News) {
        if self.is_up() && now.ms_since(self.heard_at) >= QUIET_MS {
            self.receive(now, news);
        }
    }

    /// Connects without regard to the pause after a failure, because a caller needs the server.
    pub(super) fn hurry(&mut self, now: Moment) {
        let tried = self.tried_at.is_some_and(|it| now < it.plus_ms(RETRY_GAP_MS));
        if !tried && self.retry_at > now {
            self.retry_at = now;
        }
    }

    /// Has the ticket told as soon as there is a connection, or none to be had for now.
    pub(super) fn await_connection(&mut self, ticket: Ticket, news: &mut News) {
        let answer = match self.link {
            Link::Up { .. } => Answer::Done,
            Link::Down => Answer::Failed(self.not_connected()),
            Link::Connecting { .. } | Link::Greeting { .. } => return self.hopeful.push(ticket),
        };
        news.deliveries.push(Delivery { ticket, server: self.index, answer, sent: false });
    }

    /// Queues a request whose answer the ticket waits for, for `patience_ms`. The ticket is told at
    /// once if the server cannot be asked now.
    pub(super) fn ask(
        &mut self,
        request: &Arc<Request>,
        ticket: Ticket,
        patience_ms: i64,
        now: Moment,
        news: &mut News,
    ) {
        let is_release = request.verb() == Verb::Release;
        let Some(failure) = self.obstacle(patience_ms, now, news) else {
            let keep_until = is_release.then(|| now.plus_ms(request.ttl_ms()));
            let request = Arc::clone(request);
            self.unsent.push_back(Entry { request, ticket: Some(ticket), since: now, keep_until });
            return;
        };
        let answer = Answer::Failed(failure);
        news.deliveries.push(Delivery { ticket, server: self.index, answer, sent: false });
        if is_release {
            self.tell(request, now);
        }
    }

    /// Queues a release that nobody waits for. If there is no connection, or it breaks, the release
    /// is sent over the next one, until the key has expired.
    pub(super) fn tell(&mut self, request: &Arc<Request>, now: Moment) {
        if self.unsent.len() + self.awaiting.len() < RELEASES_MAX {
            let request = Arc::clone(request);
            let keep_until = Some(now.plus_ms(request.ttl_ms()));
            self.unsent.push_back(Entry { request, ticket: None, since: now, keep_until });
        }
    }

    /// Nobody waits for this ticket's answer any more. A request that was not sent yet never will
    /// be, unless it is a release. Returns whether a byte of it may have been sent, and since when it
    /// was waited for.
    pub(super) fn abandon(&mut self, ticket: Ticket) -> Option<Moment> {
        self.hopeful.retain(|&it| it != ticket);
        self.unsent.retain_mut(|entry| match entry.ticket {
            Some(it) if it == ticket => {
                entry.ticket = None;
                entry.keep_until.is_some()
            }
            _ => true,
        });
        let entry = self.awaiting.iter_mut().find(|it| it.ticket == Some(ticket))?;
        entry.ticket = None;
        Some(entry.since)
    }

    /// Does what is due: connecting, giving up, sending.
    pub(super) fn advance(&mut self, now: Moment, news: &mut News) {
        match &self.link {
            Link::Down => {
                if now >= self.retry_at && !self.is_nameless() {
                    self.connect(now, news);
                }
            }
            Link::Connecting { since, .. } => {
                let since = *since;
                if now >= since.plus_ms(self.connect_share_ms()) {
                    let ms = now.ms_since(since);
                    self.connect_failed(format!("no answer in {ms} ms"), now, news);
                }
            }
            Link::Greeting { since, .. } => {
                let since = *since;
                if now >= since.plus_ms(self.timeouts.connect_ms()) {
                    let ms = now.ms_since(since);
                    self.connect_failed(
                        format!("accepted, but said nothing for {ms} ms"),
                        now,
                        news,
                    );
                }
            }
            Link::Up { .. } => {
                if !self.awaiting.is_empty() && now >= self.silent_until {
                    let ms = now.ms_since(self.heard_at);
                    self.disconnect(format!("silent for {ms} ms"), now, news);
                }
            }
        }
        self.flush(now, news);
    }

    /// When [`Self::advance`] is due next, if nothing is heard before.
    pub(super) fn next_due(&self) -> Moment {
        match &self.link {
            Link::Down if self.is_nameless() => Moment::NEVER,
            Link::Down => self.retry_at,
            Link::Connecting { since, .. } => since.plus_ms(self.connect_share_ms()),
            Link::Greeting { since, .. } => since.plus_ms(self.timeouts.connect_ms()),
            Link::Up { .. } if self.awaiting.is_empty() => Moment::NEVER,
            Link::Up { .. } => self.silent_until,
        }
    }

    /// What to wait for: the descriptor, and whether it is to be writable.
    pub(super) fn interest(&self) -> Option<(RawFd, bool)> {
        match &self.link {
            Link::Down => None,
            Link::Connecting { socket, .. } => Some((socket.fd(), true)),
            Link::Greeting { socket, .. } | Link::Up { socket } => {
                Some((socket.fd(), !self.outbox.is_empty()))
            }
        }
    }

    /// The socket is ready for something.
    pub(super) fn handle_ready(&mut self, now: Moment, news: &mut News) {
        if let Link::Connecting { socket, .. } = &self.link {
            match socket.connected() {
                Ok(()) => self.greet(now, news),
                Err(error) => self.connect_failed(error_words(&error), now, news),
            }
        } else {
            self.receive(now, news);
            self.flush(now, news);
        }
    }

    /// The name to look up, if that is due. The caller looks it up without holding anything, and
    /// brings the result to [`Self::handle_addresses`].
    pub(super) fn name_to_look_up(&mut self, now: Moment) -> Option<(String, u16)> {
        match self.endpoint.place() {
            Place::Name(name, port)
                if (self.is_nameless() || self.addresses.stale)
                    && !self.addresses.looking_up
                    && now >= self.addresses.look_up_at =>
            {
                self.addresses.looking_up = true;
                Some((name.clone(), *port))
            }
            _ => None,
        }
    }

    pub(super) fn handle_addresses(
        &mut self,
        found: Result<Vec<SocketAddr>, String>,
        began: Moment,
        now: Moment,
    ) {
        // A resolver that is slow to fail is asked the less often.
        let pause_ms = (now.ms_since(began) * 10).clamp(1_000, 60_000);
        let addresses = &mut self.addresses;
        addresses.looking_up = false;
        addresses.look_up_at = now.plus_ms(pause_ms);
        match found {
            Ok(list) => {
                addresses.stale = false;
                if addresses.list != list {
                    (addresses.list, addresses.next) = (list, 0);
                    self.retry_at = now;
                }
            }
            Err(error) if addresses.list.is_empty() => {
                self.why_down = format!("its name is not known: {error}");
            }
            Err(_) => {}
        }
    }

    /// Leaves the socket to [`Visible::close_inherited`].
    pub(super) fn forget_socket(&mut self) {
        match mem::replace(&mut self.link, Link::Down) {
            Link::Down => {}
            Link::Connecting { socket, .. }
            | Link::Greeting { socket, .. }
            | Link::Up { socket } => socket.forget(),
        }
    }

    /// Why the server cannot be asked now.
    fn obstacle(&mut self, patience_ms: i64, now: Moment, news: &mut News) -> Option<Failure> {
        if self.owes_since(patience_ms, now) {
            // The answers may lie there already, if nobody has looked.
            self.receive(now, news);
        }
        if matches!(self.link, Link::Down) {
            Some(self.not_connected())
        } else if self.owes_since(patience_ms, now) {
            let since = self.awaiting.front().map_or(now, |it| it.since);
            Some(Failure::Behind { ms: now.ms_since(since) })
        } else if self.unsent.len() + self.awaiting.len() >= QUEUE_MAX {
            Some(Failure::Full)
        } else {
            None
        }
    }

    fn owes_since(&self, patience_ms: i64, now: Moment) -> bool {
        self.is_up() && self.awaiting.front().is_some_and(|it| now.ms_since(it.since) > patience_ms)
    }

    fn not_connected(&self) -> Failure {
        Failure::NotConnected(self.why_down.clone())
    }

    /// Whether the name has to be looked up before connecting.
    fn is_nameless(&self) -> bool {
        matches!(self.endpoint.place(), Place::Name(..)) && self.addresses.list.is_empty()
    }

    /// How long one of several addresses may keep us from trying the next.
    fn connect_share_ms(&self) -> i64 {
        let share = self.timeouts.connect_ms() / self.addresses.list.len().max(1) as i64;
        share.max(1)
    }

    fn connect(&mut self, now: Moment, news: &mut News) {
        self.tried_at = Some(now);
        let socket = match self.endpoint.place() {
            Place::Path(path) => Socket::to_path(path, &self.visible),
            _ => match self.addresses.list.get(self.addresses.next) {
                Some(&address) => Socket::to_address(address, &self.visible),
                None => Err(io::Error::new(io::ErrorKind::NotFound, "its name has no address")),
            },
        };
        match socket {
            Ok(socket) => self.link = Link::Connecting { socket, since: now },
            Err(error) => self.connect_failed(error_words(&error), now, news),
        }
    }

    fn greet(&mut self, now: Moment, news: &mut News) {
        let greeting = match Greeting::new(&self.endpoint) {
            Ok(greeting) => greeting,
            Err(error) => return self.connect_failed(error.to_string(), now, news),
        };
        if let Link::Connecting { socket, since } = mem::replace(&mut self.link, Link::Down) {
            self.outbox.extend_from_slice(greeting.bytes());
            self.link = Link::Greeting { socket, since, greeting };
            self.flush(now, news);
        }
    }

    fn come_up(&mut self, dialect: Dialect, now: Moment, news: &mut News) {
        if let Link::Greeting { socket, .. } = mem::replace(&mut self.link, Link::Down) {
            self.link = Link::Up { socket };
        }
        if self.failures > 0 {
            news.lines.push((Level::Info, format!("{}: connected again", self.endpoint)));
        }
        self.dialect = dialect;
        self.failures = 0;
        self.heard_at = now;
        for ticket in self.hopeful.drain(..) {
            let answer = Answer::Done;
            news.deliveries.push(Delivery { ticket, server: self.index, answer, sent: false });
        }
    }

    /// One address did not do; perhaps the next does. If there is none, there is no connection to be
    /// had for now.
    fn connect_failed(&mut self, why: String, now: Moment, news: &mut News) {
        self.close();
        self.addresses.next += 1;
        if self.addresses.next < self.addresses.list.len() {
            return self.connect(now, news);
        }
        self.addresses.next = 0;
        self.addresses.stale = true;
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            news.lines.push((Level::Warning, format!("{}: {why}", self.endpoint)));
        }
        let jitter = random(&SystemEntropy).unwrap_or(0);
        self.retry_at = now.plus(backoff::reconnect(self.failures, jitter));
        self.fail_all(&Failure::NotConnected(why.clone()), news);
        self.why_down = why;
    }

    /// The connection that was up is no more.
    fn disconnect(&mut self, how: String, now: Moment, news: &mut News) {
        news.lines.push((Level::Warning, format!("{}: connection lost: {how}", self.endpoint)));
        self.close();
        // It worked until now, so there is no reason to wait with a new one; but a server that keeps
        // closing must not keep us busy.
        self.failures = 1;
        self.retry_at = self.tried_at.map_or(now, |it| now.max(it.plus_ms(RETRY_GAP_MS)));
        self.fail_all(&Failure::Lost(how.clone()), news);
        self.why_down = how;
    }

    fn close(&mut self) {
        self.link = Link::Down;
        self.inbox.clear();
        self.outbox.clear();
        self.silent_until = Moment::NEVER;
    }

    /// Tells everybody who waits. What was to be released still is, over the next connection.
    fn fail_all(&mut self, failure: &Failure, news: &mut News) {
        let mut fail = |ticket, sent| {
            let answer = Answer::Failed(failure.clone());
            news.deliveries.push(Delivery { ticket, server: self.index, answer, sent });
        };
        self.hopeful.drain(..).for_each(|ticket| fail(ticket, false));
        let sent = mem::take(&mut self.awaiting).into_iter().map(|it| (it, true));
        let unsent = mem::take(&mut self.unsent).into_iter().map(|it| (it, false));
        for (mut entry, sent) in sent.chain(unsent) {
            if let Some(ticket) = entry.ticket.take() {
                fail(ticket, sent);
            }
            if entry.keep_until.is_some() {
                self.unsent.push_back(entry);
            }
        }
    }

    /// Sends as much as the socket takes.
    pub(super) fn flush(&mut self, now: Moment, news: &mut News) {
        if self.is_up() {
            self.encode(now);
        }
        let (Link::Up { socket } | Link::Greeting { socket, .. }) = &self.link else { return };
        if self.outbox.is_empty() {
            return;
        }
        match socket.send(&self.outbox) {
            Ok(sent) => drop(self.outbox.drain(..sent)),
            Err(error) => self.break_off(&error_words(&error), now, news),
        }
    }

    /// Moves what is queued into the outbox. From then on it counts as sent.
    fn encode(&mut self, now: Moment) {
        while let Some(mut entry) = self.unsent.pop_front() {
            if entry.keep_until.is_some_and(|it| now >= it) {
                continue;
            }
            self.outbox.extend_from_slice(entry.request.bytes(self.dialect));
            entry.since = now;
            let patience_ms = entry.request.ttl_ms().max(SILENCE_MIN_MS);
            let silent_until = now.plus_ms(patience_ms);
            if self.awaiting.is_empty() || silent_until > self.silent_until {
                self.silent_until = silent_until;
            }
            self.awaiting.push_back(entry);
        }
    }

    fn receive(&mut self, now: Moment, news: &mut News) {
        let (Link::Up { socket } | Link::Greeting { socket, .. }) = &self.link else { return };
        match self.inbox.receive(socket) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.break_off(&error_words(&error), now, news),
        }
        self.heard_at = now;
        self.silent_until = self.silent_until.max(now.plus_ms(SILENCE_MIN_MS));
        let read = match self.link {
            Link::Greeting { .. } => self.read_greeting(now, news),
            _ => Ok(()),
        };
        if read.and_then(|()| self.read_answers(news)).is_err() {
            self.break_off("it said what no server should", now, news);
        }
    }

    fn read_greeting(&mut self, now: Moment, news: &mut News) -> Result<(), Nonsense> {
        while let Link::Greeting { greeting, .. } = &mut self.link {
            let Some(value) = self.inbox.next()? else { break };
            match greeting.handle_reply(&value) {
                Progress::More => {}
                Progress::Done(dialect) => self.come_up(dialect, now, news),
                Progress::Refused(failure) => self.connect_failed(failure.to_string(), now, news),
            }
        }
        Ok(())
    }

    fn read_answers(&mut self, news: &mut News) -> Result<(), Nonsense> {
        while self.is_up() {
            let Some(front) = self.awaiting.front() else {
                // Nothing is owed, so nothing may be there.
                return if self.inbox.is_empty() { Ok(()) } else { Err(Nonsense) };
            };
            let wanted = front.request.replies(self.dialect);
            let Some(replies) = self.inbox.next_many(wanted)? else { return Ok(()) };
            let answer = front.request.answer(self.dialect, replies).ok_or(Nonsense)?;
            if let Some(ticket) = front.ticket {
                news.deliveries.push(Delivery { ticket, server: self.index, answer, sent: true });
            }
            self.awaiting.pop_front();
        }
        Ok(())
    }

    fn break_off(&mut self, how: &str, now: Moment, news: &mut News) {
        if self.is_up() {
            self.disconnect(how.to_owned(), now, news);
        } else {
            self.connect_failed(how.to_owned(), now, news);
        }
    }
}

/// The system's words, without the number of the error.
fn error_words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => words,
    }
}
