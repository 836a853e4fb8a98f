//! All that one manager does in one process: its servers, its operations, who waits for whom, and when
//! what is due. Events go in to the operations, and what they want done comes out.
//!
//! `driver.rs` says which thread has it. Whoever has it changes nothing outside: words for the log, ends of
//! operations and what takes its time are left for those who wait.

mod step;

use std::collections::VecDeque;
use std::mem;
use std::os::fd::RawFd;
use std::sync::Arc;

use self::step::Step;
use crate::command::Answer;
use crate::driver::Driven;
use crate::error::{Error, Status};
use crate::failure::Failure;
use crate::log::Line;
use crate::moment::Moment;
use crate::operation::{Ended, Event, Failed, Operation};
use crate::server_set::ServerSet;
use crate::settings::Settings;
use crate::system::clock;
use crate::system::socket::{self, Watched};
use crate::transport::roster::Roster;
use crate::transport::server::{Effects, Server};
use crate::transport::ticket::Ticket;
use crate::wait_queue::WaitQueues;

pub(crate) struct Engine {
    pub(crate) servers: Vec<Server>,
    pub(crate) effects: Effects,
    roster: Roster,
    settings: Arc<Settings>,
    wait_queues: WaitQueues,
    /// The descriptor that wakes the driver.
    waker: RawFd,
    /// By their places.
    slots: Vec<Option<Slot>>,
    generation: u64,
    /// What is to happen to operations as soon as the step of another is over.
    turns: VecDeque<(Ticket, Event)>,
    /// Questions to close; one may be there twice.
    decided: Vec<Ticket>,
    over: VecDeque<(usize, Over)>,
    /// Kept for its memory.
    watched: Vec<Watched>,
    /// When it was last advanced.
    now: Moment,
}

/// An operation, and what it waits for.
struct Slot {
    /// That of its question, or of its wait.
    generation: u64,
    /// Nothing only while it is in the midst of a step.
    operation: Option<Box<dyn Operation>>,
    question: Option<Open>,
    /// When something is due: the question's time is up, or the wait is over.
    until: Moment,
}

/// A question that is open.
struct Open {
    /// Who has not answered yet, and to whom something was sent.
    pending: ServerSet,
    sent: ServerSet,
    since: Moment,
    /// How long a server may take to answer since it was sent the request, and when it is waited for no
    /// longer even so.
    reply_ms: i64,
    limit: Moment,
}

/// What a caller gets back.
pub(crate) enum Over {
    /// The operation has ended.
    Ended(Result<Ended, Failed>),
    /// The caller is to prepare that so many servers can be connected to, and to submit it again.
    Prepare { operation: Box<dyn Operation>, enough: usize },
}

/// What the driver waits for.
pub(crate) struct Watch {
    descriptors: Vec<Watched>,
    until: Moment,
    now: Moment,
}

impl Engine {
    pub(crate) fn new(
        servers: Vec<Server>,
        roster: Roster,
        settings: Arc<Settings>,
        waker: RawFd,
    ) -> Self {
        Self {
            servers,
            effects: Effects::default(),
            roster,
            settings,
            wait_queues: WaitQueues::default(),
            waker,
            slots: Vec::new(),
            generation: 0,
            turns: VecDeque::new(),
            decided: Vec::new(),
            over: VecDeque::new(),
            watched: Vec::new(),
            now: Moment::from_nanos(0),
        }
    }

    /// Begins an operation at this place, or goes on with one that came back.
    pub(crate) fn submit(&mut self, place: usize, operation: Box<dyn Operation>, event: Event) {
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        let generation = self.next_generation();
        let operation = Some(operation);
        let slot = Slot { generation, operation, question: None, until: Moment::NEVER };
        self.slots[place] = Some(slot);
        self.step(place, event);
        self.settle_now();
    }

    /// Does something to a server, and brings what comes of it to those who wait.
    pub(crate) fn for_server(
        &mut self,
        index: usize,
        visit: impl FnOnce(&mut Server, &mut Effects),
    ) {
        visit(&mut self.servers[index], &mut self.effects);
        self.settle_now();
    }

    fn visit_servers(&mut self, mut visit: impl FnMut(&mut Server, &mut Effects)) {
        self.servers.iter_mut().for_each(|server| visit(server, &mut self.effects));
    }

    fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    /// Lets an event happen to an operation. What the operation gives rise to comes with [`Self::settle`].
    fn step(&mut self, place: usize, event: Event) {
        let Some(slot) = self.slots[place].as_mut() else { return };
        let Some(operation) = slot.operation.take() else { return };
        slot.until = Moment::NEVER;
        if let Some(over) = Step::new(self, place).run(operation, event) {
            self.slots[place] = None;
            // Whoever waits for the sockets may not be the one who waits for this.
            self.effects.changed = true;
            self.over.push_back((place, over));
        }
    }

    /// Lets everything happen that has to, until nothing more has.
    fn settle_now(&mut self) {
        let is_settled =
            self.turns.is_empty() && self.decided.is_empty() && self.effects.deliveries.is_empty();
        if !is_settled {
            self.settle(clock::now());
        }
    }

    /// The same, at this moment. First those have their turn that were given it: nobody else's request is to
    /// come in between.
    fn settle(&mut self, now: Moment) {
        loop {
            if let Some((ticket, event)) = self.turns.pop_front() {
                if self.find(ticket).is_some_and(|slot| slot.question.is_none()) {
                    self.step(ticket.place(), event);
                }
            } else if !self.effects.deliveries.is_empty() {
                self.deliver(now);
            } else if let Some(ticket) = self.decided.pop() {
                self.close(ticket, now);
            } else {
                return;
            }
        }
    }

    /// Brings what the servers said to the operations. Questions that have heard enough are closed when all
    /// is brought: what comes too late still tells that its request was sent.
    fn deliver(&mut self, now: Moment) {
        let mut deliveries = mem::take(&mut self.effects.deliveries);
        for it in deliveries.drain(..) {
            let Some(slot) = self.find(it.ticket) else { continue };
            let Some(open) = slot.question.as_mut().filter(|open| open.pending.contains(it.server))
            else {
                continue;
            };
            open.pending = open.pending.without(it.server);
            if it.sent {
                open.sent = open.sent.with(it.server);
            }
            let operation = slot.operation.as_mut();
            if operation.is_some_and(|operation| operation.hear(it.server, it.answer, now)) {
                self.decided.push(it.ticket);
            }
        }
        // Kept for its memory. Nothing can have come meanwhile: to hear is only to count.
        self.effects.deliveries = deliveries;
    }

    /// What was ready is known from before the clock was read, and this thread may have been kept from
    /// running in between: before anybody's time is up, all are looked at once more.
    fn look_again(&mut self, now: Moment) {
        let is_up = |slot: &Slot| slot.question.is_some() && now >= slot.until;
        if self.slots.iter().flatten().any(is_up) {
            self.visit_servers(|server, effects| server.handle_ready(now, effects));
            self.settle(now);
        }
    }

    /// Something may have come over connections that owe answers too long, and there may be others of
    /// these by now: so each is looked at.
    fn handle_predecessors(&mut self, watched: &[Watched], now: Moment) {
        if watched.iter().any(|descriptor| descriptor.revents != 0) {
            let has_one = |server: &&mut Server| server.interest_in_predecessor().is_some();
            for server in self.servers.iter_mut().filter(has_one) {
                server.handle_predecessor_ready(now, &mut self.effects);
            }
        }
    }

    /// Waits that are over end, and so do questions whose time is up: they hear of no more servers.
    fn expire(&mut self, now: Moment) {
        for place in 0..self.slots.len() {
            let is_due = |slot: &&mut Slot| now >= slot.until;
            let Some(slot) = self.slots[place].as_mut().filter(is_due) else { continue };
            let ticket = Ticket::new(place, slot.generation);
            match &slot.question {
                None => self.step(place, Event::TimeOut),
                Some(open) => {
                    slot.until = open.answer_by(ticket, slot.until, &self.servers);
                    if now < slot.until {
                        continue;
                    }
                    self.give_up_on_servers(ticket, now);
                    self.close(ticket, now);
                }
            }
            self.settle(now);
        }
    }

    /// Those who have not answered are heard as having failed.
    fn give_up_on_servers(&mut self, ticket: Ticket, now: Moment) {
        for (index, server) in self.servers.iter_mut().enumerate() {
            let Some(slot) = self.slots[ticket.place()].as_mut() else { return };
            let (Some(open), Some(operation)) = (&mut slot.question, &mut slot.operation) else {
                return;
            };
            if !open.pending.contains(index) {
                continue;
            }
            let sent_at = server.abandon(ticket, now, &mut self.effects);
            let failure = match sent_at {
                Some(sent_at) => Failure::NoAnswer { ms: now.ms_since(sent_at) },
                None => server.not_in_time(now.ms_since(open.since)),
            };
            open.note_sent(index, sent_at);
            open.pending = open.pending.without(index);
            operation.hear(index, Answer::Failed(failure), now);
        }
    }

    /// The question is over: who has not answered it is not waited for.
    fn close(&mut self, ticket: Ticket, now: Moment) {
        let slot = self.find(ticket).filter(|slot| slot.question.is_some());
        let Some((Some(mut open), Some(mut operation))) =
            slot.map(|slot| (slot.question.take(), slot.operation.take()))
        else {
            return;
        };
        for (index, server) in self.servers.iter_mut().enumerate() {
            let sent_at = match open.pending.contains(index) {
                true => server.abandon(ticket, now, &mut self.effects),
                false => None,
            };
            open.note_sent(index, sent_at);
            if operation.wants_condition(index) {
                let condition = server.condition(sent_at, now, &mut self.effects);
                operation.note_condition(index, condition);
            }
        }
        if let Some(slot) = self.find(ticket) {
            slot.operation = Some(operation);
        }
        self.step(ticket.place(), Event::Closed { sent: open.sent });
    }

    fn find(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(ticket.place())?.as_mut();
        slot.filter(|slot| slot.generation == ticket.generation())
    }

    fn next_due(&self) -> Moment {
        let servers = self.servers.iter().map(Server::next_due);
        let slots = self.slots.iter().flatten().map(|slot| slot.until);
        servers.chain(slots).min().unwrap_or(Moment::NEVER)
    }
}

impl Driven for Engine {
    type End = Over;
    type Watch = Watch;
    type Words = Vec<Line>;

    fn advance(&mut self) {
        let now = clock::now();
        self.now = now;
        self.visit_servers(|server, effects| server.advance(now, effects));
        self.settle(now);
    }

    /// The descriptors of the servers in their order, those of connections that owe answers too long, and
    /// that of the waker at the end.
    fn watch(&mut self) -> Watch {
        const NONE: i32 = -1;
        let mut descriptors = mem::take(&mut self.watched);
        descriptors.clear();
        descriptors.extend(self.servers.iter().map(|server| {
            let (fd, for_writing) = server.interest().unwrap_or((NONE, false));
            socket::watch(fd, for_writing)
        }));
        let predecessors = self.servers.iter().filter_map(Server::interest_in_predecessor);
        descriptors.extend(predecessors.map(|(fd, for_writing)| socket::watch(fd, for_writing)));
        descriptors.push(socket::watch(self.waker, false));
        Watch { descriptors, until: self.next_due(), now: self.now }
    }

    fn poll(watch: &mut Watch) {
        socket::poll(&mut watch.descriptors, watch.until, watch.now);
    }

    fn resume(&mut self, watch: Watch) -> bool {
        let now = clock::now();
        for (server, watched) in self.servers.iter_mut().zip(&watch.descriptors) {
            if watched.revents != 0 {
                server.handle_ready(now, &mut self.effects);
            }
        }
        let was_woken = watch.descriptors.last().is_some_and(|waker| waker.revents != 0);
        if watch.descriptors.len() > self.servers.len() + 1 {
            self.handle_predecessors(&watch.descriptors[self.servers.len()..], now);
        }
        self.watched = watch.descriptors;
        self.settle(now);
        self.look_again(now);
        self.expire(now);
        was_woken
    }

    fn next_end(&mut self) -> Option<(usize, Over)> {
        self.over.pop_front()
    }

    fn take_change(&mut self) -> bool {
        mem::take(&mut self.effects.changed)
    }

    fn take_words(&mut self) -> Vec<Line> {
        mem::take(&mut self.effects.lines)
    }
}

impl Open {
    /// Until when it waits: the threads may have been kept from running between the beginning of the question
    /// and the sending of its request, and that is not the servers' time.
    fn answer_by(&self, ticket: Ticket, until: Moment, servers: &[Server]) -> Moment {
        let pending = servers.iter().enumerate().filter(|(index, _)| self.pending.contains(*index));
        let sent_at = pending.filter_map(|(_, server)| server.sent_at(ticket)).max();
        let answer_by = sent_at.map_or(until, |sent_at| sent_at.plus_ms(self.reply_ms).max(until));
        answer_by.min(self.limit)
    }

    /// It was sent to this server then, if it was.
    fn note_sent(&mut self, server: usize, sent_at: Option<Moment>) {
        if sent_at.is_some() {
            self.sent = self.sent.with(server);
        }
    }
}

impl Over {
    /// The fault is the library's: the operation has panicked.
    fn broken() -> Self {
        let words = "a fault in the library: the call was broken off";
        Self::Ended(Err(Error::new(Status::Internal, words).into()))
    }
}

#[cfg(test)]
mod tests;
