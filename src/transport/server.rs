//! One server: its connection, and how it comes and goes.
//!
//! All requests go over the one connection, in one order: so a release never overtakes the acquire
//! that it takes back. Nothing here waits; the reactor calls in when a socket is ready.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::addresses::Addresses;
use super::command::{Answer, Dialect, Request, Verb};
use super::endpoint::{Endpoint, Place};
use super::failure::Failure;
use super::greeting::{Greeting, Progress};
use super::inbox::{Inbox, Received};
use super::queue::Queue;
use super::reply::Nonsense;
use super::socket::{Socket, Visible};
use super::{Ticket, Timeouts};
use crate::clock::Moment;
use crate::log::{Level, Line};
use crate::quorum::backoff;
use crate::token::{SystemEntropy, random};

/// A connection that was quiet for so long is looked at before it is trusted with a request: the
/// server may have closed it.
const QUIET_MS: i64 = 50;

/// No two attempts to connect come closer than this, even when a caller needs the server.
const RETRY_GAP_MS: i64 = 20;

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
    queue: Queue,
    heard_at: Moment,
}

enum Link {
    Down,
    Connecting { socket: Socket, since: Moment },
    Greeting { socket: Socket, since: Moment, greeting: Greeting },
    Up { socket: Socket },
}

impl Server {
    pub(super) fn new(index: usize, endpoint: Endpoint, timeouts: Arc<Timeouts>) -> Self {
        let addresses = Addresses::of(endpoint.place());
        let start = Moment::from_nanos(0);
        Self {
            index,
            endpoint,
            timeouts,
            visible: Visible::new(),
            link: Link::Down,
            addresses,
            failures: 0,
            retry_at: start,
            tried_at: None,
            why_down: "not tried yet".to_owned(),
            dialect: Dialect::default(),
            inbox: Inbox::default(),
            outbox: Vec::new(),
            hopeful: Vec::new(),
            queue: Queue::default(),
            heard_at: start,
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

    /// Whether there is a connection over which no answer is owed for longer than this, as far as
    /// can be seen by looking.
    pub(super) fn is_keeping_up(&mut self, reply_ms: i64, now: Moment, news: &mut News) -> bool {
        // The end of the stream, or late answers, may lie there if nobody has looked for a while.
        if now.ms_since(self.heard_at) >= QUIET_MS || self.is_behind(reply_ms, now) {
            self.receive(now, news);
        }
        self.is_up() && !self.is_behind(reply_ms, now)
    }

    /// Connects without regard to the pause after a failure, because a caller needs the server.
    pub(super) fn hurry(&mut self, now: Moment) {
        let tried = self.tried_at.is_some_and(|it| now < it.plus_ms(RETRY_GAP_MS));
        if !tried && self.retry_at > now {
            self.retry_at = now;
        }
    }

    /// Has the ticket told as soon as there is a connection, or none to be had for now.
    pub(super) fn await_connection(
        &mut self,
        ticket: Ticket,
        reply_ms: i64,
        now: Moment,
        news: &mut News,
    ) {
        let answer = match self.obstacle(reply_ms, now, news) {
            Some(failure) => Answer::Failed(failure),
            None if self.is_up() => Answer::Done,
            None => return self.hopeful.push(ticket),
        };
        self.deliver(ticket, answer, news);
    }

    /// Queues a request whose answer the ticket waits for. The ticket is told at once if the server
    /// cannot be asked now, or owes an answer for longer than `reply_ms`.
    pub(super) fn ask(
        &mut self,
        request: &Arc<Request>,
        ticket: Ticket,
        reply_ms: i64,
        now: Moment,
        news: &mut News,
    ) {
        match self.obstacle(reply_ms, now, news) {
            None => self.queue.push(request, Some(ticket), now),
            Some(failure) => {
                self.deliver(ticket, Answer::Failed(failure), news);
                if request.verb() == Verb::Release {
                    self.queue.push(request, None, now);
                }
            }
        }
    }

    /// Queues a release that nobody waits for. If there is no connection, or it breaks, the release
    /// is sent over the next one, until the key has expired.
    pub(super) fn tell(&mut self, request: &Arc<Request>, now: Moment) {
        self.queue.push(request, None, now);
    }

    /// Nobody waits for this ticket's answer any more. Returns when its request was sent, if it was;
    /// if it was not, it never will be, unless it is a release.
    pub(super) fn abandon(&mut self, ticket: Ticket) -> Option<Moment> {
        self.hopeful.retain(|&it| it != ticket);
        self.queue.abandon(ticket)
    }

    /// Does what is due: connecting, giving up, sending.
    pub(super) fn advance(&mut self, now: Moment, news: &mut News) {
        if now >= self.next_due() {
            self.look(now, news);
        }
        if now >= self.next_due() {
            self.handle_due(now, news);
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
            Link::Up { .. } => self.queue.give_up_at().unwrap_or(Moment::NEVER),
        }
    }

    /// Sees what has come since somebody last waited for the socket: if nobody did for a while, it
    /// may be ready although its time is up.
    fn look(&mut self, now: Moment, news: &mut News) {
        if !matches!(self.link, Link::Down) {
            self.handle_ready(now, news);
        }
    }

    fn handle_due(&mut self, now: Moment, news: &mut News) {
        match &self.link {
            Link::Down => self.connect(now, news),
            Link::Connecting { since, .. } => {
                let why = format!("no answer in {} ms", now.ms_since(*since));
                self.connect_failed(why, now, news);
            }
            Link::Greeting { since, .. } => {
                let why = format!("accepted, but said nothing in {} ms", now.ms_since(*since));
                self.connect_failed(why, now, news);
            }
            Link::Up { .. } => {
                let how = format!("silent for {} ms", now.ms_since(self.heard_at));
                self.disconnect(how, now, news);
            }
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
            // What was ready may have been another socket, closed by somebody else meanwhile.
            if !socket.is_writable() {
                return;
            }
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
            Place::Name(name, port) if self.addresses.begin_look_up(now) => {
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
        if let Err(error) = &found
            && self.addresses.is_empty()
        {
            self.why_down = format!("its name is not known: {error}");
        }
        if self.addresses.end_look_up(found.ok(), began, now) {
            self.retry_at = now;
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
    fn obstacle(&mut self, reply_ms: i64, now: Moment, news: &mut News) -> Option<Failure> {
        self.is_keeping_up(reply_ms, now, news);
        if matches!(self.link, Link::Down) {
            Some(self.not_connected())
        } else if self.is_behind(reply_ms, now) {
            let since = self.queue.owes_since().unwrap_or(now);
            Some(Failure::Behind { ms: now.ms_since(since) })
        } else if self.queue.is_full() {
            Some(Failure::Full)
        } else {
            None
        }
    }

    fn is_behind(&self, reply_ms: i64, now: Moment) -> bool {
        self.is_up() && self.queue.owes_since().is_some_and(|it| now.ms_since(it) > reply_ms)
    }

    /// What to say of a server that was given `ms` and could not even be asked.
    pub(super) fn not_in_time(&self, ms: i64) -> Failure {
        match self.link {
            Link::Down => self.not_connected(),
            Link::Up { .. } => Failure::NoAnswer { ms },
            Link::Connecting { .. } | Link::Greeting { .. } => {
                Failure::NotConnected(format!("no connection within {ms} ms"))
            }
        }
    }

    fn not_connected(&self) -> Failure {
        Failure::NotConnected(self.why_down.clone())
    }

    /// Whether the name has to be looked up before connecting.
    fn is_nameless(&self) -> bool {
        matches!(self.endpoint.place(), Place::Name(..)) && self.addresses.is_empty()
    }

    /// How long one of several addresses may keep us from trying the next.
    fn connect_share_ms(&self) -> i64 {
        let share = i64::try_from(self.addresses.count()).unwrap_or(i64::MAX);
        (self.timeouts.connect_ms() / share).max(1)
    }

    fn connect(&mut self, now: Moment, news: &mut News) {
        self.tried_at = Some(now);
        let socket = match self.endpoint.place() {
            Place::Path(path) => Socket::to_path(path, &self.visible),
            _ => match self.addresses.current() {
                Some(address) => Socket::to_address(address, &self.visible),
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
        if let Link::Connecting { socket, .. } = mem::replace(&mut self.link, Link::Down) {
            self.outbox.extend_from_slice(greeting.bytes());
            self.link = Link::Greeting { socket, since: now, greeting };
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
        for ticket in mem::take(&mut self.hopeful) {
            self.deliver(ticket, Answer::Done, news);
        }
    }

    /// One address did not do; perhaps the next does. If there is none, there is no connection to be
    /// had for now.
    fn connect_failed(&mut self, why: String, now: Moment, news: &mut News) {
        self.close();
        if self.addresses.try_next() {
            return self.connect(now, news);
        }
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
    }

    /// Tells everybody who waits. What was to be released still is, over the next connection.
    fn fail_all(&mut self, failure: &Failure, news: &mut News) {
        let mut fail = |ticket, sent| {
            let answer = Answer::Failed(failure.clone());
            news.deliveries.push(Delivery { ticket, server: self.index, answer, sent });
        };
        self.hopeful.drain(..).for_each(|ticket| fail(ticket, false));
        self.queue.fail(fail);
    }

    /// Tells a call that has not sent anything.
    fn deliver(&self, ticket: Ticket, answer: Answer, news: &mut News) {
        news.deliveries.push(Delivery { ticket, server: self.index, answer, sent: false });
    }

    /// Sends as much as the socket takes.
    pub(super) fn flush(&mut self, now: Moment, news: &mut News) {
        if self.is_up() {
            self.queue.send(&mut self.outbox, self.dialect, now);
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

    /// Reads what there is.
    fn receive(&mut self, now: Moment, news: &mut News) {
        loop {
            let (Link::Up { socket } | Link::Greeting { socket, .. }) = &self.link else { return };
            let received = match self.inbox.receive(socket) {
                Ok(Received::Nothing) => return,
                Ok(received) => received,
                Err(error) => return self.break_off(&error_words(&error), now, news),
            };
            self.heard_at = now;
            self.queue.hear(now);
            let read = self.read_greeting(now, news).and_then(|()| self.read_answers(news));
            if read.is_err() {
                return self.break_off("it said what no server should", now, news);
            }
            if received == Received::All {
                return;
            }
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
            let Some(wanted) = self.queue.replies_wanted(self.dialect) else {
                // Nothing is owed, so nothing may be there.
                return if self.inbox.is_empty() { Ok(()) } else { Err(Nonsense) };
            };
            let Some(replies) = self.inbox.next_many(wanted)? else { return Ok(()) };
            if let Some((ticket, answer)) = self.queue.settle(replies, self.dialect)? {
                news.deliveries.push(Delivery { ticket, server: self.index, answer, sent: true });
            }
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
