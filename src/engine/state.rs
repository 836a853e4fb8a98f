//! What the engine knows, and what a step of an operation may change.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::timers::Timers;
use crate::call::Call;
use crate::error::Error;
use crate::moment::Moment;
use crate::operation::{Event, Operation, Payload};
use crate::server_set::ServerSet;
use crate::settings::Settings;
use crate::stats::{Counts, Record};
use crate::system::entropy::SystemEntropy;
use crate::token::Token;
use crate::transport::roster::Roster;
use crate::transport::server::{Effects, Server};
use crate::transport::ticket::Ticket;
use crate::wait_queue::WaitQueues;

/// So many questions are open at a time. More would only wait in the queues of the servers, and their time
/// would run meanwhile. A server has room for as many requests again that follow these.
const OPEN_MAX: usize = 512;

/// The servers, the operations, and who waits for whom.
pub(super) struct State {
    pub(super) servers: Vec<Server>,
    pub(super) effects: Effects,
    pub(super) roster: Roster,
    pub(super) settings: Arc<Settings>,
    pub(super) wait_queues: WaitQueues,
    pub(super) counts: Counts,
    pub(super) slots: Vec<Option<Slot>>,
    /// Places of slots that no operation has.
    free: Vec<usize>,
    timers: Timers,
    /// The operations that keep a lock, by its token.
    pub(super) keepers: BTreeSet<(Token, usize)>,
    generation: u64,
    /// What is to happen to operations as soon as the step of another is over.
    pub(super) turns: VecDeque<(Ticket, Event)>,
    pub(super) chores: VecDeque<Chore>,
    /// Whether something was begun, or asked, that nobody has sent yet: whoever leaves now, somebody has to come.
    pub(super) is_unsent: bool,
    /// How many questions are open, and what waits until fewer are.
    pub(super) open: usize,
    /// Those of them that no thread waits for.
    unattended: usize,
    put_off: VecDeque<(Ticket, Event)>,
    /// The token of the channel over which servers tell us things, once that was needed.
    channel: Option<Token>,
}

/// An operation, and what it waits for.
pub(super) struct Slot {
    /// That of its question, or of its wait.
    pub(super) generation: u64,
    pub(super) caller: Caller,
    /// By which it can be cancelled.
    pub(super) call: Option<Arc<Call>>,
    /// Nothing only while it is in the midst of a step.
    pub(super) operation: Option<Box<dyn Operation>>,
    pub(super) question: Option<Open>,
    /// Whether it waits for a chore.
    prepares: bool,
    /// Whether it waits for what servers may tell by themselves.
    listens: bool,
    /// The lock that it keeps.
    pub(super) keeps: Option<Box<Token>>,
    /// When something is due: the question's time is up, or the wait is over. Changed by
    /// [`State::set_until`] alone.
    pub(super) until: Moment,
    /// What is counted of it.
    pub(super) record: Record,
}

/// Who is told what an operation has come to.
pub(super) enum Caller {
    /// The thread that waits at this place.
    Thread(usize),
    /// The program, by a notice with this payload.
    Program(Payload),
}

/// It is to be prepared that so many servers can be connected to: that takes its time, and is done with no
/// mutex held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chore {
    pub(super) ticket: Ticket,
    pub(crate) enough: usize,
}

/// A question that is open.
pub(super) struct Open {
    /// Who has not answered yet, and to whom something was sent.
    pub(super) pending: ServerSet,
    pub(super) sent: ServerSet,
    pub(super) since: Moment,
    /// How long a server may take to answer since it was sent the request, and when it is waited for no
    /// longer even so.
    pub(super) reply_ms: i64,
    pub(super) limit: Moment,
}

impl State {
    pub(super) fn new(servers: Vec<Server>, roster: Roster, settings: Arc<Settings>) -> Self {
        Self {
            servers,
            effects: Effects::default(),
            roster,
            settings,
            wait_queues: WaitQueues::default(),
            counts: Counts::default(),
            slots: Vec::new(),
            free: Vec::new(),
            timers: Timers::default(),
            keepers: BTreeSet::new(),
            generation: 0,
            turns: VecDeque::new(),
            chores: VecDeque::new(),
            is_unsent: false,
            open: 0,
            unattended: 0,
            put_off: VecDeque::new(),
            channel: None,
        }
    }

    pub(super) fn visit_servers(&mut self, mut visit: impl FnMut(&mut Server, &mut Effects)) {
        self.servers.iter_mut().for_each(|server| visit(server, &mut self.effects));
    }

    pub(super) fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    /// Gives an operation a place.
    pub(super) fn add(
        &mut self,
        operation: Box<dyn Operation>,
        caller: Caller,
        call: Option<Arc<Call>>,
    ) -> Ticket {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let generation = self.next_generation();
        let names = self.settings.tracing().names_resources();
        let resource = operation.resource().filter(|_| names).map(Arc::clone);
        let slot = Slot {
            record: Record::new(operation.account(), resource),
            generation,
            caller,
            call,
            operation: Some(operation),
            question: None,
            prepares: false,
            listens: false,
            keeps: None,
            until: Moment::NEVER,
        };
        self.slots[place] = Some(slot);
        Ticket::new(place, generation)
    }

    /// The operation has ended. Returns who is told.
    pub(super) fn remove(&mut self, place: usize) -> Option<Caller> {
        let slot = self.slots[place].take()?;
        if let Some(lock) = slot.keeps.as_deref() {
            self.keepers.remove(&(*lock, place));
        }
        self.free.push(place);
        Some(slot.caller)
    }

    /// Whether there are operations that have something to do: to keep a lock is to wait, most of the time. While it
    /// is extended, servers that were lost are connected again, so that the next time they have their part in it.
    pub(super) fn is_busy(&self) -> bool {
        self.open > 0 || self.slots.len() - self.free.len() > self.keepers.len()
    }

    /// When something is due for the operation at this place.
    pub(super) fn due_at(&self, place: usize) -> Moment {
        due_at(&self.slots, place)
    }

    /// Sets when that is.
    pub(super) fn set_until(&mut self, place: usize, until: Moment) {
        if let Some(slot) = &mut self.slots[place] {
            slot.until = until;
            self.timers.note(place, until, self.slots.len(), |place| due_at(&self.slots, place));
        }
    }

    /// The operation at this place has opened a question.
    pub(super) fn note_open(&mut self, place: usize) {
        self.open += 1;
        self.unattended += self.count_unattended(place);
    }

    /// The question of the operation at this place is over.
    pub(super) fn note_closed(&mut self, place: usize) {
        self.open -= 1;
        self.unattended -= self.count_unattended(place);
    }

    /// The operation at this place waits for a chore: what it asks then is counted from now on.
    pub(super) fn begin_preparing(&mut self, place: usize) {
        if let Some(slot) = self.slots[place].as_mut().filter(|slot| !slot.prepares) {
            slot.prepares = true;
            self.note_open(place);
        }
    }

    /// It does no longer.
    pub(super) fn end_preparing(&mut self, place: usize) {
        if let Some(slot) = self.slots[place].as_mut().filter(|slot| slot.prepares) {
            slot.prepares = false;
            self.note_closed(place);
        }
    }

    /// The operation at this place waits for what servers may tell by themselves: if no thread waits for it, somebody has
    /// to hear it all the same.
    pub(super) fn begin_listening(&mut self, place: usize) {
        if let Some(slot) = self.slots[place].as_mut().filter(|slot| !slot.listens) {
            slot.listens = true;
            self.unattended += self.count_unattended(place);
        }
    }

    /// It does no longer.
    pub(super) fn end_listening(&mut self, place: usize) {
        if let Some(slot) = self.slots[place].as_mut().filter(|slot| slot.listens) {
            slot.listens = false;
            self.unattended -= self.count_unattended(place);
        }
    }

    /// The token of the channel over which servers tell us things by themselves.
    pub(super) fn channel(&mut self) -> Result<Token, Error> {
        match self.channel {
            Some(channel) => Ok(channel),
            None => Ok(*self.channel.insert(Token::draw(&SystemEntropy)?)),
        }
    }

    /// Whether a question is open for whose answers no thread waits.
    pub(super) fn has_unattended(&self) -> bool {
        self.unattended > 0
    }

    fn count_unattended(&self, place: usize) -> usize {
        let is_attended = |slot: &Slot| matches!(slot.caller, Caller::Thread(_));
        usize::from(!self.slots[place].as_ref().is_some_and(is_attended))
    }

    /// Whether there is room for one more question: here, and at so many servers that they can be a quorum.
    pub(super) fn may_ask(&self, now: Moment) -> bool {
        let is_congested = |server: &&Server| server.is_congested(now);
        let congested = self.servers.iter().filter(is_congested).count();
        self.open < OPEN_MAX && leaves_a_quorum(congested, self.servers.len())
    }

    /// Has an event wait until there is.
    pub(super) fn put_off(&mut self, ticket: Ticket, event: Event) {
        self.put_off.push_back((ticket, event));
    }

    pub(super) fn has_put_off(&self, now: Moment) -> bool {
        !self.put_off.is_empty() && self.may_ask(now)
    }

    /// Lets the first event happen next that was put off, if there is room. Returns whether it does.
    pub(super) fn take_up(&mut self, now: Moment) -> bool {
        let next = if self.has_put_off(now) { self.put_off.pop_front() } else { None };
        self.turns.extend(next);
        next.is_some()
    }

    /// When the next operation has something due.
    pub(super) fn next_due(&mut self) -> Moment {
        self.timers.next(|place| due_at(&self.slots, place))
    }

    /// The place of an operation that has something due by now. It is told of once.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<usize> {
        self.timers.take_due(now, |place| due_at(&self.slots, place))
    }

    pub(super) fn find(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(ticket.place())?.as_mut();
        slot.filter(|slot| slot.generation == ticket.generation())
    }
}

/// Whether those are a quorum that are left without so many of these servers.
pub(super) fn leaves_a_quorum(without: usize, servers: usize) -> bool {
    2 * without < servers
}

fn due_at(slots: &[Option<Slot>], place: usize) -> Moment {
    slots[place].as_ref().map_or(Moment::NEVER, |slot| slot.until)
}

impl Open {
    /// Until when it waits: the threads may have been kept from running between the beginning of the question
    /// and the sending of its request, and that is not the servers' time.
    pub(super) fn answer_by(&self, ticket: Ticket, until: Moment, servers: &[Server]) -> Moment {
        let pending = servers.iter().enumerate().filter(|(index, _)| self.pending.contains(*index));
        let sent_at = pending.filter_map(|(_, server)| server.sent_at(ticket)).max();
        let answer_by = sent_at.map_or(until, |sent_at| sent_at.plus_ms(self.reply_ms).max(until));
        answer_by.min(self.limit)
    }

    /// It was sent to this server then, if it was.
    pub(super) fn note_sent(&mut self, server: usize, sent_at: Option<Moment>) {
        if sent_at.is_some() {
            self.sent = self.sent.with(server);
        }
    }
}
