//! One server: the requests to it, over one connection and in one order, and the tickets that get the
//! answers.

mod connecting;
mod hearing;
mod receiving;
pub(crate) mod snapshot;
mod succession;

use std::mem;
use std::sync::Arc;

use super::access::Access;
use super::condition::Condition;
pub(crate) use super::effects::{Delivery, Effects, Pushed};
use super::endpoint::Endpoint;
use super::event_log::{Event, EventLog};
use super::interest::Interest;
use super::link::{Change, Link, Up};
use super::memories::Lasting;
use super::predecessor::Predecessor;
use super::queue::Queue;
use super::server_registry::ServerRegistry;
use super::ticket::Ticket;
use super::timeouts::Timeouts;
use crate::command::{Answer, Capabilities, Request};
use crate::failure::Failure;
use crate::log::Level;
use crate::moment::Moment;
use crate::stats::Traffic;
use crate::system::clock;
use crate::system::socket::InheritedDescriptor;

/// If a connection was quiet for this long, it is checked before a request is sent over it, because the
/// server may have closed it.
const QUIET_MS: i64 = 50;

/// A TTL for which the derived reply timeout is at its maximum.
const LONG_TTL_MS: i64 = 10_000;

/// The minimum time between two checks of a server that owes answers.
const BEHIND_MS: i64 = 1;

pub(crate) struct Server {
    index: usize,
    link: Link,
    capabilities: Capabilities,
    queue: Queue,
    /// What is known of the server beyond its connections.
    lasting: Arc<Lasting>,
    /// The connection before this one, if an answer on it is overdue.
    predecessor: Option<Box<Predecessor>>,
    looked_at: Moment,
    /// Calls that wait for the connection itself.
    awaiting_connection: Vec<Ticket>,
    /// Whether it was logged that a loss of the server's memory is not noticed.
    is_known_blind: bool,
    /// The log lines about this server.
    event_log: EventLog,
    traffic: Traffic,
}

impl Server {
    pub(crate) fn new(
        index: usize,
        endpoint: Endpoint,
        timeouts: Arc<Timeouts>,
        access: Arc<Access>,
        server_registry: Arc<ServerRegistry>,
    ) -> Self {
        let lasting = Arc::<Lasting>::default();
        let queue = Queue::new(index, server_registry.rules(), &lasting);
        let link =
            Link::new((index, server_registry, Arc::clone(&lasting)), endpoint, timeouts, access);
        Self {
            index,
            event_log: EventLog::new(link.endpoint().to_string()),
            link,
            capabilities: Capabilities::default(),
            queue,
            lasting,
            predecessor: None,
            looked_at: Moment::from_nanos(0),
            awaiting_connection: Vec::new(),
            is_known_blind: false,
            traffic: Traffic::default(),
        }
    }

    /// The server's index in the list.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn inherited(&self) -> impl Iterator<Item = InheritedDescriptor> {
        self.link.inherited()
    }

    /// Forgets the sockets that [`InheritedDescriptor::close_inherited`] has closed.
    pub(crate) fn forget_sockets(&mut self) {
        self.link.forget_socket();
        self.predecessor.take().into_iter().for_each(|predecessor| predecessor.forget_socket());
    }

    /// Whether there is a connection, and no answer on it has been owed for longer than `reply_ms`. Checks
    /// the socket first if nobody has looked at it for a while.
    pub(crate) fn is_keeping_up(
        &mut self,
        reply_ms: i64,
        now: Moment,
        effects: &mut Effects,
    ) -> bool {
        // The end of the stream or late answers may be waiting in the socket if nobody has looked for a
        // while.
        let looked_at = self.looked_at.max(self.link.heard_at());
        let is_behind = self.is_behind(reply_ms, now);
        if now.ms_since(looked_at) >= if is_behind { BEHIND_MS } else { QUIET_MS } {
            self.looked_at = now;
            self.look(now, effects);
        }
        self.link.is_up() && !self.is_behind(reply_ms, now)
    }

    /// Queues a request and delivers its answer to the ticket. The ticket is told at once if the server
    /// cannot be asked now, or has owed an answer for longer than `reply_ms`.
    pub(crate) fn ask(
        &mut self,
        request: &Arc<Request>,
        ticket: Ticket,
        reply_ms: i64,
        now: Moment,
        effects: &mut Effects,
    ) {
        self.follow_master(now, effects);
        let obstacle = self.obstacle(reply_ms, now, effects);
        let failing = || self.link.is_failing(reply_ms, now).then(|| self.not_connected());
        match obstacle.or_else(failing).or_else(|| self.left_out(request)) {
            None => self.push(request, Some(ticket), now),
            Some(failure) => {
                self.deliver(ticket, Answer::Failed(failure), effects);
                if request.must_reach(self.index) {
                    self.tell(request, now, effects);
                }
            }
        }
    }

    /// Queues a request whose answer nobody waits for. Returns whether it was queued. If there is no
    /// connection, or the connection breaks, a request that must reach the server is sent over the next
    /// connection. Any other request is not queued, or is dropped.
    pub(crate) fn tell(
        &mut self,
        request: &Arc<Request>,
        now: Moment,
        effects: &mut Effects,
    ) -> bool {
        let is_required = request.must_reach(self.index);
        if !is_required && (!self.link.is_up() || self.queue.is_full()) {
            return false;
        }
        self.push(request, None, now);
        effects.changed = true;
        // Sent by this thread now, because no other thread may come to drive.
        self.flush(now, effects);
        true
    }

    /// Stops waiting for this ticket's answer. Returns when its request was sent, if it was. A request that
    /// was not sent is never sent, unless it must reach the server. In that case it is sent now, because
    /// nobody drives a call that is decided when it begins.
    pub(crate) fn abandon(
        &mut self,
        ticket: Ticket,
        now: Moment,
        effects: &mut Effects,
    ) -> Option<Moment> {
        self.awaiting_connection.retain(|&waiting| waiting != ticket);
        let sent_at = self.abandon_request(ticket);
        if sent_at.is_none() && self.has_unsent() {
            self.flush(now, effects);
        }
        sent_at
    }

    /// The failure to report for a server that was given `ms` and could not even be asked.
    pub(crate) fn not_in_time(&self, ms: i64) -> Failure {
        if self.link.is_up() || self.is_stuck() {
            Failure::NoAnswer { ms }
        } else if self.link.is_down() {
            self.not_connected()
        } else {
            let lacking = self.link.lacking();
            Failure::NotConnected(format!("timed out after {ms} ms{lacking}"))
        }
    }

    /// The state of the server, for a call that ends. `asked_at` is the time when the server was asked, if it
    /// was.
    pub(crate) fn condition(
        &mut self,
        asked_at: Option<Moment>,
        now: Moment,
        effects: &mut Effects,
    ) -> Condition {
        self.look(now, effects);
        if self.is_stuck() && asked_at.is_none() {
            let ms = now.ms_since(self.owes_since().unwrap_or(now));
            return Condition::behind(&Failure::Behind { ms });
        }
        match self.link.is_up() || self.is_stuck() {
            true => Condition::up(asked_at, now),
            false => Condition::down(&self.not_connected()),
        }
    }

    /// Does all work that is due: connecting, giving up, sending.
    pub(crate) fn advance(&mut self, now: Moment, effects: &mut Effects) {
        if now >= self.next_due() {
            self.do_what_is_due(now, effects);
        }
        self.event_log.catch_up(now, &mut effects.lines);
        self.flush(now, effects);
    }

    fn do_what_is_due(&mut self, now: Moment, effects: &mut Effects) {
        // The socket may be ready although the deadline has passed, because nobody may have looked for a
        // while.
        self.read_on(now, effects);
        self.handle_overdue(now, effects);
        if self.link.is_up() {
            self.queue.probe(now);
        }
        if self.queue.is_silent(now) {
            let ms = now.ms_since(self.link.heard_at());
            let change = self.link.break_off(format!("no data received for {ms} ms"), now);
            self.handle_change(change, effects);
        }
        // A caller that needs the server does not fail because of a connection that nobody has used for long.
        if now >= self.link.next_due() {
            let change = self.link.handle_due(now);
            self.handle_change(change, effects);
        }
    }

    /// Whether the server has no room for more requests but keeps answering, so that there will be room soon.
    pub(crate) fn is_congested(&self, now: Moment) -> bool {
        self.link.is_up()
            && self.queue.is_full()
            && now.ms_since(self.link.heard_at()) < self.link.timeouts().reply_ms(LONG_TTL_MS)
    }

    /// Whether the server is down and no request must reach it. It is not connected until a caller needs it.
    pub(crate) fn is_dormant(&self) -> bool {
        self.link.is_down() && self.queue.is_done() && self.predecessor.is_none()
    }

    /// When [`Self::advance`] is due next, if nothing is received before.
    pub(crate) fn next_due(&self) -> Moment {
        let due = if self.link.is_up() {
            let give_up_at = self.queue.give_up_at().unwrap_or(Moment::NEVER);
            let overdue_at = self.queue.overdue_at(self.link.timeouts());
            give_up_at.min(self.queue.probe_at()).min(overdue_at)
        } else {
            self.link.next_due()
        };
        self.predecessor.as_ref().map_or(due, |predecessor| due.min(predecessor.given_up_at()))
    }

    /// What to poll for.
    pub(crate) fn interest(&self) -> Option<Interest> {
        self.link.interest()
    }

    /// What to poll for on the connection before this one, if it still exists.
    pub(crate) fn interest_in_predecessor(&self) -> Option<Interest> {
        self.predecessor.as_ref().map(|predecessor| predecessor.interest())
    }

    /// The socket of the connection before this one is ready.
    pub(crate) fn handle_predecessor_ready(&mut self, now: Moment, effects: &mut Effects) {
        self.receive_from_predecessor(now, effects);
        self.flush(now, effects);
    }

    /// The socket of the connection in use is ready.
    pub(crate) fn handle_ready(&mut self, now: Moment, effects: &mut Effects) {
        self.read_on(now, effects);
        self.flush(now, effects);
    }

    /// Sends the queued requests, or as much as the socket takes.
    fn flush(&mut self, now: Moment, effects: &mut Effects) {
        if self.queue.has_unsent() && self.link.is_up() {
            self.queue.send(&mut self.link.outbox, self.capabilities, now);
        }
        if self.link.has_unsent() {
            let change = self.link.send(now);
            let outbox_bytes = self.link.outbox.capacity();
            self.traffic.requests += self.queue.note_written(outbox_bytes, clock::now);
            self.handle_change(change, effects);
        }
        if self.predecessor.is_some() {
            self.flush_predecessor(now, effects);
        }
    }

    /// Why the server cannot be asked now.
    fn obstacle(&mut self, reply_ms: i64, now: Moment, effects: &mut Effects) -> Option<Failure> {
        self.is_keeping_up(reply_ms, now, effects);
        if self.is_behind(reply_ms, now) {
            Some(Failure::Behind { ms: now.ms_since(self.owes_since().unwrap_or(now)) })
        } else if self.link.is_down() {
            Some(self.not_connected())
        } else if self.queue.is_full() {
            Some(Failure::Full)
        } else {
            None
        }
    }

    fn is_behind(&self, reply_ms: i64, now: Moment) -> bool {
        if self.is_stuck() {
            return true;
        }
        self.link.is_up() && self.queue.owes_since().is_some_and(|at| now.ms_since(at) > reply_ms)
    }

    fn not_connected(&self) -> Failure {
        Failure::NotConnected(self.link.why_down().words)
    }

    /// Tells all waiting calls how the connection has changed. There is almost never a change.
    #[inline]
    fn handle_change(&mut self, change: Option<Change>, effects: &mut Effects) {
        if let Some(change) = change {
            self.tell_of_change(change, effects);
        }
    }

    fn tell_of_change(&mut self, change: Change, effects: &mut Effects) {
        effects.changed = true;
        let mut say = |event, level, words: String| {
            self.event_log.say(event, (level, words), clock::now(), &mut effects.lines);
        };
        match change {
            Change::Up(up) => {
                let Up { capabilities, process, guard, took_us, again, remark } = *up;
                self.traffic.connections += 1;
                if again {
                    say(Event::Connected, Level::Info, "connected again".to_owned());
                }
                if let Some(remark) = remark {
                    say(Event::LogsLess, Level::Warning, remark.to_owned());
                }
                self.queue.remember(process, guard);
                if let Some(doubt) = self.queue.doubt(clock::now()) {
                    say(Event::Forgot, Level::Warning, doubt.to_string());
                    // The message above covers this news, too.
                    self.lasting.clock.take_news();
                }
                self.capabilities = capabilities;
                self.queue.note_round_trip(took_us);
                self.tell_of_blindness(clock::now(), effects);
                for ticket in mem::take(&mut self.awaiting_connection) {
                    self.deliver(ticket, Answer::Done, effects);
                }
            }
            Change::Failed { why, first } => {
                self.traffic.connections_failed += 1;
                effects.health.spoil();
                if first {
                    say(Event::NotConnected, Level::Warning, why.clone());
                }
                self.fail_all(&Failure::NotConnected(why), effects);
            }
            Change::Lost { how } => {
                self.traffic.connections_lost += 1;
                effects.health.spoil();
                say(Event::Lost, Level::Warning, format!("connection lost: {how}"));
                self.fail_all(&Failure::Lost(how), effects);
            }
        }
    }

    /// Delivers an answer to a call whose request was not sent.
    fn deliver(&self, ticket: Ticket, answer: Answer, effects: &mut Effects) {
        effects.deliveries.push(Delivery { ticket, server: self.index, answer, sent: false });
    }
}

#[cfg(test)]
mod tests;
