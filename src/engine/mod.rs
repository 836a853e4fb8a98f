//! All that one manager does in one process: its servers, its operations, who waits for whom, and when
//! what is due. Events go in to the operations, and what they want done comes out.
//!
//! `driver.rs` says which thread has it. Whoever has it changes nothing outside: words for the log, ends of
//! operations and what takes its time are left for those who wait.

mod state;
mod step;

use std::collections::VecDeque;
use std::mem;
use std::os::fd::RawFd;
use std::sync::Arc;

pub(crate) use self::state::Over;
use self::state::{Slot, State};
use self::step::Step;
use crate::command::Answer;
use crate::driver::Driven;
use crate::failure::Failure;
use crate::log::Line;
use crate::moment::Moment;
use crate::operation::{Event, Operation};
use crate::settings::Settings;
use crate::system::clock;
use crate::system::socket::{self, Watched};
use crate::transport::roster::Roster;
use crate::transport::server::{Effects, Server};
use crate::transport::ticket::Ticket;

pub(crate) struct Engine {
    state: State,
    /// The descriptor that wakes the driver.
    waker: RawFd,
    /// Questions to close; one may be there twice.
    decided: Vec<Ticket>,
    over: VecDeque<(usize, Over)>,
    /// Kept for its memory.
    watched: Vec<Watched>,
    /// When it was last advanced.
    now: Moment,
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
            state: State::new(servers, roster, settings),
            waker,
            decided: Vec::new(),
            over: VecDeque::new(),
            watched: Vec::new(),
            now: Moment::from_nanos(0),
        }
    }

    /// The servers, for what takes its time and is done with no mutex held.
    pub(crate) fn servers(&mut self) -> &mut [Server] {
        &mut self.state.servers
    }

    /// Begins an operation at this place, or goes on with one that came back.
    pub(crate) fn submit(&mut self, place: usize, operation: Box<dyn Operation>, event: Event) {
        self.state.place(place, operation);
        self.step(place, event);
        self.settle_now();
    }

    /// Does something to a server, and brings what comes of it to those who wait.
    pub(crate) fn for_server(
        &mut self,
        index: usize,
        visit: impl FnOnce(&mut Server, &mut Effects),
    ) {
        visit(&mut self.state.servers[index], &mut self.state.effects);
        self.settle_now();
    }

    /// Lets an event happen to an operation. What the operation gives rise to comes with [`Self::settle`].
    fn step(&mut self, place: usize, event: Event) {
        let Some(slot) = self.state.slots[place].as_mut() else { return };
        let Some(operation) = slot.operation.take() else { return };
        slot.until = Moment::NEVER;
        if let Some(over) = Step::new(&mut self.state, place).run(operation, event) {
            self.state.slots[place] = None;
            // Whoever waits for the sockets may not be the one who waits for this.
            self.state.effects.changed = true;
            self.over.push_back((place, over));
        }
    }

    /// Lets everything happen that has to, until nothing more has.
    fn settle_now(&mut self) {
        let is_settled = self.state.turns.is_empty()
            && self.decided.is_empty()
            && self.state.effects.deliveries.is_empty();
        if !is_settled {
            self.settle(clock::now());
        }
    }

    /// The same, at this moment. First those have their turn that were given it: nobody else's request is to
    /// come in between.
    fn settle(&mut self, now: Moment) {
        loop {
            if let Some((ticket, event)) = self.state.turns.pop_front() {
                if self.state.find(ticket).is_some_and(|slot| slot.question.is_none()) {
                    self.step(ticket.place(), event);
                }
            } else if !self.state.effects.deliveries.is_empty() {
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
        let mut deliveries = mem::take(&mut self.state.effects.deliveries);
        for it in deliveries.drain(..) {
            let Some(slot) = self.state.find(it.ticket) else { continue };
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
        self.state.effects.deliveries = deliveries;
    }

    /// What was ready is known from before the clock was read, and this thread may have been kept from
    /// running in between: before anybody's time is up, all are looked at once more.
    fn look_again(&mut self, now: Moment) {
        let is_up = |slot: &Slot| slot.question.is_some() && now >= slot.until;
        if self.state.slots.iter().flatten().any(is_up) {
            self.state.visit_servers(|server, effects| server.handle_ready(now, effects));
            self.settle(now);
        }
    }

    /// Something may have come over connections that owe answers too long, and there may be others of
    /// these by now: so each is looked at.
    fn handle_predecessors(&mut self, watched: &[Watched], now: Moment) {
        if watched.iter().any(|descriptor| descriptor.revents != 0) {
            let has_one = |server: &&mut Server| server.interest_in_predecessor().is_some();
            for server in self.state.servers.iter_mut().filter(has_one) {
                server.handle_predecessor_ready(now, &mut self.state.effects);
            }
        }
    }

    /// Waits that are over end, and so do questions whose time is up: they hear of no more servers.
    fn expire(&mut self, now: Moment) {
        for place in 0..self.state.slots.len() {
            let is_due = |slot: &&mut Slot| now >= slot.until;
            let Some(slot) = self.state.slots[place].as_mut().filter(is_due) else { continue };
            let ticket = Ticket::new(place, slot.generation);
            match &slot.question {
                None => self.step(place, Event::TimeOut),
                Some(open) => {
                    slot.until = open.answer_by(ticket, slot.until, &self.state.servers);
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
        for (index, server) in self.state.servers.iter_mut().enumerate() {
            let Some(slot) = self.state.slots[ticket.place()].as_mut() else { return };
            let (Some(open), Some(operation)) = (&mut slot.question, &mut slot.operation) else {
                return;
            };
            if !open.pending.contains(index) {
                continue;
            }
            let sent_at = server.abandon(ticket, now, &mut self.state.effects);
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
        let slot = self.state.find(ticket).filter(|slot| slot.question.is_some());
        let Some((Some(mut open), Some(mut operation))) =
            slot.map(|slot| (slot.question.take(), slot.operation.take()))
        else {
            return;
        };
        for (index, server) in self.state.servers.iter_mut().enumerate() {
            let sent_at = match open.pending.contains(index) {
                true => server.abandon(ticket, now, &mut self.state.effects),
                false => None,
            };
            open.note_sent(index, sent_at);
            if operation.wants_condition(index) {
                let condition = server.condition(sent_at, now, &mut self.state.effects);
                operation.note_condition(index, condition);
            }
        }
        if let Some(slot) = self.state.find(ticket) {
            slot.operation = Some(operation);
        }
        self.step(ticket.place(), Event::Closed { sent: open.sent });
    }

    fn next_due(&self) -> Moment {
        let servers = self.state.servers.iter().map(Server::next_due);
        let slots = self.state.slots.iter().flatten().map(|slot| slot.until);
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
        self.state.visit_servers(|server, effects| server.advance(now, effects));
        self.settle(now);
    }

    /// The descriptors of the servers in their order, those of connections that owe answers too long, and
    /// that of the waker at the end.
    fn watch(&mut self) -> Watch {
        const NONE: i32 = -1;
        let mut descriptors = mem::take(&mut self.watched);
        descriptors.clear();
        descriptors.extend(self.state.servers.iter().map(|server| {
            let (fd, for_writing) = server.interest().unwrap_or((NONE, false));
            socket::watch(fd, for_writing)
        }));
        let predecessors = self.state.servers.iter().filter_map(Server::interest_in_predecessor);
        descriptors.extend(predecessors.map(|(fd, for_writing)| socket::watch(fd, for_writing)));
        descriptors.push(socket::watch(self.waker, false));
        Watch { descriptors, until: self.next_due(), now: self.now }
    }

    fn poll(watch: &mut Watch) {
        socket::poll(&mut watch.descriptors, watch.until, watch.now);
    }

    fn resume(&mut self, watch: Watch) -> bool {
        let now = clock::now();
        for (server, watched) in self.state.servers.iter_mut().zip(&watch.descriptors) {
            if watched.revents != 0 {
                server.handle_ready(now, &mut self.state.effects);
            }
        }
        let was_woken = watch.descriptors.last().is_some_and(|waker| waker.revents != 0);
        if watch.descriptors.len() > self.state.servers.len() + 1 {
            self.handle_predecessors(&watch.descriptors[self.state.servers.len()..], now);
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
        mem::take(&mut self.state.effects.changed)
    }

    fn take_words(&mut self) -> Vec<Line> {
        mem::take(&mut self.state.effects.lines)
    }
}

#[cfg(test)]
mod tests;
