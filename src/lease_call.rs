//! The checks that every call on a lease makes before it asks any server, and the update of the lease
//! afterwards. They are the same for calls that a thread waits for and calls that no thread waits for.

use std::sync::Arc;

use crate::argument::Argument;
use crate::check;
use crate::error::{Error, Status};
use crate::keeper::Keeper;
use crate::lease::Lease;
use crate::lock::{Lock, Phase, View};
use crate::lock_kind::{LockKind, Target};
use crate::lock_ticket::LockTicket;
use crate::moment::Moment;
use crate::operation::acquire::{Acquire, Keeping, Plan, Wanted};
use crate::operation::adopt::Adopt;
use crate::operation::confirm::Confirm;
use crate::operation::downgrade::Downgrade;
use crate::operation::extend::Extend;
use crate::operation::leave::Leave;
use crate::operation::release::Release;
use crate::operation::{End, Ended, Operation};
use crate::runtime::Runtime;
use crate::system::entropy::SystemEntropy;
use crate::token::Token;

/// A checked call: its operation, and how its end changes the lease.
pub(crate) struct Begun {
    pub(crate) operation: Box<dyn Operation>,
    pub(crate) then: Then,
}

/// How the lease changes when the operation has ended.
pub(crate) enum Then {
    Hold,
    Extend(View),
    Clear(View),
    /// The holder leaves an inner level.
    Leave,
    Note(View),
}

/// The lock that a caller demands.
pub(crate) struct Demand<'a> {
    pub(crate) resource: &'a [u8],
    pub(crate) kind: LockKind,
    pub(crate) ttl_ms: i64,
    pub(crate) plan: Plan,
    /// The thread that waits for it, if one does.
    pub(crate) thread: Option<usize>,
}

impl Runtime {
    /// How long to go on with tries, if the caller wants to wait for `wait_ms` milliseconds.
    pub(crate) fn plan(&self, wait_ms: i64) -> Plan {
        match wait_ms {
            0 => Plan::Tries(1),
            ..0 => Plan::Until(Moment::NEVER),
            _ => Plan::Until(self.now().plus_ms(wait_ms)),
        }
    }

    pub(crate) fn check_demand(&self, demand: &Demand<'_>) -> Result<(), Error> {
        // Of several resources, each is checked separately, and an error names it by its place.
        if !matches!(demand.kind, LockKind::Several(_)) {
            check::resource(demand.resource)?;
        }
        check::kind(&demand.kind, demand.resource, self.settings().has_fencing())?;
        check::ttl(demand.ttl_ms, self.settings().drift())
    }

    /// Empties the lease, and begins to acquire a lock for it. The demand must have been checked.
    pub(crate) fn begin_acquire(
        &self,
        demand: &Demand<'_>,
        keeping: Option<Keeping>,
        lease: &mut Lease,
    ) -> Result<Begun, Error> {
        self.check_free(lease, Some(demand))?;
        let &Demand { resource, ref kind, ttl_ms, plan, thread } = demand;
        self.warn_of(ttl_ms);
        lease.begin(resource);
        lease.kind = kind.clone();
        let wanted = Wanted {
            target: Target::new(Arc::clone(&lease.resource), kind.clone()),
            ttl_ms,
            plan,
            thread,
            keeping: keeping.map(Box::new),
        };
        let operation = Box::new(Acquire::new(wanted, Token::draw(&SystemEntropy)?));
        Ok(Begun { operation, then: Then::Hold })
    }

    /// Begins to extend a lock that this lease holds, or, with this number of tries, a lock that it will hold.
    pub(crate) fn begin_extend(
        &self,
        lock: &Arc<Lock>,
        ttl_ms: i64,
        tries: i64,
    ) -> Result<Begun, Error> {
        let view = self.view(lock)?;
        self.warn_of(ttl_ms);
        let operation = Box::new(Extend::new(view.clone(), ttl_ms).with_tries(tries));
        Ok(Begun { operation, then: Then::Extend(view) })
    }

    pub(crate) fn begin_unlock(&self, lease: &Lease) -> Result<Begun, Error> {
        self.begin_release(lease, Moment::from_nanos(0))
    }

    fn begin_release(&self, lease: &Lease, stays_until: Moment) -> Result<Begun, Error> {
        let view = self.view(lease.required_lock()?)?;
        if lease.inner_levels > 0 {
            return Ok(Begun { operation: Box::new(Leave::new(view)), then: Then::Leave });
        }
        self.continued().forget(view.held_lock());
        // From now on nobody is told that the lock cannot be kept, even if it was lost before.
        lease.keeper.iter().for_each(Keeper::give_up);
        let operation = Box::new(Release::new(view.clone()).after(stays_until));
        Ok(Begun { operation, then: Then::Clear(view) })
    }

    /// Begins to release a lock whose keys stay until `least_ms` after it was taken.
    pub(crate) fn begin_unlock_after(&self, lease: &Lease, least_ms: i64) -> Result<Begun, Error> {
        let lock = lease.required_lock()?;
        let ttl_ms = lock.ttl_ms();
        Error::check_time(Argument::HoldAtLeast, least_ms, 0..=ttl_ms)?;
        if lock.is_shared() || lock.slot().is_some() {
            let words =
                "not possible for shared locks and permits: other holders use the same keys";
            return Err(Error::invalid(words));
        }
        self.begin_release(lease, lock.asked_at().plus_ms(least_ms))
    }

    /// Empties the lease for the lock of a ticket, if the ticket can be read.
    pub(crate) fn begin_adopt(&self, ticket: &[u8], lease: &mut Lease) -> Result<Begun, Error> {
        let ticket = LockTicket::read(ticket)?;
        self.check_free(lease, None)?;
        lease.begin_for(&ticket.target);
        Ok(Begun { operation: Box::new(Adopt::new(ticket)), then: Then::Hold })
    }

    /// Checks that the lease may be used for another lock.
    fn check_free(&self, lease: &Lease, wanted: Option<&Demand<'_>>) -> Result<(), Error> {
        let Some(lock) = lease.own_lock()?.filter(|lock| lock.is_held(self.now())) else {
            return Ok(());
        };
        let is_same = |demand: &&Demand<'_>| {
            demand.kind == LockKind::Exclusive && *demand.resource == **lock.resource()
        };
        match wanted.filter(is_same) {
            Some(_) if lock.is_shared() => Err(upgrade()),
            _ => Err(Error::invalid("the lease still holds a lock: unlock it first")),
        }
    }

    pub(crate) fn begin_confirm(&self, lease: &Lease, least_ms: i64) -> Result<Begun, Error> {
        Error::check_time(Argument::Least, least_ms, 0..=i64::MAX)?;
        let view = self.view(lease.required_lock()?)?;
        let operation = Box::new(Confirm::new(view.clone(), least_ms));
        Ok(Begun { operation, then: Then::Note(view) })
    }

    /// Updates the lease with the result of the operation.
    pub(crate) fn finish(&self, then: Then, end: End, lease: &mut Lease) -> Result<(), Error> {
        lease.is_new = matches!(then, Then::Hold);
        match then {
            Then::Hold => match end {
                Ok(Ended::Acquired { lock, absent, keeper }) => {
                    lease.keeper = keeper;
                    lease.keep(lock, absent, self.now());
                    Ok(())
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            },
            Then::Extend(view) => self.finish_extension(&view, end, lease),
            Then::Clear(view) => {
                if view.held_lock().is_over() || view.held_lock().is_detached() {
                    lease.clear();
                }
                lease.absent = words(end)?;
                Ok(())
            }
            Then::Leave => {
                let outcome = words(end);
                let is_left = !matches!(&outcome, Err(it) if it.status() == Status::Cancelled);
                lease.inner_levels -= u32::from(is_left && lease.inner_levels > 0);
                lease.absent = outcome?;
                Ok(())
            }
            Then::Note(view) => {
                if view.held_lock().has_ended() {
                    self.continued().forget(view.held_lock());
                }
                lease.absent = words(end)?;
                Ok(())
            }
        }
    }

    /// The last step of every call that reports a held lock, whoever gets the report: a lock counts only if it is held
    /// when the caller gets the result. A logger, an event loop or an executor may have taken its time since the servers
    /// answered. If the lock has ended, the call fails, and what is left of the lock is released without waiting.
    pub(crate) fn in_time(&self, lease: &mut Lease) -> Result<(), Error> {
        match &lease.lock {
            Some(lock) if lease.is_over() => {
                if !lease.is_new {
                    // The holder does not release the lock here. The keep-alive must report that it was lost.
                    lock.pass_to(Phase::Lost);
                } else if let Some(keeper) = &lease.keeper {
                    // The caller was never told that it holds the lock, so it is not told that the lock was lost.
                    keeper.give_up();
                }
                self.continued().forget(lock);
            }
            _ => return Ok(()),
        }
        self.discard(lease);
        lease.clear();
        let status = if lease.is_new { Status::TooSlow } else { Status::Lost };
        Err(Error::new(status, "the lock ended before the program read the result of the call"))
    }

    fn finish_extension(&self, view: &View, end: End, lease: &mut Lease) -> Result<(), Error> {
        let (lock, now) = (view.held_lock(), self.now());
        let error = match words(end) {
            Ok(absent) => {
                lease.keep(Arc::clone(lock), absent, now);
                return Ok(());
            }
            Err(error) => error,
        };
        if lock.has_ended() {
            self.continued().forget(lock);
            lease.clear();
        } else if lease.lock.is_none() {
            // A lock that was valid stays valid, and a fresh lease can hold it.
            lease.keep(Arc::clone(lock), String::new(), now);
        }
        Err(error)
    }

    /// The lock, with the servers in the order of this manager.
    pub(crate) fn view(&self, lock: &Arc<Lock>) -> Result<View, Error> {
        let other = || {
            Error::invalid("the lock is on other servers or databases than those of this manager")
        };
        View::new(lock, self.roster()).ok_or_else(other)
    }
}

/// The error of a call that would turn a shared lock into an exclusive one.
pub(crate) fn upgrade() -> Error {
    Error::invalid(
        "the lease holds the lock shared, and a shared lock cannot be upgraded (two holders would wait for each other): \
         unlock it first",
    )
}

/// The text about servers that could not take part, of an operation that has no other result.
pub(crate) fn words(end: End) -> Result<String, Error> {
    match end {
        Ok(
            Ended::Extended { absent }
            | Ended::Confirmed { absent }
            | Ended::Released { absent }
            | Ended::Connected { absent },
        ) => Ok(absent),
        Ok(_) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Shared locks.
impl Runtime {
    pub(crate) fn begin_downgrade(&self, lease: &Lease) -> Result<Begun, Error> {
        let lock = lease.required_lock()?;
        let words = match lock.target().kind {
            LockKind::Exclusive | LockKind::Shared => None,
            LockKind::Several(_) => Some("a lock of several resources cannot be shared"),
            LockKind::Permit { .. } => Some("a semaphore permit cannot be shared"),
        };
        if let Some(words) = words {
            return Err(Error::invalid(words));
        }
        let view = self.view(lock)?;
        let operation = Box::new(Downgrade::new(view.clone()));
        Ok(Begun { operation, then: Then::Extend(view) })
    }
}
