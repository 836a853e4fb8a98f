//! Every lock call is an operation: a state machine that knows no socket, no thread and no clock.
//!
//! The engine passes an operation one [`Event`] after the other. The operation uses [`Actions`] to say what
//! must be done: ask the servers, release a key, wait until a moment, give the turn to the next waiter, end. An
//! operation holds all the state of its call. No part of that state lives on a stack. Therefore an operation
//! does not depend on which thread waits for it, or on whether any thread waits at all.

pub(crate) mod acquire;
pub(crate) mod adopt;
pub(crate) mod confirm;
pub(crate) mod connect;
pub(crate) mod detach;
pub(crate) mod downgrade;
pub(crate) mod extend;
pub(crate) mod inspect;
pub(crate) mod inspect_permits;
pub(crate) mod leave;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod restore;
pub(crate) mod round;
mod rounds;
mod words;

use std::any::Any;
use std::sync::Arc;

use self::round::Round;
use self::words::came_first;
use crate::protocol::command::{Answer, Request, Verb};
use crate::protocol::condition::Condition;
use crate::protocol::error::{Error, Status};
use crate::protocol::keeper::Keeper;
use crate::protocol::lock::{Lock, Phase, View};
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::policy::Policy;
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::roster::Roster;
use crate::protocol::stats::{Account, Mark};
use crate::protocol::token::Token;
use crate::protocol::wait_queue::{Permission, WaitQueues};

/// The TTL that a question uses if it is not about a lock of this manager. It gives the longest derived reply
/// timeout.
pub(crate) const QUESTION_TTL_MS: i64 = 10_000;

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The operation has been submitted.
    Started,
    /// The preparation that [`Actions::prepare`] asked for is done.
    Prepared(Prepared),
    /// The question is over, because it is decided or because its time is up. A byte of the request may have
    /// been sent to these servers.
    Closed { sent: ServerSet },
    /// The moment that the operation waited for has come, or another operation has ended the wait.
    TimeOut,
    /// A server has announced that the resource that the operation waits for is free. The announcement is
    /// already noted in the line of that resource.
    Pushed { server: usize },
    /// This manager has just released the lock, and it is this operation's turn. If the operation asks at once,
    /// no other request comes in between on any server.
    YourTurn,
    /// The operation must end at once. If a question was open, it is over, and a byte of the request may have
    /// been sent to these servers.
    Cancelled { sent: ServerSet },
}

/// The result of preparing to connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// How long the program took to give passwords, and the system to look up names. This time must not be
    /// counted as the servers' time.
    pub(crate) took_ms: i64,
    /// Whether names were looked up. If so, there may be other addresses to connect to.
    pub(crate) has_looked_up: bool,
}

/// How long to wait for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// When the wait began: now, or a moment ago.
    pub(crate) since: Moment,
    /// When to stop waiting in any case. A server that has not answered by then fails with
    /// [`crate::protocol::failure::Failure::NoAnswer`].
    pub(crate) until: Moment,
    /// How long a server may take to answer a request, counted from when it was sent. A server that has owed an
    /// answer for longer than this is not asked at all.
    pub(crate) reply_ms: i64,
}

/// How urgent it is that an operation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It keeps a lock alive. If that is late, the lock is lost.
    Keeps,
    /// It is about a lock that this manager has.
    Holds,
    /// It wants a lock, or to know something.
    Wants,
}

/// One lock call.
pub(crate) trait Operation: Send {
    /// Handles an event. An operation that has ended gets no more events.
    fn handle(&mut self, event: Event, actions: &mut dyn Actions);

    /// The question that is open.
    fn round(&mut self) -> Option<&mut Round>;

    /// Passes a server's answer to the open question, heard at `now`. Each server is heard at most once.
    /// Returns whether nothing more needs to be heard.
    fn hear(&mut self, server: usize, answer: Answer, now: Moment) -> bool {
        self.round().is_some_and(|round| round.hear(server, answer, now))
    }

    /// Whether the operation is in haste. If so, servers that have not answered do not get their whole reply
    /// timeout. They get little more than their usual time, doubled the returned number of times.
    fn haste(&mut self, _now: Moment) -> Option<u32> {
        None
    }

    /// Until when the operation waits for the open question at the latest, if that can come nearer meanwhile.
    fn limit(&self) -> Option<Moment> {
        None
    }

    /// The servers whose condition the operation must be told, now that the question is closed.
    fn wanted_conditions(&mut self) -> ServerSet {
        self.round().map_or_else(ServerSet::default, |round| round.wanted_conditions())
    }

    /// Notes the condition of a server that the operation wants to know about.
    fn note_condition(&mut self, server: usize, condition: Condition) {
        if let Some(round) = self.round() {
            round.note_condition(server, condition);
        }
    }

    /// How urgent the operation is if there are too many to go on at once.
    fn urgency(&self) -> Urgency {
        Urgency::Wants
    }

    /// What the operation is, for the statistics.
    fn account(&self) -> Account {
        Account::default()
    }

    /// The resource that the operation is about, for observers that follow what happens to it.
    fn resource(&self) -> Option<&Arc<[u8]>> {
        None
    }

    /// The operation must end at once, whatever it was about. It leaves nothing behind that keeps others waiting.
    fn leave(&mut self, _actions: &mut dyn Actions) {}
}

/// What an operation can have done, and what it can find out.
pub(crate) trait Actions {
    /// The time of the event.
    fn now(&self) -> Moment;

    /// What the settings of the manager ask of its calls.
    fn policy(&self) -> &Policy;

    /// The servers of the manager.
    fn roster(&self) -> &Roster;

    /// Draws a token that was never used before.
    fn draw_token(&self) -> Result<Token, Error>;

    /// The wall-clock time of this machine, which people can set, in microseconds since 1970.
    fn wall_us(&self) -> i64;

    /// A random number, uniform over all of u64.
    fn random(&self) -> Result<u64, Error>;

    /// The wait queues: which operations of this manager wait for which resource.
    fn wait_queues(&mut self) -> &mut WaitQueues;

    /// The token of the channel on which servers send announcements to this manager. It is drawn when it is
    /// first needed.
    fn channel(&mut self) -> Result<Token, Error>;

    /// Says that an announcement from a server may end the wait that this operation begins.
    fn listen(&mut self);

    /// The name of this operation in a wait queue. It is valid until the operation asks the servers the next time.
    fn ticket(&self) -> OpId;

    /// Whether at least `enough` servers are connected and keep up, as far as can be told at once.
    fn is_connected(&mut self, enough: usize, reply_ms: i64) -> bool;

    /// Has a thread ask for passwords and look up names, with no mutex held. Names are looked up only if fewer than
    /// `enough` servers are promising without that. [`Event::Prepared`] comes when the preparation is done.
    fn prepare(&mut self, enough: usize);

    /// Connects to the servers. The question hears [`Answer::Done`] of each server that is connected.
    /// [`Event::Closed`] comes when the question has heard enough, or when the time is up.
    fn connect(&mut self, limits: Limits);

    /// Asks all servers, or those that a move is for. [`Event::Closed`] comes when the question has heard enough, or when no server has any time
    /// left to reply. After that, requests that were sent go on, but no caller waits for them. Requests that were not
    /// sent yet are dropped, except those to servers that they must reach ([`Request::must_reach`]).
    fn ask(&mut self, request: Request, limits: Limits);

    /// Sends a request to the servers that it is for ([`Request::is_for`]), behind what was sent to them
    /// before. Does not wait for answers. If the request must reach a server and cannot be sent to it now, it
    /// is sent later. To other servers it is sent now or never. Returns the servers for which it was queued.
    fn tell(&mut self, request: Request) -> ServerSet;

    /// Has [`Event::TimeOut`] come at this moment.
    fn wait_until(&mut self, until: Moment);

    /// Begins another operation that no thread waits for. Its result is reported with this payload.
    fn begin(&mut self, operation: Box<dyn Operation>, payload: Payload);

    /// Notes that this operation keeps the lock of this token.
    fn keep(&mut self, lock: Token);

    /// Ends the waits of operations that keep the lock of this token, because the lock is released or lost.
    fn wake_keepers(&mut self, lock: Token);

    /// Gives the turn to another operation that waits, as soon as this operation has said what must be done.
    fn give_turn(&mut self, ticket: OpId);

    /// Notes something that the statistics count.
    fn mark(&mut self, mark: Mark);

    /// Ends the wait of another operation.
    fn end_wait(&mut self, ticket: OpId);

    /// Ends this operation with this result.
    fn end(&mut self, result: Result<Ended, Error>);
}

/// Data that belongs to an operation that no thread waits for. It is handed out with the report of the
/// operation's end.
pub(crate) type Payload = Box<dyn Any + Send>;

/// The result of an operation that succeeded. `absent` describes servers that could not take part.
#[derive(Debug)]
pub(crate) enum Ended {
    Acquired {
        lock: Arc<Lock>,
        absent: String,
        /// The keeper, if the lock is kept.
        keeper: Option<Keeper>,
    },
    Extended {
        absent: String,
    },
    Confirmed {
        absent: String,
    },
    Released {
        absent: String,
    },
    Connected {
        absent: String,
    },
    /// Until when the lock is held, if anybody holds it.
    Inspected {
        locked_until: Option<Moment>,
        /// How many readers hold the lock, if it is held shared; 0 if the operation did not ask for their number.
        readers: Option<i64>,
        absent: String,
    },
    /// How many permits of a semaphore are taken, and when the first of them ends.
    Counted {
        taken: u16,
        first_end: Option<Moment>,
        absent: String,
    },
    /// The lock was given away.
    Detached,
    /// An inner level of the lock was left.
    Left,
    /// The lock is no longer kept, as its holder wished.
    Stopped,
    /// The lock cannot be kept, for this reason.
    Unkept {
        lock: Arc<Lock>,
        error: Error,
    },
}

/// How an operation has ended.
pub(crate) type End = Result<Ended, Error>;

/// A try that failed.
pub(crate) enum Miss {
    /// The servers did not agree.
    Votes(Status, Box<Round>),
    /// Another operation of this process comes first.
    Behind(Permission),
}

impl Miss {
    /// Ends the call with this failure.
    fn end(&self, actions: &mut dyn Actions) {
        actions.end(Err(self.error(actions.roster())));
    }

    fn error(&self, roster: &Roster) -> Error {
        match self {
            Self::Behind(permission) => came_first(*permission),
            Self::Votes(status, round) => round.error(*status, roster),
        }
    }
}

/// How long a server may take to reply to a request about a lock of this TTL.
fn reply_ms(actions: &dyn Actions, ttl_ms: i64) -> i64 {
    actions.policy().reply_ms(ttl_ms)
}

/// A request about a lock. The lock hears the answers.
fn request(verb: Verb, view: &View, ttl_ms: i64) -> Request {
    let lock = view.held_lock();
    let request = Request::new(verb, lock.key(), *lock.token(), ttl_ms);
    request.before(view.observer())
}

/// The release of a lock on all servers that may have it. If the settings say so, it wakes clients that wait
/// for the lock elsewhere.
fn release_of(view: &View, actions: &dyn Actions) -> Request {
    release_as(waking_release(actions), view, actions.now())
}

/// The verb that releases a lock openly.
fn waking_release(actions: &dyn Actions) -> Verb {
    match actions.policy().has_waking() {
        true => Verb::ReleaseAndWake,
        false => Verb::Release,
    }
}

/// The release of a lock. If its keys are to stay for a while, it does not delete them, and wakes nobody.
fn release_as(verb: Verb, view: &View, now: Moment) -> Request {
    let lock = view.held_lock();
    let (key, ttl_ms, stays_ms) = (lock.key(), lock.longest_ttl_ms(), lock.stays_ms(now));
    let verb = if stays_ms > 0 { Verb::ReleaseAfter } else { verb };
    let request = Request::new(verb, key, *lock.token(), ttl_ms).keeping_for(stays_ms);
    request.to(view.servers())
}

/// The lock no longer belongs to this manager. The next operation that waits for it may ask the servers for it.
fn forget(lock: &Lock, actions: &mut dyn Actions) {
    let now = actions.now();
    let next = actions.wait_queues().lost(lock, now);
    next.into_iter().for_each(|waiter| actions.end_wait(waiter));
    actions.wake_keepers(*lock.token());
}

/// The lock is lost. Anything left of it on a server must not keep others out, so it is released.
fn give_up(view: &View, actions: &mut dyn Actions) {
    let lock = view.held_lock();
    forget(lock, actions);
    if !matches!(lock.pass_to(Phase::Over), Phase::Over | Phase::Detached) {
        lock.note_release();
        actions.tell(release_of(view, actions));
    }
}

/// The error of a call that was cancelled.
fn cancelled() -> Error {
    Error::new(Status::Cancelled, "the call was cancelled")
}

/// Ends a round of asking which servers have a lock. Returns whether a quorum has vouched for the lock.
fn end_round(view: &View, number: u32, is_reached: bool, round: &Round) -> bool {
    if is_reached {
        return view.pass_round(number, round.voters());
    }
    view.fail_round(number);
    false
}

#[cfg(test)]
mod tests;
