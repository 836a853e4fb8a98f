//! The connection of one client to one server: requests go over it in one order and are carried out
//! in it, whether or not somebody still waits. It may be lost, and another is made.

use std::collections::VecDeque;
use std::rc::Rc;

use redlock::command::{Answer, Request};
use redlock::failure::Failure;
use redlock::moment::Moment;

use crate::world::{MS, World};

/// The silence after which a connection with something under way is given up, at least.
pub(crate) const SILENCE_MIN_MS: i64 = 5_000;
const CONNECT_MS: i64 = 2;
const RECONNECT_MS: i64 = 20;

/// From which client to which server.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) client: usize,
    pub(crate) server: usize,
}

/// What becomes of one request and its reply.
#[derive(Clone, Copy)]
pub(crate) struct Trip {
    /// How long the request takes, and how long the reply. Never less than those before them.
    pub(crate) there: i64,
    /// [`Trip::NEVER`]: neither this nor any later one arrives on this connection.
    pub(crate) back: i64,
    pub(crate) fault: Fault,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The server does what it is asked, and answers with an error.
    ErrorAfter,
    /// The server does nothing, and answers with an error.
    ErrorInstead,
}

impl Trip {
    pub(crate) const NEVER: i64 = i64::MAX;

    pub(crate) fn ms(there_ms: i64, back_ms: i64) -> Self {
        Self { there: there_ms * MS, back: back_ms * MS, fault: Fault::None }
    }

    pub(crate) fn failing(fault: Fault) -> Self {
        Self { fault, ..Self::default() }
    }
}

impl Default for Trip {
    fn default() -> Self {
        Self::ms(1, 1)
    }
}

#[derive(Default)]
pub(crate) struct Link {
    state: State,
    /// Which connection it is.
    epoch: u64,
    /// Connections that were lost with all that was under way.
    swallowed: Vec<u64>,
    unsent: VecDeque<Entry>,
    awaiting: VecDeque<Entry>,
    /// Calls that wait for the connection itself.
    hopeful: Vec<u64>,
    /// What becomes of the next requests, before the weather has its say.
    pub(crate) script: VecDeque<Trip>,
    /// When the last request arrives, and the last reply.
    arrives_at: i64,
    replies_at: i64,
    silent_until: i64,
    is_watched: bool,
    failures: u32,
    retry_at: i64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Down,
    Connecting,
    Up,
}

struct Entry {
    request: Rc<Request>,
    call: Option<u64>,
    since: i64,
    /// Only a release that the server needs is kept when a connection is lost.
    keep_until: Option<i64>,
}

impl Link {
    fn push(&mut self, way: Way, request: &Rc<Request>, call: Option<u64>, now: i64) {
        let is_needed = request.must_reach(way.server);
        let keep_until = is_needed.then(|| now + request.ttl_ms() * MS);
        self.unsent.push_back(Entry { request: Rc::clone(request), call, since: now, keep_until });
    }

    fn is_behind(&self, reply_ms: i64, now: i64) -> bool {
        self.awaiting.front().is_some_and(|it| (now - it.since) / MS > reply_ms)
    }

    pub(crate) fn is_keeping_up(&self, reply_ms: i64, now: i64) -> bool {
        self.state == State::Up && !self.is_behind(reply_ms, now)
    }

    fn obstacle(&self, reply_ms: i64, now: i64) -> Option<Failure> {
        if self.state == State::Down {
            Some(Failure::NotConnected("refused".to_owned()))
        } else if self.is_behind(reply_ms, now) {
            Some(Failure::Behind { ms: reply_ms })
        } else {
            None
        }
    }

    /// Nobody waits for this call any more: what was not sent never will be, unless it is needed.
    pub(crate) fn abandon(&mut self, call: u64) {
        self.hopeful.retain(|&it| it != call);
        self.unsent.retain_mut(|it| {
            let is_it = it.call == Some(call);
            it.call = it.call.filter(|_| !is_it);
            !is_it || it.keep_until.is_some()
        });
        self.awaiting.iter_mut().for_each(|it| it.call = it.call.filter(|&it| it != call));
    }
}

impl World {
    /// What becomes of the next requests on this way.
    pub(crate) fn script(&self, way: Way, trips: impl IntoIterator<Item = Trip>) {
        self.link(way).script.extend(trips);
    }

    /// Asks a server, or tells the call at once why it cannot be asked.
    pub(crate) fn ask(&self, way: Way, request: &Rc<Request>, call: u64, reply_ms: i64) {
        let obstacle = self.link(way).obstacle(reply_ms, self.now());
        let Some(failure) = obstacle else {
            self.link(way).push(way, request, Some(call), self.now());
            return;
        };
        self.hear(way, call, Answer::Failed(failure));
        if request.must_reach(way.server) {
            self.tell(way, request);
        }
    }

    /// Queues a release that nobody waits for.
    pub(crate) fn tell(&self, way: Way, request: &Rc<Request>) -> bool {
        if !request.must_reach(way.server) && self.link(way).state != State::Up {
            return false;
        }
        self.link(way).push(way, request, None, self.now());
        self.send(way);
        true
    }

    /// Has the call told when there is a connection, or none to be had.
    pub(crate) fn await_connection(&self, way: Way, call: u64, reply_ms: i64) {
        let (obstacle, state) = {
            let link = self.link(way);
            (link.obstacle(reply_ms, self.now()), link.state)
        };
        match obstacle {
            Some(failure) => self.hear(way, call, Answer::Failed(failure)),
            None if state == State::Up => self.hear(way, call, Answer::Done),
            None => self.link(way).hopeful.push(call),
        }
    }

    /// Sends what waits.
    pub(crate) fn send(&self, way: Way) {
        loop {
            let now = self.now();
            let mut link = self.link(way);
            if link.state != State::Up {
                return;
            }
            let Some(entry) = link.unsent.pop_front() else { return };
            if entry.keep_until.is_some_and(|it| now >= it) {
                continue;
            }
            let trip = link.script.pop_front().unwrap_or_else(|| self.weather.borrow_mut()(way));
            let (epoch, request, call) = (link.epoch, Rc::clone(&entry.request), entry.call);
            link.arrives_at = link.arrives_at.max(now.saturating_add(trip.there));
            let patience = request.ttl_ms().max(SILENCE_MIN_MS) * MS;
            link.silent_until = link.silent_until.max(now + patience);
            link.awaiting.push_back(Entry { since: now, ..entry });
            let arrives_at = link.arrives_at;
            drop(link);
            if let Some(call) = call {
                self.peer(way.client).note_sent(call, way.server);
            }
            self.at(arrives_at, move |world| world.arrive(way, epoch, request, trip));
            self.watch(way);
        }
    }

    fn arrive(&self, way: Way, epoch: u64, request: Rc<Request>, trip: Trip) {
        let event = move |world: &Self| world.carry_out(way, epoch, &request, trip);
        let event = self.server(way.server).hold(Box::new(event));
        if let Some(event) = event {
            event(self);
        }
    }

    fn carry_out(&self, way: Way, epoch: u64, request: &Request, trip: Trip) {
        if self.link(way).swallowed.contains(&epoch) || self.server(way.server).is_down() {
            return;
        }
        let mut answer = Answer::Failed(Failure::Refused("answered with an error"));
        if trip.fault != Fault::ErrorInstead {
            let done = self.server(way.server).execute(request, self.now());
            if trip.fault == Fault::None {
                answer = done.clone();
            }
            self.note(way, request, done);
        }
        let mut link = self.link(way);
        if link.epoch == epoch {
            link.replies_at = link.replies_at.max(self.now().saturating_add(trip.back));
            let replies_at = link.replies_at;
            drop(link);
            if replies_at != Trip::NEVER {
                self.at(replies_at, move |world| world.reply(way, epoch, answer));
            }
        }
    }

    fn reply(&self, way: Way, epoch: u64, answer: Answer) {
        let event = move |world: &Self| world.settle(way, epoch, answer);
        let event = self.peer(way.client).hold(Box::new(event));
        if let Some(event) = event {
            event(self);
        }
    }

    fn settle(&self, way: Way, epoch: u64, answer: Answer) {
        let mut link = self.link(way);
        if link.epoch != epoch || link.state != State::Up {
            return;
        }
        link.silent_until = link.silent_until.max(self.now() + SILENCE_MIN_MS * MS);
        let entry = link.awaiting.pop_front().expect("a reply is one to a request");
        drop(link);
        let clock = self.peer(way.client).clock;
        entry.request.note(way.server, &answer, Moment::from_nanos(clock.read(self.now())));
        if let Some(call) = entry.call {
            self.hear(way, call, answer);
        }
    }

    /// A server that says nothing for so long is not waited for any more.
    fn watch(&self, way: Way) {
        let mut link = self.link(way);
        if link.is_watched || link.awaiting.is_empty() {
            return;
        }
        link.is_watched = true;
        let silent_until = link.silent_until;
        drop(link);
        self.at(silent_until, move |world| {
            // A client that was asleep reads first.
            let event = world.peer(way.client).hold(Box::new(move |it| it.give_up(way)));
            if let Some(event) = event {
                event(world);
            }
        });
    }

    fn give_up(&self, way: Way) {
        let mut link = self.link(way);
        link.is_watched = false;
        let is_silent = !link.awaiting.is_empty() && self.now() >= link.silent_until;
        drop(link);
        match is_silent {
            true => self.cut(way, false),
            false => self.watch(way),
        }
    }

    /// The connection is lost. What was under way to the server gets there, unless it is swallowed.
    pub(crate) fn cut(&self, way: Way, is_swallowed: bool) {
        let mut link = self.link(way);
        if link.state == State::Down {
            return;
        }
        let epoch = link.epoch;
        if is_swallowed {
            link.swallowed.push(epoch);
        }
        link.state = State::Down;
        link.is_watched = false;
        link.epoch += 1;
        (link.arrives_at, link.replies_at, link.silent_until) = (0, 0, 0);
        let mut told = std::mem::take(&mut link.hopeful);
        let awaiting = std::mem::take(&mut link.awaiting);
        let unsent = std::mem::take(&mut link.unsent);
        for mut entry in awaiting.into_iter().chain(unsent) {
            told.extend(entry.call.take());
            if entry.keep_until.is_some() {
                link.unsent.push_back(entry);
            }
        }
        drop(link);
        for call in told {
            self.hear(way, call, Answer::Failed(Failure::Lost("closed".to_owned())));
        }
        self.retry_later(way, RECONNECT_MS);
    }

    fn retry_later(&self, way: Way, ms: i64) {
        let at = self.now() + ms * MS;
        self.link(way).retry_at = at;
        self.at(at, move |world| {
            // Nothing is done while no call runs; the next one makes up for it.
            if world.peer(way.client).is_busy() {
                world.mend(way);
            }
        });
    }

    /// Connects if that is due.
    pub(crate) fn mend(&self, way: Way) {
        let link = self.link(way);
        let is_due = link.state == State::Down && self.now() >= link.retry_at;
        drop(link);
        if is_due {
            self.hurry(way);
        }
    }

    /// Connects because somebody needs it.
    pub(crate) fn hurry(&self, way: Way) {
        let is_refused = self.server(way.server).is_down();
        let mut link = self.link(way);
        if link.state != State::Down {
            return;
        }
        if is_refused {
            let ms = RECONNECT_MS << link.failures.min(5);
            link.failures += 1;
            drop(link);
            return self.retry_later(way, ms);
        }
        link.state = State::Connecting;
        link.epoch += 1;
        let epoch = link.epoch;
        drop(link);
        self.after_ms(CONNECT_MS, move |world| {
            let event = world.server(way.server).hold(Box::new(move |it| it.accept(way, epoch)));
            if let Some(event) = event {
                event(world);
            }
        });
    }

    fn accept(&self, way: Way, epoch: u64) {
        let mut link = self.link(way);
        if link.epoch != epoch || link.state != State::Connecting {
            return;
        }
        link.state = State::Up;
        link.failures = 0;
        let hopeful = std::mem::take(&mut link.hopeful);
        drop(link);
        for call in hopeful {
            self.hear(way, call, Answer::Done);
        }
        self.send(way);
    }

    /// The ways of a client to all servers.
    pub(crate) fn ways(&self, client: usize) -> impl Iterator<Item = Way> + use<> {
        (0..self.servers()).map(move |server| Way { client, server })
    }
}
