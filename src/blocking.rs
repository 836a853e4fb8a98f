//! The calls that block: each checks what it was given, runs an operation, and makes the lease say what has
//! come of it.

use std::sync::Arc;

use crate::check;
use crate::error::{Error, Status};
use crate::held_lock::{HeldLock, View};
use crate::lease::Lease;
use crate::moment::Moment;
use crate::operation::acquire::{Acquire, Plan, Wanted};
use crate::operation::confirm::Confirm;
use crate::operation::connect::Connect;
use crate::operation::extend::Extend;
use crate::operation::inspect::Inspect;
use crate::operation::release::Release;
use crate::operation::{Ended, Failed, Operation};
use crate::process_state::ProcessState;
use crate::system::entropy::SystemEntropy;
use crate::system::process::this_thread;
use crate::token::Token;

impl ProcessState {
    /// Connects now. Returns the words about servers that are not up.
    pub(crate) fn connect(&self, timeout_ms: i64) -> Result<String, Error> {
        if timeout_ms < 0 {
            return Err(Error::invalid(format!("timeout_ms is {timeout_ms}, less than 0")));
        }
        self.words(Connect::new(timeout_ms))
    }

    pub(crate) fn lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.acquire(Plan::Tries(self.settings().retry_count()), None, resource, ttl_ms, lease)
    }

    pub(crate) fn try_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.acquire(self.plan(wait_ms), None, resource, ttl_ms, lease)
    }

    /// The same, of which this call does no more than a slice of so many milliseconds. A lease that has
    /// left off goes on where it was.
    pub(crate) fn try_lock_slice(
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
            false => self.now().plus_ms(slice_ms),
        };
        self.acquire(self.plan(wait_ms), Some(slice_end), resource, ttl_ms, lease)
    }

    pub(crate) fn continue_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        check::resource(resource)?;
        check::ttl(ttl_ms, self.settings().drift())?;
        let now = self.now();
        let hold = match hold_of(lease)? {
            Some(hold) if hold.is_held(now) && **hold.resource() != *resource => {
                return Err(Error::invalid("the lease still holds another resource"));
            }
            Some(hold) if hold.is_held(now) => Some(Arc::clone(hold)),
            _ => self.continued().find(resource, now),
        };
        let view = hold.map(|hold| self.view(&hold)).transpose()?;
        lease.begin(resource);
        match view {
            Some(view) => {
                let tries = self.settings().retry_count();
                let extension = Extend::new(view.clone(), ttl_ms).with_tries(tries);
                self.run_extension(extension, &view, lease)?;
            }
            None => self.lock(resource, ttl_ms, lease)?,
        }
        if let Some(hold) = &lease.hold {
            self.continued().remember(hold, now);
        }
        Ok(())
    }

    pub(crate) fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Result<(), Error> {
        check::ttl(ttl_ms, self.settings().drift())?;
        let view = self.require_view(lease)?;
        self.run_extension(Extend::new(view.clone(), ttl_ms), &view, lease)
    }

    pub(crate) fn unlock(&self, lease: &mut Lease) -> Result<(), Error> {
        let view = self.require_view(lease)?;
        self.continued().forget(view.hold());
        let outcome = self.words(Release::new(view.clone()));
        self.check_process()?;
        if view.hold().is_over() {
            lease.clear();
        }
        lease.absent = outcome?;
        Ok(())
    }

    pub(crate) fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        if least_ms < 0 {
            return Err(Error::invalid(format!("least_ms is {least_ms}, less than 0")));
        }
        let view = self.require_view(lease)?;
        let outcome = self.words(Confirm::new(view.clone(), least_ms));
        self.check_process()?;
        if view.hold().has_ended() {
            self.continued().forget(view.hold());
        }
        lease.absent = outcome?;
        Ok(())
    }

    pub(crate) fn is_locked(&self, resource: &[u8]) -> Result<bool, Error> {
        check::resource(resource)?;
        // Of a server as well that the quorum does without: it may owe somebody a release.
        self.ask_for_passwords();
        self.check_process()?;
        match self.run(Inspect::new(resource)) {
            Ok(ended) => Ok(matches!(ended, Ended::Inspected { is_locked: true })),
            Err(failed) => Err(failed.error),
        }
    }

    fn plan(&self, wait_ms: i64) -> Plan {
        match wait_ms {
            0 => Plan::Tries(1),
            ..0 => Plan::Until(Moment::NEVER),
            _ => Plan::Until(self.now().plus_ms(wait_ms)),
        }
    }

    /// Who names the end of a slice goes on with the wait that the lease has left off.
    fn acquire(
        &self,
        plan: Plan,
        slice_end: Option<Moment>,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        check::resource(resource)?;
        check::ttl(ttl_ms, self.settings().drift())?;
        self.ask_for_passwords();
        self.check_process()?;
        if hold_of(lease)?.is_some_and(|hold| hold.is_held(self.now())) {
            return Err(Error::invalid("the lease still holds a lock: unlock it first"));
        }
        let goes_on = slice_end.is_some() && matches!(plan, Plan::Until(_));
        let resumed = lease.wait.take().filter(|_| goes_on && *lease.resource == *resource);
        lease.begin(resource);
        let wanted = Wanted {
            resource: Arc::clone(&lease.resource),
            ttl_ms,
            plan,
            slice_end: slice_end.unwrap_or(Moment::NEVER),
            resumed,
            thread: this_thread(),
        };
        match self.run(Acquire::new(wanted, Token::draw(&SystemEntropy)?)) {
            Ok(Ended::Acquired { hold, absent }) => {
                lease.keep(hold, absent, self.now());
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(Failed { error, broken_off }) => {
                lease.wait = broken_off;
                Err(error)
            }
        }
    }

    /// Extends a lock, and makes the lease say what has come of it.
    fn run_extension(
        &self,
        extension: Extend,
        view: &View,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        let outcome = self.words(extension);
        self.check_process()?;
        let (hold, now) = (view.hold(), self.now());
        let error = match outcome {
            Ok(absent) => {
                lease.keep(Arc::clone(hold), absent, now);
                return Ok(());
            }
            Err(error) => error,
        };
        if hold.has_ended() {
            self.continued().forget(hold);
            lease.clear();
        } else if lease.hold.is_none() {
            // What was valid stays valid, and a fresh lease may hold it.
            lease.keep(Arc::clone(hold), String::new(), now);
        }
        Err(error)
    }

    /// Runs an operation that comes to no more than words about servers that could not take part.
    fn words(&self, operation: impl Operation + 'static) -> Result<String, Error> {
        match self.run(operation) {
            Ok(
                Ended::Extended { absent }
                | Ended::Confirmed { absent }
                | Ended::Released { absent }
                | Ended::Connected { absent },
            ) => Ok(absent),
            Ok(_) => Ok(String::new()),
            Err(failed) => Err(failed.error),
        }
    }

    /// The lock of a lease, with the servers in the order of this manager.
    fn require_view(&self, lease: &Lease) -> Result<View, Error> {
        let hold = hold_of(lease)?;
        let lacking = || Error::new(Status::Lost, "the lease holds no lock");
        self.view(hold.ok_or_else(lacking)?)
    }

    fn view(&self, hold: &Arc<HeldLock>) -> Result<View, Error> {
        let other = || {
            Error::invalid("the lock was taken on other servers, or databases, than this manager's")
        };
        View::new(hold, self.roster()).ok_or_else(other)
    }
}

/// The lock of a lease, if it has one, held or not; not one of the parent process.
fn hold_of(lease: &Lease) -> Result<Option<&Arc<HeldLock>>, Error> {
    match &lease.hold {
        Some(hold) if !hold.is_ours() => {
            Err(Error::new(Status::Forked, "the lease belongs to the parent process"))
        }
        hold => Ok(hold.as_ref()),
    }
}
