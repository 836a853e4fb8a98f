//! A stand-in for the engine, as an operation sees it. It records what the operation wants done, and does
//! nothing.

use std::cell::Cell;
use std::sync::Arc;

use self::Act::{Ask, Begin, Connect, EndWait, GiveTurn, Keep, Prepare, Tell, WaitUntil};
use super::super::{Actions, Ended, Limits, Operation, Payload};
use super::NEVER;
use crate::protocol::command::{Request, Verb, fence};
use crate::protocol::error::{Error, Status};
use crate::protocol::lock::{Lock, Phase};
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::policy::Policy;
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::servers::roster::Roster;
use crate::protocol::stats::Mark;
use crate::protocol::token::Token;
use crate::protocol::wait_queue::WaitQueues;

/// The time on the machine's wall clock.
pub(super) const WALL_US: i64 = 1_700_000_000_000_000;

/// The random number that makes a pause as long as its mean.
const MEAN: u64 = 1 << 63;

/// What an operation wants done.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    /// Prepare for this many servers.
    Prepare(usize),
    /// Connect, until then.
    Connect(i64),
    /// Ask all servers, and wait until then.
    Ask(Verb, i64),
    /// Send this to these servers.
    Tell(Verb, Vec<usize>),
    WaitUntil(i64),
    /// A message from a server may end the wait.
    Listen,
    /// Give that call its turn, or end its wait.
    GiveTurn(usize),
    EndWait(usize),
    /// Begin another operation.
    Begin,
    /// Note that this operation keeps the lock.
    Keep,
    Ended(String),
}

pub(super) fn ended(words: &str) -> Act {
    Act::Ended(words.to_owned())
}

pub(super) fn at(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000_000).plus_ms(ms)
}

pub(super) fn ms_of(moment: Moment) -> i64 {
    if moment == Moment::NEVER { NEVER } else { moment.ms_since(at(0)) }
}

/// What an operation knows, and what it has asked for.
pub(super) struct World {
    pub(super) now: Moment,
    pub(super) policy: Policy,
    pub(super) roster: Roster,
    pub(super) queues: WaitQueues,
    /// How many servers are connected, and the servers to which nothing can be sent.
    pub(super) connected: usize,
    pub(super) down: ServerSet,
    /// The random number that is always drawn. None if there is no randomness, for tokens neither.
    pub(super) random: Option<u64>,
    pub(super) drawn: Cell<u8>,
    /// The call that is being run.
    pub(super) call: usize,
    pub(super) acts: Vec<Act>,
    /// The locks whose keepers were woken.
    pub(super) woken: Vec<Token>,
    /// All requests, and the last request that was asked or told.
    pub(super) requests: Vec<(Verb, Token, i64)>,
    pub(super) asked: Option<Request>,
    pub(super) told: Option<Request>,
    /// Another handle releases this lock as soon as anything is told.
    pub(super) is_released_meanwhile: Option<Arc<Lock>>,
    /// The result of the last call.
    pub(super) lock: Option<Arc<Lock>>,
}

impl World {
    /// With this many servers, all of them connected: a, b, c, and so on.
    pub(super) fn of(servers: usize) -> Self {
        let names = ["a", "b", "c", "d", "e"];
        let endpoints = names[..servers].iter().map(|name| Endpoint::parse(name, 1).unwrap());
        let policy = Policy::default();
        policy.set_waking(false);
        Self {
            now: at(0),
            policy,
            roster: Roster::new(endpoints.collect()),
            queues: WaitQueues::default(),
            connected: servers,
            down: ServerSet::default(),
            random: Some(MEAN),
            drawn: Cell::new(0),
            call: 0,
            acts: Vec::new(),
            woken: Vec::new(),
            requests: Vec::new(),
            asked: None,
            told: None,
            is_released_meanwhile: None,
            lock: None,
        }
    }

    fn no_randomness() -> Error {
        Error::new(Status::Internal, "no randomness")
    }

    fn note(&mut self, request: &Request) {
        // The resource, or a slot of it.
        let resource = request.resource();
        let is_of_fences = resource == fence::KEY.as_bytes();
        assert!(is_of_fences || resource == b"r" || resource.starts_with(b"r#"), "{request:?}");
        self.requests.push((request.verb(), *request.token(), request.ttl_ms()));
    }

    fn words(&mut self, result: Result<Ended, Error>) -> String {
        let (what, absent) = match result {
            Ok(Ended::Acquired { lock, absent, .. }) => {
                self.lock = Some(lock);
                ("acquired", absent)
            }
            Ok(Ended::Extended { absent }) => ("extended", absent),
            Ok(Ended::Confirmed { absent }) => ("confirmed", absent),
            Ok(Ended::Released { absent }) => ("released", absent),
            Ok(Ended::Connected { absent }) => ("connected", absent),
            Ok(Ended::Inspected { locked_until: Some(_), readers: None, .. }) => {
                ("locked", String::new())
            }
            Ok(Ended::Inspected { locked_until: Some(_), .. }) => ("shared", String::new()),
            Ok(Ended::Inspected { locked_until: None, .. }) => ("free", String::new()),
            Ok(Ended::Counted { taken, absent, .. }) => {
                return with_absent(&format!("counted: {taken}"), &absent);
            }
            Ok(Ended::Detached) => ("detached", String::new()),
            Ok(Ended::Left) => ("left", String::new()),
            Ok(Ended::Stopped) => ("stopped", String::new()),
            Ok(Ended::Unkept { error, .. }) => return format!("{:?}: {error}", error.status()),
            Err(error) => return format!("{:?}: {error}", error.status()),
        };
        with_absent(what, &absent)
    }
}

fn with_absent(what: &str, absent: &str) -> String {
    if absent.is_empty() { what.to_owned() } else { format!("{what} without: {absent}") }
}

impl Actions for World {
    fn now(&self) -> Moment {
        self.now
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }

    fn roster(&self) -> &Roster {
        &self.roster
    }

    fn draw_token(&self) -> Result<Token, Error> {
        self.random.ok_or_else(Self::no_randomness)?;
        self.drawn.set(self.drawn.get() + 1);
        Ok(Token::from_random([self.drawn.get(); 20]))
    }

    fn wall_us(&self) -> i64 {
        WALL_US
    }

    fn random(&self) -> Result<u64, Error> {
        self.random.ok_or_else(Self::no_randomness)
    }

    fn wait_queues(&mut self) -> &mut WaitQueues {
        &mut self.queues
    }

    fn channel(&mut self) -> Result<Token, Error> {
        self.random.ok_or_else(Self::no_randomness)?;
        Ok(Token::from_random([0xC4; 20]))
    }

    fn listen(&mut self) {
        self.acts.push(Act::Listen);
    }

    fn ticket(&self) -> OpId {
        OpId::new(self.call, 0)
    }

    fn is_connected(&mut self, enough: usize, _: i64) -> bool {
        self.connected >= enough
    }

    fn prepare(&mut self, enough: usize) {
        self.acts.push(Prepare(enough));
    }

    fn connect(&mut self, limits: Limits) {
        self.acts.push(Connect(ms_of(limits.until)));
    }

    fn ask(&mut self, request: Request, limits: Limits) {
        assert_eq!(limits.since, self.now);
        self.note(&request);
        let until = limits.since.plus_ms(limits.reply_ms).min(limits.until);
        self.acts.push(Ask(request.verb(), ms_of(until)));
        self.asked = Some(request);
    }

    fn tell(&mut self, request: Request) -> ServerSet {
        self.note(&request);
        let all = ServerSet::first(self.roster.len());
        let servers: Vec<usize> = all.iter().filter(|&server| request.is_for(server)).collect();
        let told = servers.iter().copied().collect::<ServerSet>().minus(self.down);
        self.acts.push(Tell(request.verb(), servers));
        self.told = Some(request);
        if let Some(lock) = self.is_released_meanwhile.take() {
            lock.pass_to(Phase::Releasing);
        }
        told
    }

    fn wait_until(&mut self, until: Moment) {
        self.acts.push(WaitUntil(ms_of(until)));
    }

    fn begin(&mut self, _: Box<dyn Operation>, _: Payload) {
        self.acts.push(Begin);
    }

    fn keep(&mut self, _: Token) {
        self.acts.push(Keep);
    }

    fn wake_keepers(&mut self, lock: Token) {
        self.woken.push(lock);
    }

    fn give_turn(&mut self, ticket: OpId) {
        self.acts.push(GiveTurn(ticket.place()));
    }

    fn mark(&mut self, _: Mark) {}

    fn end_wait(&mut self, ticket: OpId) {
        self.acts.push(EndWait(ticket.place()));
    }

    fn end(&mut self, result: Result<Ended, Error>) {
        let words = self.words(result);
        self.acts.push(Act::Ended(words));
    }
}
