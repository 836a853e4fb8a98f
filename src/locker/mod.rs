//! The algorithms: attempts, pauses, releases.

mod acquire;
mod line;

use std::sync::Arc;

use self::acquire::Plan;
use self::line::Lines;
use crate::check;
use crate::command::{Request, Verb};
use crate::continued::Continued;
use crate::error::{Error, Status};
use crate::hold::{Hold, Phase, View};
use crate::inquiry::{Confirm, Inquiry};
use crate::lease::Lease;
use crate::moment::Moment;
use crate::quorum::round::{Goal, Outcome};
use crate::settings::Settings;
use crate::token::{Entropy, Token};
use crate::transport::reactor::Reactor;
use crate::transport::roster::Roster;
use crate::transport::{Patience, Transport};

/// The TTL that stands in for one where a question is about no lock of ours. It gives the longest of
/// the derived reply timeouts.
const QUESTION_TTL_MS: i64 = 10_000;

/// How long servers are given to follow when a quorum is connected: in a call that has something else
/// to do as long as the quorum took, between these, and in one that connects alone no less.
const STRAGGLERS_MIN_MS: i64 = 2;
const STRAGGLERS_MS: i64 = 20;

/// Takes and keeps locks on the servers of one transport.
pub struct Locker<X: Transport<Inquiry>, E> {
    transport: X,
    entropy: E,
    roster: Roster,
    settings: Arc<Settings>,
    continued: Continued,
    lines: Lines<X::Standby>,
}

/// A try that came to nothing.
enum Miss {
    /// The servers did not agree.
    Votes(Status, Box<Inquiry>),
    /// Somebody else of this process is, or was, before it.
    Behind(Error),
    /// Something else is wrong, and trying again is no use.
    Fault(Error),
}

impl<X: Transport<Inquiry>, E: Entropy> Locker<X, E> {
    pub fn new(transport: X, entropy: E, roster: Roster, settings: Arc<Settings>) -> Self {
        let (continued, lines) = Default::default();
        Self { transport, entropy, roster, settings, continued, lines }
    }

    pub fn transport(&self) -> &X {
        &self.transport
    }

    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Connects now. Returns the words about servers that are not up.
    pub fn connect(&self, timeout_ms: i64) -> Result<String, Error> {
        if timeout_ms < 0 {
            return Err(Error::invalid(format!("timeout_ms is {timeout_ms}, less than 0")));
        }
        let began = self.transport.now();
        let limit_ms = if timeout_ms == 0 { self.connect_ms() } else { timeout_ms };
        let until = began.plus_ms(limit_ms);
        self.meet(self.roster.len(), until, QUESTION_TTL_MS).map_err(|it| self.error(it))?;
        let grace_ms = self.transport.now().ms_since(began).max(STRAGGLERS_MS);
        let roll = self.await_stragglers(grace_ms, until, QUESTION_TTL_MS);
        match roll.has_quorum() {
            true => Ok(roll.absent(&self.roster)),
            // Some were lost at once.
            false => Err(roll.error(Status::Unreachable, &self.roster)),
        }
    }

    pub fn lock(&self, resource: &[u8], ttl_ms: i64, lease: &mut Lease) -> Result<(), Error> {
        self.lock_by(Plan::Tries(self.settings.retry_count()), resource, ttl_ms, lease)
    }

    pub fn try_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.lock_by(self.plan(wait_ms), resource, ttl_ms, lease)
    }

    pub fn continue_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        check::resource(resource)?;
        check::ttl(ttl_ms, self.settings.drift())?;
        let now = self.transport.now();
        let hold = match self.hold_of(lease)? {
            Some(hold) if hold.is_held(now) && **hold.resource() != *resource => {
                return Err(Error::invalid("the lease still holds another resource"));
            }
            Some(hold) if hold.is_held(now) => Some(Arc::clone(hold)),
            _ => self.continued.find(resource, now),
        };
        let view = hold.map(|hold| self.view(&hold)).transpose()?;
        lease.begin(resource);
        match view {
            Some(view) => self.renew(&view, ttl_ms, lease)?,
            None => self.lock(resource, ttl_ms, lease)?,
        }
        if let Some(hold) = &lease.hold {
            self.continued.remember(hold, now);
        }
        Ok(())
    }

    pub fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Result<(), Error> {
        check::ttl(ttl_ms, self.settings.drift())?;
        let view = self.require_view(lease)?;
        let outcome = self.extend_hold(&view, ttl_ms);
        self.settle(lease, &view, outcome)
    }

    pub fn unlock(&self, lease: &mut Lease) -> Result<(), Error> {
        let view = self.require_view(lease)?;
        let hold = view.hold();
        let before = hold.pass_to(Phase::Releasing);
        self.continued.forget(hold);
        if before == Phase::Over {
            lease.clear();
            return Err(Error::new(Status::Lost, "the lock had ended before"));
        }
        let ttl_ms = hold.longest_ttl_ms();
        // Without a quorum of connections the release is queued, and told to those that are there.
        let met = self.meet_if_needed(self.transport.now(), Moment::NEVER, ttl_ms);
        self.check_process()?;
        let now = met.unwrap_or_else(|_| self.transport.now());
        let is_again = before == Phase::Releasing || hold.was_release_sent();
        let inquiry = Inquiry::release(is_again, self.roster.len());
        let patience = self.patience(now, ttl_ms, Moment::NEVER);
        let mut inquiry = self.hand_over(&view, inquiry, patience);
        if inquiry.outcome() == Outcome::Refused && !is_again && hold.was_release_sent() {
            // An extension that ended meanwhile has sent a release of its own, which came first.
            inquiry = self.hand_over(&view, Inquiry::release(true, self.roster.len()), patience);
        }
        let status = match inquiry.outcome() {
            Outcome::Reached => None,
            Outcome::Refused | Outcome::TooLate => Some(Status::Lost),
            Outcome::Unreachable => Some(Status::Unreachable),
        };
        if status != Some(Status::Unreachable) {
            hold.pass_to(Phase::Over);
            lease.clear();
        }
        match status {
            None => {
                lease.absent = inquiry.absent(&self.roster);
                Ok(())
            }
            Some(status) => Err(inquiry.error(status, &self.roster)),
        }
    }

    pub fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        if least_ms < 0 {
            return Err(Error::invalid(format!("least_ms is {least_ms}, less than 0")));
        }
        let view = self.require_view(lease)?;
        lease.absent = self.confirm_hold(&view, least_ms)?;
        Ok(())
    }

    pub fn is_locked(&self, resource: &[u8]) -> Result<bool, Error> {
        check::resource(resource)?;
        // Of a server as well that the quorum does without: it may owe somebody a release.
        self.transport.ask_for_passwords();
        let met = self.meet_if_needed(self.transport.now(), Moment::NEVER, QUESTION_TTL_MS);
        let now = met.map_err(|it| self.error(it))?;
        let (resource, nobody) = (Arc::from(resource), Token::from_random([0; 20]));
        let request = Request::new(Verb::Inspect, resource, nobody, QUESTION_TTL_MS);
        let census = Inquiry::census(self.roster.len());
        let patience = self.patience(now, QUESTION_TTL_MS, Moment::NEVER);
        let (census, _) = self.transport.ask(request, census, patience);
        match census.outcome() {
            Outcome::Reached => Ok(census.found_lock()),
            _ => Err(census.error(Status::Unreachable, &self.roster)),
        }
    }

    /// Extends a lock that an earlier lease may have taken, as often as it takes.
    fn renew(&self, view: &View, ttl_ms: i64, lease: &mut Lease) -> Result<(), Error> {
        let mut tries = 0;
        let outcome = loop {
            tries += 1;
            match self.extend_hold(view, ttl_ms) {
                Err(Miss::Votes(Status::Unreachable, _)) if tries < self.settings.retry_count() => {
                }
                outcome => break outcome,
            }
            match self.pause() {
                Ok(pause) => {
                    let until = self.transport.now().plus(pause);
                    self.transport.stand_by(|_, _| until);
                }
                Err(error) => break Err(Miss::Fault(error)),
            }
        };
        self.settle(lease, view, outcome)
    }

    /// Makes the lease say what has come of its lock.
    fn settle(
        &self,
        lease: &mut Lease,
        view: &View,
        outcome: Result<String, Miss>,
    ) -> Result<(), Error> {
        self.check_process()?;
        let (hold, now) = (view.hold(), self.transport.now());
        let miss = match outcome {
            Ok(absent) => {
                lease.keep(Arc::clone(hold), absent, now);
                return Ok(());
            }
            Err(miss) => miss,
        };
        if hold.has_ended() {
            self.continued.forget(hold);
            lease.clear();
        } else if lease.hold.is_none() {
            // What was valid stays valid, and a fresh lease may hold it.
            lease.keep(Arc::clone(hold), String::new(), now);
        }
        Err(self.error(miss))
    }

    fn extend_hold(&self, view: &View, ttl_ms: i64) -> Result<String, Miss> {
        let hold = view.hold();
        let now = self.check_valid(hold).inspect_err(|_| self.give_up(view))?;
        let valid_until = hold.valid_until();
        let now = self.meet_if_needed(now, valid_until, ttl_ms)?;
        let extended_until = self.settings.drift().deadline(now, ttl_ms);
        hold.note_ttl(ttl_ms);
        let number = view.begin_round();
        let round = Inquiry::extend(valid_until, view.clone(), self.roster.len());
        let patience = self.patience(now, ttl_ms, valid_until);
        let request = Self::request(Verb::Extend, view, ttl_ms);
        let (round, _) = self.transport.ask(request, round, patience);
        let is_reached = round.outcome() == Outcome::Reached
            && self.transport.now() < extended_until.max(hold.valid_until());
        let is_extended = self.end_round(view, number, is_reached, &round);
        if hold.has_ended() {
            // Another handle released it meanwhile.
            return Err(Miss::Votes(Status::Lost, Box::new(round)));
        }
        if is_extended {
            hold.extend_to(extended_until);
            self.repair(view, ttl_ms);
            return Ok(round.absent(&self.roster));
        }
        // Another handle may have extended it meanwhile.
        let is_valid = round.outcome() != Outcome::Refused
            && self.transport.now() < hold.valid_until()
            && !view.is_lost();
        if is_valid {
            return Err(Miss::Votes(Status::Unreachable, Box::new(round)));
        }
        self.give_up(view);
        Err(Miss::Votes(Status::Lost, Box::new(round)))
    }

    /// Ends a round of asking who has a lock. Returns whether a quorum has vouched for it.
    fn end_round(&self, view: &View, number: u32, is_reached: bool, round: &Inquiry) -> bool {
        if is_reached {
            return view.pass_round(number, round.voters());
        }
        view.fail_round(number);
        false
    }

    /// A quorum has just vouched for the lock: servers that have lost it are given it again. That is no
    /// extension, and changes nothing for this call.
    fn repair(&self, view: &View, ttl_ms: i64) {
        let servers = view.begin_repairs();
        if servers.is_empty() {
            return;
        }
        view.note_servers(servers);
        let told = self.transport.tell(Self::request(Verb::Repair, view, ttl_ms).to(servers));
        view.withdraw_repairs(servers.minus(told));
        if view.hold().has_ended() {
            // Another handle released it meanwhile, and its release may have come before the repair.
            view.hold().note_release();
            self.transport.tell(Self::release(view));
        }
    }

    fn confirm_hold(&self, view: &View, least_ms: i64) -> Result<String, Error> {
        let hold = view.hold();
        loop {
            let valid_until = hold.valid_until();
            let now = self.check_valid(hold).map_err(|it| self.error(it))?;
            let met = self.meet_if_needed(now, valid_until, hold.longest_ttl_ms());
            let asked_at = met.map_err(|it| self.error(it))?;
            let confirm = Confirm::new(*hold.token(), self.settings.drift(), asked_at, least_ms);
            let ttl_ms = hold.longest_ttl_ms();
            let request = Self::request(Verb::Inspect, view, ttl_ms);
            let number = view.begin_round();
            let inquiry = Inquiry::confirm(confirm, view.clone(), self.roster.len());
            let patience = self.patience(asked_at, ttl_ms, Moment::NEVER);
            let (inquiry, _) = self.transport.ask(request, inquiry, patience);
            let now = self.transport.now();
            let is_valid = now < hold.valid_until() && !hold.has_ended();
            let is_reached = inquiry.outcome() == Outcome::Reached && is_valid;
            let is_ours = self.end_round(view, number, is_reached, &inquiry);
            if is_ours && inquiry.confirmed_ms(now) >= least_ms {
                return Ok(inquiry.absent(&self.roster));
            }
            if is_valid && !view.is_lost() {
                if hold.valid_until() > valid_until {
                    // Another handle has extended it since the servers were asked.
                    continue;
                }
                // It is there, or may be; but not for so long.
                let is_short = is_ours || inquiry.outcome() == Outcome::Refused;
                let status = if is_short { Status::Lost } else { Status::Unreachable };
                return Err(inquiry.error(status, &self.roster));
            }
            // A question changes nothing on the servers: Unlock clears up what is left.
            hold.pass_to(Phase::Lost);
            self.forget(hold);
            return Err(inquiry.error(Status::Lost, &self.roster));
        }
    }

    /// The lock is lost. What may be left of it somewhere must not keep others out.
    fn give_up(&self, view: &View) {
        let hold = view.hold();
        self.forget(hold);
        if hold.pass_to(Phase::Over) != Phase::Over {
            hold.note_release();
            self.transport.tell(Self::release(view));
        }
    }

    /// The lock is not ours any more: who waits for it may ask for it.
    fn forget(&self, hold: &Hold) {
        self.continued.forget(hold);
        let next = self.lines.lost(hold, self.transport.now());
        next.into_iter().for_each(|it| self.transport.call_off(it));
    }

    /// Returns when it was found to be valid.
    fn check_valid(&self, hold: &Hold) -> Result<Moment, Miss> {
        let now = self.transport.now();
        if hold.has_ended() {
            let words = "the lock was released or lost before";
            return Err(Miss::Fault(Error::new(Status::Lost, words)));
        }
        let valid_until = hold.valid_until();
        if now < valid_until {
            return Ok(now);
        }
        hold.pass_to(Phase::Lost);
        let words = format!("the lock expired {} ms ago", now.ms_since(valid_until));
        Err(Miss::Fault(Error::new(Status::Lost, words)))
    }

    /// Has a quorum of connections before `limit`, or says why not. Returns when it had: now, if that
    /// is so already.
    fn meet_if_needed(&self, now: Moment, limit: Moment, ttl_ms: i64) -> Result<Moment, Miss> {
        let quorum = self.roster.len() / 2 + 1;
        if self.transport.is_connected(quorum, self.reply_ms(ttl_ms), now) {
            return Ok(now);
        }
        self.meet(quorum, now.plus_ms(self.connect_ms()).min(limit), ttl_ms)?;
        let grace_ms = self.transport.now().ms_since(now).clamp(STRAGGLERS_MIN_MS, STRAGGLERS_MS);
        self.await_stragglers(grace_ms, limit, ttl_ms);
        self.check_process().map_err(Miss::Fault)?;
        Ok(self.transport.now())
    }

    /// Who was asked for a password may have forked, and then this may be the child: what the call was
    /// about to do is the parent's to do, and threads of the parent may have been changing all that is here.
    fn check_process(&self) -> Result<(), Error> {
        if self.transport.is_ours() { Ok(()) } else { Err(Error::forked_within()) }
    }

    /// A quorum is up. The others may be about to follow: what is asked next should reach them, too,
    /// since nobody may come to send it later.
    fn await_stragglers(&self, grace_ms: i64, limit: Moment, ttl_ms: i64) -> Inquiry {
        let now = self.transport.now();
        let until = now.plus_ms(grace_ms).min(limit);
        let patience = self.patience(now, ttl_ms, until);
        self.transport.connect(Inquiry::roll(self.roster.len()), 0, patience)
    }

    /// Connects; names are looked up if fewer than `enough` servers are promising without.
    fn meet(&self, mut enough: usize, mut until: Moment, ttl_ms: i64) -> Result<(), Miss> {
        loop {
            let meet = Inquiry::round(Goal::Meet, self.roster.len());
            let patience = self.patience(self.transport.now(), ttl_ms, until);
            let meet = self.transport.connect(meet, enough, patience);
            self.check_process().map_err(Miss::Fault)?;
            if meet.outcome() == Outcome::Reached {
                return Ok(());
            }
            let now = self.transport.now();
            if enough == 0 || now >= until || !self.transport.look_up_the_rest() {
                return Err(Miss::Votes(Status::Unreachable, Box::new(meet)));
            }
            // Those that seemed promising did not do, and there are others: once more with these.
            (enough, until) = (0, until.plus_ms(self.transport.now().ms_since(now)));
        }
    }

    fn release(view: &View) -> Request {
        let hold = view.hold();
        let resource = Arc::clone(hold.resource());
        let request = Request::new(Verb::Release, resource, *hold.token(), hold.longest_ttl_ms());
        request.to(view.servers())
    }

    /// A request about a lock, whose answers it hears.
    fn request(verb: Verb, view: &View, ttl_ms: i64) -> Request {
        let hold = view.hold();
        let request = Request::new(verb, Arc::clone(hold.resource()), *hold.token(), ttl_ms);
        request.before(view.witness())
    }

    fn patience(&self, now: Moment, ttl_ms: i64, cut: Moment) -> Patience {
        let reply_ms = self.reply_ms(ttl_ms);
        Patience { since: now, until: cut, reply_ms }
    }

    fn reply_ms(&self, ttl_ms: i64) -> i64 {
        self.settings.timeouts().reply_ms(ttl_ms)
    }

    fn connect_ms(&self) -> i64 {
        self.settings.timeouts().connect_ms()
    }

    /// The lock of a lease, if it has one, held or not; not one of the parent process.
    fn hold_of<'a>(&self, lease: &'a Lease) -> Result<Option<&'a Arc<Hold>>, Error> {
        match &lease.hold {
            Some(hold) if !hold.is_ours() => {
                Err(Error::new(Status::Forked, "the lease belongs to the parent process"))
            }
            hold => Ok(hold.as_ref()),
        }
    }

    /// The lock of a lease, with the servers in the order of this manager.
    fn require_view(&self, lease: &Lease) -> Result<View, Error> {
        let hold = self.hold_of(lease)?;
        let lacking = || Error::new(Status::Lost, "the lease holds no lock");
        self.view(hold.ok_or_else(lacking)?)
    }

    fn view(&self, hold: &Arc<Hold>) -> Result<View, Error> {
        let other = || {
            Error::invalid("the lock was taken on other servers, or databases, than this manager's")
        };
        View::new(hold, &self.roster).ok_or_else(other)
    }

    fn error(&self, miss: Miss) -> Error {
        match miss {
            Miss::Fault(error) | Miss::Behind(error) => error,
            Miss::Votes(status, inquiry) => inquiry.error(status, &self.roster),
        }
    }
}

impl<E> Locker<Reactor<Inquiry>, E> {
    /// Whether no thread is changing anything at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.transport.is_at_rest() && self.continued.is_at_rest() && self.lines.is_at_rest()
    }
}
