//! The whole activity of one manager in one process: its servers, its operations, the waits between operations,
//! and the timers. The engine passes events to the operations and carries out the actions that they ask for.
//!
//! `driver` decides which thread uses the engine. That thread changes nothing outside the engine: log
//! lines, the ends of operations, and slow work are left for the waiting threads.

mod counting;
mod driven;
mod lanes;
mod notices;
mod pushes;
mod questions;
mod readiness;
mod restoring;
mod slots;
mod state;
mod step;
mod timers;
mod waits;

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::Arc;

use self::lanes::Reason;
pub(crate) use self::notices::Notice;
use self::notices::Notices;
use self::readiness::Readiness;
pub(crate) use self::state::Chore;
use self::state::{Caller, Slot, State};
use self::step::Step;
use self::waits::Waits;
use crate::call::Call;
use crate::held_lock::{HeldLock, View};
use crate::moment::Moment;
use crate::operation::release::Release;
use crate::operation::{End, Ended, Event, Operation, Payload, Prepared};
use crate::server_set::ServerSet;
use crate::settings::Settings;
use crate::system::clock;
use crate::system::socket::Watched;
use crate::transport::roster::Roster;
use crate::transport::server::{Effects, Server};
use crate::transport::ticket::Ticket;

/// How many operations may go on in one turn. That takes about a millisecond, and a look at the sockets little in
/// comparison.
const STEPS_MAX: usize = 128;

pub(crate) struct Engine {
    state: State,
    /// The descriptor that wakes the driver.
    waker: RawFd,
    /// Questions to close. A question may be in the list twice.
    decided: Vec<Ticket>,
    /// Results for waiting threads, by their places.
    ends: VecDeque<(usize, Wakening)>,
    /// Notices for the threads that ask for events.
    notices: Notices,
    /// The threads that wait for events, or for the ends of submitted calls.
    waits: Waits,
    /// The place of the thread that stands by.
    standing_by: Option<usize>,
    /// The standby thread was called back before it began to stand by.
    is_called_back: bool,
    is_abandoned: bool,
    /// The descriptor for a program that waits in an event loop of its own.
    readiness: Option<Readiness>,
    /// When the nap of the standby thread ends. That thread drives when a driver is needed.
    nap_until: Moment,
    /// The operations that are due. This vector and the next one are kept for their memory.
    due: Vec<usize>,
    watched: Vec<Watched>,
    /// The latest moment until which the driver waits for the sockets.
    watched_until: Moment,
    /// When the engine was last advanced.
    now: Moment,
    /// How many more operations may go on in this turn.
    steps_left: usize,
    /// From when on lost numbers may be restored again.
    restore_from: Moment,
}

/// Why a waiting thread returns.
pub(crate) enum Wakening {
    /// Its operation has ended.
    Ended(End),
    /// The submitted call that it waits for has ended.
    Noticed(Notice),
    /// There is no submitted call that it could wait for.
    NoCall,
    /// Nothing came before the wait ended.
    TimeUp,
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
            notices: Notices::new(),
            waits: Waits::default(),
            standing_by: None,
            is_called_back: false,
            is_abandoned: false,
            readiness: None,
            nap_until: Moment::NEVER,
            due: Vec::new(),
            watched: Vec::new(),
            watched_until: Moment::from_nanos(0),
            now: Moment::from_nanos(0),
            steps_left: 0,
            restore_from: Moment::from_nanos(0),
        }
    }

    /// The servers, for slow work that is done with no mutex held.
    pub(crate) fn servers(&mut self) -> &mut [Server] {
        &mut self.state.servers
    }

    /// Begins an operation. The thread at this place waits for its end, and the operation can be cancelled
    /// through this call.
    pub(crate) fn run(
        &mut self,
        thread: usize,
        operation: Box<dyn Operation>,
        call: Option<&Arc<Call>>,
    ) {
        self.add(operation, Caller::Thread(thread), call);
    }

    /// Begins an operation whose end is reported as a notice with this payload.
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
            false => self.begin(ticket),
        }
        self.settle_now();
    }

    /// The thread at this place waits for an event until this moment.
    pub(crate) fn listen(&mut self, thread: usize, until: Moment) {
        let until = if self.is_abandoned { Moment::from_nanos(0) } else { until };
        self.waits.add(thread, until, None);
    }

    /// The thread at this place waits until this moment for the end of a submitted call.
    pub(crate) fn await_call(&mut self, thread: usize, call: &Arc<Call>, until: Moment) {
        if let Some(wakening) = self.end_of(call) {
            return self.ends.push_back((thread, wakening));
        }
        let place = call.place_of_operation();
        if let Some(slot) = self.state.slots.get_mut(place) {
            slot.waiter = Some(thread);
            self.waits.add(thread, until, Some(place));
        }
    }

    /// Whether the program waits in an event loop of its own, or a thread waits for events or submitted calls.
    pub(crate) fn has_driver(&self) -> bool {
        self.readiness.is_some() || !self.waits.is_empty()
    }

    /// The end of a submitted call. `None` if the call is under way and no thread waits for it.
    pub(crate) fn end_of(&mut self, call: &Arc<Call>) -> Option<Wakening> {
        if let Some(notice) = self.notices.take(call) {
            return Some(Wakening::Noticed(notice));
        }
        let is_free = |slot: &Slot| {
            slot.is_of(call) && matches!(slot.caller, Caller::Program(_)) && slot.waiter.is_none()
        };
        let slot = self.state.slots.get(call.place_of_operation());
        if slot.is_some_and(is_free) { None } else { Some(Wakening::NoCall) }
    }

    /// Ends a submitted call whose end is kept for a caller, because no caller will come. Returns the notice.
    pub(crate) fn forget_call(&mut self, call: &Arc<Call>) -> Option<Notice> {
        self.cancel(call);
        self.notices.take(call)
    }

    /// A notice that is kept for a caller that will not come, because the engine is abandoned.
    pub(crate) fn next_kept_notice(&mut self) -> Option<Notice> {
        self.notices.next_kept()
    }

    /// The thread at this place stands by.
    pub(crate) fn stand_by(&mut self, thread: usize) {
        self.standing_by = Some(thread);
        if mem::take(&mut self.is_called_back) || self.is_abandoned {
            self.end_standing_by();
        }
    }

    /// The standby thread stops standing by. If no thread stands by yet, the next one that does returns at once.
    pub(crate) fn end_standing_by(&mut self) {
        match self.standing_by.take() {
            Some(thread) => {
                self.ends.push_back((thread, Wakening::TimeUp));
                self.state.effects.changed = true;
            }
            None => self.is_called_back = true,
        }
    }

    /// Whether the names of servers that are down should be looked up now, because the servers may have moved.
    pub(crate) fn is_look_up_due(&self, now: Moment) -> bool {
        self.look_up_of_lost_at() <= now
    }

    /// When that is so next. Never if no operation wants the servers.
    fn look_up_of_lost_at(&self) -> Moment {
        if !self.state.has_operations() {
            return Moment::NEVER;
        }
        self.state.servers.iter().map(Server::look_up_of_lost_at).fold(Moment::NEVER, Moment::min)
    }

    /// Whether exactly one question is open and no notice is pending. A thread that takes a notice may ask more.
    pub(crate) fn has_one_question(&self) -> bool {
        self.state.open == 1 && self.notices.is_empty()
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    /// Takes in the result of a chore.
    pub(crate) fn prepared(&mut self, chore: Chore, prepared: Prepared) {
        if self.state.find(chore.ticket).is_some() {
            self.step(chore.ticket.place(), Event::Prepared(prepared));
            self.settle_now();
        }
    }

    /// Cancels the operation that is under way for this call, if there is one.
    pub(crate) fn cancel(&mut self, call: &Arc<Call>) {
        let place = call.place_of_operation();
        let slot = self.state.slots.get(place);
        if slot.is_some_and(|slot| slot.is_of(call)) {
            self.cancel_at(place);
        }
    }

    fn cancel_at(&mut self, place: usize) {
        let Some(slot) = self.state.slots.get_mut(place) else { return };
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

    /// Cancels the operation that the thread at this place waits for, if there is one.
    fn cancel_call_of(&mut self, thread: usize) {
        let is_its =
            |slot: &Slot| matches!(slot.caller, Caller::Thread(waiting) if waiting == thread);
        let place = self.state.slots.iter().find_map(|(place, slot)| is_its(slot).then_some(place));
        if let Some(place) = place {
            self.cancel_at(place);
        }
    }

    /// Releases a lock that nobody was told of, without waiting.
    fn release_unwanted(&mut self, hold: &Arc<HeldLock>) {
        if let Some(view) = View::new(hold, &self.state.roster) {
            self.submit(Box::new(Release::new(view)), Box::new(()), None);
        }
    }

    /// Cancels all operations that no thread waits for, and ends all waits for notices: no thread will ask
    /// for notices any more.
    pub(crate) fn abandon(&mut self) {
        self.is_abandoned = true;
        let is_program = |slot: &Slot| matches!(slot.caller, Caller::Program(_));
        for place in 0..self.state.slots.end() {
            if self.state.slots.get(place).is_some_and(is_program) {
                self.cancel_at(place);
            }
        }
        while let Some(thread) = self.waits.take_listener() {
            self.ends.push_back((thread, Wakening::TimeUp));
            self.state.effects.changed = true;
        }
        self.end_standing_by();
    }

    /// A descriptor that is readable whenever there is work to do or a notice to take.
    pub(crate) fn descriptor(&mut self) -> io::Result<RawFd> {
        let readiness = match self.readiness.take() {
            Some(readiness) => readiness,
            None => Readiness::new()?,
        };
        Ok(self.readiness.insert(readiness).fd())
    }

    /// Forgets that descriptor without closing it: a forked child cannot know whether the descriptor is still open.
    pub(crate) fn forget_descriptor(&mut self) {
        mem::forget(self.readiness.take());
    }

    /// Applies `visit` to a server, and delivers the effects to the waiting operations.
    pub(crate) fn for_server(
        &mut self,
        index: usize,
        visit: impl FnOnce(&mut Server, &mut Effects),
    ) {
        visit(&mut self.state.servers[index], &mut self.state.effects);
        self.settle_now();
    }

    /// An operation begins. If too many questions are open, it begins later.
    fn begin(&mut self, ticket: Ticket) {
        match self.state.may_begin(ticket, self.now) {
            true => self.step(ticket.place(), Event::Started),
            false => self.state.call(ticket, Event::Started, Reason::Begins),
        }
    }

    /// Passes an event to an operation. [`Self::settle`] handles what follows from it.
    fn step(&mut self, place: usize, event: Event) {
        self.state.end_preparing(place);
        self.state.end_listening(place);
        let Some(slot) = self.state.slots.get_mut(place) else { return };
        let Some(operation) = slot.operation.take() else { return };
        slot.until = Moment::NEVER;
        if let Some(end) = Step::new(&mut self.state, place).run(operation, event) {
            // The thread that polls may not be the one that waits for this end.
            self.state.effects.changed = true;
            if let Some(slot) = self.state.remove(place) {
                self.report(slot, end);
            }
        }
    }

    /// Reports the end of an operation to whoever waits for it.
    fn report(&mut self, Slot { caller, call, waiter, .. }: Slot, end: End) {
        let payload = match caller {
            Caller::Thread(thread) => {
                return self.ends.push_back((thread, Wakening::Ended(end)));
            }
            Caller::Program(payload) => payload,
        };
        let notice = Notice { payload, end, call };
        match waiter {
            Some(thread) => {
                self.waits.remove(thread);
                self.ends.push_back((thread, Wakening::Noticed(notice)));
            }
            None if matches!(notice.end, Ok(Ended::Stopped)) => {}
            None => self.notices.push(notice),
        }
    }

    /// A turn of the engine begins: operations may go on until it is over. Then the sockets and what is due
    /// get theirs, and another turn begins.
    fn begin_turn(&mut self) {
        self.steps_left = STEPS_MAX;
    }

    /// Does the pending work, as far as one turn does it.
    fn settle_now(&mut self) {
        self.begin_turn();
        let is_settled = self.state.turns.is_empty()
            && self.decided.is_empty()
            && self.state.effects.deliveries.is_empty()
            && self.state.effects.pushes.is_empty();
        if !is_settled || self.state.has_next(self.now) {
            self.settle(clock::now());
        }
    }

    /// Does the pending work at this moment. Operations that were given their turn go first: no other
    /// operation's request may come in between. Answers, and the questions that they decide, are as many as
    /// were asked. All other operations go on until the turn is over. Whatever one of them makes others do,
    /// they do it in one of the next turns.
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
            } else if self.is_to_restore(now) {
                self.restore(now);
            } else if !self.go_on(now) {
                return;
            }
        }
    }

    /// Lets the next operation go on, if there is room for a question and the turn is not over. Returns
    /// whether it did.
    fn go_on(&mut self, now: Moment) -> bool {
        let has_next = self.state.has_next(now);
        self.state.is_unsettled = has_next && self.steps_left == 0;
        if !has_next || self.state.is_unsettled {
            return false;
        }
        self.steps_left -= 1;
        if let Some((ticket, event)) = self.state.take_next() {
            self.step(ticket.place(), event);
        }
        true
    }

    fn next_due(&mut self) -> Moment {
        let of_operations = self.state.next_due();
        let of_waits = self.waits.next_due();
        let is_busy = self.state.is_busy();
        let servers = self.state.servers.iter().filter(|server| is_busy || !server.is_dormant());
        let of_servers = servers.map(Server::next_due);
        // Only the standby thread sees to that.
        let of_names = self.standing_by.map_or(Moment::NEVER, |_| self.look_up_of_lost_at());
        of_servers.fold(of_operations.min(of_waits).min(of_names), Moment::min)
    }
}

/// The cancellation of an operation that has asked no server.
fn cancelled() -> Event {
    Event::Cancelled { sent: ServerSet::default() }
}

#[cfg(test)]
mod tests;
