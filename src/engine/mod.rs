//! The whole activity of one manager in one process: its servers, its operations, the waits between operations,
//! and the timers. The engine passes events to the operations and carries out the actions that they ask for.
//!
//! `driver` decides which thread uses the engine. That thread changes nothing outside the engine: log
//! lines, the ends of operations, and slow work are left for the waiting threads.

pub(crate) mod call_handle;
mod lanes;
mod notices;
mod readiness;
mod slots;
mod state;
mod step;
mod timers;
mod waits;

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;
use std::{io, iter, mem};

use self::lanes::Reason;
pub(crate) use self::notices::Notice;
use self::notices::Notices;
use self::readiness::Readiness;
use self::state::{Caller, Slot, State};
pub(crate) use self::state::{Chore, DeferredChore, LookUps};
use self::step::Step;
use self::waits::Waits;
use crate::driver::Driven;
use crate::engine::call_handle::CallHandle;
use crate::protocol::command::{Answer, Request, Verb};
use crate::protocol::failure::Failure;
use crate::protocol::lock::{Lock, View};
use crate::protocol::log_line::LogLine;
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::operation::release::Release;
use crate::protocol::operation::restore::Restore;
use crate::protocol::operation::{
    End, Ended, Event, Operation, Payload, Prepared, QUESTION_TTL_MS,
};
use crate::protocol::policy::Policy;
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::roster::Roster;
use crate::protocol::stats::Counts;
use crate::protocol::token::Token;
use crate::system::socket::Watched;
use crate::system::{clock, socket};
use crate::transport::interest::Interest;
use crate::transport::server::{Effects, Pushed, Server};

/// How many operations may go on in one turn. That takes about a millisecond, and a look at the sockets little in
/// comparison.
const STEPS_MAX: usize = 128;

pub(crate) struct Engine {
    state: State,
    /// The descriptor that wakes the driver.
    waker: RawFd,
    /// Questions to close. A question may be in the list twice.
    decided: Vec<OpId>,
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
    /// What chores need of the resolver.
    deferred: Vec<LookUps>,
    /// The operations that are due. This vector and the next one are kept for their memory.
    due: Vec<usize>,
    watched: Vec<Watched>,
    /// The latest moment until which the driver waits for the sockets.
    watched_until: Moment,
    /// When a server is due next. Unless it is asked something before, it need not be advanced until then: what it
    /// sends is handled when its socket is ready.
    servers_due: Moment,
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
        policy: Arc<Policy>,
        waker: RawFd,
    ) -> Self {
        Self {
            state: State::new(servers, roster, policy),
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
            deferred: Vec::new(),
            due: Vec::new(),
            watched: Vec::new(),
            watched_until: NOW,
            servers_due: NOW,
            now: Moment::from_nanos(0),
            steps_left: 0,
            restore_from: Moment::from_nanos(0),
        }
    }

    /// The servers, for slow work that is done with no mutex held.
    pub(crate) fn servers(&mut self) -> &mut [Server] {
        self.servers_due = NOW;
        &mut self.state.servers
    }

    /// Begins an operation. The thread at this place waits for its end, and the operation can be cancelled
    /// through this call.
    pub(crate) fn run(
        &mut self,
        thread: usize,
        operation: Box<dyn Operation>,
        call: Option<&Arc<CallHandle>>,
    ) {
        self.add(operation, Caller::Thread(thread), call);
    }

    /// Begins an operation whose end is reported as a notice with this payload.
    pub(crate) fn submit(
        &mut self,
        operation: Box<dyn Operation>,
        payload: Payload,
        call: Option<&Arc<CallHandle>>,
    ) {
        self.add(operation, Caller::Program(payload), call);
        (self.state.is_unsent, self.state.effects.changed) = (true, true);
    }

    fn add(
        &mut self,
        operation: Box<dyn Operation>,
        caller: Caller,
        call: Option<&Arc<CallHandle>>,
    ) {
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
    pub(crate) fn await_call(&mut self, thread: usize, call: &Arc<CallHandle>, until: Moment) {
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
    pub(crate) fn end_of(&mut self, call: &Arc<CallHandle>) -> Option<Wakening> {
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
    pub(crate) fn forget_call(&mut self, call: &Arc<CallHandle>) -> Option<Notice> {
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

    /// Whether names should be looked up now: those that a chore needs, and those of servers that are down, because they
    /// may have moved.
    pub(crate) fn is_look_up_due(&self, now: Moment) -> bool {
        self.look_up_at() <= now
    }

    /// When that is so next. Never if no operation wants the servers.
    fn look_up_at(&self) -> Moment {
        if !self.deferred.is_empty() {
            return NOW;
        }
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

    /// Keeps the names that a chore needs for a thread that may wait for the resolver. The background thread starts one.
    /// Without it, threads that wait for a limited time return early, so that the program can look up the names.
    pub(crate) fn defer(&mut self, names: LookUps) {
        self.deferred.push(names);
        if self.standing_by.is_none() {
            self.waits.hurry();
        }
        self.state.effects.changed = true;
    }

    /// The names that wait for such a thread.
    pub(crate) fn take_deferred(&mut self) -> Vec<LookUps> {
        mem::take(&mut self.deferred)
    }

    /// Takes in the result of a chore.
    pub(crate) fn prepared(&mut self, chore: Chore, prepared: Prepared) {
        if self.state.find(chore.ticket).is_some() {
            self.step(chore.ticket.place(), Event::Prepared(prepared));
            self.settle_now();
        }
    }

    /// Cancels the operation that is under way for this call, if there is one.
    pub(crate) fn cancel(&mut self, call: &Arc<CallHandle>) {
        let place = call.place_of_operation();
        let slot = self.state.slots.get(place);
        if slot.is_some_and(|slot| slot.is_of(call)) {
            self.cancel_at(place);
        }
    }

    fn cancel_at(&mut self, place: usize) {
        let Some(slot) = self.state.slots.get_mut(place) else { return };
        let ticket = OpId::new(place, slot.generation);
        match slot.round.take() {
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
    fn release_unwanted(&mut self, lock: &Arc<Lock>) {
        if let Some(view) = View::new(lock, &self.state.roster) {
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
        self.servers_due = NOW;
        visit(&mut self.state.servers[index], &mut self.state.effects);
        self.settle_now();
    }

    /// An operation begins. If too many questions are open, it begins later.
    fn begin(&mut self, ticket: OpId) {
        match self.state.may_begin(ticket, self.now) {
            true => self.step(ticket.place(), Event::Started),
            false => self.state.call(ticket, Event::Started, Reason::Begins),
        }
    }

    /// Passes an event to an operation. [`Self::settle`] handles what follows from it.
    fn step(&mut self, place: usize, event: Event) {
        let Some(operation) = self.state.take_operation(place) else { return };
        if let Some(end) = Step::new(&mut self.state, place).run(operation, event) {
            // The thread that polls may not be the one that waits for this end.
            self.state.effects.changed = true;
            self.report(place, end);
            self.state.remove(place);
        }
    }

    /// Reports the end of the operation at this place to whoever waits for it.
    fn report(&mut self, place: usize, end: End) {
        let Some(slot) = self.state.slots.get_mut(place) else { return };
        let payload = match &mut slot.caller {
            &mut Caller::Thread(thread) => {
                return self.ends.push_back((thread, Wakening::Ended(end)));
            }
            // The slot is given up. A box of nothing takes no memory.
            Caller::Program(payload) => mem::replace(payload, Box::new(())),
        };
        let (call, waiter) = (slot.call.take(), slot.waiter);
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
                if self.state.find(ticket).is_some_and(|slot| slot.round.is_none()) {
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
        self.next_due_beside_servers().min(self.next_due_of_servers())
    }

    fn next_due_beside_servers(&mut self) -> Moment {
        let of_operations = self.state.next_due();
        let of_waits = self.waits.next_due();
        // Only the standby thread sees to that.
        let of_names = self.standing_by.map_or(Moment::NEVER, |_| self.look_up_at());
        of_operations.min(of_waits).min(of_names)
    }

    fn next_due_of_servers(&self) -> Moment {
        let is_busy = self.state.is_busy();
        let servers = self.state.servers.iter().filter(|server| is_busy || !server.is_dormant());
        servers.map(Server::next_due).fold(Moment::NEVER, Moment::min)
    }
}

/// A moment that has passed: what is due then is due at once.
const NOW: Moment = Moment::from_nanos(0);

/// The cancellation of an operation that has asked no server.
fn cancelled() -> Event {
    Event::Cancelled { sent: ServerSet::default() }
}

/// What the driver waits for.
pub(crate) struct Watch {
    descriptors: Vec<Watched>,
    until: Moment,
    now: Moment,
}

/// The engine as the driver sees it.
impl Driven for Engine {
    type End = Wakening;
    type Event = Notice;
    type Chore = Chore;
    type Watch = Watch;
    type Words = Vec<LogLine>;

    fn advance(&mut self) {
        let now = clock::now();
        self.now = now;
        self.begin_turn();
        let may_be_due = self.state.is_unsent || self.state.effects.server_may_be_due;
        match may_be_due || now >= self.servers_due {
            true => self.advance_servers(now),
            false => {
                self.state.visit_servers(|server, effects| server.catch_up(now, effects));
                self.settle(now);
            }
        }
        if self.state.is_unsent {
            // This also sends the requests that operations have made because of the first pass.
            self.advance_servers(now);
        }
    }

    /// Returns the descriptors of the servers in their order, then those of connections that owe answers
    /// too long and of Sentinels, and the waker's descriptor last.
    fn watch(&mut self, waits: bool) -> Watch {
        const NONE: i32 = -1;
        let mut descriptors = mem::take(&mut self.watched);
        descriptors.clear();
        descriptors.extend(self.state.servers.iter().map(|server| match server.interest() {
            Some(Interest { fd, for_writing, .. }) => socket::watch(fd, for_writing),
            None => socket::watch(NONE, false),
        }));
        let have_more = self.state.servers.iter().filter(|it| it.has_interests_beside());
        let beside = have_more.flat_map(Server::interests_beside);
        descriptors.extend(beside.map(|it| socket::watch(it.fd, it.for_writing)));
        descriptors.push(socket::watch(self.waker, false));
        let until = match waits {
            true => {
                self.servers_due = self.next_due_of_servers();
                self.servers_due.min(self.next_due_beside_servers())
            }
            false => self.now,
        };
        self.watched_until = until;
        Watch { descriptors, until, now: self.now }
    }

    fn poll(watch: &mut Watch) {
        socket::poll(&mut watch.descriptors, watch.until, watch.now);
    }

    fn resume(&mut self, watch: Watch) -> bool {
        let now = clock::now();
        self.begin_turn();
        for (server, watched) in self.state.servers.iter_mut().zip(&watch.descriptors) {
            if watched.revents != 0 {
                server.handle_ready(now, &mut self.state.effects);
            }
        }
        let was_woken = watch.descriptors.last().is_some_and(|waker| waker.revents != 0);
        if watch.descriptors.len() > self.state.servers.len() + 1 {
            self.handle_ready_beside(&watch.descriptors[self.state.servers.len()..], now);
        }
        self.watched = watch.descriptors;
        self.settle(now);
        self.expire(now);
        self.end_waits(now);
        was_woken
    }

    fn next_end(&mut self) -> Option<(usize, Wakening)> {
        self.ends.pop_front()
    }

    fn has_event(&self) -> bool {
        !self.notices.is_empty()
    }

    fn next_event(&mut self) -> Option<Notice> {
        self.notices.next()
    }

    fn has_chore(&self) -> bool {
        !self.state.chores.is_empty()
    }

    /// Skips the chores of operations that have ended meanwhile.
    fn next_chore(&mut self) -> Option<Chore> {
        while let Some(chore) = self.state.chores.pop_front() {
            if self.state.find(chore.ticket).is_some() {
                return Some(chore);
            }
        }
        None
    }

    fn withdraw(&mut self, thread: usize) {
        if let Some(place) = self.waits.remove(thread).and_then(|wait| wait.operation) {
            self.state.end_waiting(place);
        }
        self.standing_by = self.standing_by.filter(|&standing_by| standing_by != thread);
    }

    fn end_call(&mut self, thread: usize) {
        self.cancel_call_of(thread);
    }

    fn discard(&mut self, end: Wakening) {
        match end {
            Wakening::Ended(Ok(Ended::Acquired { lock, .. })) => self.release_unwanted(&lock),
            // Another thread may take it.
            Wakening::Noticed(notice) => self.notices.push(notice),
            Wakening::Ended(_) | Wakening::NoCall | Wakening::TimeUp => {}
        }
    }

    fn needs_driver(&mut self) -> bool {
        self.state.is_unsent || self.state.has_unattended() || self.next_due() <= clock::now()
    }

    fn note_nap(&mut self, is_driven: bool) -> Option<Duration> {
        self.nap_until = if is_driven { Moment::NEVER } else { self.next_due() };
        let nanos = (self.nap_until - clock::now()).max(0).unsigned_abs();
        (self.nap_until != Moment::NEVER).then(|| Duration::from_nanos(nanos))
    }

    fn is_due_earlier(&mut self) -> bool {
        self.state.is_unsent || self.state.has_unattended() || self.next_due() < self.nap_until
    }

    fn settle_descriptor(&mut self, is_driven: bool) {
        if self.readiness.is_none() {
            return;
        }
        let due = self.due_of_descriptor(is_driven);
        let Some(readiness) = &mut self.readiness else { return };
        // While it is readable in any case, the sockets need not be watched. The program calls again before it waits.
        if !is_driven && due != Some(NOW) {
            let own = self.state.servers.iter().filter_map(Server::interest);
            let beside = self.state.servers.iter().flat_map(Server::interests_beside);
            readiness.watch(own.chain(beside));
        }
        if let Some(due) = due {
            readiness.set_due(due, self.now);
        }
    }

    fn rest_descriptor(&mut self) {
        self.readiness.iter_mut().for_each(|it| it.rest(clock::now()));
    }

    fn take_change(&mut self) -> bool {
        // After another thread has done a chore, an operation may have an earlier deadline.
        mem::take(&mut self.state.effects.changed) || self.state.next_due() < self.watched_until
    }

    fn has_words(&self) -> bool {
        !self.state.effects.lines.is_empty()
    }

    fn take_words(&mut self) -> Vec<LogLine> {
        mem::take(&mut self.state.effects.lines)
    }
}

impl Engine {
    /// When the descriptor must become readable. `None` if nothing is ready and a thread drives: that
    /// thread sets the descriptor when it stops driving.
    fn due_of_descriptor(&mut self, is_driven: bool) -> Option<Moment> {
        if self.has_event() || self.has_chore() || self.state.is_unsent && !is_driven {
            return Some(NOW);
        }
        (!is_driven).then(|| self.next_due())
    }

    fn advance_servers(&mut self, now: Moment) {
        self.servers_due = NOW;
        (self.state.is_unsent, self.state.effects.server_may_be_due) = (false, false);
        let is_busy = self.state.is_busy();
        self.state.visit_servers(|server, effects| {
            if is_busy || !server.is_dormant() {
                server.advance(now, effects);
            }
        });
        self.settle(now);
    }

    /// Ends the waits of threads that are over.
    fn end_waits(&mut self, now: Moment) {
        while let Some((thread, wait)) = self.waits.take_due(now) {
            wait.operation.into_iter().for_each(|place| self.state.end_waiting(place));
            self.ends.push_back((thread, Wakening::TimeUp));
            self.state.effects.changed = true;
        }
        if self.standing_by.is_some() && self.is_look_up_due(now) {
            self.end_standing_by();
        }
    }

    /// Data may have arrived on connections that owe answers too long, or from Sentinels. By now there may be other such
    /// connections, so every one is checked.
    fn handle_ready_beside(&mut self, watched: &[Watched], now: Moment) {
        if watched.iter().any(|descriptor| descriptor.revents != 0) {
            let has_one = |server: &&mut Server| server.interests_beside().next().is_some();
            for server in self.state.servers.iter_mut().filter(has_one) {
                server.handle_ready_beside(now, &mut self.state.effects);
            }
        }
    }
}

/// Messages that servers push on their own, and the operations that receive them.
impl Engine {
    /// Whether a server's answer or push has not been delivered yet.
    fn has_news(&self) -> bool {
        !self.state.effects.deliveries.is_empty() || !self.state.effects.pushes.is_empty()
    }

    /// A server has pushed the message that a resource is free.
    fn hear_push(&mut self, Pushed { server, resource, .. }: Pushed, now: Moment) {
        let slots = &self.state.slots;
        let is_asked = |place: usize| {
            let round = slots.get(place).and_then(|slot| slot.round.as_ref());
            round.is_some_and(|open| open.pending.contains(server))
        };
        let heard = self.state.wait_queues.pushed(&resource, server, is_asked, now);
        // The operation may be due now, and the thread that polls does not know that.
        self.state.effects.changed |= !heard.tell.is_empty();
        let told = heard.tell.into_iter().map(|ticket| (ticket, Event::Pushed { server }));
        self.state.turns.extend(told);
        if heard.pass_on {
            self.pass_on(resource, server, now);
        }
    }

    /// No operation of this manager waits for the resource: the server must tell the next waiter in line.
    fn pass_on(&mut self, resource: Vec<u8>, server: usize, now: Moment) {
        // The request names a channel that nobody has, so it removes no place that another operation of
        // ours has there.
        let (to, resource) = (ServerSet::default().with(server), Arc::<[u8]>::from(resource));
        let request = Request::new(Verb::Leave, resource, Token::NOBODYS, QUESTION_TTL_MS);
        let effects = &mut self.state.effects;
        self.state.servers[server].tell(&Arc::new(request.to(to)), now, effects);
    }
}

/// A hasty question waits for a server this many times as long as its last answer took, and at least
/// `HASTE_MIN`: a busy machine may keep a server from running for that long.
const USUAL_TIMES: u32 = 8;
const HASTE_MIN: Duration = Duration::from_millis(20);

/// How many operations that are due one turn takes from the timers. To take one is much less work than a step.
const DUE_MAX: usize = 4096;

/// Open questions: answers, timeouts, and closing.
impl Engine {
    /// Delivers the servers' answers to the operations. Decided questions are closed only after all answers
    /// are delivered: a late answer still shows that its request was sent.
    ///
    /// The clock is read after all answers were received. A remaining time that a server reports counts from
    /// that moment at the latest, and this thread may have been kept from running before it read the answer.
    fn deliver(&mut self) {
        let now = clock::now();
        let mut deliveries = mem::take(&mut self.state.effects.deliveries);
        let mut pushes = mem::take(&mut self.state.effects.pushes).into_iter();
        for (nth, it) in deliveries.drain(..).enumerate() {
            while pushes.as_slice().first().is_some_and(|pushed| pushed.behind <= nth) {
                pushes.next().into_iter().for_each(|pushed| self.hear_push(pushed, now));
            }
            let Some(slot) = self.state.find(it.ticket) else { continue };
            let Some(open) = slot.round.as_mut().filter(|open| open.pending.contains(it.server))
            else {
                continue;
            };
            open.pending = open.pending.without(it.server);
            if it.sent {
                open.sent = open.sent.with(it.server);
            }
            let Some(operation) = slot.operation.as_mut() else { continue };
            if operation.hear(it.server, it.answer, now) {
                self.decided.push(it.ticket);
            } else if let Some(doublings) = operation.haste(now) {
                self.hasten(it.ticket, doublings, now);
            }
        }
        pushes.for_each(|pushed| self.hear_push(pushed, now));
        // The vector is kept for its memory. A request sent meanwhile may have ended a connection, which
        // adds deliveries.
        deliveries.append(&mut self.state.effects.deliveries);
        self.state.effects.deliveries = deliveries;
    }

    /// Shortens the wait of a question that makes haste: see [`crate::protocol::operation::Operation::haste`].
    fn hasten(&mut self, ticket: OpId, doublings: u32, now: Moment) {
        let servers = &self.state.servers;
        let slot = self.state.slots.get_mut(ticket.place());
        let Some(open) = slot.and_then(|slot| slot.round.as_mut()) else { return };
        let pending = servers.iter().enumerate().filter(|(index, _)| open.pending.contains(*index));
        let usual_us = pending.filter_map(|(_, server)| server.round_trip_us()).max();
        let usual = Duration::from_micros(usual_us.unwrap_or_default().max(0).unsigned_abs());
        let wait = (USUAL_TIMES * usual).max(HASTE_MIN).saturating_mul(1 << doublings);
        open.limit = open.limit.min(now.plus(wait));
        let (limit, until) = (open.limit, self.state.due_at(ticket.place()));
        self.state.set_until(ticket.place(), until.min(limit));
    }

    /// Readiness was found out before the clock was read, and this thread may have been kept from running
    /// in between. So all servers are checked once more before any question times out.
    fn look_again(&mut self, due: &[usize], now: Moment) {
        let asks =
            |&place: &usize| self.state.slots.get(place).is_some_and(|slot| slot.round.is_some());
        if due.iter().any(asks) {
            self.state.visit_servers(|server, effects| server.handle_ready(now, effects));
            self.settle(now);
        }
    }

    /// Ends the waits that are over and the questions whose time is up. Such a question hears no more servers.
    /// If more are due than one turn may take, the others stay due.
    fn expire(&mut self, now: Moment) {
        let mut due = mem::take(&mut self.due);
        due.extend(iter::from_fn(|| self.state.take_due(now)).take(DUE_MAX));
        self.look_again(&due, now);
        for place in due.drain(..) {
            self.expire_one(place, now);
            self.settle(now);
        }
        self.due = due;
    }

    /// Does nothing if the operation has changed since it was found to be due.
    fn expire_one(&mut self, place: usize, now: Moment) {
        let slot = self.state.slots.get(place).filter(|slot| now >= slot.until);
        let Some(slot) = slot else { return };
        let ticket = OpId::new(place, slot.generation);
        let Some(open) = &slot.round else {
            return self.state.call(ticket, Event::TimeOut, Reason::IsDue);
        };
        let until = open.answer_by(ticket, slot.until, &self.state.servers);
        self.state.set_until(place, until);
        if now >= until {
            self.give_up_on_servers(ticket, now);
            self.close(ticket, now);
        }
    }

    /// Reports every server that has not answered to the operation as failed.
    fn give_up_on_servers(&mut self, ticket: OpId, now: Moment) {
        for (index, server) in self.state.servers.iter_mut().enumerate() {
            let Some(slot) = self.state.slots.get_mut(ticket.place()) else { return };
            let (Some(open), Some(operation)) = (&mut slot.round, &mut slot.operation) else {
                return;
            };
            if !open.pending.contains(index) {
                continue;
            }
            let effects = &mut self.state.effects;
            let (sent_at, failure) = match server.give_up_held(ticket, now, effects) {
                Some((sent_at, failure)) => (Some(sent_at), failure),
                None => match server.abandon(ticket, now, effects) {
                    Some(at) => (Some(at), Failure::NoAnswer { ms: now.ms_since(at) }),
                    None => (None, server.not_in_time(now.ms_since(open.since))),
                },
            };
            open.note_sent(index, sent_at);
            open.pending = open.pending.without(index);
            operation.hear(index, Answer::Failed(failure), now);
        }
    }

    /// Closes the question. It does not wait for servers that have not answered.
    fn close(&mut self, ticket: OpId, now: Moment) {
        let State { servers, slots, effects, .. } = &mut self.state;
        let slot = slots.get_mut(ticket.place());
        let Some(slot) = slot.filter(|slot| slot.generation == ticket.generation()) else { return };
        let (Some(mut open), Some(operation)) = (slot.round.take(), &mut slot.operation) else {
            return;
        };
        let wanted = operation.wanted_conditions();
        for index in open.pending.union(wanted).iter() {
            let Some(server) = servers.get_mut(index) else { continue };
            let sent_at = match open.pending.contains(index) {
                true => server.abandon(ticket, now, effects),
                false => None,
            };
            open.note_sent(index, sent_at);
            if wanted.contains(index) {
                let condition = server.condition(sent_at, now, effects);
                operation.note_condition(index, condition);
            }
        }
        self.state.note_closed(ticket.place());
        self.step(ticket.place(), Event::Closed { sent: open.sent });
    }
}

/// The minimum time from one start to the next. Each reads all numbers of all servers, which takes them a millisecond.
const APART_MS: i64 = 1_000;

/// When the numbers of servers that have lost them are restored: when an acquire has found such a server. Nothing else
/// starts that, so a manager without fencing tokens never does, and there is no timer for it.
impl Engine {
    /// Whether an acquire has found a server whose numbers are to be restored, and it is time for that.
    fn is_to_restore(&self, now: Moment) -> bool {
        self.state.effects.restores && now >= self.restore_from
    }

    /// Begins to restore them.
    fn restore(&mut self, now: Moment) {
        self.state.effects.restores = false;
        self.restore_from = now.plus_ms(APART_MS);
        let ticket =
            self.state.add(Box::new(Restore::default()), Caller::Program(Box::new(())), None);
        self.state.call(ticket, Event::Started, Reason::Begins);
    }
}

/// Statistics.
impl Engine {
    pub(crate) fn counts(&self) -> &Counts {
        &self.state.counts
    }

    /// How many operations wait for a lock, and how many locks are kept.
    pub(crate) fn waiting_and_kept(&self) -> (u64, u64) {
        let waits = |slot: &&Slot| slot.record.is_waiting();
        let waiting = self.state.slots.iter().filter(|(_, slot)| waits(slot)).count();
        (waiting as u64, self.state.keepers.len() as u64)
    }
}

#[cfg(test)]
mod tests;
