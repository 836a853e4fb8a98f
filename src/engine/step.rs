//! One step of an operation: the actions that it can take while it has the engine to itself.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use super::lanes::Reason;
use super::state::{Caller, Chore, Open, State};
use crate::protocol::command::Request;
use crate::protocol::error::{Error, Status};
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::operation::{Actions, End, Ended, Event, Limits, Operation, Payload};
use crate::protocol::policy::Policy;
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::roster::Roster;
use crate::protocol::stats::Mark;
use crate::protocol::token::{self, Token};
use crate::protocol::wait_queue::WaitQueues;
use crate::system::clock;
use crate::system::entropy::SystemEntropy;
use crate::transport::server::{Effects, Server};

/// The state of the engine, for the operation at one place.
pub(super) struct Step<'a> {
    state: &'a mut State,
    place: usize,
    /// When the step began. A step takes microseconds, and reading the clock takes time, too.
    now: Moment,
    /// The result of the operation, if it has ended.
    end: Option<End>,
}

impl<'a> Step<'a> {
    pub(super) fn new(state: &'a mut State, place: usize) -> Self {
        let now = clock::now();
        if let Some(slot) = state.slots.get_mut(place) {
            slot.record.begin(now);
        }
        Self { state, place, now, end: None }
    }

    /// Passes the event to the operation. Returns the operation's result if the event ended it. Otherwise
    /// the operation is put back in its slot. A panic ends only the operation that panicked.
    pub(super) fn run(mut self, mut operation: Box<dyn Operation>, event: Event) -> Option<End> {
        let handle = AssertUnwindSafe(|| operation.handle(event, &mut self));
        if panic::catch_unwind(handle).is_err() {
            let leave = AssertUnwindSafe(|| operation.leave(&mut self));
            let _ = panic::catch_unwind(leave);
            self.end = Some(aborted());
        }
        if let Some(end) = &self.end {
            self.state.note_end(self.place, end, self.now);
        } else if let Some(slot) = self.state.slots.get_mut(self.place) {
            slot.operation = Some(operation);
        }
        self.end
    }

    /// Opens a question to all servers. `ask` puts the question to each of them.
    fn open(
        &mut self,
        limits: Limits,
        until: Moment,
        mut ask: impl FnMut(&mut Server, OpId, &mut Effects),
    ) {
        let Limits { since, reply_ms, until: limit } = limits;
        let pending = ServerSet::first(self.state.servers.len());
        let generation = self.state.next_generation();
        let ticket = OpId::new(self.place, generation);
        if let Some(slot) = self.state.slots.get_mut(self.place) {
            let sent = ServerSet::default();
            slot.round = Some(Open { pending, sent, since, reply_ms, limit });
            (slot.generation, slot.lanes) = (generation, 0);
        }
        self.state.note_open(self.place);
        self.state.is_unsent = true;
        self.state.set_until(self.place, until);
        self.state.visit_servers(|server, effects| ask(server, ticket, effects));
    }
}

impl Actions for Step<'_> {
    fn now(&self) -> Moment {
        self.now
    }

    fn policy(&self) -> &Policy {
        &self.state.policy
    }

    fn roster(&self) -> &Roster {
        &self.state.roster
    }

    fn draw_token(&self) -> Result<Token, Error> {
        Token::draw(&SystemEntropy)
    }

    fn wall_us(&self) -> i64 {
        clock::wall_us()
    }

    fn random(&self) -> Result<u64, Error> {
        token::random(&SystemEntropy)
    }

    fn wait_queues(&mut self) -> &mut WaitQueues {
        &mut self.state.wait_queues
    }

    fn channel(&mut self) -> Result<Token, Error> {
        self.state.channel()
    }

    fn listen(&mut self) {
        self.state.begin_listening(self.place);
    }

    fn ticket(&self) -> OpId {
        let generation = self.state.slots.get(self.place).map_or(0, |slot| slot.generation);
        OpId::new(self.place, generation)
    }

    fn is_connected(&mut self, enough: usize, reply_ms: i64) -> bool {
        let now = self.now;
        if self.state.effects.health.is_good(enough, now) {
            return true;
        }
        let mut up = 0;
        self.state.visit_servers(|server, effects| {
            up += usize::from(server.is_keeping_up(reply_ms, now, effects));
        });
        self.state.effects.health.note(up, now);
        up >= enough
    }

    fn prepare(&mut self, enough: usize) {
        let ticket = self.ticket();
        self.state.chores.push_back(Chore { ticket, enough });
        self.state.begin_preparing(self.place);
        self.state.effects.changed = true;
    }

    fn connect(&mut self, limits: Limits) {
        let Limits { since, until, reply_ms } = limits;
        self.open(limits, until, |server, ticket, effects| {
            server.hurry(since, effects);
            server.await_connection(ticket, reply_ms, since, effects);
        });
    }

    fn ask(&mut self, request: Request, limits: Limits) {
        if let Some(slot) = self.state.slots.get_mut(self.place).filter(|_| request.is_attempt()) {
            slot.record.note_attempt(&mut self.state.counts);
        }
        let request = Arc::new(request);
        let Limits { since, until, reply_ms } = limits;
        self.open(limits, since.plus_ms(reply_ms).min(until), |server, ticket, effects| {
            server.ask(&request, ticket, reply_ms, since, effects);
        });
    }

    fn tell(&mut self, request: Request) -> ServerSet {
        let (request, now) = (Arc::new(request), self.now);
        let mut told = ServerSet::default();
        self.state.visit_servers(|server, effects| {
            if request.is_for(server.index()) && server.tell(&request, now, effects) {
                told = told.with(server.index());
            }
        });
        told
    }

    fn mark(&mut self, mark: Mark) {
        self.state.note_mark(self.place, mark);
    }

    fn wait_until(&mut self, until: Moment) {
        if let Some(slot) = self.state.slots.get_mut(self.place) {
            slot.record.note_wait(self.now, &mut self.state.counts);
        }
        self.state.set_until(self.place, until);
    }

    fn begin(&mut self, operation: Box<dyn Operation>, payload: Payload) {
        let ticket = self.state.add(operation, Caller::Program(payload), None);
        self.state.call(ticket, Event::Started, Reason::Begins);
    }

    fn keep(&mut self, lock: Token) {
        self.state.keepers.insert((lock, self.place));
        if let Some(slot) = self.state.slots.get_mut(self.place) {
            slot.keeps = Some(Box::new(lock));
        }
    }

    fn wake_keepers(&mut self, lock: Token) {
        let ticket = |&(_, place): &(Token, usize)| {
            Some(OpId::new(place, self.state.slots.get(place)?.generation))
        };
        let keepers = self.state.keepers.range((lock, 0)..=(lock, usize::MAX));
        let woken: Vec<OpId> = keepers.filter_map(ticket).collect();
        for keeper in woken {
            self.state.bring_limit_nearer(keeper.place());
            self.end_wait(keeper);
        }
    }

    fn give_turn(&mut self, ticket: OpId) {
        self.state.turns.push_back((ticket, Event::YourTurn));
    }

    fn end_wait(&mut self, ticket: OpId) {
        self.state.call(ticket, Event::TimeOut, Reason::IsCalled);
    }

    fn end(&mut self, result: Result<Ended, Error>) {
        self.end = Some(result);
    }
}

/// The error for a fault of the library: the operation has panicked.
fn aborted() -> End {
    let words = "internal error in the library: the call was aborted";
    Err(Error::new(Status::Internal, words))
}
