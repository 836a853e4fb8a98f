//! All that one manager does in one process: its servers, its operations, who waits for whom, and when
//! what is due. Events go in to the operations, and what they want done comes out.
//!
//! `driver` says which thread has it. Whoever has it changes nothing outside: words for the log, ends of
//! operations and what takes its time are left for those who wait.

mod counting;
mod driven;
mod pushes;
mod questions;
mod readiness;
mod state;
mod step;
mod timers;

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::Arc;

use self::readiness::Readiness;
pub(crate) use self::state::Chore;
use self::state::{Caller, State};
use self::step::Step;
use crate::call::Call;
use crate::moment::Moment;
use crate::operation::{End, Ended, Event, Operation, Payload, Prepared};
use crate::server_set::ServerSet;
use crate::settings::Settings;
use crate::system::clock;
use crate::system::socket::Watched;
use crate::transport::roster::Roster;
use crate::transport::server::{Effects, Server};
use crate::transport::ticket::Ticket;

pub(crate) struct Engine {
    state: State,
    /// The descriptor that wakes the driver.
    waker: RawFd,
    /// Questions to close; one may be there twice.
    decided: Vec<Ticket>,
    /// What threads have waited for.
    ends: VecDeque<(usize, Wakening)>,
    /// What is told to whoever asks for events.
    notices: VecDeque<Notice>,
    /// Threads that wait for events, by their places, and until when.
    listeners: Vec<(usize, Moment)>,
    /// The place of the thread that stands by.
    standing_by: Option<usize>,
    /// It was to come back, and had not begun yet.
    is_called_back: bool,
    is_abandoned: bool,
    /// What a program waits for in a loop of its own.
    readiness: Option<Readiness>,
    /// Until when a thread sleeps that would drive if somebody had to.
    nap_until: Moment,
    /// The operations that are due: kept for its memory, as what comes next.
    due: Vec<usize>,
    watched: Vec<Watched>,
    /// Until when whoever drives waits for the sockets, at most.
    watched_until: Moment,
    /// When it was last advanced.
    now: Moment,
}

/// What a thread has waited for.
pub(crate) enum Wakening {
    /// Its operation has ended.
    Ended(End),
    /// There was no event in its time.
    TimeUp,
}

/// An operation has ended that no thread waits for.
pub(crate) struct Notice {
    /// What came with it when it was begun.
    pub(crate) payload: Payload,
    pub(crate) end: End,
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
            ends: VecDeque::new(),
            notices: VecDeque::new(),
            listeners: Vec::new(),
            standing_by: None,
            is_called_back: false,
            is_abandoned: false,
            readiness: None,
            nap_until: Moment::NEVER,
            due: Vec::new(),
            watched: Vec::new(),
            watched_until: Moment::from_nanos(0),
            now: Moment::from_nanos(0),
        }
    }

    /// The servers, for what takes its time and is done with no mutex held.
    pub(crate) fn servers(&mut self) -> &mut [Server] {
        &mut self.state.servers
    }

    /// Begins an operation whose end the thread at this place waits for, and which this call can be cancelled
    /// by.
    pub(crate) fn run(
        &mut self,
        thread: usize,
        operation: Box<dyn Operation>,
        call: Option<&Arc<Call>>,
    ) {
        self.add(operation, Caller::Thread(thread), call);
    }

    /// Begins an operation whose end is a notice with this payload.
    pub(crate) fn submit(
        &mut self,
        operation: Box<dyn Operation>,
        payload: Payload,
        call: Option<&Arc<Call>>,
    ) {
        self.add(operation, Caller::Program(payload), call);
        (self.state.is_unsent, self.state.effects.changed) = (true, true);
    }

    fn add(&mut self, operation: Box<dyn Operation>, caller: Caller, call: Option<&Arc<Call>>) {
        let ticket = self.state.add(operation, caller, call.cloned());
        match call.is_some_and(|call| call.begin_operation(ticket.place())) {
            true => self.step(ticket.place(), cancelled()),
            false => self.begin(ticket, Event::Started),
        }
        self.settle_now();
    }

    /// The thread at this place waits for an event until then.
    pub(crate) fn listen(&mut self, thread: usize, until: Moment) {
        let until = if self.is_abandoned { Moment::from_nanos(0) } else { until };
        self.listeners.push((thread, until));
    }

    /// The thread at this place stands by.
    pub(crate) fn stand_by(&mut self, thread: usize) {
        self.standing_by = Some(thread);
        if mem::take(&mut self.is_called_back) || self.is_abandoned {
            self.end_standing_by();
        }
    }

    /// It does no longer; if it is about to, it comes back at once.
    pub(crate) fn end_standing_by(&mut self) {
        match self.standing_by.take() {
            Some(thread) => {
                self.ends.push_back((thread, Wakening::TimeUp));
                self.state.effects.changed = true;
            }
            None => self.is_called_back = true,
        }
    }

    /// Whether there is one question and nothing to be told: whoever is told something may ask more.
    pub(crate) fn has_one_question(&self) -> bool {
        self.state.open == 1 && self.notices.is_empty()
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    /// A chore is done.
    pub(crate) fn prepared(&mut self, chore: Chore, prepared: Prepared) {
        if self.state.find(chore.ticket).is_some() {
            self.step(chore.ticket.place(), Event::Prepared(prepared));
            self.settle_now();
        }
    }

    /// Ends the operation that is under way for this call, if there is one.
    pub(crate) fn cancel(&mut self, call: &Arc<Call>) {
        let place = call.place_of_operation();
        let is_of =
            |slot: &&mut state::Slot| slot.call.as_ref().is_some_and(|own| Arc::ptr_eq(own, call));
        let slot = self.state.slots.get_mut(place).and_then(Option::as_mut);
        if slot.is_some_and(|slot| is_of(&slot)) {
            self.cancel_at(place);
        }
    }

    fn cancel_at(&mut self, place: usize) {
        let Some(slot) = &mut self.state.slots[place] else { return };
        let ticket = Ticket::new(place, slot.generation);
        match slot.question.take() {
            None => self.step(place, cancelled()),
            Some(mut open) => {
                let now = clock::now();
                for (index, server) in self.state.servers.iter_mut().enumerate() {
                    if open.pending.contains(index) {
                        let sent_at = server.abandon(ticket, now, &mut self.state.effects);
                        open.note_sent(index, sent_at);
                    }
                }
                self.state.note_closed(place);
                self.step(place, Event::Cancelled { sent: open.sent });
            }
        }
        self.settle_now();
    }

    /// Ends all that no thread waits for, and all waits for notices: nobody asks for these any more.
    pub(crate) fn abandon(&mut self) {
        self.is_abandoned = true;
        let is_program = |slot: &state::Slot| matches!(slot.caller, Caller::Program(_));
        for place in 0..self.state.slots.len() {
            if self.state.slots[place].as_ref().is_some_and(is_program) {
                self.cancel_at(place);
            }
        }
        self.end_listening(Moment::NEVER);
        self.end_standing_by();
    }

    /// A descriptor that is readable whenever there is something to do or to tell.
    pub(crate) fn descriptor(&mut self) -> io::Result<RawFd> {
        let readiness = match self.readiness.take() {
            Some(readiness) => readiness,
            None => Readiness::new()?,
        };
        Ok(self.readiness.insert(readiness).fd())
    }

    /// Lets go of that descriptor without closing it: a child cannot know whether it is still open.
    pub(crate) fn forget_descriptor(&mut self) {
        mem::forget(self.readiness.take());
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

    /// Lets an event happen to an operation that may ask the servers because of it: later, if too many do.
    fn begin(&mut self, ticket: Ticket, event: Event) {
        match self.state.may_ask(self.now) {
            true => self.step(ticket.place(), event),
            false => self.state.put_off(ticket, event),
        }
    }

    /// Lets an event happen to an operation. What the operation gives rise to comes with [`Self::settle`].
    fn step(&mut self, place: usize, event: Event) {
        self.state.end_preparing(place);
        self.state.end_listening(place);
        let Some(slot) = self.state.slots[place].as_mut() else { return };
        let Some(operation) = slot.operation.take() else { return };
        slot.until = Moment::NEVER;
        if let Some(end) = Step::new(&mut self.state, place).run(operation, event) {
            // Whoever waits for the sockets may not be the one who waits for this.
            self.state.effects.changed = true;
            match self.state.remove(place) {
                Some(Caller::Thread(thread)) => {
                    self.ends.push_back((thread, Wakening::Ended(end)));
                }
                Some(Caller::Program(payload)) if !matches!(end, Ok(Ended::Stopped)) => {
                    self.notices.push_back(Notice { payload, end });
                }
                Some(Caller::Program(_)) | None => {}
            }
        }
    }

    /// Lets everything happen that has to, until nothing more has.
    fn settle_now(&mut self) {
        let is_settled = self.state.turns.is_empty()
            && self.decided.is_empty()
            && self.state.effects.deliveries.is_empty()
            && self.state.effects.pushes.is_empty();
        if !is_settled || self.state.has_put_off(self.now) {
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
            } else if self.has_news() {
                self.deliver();
            } else if let Some(ticket) = self.decided.pop() {
                self.close(ticket, now);
            } else if !self.state.take_up(now) {
                return;
            }
        }
    }

    fn next_due(&mut self) -> Moment {
        let of_operations = self.state.next_due();
        let of_listeners = self.listeners.iter().map(|listener| listener.1);
        let is_busy = self.state.is_busy();
        let servers = self.state.servers.iter().filter(|server| is_busy || !server.is_dormant());
        let of_servers = servers.map(Server::next_due);
        of_servers.chain(of_listeners).fold(of_operations, Moment::min)
    }
}

/// An operation is cancelled that has asked nobody.
fn cancelled() -> Event {
    Event::Cancelled { sent: ServerSet::default() }
}

#[cfg(test)]
mod tests;
