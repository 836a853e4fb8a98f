//! Each operation as a list of events and the actions that follow: no socket, no thread, no clock.
//!
//! A test sees what an operation wants done ([`Act`]). It plays the events that the engine would cause: servers
//! answer, the time is up, a waiter gets its turn. All times are milliseconds since the beginning.

mod account;
mod acquire;
mod cancel;
mod confirm;
mod connect;
mod extend;
mod fencing;
mod handover;
mod inspect;
mod inspect_permits;
mod leave;
mod permits;
mod release;
mod renew;
mod restore;
mod round;
mod several;
mod shared;
mod waiting;
mod waking;
mod world;

use std::mem;
use std::sync::Arc;

use self::world::Act::{Ask, Connect, EndWait, GiveTurn, Keep, Prepare, Tell, WaitUntil};
use self::world::{Act, World, at, ended};
use super::acquire::{Acquire, Plan, Wanted};
use super::confirm::Confirm;
use super::extend::Extend;
use super::release::Release;
use super::{Actions, Event, Operation, Prepared};
use crate::protocol::command::{Answer, Request, Slots, Verb};
use crate::protocol::condition::Condition;
use crate::protocol::failure::Failure;
use crate::protocol::lock::{Lock, Phase, View};
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::refusal::Refusal;
use crate::protocol::server_set::ServerSet;

/// With this TTL, a server has 500 ms to reply to a request about the lock, and the lock is valid for
/// [`VALID_MS`].
const TTL: i64 = 10_000;
const VALID_MS: i64 = 9_898;

/// The moment that never comes.
const NEVER: i64 = i64::MAX;

/// The words when one of three servers has answered a question.
const ONE_OF_THREE: &str = "Unreachable: 1 of 3 servers answered, 2 needed: b:1 timed out after 500 ms, \
                            c:1 timed out after 500 ms";

/// What a server answers.
type Word = (usize, Answer);

fn yes(server: usize) -> Word {
    (server, Answer::Done)
}

fn extended(server: usize) -> Word {
    (server, Answer::Extended { left_ms: 1_000 })
}

fn gone(server: usize) -> Word {
    (server, Answer::Absent)
}

/// Another client has the lock for this long.
fn taken(server: usize, left_ms: i64) -> Word {
    (server, Answer::Foreign { left_ms: Some(left_ms) })
}

/// Of three permits, the server has given us this one, and others have these.
fn slots(server: usize, got: Option<u16>, others: &[u16]) -> Word {
    let taken = others.iter().copied().chain(got).collect();
    (server, Answer::Slots(Slots { got, taken, left_ms: if got.is_some() { -1 } else { 4_000 } }))
}

/// This lock is there for this long.
fn found(server: usize, lock: &Lock, left_ms: i64) -> Word {
    (server, Answer::Found { value: lock.token().as_bytes().to_vec(), left_ms })
}

fn refused(server: usize) -> Word {
    (server, Answer::Failed(Failure::Refused(Refusal::OutOfMemory)))
}

fn down(server: usize) -> Word {
    (server, Answer::Failed(Failure::NotConnected("connection refused".to_owned())))
}

/// An operation that has not ended.
struct Call {
    operation: Box<dyn Operation>,
    request: Option<Request>,
    asked_at: Moment,
    /// The servers that have not answered yet.
    pending: ServerSet,
}

/// The calls of one manager, in the order in which they came: the first is 0.
struct Play {
    world: World,
    calls: Vec<Option<Call>>,
}

impl Play {
    /// A manager with this many servers, all of them connected: a, b, c, and so on.
    fn of(servers: usize) -> Self {
        let world = World::of(servers);
        Self { world, calls: Vec::new() }
    }

    /// A manager with three servers, and a lock that call 0 has taken on all of them at the beginning.
    fn holding() -> (Self, View) {
        let mut play = Self::of(3);
        assert_eq!(play.acquire(Plan::Tries(1)), [Ask(Verb::Acquire, 500)]);
        assert_eq!(play.hear(0, &[yes(0), yes(1), yes(2)]), [ended("acquired")]);
        let view = play.view();
        (play, view)
    }

    /// The same, with call 1 waiting for the lock since then. It looks after 100 ms.
    fn holding_and_waiting() -> (Self, View) {
        let (mut play, view) = Self::holding();
        assert_eq!(play.acquire(Plan::Until(at(60_000))), [WaitUntil(100)]);
        (play, view)
    }

    /// The lock that was acquired last.
    fn view(&self) -> View {
        View::new(self.world.lock.as_ref().unwrap(), &self.world.roster).unwrap()
    }

    fn at(&mut self, ms: i64) -> &mut Self {
        self.world.now = at(ms);
        self
    }

    fn submit(&mut self, operation: impl Operation + 'static) -> Vec<Act> {
        self.submit_with(operation, Event::Started)
    }

    /// Submits an operation whose first event is this.
    fn submit_with(&mut self, operation: impl Operation + 'static, event: Event) -> Vec<Act> {
        let (request, pending) = Default::default();
        let call = Call { operation: Box::new(operation), request, asked_at: at(0), pending };
        self.calls.push(Some(call));
        self.happen(self.calls.len() - 1, event)
    }

    /// A call finds that no server can be connected.
    #[track_caller]
    fn finds_nobody(&mut self, call: usize) {
        self.prepared(call);
        assert_eq!(self.hear(call, &[down(0), down(1), down(2)]), [Prepare(usize::MAX)]);
        let acts = self.prepared(call);
        assert!(matches!(&acts[..], [Act::Ended(it)] if it.starts_with("Unreachable: 0 of 3")));
    }

    /// What an acquire asks for that a thread of its own makes in one slice.
    fn wanted(&self, plan: Plan) -> Wanted {
        Wanted {
            target: Target::from(Arc::<[u8]>::from(&b"r"[..])),
            ttl_ms: TTL,
            plan,
            thread: Some(self.calls.len() + 1),
            keeping: None,
        }
    }

    /// Asks for the lock shared.
    fn read(&mut self, plan: Plan) -> Vec<Act> {
        let mut wanted = self.wanted(plan);
        wanted.target.kind = LockKind::Shared;
        self.acquire_as(wanted)
    }

    fn acquire(&mut self, plan: Plan) -> Vec<Act> {
        self.acquire_as(self.wanted(plan))
    }

    /// Asks for one of three permits. The token of the first attempt tries slot 1 first.
    fn permit(&mut self, plan: Plan) -> Vec<Act> {
        let resource = Arc::from(&b"r"[..]);
        let target = Target::new(resource, LockKind::Permit { of: 3 });
        self.acquire_as(Wanted { target, ..self.wanted(plan) })
    }

    fn acquire_as(&mut self, wanted: Wanted) -> Vec<Act> {
        let token = self.world.draw_token().unwrap();
        self.submit(Acquire::new(wanted, token))
    }

    /// Plays the event, and returns what the operation wants done. Among that is at most one thing to wait for.
    fn happen(&mut self, number: usize, event: Event) -> Vec<Act> {
        let mut call = self.calls[number].take().expect("a call that has not ended");
        self.world.call = number;
        call.operation.handle(event, &mut self.world);
        let acts = mem::take(&mut self.world.acts);
        let prepares = acts.iter().any(|act| matches!(act, Prepare(_)));
        let is_beside = |act: &&Act| match act {
            Tell(..) | GiveTurn(_) | EndWait(_) | Keep | Act::Begin | Act::Listen => true,
            // While the operation is being prepared, its time may be up.
            WaitUntil(_) => prepares,
            _ => false,
        };
        let awaited: Vec<&Act> = acts.iter().filter(|act| !is_beside(act)).collect();
        assert!(awaited.len() <= 1, "{acts:?}");
        match awaited.first() {
            Some(Act::Ended(_)) => return acts,
            Some(Ask(..) | Connect(_)) => {
                call.pending = ServerSet::first(self.world.roster.len());
                (call.request, call.asked_at) = (self.world.asked.take(), self.world.now);
            }
            Some(_) => call.pending = ServerSet::default(),
            None => {}
        }
        let is_open = call.operation.round().is_some();
        assert!(is_open || call.pending.is_empty(), "nothing is asked: {acts:?}");
        self.calls[number] = Some(call);
        acts
    }

    /// The wait of the call is over.
    fn time_out(&mut self, call: usize) -> Vec<Act> {
        self.happen(call, Event::TimeOut)
    }

    /// Passwords and names are there. That took no time, and no name was looked up.
    fn prepared(&mut self, call: usize) -> Vec<Act> {
        self.happen(call, Event::Prepared(Prepared::default()))
    }

    /// Servers answer, all of them before anything else happens. If the question has heard enough, it is
    /// closed.
    fn hear(&mut self, call: usize, words: &[Word]) -> Vec<Act> {
        if self.say(call, words) { self.close(call) } else { Vec::new() }
    }

    /// Returns whether the question has heard enough.
    fn say(&mut self, call: usize, words: &[Word]) -> bool {
        let (call, now) = (self.calls[call].as_mut().expect("a call"), self.world.now);
        let mut is_over = false;
        for (server, answer) in words {
            assert!(call.pending.contains(*server), "{server} has answered");
            call.pending = call.pending.without(*server);
            let is_reply =
                !matches!(answer, Answer::Failed(it) if !matches!(it, Failure::Refused(_)));
            if let Some(request) = call.request.as_ref().filter(|_| is_reply) {
                request.note(*server, answer, now);
            }
            is_over |= call.operation.hear(*server, answer.clone(), now);
        }
        is_over
    }

    fn haste(&mut self, call: usize) -> Option<u32> {
        let now = self.world.now;
        self.calls[call].as_mut().expect("a call").operation.haste(now)
    }

    /// Servers that have not answered yet are heard as having failed.
    fn time_is_up(&mut self, number: usize) -> Vec<Act> {
        let call = self.calls[number].as_ref().expect("a call");
        let ms = self.world.now.ms_since(call.asked_at);
        let silent = |server| match self.world.down.contains(server) {
            true => down(server),
            false => (server, Answer::Failed(Failure::NoAnswer { ms })),
        };
        let words: Vec<Word> = call.pending.iter().map(silent).collect();
        self.say(number, &words);
        self.close(number)
    }

    /// The question is over. Something may have been sent to all servers that are not down.
    fn close(&mut self, number: usize) -> Vec<Act> {
        let servers = ServerSet::first(self.world.roster.len());
        let call = self.calls[number].as_mut().expect("a call");
        for server in call.operation.wanted_conditions().iter() {
            let is_connected = !self.world.down.contains(server);
            let words = if is_connected { "was not heard" } else { "is down" };
            let condition = Condition { is_connected, words: words.to_owned() };
            call.operation.note_condition(server, condition);
        }
        self.happen(number, Event::Closed { sent: servers.minus(self.world.down) })
    }

    /// The engine makes the operation leave.
    fn leave(&mut self, number: usize) -> Vec<Act> {
        let mut call = self.calls[number].take().expect("a call");
        call.operation.leave(&mut self.world);
        mem::take(&mut self.world.acts)
    }
}
