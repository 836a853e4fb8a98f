//! Every lock call is an operation: a state machine that knows no socket, no thread and no clock.
//!
//! An operation is told what happens, one [`Event`] after the other, and says through [`Actions`] what
//! is to be done: ask the servers, release a key, wait until a moment, give its turn to the next, end.
//! It holds everything that the call knows; nothing of a call lives on a stack. So it does not matter
//! to it who waits for it, or whether anybody does.

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
pub(crate) mod question;
pub(crate) mod release;
pub(crate) mod renew;
mod words;

use std::any::Any;
use std::sync::Arc;

use self::question::Question;
use self::words::came_first;
use crate::command::{Answer, Request, Verb};
use crate::error::{Error, Status};
use crate::held_lock::{HeldLock, Phase, View};
use crate::keeper::Keeper;
use crate::lease::BrokenOff;
use crate::moment::Moment;
use crate::server_set::ServerSet;
use crate::settings::Settings;
use crate::stats::{Account, Mark};
use crate::token::Token;
use crate::transport::condition::Condition;
use crate::transport::roster::Roster;
use crate::transport::ticket::Ticket;
use crate::wait_queue::{Permission, WaitQueues};

/// The TTL that stands in for one where a question is about no lock of ours. It gives the longest of
/// the derived reply timeouts.
pub(crate) const QUESTION_TTL_MS: i64 = 10_000;

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It has been submitted.
    Started,
    /// Somebody has done what [`Actions::prepare`] asked for.
    Prepared(Prepared),
    /// The question is over: it is decided, or its time is up. A byte of the request may have been sent
    /// to these servers.
    Closed { sent: ServerSet },
    /// The moment has come that it waited for, or somebody has ended the wait.
    TimeOut,
    /// A server has told by itself that the resource is free for which it waits. It is noted in the line of that.
    Pushed { server: usize },
    /// The lock was released just now by this manager, and it is its turn. Nobody else's request comes in
    /// between on any server, if it asks at once.
    YourTurn,
    /// It is to end at once. If a question was open, it is over, and a byte of the request may have been sent
    /// to these servers.
    Cancelled { sent: ServerSet },
}

/// What preparing to connect has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// How long the program took to give passwords, and the system to look up names. That is not the
    /// servers' time.
    pub(crate) took_ms: i64,
    /// Whether names were looked up: then there may be other addresses to connect to.
    pub(crate) has_looked_up: bool,
}

/// How long to wait for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// When that began: now, or a moment ago.
    pub(crate) since: Moment,
    /// When to wait no longer in any case. Servers that have not answered by then have
    /// [`crate::failure::Failure::NoAnswer`].
    pub(crate) until: Moment,
    /// How long a server may take to answer a request, since it was sent. One that owes an answer for
    /// longer is not asked at all.
    pub(crate) reply_ms: i64,
}

/// One lock call.
pub(crate) trait Operation: Send {
    /// Something has happened. Nothing happens to an operation that has ended.
    fn handle(&mut self, event: Event, actions: &mut dyn Actions);

    /// The question that is open.
    fn question(&mut self) -> Option<&mut Question>;

    /// A server's answer to that, heard at `now`. Each server is heard at most once. Returns whether
    /// nothing more needs to be heard.
    fn hear(&mut self, server: usize, answer: Answer, now: Moment) -> bool {
        self.question().is_some_and(|question| question.hear(server, answer, now))
    }

    /// Whether it makes haste: the servers that have not answered are not given the whole of their time, but little more
    /// than they usually take, so many times doubled.
    fn haste(&mut self, _now: Moment) -> Option<u32> {
        None
    }

    /// The servers of which it is to be told how things stand with them, now that the question is closed.
    fn wanted_conditions(&mut self) -> ServerSet {
        self.question().map_or_else(ServerSet::default, |question| question.wanted_conditions())
    }

    /// How things stand with a server of which it wants to know.
    fn note_condition(&mut self, server: usize, condition: Condition) {
        if let Some(question) = self.question() {
            question.note_condition(server, condition);
        }
    }

    /// What it is, for those who count.
    fn account(&self) -> Account {
        Account::default()
    }

    /// The resource that it is about, for those who follow what becomes of it.
    fn resource(&self) -> Option<&Arc<[u8]>> {
        None
    }

    /// It is to end at once, whatever it was about. It leaves nothing behind that keeps others waiting.
    fn leave(&mut self, _actions: &mut dyn Actions) {}
}

/// What an operation can have done, and what it can know.
pub(crate) trait Actions {
    /// Now, when the event happens.
    fn now(&self) -> Moment;

    /// The settings of the manager.
    fn settings(&self) -> &Settings;

    /// The servers of the manager.
    fn roster(&self) -> &Roster;

    /// A token that was never used.
    fn draw_token(&self) -> Result<Token, Error>;

    /// What this machine's clock shows that people set, in microseconds since 1970.
    fn wall_us(&self) -> i64;

    /// A random number, uniform over all of u64.
    fn random(&self) -> Result<u64, Error>;

    /// Who of this manager waits for which resource.
    fn wait_queues(&mut self) -> &mut WaitQueues;

    /// The token of the channel over which servers tell this manager things by themselves. It is drawn when it is first
    /// needed.
    fn channel(&mut self) -> Result<Token, Error>;

    /// The wait that this operation begins may be ended by what a server tells by itself.
    fn listen(&mut self);

    /// Names this operation in a wait queue, until it asks the servers the next time.
    fn ticket(&self) -> Ticket;

    /// Whether so many servers are connected and keep up, as far as can be told at once.
    fn is_connected(&mut self, enough: usize, reply_ms: i64) -> bool;

    /// Has somebody ask for passwords and look up names, with no mutex held; names only if fewer than
    /// `enough` servers are promising without. [`Event::Prepared`] comes when that is done.
    fn prepare(&mut self, enough: usize);

    /// Has the servers connected to. The question hears [`Answer::Done`] of each that is.
    /// [`Event::Closed`] comes when it has heard enough, or when the time is up.
    fn connect(&mut self, limits: Limits);

    /// Asks all servers. [`Event::Closed`] comes when the question has heard enough or no server has any
    /// time left to reply. Requests that were sent go on after that, with nobody waiting for them; those
    /// that were not sent yet never will be, but to servers that they must reach
    /// ([`Request::must_reach`]).
    fn ask(&mut self, request: Request, limits: Limits);

    /// Sends a request to the servers that it is for ([`Request::is_for`]), behind what was sent to them
    /// before, and waits for nothing. To a server that it must reach it goes later if it cannot go now; to
    /// others it goes now or never. Returns the servers for which it was queued.
    fn tell(&mut self, request: Request) -> ServerSet;

    /// Has [`Event::TimeOut`] come at this moment.
    fn wait_until(&mut self, until: Moment);

    /// Begins another operation, which nobody waits for: what it comes to is told with this payload.
    fn begin(&mut self, operation: Box<dyn Operation>, payload: Payload);

    /// Notes that this operation keeps the lock of this token.
    fn keep(&mut self, lock: Token);

    /// Ends the waits of operations that keep the lock of this token: it is released or lost.
    fn wake_keepers(&mut self, lock: Token);

    /// Gives another operation, which waits, its turn: as soon as this one has said what is to be done.
    fn give_turn(&mut self, ticket: Ticket);

    /// Notes something that is counted.
    fn mark(&mut self, mark: Mark);

    /// Ends the wait of another operation.
    fn end_wait(&mut self, ticket: Ticket);

    /// It has ended with this.
    fn end(&mut self, result: Result<Ended, Failed>);
}

/// What comes with an operation that no thread waits for, and goes with the news of its end.
pub(crate) type Payload = Box<dyn Any + Send>;

/// What an operation has come to. With words about servers that could not take part.
#[derive(Debug)]
pub(crate) enum Ended {
    Acquired {
        hold: Arc<HeldLock>,
        absent: String,
        /// If it is kept.
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
    /// Until when anybody has the lock, if anybody has it.
    Inspected {
        locked_until: Option<Moment>,
        /// How many have it, if they have it shared; 0 if that was not asked.
        readers: Option<i64>,
        absent: String,
    },
    /// So many permits of a semaphore are taken, and when the first of them ends.
    Counted {
        taken: u16,
        first_end: Option<Moment>,
        absent: String,
    },
    /// The lock was given away.
    Detached,
    /// An inner level of the lock was left.
    Left,
    /// The lock is kept no more, as its holder wished.
    Stopped,
    /// The lock cannot be kept, for this reason.
    Unkept {
        hold: Arc<HeldLock>,
        error: Error,
    },
}

/// What has kept an operation from succeeding.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// What the next slice of a wait needs in order to go on.
    pub(crate) broken_off: Option<Box<BrokenOff>>,
}

/// How an operation has ended.
pub(crate) type End = Result<Ended, Failed>;

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, broken_off: None }
    }
}

/// A try that came to nothing.
pub(crate) enum Miss {
    /// The servers did not agree.
    Votes(Status, Box<Question>),
    /// Somebody else of this process is before it.
    Behind(Permission),
    /// That was so in an earlier slice of the wait, or the servers did not agree then.
    Resumed(Error),
}

impl Miss {
    /// The call ends with it.
    fn end(&self, actions: &mut dyn Actions) {
        actions.end(Err(self.error(actions.roster()).into()));
    }

    fn error(&self, roster: &Roster) -> Error {
        match self {
            Self::Behind(permission) => came_first(*permission),
            Self::Resumed(error) => error.clone(),
            Self::Votes(status, question) => question.error(*status, roster),
        }
    }
}

/// How long a server may take to reply to a request about a lock of this TTL.
fn reply_ms(actions: &dyn Actions, ttl_ms: i64) -> i64 {
    actions.settings().timeouts().reply_ms(ttl_ms)
}

/// A request about a lock, whose answers it hears.
fn request(verb: Verb, view: &View, ttl_ms: i64) -> Request {
    let hold = view.hold();
    let request = Request::new(verb, hold.key(), *hold.token(), ttl_ms);
    request.before(view.witness())
}

/// The release of a lock from all servers that may have it. Who waits for it elsewhere is woken, if that is wished.
fn release_of(view: &View, actions: &dyn Actions) -> Request {
    release_as(waking_release(actions), view)
}

/// What releases a lock openly.
fn waking_release(actions: &dyn Actions) -> Verb {
    match actions.settings().has_waking() {
        true => Verb::ReleaseAndWake,
        false => Verb::Release,
    }
}

fn release_as(verb: Verb, view: &View) -> Request {
    let hold = view.hold();
    let (key, ttl_ms) = (hold.key(), hold.longest_ttl_ms());
    let request = Request::new(verb, key, *hold.token(), ttl_ms);
    request.to(view.servers())
}

/// The lock is not ours any more: the next operation that waits for it may ask for it.
fn forget(hold: &HeldLock, actions: &mut dyn Actions) {
    let now = actions.now();
    let next = actions.wait_queues().lost(hold, now);
    next.into_iter().for_each(|waiter| actions.end_wait(waiter));
    actions.wake_keepers(*hold.token());
}

/// The lock is lost. What may be left of it somewhere must not keep others out.
fn give_up(view: &View, actions: &mut dyn Actions) {
    let hold = view.hold();
    forget(hold, actions);
    if !matches!(hold.pass_to(Phase::Over), Phase::Over | Phase::Detached) {
        hold.note_release();
        actions.tell(release_of(view, actions));
    }
}

/// Why a lock that is to be extended or confirmed is none any more, if it is none.
pub(crate) fn check_valid(hold: &HeldLock, now: Moment) -> Result<(), Error> {
    if hold.is_detached() {
        return Err(detached());
    }
    if hold.has_ended() {
        return Err(Error::new(Status::Lost, "the lock was released or lost before"));
    }
    let valid_until = hold.valid_until();
    if now < valid_until {
        return Ok(());
    }
    hold.pass_to(Phase::Lost);
    let words = format!("the lock expired {} ms ago", now.ms_since(valid_until));
    Err(Error::new(Status::Lost, words))
}

/// What a call says on a lock that was given away.
fn detached() -> Error {
    Error::new(Status::Lost, "the lock was detached: it is for whoever adopts its ticket")
}

/// What a call says that was cancelled.
fn cancelled() -> Error {
    Error::new(Status::Cancelled, "the call was cancelled")
}

/// Ends a round of asking who has a lock. Returns whether a quorum has vouched for it.
fn end_round(view: &View, number: u32, is_reached: bool, question: &Question) -> bool {
    if is_reached {
        return view.pass_round(number, question.voters());
    }
    view.fail_round(number);
    false
}

#[cfg(test)]
mod tests;
