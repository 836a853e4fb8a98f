//! The algorithms: attempts, pauses, releases. Generic over the world, so that the same code runs on
//! sockets and in a simulation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Moment;
use crate::error::{Error, Status};
use crate::inquiry::{Confirm, Inquiry};
use crate::lease::{Hold, Lease, Phase};
use crate::quorum::backoff;
use crate::quorum::round::{Goal, Outcome};
use crate::quorum::validity::TTL_MAX_MS;
use crate::settings::Settings;
use crate::token::{Entropy, Token, random};
use crate::transport::command::{Request, Verb};
use crate::transport::endpoint::Endpoint;
use crate::transport::{Patience, Servers, Transport};

/// The longest resource name.
const RESOURCE_MAX: usize = 64 * 1024;

/// The TTL that stands in for one where a question is about no lock of ours. It gives the longest of
/// the derived reply timeouts.
const QUESTION_TTL_MS: i64 = 10_000;

/// How long servers are given to follow when a quorum is connected.
const STRAGGLERS_MS: i64 = 20;

/// Takes and keeps locks on the servers of one transport.
pub(crate) struct Locker<X, E> {
    transport: X,
    entropy: E,
    endpoints: Vec<Endpoint>,
    settings: Arc<Settings>,
    /// What was continued, by resource: a fresh lease finds the lock of an earlier one here.
    continued: Mutex<HashMap<Arc<[u8]>, Arc<Hold>>>,
}

/// How long to go on trying.
#[derive(Clone, Copy)]
pub(crate) enum Plan {
    /// So many tries.
    Tries(i64),
    /// Until then.
    Until(Moment),
}

/// A try that came to nothing.
enum Miss {
    /// The servers did not agree.
    Votes(Status, Inquiry),
    /// Something else is wrong, and trying again is no use.
    Fault(Error),
}

impl<X: Transport<Inquiry>, E: Entropy> Locker<X, E> {
    pub(crate) fn new(
        transport: X,
        entropy: E,
        endpoints: Vec<Endpoint>,
        settings: Arc<Settings>,
    ) -> Self {
        Self { transport, entropy, endpoints, settings, continued: Mutex::default() }
    }

    pub(crate) fn transport(&self) -> &X {
        &self.transport
    }

    /// Connects now. Returns the words about servers that are not up.
    pub(crate) fn connect(&self, timeout_ms: i64) -> Result<String, Error> {
        if timeout_ms < 0 {
            return Err(Error::invalid(format!("timeout_ms is {timeout_ms}, less than 0")));
        }
        let began = self.transport.now();
        let limit_ms = if timeout_ms == 0 { self.connect_ms() } else { timeout_ms };
        let until = began.plus_ms(limit_ms);
        self.meet(until).map_err(|it| self.error(it, "are connected"))?;
        // A quorum is up. The others may be about to follow.
        let now = self.transport.now();
        let grace_ms = now.ms_since(began).max(STRAGGLERS_MS);
        let roll = Inquiry::roll(self.endpoints.len());
        let roll = self.transport.connect(roll, now.plus_ms(grace_ms).min(until));
        Ok(roll.reasons(&self.endpoints))
    }

    pub(crate) fn lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.lock_by(Plan::Tries(self.settings.retry_count()), resource, ttl_ms, lease)
    }

    pub(crate) fn try_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        let plan = match wait_ms {
            0 => Plan::Tries(1),
            ..0 => Plan::Until(Moment::NEVER),
            _ => Plan::Until(self.transport.now().plus_ms(wait_ms)),
        };
        self.lock_by(plan, resource, ttl_ms, lease)
    }

    pub(crate) fn continue_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.check_resource(resource)?;
        self.check_ttl(ttl_ms)?;
        let now = self.transport.now();
        let hold = match self.hold_of(lease)? {
            Some(hold) if hold.is_held(now) && **hold.resource() != *resource => {
                return Err(Error::invalid("the lease still holds another resource"));
            }
            Some(hold) if hold.is_held(now) => Some(Arc::clone(hold)),
            _ => self.continued().get(resource).filter(|it| it.is_held(now)).cloned(),
        };
        lease.begin(resource);
        match hold {
            Some(hold) => self.renew(&hold, ttl_ms, lease)?,
            None => self.lock(resource, ttl_ms, lease)?,
        }
        self.remember(lease);
        Ok(())
    }

    pub(crate) fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Result<(), Error> {
        self.check_ttl(ttl_ms)?;
        let hold = self.require_hold(lease)?;
        let outcome = self.extend_hold(&hold, ttl_ms);
        self.settle(lease, hold, outcome)
    }

    pub(crate) fn unlock(&self, lease: &mut Lease) -> Result<(), Error> {
        let hold = self.require_hold(lease)?;
        let before = hold.pass_to(Phase::Releasing);
        self.forget(&hold);
        if before == Phase::Over {
            lease.clear();
            return Err(Error::new(Status::Lost, "the lock had ended before"));
        }
        let ttl_ms = hold.longest_ttl_ms();
        // Without a quorum of connections the release is queued, and told to those that are there.
        let _ = self.meet_if_needed(self.transport.now().plus_ms(self.connect_ms()));
        let inquiry = Inquiry::release(before == Phase::Releasing, self.endpoints.len());
        let request = self.request(Verb::Release, &hold, ttl_ms);
        let (inquiry, _) = self.transport.ask(request, inquiry, self.patience(ttl_ms));
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
            None => Ok(()),
            Some(status) => Err(inquiry.error(status, "released it", &self.endpoints)),
        }
    }

    pub(crate) fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        if least_ms < 0 {
            return Err(Error::invalid(format!("least_ms is {least_ms}, less than 0")));
        }
        let hold = self.require_hold(lease)?;
        let outcome = self.confirm_hold(&hold, least_ms);
        if hold.has_ended() {
            lease.clear();
        }
        outcome
    }

    pub(crate) fn is_locked(&self, resource: &[u8]) -> Result<bool, Error> {
        self.check_resource(resource)?;
        let until = self.transport.now().plus_ms(self.connect_ms());
        self.meet_if_needed(until).map_err(|it| self.error(it, "are connected"))?;
        let (resource, nobody) = (Arc::from(resource), Token::from_random([0; 20]));
        let request = Request::new(Verb::Inspect, resource, nobody, QUESTION_TTL_MS);
        let census = Inquiry::census(self.endpoints.len());
        let (census, _) = self.transport.ask(request, census, self.patience(QUESTION_TTL_MS));
        match census.outcome() {
            Outcome::Reached => Ok(census.found_lock()),
            _ => Err(census.error(Status::Unreachable, "hold something", &self.endpoints)),
        }
    }

    fn lock_by(
        &self,
        plan: Plan,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.check_resource(resource)?;
        self.check_ttl(ttl_ms)?;
        if self.hold_of(lease)?.is_some_and(|it| it.is_held(self.transport.now())) {
            return Err(Error::invalid("the lease still holds a lock: unlock it first"));
        }
        lease.begin(resource);
        let resource: Arc<[u8]> = Arc::from(resource);
        let mut cut = Moment::NEVER;
        let hold = self.retry(plan, || {
            let outcome = self.attempt(&resource, ttl_ms, cut);
            // The first attempt is never cut short; a later one is, at the end of the plan.
            if let Plan::Until(until) = plan {
                cut = until.max(self.transport.now());
            }
            outcome
        });
        let hold = hold.map_err(|it| self.error(it, "granted"))?;
        lease.keep(hold, self.transport.now());
        Ok(())
    }

    /// Tries until it is done, the plan is over, or trying again is no use.
    fn retry<T>(
        &self,
        plan: Plan,
        mut attempt: impl FnMut() -> Result<T, Miss>,
    ) -> Result<T, Miss> {
        let mut tries = 0;
        loop {
            let miss = match attempt() {
                Err(miss @ Miss::Votes(..)) => miss,
                outcome => return outcome,
            };
            tries += 1;
            let now = self.transport.now();
            let end = match plan {
                Plan::Tries(count) if tries < count => Moment::NEVER,
                Plan::Until(until) if now < until => until,
                _ => return Err(miss),
            };
            let random = random(&self.entropy).map_err(Miss::Fault)?;
            let pause = backoff::pause(self.settings.retry_delay_ms(), random);
            self.transport.pause(now.plus(pause).min(end));
        }
    }

    /// One attempt, with a token of its own: so a late release of one attempt can never delete what
    /// another has taken.
    fn attempt(&self, resource: &Arc<[u8]>, ttl_ms: i64, cut: Moment) -> Result<Arc<Hold>, Miss> {
        let token = Token::draw(&self.entropy).map_err(Miss::Fault)?;
        self.meet_if_needed(self.transport.now().plus_ms(self.connect_ms()).min(cut))?;
        let valid_until = self.settings.drift().deadline(self.transport.now(), ttl_ms);
        let request = Request::new(Verb::Acquire, Arc::clone(resource), token, ttl_ms);
        let round = Inquiry::round(Goal::Take { valid_until }, self.endpoints.len());
        let mut patience = self.patience(ttl_ms);
        patience.until = patience.until.min(cut);
        let (round, sent) = self.transport.ask(request, round, patience);
        let status = match round.outcome() {
            Outcome::Reached => {
                return Ok(Arc::new(Hold::new(Arc::clone(resource), token, ttl_ms, valid_until)));
            }
            Outcome::TooLate => Status::TooSlow,
            Outcome::Refused => Status::Taken,
            Outcome::Unreachable => Status::Unreachable,
        };
        // Whatever a server answered, or did not: it may have set the key.
        let release = Request::new(Verb::Release, Arc::clone(resource), token, ttl_ms);
        self.transport.tell(release, sent);
        Err(Miss::Votes(status, round))
    }

    /// Extends a lock that an earlier lease may have taken, as often as it takes.
    fn renew(&self, hold: &Arc<Hold>, ttl_ms: i64, lease: &mut Lease) -> Result<(), Error> {
        let plan = Plan::Tries(self.settings.retry_count());
        let outcome = self.retry(plan, || {
            self.extend_hold(hold, ttl_ms).map_err(|it| match it {
                Miss::Votes(Status::Lost, _) => Miss::Fault(self.error(it, "extended it")),
                other => other,
            })
        });
        self.settle(lease, Arc::clone(hold), outcome)
    }

    /// Makes the lease say what has come of its lock.
    fn settle(
        &self,
        lease: &mut Lease,
        hold: Arc<Hold>,
        outcome: Result<(), Miss>,
    ) -> Result<(), Error> {
        let now = self.transport.now();
        match outcome {
            Ok(()) => lease.keep(hold, now),
            Err(_) if hold.has_ended() => {
                self.forget(&hold);
                lease.clear();
            }
            // What was valid stays valid, and is what it was.
            Err(_) if lease.hold.is_some() => {}
            Err(_) => lease.keep(hold, now),
        }
        outcome.map_err(|it| self.error(it, "extended it"))
    }

    fn extend_hold(&self, hold: &Hold, ttl_ms: i64) -> Result<(), Miss> {
        let valid_until = hold.valid_until();
        self.check_valid(hold, valid_until)?;
        self.meet_if_needed(self.transport.now().plus_ms(self.connect_ms()).min(valid_until))?;
        let extended_until = self.settings.drift().deadline(self.transport.now(), ttl_ms);
        let verb = if ttl_ms < hold.longest_ttl_ms() { Verb::ExtendAtLeast } else { Verb::Extend };
        hold.note_ttl(ttl_ms);
        let round = Inquiry::round(Goal::Keep { valid_until }, self.endpoints.len());
        let mut patience = self.patience(ttl_ms);
        patience.until = patience.until.min(valid_until);
        let (round, _) = self.transport.ask(self.request(verb, hold, ttl_ms), round, patience);
        match round.outcome() {
            Outcome::Reached if !hold.has_ended() => {
                hold.extend_to(extended_until);
                Ok(())
            }
            Outcome::Unreachable if self.transport.now() < valid_until => {
                Err(Miss::Votes(Status::Unreachable, round))
            }
            _ => {
                self.give_up(hold);
                Err(Miss::Votes(Status::Lost, round))
            }
        }
    }

    fn confirm_hold(&self, hold: &Hold, least_ms: i64) -> Result<(), Error> {
        const DONE: &str = "confirmed it";
        let valid_until = hold.valid_until();
        let valid = self.check_valid(hold, valid_until);
        valid.map_err(|it| self.error(it, DONE))?;
        let until = self.transport.now().plus_ms(self.connect_ms()).min(valid_until);
        self.meet_if_needed(until).map_err(|it| self.error(it, "are connected"))?;
        let asked_at = self.transport.now();
        let confirm = Confirm::new(*hold.token(), self.settings.drift(), asked_at, least_ms);
        let inquiry = Inquiry::confirm(confirm, valid_until, self.endpoints.len());
        let ttl_ms = hold.longest_ttl_ms();
        let request = self.request(Verb::Inspect, hold, ttl_ms);
        let (inquiry, _) = self.transport.ask(request, inquiry, self.patience(ttl_ms));
        let now = self.transport.now();
        match inquiry.outcome() {
            Outcome::Reached if inquiry.confirmed_ms(now) >= least_ms => Ok(()),
            Outcome::Unreachable => Err(inquiry.error(Status::Unreachable, DONE, &self.endpoints)),
            outcome => {
                let is_short = outcome == Outcome::Reached || inquiry.is_merely_short();
                if outcome == Outcome::TooLate || !is_short {
                    self.give_up(hold);
                }
                let done = format!("confirmed it for {least_ms} ms");
                Err(inquiry.error(Status::Lost, &done, &self.endpoints))
            }
        }
    }

    /// The lock is lost. What may be left of it somewhere must not keep others out.
    fn give_up(&self, hold: &Hold) {
        hold.pass_to(Phase::Over);
        self.forget(hold);
        let release = self.request(Verb::Release, hold, hold.longest_ttl_ms());
        self.transport.tell(release, Servers::first(self.endpoints.len()));
    }

    fn check_valid(&self, hold: &Hold, valid_until: Moment) -> Result<(), Miss> {
        let now = self.transport.now();
        if hold.has_ended() {
            let words = "the lock was released or lost before";
            return Err(Miss::Fault(Error::new(Status::Lost, words)));
        }
        if now < valid_until {
            return Ok(());
        }
        self.give_up(hold);
        let words = format!("the lock expired {} ms ago", now.ms_since(valid_until));
        Err(Miss::Fault(Error::new(Status::Lost, words)))
    }

    /// Has a quorum of connections, or says why not.
    fn meet_if_needed(&self, until: Moment) -> Result<(), Miss> {
        match self.transport.is_connected(self.endpoints.len() / 2 + 1) {
            true => Ok(()),
            false => self.meet(until),
        }
    }

    fn meet(&self, until: Moment) -> Result<(), Miss> {
        let meet = Inquiry::round(Goal::Meet, self.endpoints.len());
        let meet = self.transport.connect(meet, until);
        match meet.outcome() {
            Outcome::Reached => Ok(()),
            _ => Err(Miss::Votes(Status::Unreachable, meet)),
        }
    }

    fn request(&self, verb: Verb, hold: &Hold, ttl_ms: i64) -> Request {
        Request::new(verb, Arc::clone(hold.resource()), *hold.token(), ttl_ms)
    }

    fn patience(&self, ttl_ms: i64) -> Patience {
        let reply_ms = self.settings.timeouts().reply_ms(ttl_ms);
        Patience { until: self.transport.now().plus_ms(reply_ms), reply_ms }
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

    fn continued(&self) -> MutexGuard<'_, HashMap<Arc<[u8]>, Arc<Hold>>> {
        self.continued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, lease: &Lease) {
        if let Some(hold) = &lease.hold {
            let now = self.transport.now();
            let mut continued = self.continued();
            continued.retain(|_, it| it.is_held(now));
            continued.insert(Arc::clone(hold.resource()), Arc::clone(hold));
        }
    }

    fn forget(&self, hold: &Hold) {
        let mut continued = self.continued();
        if continued.get(hold.resource()).is_some_and(|it| it.token() == hold.token()) {
            continued.remove(hold.resource());
        }
    }

    fn error(&self, miss: Miss, done: &str) -> Error {
        match miss {
            Miss::Fault(error) => error,
            Miss::Votes(Status::TooSlow, inquiry) => {
                let done = format!("{done}, but too late for any validity to be left");
                inquiry.error(Status::TooSlow, &done, &self.endpoints)
            }
            Miss::Votes(status, inquiry) => inquiry.error(status, done, &self.endpoints),
        }
    }

    fn check_resource(&self, resource: &[u8]) -> Result<(), Error> {
        match resource.len() {
            0 => Err(Error::invalid("resource is empty")),
            1..=RESOURCE_MAX => Ok(()),
            length => {
                let words = format!("resource is {length} bytes long, more than {RESOURCE_MAX}");
                Err(Error::invalid(words))
            }
        }
    }

    fn check_ttl(&self, ttl_ms: i64) -> Result<(), Error> {
        if ttl_ms < 1 {
            return Err(Error::invalid(format!("ttl_ms is {ttl_ms}, less than 1")));
        }
        if ttl_ms > TTL_MAX_MS {
            return Err(Error::invalid(format!("ttl_ms is {ttl_ms}, more than {TTL_MAX_MS}")));
        }
        let drift = self.settings.drift();
        if drift.validity_ms(ttl_ms) < 1 {
            let allowance = drift.allowance_ms(ttl_ms);
            let words = format!(
                "ttl_ms is {ttl_ms}, and {allowance} ms are allowed for drift: no validity is left"
            );
            return Err(Error::invalid(words));
        }
        Ok(())
    }
}
