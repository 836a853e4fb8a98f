//! The state of the engine, and what a step of an operation may change.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::lanes::{Lane, Lanes, Reason};
use super::slots::Slots;
use super::timers::Timers;
use crate::engine::call_handle::CallHandle;
use crate::protocol::error::Error;
use crate::protocol::log_line::Level;
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::operation::{End, Event, Operation, Payload, Urgency};
use crate::protocol::policy::Policy;
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::address::Lookup;
use crate::protocol::servers::roster::Roster;
use crate::protocol::stats::{Counts, Mark, Outcome, Record};
use crate::protocol::token::Token;
use crate::protocol::wait_queue::WaitQueues;
use crate::system::entropy::SystemEntropy;
use crate::transport::server::{Effects, Server};

/// The maximum number of open questions. More questions would only wait in the queues of the servers, and
/// their time would run meanwhile. A server's queue has room for the same number of follow-up requests.
const OPEN_MAX: usize = 512;

/// The servers, the operations, and the waits between operations.
pub(super) struct State {
    pub(super) servers: Vec<Server>,
    pub(super) effects: Effects,
    pub(super) roster: Roster,
    pub(super) policy: Arc<Policy>,
    pub(super) wait_queues: WaitQueues,
    pub(super) counts: Counts,
    pub(super) slots: Slots<Slot>,
    timers: Timers,
    /// The operations that keep a lock alive, by the lock's token.
    pub(super) keepers: BTreeSet<(Token, usize)>,
    generation: u64,
    /// Events that are delivered as soon as the current step is over, before anything else happens. Each
    /// comes from one release, or from one message of a server.
    pub(super) turns: VecDeque<(OpId, Event)>,
    /// The operations that go on when there is room for a question.
    lanes: Lanes,
    /// Whether operations could go on, and the turn of the engine was over before they did.
    pub(super) is_unsettled: bool,
    pub(super) chores: VecDeque<Chore>,
    /// Whether an operation was begun, or a question asked, that no thread has sent yet. If the current
    /// thread leaves now, another thread must drive.
    pub(super) is_unsent: bool,
    /// How many questions are open.
    pub(super) open: usize,
    /// How many open questions and listening operations no thread waits for.
    unattended: usize,
    /// The token of the channel through which servers push messages. It is drawn when it is first needed.
    channel: Option<Token>,
}

/// An operation, and what it waits for.
pub(super) struct Slot {
    /// The generation of its question or wait.
    pub(super) generation: u64,
    pub(super) caller: Caller,
    /// The place of the thread that waits for the end of an operation of the program.
    pub(super) waiter: Option<usize>,
    /// The call through which it can be cancelled.
    pub(super) call: Option<Arc<CallHandle>>,
    /// `None` only while the operation handles an event.
    pub(super) operation: Option<Box<dyn Operation>>,
    urgency: Urgency,
    /// The lanes in which the operation waits, as bits. It waits in each of them once.
    pub(super) lanes: u8,
    pub(super) round: Option<Open>,
    /// Whether it waits for a chore.
    prepares: bool,
    /// Whether it waits for a message that servers may push.
    listens: bool,
    /// The lock that it keeps alive.
    pub(super) keeps: Option<Box<Token>>,
    /// When something is due: the question times out, or the wait ends. Only [`State::set_until`] changes it.
    pub(super) until: Moment,
    /// Its statistics.
    pub(super) record: Record,
}

/// The recipient of an operation's result.
pub(super) enum Caller {
    /// The thread that waits at this place.
    Thread(usize),
    /// The program, through a notice with this payload.
    Program(Payload),
}

/// Preparing to connect to at least `enough` servers. This takes time, so it is done with no mutex held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chore {
    pub(super) ticket: OpId,
    pub(crate) enough: usize,
}

/// Names that a thread is to look up that may wait for the system's resolver. They count as being looked up.
pub(crate) struct LookUps {
    /// The servers, and the name of each.
    pub(crate) names: Vec<(usize, Lookup)>,
    /// The chore that waits for them, if there is one.
    pub(crate) chore: Option<DeferredChore>,
}

/// A chore that goes on when its names have been looked up.
pub(crate) struct DeferredChore {
    pub(crate) chore: Chore,
    /// How long the program took to give passwords.
    pub(crate) asked_ms: i64,
    /// When it was deferred.
    pub(crate) since: Moment,
}

/// An open question.
pub(super) struct Open {
    /// The servers that have not answered yet, and the servers to which something was sent.
    pub(super) pending: ServerSet,
    pub(super) sent: ServerSet,
    pub(super) since: Moment,
    /// How long a server may take to answer after its request was sent, and the moment when the question
    /// stops waiting in any case.
    pub(super) reply_ms: i64,
    pub(super) limit: Moment,
}

impl State {
    pub(super) fn new(servers: Vec<Server>, roster: Roster, policy: Arc<Policy>) -> Self {
        Self {
            servers,
            effects: Effects::default(),
            roster,
            policy,
            wait_queues: WaitQueues::default(),
            counts: Counts::default(),
            slots: Slots::default(),
            timers: Timers::default(),
            keepers: BTreeSet::new(),
            generation: 0,
            turns: VecDeque::new(),
            lanes: Lanes::default(),
            is_unsettled: false,
            chores: VecDeque::new(),
            is_unsent: false,
            open: 0,
            unattended: 0,
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
        call: Option<Arc<CallHandle>>,
    ) -> OpId {
        let generation = self.next_generation();
        let names = self.policy.tracing().names_resources();
        let resource = operation.resource().filter(|_| names).map(Arc::clone);
        let slot = Slot {
            record: Record::new(operation.account(), resource),
            generation,
            caller,
            waiter: None,
            call,
            urgency: operation.urgency(),
            operation: Some(operation),
            lanes: 0,
            round: None,
            prepares: false,
            listens: false,
            keeps: None,
            until: Moment::NEVER,
        };
        OpId::new(self.slots.add(slot), generation)
    }

    /// The operation has ended.
    pub(super) fn remove(&mut self, place: usize) {
        if let Some(lock) = self.slots.get(place).and_then(|slot| slot.keeps.as_deref()) {
            self.keepers.remove(&(*lock, place));
        }
        self.slots.remove(place);
    }

    /// Takes the operation at this place out of its slot, because it goes on. It no longer waits for anything.
    pub(super) fn take_operation(&mut self, place: usize) -> Option<Box<dyn Operation>> {
        if self.slots.get(place).is_some_and(|slot| slot.prepares || slot.listens) {
            self.end_preparing(place);
            self.end_listening(place);
        }
        let slot = self.slots.get_mut(place)?;
        let operation = slot.operation.take()?;
        slot.until = Moment::NEVER;
        Some(operation)
    }

    /// Whether there is any operation, even one that only keeps a lock alive.
    pub(super) fn has_operations(&self) -> bool {
        self.slots.used() > 0
    }

    /// Whether any operation has work to do. An operation that keeps a lock alive mostly waits. While it
    /// extends the lock, lost servers are connected again, so that they can take part the next time.
    pub(super) fn is_busy(&self) -> bool {
        self.open > 0 || self.slots.used() > self.keepers.len()
    }

    /// When something is due for the operation at this place.
    pub(super) fn due_at(&self, place: usize) -> Moment {
        due_at(&self.slots, place)
    }

    /// Sets the moment when something is due for the operation at this place.
    pub(super) fn set_until(&mut self, place: usize, until: Moment) {
        if let Some(slot) = self.slots.get_mut(place) {
            slot.until = until;
            self.timers.note(place, until, self.slots.end(), |place| due_at(&self.slots, place));
        }
    }

    /// The operation at this place may have less time for its open question than when it asked.
    pub(super) fn bring_limit_nearer(&mut self, place: usize) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        let limit = slot.operation.as_ref().and_then(|operation| operation.limit());
        let (Some(open), Some(limit)) = (slot.round.as_mut(), limit) else { return };
        open.limit = open.limit.min(limit);
        let until = slot.until.min(open.limit);
        self.set_until(place, until);
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

    /// The operation at this place waits for a chore. The question that follows counts as open from now on.
    pub(super) fn begin_preparing(&mut self, place: usize) {
        if let Some(slot) = self.slots.get_mut(place).filter(|slot| !slot.prepares) {
            slot.prepares = true;
            self.note_open(place);
        }
    }

    /// The operation at this place no longer waits for a chore.
    pub(super) fn end_preparing(&mut self, place: usize) {
        if let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.prepares) {
            slot.prepares = false;
            self.note_closed(place);
        }
    }

    /// The operation at this place waits for a message that servers may push. If no thread waits for the
    /// operation, some thread must receive the message all the same.
    pub(super) fn begin_listening(&mut self, place: usize) {
        if let Some(slot) = self.slots.get_mut(place).filter(|slot| !slot.listens) {
            slot.listens = true;
            self.unattended += self.count_unattended(place);
        }
    }

    /// The operation at this place no longer waits for a pushed message.
    pub(super) fn end_listening(&mut self, place: usize) {
        if let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.listens) {
            slot.listens = false;
            self.unattended -= self.count_unattended(place);
        }
    }

    /// No thread waits for the end of the operation at this place any more.
    pub(super) fn end_waiting(&mut self, place: usize) {
        self.slots.get_mut(place).into_iter().for_each(|slot| slot.waiter = None);
    }

    /// The token of the channel through which servers push messages.
    pub(super) fn channel(&mut self) -> Result<Token, Error> {
        match self.channel {
            Some(channel) => Ok(channel),
            None => Ok(*self.channel.insert(Token::draw(&SystemEntropy)?)),
        }
    }

    /// Whether there is an open question, or a listening operation, that no thread waits for.
    pub(super) fn has_unattended(&self) -> bool {
        self.unattended > 0
    }

    fn count_unattended(&self, place: usize) -> usize {
        let is_attended = |slot: &Slot| matches!(slot.caller, Caller::Thread(_));
        usize::from(!self.slots.get(place).is_some_and(is_attended))
    }

    /// Whether there is room for one more question: in this engine, and at enough servers for a quorum.
    pub(super) fn may_ask(&self, now: Moment) -> bool {
        let is_congested = |server: &&Server| server.is_congested(now);
        let congested = self.servers.iter().filter(is_congested).count();
        self.open < OPEN_MAX && leaves_a_quorum(congested, self.servers.len())
    }

    /// Has an operation go on when there is room for a question. If the operation waits in that lane already,
    /// this changes nothing. An operation that has asked the servers meanwhile goes on by itself.
    pub(super) fn call(&mut self, ticket: OpId, event: Event, reason: Reason) {
        let Some(slot) = self.find(ticket) else { return };
        let lane = Lane::of(slot.urgency, reason);
        if slot.lanes & lane.bit() == 0 {
            slot.lanes |= lane.bit();
            self.lanes.push(lane, ticket, event);
        }
    }

    /// Whether an operation that begins may do so now, and overtakes no other.
    pub(super) fn may_begin(&mut self, ticket: OpId, now: Moment) -> bool {
        let urgency = self.find(ticket).map_or(Urgency::Wants, |slot| slot.urgency);
        !self.lanes.has_any_in(Lane::of(urgency, Reason::Begins)) && self.may_ask(now)
    }

    /// Whether an operation may go on.
    pub(super) fn has_next(&self, now: Moment) -> bool {
        !self.lanes.is_empty() && self.may_ask(now)
    }

    /// Takes the next operation from the lanes. Returns its event; none if the operation has gone on or ended
    /// meanwhile.
    pub(super) fn take_next(&mut self) -> Option<(OpId, Event)> {
        let (lane, ticket, event) = self.lanes.pop()?;
        let slot = self.find(ticket).filter(|slot| slot.lanes & lane.bit() != 0)?;
        // Whatever it was called for, it looks at all of it now.
        slot.lanes = 0;
        slot.round.is_none().then_some((ticket, event))
    }

    /// When the next operation has something due.
    pub(super) fn next_due(&mut self) -> Moment {
        match self.is_unsettled {
            true => Moment::from_nanos(0),
            false => self.timers.next(|place| due_at(&self.slots, place)),
        }
    }

    /// The place of an operation that has something due by now. Each due moment is returned once.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<usize> {
        self.timers.take_due(now, |place| due_at(&self.slots, place))
    }

    pub(super) fn find(&mut self, ticket: OpId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(ticket.place());
        slot.filter(|slot| slot.generation == ticket.generation())
    }
}

impl Slot {
    /// Whether the operation belongs to this call.
    pub(super) fn is_of(&self, call: &Arc<CallHandle>) -> bool {
        self.call.as_ref().is_some_and(|own| Arc::ptr_eq(own, call))
    }
}

/// Whether a quorum of the `servers` servers is left if `without` of them do not take part.
pub(super) fn leaves_a_quorum(without: usize, servers: usize) -> bool {
    2 * without < servers
}

fn due_at(slots: &Slots<Slot>, place: usize) -> Moment {
    slots.get(place).map_or(Moment::NEVER, |slot| slot.until)
}

impl Open {
    /// When the question stops waiting. The threads may have been kept from running between the start of
    /// the question and the sending of its request: that time does not count against the servers.
    pub(super) fn answer_by(&self, ticket: OpId, until: Moment, servers: &[Server]) -> Moment {
        let pending = servers.iter().enumerate().filter(|(index, _)| self.pending.contains(*index));
        let sent_at = pending.filter_map(|(_, server)| server.sent_at(ticket)).max();
        let answer_by = sent_at.map_or(until, |sent_at| sent_at.plus_ms(self.reply_ms).max(until));
        answer_by.min(self.limit)
    }

    /// Notes that the request was sent to this server, if it was.
    pub(super) fn note_sent(&mut self, server: usize, sent_at: Option<Moment>) {
        if sent_at.is_some() {
            self.sent = self.sent.with(server);
        }
    }
}

/// Statistics of operations: at their end, and while they run.
impl State {
    /// The operation at this place has ended.
    pub(super) fn note_end(&mut self, place: usize, end: &End, now: Moment) {
        let Some(slot) = self.slots.get(place) else { return };
        let outcome = match end {
            Ok(_) => Outcome::Ok,
            Err(error) => error.status().into(),
        };
        let tracing = self.policy.tracing();
        let line = slot.record.end(outcome, now, tracing, &mut self.counts);
        self.effects.lines.extend(line.map(|it| (Level::Event, it)));
    }

    /// Something countable has happened while the operation runs.
    pub(super) fn note_mark(&mut self, place: usize, mark: Mark) {
        let Some(slot) = self.slots.get(place) else { return };
        let line = slot.record.mark(mark, self.policy.tracing(), &mut self.counts);
        self.effects.lines.extend(line.map(|it| (Level::Event, it)));
    }
}
