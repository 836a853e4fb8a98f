//! Taking a lock: tries, pauses, and waiting for a turn.

mod fencing;
mod haste;
mod moves;
mod permits;
mod raising;
mod reader_wait;
mod waiting;
mod waking;

use std::mem;
use std::num::NonZeroU64;
use std::sync::Arc;

use self::moves::Moves;
use self::raising::{Raising, release};
use self::reader_wait::ReaderWait;
use super::connect::{ConnectQuorum, Progress};
use super::question::Question;
use super::renew::Renew;
use super::{Actions, Ended, Event, Limits, Miss, Operation, Payload, cancelled, reply_ms};
use crate::command::{Request, Verb, Witness};
use crate::error::Status;
use crate::held_lock::{Asked, HeldLock, View};
use crate::keeper::{Keeper, Kept};
use crate::lease::BrokenOff;
use crate::lock_kind::Target;
use crate::moment::Moment;
use crate::quorum::backoff::Backoff;
use crate::quorum::round::Outcome;
use crate::server_set::ServerSet;
use crate::stats::{Account, Kind};
use crate::token::Token;
use crate::transport::timeouts::Timeouts;
use crate::wait_queue::{Permission, TurnRequest, Wait};

/// How much longer than its plan an attempt may take if it was begun in time: the least reply timeout.
const LAST_TRY_MS: i64 = 25;

/// How long to go on trying.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// This many tries, with CRedLock's pauses.
    Tries(i64),
    /// Until this moment, with pauses that grow.
    Until(Moment),
}

/// What is asked for.
pub(crate) struct Wanted {
    pub(crate) target: Target,
    pub(crate) ttl_ms: i64,
    pub(crate) plan: Plan,
    /// When this call ends although the plan is not over.
    pub(crate) slice_end: Moment,
    /// The wait that an earlier slice has left off.
    pub(crate) resumed: Option<Box<BrokenOff>>,
    /// The thread that waits for this acquire, if one does.
    pub(crate) thread: Option<usize>,
    pub(crate) keeping: Option<Box<Keeping>>,
}

/// What is needed to keep the lock from the moment it is taken.
pub(crate) struct Keeping {
    pub(crate) keeper: Keeper,
    pub(crate) kept: Kept,
    /// The payload of the report that the lock cannot be kept.
    pub(crate) payload: Payload,
}

/// Takes a lock.
pub(crate) struct Acquire {
    wanted: Wanted,
    tries: i64,
    /// Whether the servers were asked, in this slice or an earlier one.
    has_asked: bool,
    backoff: Backoff,
    /// A token that is drawn and not sent to any server yet.
    token: Option<Token>,
    /// When the attempt is cut short.
    cut: Moment,
    /// Whether the acquire only looks at the state on the servers instead of trying.
    looks: bool,
    /// For a semaphore: the slots that the attempt has asked for.
    moves: Moves,
    /// The acquire's number in the wait queue, from 1. None once it has left the queue.
    number: Option<NonZeroU64>,
    /// Whether the servers have refused the acquire because another client has the lock.
    was_refused: bool,
    reader_wait: ReaderWait,
    /// How many of its attempts were divided.
    divided: u32,
    stage: Stage,
}

enum Stage {
    Submitted,
    /// Before an attempt that is cut short at that moment.
    Connecting(Box<ConnectQuorum>, Moment),
    Asking(Box<Question>),
    /// Asking the servers about their lines. Also holds the result of the last try.
    Looking(Box<Question>, Option<Box<Miss>>),
    /// A quorum has granted the lock, and its fencing token is being brought to a quorum.
    Raising(Box<Raising>),
    /// Waiting for the turn, or for the end of a pause. Also holds the result of the last try.
    Waiting(Wait, Box<Miss>),
}

impl Acquire {
    /// The token is for the first attempt. The caller passes it because drawing a token takes a system call.
    pub(crate) fn new(wanted: Wanted, token: Token) -> Self {
        let resumed = wanted.resumed.as_ref();
        let has_asked = resumed.is_some_and(|wait| wait.has_asked);
        let backoff = resumed.map(|wait| wait.backoff.clone()).unwrap_or_default();
        let (token, stage, cut) = (Some(token), Stage::Submitted, Moment::NEVER);
        let (number, was_refused, reader_wait, moves) = Default::default();
        Self {
            wanted,
            tries: 0,
            has_asked,
            backoff,
            token,
            cut,
            looks: false,
            moves,
            number,
            was_refused,
            reader_wait,
            divided: 0,
            stage,
        }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        let (now, resumed) = (actions.now(), self.wanted.resumed.take());
        let (turn, target) = (self.turn(now), &self.wanted.target);
        let (thread, queues) = (self.wanted.thread, actions.wait_queues());
        match (resumed, self.wanted.plan) {
            (Some(broken_off), Plan::Until(until)) => {
                self.number = NonZeroU64::new(queues.join(target, thread, now));
                let BrokenOff { error, pause_until, .. } = *broken_off;
                self.wait(Wait { pause_until, until }, Box::new(Miss::Resumed(error)), actions);
            }
            _ => {
                let (number, permission) = queues.join_and_begin(target, thread, turn, now);
                self.number = NonZeroU64::new(number);
                self.try_if(permission, turn, actions);
            }
        }
    }

    /// Asks the servers, if it is this caller's turn.
    fn try_once(&mut self, actions: &mut dyn Actions) {
        let now = actions.now();
        let (number, turn) = (self.number(), self.turn(now));
        let permission = actions.wait_queues().begin(&self.wanted.target, number, turn, now);
        self.try_if(permission, turn, actions);
    }

    /// Goes on as the wait queue permits.
    fn try_if(&mut self, permission: Permission, turn: TurnRequest, actions: &mut dyn Actions) {
        let (now, is_last) = (actions.now(), turn.is_last);
        self.tries += 1;
        match permission {
            Permission::MayAsk => {}
            Permission::Held { readers, .. } => {
                self.reader_wait.note_here(&self.wanted.target, readers > 0);
                return self.miss(Miss::Behind(permission), actions);
            }
            Permission::NotYet | Permission::Blocked { .. } => {
                return self.miss(Miss::Behind(permission), actions);
            }
        }
        // The first attempt is never cut short. A later attempt is, soon after the end of the plan.
        let cut = match self.wanted.plan {
            Plan::Until(until) if self.has_asked => last_try_end(until, now),
            _ => Moment::NEVER,
        };
        self.looks = !is_last && self.is_to_look(actions);
        self.has_asked = true;
        match ConnectQuorum::if_needed(cut, self.wanted.ttl_ms, actions) {
            Some(quorum) => {
                if !self.looks {
                    // Also if the attempt fails because servers cannot be reached.
                    self.note_attempt(actions);
                }
                self.stage = Stage::Connecting(quorum, cut);
            }
            None => self.go(cut, actions),
        }
    }

    /// Looks or tries, as was decided.
    fn go(&mut self, cut: Moment, actions: &mut dyn Actions) {
        match self.looks {
            true => self.look(None, actions),
            false => self.ask(cut, actions),
        }
    }

    /// The lock was released just now, and it is this caller's turn to ask, behind the release.
    fn handle_turn(&mut self, actions: &mut dyn Actions) {
        let end = match self.wanted.plan {
            Plan::Until(until) if self.has_asked => until,
            _ => Moment::NEVER,
        };
        self.has_asked = true;
        self.ask(last_try_end(end, actions.now()), actions);
    }

    /// Asks all servers once. The attempt is cut short at that moment.
    fn ask(&mut self, cut: Moment, actions: &mut dyn Actions) {
        // The next attempt has a token of its own.
        let token = match self.token.take().map_or_else(|| actions.draw_token(), Ok) {
            Ok(token) => token,
            Err(error) => return self.fail(error, None, actions),
        };
        let (since, ttl_ms) = (actions.now(), self.wanted.ttl_ms);
        let reply_ms = reply_ms(actions, ttl_ms);
        let window_ms = reply_ms.max(Timeouts::default_reply_ms(ttl_ms));
        let asked = Asked { at: since, ttl_ms, window_ms, drift: actions.settings().drift() };
        let (target, roster) = (self.wanted.target.clone(), actions.roster().clone());
        let servers = roster.len();
        let hold = Arc::new(HeldLock::new(target.clone(), token, asked, roster));
        let permits = target.kind.permits();
        let verb = self.verb(actions.settings().has_fencing());
        let request = match verb {
            Verb::AcquireFenced => {
                Request::new(verb, target, token, ttl_ms).with_fence(actions.wall_us())
            }
            _ => Request::new(verb, target, token, ttl_ms),
        };
        let request = request.before(Arc::clone(&hold) as Arc<dyn Witness>);
        self.note_attempt(actions);
        (self.cut, self.moves) = (cut, Moves::default());
        self.stage = Stage::Asking(Box::new(match permits {
            Some(of) => Question::permit(hold, of, servers),
            None => Question::acquire(hold, servers),
        }));
        actions.ask(request, Limits { since, until: cut, reply_ms });
    }

    /// Evaluates an attempt. If the lock was not taken, releases what may be left of it on the servers.
    fn conclude(&mut self, question: Box<Question>, sent: ServerSet, actions: &mut dyn Actions) {
        let Some(hold) = question.attempted().map(Arc::clone) else { return };
        let sent = self.moves.note_sent(sent);
        let Some(question) = self.conclude_slots(&hold, question, actions) else { return };
        let status = match question.outcome() {
            // The driver may have been kept from running since the last answer came.
            Outcome::Reached if actions.now() < hold.deadline() => {
                let (token, is_to_raise) = question.fencing_token();
                hold.set_fencing_token(token);
                return match is_to_raise {
                    true => self.raise(Raising::new(question, sent), actions),
                    false => self.take(hold, &question, sent, actions),
                };
            }
            Outcome::Reached | Outcome::TooLate => Status::TooSlow,
            Outcome::Refused => Status::Taken,
            Outcome::Unreachable => Status::Unreachable,
        };
        release(&question, sent, actions);
        // A divided attempt means that another client has the lock, even if too few servers say so.
        let is_taken = self.note_divided(&question) || status == Status::Taken;
        self.reader_wait.note(&self.wanted.target, &question);
        // This includes late servers. What they may have granted is released, so it is no news that they are free.
        let (returned, miss) = (question.may_have_it(sent), Miss::Votes(status, question));
        self.note(&miss, actions);
        if !is_taken || !self.may_stand_in_line(actions) {
            return self.miss(miss, actions);
        }
        if let Some(miss) = self.poll(miss, actions) {
            self.look_after(miss, returned, actions);
        }
    }

    /// The lock is taken. These servers were sent the request.
    fn take(
        &mut self,
        hold: Arc<HeldLock>,
        question: &Question,
        sent: ServerSet,
        actions: &mut dyn Actions,
    ) {
        hold.take(question.voters(), sent);
        self.succeed(hold, question, actions);
    }

    /// The lock is taken.
    fn succeed(&mut self, hold: Arc<HeldLock>, question: &Question, actions: &mut dyn Actions) {
        self.reader_wait.end(actions);
        let absent = question.absent(actions.roster());
        if let Some(number) = self.number.take() {
            let queues = actions.wait_queues();
            let (left, next) = queues.acquired(&self.wanted.target, number.get(), &hold);
            waking::tell_of_leaving(left, actions);
            next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        }
        let view = View::new(&hold, actions.roster());
        let keeping = self.wanted.keeping.take();
        let keeper = keeping.zip(view).map(|(keeping, view)| {
            let Keeping { keeper, kept, payload } = *keeping;
            actions.begin(Box::new(Renew::new(view, kept)), payload);
            keeper
        });
        actions.end(Ok(Ended::Acquired { hold, absent, keeper }));
    }

    /// Tells the queue what the servers said.
    fn note(&mut self, miss: &Miss, actions: &mut dyn Actions) {
        if let Miss::Votes(status, question) = miss {
            let (is_taken, now) = (*status == Status::Taken, actions.now());
            self.was_refused |= is_taken;
            let (target, waiter) = (&self.wanted.target, (self.number(), question.in_the_way()));
            let next = actions.wait_queues().refused(target, waiter, is_taken, now);
            next.into_iter().for_each(|waiter| actions.end_wait(waiter));
            self.leave_lines_behind(actions);
        }
    }

    /// Ends at once. Anything that may have been granted is released.
    fn cancel(&mut self, stage: &Stage, sent: ServerSet, actions: &mut dyn Actions) {
        match stage {
            Stage::Asking(question) => release(question, self.moves.note_sent(sent), actions),
            Stage::Raising(raising) => raising.release(actions),
            Stage::Looking(..) => self.note_cut_look(sent, actions),
            _ => {}
        }
        self.fail(cancelled(), None, actions);
    }

    fn number(&self) -> u64 {
        self.number.map_or(0, NonZeroU64::get)
    }
}

impl Operation for Acquire {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        match (mem::replace(&mut self.stage, Stage::Submitted), event) {
            (stage, Event::Cancelled { sent }) => self.cancel(&stage, sent, actions),
            (Stage::Submitted, _) => self.begin(actions),
            (Stage::Connecting(mut quorum, cut), event) => match quorum.handle(event, actions) {
                Progress::Pending => self.stage = Stage::Connecting(quorum, cut),
                Progress::Connected => self.go(cut, actions),
                Progress::Failed(miss) => {
                    self.note(&miss, actions);
                    self.miss(miss, actions);
                }
            },
            (Stage::Asking(question), Event::Closed { sent }) => {
                self.conclude(question, sent, actions);
            }
            (Stage::Raising(raising), Event::Closed { .. }) => {
                self.conclude_raising(*raising, actions);
            }
            (Stage::Looking(question, miss), Event::Closed { sent }) => {
                self.conclude_look(question, miss, sent, actions);
            }
            (Stage::Waiting(..), Event::YourTurn) => self.handle_turn(actions),
            (Stage::Waiting(wait, miss), Event::Pushed { .. }) => self.wait(wait, miss, actions),
            (Stage::Waiting(wait, miss), Event::TimeOut) => {
                self.handle_time_out(wait, miss, actions);
            }
            (stage, _) => self.stage = stage,
        }
    }

    fn haste(&mut self, now: Moment) -> Option<u32> {
        self.hastes(now)
    }

    fn account(&self) -> Account {
        Account {
            kind: Kind::Acquire,
            sliced_wait: self.wanted.resumed.as_ref().and_then(|it| it.sliced_wait),
            ..Account::default()
        }
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(&self.wanted.target.resource)
    }

    fn question(&mut self) -> Option<&mut Question> {
        match &mut self.stage {
            Stage::Submitted | Stage::Waiting(..) => None,
            Stage::Connecting(quorum, _) => quorum.question(),
            Stage::Asking(question) | Stage::Looking(question, _) => Some(question),
            Stage::Raising(raising) => raising.question(),
        }
    }

    fn leave(&mut self, actions: &mut dyn Actions) {
        self.leave_line(actions);
        self.leave_queue(actions);
    }
}

fn last_try_end(end: Moment, now: Moment) -> Moment {
    end.max(now).plus_ms(LAST_TRY_MS)
}
