//! The calls on a lease, as data: what a caller asks for, how that begins, and what its end changes in the lease.
//!
//! All faces make their calls in this way, and there are two ways to make one. [`Call::run`]: a thread waits for the end.
//! [`Call::submit`]: no thread waits, and the end is an [`crate::manager::event::Event`].

use std::sync::Arc;

use crate::engine::call_handle::CallHandle;
use crate::manager::conclusion::{Conclusion, Effect};
use crate::manager::event::{self, Tag};
use crate::manager::lease::Lease;
use crate::manager::runtime::Runtime;
use crate::protocol::argument::Argument;
use crate::protocol::check;
use crate::protocol::error::Error;
use crate::protocol::keeper::Keeper;
use crate::protocol::lock::Lock;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::lock_ticket::LockTicket;
use crate::protocol::moment::Moment;
use crate::protocol::operation::Operation;
use crate::protocol::operation::acquire::{Acquire, Plan, Wanted};
use crate::protocol::operation::adopt::Adopt;
use crate::protocol::operation::confirm::Confirm;
use crate::protocol::operation::downgrade::Downgrade;
use crate::protocol::operation::extend::Extend;
use crate::protocol::operation::leave::Leave;
use crate::protocol::operation::release::Release;
use crate::protocol::token::Token;
use crate::system::entropy::SystemEntropy;
use crate::system::process::this_thread;

/// What a caller asks for. Times are in milliseconds.
pub enum Call<'a> {
    /// Takes a lock.
    Acquire(AcquireOptions<'a>),
    /// Takes an exclusive lock, or extends it if this lease holds it, or another lease that continued it on this
    /// manager. It tries as often as the settings say.
    Continue {
        /// The name of what to lock.
        resource: &'a [u8],
        /// How long the lock lasts from now on.
        ttl_ms: i64,
    },
    /// Gives a lock a new TTL.
    Extend {
        /// How long the lock lasts from now on.
        ttl_ms: i64,
    },
    /// Asks the servers whether a lock is still held.
    Confirm {
        /// For at least this long.
        least_ms: i64,
    },
    /// Turns an exclusive lock into a shared lock.
    Downgrade,
    /// Releases a lock, or leaves its innermost level.
    Unlock,
    /// Releases a lock whose keys stay for a while.
    UnlockAfter {
        /// How long they stay, counted from when the lock was taken.
        least_ms: i64,
    },
    /// Takes over the lock of a ticket.
    Adopt {
        /// The text that the holder got when it gave the lock away.
        ticket: &'a [u8],
    },
}

/// How to take a lock.
pub struct AcquireOptions<'a> {
    /// The name of what to lock.
    pub resource: &'a [u8],
    /// How many callers may hold the lock at the same time.
    pub kind: LockKind,
    /// How long the lock lasts unless it is extended or released.
    pub ttl_ms: i64,
    /// How long to try.
    pub patience: Patience,
    /// To keep the lock alive: the tag of the event that reports that it cannot be kept.
    pub keep: Option<Tag>,
}

/// How long to try to take a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// This number of tries.
    Tries(i64),
    /// As many tries as the settings say.
    TriesOfSettings,
    /// For this many milliseconds. 0: one attempt. Negative: until the lock is taken.
    Ms(i64),
}

/// A call that has begun: its operation, and what its end changes.
struct Begun {
    operation: Box<dyn Operation>,
    ending: Conclusion,
}

impl<'a> Call<'a> {
    /// One attempt to take an exclusive lock. Callers change what they want otherwise.
    pub fn acquire(resource: &'a [u8], ttl_ms: i64) -> AcquireOptions<'a> {
        let kind = LockKind::Exclusive;
        AcquireOptions { resource, kind, ttl_ms, patience: Patience::Tries(1), keep: None }
    }

    /// Whether the call is for a lock that the lease does not hold yet.
    pub(crate) fn takes(&self) -> bool {
        matches!(self, Self::Acquire(_) | Self::Continue { .. } | Self::Adopt { .. })
    }

    /// Whether the lock that the call takes is to be kept alive.
    pub(crate) fn keeps(&self) -> bool {
        matches!(self, Self::Acquire(options) if options.keep.is_some())
    }

    /// Makes the call on this thread, and waits for its end.
    pub(crate) fn run(self, runtime: &Runtime, lease: &mut Lease) -> Result<(), Error> {
        let plan = self.plan(runtime);
        self.check(runtime)?;
        // From now on the call can be cancelled.
        let underway = Underway::begin(runtime, lease);
        let Begun { operation, ending } =
            self.begin(runtime, lease, (plan, Some(this_thread())))?;
        if ending.takes() {
            // This also asks for servers that the quorum does not need: a release that another client waits for may
            // still have to reach such a server.
            runtime.ask_for_passwords();
            runtime.check_process()?;
        }
        let end = runtime.run(operation, Some(&underway.0));
        drop(underway);
        runtime.check_process()?;
        ending.apply(runtime, end, lease)
    }

    /// Begins the call. The event of its end has the lease, and this tag.
    pub(crate) fn submit(self, runtime: &Runtime, mut lease: Lease, tag: Tag) -> Result<(), Error> {
        let plan = self.plan(runtime);
        self.check(runtime)?;
        let Begun { operation, ending } = self.begin(runtime, &mut lease, (plan, None))?;
        event::submit(runtime, operation, ending, lease, tag);
        Ok(())
    }

    /// How long to go on with tries. The time of a caller that waits counts from here.
    fn plan(&self, runtime: &Runtime) -> Plan {
        match self {
            Self::Acquire(options) => options.patience.plan(runtime),
            Self::Continue { .. } => Patience::TriesOfSettings.plan(runtime),
            _ => Plan::Tries(1),
        }
    }

    /// Checks what can be checked without the lease.
    fn check(&self, runtime: &Runtime) -> Result<(), Error> {
        let policy = runtime.settings().policy();
        match self {
            Self::Acquire(options) => {
                let AcquireOptions { resource, kind, ttl_ms, .. } = options;
                // Of several resources, each is checked separately, and an error names it by its place.
                if !matches!(kind, LockKind::Several(_)) {
                    check::resource(resource)?;
                }
                check::kind(kind, resource, policy.has_fencing())?;
                check::ttl(*ttl_ms, policy.drift())
            }
            Self::Continue { resource, ttl_ms } => {
                check::resource(resource)?;
                check::ttl(*ttl_ms, policy.drift())
            }
            Self::Extend { ttl_ms } => check::ttl(*ttl_ms, policy.drift()),
            Self::Confirm { least_ms } => {
                Error::check_time(Argument::Least, *least_ms, 0..=i64::MAX)
            }
            Self::Downgrade | Self::Unlock | Self::UnlockAfter { .. } | Self::Adopt { .. } => {
                Ok(())
            }
        }
    }

    /// Begins the call: checks the lease, and empties it if it is to hold another lock. If this fails, the lease is
    /// as before. `by`: how long to try, and the thread that waits, if one does.
    fn begin(
        self,
        runtime: &Runtime,
        lease: &mut Lease,
        by: (Plan, Option<usize>),
    ) -> Result<Begun, Error> {
        match self {
            Self::Acquire(options) => options.begin(runtime, lease, by),
            Self::Continue { resource, ttl_ms } => {
                begin_to_continue(runtime, lease, (resource, ttl_ms), by)
            }
            Self::Extend { ttl_ms } => {
                begin_to_extend(runtime, lease.required_lock()?, ttl_ms, by.0)
            }
            Self::Confirm { least_ms } => {
                let view = runtime.view(lease.required_lock()?)?;
                let operation = Confirm::new(view.clone(), least_ms);
                Ok(Begun::new(operation, Effect::Note(view)))
            }
            Self::Downgrade => begin_to_downgrade(runtime, lease),
            Self::Unlock => begin_to_release(runtime, lease, Moment::from_nanos(0)),
            Self::UnlockAfter { least_ms } => begin_to_release_after(runtime, lease, least_ms),
            Self::Adopt { ticket } => {
                let ticket = LockTicket::read(ticket)?;
                check_free(runtime, lease, None)?;
                lease.begin_for(&ticket.target);
                Ok(Begun::new(Adopt::new(ticket), Effect::Take))
            }
        }
    }
}

impl Patience {
    fn plan(self, runtime: &Runtime) -> Plan {
        match self {
            Self::Tries(tries) => Plan::Tries(tries),
            Self::TriesOfSettings => Plan::Tries(runtime.settings().policy().retry_count()),
            Self::Ms(0) => Plan::Tries(1),
            Self::Ms(..0) => Plan::Until(Moment::NEVER),
            Self::Ms(wait_ms) => Plan::Until(runtime.now().plus_ms(wait_ms)),
        }
    }
}

impl AcquireOptions<'_> {
    fn begin(
        self,
        runtime: &Runtime,
        lease: &mut Lease,
        (plan, thread): (Plan, Option<usize>),
    ) -> Result<Begun, Error> {
        let Self { resource, kind, ttl_ms, keep, .. } = self;
        check_free(runtime, lease, Some((resource, &kind)))?;
        let token = Token::draw(&SystemEntropy)?;
        runtime.warn_of(ttl_ms);
        lease.begin(resource);
        lease.kind = kind.clone();
        let target = Target::new(Arc::clone(&lease.resource), kind);
        let keeping = keep.map(|tag| Box::new(event::keeping(tag)));
        let wanted = Wanted { target, ttl_ms, plan, thread, keeping };
        Ok(Begun::new(Acquire::new(wanted, token), Effect::Take))
    }
}

/// Checks that the lease may be used for another lock: this one, if it is known.
fn check_free(
    runtime: &Runtime,
    lease: &Lease,
    wanted: Option<(&[u8], &LockKind)>,
) -> Result<(), Error> {
    let Some(lock) = lease.own_lock()?.filter(|lock| lock.is_held(runtime.now())) else {
        return Ok(());
    };
    let is_same = |(resource, kind): &(&[u8], &LockKind)| {
        **kind == LockKind::Exclusive && **resource == **lock.resource()
    };
    match wanted.filter(is_same) {
        Some(_) if lock.is_shared() => Err(upgrade()),
        _ => Err(Error::invalid("the lease still holds a lock: unlock it first")),
    }
}

fn begin_to_continue(
    runtime: &Runtime,
    lease: &mut Lease,
    (resource, ttl_ms): (&[u8], i64),
    by: (Plan, Option<usize>),
) -> Result<Begun, Error> {
    let now = runtime.now();
    let lock = match lease.own_lock()? {
        Some(lock) if lock.is_held(now) && !is_lock_of(lock, resource) => {
            return Err(Error::invalid("the lease still holds another resource: unlock it first"));
        }
        Some(lock) if lock.is_held(now) && lock.slot().is_some() => {
            return Err(Error::invalid("the lease holds a semaphore permit: extend it instead"));
        }
        Some(lock) if lock.is_held(now) => Some(Arc::clone(lock)),
        _ => runtime.continued().find(resource, now),
    };
    let Begun { operation, ending } = match lock {
        Some(lock) if lock.is_shared() => return Err(upgrade()),
        Some(lock) => {
            let begun = begin_to_extend(runtime, &lock, ttl_ms, by.0)?;
            // If this is the same lock, its keep-alive goes on. Another lock is not kept alive.
            let is_same = lease.lock.as_ref().is_some_and(|own| Arc::ptr_eq(own, &lock));
            let keeper = lease.keeper.take().filter(|_| is_same);
            let inner_levels = if is_same { lease.inner_levels } else { 0 };
            lease.begin(resource);
            (lease.keeper, lease.inner_levels) = (keeper, inner_levels);
            begun
        }
        None => {
            lease.begin(resource);
            Call::acquire(resource, ttl_ms).begin(runtime, lease, by)?
        }
    };
    Ok(Begun { operation, ending: ending.continued(now) })
}

/// Whether it is a lock of this resource alone.
fn is_lock_of(lock: &Lock, resource: &[u8]) -> bool {
    matches!(lock.target().names(), [only] if **only == *resource)
}

/// Begins to extend a lock that this lease holds, or a lock that it will hold.
fn begin_to_extend(
    runtime: &Runtime,
    lock: &Arc<Lock>,
    ttl_ms: i64,
    plan: Plan,
) -> Result<Begun, Error> {
    let view = runtime.view(lock)?;
    runtime.warn_of(ttl_ms);
    let tries = if let Plan::Tries(tries) = plan { tries } else { 1 };
    let operation = Extend::new(view.clone(), ttl_ms).with_tries(tries);
    Ok(Begun::new(operation, Effect::Change(view)))
}

fn begin_to_downgrade(runtime: &Runtime, lease: &Lease) -> Result<Begun, Error> {
    let lock = lease.required_lock()?;
    let words = match lock.target().kind {
        LockKind::Exclusive | LockKind::Shared => None,
        LockKind::Several(_) => Some("a lock of several resources cannot be shared"),
        LockKind::Permit { .. } => Some("a semaphore permit cannot be shared"),
    };
    if let Some(words) = words {
        return Err(Error::invalid(words));
    }
    let view = runtime.view(lock)?;
    Ok(Begun::new(Downgrade::new(view.clone()), Effect::Change(view)))
}

/// Begins to release a lock whose keys stay until `least_ms` after it was taken.
fn begin_to_release_after(runtime: &Runtime, lease: &Lease, least_ms: i64) -> Result<Begun, Error> {
    let lock = lease.required_lock()?;
    Error::check_time(Argument::HoldAtLeast, least_ms, 0..=lock.ttl_ms())?;
    if lock.is_shared() || lock.slot().is_some() {
        let words = "not possible for shared locks and permits: other holders use the same keys";
        return Err(Error::invalid(words));
    }
    begin_to_release(runtime, lease, lock.asked_at().plus_ms(least_ms))
}

fn begin_to_release(runtime: &Runtime, lease: &Lease, stays_until: Moment) -> Result<Begun, Error> {
    let view = runtime.view(lease.required_lock()?)?;
    if lease.inner_levels > 0 {
        return Ok(Begun::new(Leave::new(view), Effect::Leave));
    }
    runtime.continued().forget(view.held_lock());
    // From now on nobody is told that the lock cannot be kept, even if it was lost before.
    lease.keeper.iter().for_each(Keeper::give_up);
    let operation = Release::new(view.clone()).after(stays_until);
    Ok(Begun::new(operation, Effect::Release(view)))
}

impl Begun {
    fn new(operation: impl Operation + 'static, effect: Effect) -> Self {
        Self { operation: Box::new(operation), ending: Conclusion::new(effect) }
    }
}

/// The error of a call that would turn a shared lock into an exclusive one.
fn upgrade() -> Error {
    Error::invalid(
        "the lease holds the lock shared, and a shared lock cannot be upgraded (two holders would wait for each other): \
         unlock it first",
    )
}

/// A call of this thread that can be cancelled.
struct Underway(Arc<CallHandle>);

impl Underway {
    fn begin(runtime: &Runtime, lease: &Lease) -> Self {
        lease.call.begin(runtime.number());
        Self(Arc::clone(&lease.call))
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.end();
    }
}
