//! Taking a lock: tries, pauses, and standing in line.

use std::sync::Arc;
use std::time::Duration;

use super::line::{Bid, Leave, Next, STAND_BACK, Wait};
use super::{Locker, Miss};
use crate::check;
use crate::command::{Request, Verb, Witness};
use crate::error::{Error, Status};
use crate::hold::{Asked, Hold, View};
use crate::inquiry::Inquiry;
use crate::lease::{BrokenOff, Lease};
use crate::moment::Moment;
use crate::quorum::backoff::{self, Backoff};
use crate::quorum::round::Outcome;
use crate::server_set::ServerSet;
use crate::token::{Entropy, Token, random};
use crate::transport::{Errand, Patience, Timeouts, Transport};

/// How much longer than its plan an attempt may take that was begun in time: the least reply timeout.
const LAST_TRY_MS: i64 = 25;

/// A longest pause, at the least, while servers cannot be reached: one that refuses connections says
/// so at once, and who allows no pause between refusals does not mean to burn a processor. No two
/// attempts to connect come closer than this anyway.
const DOWN_PAUSE: Duration = Duration::from_millis(20);

/// How long to go on trying.
#[derive(Clone, Copy)]
pub(super) enum Plan {
    /// So many tries, with CRedLock's pauses.
    Tries(i64),
    /// Until then, with pauses that grow.
    Until(Moment),
}

/// A lock that was taken, and words about servers that could not take part.
type Taken = (Arc<Hold>, String);

/// What the servers said to an attempt, and to which of them a byte of it may have been sent.
type Answers = (Inquiry, ServerSet);

/// A caller in its line, which it leaves when this is dropped.
struct InLine<'a, X: Transport<Inquiry>, E: Entropy> {
    locker: &'a Locker<X, E>,
    resource: &'a Arc<[u8]>,
    ttl_ms: i64,
    plan: Plan,
    tries: i64,
    has_asked: bool,
    backoff: Backoff,
    /// Drawn, and not sent to any server yet.
    token: Option<Token>,
    /// None once it has left the line.
    number: Option<u64>,
    /// When this call ends although the plan is not over.
    slice_end: Moment,
    /// The end of the pause that was under way then.
    left_off: Option<Moment>,
}

/// Why a caller stands by no more.
enum Turn {
    /// Somebody has asked on its behalf.
    Asked(Box<Answers>),
    /// It is to ask by itself.
    Ask,
    SliceOver,
}

impl<X: Transport<Inquiry>, E: Entropy> Locker<X, E> {
    pub(super) fn lock_by(
        &self,
        plan: Plan,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.lock_in_slices(plan, None, resource, ttl_ms, lease)
    }

    /// As `try_lock`, but a wait that is longer than the slice is left off at the end of that, and the
    /// next slice with this lease goes on with it.
    pub fn try_lock_slice(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        (wait_ms, slice_ms): (i64, i64),
        lease: &mut Lease,
    ) -> Result<(), Error> {
        if slice_ms < 0 {
            return Err(Error::invalid(format!("slice_ms is {slice_ms}, less than 0")));
        }
        let slice_end = match (0..=slice_ms).contains(&wait_ms) {
            true => Moment::NEVER,
            false => self.transport.now().plus_ms(slice_ms),
        };
        self.lock_in_slices(self.plan(wait_ms), Some(slice_end), resource, ttl_ms, lease)
    }

    pub(super) fn plan(&self, wait_ms: i64) -> Plan {
        match wait_ms {
            0 => Plan::Tries(1),
            ..0 => Plan::Until(Moment::NEVER),
            _ => Plan::Until(self.transport.now().plus_ms(wait_ms)),
        }
    }

    /// Who names the end of a slice goes on with the wait that the lease has left off.
    fn lock_in_slices(
        &self,
        plan: Plan,
        slice_end: Option<Moment>,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        check::resource(resource)?;
        check::ttl(ttl_ms, self.settings.drift())?;
        self.transport.ask_for_passwords();
        self.check_process()?;
        let now = self.transport.now();
        if self.hold_of(lease)?.is_some_and(|it| it.is_held(now)) {
            return Err(Error::invalid("the lease still holds a lock: unlock it first"));
        }
        let goes_on = slice_end.is_some() && matches!(plan, Plan::Until(_));
        let wait = lease.wait.take().filter(|_| goes_on && *lease.resource == *resource);
        lease.begin(resource);
        let resource = Arc::clone(&lease.resource);
        let mut caller = InLine {
            locker: self,
            resource: &resource,
            ttl_ms,
            plan,
            tries: 0,
            has_asked: wait.as_ref().is_some_and(|it| it.has_asked),
            backoff: wait.as_ref().map_or_else(Backoff::default, |it| it.backoff.clone()),
            token: None,
            number: Some(self.lines.join(&resource, now)),
            slice_end: slice_end.unwrap_or(Moment::NEVER),
            left_off: None,
        };
        match caller.take(wait) {
            Ok((hold, absent)) => {
                lease.keep(hold, absent, self.transport.now());
                Ok(())
            }
            Err(miss) => {
                let error = self.error(miss);
                lease.wait = caller.broken_off(&error);
                Err(error)
            }
        }
    }

    /// Releases a lock, and asks for it on behalf of whoever of this process comes next.
    pub(super) fn hand_over(&self, view: &View, tally: Inquiry, patience: Patience) -> Inquiry {
        let mut told = None;
        let hold = view.hold();
        let now = patience.since;
        let (tally, _) =
            self.transport.ask_then(Self::release(view), tally, patience, || {
                match self.lines.release(hold, now, || now.plus(self.stand_back())) {
                    Next::Ask(name, bid) => Some(self.errand(name, &bid, hold.resource(), now)),
                    Next::Tell(name) => {
                        told = Some(name);
                        None
                    }
                    Next::Nobody => None,
                }
            });
        self.call_off(told);
        tally
    }

    fn errand(
        &self,
        name: X::Standby,
        bid: &Bid,
        resource: &Arc<[u8]>,
        now: Moment,
    ) -> Errand<X::Standby, Inquiry> {
        let (request, tally) = self.acquire(resource, bid, now);
        let cut = last_try_end(bid.end, now);
        let patience = self.patience(now, bid.ttl_ms, cut);
        Errand { on_behalf_of: name, request, tally, patience }
    }

    /// The request of an attempt that begins now, and what counts the answers.
    fn acquire(&self, resource: &Arc<[u8]>, bid: &Bid, now: Moment) -> (Request, Inquiry) {
        let ttl_ms = bid.ttl_ms;
        let window_ms = self.reply_ms(ttl_ms).max(Timeouts::default_reply_ms(ttl_ms));
        let asked = Asked { at: now, ttl_ms, window_ms, drift: self.settings.drift() };
        let resource = Arc::clone(resource);
        let hold = Hold::new(Arc::clone(&resource), bid.token, asked, self.roster.clone());
        let hold = Arc::new(hold);
        let request = Request::new(Verb::Acquire, resource, bid.token, ttl_ms);
        let request = request.before(Arc::clone(&hold) as Arc<dyn Witness>);
        (request, Inquiry::attempt(hold, self.roster.len()))
    }

    /// Asks all servers once.
    fn attempt(&self, resource: &Arc<[u8]>, bid: &Bid, now: Moment, cut: Moment) -> Answers {
        let (request, tally) = self.acquire(resource, bid, now);
        self.transport.ask(request, tally, self.patience(now, bid.ttl_ms, cut))
    }

    /// What an attempt has come to.
    fn judge(&self, (round, sent): Answers) -> Result<Taken, Miss> {
        let Some(hold) = round.attempted().map(Arc::clone) else {
            unreachable!("what was asked was an attempt")
        };
        let status = match round.outcome() {
            // This thread may have been kept from running since the last answer came.
            Outcome::Reached if self.transport.now() < hold.deadline() => {
                hold.take(round.voters(), sent);
                return Ok((hold, round.absent(&self.roster)));
            }
            Outcome::Reached | Outcome::TooLate => Status::TooSlow,
            Outcome::Refused => Status::Taken,
            Outcome::Unreachable => Status::Unreachable,
        };
        let (resource, ttl_ms) = (Arc::clone(hold.resource()), hold.longest_ttl_ms());
        let release = Request::new(Verb::Release, resource, *hold.token(), ttl_ms);
        self.transport.tell(release.to(round.may_have_it(sent)));
        Err(Miss::Votes(status, Box::new(round)))
    }

    /// CRedLock's pause.
    pub(super) fn pause(&self) -> Result<Duration, Error> {
        Ok(backoff::pause(self.settings.retry_delay_ms(), random(&self.entropy)?))
    }

    /// Without randomness it stands back for as long as it ever does.
    fn stand_back(&self) -> Duration {
        let random = random(&self.entropy).unwrap_or(u64::MAX);
        backoff::jitter(STAND_BACK, random)
    }

    fn call_off(&self, told: impl IntoIterator<Item = X::Standby>) {
        told.into_iter().for_each(|it| self.transport.call_off(it));
    }
}

impl<X: Transport<Inquiry>, E: Entropy> InLine<'_, X, E> {
    /// Tries until the lock is taken, the plan or the slice is over, or trying again is no use.
    fn take(&mut self, wait: Option<BrokenOff>) -> Result<Taken, Miss> {
        let mut outcome = match wait {
            Some(it) => self.go_on(Miss::Behind(it.error), it.pause_until),
            None => self.try_once(),
        };
        loop {
            let miss = match outcome {
                Ok(taken) => {
                    self.leave_with(&taken.0);
                    return Ok(taken);
                }
                Err(Miss::Fault(error)) => return Err(Miss::Fault(error)),
                Err(miss) => miss,
            };
            if self.left_off.is_some() {
                return Err(miss);
            }
            let Some(wait) = self.wait_after(&miss)? else { return Err(miss) };
            outcome = self.try_after(miss, wait);
        }
    }

    /// Goes on with a wait that was left off.
    fn go_on(&mut self, miss: Miss, pause_until: Moment) -> Result<Taken, Miss> {
        match self.plan {
            Plan::Until(until) => self.try_after(miss, Wait { pause_until, until }),
            Plan::Tries(_) => self.try_once(),
        }
    }

    /// Tries again when it is time. Where the slice ends before, the miss stands.
    fn try_after(&mut self, miss: Miss, wait: Wait) -> Result<Taken, Miss> {
        match self.stand_by(wait)? {
            Turn::Asked(answers) => self.judge(*answers),
            Turn::Ask => self.try_once(),
            Turn::SliceOver => {
                let now = self.locker.transport.now();
                // Without a pause of its own it stood behind others: it may be the first when it is back.
                let left_off =
                    if wait.pause_until == Moment::NEVER { now } else { wait.pause_until };
                self.left_off = Some(left_off);
                let backoff = self.backoff.clone();
                self.locker.lines.pass_on(self.resource, self.number(), left_off, backoff);
                Err(miss)
            }
        }
    }

    /// What the next slice needs in order to go on, if there may be one.
    fn broken_off(&self, error: &Error) -> Option<BrokenOff> {
        self.left_off.map(|pause_until| BrokenOff {
            pause_until,
            backoff: self.backoff.clone(),
            has_asked: self.has_asked,
            error: error.clone(),
        })
    }

    /// Asks the servers, if it is this caller's turn.
    fn try_once(&mut self) -> Result<Taken, Miss> {
        let locker = self.locker;
        let now = locker.transport.now();
        let is_last = match self.plan {
            Plan::Tries(count) => self.tries + 1 >= count,
            Plan::Until(until) => until <= now.plus(STAND_BACK),
        };
        let is_urgent = is_last || matches!(self.plan, Plan::Tries(_));
        let manners = (is_urgent, is_last);
        let leave = locker.lines.begin(self.resource, self.number(), manners, now);
        self.tries += 1;
        match leave {
            Leave::Granted => {}
            Leave::Held { left_ms } => return Err(Miss::Behind(held_here(left_ms))),
            Leave::NotYet => return Err(Miss::Behind(others_first())),
        }
        // The first attempt is never cut short; a later one is, soon after the end of the plan.
        let cut = match self.plan {
            Plan::Until(until) if self.has_asked => last_try_end(until, now),
            _ => Moment::NEVER,
        };
        self.has_asked = true;
        let bid = self.bid(Moment::NEVER)?;
        match locker.meet_if_needed(now, cut, self.ttl_ms) {
            Ok(now) => self.judge(locker.attempt(self.resource, &bid, now, cut)),
            Err(miss) => Err(self.note(miss)),
        }
    }

    /// What the answers come to; what there may be of a lock that was not had is released.
    fn judge(&mut self, answers: Answers) -> Result<Taken, Miss> {
        // The next attempt has a token of its own.
        self.token = None;
        self.locker.judge(answers).map_err(|it| self.note(it))
    }

    /// Tells the line what the servers said.
    fn note(&mut self, miss: Miss) -> Miss {
        if let Miss::Votes(status, _) = &miss {
            let locker = self.locker;
            let (is_taken, now) = (*status == Status::Taken, locker.transport.now());
            locker.lines.refused(self.resource, self.number(), is_taken, now);
        }
        miss
    }

    /// What to wait for before the next try; nothing if there is none.
    fn wait_after(&mut self, miss: &Miss) -> Result<Option<Wait>, Miss> {
        let locker = self.locker;
        let now = locker.transport.now();
        Ok(match self.plan {
            Plan::Tries(count) if self.tries < count => {
                let until = now.plus(locker.pause().map_err(Miss::Fault)?);
                Some(Wait { pause_until: until, until })
            }
            Plan::Until(until) if now < until => {
                Some(Wait { pause_until: self.pause_until(miss, now)?, until })
            }
            _ => None,
        })
    }

    /// Who is not the first in line has no pauses: it is told when it is its turn.
    fn pause_until(&mut self, miss: &Miss, now: Moment) -> Result<Moment, Miss> {
        let Miss::Votes(status, inquiry) = miss else { return Ok(Moment::NEVER) };
        let settings = &self.locker.settings;
        let refusal = inquiry.refusal(settings.drift(), now);
        let longest = backoff::longest(settings.retry_delay_ms());
        let longest = match status {
            Status::Unreachable => longest.max(DOWN_PAUSE),
            _ => longest,
        };
        let random = random(&self.locker.entropy).map_err(Miss::Fault)?;
        if let Some(inherited) = self.locker.lines.inherit(self.resource, self.number()) {
            self.backoff = inherited;
        }
        Ok(self.backoff.next(&refusal, longest, random, now))
    }

    /// Waits until it is this caller's turn, or its time is up. Whoever releases the lock meanwhile
    /// may ask on its behalf: then these are the answers.
    fn stand_by(&mut self, wait: Wait) -> Result<Turn, Miss> {
        let end = match self.plan {
            Plan::Until(until) if self.has_asked => until,
            _ => Moment::NEVER,
        };
        let bid = self.bid(end)?;
        let (lines, transport) = (&self.locker.lines, &self.locker.transport);
        let in_slice = Wait { until: wait.until.min(self.slice_end), ..wait };
        loop {
            let answers = transport.stand_by(|name, now| {
                lines.stand_by(self.resource, self.number(), (name, bid), in_slice, now)
            });
            if let Some(answers) = answers {
                self.has_asked = true;
                return Ok(Turn::Asked(Box::new(answers)));
            }
            let now = transport.now();
            if lines.stand_up(self.resource, self.number(), wait, now) {
                if let Plan::Tries(_) = self.plan
                    && now < wait.until
                {
                    // A turn that came early is no try of the plan.
                    self.tries -= 1;
                }
                return Ok(Turn::Ask);
            }
            if now >= self.slice_end {
                return Ok(Turn::SliceOver);
            }
        }
    }

    fn bid(&mut self, end: Moment) -> Result<Bid, Miss> {
        let token = match self.token {
            Some(token) => token,
            None => Token::draw(&self.locker.entropy).map_err(Miss::Fault)?,
        };
        self.token = Some(token);
        Ok(Bid { token, ttl_ms: self.ttl_ms, end })
    }

    fn number(&self) -> u64 {
        self.number.unwrap_or_default()
    }

    fn leave_with(&mut self, hold: &Arc<Hold>) {
        if let Some(number) = self.number.take() {
            let told = self.locker.lines.granted(self.resource, number, hold);
            self.locker.call_off(told);
        }
    }
}

impl<X: Transport<Inquiry>, E: Entropy> Drop for InLine<'_, X, E> {
    /// Not in a child that was forked within the call: the line is its parent's.
    fn drop(&mut self) {
        if let Some(number) = self.number.take()
            && self.locker.transport.is_ours()
        {
            let now = self.locker.transport.now();
            self.locker.call_off(self.locker.lines.leave(self.resource, number, now));
        }
    }
}

fn held_here(left_ms: i64) -> Error {
    let words = format!("held through another lease of this manager ({left_ms} ms left)");
    Error::new(Status::Taken, words)
}

fn others_first() -> Error {
    Error::new(Status::Taken, "others of this process want the resource, too, and came first")
}

fn last_try_end(end: Moment, now: Moment) -> Moment {
    end.max(now).plus_ms(LAST_TRY_MS)
}
