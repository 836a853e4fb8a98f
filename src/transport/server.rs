//! One server: the requests to it, over one connection and in one order, and the tickets that get the
//! answers.

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;

use super::account::PasswordRequest;
use super::arbiters::{Owner, Standing};
use super::connector::{Change, Connector, NOT_TRIED, Up};
use super::draining_connection::DrainingConnection;
use super::interest::Interest;
use super::security::Security;
use crate::protocol::command::identity::Identity;
use crate::protocol::command::{Answer, Capabilities, Request};
use crate::protocol::condition::Condition;
use crate::protocol::conn::close_reason::CloseReason;
pub(crate) use crate::protocol::conn::effects::{Delivery, Effects, Pushed};
use crate::protocol::conn::event_log::{Event, EventLog};
use crate::protocol::conn::inbox::Received;
use crate::protocol::conn::memories::Lasting;
use crate::protocol::conn::queue::{Queue, Settled};
use crate::protocol::conn::server_registry::ServerRegistry;
use crate::protocol::conn::why::Why;
use crate::protocol::failure::Failure;
use crate::protocol::log_line::Level;
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::offset::Course;
use crate::protocol::quorum::ownership::Support;
use crate::protocol::servers::address::Lookup;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::stats::{ServerStats, Traffic};
use crate::protocol::trouble::Trouble;
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
    connector: Connector,
    capabilities: Capabilities,
    queue: Queue,
    /// What is known of the server beyond its connections.
    lasting: Arc<Lasting>,
    /// The connection before this one, if an answer on it is overdue.
    draining: Option<Box<DrainingConnection>>,
    looked_at: Moment,
    /// Answers that count once the Sentinels have confirmed that the server is the master.
    held: Vec<Held>,
    /// Why it has no vote, if too few of them did when they were last asked.
    unconfirmed: Option<Failure>,
    /// Calls that wait for the connection itself.
    awaiting_connection: Vec<OpId>,
    /// Whether it was logged that a loss of the server's memory is not noticed.
    is_known_blind: bool,
    /// The log lines about this server.
    event_log: EventLog,
    traffic: Traffic,
}

/// An answer that is held back, and the owner whose answer it is.
struct Held {
    owner: Owner,
    settled: Settled,
}

impl Server {
    pub(crate) fn new(
        index: usize,
        endpoint: Endpoint,
        policy: Arc<Policy>,
        access: Arc<Security>,
        server_registry: Arc<ServerRegistry>,
    ) -> Self {
        let lasting = Arc::new(Lasting::with_prefix(&endpoint.key_prefix()));
        let queue = Queue::new(index, server_registry.rules(), &lasting);
        let connector = Connector::new(
            (index, server_registry, Arc::clone(&lasting)),
            endpoint,
            policy,
            access,
        );
        Self {
            index,
            event_log: EventLog::new(connector.endpoint().to_string()),
            connector,
            capabilities: Capabilities::default(),
            queue,
            lasting,
            draining: None,
            looked_at: Moment::from_nanos(0),
            held: Vec::new(),
            unconfirmed: None,
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
        self.connector.inherited()
    }

    /// Forgets the sockets that [`InheritedDescriptor::close_inherited`] has closed.
    pub(crate) fn forget_sockets(&mut self) {
        self.connector.forget_socket();
        self.draining.take().into_iter().for_each(|draining| draining.forget_socket());
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
        let looked_at = self.looked_at.max(self.connector.heard_at());
        let mut is_behind = self.is_behind(reply_ms, now);
        if now >= looked_at.plus_ms(if is_behind { BEHIND_MS } else { QUIET_MS }) {
            self.looked_at = now;
            self.look(now, effects);
            is_behind = self.is_behind(reply_ms, now);
        }
        self.connector.is_up() && !is_behind
    }

    /// Queues a request and delivers its answer to the ticket. The ticket is told at once if the server
    /// cannot be asked now, or has owed an answer for longer than `reply_ms`.
    pub(crate) fn ask(
        &mut self,
        request: &Arc<Request>,
        ticket: OpId,
        reply_ms: i64,
        now: Moment,
        effects: &mut Effects,
    ) {
        if self.is_in_order(reply_ms, now) && !request.is_for_some() {
            return self.push(request, Some(ticket), now);
        }
        self.follow_master(now, effects);
        match self.refusal(request, reply_ms, now, effects) {
            None => self.push(request, Some(ticket), now),
            Some(failure) => {
                self.deliver(ticket, Answer::Failed(failure), effects);
                if request.must_reach(self.index) {
                    self.tell(request, now, effects);
                }
            }
        }
    }

    /// Whether nothing is to be done before a request is queued, as nearly always. Otherwise it is found out what.
    #[inline]
    fn is_in_order(&self, reply_ms: i64, now: Moment) -> bool {
        self.connector.is_up()
            && !self.connector.is_followed()
            && !self.is_behind(reply_ms, now)
            && now < self.looked_at.max(self.connector.heard_at()).plus_ms(QUIET_MS)
            && !self.queue.is_full()
    }

    /// Why the server is not asked this now.
    fn refusal(
        &mut self,
        request: &Request,
        reply_ms: i64,
        now: Moment,
        effects: &mut Effects,
    ) -> Option<Failure> {
        if let Some(failure) = self.obstacle(reply_ms, now, effects) {
            return Some(failure);
        }
        match self.connector.is_failing(reply_ms, now) {
            true => Some(self.not_connected()),
            false => self.left_out(request),
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
        if !is_required && (!self.connector.is_up() || self.queue.is_full()) {
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
        ticket: OpId,
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
        if self.connector.is_up() || self.is_stuck() {
            Failure::NoAnswer { ms }
        } else if self.connector.is_down() {
            self.not_connected()
        } else {
            let lacking = self.connector.lacking();
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
        match self.connector.is_up() || self.is_stuck() {
            true => Condition::up(asked_at, now),
            false => Condition::down(&self.not_connected()),
        }
    }

    /// Does all work that is due: connecting, giving up, sending.
    pub(crate) fn advance(&mut self, now: Moment, effects: &mut Effects) {
        if now >= self.next_due() {
            self.do_what_is_due(now, effects);
        }
        self.catch_up(now, effects);
        self.flush(now, effects);
    }

    /// Logs what was left out, if it is time for that.
    pub(crate) fn catch_up(&mut self, now: Moment, effects: &mut Effects) {
        self.event_log.catch_up(now, &mut effects.lines);
    }

    fn do_what_is_due(&mut self, now: Moment, effects: &mut Effects) {
        // The socket may be ready although the deadline has passed, because nobody may have looked for a
        // while.
        self.read_on(now, effects);
        self.handle_overdue(now, effects);
        if self.connector.is_up() {
            self.queue.probe(now);
        }
        if self.queue.is_silent(now) {
            let ms = now.ms_since(self.connector.heard_at());
            let change = self.connector.break_off(format!("no data received for {ms} ms"), now);
            self.handle_change(change, now, effects);
        }
        // A caller that needs the server does not fail because of a connection that nobody has used for long.
        if now >= self.connector.next_due() {
            let change = self.connector.handle_due(now);
            self.handle_change(change, now, effects);
        }
    }

    /// Whether the server has no room for more requests but keeps answering, so that there will be room soon.
    pub(crate) fn is_congested(&self, now: Moment) -> bool {
        self.connector.is_up()
            && self.queue.is_full()
            && now.ms_since(self.connector.heard_at())
                < self.connector.policy().reply_ms(LONG_TTL_MS)
    }

    /// Whether the server is down and no request must reach it. It is not connected until a caller needs it.
    pub(crate) fn is_dormant(&self) -> bool {
        self.connector.is_down() && self.queue.is_done() && self.draining.is_none()
    }

    /// When [`Self::advance`] is due next, if nothing is received before.
    pub(crate) fn next_due(&self) -> Moment {
        let due = match self.connector.is_up() {
            true => self.queue.next_due(self.connector.policy()),
            false => self.connector.next_due(),
        };
        self.draining.as_ref().map_or(due, |draining| due.min(draining.given_up_at()))
    }

    /// What to poll for.
    pub(crate) fn interest(&self) -> Option<Interest> {
        self.connector.interest()
    }

    /// Whether there is something to poll for beside that.
    pub(crate) fn has_interests_beside(&self) -> bool {
        self.draining.is_some() || self.connector.is_followed()
    }

    /// What to poll for beside that: the connection before this one, if it still exists, and Sentinels.
    pub(crate) fn interests_beside(&self) -> impl Iterator<Item = Interest> + Clone {
        let of_predecessor = self.draining.iter().map(|draining| draining.interest());
        of_predecessor.chain(self.connector.interests_in_arbiters())
    }

    /// A socket beside that of the connection in use is ready.
    pub(crate) fn handle_ready_beside(&mut self, now: Moment, effects: &mut Effects) {
        self.receive_from_predecessor(now, effects);
        self.hear_arbiters(now, effects);
        self.flush(now, effects);
    }

    /// The socket of the connection in use is ready.
    pub(crate) fn handle_ready(&mut self, now: Moment, effects: &mut Effects) {
        self.read_on(now, effects);
        self.flush(now, effects);
    }

    /// Sends the queued requests, or as much as the socket takes.
    #[inline]
    fn flush(&mut self, now: Moment, effects: &mut Effects) {
        let has_unsent = self.queue.has_unsent() || self.connector.has_unsent();
        if has_unsent || self.draining.is_some() {
            self.send(now, effects);
        }
    }

    /// The same when there may be something to send.
    fn send(&mut self, now: Moment, effects: &mut Effects) {
        if self.queue.has_unsent() && self.connector.is_up() {
            self.queue.send(&mut self.connector.outbox, self.capabilities, now);
        }
        if self.connector.has_unsent() {
            let change = self.connector.send(now);
            let outbox_bytes = self.connector.outbox.capacity();
            self.traffic.requests += self.queue.note_written(outbox_bytes, clock::now);
            self.handle_change(change, now, effects);
        }
        if self.draining.is_some() {
            self.flush_predecessor(now, effects);
        }
    }

    /// Why the server cannot be asked now.
    fn obstacle(&mut self, reply_ms: i64, now: Moment, effects: &mut Effects) -> Option<Failure> {
        if self.is_keeping_up(reply_ms, now, effects) {
            return self.queue.is_full().then_some(Failure::Full);
        }
        if self.is_behind(reply_ms, now) {
            Some(Failure::Behind { ms: now.ms_since(self.owes_since().unwrap_or(now)) })
        } else if self.connector.is_down() {
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
        let enough_ms = reply_ms.saturating_add(1);
        self.connector.is_up()
            && self.queue.owes_since().is_some_and(|at| now >= at.plus_ms(enough_ms))
    }

    fn not_connected(&self) -> Failure {
        Failure::NotConnected(self.connector.why_down().words)
    }

    /// Tells all waiting calls how the connection has changed. There is almost never a change.
    #[inline]
    fn handle_change(&mut self, change: Option<Change>, now: Moment, effects: &mut Effects) {
        if let Some(change) = change {
            self.tell_of_change(change, now, effects);
        }
    }

    fn tell_of_change(&mut self, change: Change, now: Moment, effects: &mut Effects) {
        (effects.changed, effects.server_may_be_due) = (true, true);
        let mut say = |event, level, words: String| {
            self.event_log.say(event, (level, words), now, &mut effects.lines);
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
                self.unconfirmed = None;
                self.queue.remember(process, guard);
                if let Some(doubt) = self.queue.doubt(now) {
                    say(Event::Forgot, Level::Warning, doubt.to_string());
                    // The message above covers this news, too.
                    self.lasting.clock.take_news();
                }
                self.capabilities = capabilities;
                self.queue.note_round_trip(took_us);
                self.tell_of_blindness(now, effects);
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
    fn deliver(&self, ticket: OpId, answer: Answer, effects: &mut Effects) {
        effects.deliveries.push(Delivery { ticket, server: self.index, answer, sent: false });
    }
}

/// Which calls need a connection, and what must be asked before one can be opened.
impl Server {
    /// Connects now if there is no connection, because a caller needs the server.
    pub(crate) fn hurry(&mut self, now: Moment, effects: &mut Effects) {
        if self.is_stuck() {
            // Nobody waits for a second connection, and a frozen server does not accept one, so it is opened
            // when it is due. It may be up by now.
            self.read_on(now, effects);
        } else {
            if self.connector.is_up() {
                // A connection that the server has closed is of no use, however recently it was used.
                self.looked_at = now;
                self.look(now, effects);
            }
            self.follow_master(now, effects);
            self.connector.hurry(now);
        }
        // The thread that polls the sockets does not poll this one yet.
        effects.changed = true;
        self.advance(now, effects);
    }

    /// Tells the ticket as soon as there is a connection, or as soon as none can be made for now.
    pub(crate) fn await_connection(
        &mut self,
        ticket: OpId,
        reply_ms: i64,
        now: Moment,
        effects: &mut Effects,
    ) {
        if self.connector.is_asked_about() {
            return self.awaiting_connection.push(ticket);
        }
        let answer = match self.obstacle(reply_ms, now, effects) {
            Some(failure) => Answer::Failed(failure),
            None if self.connector.is_up() => Answer::Done,
            None => return self.awaiting_connection.push(ticket),
        };
        self.deliver(ticket, answer, effects);
    }

    /// Checks whether another server has become the master, if Sentinels watch it.
    #[inline]
    fn follow_master(&mut self, now: Moment, effects: &mut Effects) {
        if self.connector.is_followed() {
            self.look_for_master(now, effects);
        }
    }

    fn look_for_master(&mut self, now: Moment, effects: &mut Effects) {
        let change = self.connector.follow(now);
        self.handle_change(change, now, effects);
        // The thread that polls does not know of the Sentinels' sockets.
        effects.changed |= self.connector.take_asked();
        self.release_held(now, effects);
    }

    /// Reads what the Sentinels have said, if they watch the server and are being asked.
    fn hear_arbiters(&mut self, now: Moment, effects: &mut Effects) {
        let change = self.connector.hear_arbiters(now);
        self.handle_change(change, now, effects);
        self.release_held(now, effects);
    }

    /// The name to look up, if a look-up is due; see [`Self::handle_addresses`].
    pub(crate) fn name_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        self.connector.name_to_look_up(now)
    }

    /// The same if nobody lacks the server so far: cannot resolve the host name yet, or it is down and may have moved.
    pub(crate) fn name_of_lost_to_look_up(&mut self, now: Moment) -> Option<Lookup> {
        self.connector.name_of_lost_to_look_up(now)
    }

    /// When [`Self::name_of_lost_to_look_up`] is due, for a server that is down.
    pub(crate) fn look_up_of_lost_at(&self) -> Moment {
        self.connector.look_up_of_lost_at()
    }

    /// Handles the result of the look-up that began at `began`.
    pub(crate) fn handle_addresses(
        &mut self,
        lookup: &Lookup,
        found: Result<Vec<SocketAddr>, String>,
        began: Moment,
        now: Moment,
        effects: &mut Effects,
    ) {
        effects.changed = true;
        let change = self.connector.handle_addresses(lookup, found, began, now);
        self.handle_change(change, now, effects);
        self.hurry(now, effects);
    }

    /// The source to ask for the password, if that is due; see [`Self::handle_password`].
    pub(crate) fn password_request(&mut self, now: Moment) -> Option<PasswordRequest> {
        self.connector.password_request(now)
    }

    /// Handles the answer to the question that was asked at `began`.
    pub(crate) fn handle_password(
        &mut self,
        password: Option<Vec<u8>>,
        began: Moment,
        now: Moment,
        effects: &mut Effects,
    ) {
        effects.changed = true;
        let change = self.connector.handle_password(password, began, now);
        self.handle_change(change, now, effects);
        self.hurry(now, effects);
    }

    /// Whether a connection may succeed without asking the system's resolver first.
    pub(crate) fn is_promising(&self) -> bool {
        self.connector.is_promising()
    }
}

/// Push messages of a server, and whether the server sends them.
impl Server {
    /// Why this request is not for the server, if so. It relies on later push messages, and the server would not
    /// send them, or it is not known whether it would. Or it is a move, and another request that may set a slot
    /// is under way.
    fn left_out(&self, request: &Request) -> Option<Failure> {
        if request.leaves_out(self.index) {
            return Some(Failure::NotMoved);
        }
        if !request.needs_pushes() {
            return None;
        }
        if !self.connector.is_up() {
            return Some(self.not_connected());
        }
        let mute = || (!self.capabilities.has_pushes()).then_some(Failure::Mute);
        self.queue.unheard().or_else(mute)
    }

    /// Notes the server's push messages: all of them, or with `is_early` only those that came before the last
    /// answer.
    #[inline]
    fn note_pushes(&mut self, is_early: bool, effects: &mut Effects) {
        if self.connector.inbox.has_pushes() {
            self.take_pushes(is_early, effects);
        }
    }

    /// Never inlined, because there is almost never one.
    #[inline(never)]
    fn take_pushes(&mut self, is_early: bool, effects: &mut Effects) {
        let (channel, inbox) = (self.queue.channel(), &mut self.connector.inbox);
        match is_early {
            true => effects.note_pushes(self.index, channel, inbox.early_pushes()),
            false => effects.note_pushes(
                self.index,
                channel,
                inbox.pushes_amid(self.queue.replies_of_oldest()),
            ),
        }
    }
}

/// What a connection has received: the rest of connecting, and answers.
impl Server {
    /// Goes on with connecting, or reads the available data.
    fn read_on(&mut self, now: Moment, effects: &mut Effects) {
        let change = self.connector.handle_connected(now);
        self.handle_change(change, now, effects);
        self.receive(now, effects);
        if self.connector.is_followed() {
            self.hear_arbiters(now, effects);
        }
    }

    /// Reads until there is no more data. The stream may have ended behind the received data. A reader that
    /// stopped earlier would take a closed connection for one that is up.
    fn look(&mut self, now: Moment, effects: &mut Effects) {
        effects.server_may_be_due = true;
        while self.receive(now, effects) {}
    }

    /// Also reads from the connection before this one, if its successor is not up yet. Returns whether the
    /// last read received something, so that more may be there.
    fn receive(&mut self, now: Moment, effects: &mut Effects) -> bool {
        if self.is_stuck() {
            self.receive_from_predecessor(now, effects);
        }
        loop {
            let received = match self.connector.receive(now) {
                Ok(Received::Nothing) => return false,
                Ok(received) => received,
                Err(change) => {
                    self.handle_change(change, now, effects);
                    return false;
                }
            };
            // The data may have been sent after `now` was read.
            let now = clock::now().max(now);
            self.queue.hear(now);
            let change = self.connector.read_handshake(now);
            self.handle_change(change, now, effects);
            if self.connector.is_up() && self.is_stuck() {
                self.replace_predecessor(now, effects);
            }
            if let Err(close_reason) = self.read_answers(now, effects) {
                let change = self.connector.break_off(close_reason.to_string(), now);
                self.handle_change(change, now, effects);
                return false;
            }
            if received == Received::All {
                return true;
            }
        }
    }

    /// Logs that the server's clock was set.
    fn tell_of_clock(&mut self, now: Moment, effects: &mut Effects) {
        let line = match self.lasting.clock.take_news() {
            None => return,
            Some(Course::Back { ms }) => (Level::Info, format!("clock set back by {ms} ms")),
            Some(_) => match self.queue.doubt(now) {
                Some(doubt) => (Level::Warning, doubt.to_string()),
                None => return,
            },
        };
        self.event_log.say(Event::ClockSet, line, now, &mut effects.lines);
    }

    /// Logs that the server has lost its fencing tokens, or has them again.
    fn tell_of_numbers(&mut self, now: Moment, effects: &mut Effects) {
        if let Some(numbers) = self.queue.news_of_numbers() {
            self.event_log.say(Event::Numbers, numbers.line(), now, &mut effects.lines);
        }
    }

    /// Logs once that a loss of the server's memory is not noticed.
    #[inline]
    fn tell_of_blindness(&mut self, now: Moment, effects: &mut Effects) {
        if self.queue.is_blind() != self.is_known_blind {
            self.note_blindness(now, effects);
        }
    }

    fn note_blindness(&mut self, now: Moment, effects: &mut Effects) {
        if self.queue.is_blind() {
            let line = (Level::Warning, self.queue.caveat().into_owned());
            self.event_log.say(Event::Unguarded, line, now, &mut effects.lines);
        }
        self.is_known_blind = self.queue.is_blind();
    }

    fn read_answers(&mut self, now: Moment, effects: &mut Effects) -> Result<(), CloseReason> {
        while self.connector.is_up() {
            let inbox = &mut self.connector.inbox;
            if inbox.is_drained() {
                return Ok(());
            }
            // Matched once, because an answer is long, and each `?` would copy it.
            let settled = match self.queue.next_settled(inbox, &mut self.capabilities, now) {
                Ok(Some(settled)) => settled,
                Ok(None) => {
                    self.note_pushes(false, effects);
                    return Ok(());
                }
                Err(reason) => return Err(reason),
            };
            self.note_pushes(true, effects);
            self.traffic.note_answer(self.queue.round_trip_us());
            let answer = &settled.answer;
            let is_replica = matches!(answer, Answer::Failed(it) if it.is_of_a_replica());
            self.event_log.note_answer(settled.kind, answer, now, &mut effects.lines);
            effects.restores |= answer.asks_to_restore();
            self.tell_of_clock(now, effects);
            self.tell_of_numbers(now, effects);
            self.tell_of_blindness(now, effects);
            match self.connector.owner().filter(|_| settled.claims) {
                None => self.hand_over(settled, effects),
                Some(owner) => self.hand_over_of(owner.clone(), settled, now, effects),
            }
            if is_replica && self.connector.is_followed() {
                return Err(CloseReason::Demoted);
            }
        }
        Ok(())
    }

    /// Fails all waiting tickets. A request that must reach the server is kept for the next connection.
    fn fail_all(&mut self, failure: &Failure, effects: &mut Effects) {
        let mut fail = |ticket, sent| {
            let answer = Answer::Failed(failure.clone());
            effects.deliveries.push(Delivery { ticket, server: self.index, answer, sent });
        };
        self.awaiting_connection.drain(..).for_each(|ticket| fail(ticket, false));
        let held = self.held.drain(..).filter_map(|it| it.settled.ticket);
        held.for_each(|ticket| fail(ticket, true));
        self.queue.fail(fail);
    }
}

/// Answers of a master that Sentinels watch. One that claims that a lock is held counts only if a majority of them names
/// that master, and was asked recently. They are asked beside the requests, so an answer seldom waits for them. It waits
/// here, and not in the queue: releases behind it must not wait.
impl Server {
    /// Delivers the answer to the call that waits for it.
    fn hand_over(&self, Settled { ticket, answer, .. }: Settled, effects: &mut Effects) {
        if let Some(ticket) = ticket {
            effects.deliveries.push(Delivery { ticket, server: self.index, answer, sent: true });
        }
    }

    /// The same for an answer that claims something.
    fn hand_over_of(
        &mut self,
        owner: Owner,
        mut settled: Settled,
        now: Moment,
        effects: &mut Effects,
    ) {
        match self.connector.standing(&owner, settled.sent_at, now) {
            Standing::Confirmed => self.unconfirmed = None,
            Standing::Unconfirmed(support) => {
                let failure = self.refuse(&settled, support, now, effects);
                settled.answer = Answer::Failed(failure);
            }
            // Nobody waits for it.
            Standing::Unknown if settled.ticket.is_none() => return,
            Standing::Unknown => {
                // The thread that polls does not know of the Sentinels' sockets.
                effects.changed = true;
                return self.held.push(Held { owner, settled });
            }
        }
        self.hand_over(settled, effects);
    }

    /// Too few Sentinels have named the master for this answer to count.
    fn refuse(
        &mut self,
        settled: &Settled,
        support: Support,
        now: Moment,
        effects: &mut Effects,
    ) -> Failure {
        let Support { named, needed, of } = support;
        let by = self.connector.electors();
        let failure = Failure::Unconfirmed { by, named, needed, of };
        self.unconfirmed = Some(failure.clone());
        let answer = Answer::Failed(failure.clone());
        self.event_log.note_answer(settled.kind, &answer, now, &mut effects.lines);
        failure
    }

    /// Gives up waiting for the Sentinels' word on an answer. Returns when its request was sent, and why the answer
    /// does not count. None if no answer is held back.
    pub(crate) fn give_up_held(
        &mut self,
        ticket: OpId,
        now: Moment,
        effects: &mut Effects,
    ) -> Option<(Moment, Failure)> {
        let which = self.held.iter().position(|it| it.settled.ticket == Some(ticket))?;
        let settled = self.held.swap_remove(which).settled;
        let support = self.connector.support(settled.sent_at)?;
        Some((settled.sent_at, self.refuse(&settled, support, now, effects)))
    }

    /// Delivers the answers that the Sentinels have decided about.
    fn release_held(&mut self, now: Moment, effects: &mut Effects) {
        for Held { owner, settled } in mem::take(&mut self.held) {
            self.hand_over_of(owner, settled, now, effects);
        }
    }

    /// Nobody waits for the answer any more. Returns when its request was sent, if the answer is held back.
    fn abandon_held(&mut self, ticket: OpId) -> Option<Moment> {
        let which = self.held.iter().position(|it| it.settled.ticket == Some(ticket))?;
        Some(self.held.swap_remove(which).settled.sent_at)
    }

    fn held_since(&self, ticket: OpId) -> Option<Moment> {
        let held = self.held.iter().find(|it| it.settled.ticket == Some(ticket));
        held.map(|it| it.settled.sent_at)
    }
}

/// How a server gets a second connection when the first one owes an answer for too long.
///
/// A connection can be dead behind a device that acknowledges what is sent over it. Waiting for such a server
/// would leave it out until the longest TTL in flight is over, which may take years. Closing the connection
/// would let requests over the next connection overtake the requests that they undo. So the connection is set
/// aside ([`DrainingConnection`]). The server counts as behind until another connection is up, or until the first
/// one has answered after all.
impl Server {
    /// Whether this connection owes an answer for too long, and its successor is not up yet.
    fn is_stuck(&self) -> bool {
        self.draining.as_ref().is_some_and(|draining| !draining.is_replaced)
    }

    /// Since when the oldest answer is owed on the connection in use.
    fn owes_since(&self) -> Option<Moment> {
        match &self.draining {
            Some(it) if !it.is_replaced => it.queue.owes_since(),
            _ => self.queue.owes_since(),
        }
    }

    /// Puts a request in the queue. A request that undoes another one which may be under way over the
    /// connection before this one is sent over both.
    fn push(&mut self, request: &Arc<Request>, ticket: Option<OpId>, now: Moment) {
        match &mut self.draining {
            Some(it) if !it.is_replaced => return it.queue.push(request, ticket, now),
            Some(it) if request.must_reach(self.index) => it.guard(request, now),
            _ => {}
        }
        self.queue.push(request, ticket, now);
    }

    /// Whether something waits to be sent.
    fn has_unsent(&self) -> bool {
        let draining = self.draining.as_ref().is_some_and(|draining| draining.queue.has_unsent());
        draining || self.queue.has_unsent()
    }

    /// The same as [`Queue::sent_at`], for the connection that has the request.
    pub(crate) fn sent_at(&self, ticket: OpId) -> Option<Moment> {
        let before = || self.draining.as_ref().and_then(|draining| draining.queue.sent_at(ticket));
        self.queue.sent_at(ticket).or_else(before).or_else(|| self.held_since(ticket))
    }

    /// The same as [`Queue::abandon`], for the connection that has the request.
    fn abandon_request(&mut self, ticket: OpId) -> Option<Moment> {
        let sent_at = self.abandon_held(ticket).or_else(|| self.queue.abandon(ticket));
        let abandon = |draining: &mut Box<DrainingConnection>| draining.queue.abandon(ticket);
        sent_at.or_else(|| self.draining.as_mut().and_then(abandon))
    }

    /// Handles a connection that owes an answer for too long. The connection before this one is given up when
    /// its time is over.
    fn handle_overdue(&mut self, now: Moment, effects: &mut Effects) {
        if self.draining.as_ref().is_some_and(|draining| now >= draining.given_up_at()) {
            self.receive_from_predecessor(now, effects);
        }
        let is_given_up = |draining: &mut Box<DrainingConnection>| now >= draining.given_up_at();
        if let Some(draining) = self.draining.take_if(is_given_up) {
            let ms = now.ms_since(draining.heard_at());
            self.lose_predecessor(*draining, format!("no data received for {ms} ms"), now, effects);
        }
        if now >= self.queue.overdue_at(self.connector.policy()) && !self.queue.is_silent(now) {
            self.set_aside(now, effects);
        }
    }

    /// Sets the connection aside, so that another one is opened. At most one is kept beside the connection in
    /// use, so an older one is closed.
    fn set_aside(&mut self, now: Moment, effects: &mut Effects) {
        let Some(stream) = self.connector.set_aside(now) else { return };
        if let Some(older) = self.draining.take() {
            self.lose_predecessor(*older, "a newer connection is overdue".to_owned(), now, effects);
        }
        let ms = now.ms_since(self.queue.owes_since().unwrap_or(now));
        let words = format!("no reply for {ms} ms: opening a second connection");
        self.event_log.say(Event::Overdue, (Level::Warning, words), now, &mut effects.lines);
        effects.health.spoil();
        effects.changed = true;
        let next = self.queue.next();
        let queue = mem::replace(&mut self.queue, next);
        self.draining = Some(Box::new(DrainingConnection::new(stream, queue, self.capabilities)));
    }

    /// The successor is up. Requests over the connection before it that must reach the server are sent over
    /// the successor, too.
    fn replace_predecessor(&mut self, now: Moment, effects: &mut Effects) {
        // The old connection may have answered at the same moment. In that case it stays in use.
        self.receive_from_predecessor(now, effects);
        let Some(mut draining) = self.draining.take_if(|draining| !draining.is_replaced) else {
            return;
        };
        let line = (Level::Info, "second connection is open".to_owned());
        self.event_log.say(Event::Replaced, line, now, &mut effects.lines);
        self.queue.repeat_required(&mut draining.queue);
        draining.is_replaced = true;
        draining.look_what_is_guarded();
        if now < draining.given_up_at() {
            self.draining = Some(draining);
        } else {
            self.fail_waiting(draining.queue, "replaced by a newer connection", effects);
        }
    }

    /// Reads the available data of the connection before this one.
    fn receive_from_predecessor(&mut self, now: Moment, effects: &mut Effects) {
        let Some(mut draining) = self.draining.take() else { return };
        let owed_since = draining.queue.owes_since();
        if let Err(how) = self.read(&mut draining, now, effects) {
            return self.lose_predecessor(*draining, how, now, effects);
        }
        let has_answered = draining.queue.owes_since() != owed_since;
        let is_overdue = now >= draining.queue.overdue_at(self.connector.policy());
        if has_answered && !is_overdue && !draining.is_replaced {
            return self.take_back(*draining, now, effects);
        }
        self.draining = Some(draining);
    }

    fn read(
        &mut self,
        draining: &mut DrainingConnection,
        now: Moment,
        effects: &mut Effects,
    ) -> Result<(), String> {
        loop {
            let received = draining.receive(now)?;
            let now = clock::now().max(now);
            if received == Received::Nothing {
                return Ok(());
            }
            while let Some(settled) = draining.next_settled(now)? {
                self.traffic.note_answer(draining.queue.round_trip_us());
                if !draining.is_replaced {
                    let Settled { kind, answer, .. } = &settled;
                    self.event_log.note_answer(*kind, answer, now, &mut effects.lines);
                }
                match draining.owner().filter(|_| settled.claims) {
                    None => self.hand_over(settled, effects),
                    Some(owner) => self.hand_over_of(owner.clone(), settled, now, effects),
                }
            }
            draining.note_pushes(self.index, effects);
            draining.look_what_is_guarded();
            if received == Received::All {
                return Ok(());
            }
        }
    }

    /// The connection that was set aside has answered before there is another one.
    fn take_back(&mut self, draining: DrainingConnection, now: Moment, effects: &mut Effects) {
        let line = (Level::Info, "replies again".to_owned());
        self.event_log.say(Event::AnswersAgain, line, now, &mut effects.lines);
        let (stream, queue, capabilities) = draining.into_parts();
        self.connector.take_back(stream, now);
        (self.queue, self.capabilities) = (queue, capabilities);
        for ticket in mem::take(&mut self.awaiting_connection) {
            self.deliver(ticket, Answer::Done, effects);
        }
        effects.changed = true;
    }

    /// Gives up the connection before this one. Requests that must reach the server are sent over its
    /// successor.
    fn lose_predecessor(
        &mut self,
        draining: DrainingConnection,
        how: String,
        now: Moment,
        effects: &mut Effects,
    ) {
        effects.changed = true;
        if draining.is_replaced {
            let index = self.index;
            let failure = Failure::Lost(how);
            self.queue.take_required(draining.queue, |ticket, sent| {
                let answer = Answer::Failed(failure.clone());
                effects.deliveries.push(Delivery { ticket, server: index, answer, sent });
            });
        } else {
            self.queue = draining.queue;
            self.connector.note_loss(&how);
            self.handle_change(Some(Change::Lost { how }), now, effects);
        }
    }

    /// Fails the tickets that wait for answers over a connection that is not used any more.
    fn fail_waiting(&self, mut queue: Queue, how: &str, effects: &mut Effects) {
        queue.fail(|ticket, sent| {
            let answer = Answer::Failed(Failure::Lost(how.to_owned()));
            effects.deliveries.push(Delivery { ticket, server: self.index, answer, sent });
        });
    }

    /// Sends the queued requests of the connection before this one.
    fn flush_predecessor(&mut self, now: Moment, effects: &mut Effects) {
        let Some(mut draining) = self.draining.take() else { return };
        match draining.flush(now) {
            Ok(written) => {
                self.traffic.requests += written;
                self.draining = Some(draining);
            }
            Err(how) => self.lose_predecessor(*draining, how, now, effects),
        }
    }
}

const CLUSTER_NODE: &str =
    "cluster node: replies MOVED for keys of other nodes, and CROSSSLOT for keys of several slots";

/// The state of a server as it is known now. Taking a snapshot sends no request.
#[derive(Clone, Debug)]
pub struct ServerSnapshot {
    /// The server's place, without the user and the password.
    pub name: String,
    pub is_connected: bool,
    /// Whether what the server grants counts.
    pub has_vote: bool,
    /// Why the server is not connected or has no vote, or what is not known of it. Empty if there is nothing
    /// to say.
    pub words: String,
    /// The same for programs, of a server that is not connected, has no vote, or lacks its fencing counters.
    pub trouble: Option<Trouble>,
    /// What the server said about itself when it was last asked.
    pub identity: Identity,
    /// How long the last answer took, from sending to reading, in microseconds.
    pub round_trip_us: Option<i64>,
    /// How far the server's clock is ahead of this machine's, in microseconds.
    pub clock_offset_us: Option<i64>,
    /// What was sent to the server and received from it.
    pub traffic: Traffic,
}

/// What is known of a server, for a person or a monitor.
impl From<ServerSnapshot> for ServerStats {
    fn from(snapshot: ServerSnapshot) -> Self {
        let ServerSnapshot { name, is_connected, has_vote, clock_offset_us, traffic, .. } =
            snapshot;
        Self { name, is_connected, has_vote, clock_offset_us, traffic }
    }
}

impl ServerSnapshot {
    /// Why the server has no vote although it is connected, or what is wrong with its vote, in words with its name.
    pub(crate) fn remark(&self) -> Option<String> {
        let Self { name, words, .. } = self;
        (self.is_connected && !words.is_empty()).then(|| format!("{name} {words}"))
    }

    /// The snapshot of a server that no caller has needed yet.
    pub(crate) fn of_unknown(endpoint: &Endpoint) -> Self {
        Self {
            name: endpoint.to_string(),
            is_connected: false,
            has_vote: false,
            words: NOT_TRIED.to_owned(),
            trouble: Some(Trouble::Other),
            identity: Identity::default(),
            round_trip_us: None,
            clock_offset_us: None,
            traffic: Traffic::default(),
        }
    }
}

impl Server {
    /// How long the server's last answer took.
    pub(crate) fn round_trip_us(&self) -> Option<i64> {
        self.queue.round_trip_us()
    }

    pub(crate) fn snapshot(&self, now: Moment, wall_us: i64) -> ServerSnapshot {
        let is_connected = self.connector.is_up() || self.is_stuck();
        let queue = match &self.draining {
            Some(it) if !it.is_replaced => &it.queue,
            _ => &self.queue,
        };
        let doubt = queue.doubt(now).or_else(|| self.unconfirmed.clone());
        let why = match &doubt {
            _ if !is_connected => Some(self.connector.why_down()),
            doubt => doubt.as_ref().map(Why::of_failure),
        };
        let (trouble, words) =
            why.map_or_else(|| self.caveat(queue), |it| (Some(it.trouble), it.words));
        ServerSnapshot {
            name: self.connector.name(),
            is_connected,
            has_vote: is_connected && doubt.is_none(),
            words,
            trouble,
            identity: self.connector.identity().clone(),
            round_trip_us: self.queue.round_trip_us(),
            clock_offset_us: self.queue.clock_offset_us(now, wall_us),
            traffic: self.traffic,
        }
    }

    /// What to report about the server although it has a vote.
    fn caveat(&self, queue: &Queue) -> (Option<Trouble>, String) {
        match queue.caveat() {
            caveat if !caveat.is_empty() => (queue.trouble(), caveat.into_owned()),
            _ if self.connector.identity().is_cluster_node()
                && !self.connector.is_for_one_slot() =>
            {
                (Some(Trouble::ClusterNode), CLUSTER_NODE.to_owned())
            }
            _ => (None, String::new()),
        }
    }
}

#[cfg(test)]
mod tests;
