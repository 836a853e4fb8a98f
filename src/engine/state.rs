//! What the engine knows, and what a step of an operation may change.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, Status};
use crate::moment::Moment;
use crate::operation::{Ended, Event, Failed, Operation};
use crate::server_set::ServerSet;
use crate::settings::Settings;
use crate::transport::roster::Roster;
use crate::transport::server::{Effects, Server};
use crate::transport::ticket::Ticket;
use crate::wait_queue::WaitQueues;

/// The servers, the operations, and who waits for whom.
pub(super) struct State {
    pub(super) servers: Vec<Server>,
    pub(super) effects: Effects,
    pub(super) roster: Roster,
    pub(super) settings: Arc<Settings>,
    pub(super) wait_queues: WaitQueues,
    /// By their places.
    pub(super) slots: Vec<Option<Slot>>,
    generation: u64,
    /// What is to happen to operations as soon as the step of another is over.
    pub(super) turns: VecDeque<(Ticket, Event)>,
}

/// An operation, and what it waits for.
pub(super) struct Slot {
    /// That of its question, or of its wait.
    pub(super) generation: u64,
    /// Nothing only while it is in the midst of a step.
    pub(super) operation: Option<Box<dyn Operation>>,
    pub(super) question: Option<Open>,
    /// When something is due: the question's time is up, or the wait is over.
    pub(super) until: Moment,
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

/// What a caller gets back.
pub(crate) enum Over {
    /// The operation has ended.
    Ended(Result<Ended, Failed>),
    /// The caller is to prepare that so many servers can be connected to, and to submit it again.
    Prepare { operation: Box<dyn Operation>, enough: usize },
}

impl State {
    pub(super) fn new(servers: Vec<Server>, roster: Roster, settings: Arc<Settings>) -> Self {
        Self {
            servers,
            effects: Effects::default(),
            roster,
            settings,
            wait_queues: WaitQueues::default(),
            slots: Vec::new(),
            generation: 0,
            turns: VecDeque::new(),
        }
    }

    pub(super) fn visit_servers(&mut self, mut visit: impl FnMut(&mut Server, &mut Effects)) {
        self.servers.iter_mut().for_each(|server| visit(server, &mut self.effects));
    }

    pub(super) fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    /// Puts an operation in its place.
    pub(super) fn place(&mut self, place: usize, operation: Box<dyn Operation>) {
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        let generation = self.next_generation();
        let operation = Some(operation);
        let slot = Slot { generation, operation, question: None, until: Moment::NEVER };
        self.slots[place] = Some(slot);
    }

    pub(super) fn find(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(ticket.place())?.as_mut();
        slot.filter(|slot| slot.generation == ticket.generation())
    }
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

impl Over {
    /// The fault is the library's: the operation has panicked.
    pub(super) fn broken() -> Self {
        let words = "a fault in the library: the call was broken off";
        Self::Ended(Err(Error::new(Status::Internal, words).into()))
    }
}
