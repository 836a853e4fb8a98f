//! The blocking calls. Each runs an operation to its end, on the calling thread.

use std::sync::Arc;

use crate::argument::Argument;
use crate::call::Call;
use crate::check;
use crate::error::Error;
use crate::lease::Lease;
use crate::lease_call::{Begun, Demand, upgrade, words};
use crate::lock::Lock;
use crate::lock_kind::{LockKind, Target};
use crate::lock_ticket::LockTicket;
use crate::moment::Moment;
use crate::operation::Ended;
use crate::operation::acquire::Plan;
use crate::operation::connect::Connect;
use crate::operation::detach::Detach;
use crate::operation::inspect::Inspect;
use crate::operation::inspect_permits::InspectPermits;
use crate::runtime::Runtime;
use crate::submitted::{Tag, keeping};
use crate::system::process::this_thread;
use crate::transport::server::ServerSnapshot;

/// What the servers report about a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// How much longer it is locked, in milliseconds. Below 0: for ever. `None`: it is not locked.
    pub left_ms: Option<i64>,
    /// How many readers hold it, if it is locked in shared mode.
    pub readers: Option<i64>,
    /// A text about the servers that could not report anything.
    pub absent: String,
}

/// What the servers report about a semaphore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// How many permits are taken.
    pub taken: u16,
    /// How much longer the first of these is taken, in milliseconds. Below 0: for ever. `None`: no permit is taken.
    pub left_ms: Option<i64>,
    /// A text about the servers that could not report anything.
    pub absent: String,
}

impl Runtime {
    /// Connects now. Returns a text about the servers that are not up, have no vote, or are not
    /// guarded.
    pub(crate) fn connect(&self, timeout_ms: i64) -> Result<String, Error> {
        Error::check_time(Argument::Timeout, timeout_ms, 0..=i64::MAX)?;
        let absent = words(self.run(Box::new(Connect::new(timeout_ms)), None))?;
        let snapshots = self.snapshots();
        let remarks = snapshots.iter().filter_map(ServerSnapshot::remark);
        let said = Some(absent).filter(|it| !it.is_empty()).into_iter().chain(remarks);
        Ok(said.collect::<Vec<_>>().join(", "))
    }

    pub(crate) fn lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        let plan = Plan::Tries(self.settings().retry_count());
        self.acquire(&Demand { plan, ..demand(resource, ttl_ms) }, None, lease)
    }

    pub(crate) fn try_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        let plan = self.plan(wait_ms);
        self.acquire(&Demand { plan, ..demand(resource, ttl_ms) }, None, lease)
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
        let lock = match lease.own_lock()? {
            Some(lock) if lock.is_held(now) && !is_lock_of(lock, resource) => {
                return Err(Error::invalid(
                    "the lease still holds another resource: unlock it first",
                ));
            }
            Some(lock) if lock.is_held(now) && lock.slot().is_some() => {
                return Err(Error::invalid(
                    "the lease holds a semaphore permit: extend it instead",
                ));
            }
            Some(lock) if lock.is_held(now) => Some(Arc::clone(lock)),
            _ => self.continued().find(resource, now),
        };
        if lock.as_ref().is_some_and(|lock| lock.is_shared()) {
            return Err(upgrade());
        }
        match lock {
            Some(lock) => {
                let begun = self.begin_extend(&lock, ttl_ms, self.settings().retry_count())?;
                // If this is the same lock, its keep-alive goes on. Another lock is not kept alive.
                let is_same = lease.lock.as_ref().is_some_and(|own| Arc::ptr_eq(own, &lock));
                let keeper = lease.keeper.take().filter(|_| is_same);
                let inner_levels = if is_same { lease.inner_levels } else { 0 };
                lease.begin(resource);
                (lease.keeper, lease.inner_levels) = (keeper, inner_levels);
                self.call(begun, lease)?;
            }
            None => {
                lease.begin(resource);
                self.lock(resource, ttl_ms, lease)?;
            }
        }
        if let Some(lock) = &lease.lock {
            self.continued().remember(lock, now);
        }
        Ok(())
    }

    pub(crate) fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Result<(), Error> {
        check::ttl(ttl_ms, self.settings().drift())?;
        let begun = self.begin_extend(lease.required_lock()?, ttl_ms, 1)?;
        self.call(begun, lease)
    }

    pub(crate) fn unlock(&self, lease: &mut Lease) -> Result<(), Error> {
        self.call(self.begin_unlock(lease)?, lease)
    }

    pub(crate) fn unlock_after(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        self.call(self.begin_unlock_after(lease, least_ms)?, lease)
    }

    pub(crate) fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        self.call(self.begin_confirm(lease, least_ms)?, lease)
    }

    /// Gives a lock away. Returns its ticket, which must fit into `room` bytes, including a NUL.
    pub(crate) fn detach(&self, lease: &mut Lease, room: usize) -> Result<String, Error> {
        let view = self.view(lease.required_lock()?)?;
        lease.check_one_level()?;
        let ticket = LockTicket::of(view.held_lock()).to_text();
        if ticket.len() >= room {
            let words = format!(
                "the ticket needs a buffer of {} bytes, but it has {room}",
                ticket.len() + 1
            );
            return Err(Error::invalid(words));
        }
        self.continued().forget(view.held_lock());
        match self.run(Box::new(Detach::new(view)), None) {
            Ok(Ended::Detached) => {
                lease.keeper = None;
                Ok(ticket)
            }
            Ok(_) => Err(Error::invalid("the lock is in use by another call")),
            Err(error) => Err(error),
        }
    }

    /// Takes over the lock of a ticket.
    pub(crate) fn adopt(&self, ticket: &[u8], lease: &mut Lease) -> Result<(), Error> {
        let underway = Underway::begin(self, lease);
        let begun = self.begin_adopt(ticket, lease)?;
        self.ask_for_passwords();
        self.check_process()?;
        self.run_to_end(begun, underway, lease)
    }

    /// How many of the `of` permits are taken, and how much longer the first of them is.
    pub(crate) fn inspect_permits(&self, resource: &[u8], of: u16) -> Result<Permits, Error> {
        check::resource(resource)?;
        let kind = LockKind::Permit { of };
        check::kind(&kind, resource, false)?;
        self.ask_for_passwords();
        self.check_process()?;
        let target = Target { resource: Arc::from(resource), kind };
        match self.run(Box::new(InspectPermits::new(target)), None) {
            Ok(Ended::Counted { taken, first_end, absent }) => {
                Ok(Permits { taken, left_ms: first_end.map(|until| self.left_ms(until)), absent })
            }
            Ok(_) => Ok(Permits::default()),
            Err(error) => Err(error),
        }
    }

    /// Below 0: for ever.
    fn left_ms(&self, until: Moment) -> i64 {
        if until == Moment::NEVER { -1 } else { until.ms_since(self.now()) }
    }

    /// `counts` says whether to report the number of readers, too, if there are any.
    pub(crate) fn inspect(&self, resource: &[u8], counts: bool) -> Result<Inspection, Error> {
        check::resource(resource)?;
        // This also covers servers that the quorum does not need: a release that another client waits for
        // may still have to reach such a server.
        self.ask_for_passwords();
        self.check_process()?;
        let inspect = Inspect::new(resource);
        let inspect = if counts { inspect.with_count() } else { inspect };
        match self.run(Box::new(inspect), None) {
            Ok(Ended::Inspected { locked_until, readers, absent }) => {
                let left_ms = locked_until.map(|until| self.left_ms(until));
                let readers = readers.filter(|_| locked_until.is_some());
                Ok(Inspection { left_ms, readers, absent })
            }
            Ok(_) => Ok(Inspection::default()),
            Err(error) => Err(error),
        }
    }

    /// Acquires a lock. If there is a tag, keeps the lock alive, and reports with this tag if that is no
    /// longer possible.
    pub(crate) fn acquire(
        &self,
        demand: &Demand<'_>,
        keep: Option<Tag>,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.check_demand(demand)?;
        // From now on the call can be cancelled.
        let underway = Underway::begin(self, lease);
        self.ask_for_passwords();
        self.check_process()?;
        let begun = self.begin_acquire(demand, keep.map(keeping), lease)?;
        self.run_to_end(begun, underway, lease)
    }

    pub(crate) fn call(&self, begun: Begun, lease: &mut Lease) -> Result<(), Error> {
        let underway = Underway::begin(self, lease);
        self.run_to_end(begun, underway, lease)
    }

    fn run_to_end(
        &self,
        Begun { operation, then }: Begun,
        underway: Underway,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        let end = self.run(operation, Some(&underway.0));
        drop(underway);
        self.check_process()?;
        self.finish(then, end, lease)
    }
}

/// A call of this thread that can be cancelled.
struct Underway(Arc<Call>);

impl Underway {
    fn begin(state: &Runtime, lease: &Lease) -> Self {
        lease.call.begin(state.number());
        Self(Arc::clone(&lease.call))
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Whether it is a lock of this resource alone.
fn is_lock_of(lock: &Lock, resource: &[u8]) -> bool {
    matches!(lock.target().names(), [only] if **only == *resource)
}

/// The demand of this thread for one attempt.
fn demand(resource: &[u8], ttl_ms: i64) -> Demand<'_> {
    let thread = Some(this_thread());
    let kind = LockKind::Exclusive;
    Demand { resource, kind, ttl_ms, plan: Plan::Tries(1), thread }
}
