//! Taking a lock: tries, pauses, and waiting for a turn.

mod leftovers;
mod moves;
mod reader_wait;

use std::mem;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use self::leftovers::{Raising, release};
use self::moves::{MOVES_MAX, Moves};
use self::reader_wait::ReaderWait;
use super::connect::{ConnectQuorum, Progress};
use super::renew::Renew;
use super::round::{Found, Round};
use super::{
    Actions, Ended, Event, Limits, Miss, Operation, Payload, QUESTION_TTL_MS, cancelled, reply_ms,
};
use crate::protocol::command::{ReplyObserver, Request, Verb};
use crate::protocol::error::{Error, Status};
use crate::protocol::keeper::{Keeper, Kept};
use crate::protocol::lock::{Asked, Granted, Lock, View};
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::backoff;
use crate::protocol::quorum::backoff::{Backoff, Denial};
use crate::protocol::quorum::hand_overs::HandOvers;
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::server_set::ServerSet;
use crate::protocol::stats::{Account, Kind};
use crate::protocol::token::Token;
use crate::protocol::wait_queue::{
    Left, Permission, QueueRank, STAND_BACK, TurnRequest, Wait, Waitlist,
};

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
    /// What the servers said to the try before this one, if they were asked.
    last_miss: Option<Box<Miss>>,
    reader_wait: ReaderWait,
    /// How many of its attempts were divided.
    divided: u32,
    stage: Stage,
}

enum Stage {
    Submitted,
    Connecting(Box<ConnectQuorum>),
    Asking(Box<Round>),
    /// Asking the servers about their lines. Also holds the result of the last try.
    Looking(Box<Round>, Option<Box<Miss>>),
    /// A quorum has granted the lock, and its fencing token is being brought to a quorum.
    Raising(Box<Raising>),
    /// Waiting for the turn, or for the end of a pause. Also holds the result of the last try.
    Waiting(Wait, Box<Miss>),
}

impl Acquire {
    /// The token is for the first attempt. The caller passes it because drawing a token takes a system call.
    pub(crate) fn new(wanted: Wanted, token: Token) -> Self {
        let (token, stage, cut) = (Some(token), Stage::Submitted, Moment::NEVER);
        let (number, was_refused, last_miss, reader_wait, moves) = Default::default();
        Self {
            wanted,
            tries: 0,
            has_asked: false,
            backoff: Backoff::default(),
            token,
            cut,
            looks: false,
            moves,
            number,
            was_refused,
            last_miss,
            reader_wait,
            divided: 0,
            stage,
        }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        let now = actions.now();
        let (turn, target, thread) = (self.turn(now), &self.wanted.target, self.wanted.thread);
        let (number, permission) = actions.wait_queues().join_and_begin(target, thread, turn, now);
        self.number = NonZeroU64::new(number);
        self.try_if(permission, turn, actions);
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
        self.cut = match self.wanted.plan {
            Plan::Until(until) if self.has_asked => last_try_end(until, now),
            _ => Moment::NEVER,
        };
        self.looks = !is_last && self.is_to_look(actions);
        self.has_asked = true;
        match ConnectQuorum::if_needed(self.cut, self.wanted.ttl_ms, actions) {
            Some(quorum) => {
                if !self.looks {
                    // Also if the attempt fails because servers cannot be reached.
                    self.note_attempt(actions);
                }
                self.stage = Stage::Connecting(quorum);
            }
            None => self.go(actions),
        }
    }

    /// Looks or tries, as was decided.
    fn go(&mut self, actions: &mut dyn Actions) {
        match self.looks {
            true => self.look(None, actions),
            false => self.ask(actions),
        }
    }

    /// The lock was released just now, and it is this caller's turn to ask, behind the release.
    fn handle_turn(&mut self, actions: &mut dyn Actions) {
        let end = match self.wanted.plan {
            Plan::Until(until) if self.has_asked => until,
            _ => Moment::NEVER,
        };
        self.cut = last_try_end(end, actions.now());
        self.has_asked = true;
        self.ask(actions);
    }

    /// Asks all servers once.
    fn ask(&mut self, actions: &mut dyn Actions) {
        // The next attempt has a token of its own.
        let token = match self.token.take().map_or_else(|| actions.draw_token(), Ok) {
            Ok(token) => token,
            Err(error) => return self.fail(error, actions),
        };
        let (since, ttl_ms) = (actions.now(), self.wanted.ttl_ms);
        let reply_ms = reply_ms(actions, ttl_ms);
        let window_ms = reply_ms.max(Policy::default_reply_ms(ttl_ms));
        let asked = Asked { at: since, ttl_ms, window_ms, drift: actions.policy().drift() };
        let (target, roster) = (self.wanted.target.clone(), actions.roster().clone());
        let servers = roster.len();
        let lock = Arc::new(Lock::new(target.clone(), token, asked, roster));
        let permits = target.kind.permits();
        let verb = self.verb(actions.policy().has_fencing());
        let request = match verb {
            Verb::AcquireFenced => {
                Request::new(verb, target, token, ttl_ms).with_fence(actions.wall_us())
            }
            _ => Request::new(verb, target, token, ttl_ms),
        };
        let request = request.before(Arc::clone(&lock) as Arc<dyn ReplyObserver>);
        self.note_attempt(actions);
        self.moves = Moves::default();
        self.stage = Stage::Asking(Box::new(match permits {
            Some(of) => Round::permit(lock, of, servers),
            None => Round::acquire(lock, servers),
        }));
        actions.ask(request, Limits { since, until: self.cut, reply_ms });
    }

    /// Evaluates an attempt. If the lock was not taken, releases what may be left of it on the servers.
    fn conclude(&mut self, round: Box<Round>, sent: ServerSet, actions: &mut dyn Actions) {
        let Some(lock) = round.attempted().map(Arc::clone) else { return };
        let sent = self.moves.note_sent(sent);
        let Some(round) = self.conclude_slots(&lock, round, actions) else { return };
        let status = match round.outcome() {
            // The driver may have been kept from running since the last answer came.
            Outcome::Reached if actions.now() < lock.deadline() => {
                let (token, is_to_raise) = round.fencing_token();
                lock.set_fencing_token(token);
                return match is_to_raise {
                    true => self.raise(Raising::new(round, sent), actions),
                    false => self.take(lock, &round, sent, actions),
                };
            }
            Outcome::Reached | Outcome::TooLate => Status::TooSlow,
            Outcome::Refused => Status::Taken,
            Outcome::Unreachable => Status::Unreachable,
        };
        release(&round, sent, actions);
        // A divided attempt means that another client has the lock, even if too few servers say so.
        let is_taken = self.note_divided(&round) || status == Status::Taken;
        self.reader_wait.note(&self.wanted.target, &round);
        // This includes late servers. What they may have granted is released, so it is no news that they are free.
        let (returned, miss) = (round.may_have_it(sent), Miss::Votes(status, round));
        self.note(&miss, actions);
        if !is_taken || !self.may_stand_in_line(actions) {
            return self.miss(miss, actions);
        }
        if let Some(miss) = self.poll(miss, actions) {
            self.look_after(miss, returned, actions);
        }
    }

    /// The lock is taken. These servers were sent the request.
    fn take(&mut self, lock: Arc<Lock>, round: &Round, sent: ServerSet, actions: &mut dyn Actions) {
        lock.take(round.voters(), sent);
        self.succeed(lock, round, actions);
    }

    /// The lock is taken.
    fn succeed(&mut self, lock: Arc<Lock>, round: &Round, actions: &mut dyn Actions) {
        self.reader_wait.end(actions);
        let absent = round.absent(actions.roster());
        if let Some(number) = self.number.take() {
            let queues = actions.wait_queues();
            let (left, next) = queues.acquired(&self.wanted.target, number.get(), &lock);
            tell_of_leaving(left, actions);
            next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        }
        let view = View::new(&lock, actions.roster());
        let keeping = self.wanted.keeping.take();
        let keeper = keeping.zip(view).map(|(keeping, view)| {
            let Keeping { keeper, kept, payload } = *keeping;
            actions.begin(Box::new(Renew::new(view, kept)), payload);
            keeper
        });
        actions.end(Ok(Ended::Acquired { lock, absent, keeper }));
    }

    /// Tells the queue what the servers said.
    fn note(&mut self, miss: &Miss, actions: &mut dyn Actions) {
        if let Miss::Votes(status, round) = miss {
            let (is_taken, now) = (*status == Status::Taken, actions.now());
            self.was_refused |= is_taken;
            let (target, waiter) = (&self.wanted.target, (self.number(), round.in_the_way()));
            let next = actions.wait_queues().refused(target, waiter, is_taken, now);
            next.into_iter().for_each(|waiter| actions.end_wait(waiter));
            self.leave_lines_behind(actions);
        }
    }

    /// Ends at once. Anything that may have been granted is released.
    fn cancel(&mut self, stage: &Stage, sent: ServerSet, actions: &mut dyn Actions) {
        match stage {
            Stage::Asking(round) => release(round, self.moves.note_sent(sent), actions),
            Stage::Raising(raising) => raising.release(actions),
            Stage::Looking(..) => self.note_cut_look(sent, actions),
            _ => {}
        }
        self.fail(cancelled(), actions);
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
            (Stage::Connecting(mut quorum), event) => match quorum.handle(event, actions) {
                Progress::Pending => self.stage = Stage::Connecting(quorum),
                Progress::Connected => self.go(actions),
                Progress::Failed(miss) => {
                    self.note(&miss, actions);
                    self.miss(miss, actions);
                }
            },
            (Stage::Asking(round), Event::Closed { sent }) => {
                self.conclude(round, sent, actions);
            }
            (Stage::Raising(raising), Event::Closed { .. }) => {
                self.conclude_raising(*raising, actions);
            }
            (Stage::Looking(round, miss), Event::Closed { sent }) => {
                self.conclude_look(round, miss, sent, actions);
            }
            (Stage::Waiting(_, miss), Event::YourTurn) => {
                self.note_miss(miss);
                self.handle_turn(actions);
            }
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
        Account { kind: Kind::Acquire, ..Account::default() }
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(&self.wanted.target.resource)
    }

    fn round(&mut self) -> Option<&mut Round> {
        match &mut self.stage {
            Stage::Submitted | Stage::Waiting(..) => None,
            Stage::Connecting(quorum) => quorum.round(),
            Stage::Asking(round) | Stage::Looking(round, _) => Some(round),
            Stage::Raising(raising) => raising.round(),
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

/// The fencing token of a granted lock. If the servers drew different numbers, the greatest one is brought to a
/// quorum before the caller is told that it holds the lock.
impl Acquire {
    /// The verb of the request to the servers. Without fencing tokens, the first request for an exclusive lock
    /// is the one that every Redlock client sends.
    fn verb(&self, has_fencing: bool) -> Verb {
        match &self.wanted.target.kind {
            // A fencing token orders clients that change something, one after the other.
            LockKind::Shared | LockKind::Permit { .. } => Verb::Acquire,
            _ if has_fencing => Verb::AcquireFenced,
            LockKind::Exclusive if self.was_refused => Verb::AcquireAgain,
            _ => Verb::Acquire,
        }
    }

    /// Raises the token. The servers that drew it are asked, too, because each says whether it still has the
    /// lock.
    fn raise(&mut self, mut raising: Raising, actions: &mut dyn Actions) {
        let Some(lock) = raising.held_lock().map(Arc::clone) else { return };
        let (target, ttl_ms) = (lock.key(), self.wanted.ttl_ms);
        let request = Request::new(Verb::RaiseFence, target, *lock.token(), ttl_ms)
            .with_fence(lock.fencing_token());
        let (since, until) = (actions.now(), lock.deadline().min(self.cut));
        let reply_ms = reply_ms(actions, ttl_ms);
        raising.raised = Some(Box::new(Round::raise(lock, actions.roster().len())));
        self.stage = Stage::Raising(Box::new(raising));
        actions.ask(request, Limits { since, until, reply_ms });
    }

    fn conclude_raising(&mut self, mut raising: Raising, actions: &mut dyn Actions) {
        let (lock, raised) = (raising.held_lock().map(Arc::clone), raising.raised.take());
        let (Some(lock), Some(raised)) = (lock, raised) else { return };
        let status = match raised.outcome() {
            Outcome::Reached if actions.now() < lock.deadline() => {
                return self.take(lock, &raising.granted, raising.sent, actions);
            }
            Outcome::Reached | Outcome::TooLate => Status::TooSlow,
            // Servers that granted the lock have lost it since.
            Outcome::Refused | Outcome::Unreachable => Status::Unreachable,
        };
        raising.release(actions);
        let miss = Miss::Votes(status, raised);
        self.note(&miss, actions);
        self.miss(miss, actions);
    }
}

/// How often the time is doubled at most. Because of the doubling, a server that has become slow is waited for
/// after a few tries.
const DOUBLINGS_MAX: u32 = 5;

/// A divided attempt: some servers have granted it, others have refused it, and others are silent. The grants
/// keep everybody else out. Therefore a caller that will try again does not wait for a server that may be
/// frozen.
impl Acquire {
    /// How often the time is doubled in a divided attempt.
    fn hastes(&self, now: Moment) -> Option<u32> {
        let tries_again = matches!(self.wanted.plan, Plan::Until(until) if now < until);
        match &self.stage {
            Stage::Asking(round) if tries_again && round.is_divided() => {
                Some(self.divided.min(DOUBLINGS_MAX))
            }
            _ => None,
        }
    }

    /// Notes an attempt that has failed. Returns whether it was divided to its end.
    fn note_divided(&mut self, round: &Round) -> bool {
        let is_divided = round.is_divided();
        self.divided += u32::from(is_divided);
        is_divided
    }
}

/// A permit of a semaphore. If different servers gave an attempt different slots, the attempt moves to one of
/// them.
impl Acquire {
    /// Ends an attempt to take a permit, or goes on with a move. Returns the question if the attempt has
    /// failed.
    ///
    /// The token and the start of the validity stay the same, because every answer that counts was asked for
    /// after that start.
    fn conclude_slots(
        &mut self,
        lock: &Arc<Lock>,
        round: Box<Round>,
        actions: &mut dyn Actions,
    ) -> Option<Box<Round>> {
        let is_valid = actions.now() < lock.deadline();
        match round.slot() {
            Found::Had(slot, voters) if is_valid => {
                self.take_slot(lock, slot, voters, &round, actions);
            }
            Found::MayMove(slot) if is_valid && self.moves.count < MOVES_MAX => {
                self.move_to(lock, slot, &round, actions);
            }
            _ => return Some(round),
        }
        None
    }

    /// Asks the servers for this slot that have answered the last request. A server that has given us another
    /// slot releases that slot if it can give us this one.
    fn move_to(&mut self, lock: &Arc<Lock>, slot: u16, round: &Round, actions: &mut dyn Actions) {
        self.moves.count += 1;
        let servers = self.moves.next(round, actions.roster().len());
        let (target, ttl_ms) = (lock.target().clone(), self.wanted.ttl_ms);
        let of = target.kind.permits().unwrap_or(1);
        let request = Request::new(Verb::Move, target, *lock.token(), ttl_ms)
            .with_slot(slot)
            .to(servers)
            .before(Arc::clone(lock) as Arc<dyn ReplyObserver>);
        let (since, until) = (actions.now(), lock.deadline().min(self.cut));
        let reply_ms = reply_ms(actions, ttl_ms);
        let round = Round::permit(Arc::clone(lock), of, actions.roster().len());
        self.stage = Stage::Asking(Box::new(round));
        actions.ask(request, Limits { since, until, reply_ms });
    }

    /// The slot is taken, by the answers of these servers. Other slots that other servers may have given us are
    /// released.
    fn take_slot(
        &mut self,
        lock: &Arc<Lock>,
        slot: u16,
        voters: ServerSet,
        round: &Round,
        actions: &mut dyn Actions,
    ) {
        let (sent, given) = (self.moves.sent, round.slots_given());
        lock.take_slot(slot, &Granted { voters, sent, given: &given }, actions.now());
        let has_it = given.iter().filter(|it| it.1 == Some(slot)).map(|it| it.0).collect();
        let rest = sent.minus(has_it).minus(voters);
        if !rest.is_empty() {
            let (target, ttl_ms) = (lock.target().clone(), lock.longest_ttl_ms());
            let verb = match actions.policy().has_waking() {
                true => Verb::ReleaseRestAndWake,
                false => Verb::ReleaseRest,
            };
            let release = Request::new(verb, target, *lock.token(), ttl_ms);
            actions.tell(release.with_slot(slot).to(rest));
        }
        self.succeed(Arc::clone(lock), round, actions);
    }
}

/// The least value of the longest pause while servers cannot be reached. A server that refuses connections says
/// so at once, and a caller that allows no pause between refusals does not mean to burn a processor. Two
/// attempts to connect never come closer together than this anyway.
const DOWN_PAUSE: Duration = Duration::from_millis(20);

/// What comes between two tries: a pause, or the wait for a turn.
impl Acquire {
    /// What the next try asks of the wait queue.
    fn turn(&self, now: Moment) -> TurnRequest {
        let (is_urgent, is_last) = match self.wanted.plan {
            Plan::Tries(count) => (true, self.tries + 1 >= count),
            Plan::Until(until) => {
                let is_last = until <= now.plus(STAND_BACK);
                (is_last, is_last)
            }
        };
        TurnRequest { is_urgent, is_last }
    }

    /// Waits before the next try, or fails if there is none.
    fn miss(&mut self, miss: Miss, actions: &mut dyn Actions) {
        if matches!(&miss, Miss::Votes(_, round) if round.is_hopeless()) {
            return self.fail(miss.error(actions.roster()), actions);
        }
        match self.wait_after(&miss, actions) {
            Ok(Some(wait)) => self.wait(wait, Box::new(miss), actions),
            Ok(None) => {
                let miss = self.last_word(miss, actions.now());
                self.fail(miss.error(actions.roster()), actions);
            }
            Err(error) => self.fail(error, actions),
        }
    }

    /// Another try follows this one. What this process knew without asking the servers is over by then.
    fn note_miss(&mut self, miss: Box<Miss>) {
        self.last_miss = Some(miss).filter(|it| matches!(**it, Miss::Votes(..)));
    }

    /// The miss that the caller is told of. A last try that was cut short says nothing if only replies are missing,
    /// because the servers had less time than their reply timeout. Then it is the result of the try before it.
    fn last_word(&mut self, miss: Miss, now: Moment) -> Miss {
        let is_cut_short =
            now >= self.cut && matches!(&miss, Miss::Votes(_, round) if round.lacks_only_replies());
        match self.last_miss.take() {
            Some(earlier) if is_cut_short => *earlier,
            _ => miss,
        }
    }

    /// What to wait for before the next try; nothing if there is none.
    fn wait_after(
        &mut self,
        miss: &Miss,
        actions: &mut dyn Actions,
    ) -> Result<Option<Wait>, Error> {
        let now = actions.now();
        match self.wanted.plan {
            Plan::Tries(count) if self.tries < count => {
                let random = actions.random()?;
                let until = now.plus(backoff::pause(actions.policy().retry_delay_ms(), random));
                Ok(Some(Wait { pause_until: until, until }))
            }
            Plan::Until(until) if now < until => {
                let pause_until = self.pause_until(miss, now, actions)?;
                Ok(Some(Wait { pause_until, until }))
            }
            _ => Ok(None),
        }
    }

    /// When the pause ends. A waiter that is not the head of the queue has no pauses, because it is told when
    /// it is its turn.
    fn pause_until(
        &mut self,
        miss: &Miss,
        now: Moment,
        actions: &mut dyn Actions,
    ) -> Result<Moment, Error> {
        let Miss::Votes(status, round) = miss else { return Ok(Moment::NEVER) };
        let policy = actions.policy();
        let refusal = round.refusal(policy.drift(), now);
        let longest = backoff::longest(policy.retry_delay_ms());
        let longest = match status {
            Status::Unreachable => longest.max(DOWN_PAUSE),
            _ => longest,
        };
        let random = actions.random()?;
        Ok(self.backoff.next(&refusal, longest, random, now))
    }

    /// Waits until it is this caller's turn, or its time is up.
    fn wait(&mut self, wait: Wait, miss: Box<Miss>, actions: &mut dyn Actions) {
        let wait = self.wait_to_be_told(wait, actions);
        let (number, ticket, now) = (self.number(), actions.ticket(), actions.now());
        let (target, queues) = (&self.wanted.target, actions.wait_queues());
        let next = queues.step_aside(target, number, wait, now);
        let until = queues.wait(target, number, ticket, wait, now);
        next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        self.leave_lines_behind(actions);
        let again_at = self.reader_wait.tell(target, actions);
        self.stage = Stage::Waiting(wait, miss);
        actions.wait_until(until.min(again_at));
    }

    fn handle_time_out(&mut self, wait: Wait, miss: Box<Miss>, actions: &mut dyn Actions) {
        let (number, now) = (self.number(), actions.now());
        if actions.wait_queues().end_wait(&self.wanted.target, number, wait, now) {
            if let Plan::Tries(_) = self.wanted.plan
                && now < wait.until
            {
                // A turn that came early does not count as a try of the plan.
                self.tries -= 1;
            }
            self.note_miss(miss);
            return self.try_once(actions);
        }
        self.wait(wait, miss, actions);
    }

    fn fail(&mut self, error: Error, actions: &mut dyn Actions) {
        self.leave_line(actions);
        self.leave_queue(actions);
        actions.end(Err(error));
    }

    fn leave_queue(&mut self, actions: &mut dyn Actions) {
        if let Some(number) = self.number.take() {
            let now = actions.now();
            let next = actions.wait_queues().leave(&self.wanted.target, number.get(), now);
            next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        }
    }
}

/// Waiting to be woken: a place in line on the servers, and what the servers tell waiters.
///
/// After a refusal the head of the queue asks for a place in line. It tries again when a quorum of servers is
/// free for it, or a little after the first server is free. It also looks now and then whether it was
/// forgotten. All of this only decides when to try. The lock is taken in the same way as without it.
impl Acquire {
    /// Whether servers must wake the acquire: it waits, and no other waiter of this manager is before it.
    fn may_stand_in_line(&self, actions: &mut dyn Actions) -> bool {
        matches!(self.wanted.plan, Plan::Until(until) if actions.now() < until)
            && actions.policy().has_waking()
            && actions.wait_queues().may_stand_in_line(&self.wanted.target, self.number())
    }

    /// Whether to look at the state on the servers instead of trying at once. It does if it stands in line, was told
    /// nothing and does not poll, or if another client was woken just now.
    fn is_to_look(&self, actions: &mut dyn Actions) -> bool {
        if !self.may_stand_in_line(actions) {
            return false;
        }
        let (now, quorum) = (actions.now(), actions.roster().quorum() as usize);
        let (target, queues) = (&self.wanted.target, actions.wait_queues());
        let was_woken = !self.has_asked && queues.was_woken(target, now);
        let is_in_line = queues.line(target, self.number()).is_some_and(|line| {
            line.will_hear(quorum) && line.due(quorum) > now && !line.untold().is_to_try(now)
        });
        was_woken || is_in_line
    }

    /// Notes that a try to take the lock is about to begin.
    fn note_attempt(&self, actions: &mut dyn Actions) {
        let asker = actions.ticket().place();
        if let Some(line) = actions.wait_queues().line(&self.wanted.target, self.number()) {
            line.begin_attempt(asker);
        }
    }

    /// Looks after a try that was refused. These servers had granted it, and it is released there.
    fn look_after(&mut self, miss: Miss, returned: ServerSet, actions: &mut dyn Actions) {
        if let Some(line) = actions.wait_queues().line(&self.wanted.target, self.number()) {
            line.note_returned(returned);
        }
        self.look(Some(Box::new(miss)), actions);
    }

    /// After a try that was refused: waits for the next one if the acquire polls. Returns the miss if it must
    /// look first.
    fn poll(&mut self, miss: Miss, actions: &mut dyn Actions) -> Option<Miss> {
        let (now, quorum) = (actions.now(), actions.roster().quorum() as usize);
        let (Miss::Votes(_, round), Plan::Until(until)) = (&miss, self.wanted.plan) else {
            return Some(miss);
        };
        let line = actions.wait_queues().line(&self.wanted.target, self.number());
        let is_to_try =
            |line: &mut Waitlist| line.will_hear(quorum) && line.untold().is_to_try(now);
        if now >= until || !line.is_some_and(is_to_try) {
            return Some(miss);
        }
        let Ok(random) = actions.random() else { return Some(miss) };
        let refusal = round.refusal(actions.policy().drift(), now);
        self.wait_in_line(&refusal, (None, random), until, Box::new(miss), actions);
        None
    }

    /// Asks for a place in line, or whether the resource is free.
    fn look(&mut self, miss: Option<Box<Miss>>, actions: &mut dyn Actions) {
        let channel = match actions.channel() {
            Ok(channel) => channel,
            Err(error) => return self.fail(error, actions),
        };
        let (asker, wall_us, since) = (actions.ticket().place(), actions.wall_us(), actions.now());
        let (target, servers) = (self.wanted.target.clone(), actions.roster().len());
        let line = actions.wait_queues().line(&target, self.number());
        let waiting_since = line.map_or(wall_us, |line| line.begin_look(asker, wall_us));
        let lines = actions.wait_queues().lines_of(self.number(), miss.is_some());
        let request =
            Request::new(Verb::JoinWaitlist, target, channel, QUESTION_TTL_MS).with_lines(lines);
        self.stage = Stage::Looking(Box::new(Round::line(since, servers)), miss);
        let (until, reply_ms) = (self.cut_at(since), reply_ms(actions, self.wanted.ttl_ms));
        actions.ask(request.waiting_since(waiting_since), Limits { since, until, reply_ms });
    }

    /// When a look that begins now is cut short.
    fn cut_at(&self, now: Moment) -> Moment {
        match self.wanted.plan {
            Plan::Until(until) => last_try_end(until, now),
            Plan::Tries(_) => Moment::NEVER,
        }
    }

    /// Evaluates what the servers said of the line. A byte was sent to these servers.
    fn conclude_look(
        &mut self,
        round: Box<Round>,
        miss: Option<Box<Miss>>,
        sent: ServerSet,
        actions: &mut dyn Actions,
    ) {
        let (now, quorum) = (actions.now(), actions.roster().quorum() as usize);
        let refusal = round.refusal(actions.policy().drift(), now);
        let (places, number) = (round.places(), self.number());
        let is_taken = places.iter().any(|heard| heard.1 != QueueRank::Free);
        let mut ranks: Vec<u32> = places.iter().filter_map(rank).collect();
        ranks.sort_unstable();
        let rank = ranks.get(ranks.len() / 2).copied().unwrap_or_default();
        let random = match actions.random() {
            Ok(random) => random,
            Err(error) => return self.fail(error, actions),
        };
        let queues = actions.wait_queues();
        let next = queues.refused(&self.wanted.target, (number, round.in_the_way()), is_taken, now);
        let line = queues.line(&self.wanted.target, number);
        let (will_hear, due) = line.map_or((false, Moment::NEVER), |line| {
            line.note(places, round.unheard_of(sent), (refusal.round_trip, random), now);
            if line.due(quorum) <= now {
                line.untold().note_free(now);
            }
            (line.will_hear(quorum), line.due(quorum))
        });
        next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        self.reader_wait.note(&self.wanted.target, &round);
        let Plan::Until(until) = self.wanted.plan else { return self.try_once(actions) };
        let is_over = due <= now || now >= until;
        let miss = match (will_hear, miss) {
            (_, miss) if is_over => {
                self.last_miss = miss.or_else(|| self.last_miss.take());
                return self.try_once(actions);
            }
            (true, _) => Box::new(Miss::Votes(Status::Taken, round)),
            // Too few servers will tell, so it asks as if there were no lines.
            (false, Some(miss)) => return self.miss(*miss, actions),
            (false, None) => return self.try_once(actions),
        };
        self.wait_in_line(&refusal, (Some(rank), random), until, miss, actions);
    }

    /// Waits until it is told, or for a pause. The rank is how many others were found to be before it, if it
    /// has looked.
    fn wait_in_line(
        &mut self,
        refusal: &Denial,
        (rank, random): (Option<u32>, u64),
        until: Moment,
        miss: Box<Miss>,
        actions: &mut dyn Actions,
    ) {
        let (number, now) = (self.number(), actions.now());
        let mut nothing = HandOvers::default();
        let line = actions.wait_queues().line(&self.wanted.target, number);
        let untold = line.map_or(&mut nothing, Waitlist::untold);
        let pause_until = self.backoff.fallback(refusal, (rank, untold), random, now);
        self.wait(Wait { pause_until, until }, miss, actions);
    }

    /// Notes a look that is cut short. A server to which a byte of the look was sent may have put the waiter in
    /// line, even if its answer was not heard.
    fn note_cut_look(&self, sent: ServerSet, actions: &mut dyn Actions) {
        if let Some(line) = actions.wait_queues().line(&self.wanted.target, self.number()) {
            line.note_asked(sent);
        }
    }

    /// Ends the pause when a try is due by what the servers told, if that is earlier.
    fn wait_to_be_told(&self, wait: Wait, actions: &mut dyn Actions) -> Wait {
        let (target, number, now) = (&self.wanted.target, self.number(), actions.now());
        let quorum = actions.roster().quorum() as usize;
        let queues = actions.wait_queues();
        if !queues.may_stand_in_line(target, number) {
            return wait;
        }
        let line = queues.line(target, number).filter(|line| line.is_listening());
        let Some(line) = line else { return wait };
        let due = if line.take_lost_place() { now } else { line.due(quorum) };
        actions.listen();
        Wait { pause_until: wait.pause_until.min(due), ..wait }
    }

    /// Leaves the line, because the acquire has left the queue or is about to. Otherwise servers would tell it
    /// in vain.
    fn leave_line(&mut self, actions: &mut dyn Actions) {
        let left = actions.wait_queues().leave_line(&self.wanted.target, self.number());
        tell_of_leaving(left, actions);
    }

    /// For several resources: leaves the lines of those that are no longer in the way.
    fn leave_lines_behind(&self, actions: &mut dyn Actions) {
        let left = actions.wait_queues().leave_lines_behind(&self.wanted.target, self.number());
        tell_of_leaving(left, actions);
    }
}

fn tell_of_leaving(left: Vec<Left>, actions: &mut dyn Actions) {
    for left in left {
        let losers = actions.wait_queues().lose_places(&left);
        losers.into_iter().for_each(|waiter| actions.end_wait(waiter));
        let (target, servers): (Target, _) = left;
        if let Ok(channel) = actions.channel() {
            let request = Request::new(Verb::Leave, target, channel, QUESTION_TTL_MS);
            actions.tell(request.to(servers));
        }
    }
}

fn rank(heard: &(usize, QueueRank)) -> Option<u32> {
    match heard.1 {
        QueueRank::Free => None,
        QueueRank::Behind(rank) => Some(rank),
    }
}
