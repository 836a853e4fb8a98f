//! The algorithms: attempts, pauses, releases. Generic over the world, so that the same code runs on
//! sockets and in a simulation.

mod acquire;
mod line;

use std::sync::Arc;

use self::acquire::Plan;
use self::line::Lines;
use crate::check;
use crate::continued::Continued;
use crate::error::{Error, Status};
use crate::inquiry::{Confirm, Inquiry};
use crate::lease::{Hold, Lease, Phase};
use crate::moment::Moment;
use crate::quorum::round::{Goal, Outcome};
use crate::settings::Settings;
use crate::token::{Entropy, Token};
use crate::transport::command::{Request, Verb};
use crate::transport::endpoint::Endpoint;
use crate::transport::reactor::Reactor;
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
    endpoints: Vec<Endpoint>,
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
    pub fn new(
        transport: X,
        entropy: E,
        endpoints: Vec<Endpoint>,
        settings: Arc<Settings>,
    ) -> Self {
        let (continued, lines) = Default::default();
        Self { transport, entropy, endpoints, settings, continued, lines }
    }

    pub fn transport(&self) -> &X {
        &self.transport
    }

    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Connects now. Returns the words about servers that are not up.
    pub fn connect(&self, timeout_ms: i64) -> Result<String, Error> {
        if timeout_ms < 0 {
            return Err(Error::invalid(format!("timeout_ms is {timeout_ms}, less than 0")));
        }
        let began = self.transport.now();
        let limit_ms = if timeout_ms == 0 { self.connect_ms() } else { timeout_ms };
        let until = began.plus_ms(limit_ms);
        self.meet(self.endpoints.len(), until, QUESTION_TTL_MS).map_err(|it| self.error(it))?;
        let grace_ms = self.transport.now().ms_since(began).max(STRAGGLERS_MS);
        let roll = self.await_stragglers(grace_ms, until, QUESTION_TTL_MS);
        Ok(roll.absent(&self.endpoints))
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
        lease.begin(resource);
        match hold {
            Some(hold) => self.renew(&hold, ttl_ms, lease)?,
            None => self.lock(resource, ttl_ms, lease)?,
        }
        if let Some(hold) = &lease.hold {
            self.continued.remember(hold, now);
        }
        Ok(())
    }

    pub fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Result<(), Error> {
        check::ttl(ttl_ms, self.settings.drift())?;
        let hold = self.require_hold(lease)?;
        let outcome = self.extend_hold(&hold, ttl_ms);
        self.settle(lease, hold, outcome)
    }

    pub fn unlock(&self, lease: &mut Lease) -> Result<(), Error> {
        let hold = self.require_hold(lease)?;
        let before = hold.pass_to(Phase::Releasing);
        self.continued.forget(&hold);
        if before == Phase::Over {
            lease.clear();
            return Err(Error::new(Status::Lost, "the lock had ended before"));
        }
        let ttl_ms = hold.longest_ttl_ms();
        // Without a quorum of connections the release is queued, and told to those that are there.
        let met = self.meet_if_needed(self.transport.now(), Moment::NEVER, ttl_ms);
        let now = met.unwrap_or_else(|_| self.transport.now());
        let is_again = before == Phase::Releasing || hold.was_release_sent();
        let inquiry = Inquiry::release(is_again, self.endpoints.len());
        let patience = self.patience(now, ttl_ms, Moment::NEVER);
        let mut inquiry = self.hand_over(&hold, inquiry, patience);
        if inquiry.outcome() == Outcome::Refused && !is_again && hold.was_release_sent() {
            // An extension that ended meanwhile has sent a release of its own, which came first.
            inquiry = self.hand_over(&hold, Inquiry::release(true, self.endpoints.len()), patience);
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
                lease.absent = inquiry.absent(&self.endpoints);
                Ok(())
            }
            Some(status) => Err(inquiry.error(status, &self.endpoints)),
        }
    }

    pub fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        if least_ms < 0 {
            return Err(Error::invalid(format!("least_ms is {least_ms}, less than 0")));
        }
        let hold = self.require_hold(lease)?;
        lease.absent = self.confirm_hold(&hold, least_ms)?;
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
        let census = Inquiry::census(self.endpoints.len());
        let patience = self.patience(now, QUESTION_TTL_MS, Moment::NEVER);
        let (census, _) = self.transport.ask(request, census, patience);
        match census.outcome() {
            Outcome::Reached => Ok(census.found_lock()),
            _ => Err(census.error(Status::Unreachable, &self.endpoints)),
        }
    }

    /// Extends a lock that an earlier lease may have taken, as often as it takes.
    fn renew(&self, hold: &Arc<Hold>, ttl_ms: i64, lease: &mut Lease) -> Result<(), Error> {
        let mut tries = 0;
        let outcome = loop {
            tries += 1;
            match self.extend_hold(hold, ttl_ms) {
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
        self.settle(lease, Arc::clone(hold), outcome)
    }

    /// Makes the lease say what has come of its lock.
    fn settle(
        &self,
        lease: &mut Lease,
        hold: Arc<Hold>,
        outcome: Result<String, Miss>,
    ) -> Result<(), Error> {
        let now = self.transport.now();
        let miss = match outcome {
            Ok(absent) => {
                lease.keep(hold, absent, now);
                return Ok(());
            }
            Err(miss) => miss,
        };
        if hold.has_ended() {
            self.continued.forget(&hold);
            lease.clear();
        } else if lease.hold.is_none() {
            // What was valid stays valid, and a fresh lease may hold it.
            lease.keep(hold, String::new(), now);
        }
        Err(self.error(miss))
    }

    fn extend_hold(&self, hold: &Hold, ttl_ms: i64) -> Result<String, Miss> {
        let now = self.check_valid(hold).inspect_err(|_| self.give_up(hold))?;
        let valid_until = hold.valid_until();
        let now = self.meet_if_needed(now, valid_until, ttl_ms)?;
        let extended_until = self.settings.drift().deadline(now, ttl_ms);
        hold.note_ttl(ttl_ms);
        let mended = hold.mended();
        let round = Inquiry::extend(valid_until, mended.clone(), self.endpoints.len());
        let patience = self.patience(now, ttl_ms, valid_until);
        let request = Self::request(Verb::Extend, hold, ttl_ms).noting(mended);
        let (round, sent) = self.transport.ask(request, round, patience);
        hold.note_servers(sent);
        if hold.has_ended() {
            // Another handle released it meanwhile: what this round has set again must go, too.
            hold.note_release();
            self.transport.tell(Self::release(hold));
            return Err(Miss::Votes(Status::Lost, Box::new(round)));
        }
        match round.outcome() {
            Outcome::Reached if self.transport.now() < extended_until.max(hold.valid_until()) => {
                hold.extend_to(extended_until);
                hold.trust_mended();
                Ok(round.absent(&self.endpoints))
            }
            // Another handle may have extended it meanwhile.
            Outcome::Unreachable | Outcome::TooLate
                if self.transport.now() < hold.valid_until() =>
            {
                Err(Miss::Votes(Status::Unreachable, Box::new(round)))
            }
            _ => {
                self.give_up(hold);
                Err(Miss::Votes(Status::Lost, Box::new(round)))
            }
        }
    }

    fn confirm_hold(&self, hold: &Hold, least_ms: i64) -> Result<String, Error> {
        let valid_until = hold.valid_until();
        let now = self.check_valid(hold).map_err(|it| self.error(it))?;
        let met = self.meet_if_needed(now, valid_until, hold.longest_ttl_ms());
        let asked_at = met.map_err(|it| self.error(it))?;
        let confirm = Confirm::new(*hold.token(), self.settings.drift(), asked_at, least_ms);
        let inquiry = Inquiry::confirm(confirm, valid_until, hold.mended(), self.endpoints.len());
        let ttl_ms = hold.longest_ttl_ms();
        let request = Self::request(Verb::Inspect, hold, ttl_ms);
        let (inquiry, _) =
            self.transport.ask(request, inquiry, self.patience(asked_at, ttl_ms, Moment::NEVER));
        let now = self.transport.now();
        match inquiry.outcome() {
            Outcome::Reached
                if now < hold.valid_until() && inquiry.confirmed_ms(now) >= least_ms =>
            {
                Ok(inquiry.absent(&self.endpoints))
            }
            Outcome::Unreachable => Err(inquiry.error(Status::Unreachable, &self.endpoints)),
            outcome => {
                let is_short = outcome == Outcome::Reached || inquiry.is_merely_short();
                if now >= hold.valid_until() || !is_short {
                    // A question changes nothing on the servers: Unlock clears up what is left.
                    hold.pass_to(Phase::Lost);
                    self.forget(hold);
                }
                Err(inquiry.error(Status::Lost, &self.endpoints))
            }
        }
    }

    /// The lock is lost. What may be left of it somewhere must not keep others out.
    fn give_up(&self, hold: &Hold) {
        self.forget(hold);
        if hold.pass_to(Phase::Over) != Phase::Over {
            hold.note_release();
            self.transport.tell(Self::release(hold));
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
        let quorum = self.endpoints.len() / 2 + 1;
        if self.transport.is_connected(quorum, self.reply_ms(ttl_ms), now) {
            return Ok(now);
        }
        self.meet(quorum, now.plus_ms(self.connect_ms()).min(limit), ttl_ms)?;
        let grace_ms = self.transport.now().ms_since(now).clamp(STRAGGLERS_MIN_MS, STRAGGLERS_MS);
        self.await_stragglers(grace_ms, limit, ttl_ms);
        Ok(self.transport.now())
    }

    /// A quorum is up. The others may be about to follow: what is asked next should reach them, too,
    /// since nobody may come to send it later.
    fn await_stragglers(&self, grace_ms: i64, limit: Moment, ttl_ms: i64) -> Inquiry {
        let now = self.transport.now();
        let until = now.plus_ms(grace_ms).min(limit);
        let patience = Patience { until, ..self.patience(now, ttl_ms, until) };
        self.transport.connect(Inquiry::roll(self.endpoints.len()), 0, patience)
    }

    /// Connects; names are looked up if fewer than `enough` servers are promising without.
    fn meet(&self, enough: usize, until: Moment, ttl_ms: i64) -> Result<(), Miss> {
        let meet = Inquiry::round(Goal::Meet, self.endpoints.len());
        let patience = Patience { until, ..self.patience(self.transport.now(), ttl_ms, until) };
        let meet = self.transport.connect(meet, enough, patience);
        match meet.outcome() {
            Outcome::Reached => Ok(()),
            _ => Err(Miss::Votes(Status::Unreachable, Box::new(meet))),
        }
    }

    fn release(hold: &Hold) -> Request {
        let resource = Arc::clone(hold.resource());
        Request::release(resource, *hold.token(), hold.longest_ttl_ms(), hold.servers())
    }

    fn request(verb: Verb, hold: &Hold, ttl_ms: i64) -> Request {
        Request::new(verb, Arc::clone(hold.resource()), *hold.token(), ttl_ms)
    }

    fn patience(&self, now: Moment, ttl_ms: i64, cut: Moment) -> Patience {
        let reply_ms = self.reply_ms(ttl_ms);
        Patience { since: now, until: now.plus_ms(reply_ms).min(cut), reply_ms }
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

    fn require_hold(&self, lease: &Lease) -> Result<Arc<Hold>, Error> {
        let hold = self.hold_of(lease)?.cloned();
        hold.ok_or_else(|| Error::new(Status::Lost, "the lease holds no lock"))
    }

    fn error(&self, miss: Miss) -> Error {
        match miss {
            Miss::Fault(error) | Miss::Behind(error) => error,
            Miss::Votes(status, inquiry) => inquiry.error(status, &self.endpoints),
        }
    }
}

impl<E> Locker<Reactor<Inquiry>, E> {
    /// Whether no thread is changing anything at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.transport.is_at_rest() && self.continued.is_at_rest() && self.lines.is_at_rest()
    }
}
