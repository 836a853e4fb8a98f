//! A held lock, for Rust programs.

use std::fmt;
use std::future::Future;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::lost::{Lost, News};
use super::options::Options;
use super::shared::Shared;
use super::slot;
use super::slot::{Outcome, Slot, Tag};
use super::ticket::Ticket;
use super::time::{duration, ms};
use crate::manager::call::Call;
use crate::manager::canceller::Canceller;
use crate::manager::lease::Lease as PlainLease;
use crate::manager::redlock::KEPT;
use crate::protocol::error::{Error, Status};
use crate::system::clock;

/// A lock that was taken. It ends when it is unlocked or dropped, and by itself when it expires. Check
/// [`Lease::is_held`] before each step that must be guarded.
///
/// # When it is dropped
///
/// The lock is released without waiting. The request is passed to the connections that are up, and the program
/// does not learn whether it has arrived. If a server cannot be asked at that moment, the next thread that
/// drives the manager asks it. If no thread does, the key expires with its TTL. To know that the lock is
/// released, use [`Lease::unlock`]. In a forked child, dropping the parent's lease does nothing.
pub struct Lease {
    shared: Arc<Shared>,
    plain: PlainLease,
    news: Arc<News>,
}

impl Lease {
    pub(super) fn of(shared: Arc<Shared>, plain: PlainLease, news: Arc<News>) -> Self {
        Self { shared, plain, news }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn plain(&self) -> &PlainLease {
        &self.plain
    }

    pub(super) fn plain_mut(&mut self) -> &mut PlainLease {
        &mut self.plain
    }

    pub(super) fn set_plain(&mut self, plain: PlainLease) {
        self.plain = plain;
    }

    /// Whether the lock is held now, by this machine's clock.
    pub fn is_held(&self) -> bool {
        self.plain.is_held()
    }

    /// How long the lock is valid from now on, if it is not extended. Rounded down to milliseconds; zero if the
    /// lock is not held.
    pub fn remaining(&self) -> Duration {
        duration(self.plain.remaining_ms())
    }

    /// The validity of the lock when it was granted or last extended by a call.
    pub fn validity(&self) -> Duration {
        duration(self.plain.validity_ms())
    }

    /// The resource that is locked.
    pub fn resource(&self) -> &[u8] {
        self.plain.resource()
    }

    /// The fencing token, if the manager draws tokens ([`super::Builder::fencing`]): the number of this lock
    /// among all locks of its resource, above 0 and below 2^53. Pass it to the system that the lock guards.
    /// That system must refuse a number that is less than one it has seen.
    pub fn fencing_token(&self) -> Option<NonZeroU64> {
        u64::try_from(self.plain.fencing_token()).ok().and_then(NonZeroU64::new)
    }

    /// Whether other readers can hold the lock at the same time ([`super::Options::shared`],
    /// [`Lease::downgrade`]).
    pub fn is_shared(&self) -> bool {
        self.plain.is_shared()
    }

    /// A message about servers that could not take part when the lock was taken or last extended by a call.
    /// Empty if all could.
    pub fn absent(&self) -> &str {
        self.plain.absent()
    }

    /// Gives the lock a new TTL, counted from now. A shorter TTL changes nothing.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: the lock is not held any more. [`crate::Status::Unreachable`]: too few servers
    /// answered; the lock stays valid until its old expiry.
    pub fn extend(&mut self, ttl: Duration) -> Result<(), Error> {
        self.run(Call::Extend { ttl_ms: ms(ttl) })
    }

    /// Makes an exclusive lock shared. Its holder continues as a reader, and no writer can hold the lock in
    /// between. The lock keeps its expiry. A shared lock cannot be made exclusive, because two readers that
    /// both wanted to become writers would wait for each other.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: the lock is not held any more. [`crate::Status::Unreachable`]: too few servers
    /// answered; the lock is still held, as a shared lock if [`Lease::is_shared`] says so.
    /// [`crate::Status::InvalidArgument`]: the lock is a permit, or covers several resources.
    pub fn downgrade(&mut self) -> Result<(), Error> {
        self.run(Call::Downgrade)
    }

    /// Asks the servers whether a quorum still holds the lock for at least `least`.
    ///
    /// # Errors
    ///
    /// [`crate::Status::TooShort`]: the lock is held, but not for that long. [`crate::Status::Lost`],
    /// [`crate::Status::Unreachable`].
    pub fn confirm(&mut self, least: Duration) -> Result<(), Error> {
        self.run(Call::Confirm { least_ms: ms(least) })
    }

    /// Releases the lock, and waits until a quorum has been told.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: the lock had already ended, and another client may have held it in between.
    /// [`crate::Status::Unreachable`]: too few servers could be told; the caller may call this again.
    pub fn unlock(&mut self) -> Result<(), Error> {
        self.run(Call::Unlock)
    }

    /// Releases the lock, but keeps others out until `least` after it was taken: its keys are not deleted, and end then.
    /// The lease holds nothing from now on, and no waiting client is woken. This is for a job that must run once in a
    /// fleet of machines whose clocks differ. If `least` has passed, this is [`Lease::unlock`].
    ///
    /// # Errors
    ///
    /// As for [`Lease::unlock`], and [`crate::Status::InvalidArgument`]: `least` is longer than the TTL, or the lock is
    /// shared or a permit.
    pub fn unlock_after(&mut self, least: Duration) -> Result<(), Error> {
        self.run(Call::UnlockAfter { least_ms: ms(least) })
    }

    /// Keeps the lock alive from now on, as [`super::Options::keep_alive`] does: it is extended again and
    /// again.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: the lock is not held. [`crate::Status::InvalidArgument`]: nothing drives the
    /// manager.
    pub fn keep_alive(&mut self) -> Result<(), Error> {
        let tag = Tag::Kept(Arc::clone(&self.news)).boxed();
        self.shared.core.keep_alive(&mut self.plain, tag)
    }

    /// Returns the report that the lock cannot be kept alive: a future, and a flag.
    pub fn lost(&self) -> Lost {
        Lost::new(&self.news)
    }

    /// Gives the lock away. Returns a ticket with which another process takes the lock over
    /// ([`super::Manager::adopt`]). No I/O. The lock stays on the servers, and expires with its TTL if nobody
    /// adopts it. After this call the lease holds nothing.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: the lock is not held.
    pub fn detach(&mut self) -> Result<Ticket, Error> {
        let shared = Arc::clone(&self.shared);
        shared.core.detach(&mut self.plain, usize::MAX).map(Ticket::from)
    }

    fn run(&mut self, call: Call<'_>) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        shared.core.run(call, &mut self.plain)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.plain.lock.is_some() && self.plain.is_ours() {
            self.shared.core.discard(&self.plain);
        }
    }
}

impl fmt::Debug for Lease {
    /// Does not show the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("resource", &String::from_utf8_lossy(self.resource()))
            .field("remaining", &self.remaining())
            .finish()
    }
}

impl Lease {
    /// [`Lease::extend`] as a future. Dropping it cancels the call, and the lock stays held.
    pub fn extend_async(&mut self, ttl: Duration) -> Change<'_> {
        Change::new(self, Call::Extend { ttl_ms: ms(ttl) })
    }

    /// [`Lease::confirm`] as a future. Dropping it cancels the call, and the lock stays held.
    pub fn confirm_async(&mut self, least: Duration) -> Change<'_> {
        Change::new(self, Call::Confirm { least_ms: ms(least) })
    }

    /// [`Lease::downgrade`] as a future. Dropping it cancels the call, and the lock stays held. Once the future
    /// was polled, the lock may be shared from then on.
    pub fn downgrade_async(&mut self) -> Change<'_> {
        Change::new(self, Call::Downgrade)
    }

    /// [`Lease::unlock`] as a future. Once it was polled, the lock is being released, even if the future is
    /// then dropped.
    pub fn unlock_async(&mut self) -> Change<'_> {
        Change::new(self, Call::Unlock)
    }

    /// [`Lease::unlock_after`] as a future. Once it was polled, the lock is being released, even if the future is then
    /// dropped.
    pub fn unlock_after_async(&mut self, least: Duration) -> Change<'_> {
        Change::new(self, Call::UnlockAfter { least_ms: ms(least) })
    }
}

const OVER: &str = "the future was polled after its end";

/// Why the manager must be driven.
const POLLED: &str = "a future was polled";

/// A lock that is being taken, or taken over. Dropping this future cancels the call and leaves nothing locked.
#[must_use = "a future does nothing unless it is polled"]
pub struct Acquire {
    shared: Arc<Shared>,
    stage: Stage,
}

enum Stage {
    Options(Box<Options>),
    Ticket(Ticket),
    Pending(Pending, Arc<News>),
    Over,
}

/// A held lock that is being extended, confirmed, downgraded or released.
#[must_use = "a future does nothing unless it is polled"]
pub struct Change<'a> {
    lease: &'a mut Lease,
    stage: ChangeStage,
}

enum ChangeStage {
    Call(Call<'static>),
    Pending(Pending),
    Over,
}

/// A submitted call whose result was not taken yet. If `is_open`, dropping this cancels the call.
struct Pending {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    canceller: Canceller,
    /// Whether there is something to cancel.
    is_open: bool,
}

/// The calls as futures. Each call is submitted when its future is first polled. The driving thread wakes the
/// task.
impl Acquire {
    pub(super) fn of_options(shared: Arc<Shared>, options: Options) -> Self {
        Self { shared, stage: Stage::Options(Box::new(options)) }
    }

    pub(super) fn of_ticket(shared: Arc<Shared>, ticket: Ticket) -> Self {
        Self { shared, stage: Stage::Ticket(ticket) }
    }

    /// Submits the call, if it was not submitted before.
    fn begin(&mut self) -> Result<(), Error> {
        let shared = &self.shared;
        let (pending, news) = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Options(options) => {
                if options.keeps_alive() {
                    shared.core.check_driver(KEPT)?;
                }
                let news = Arc::default();
                let keep = options.keeps_alive().then(|| Tag::Kept(Arc::clone(&news)).boxed());
                (Pending::begin(shared, options.call(keep), PlainLease::new())?, news)
            }
            Stage::Ticket(ticket) => {
                (Pending::begin(shared, ticket.call(), PlainLease::new())?, Arc::default())
            }
            stage => {
                self.stage = stage;
                return Ok(());
            }
        };
        self.stage = Stage::Pending(pending, news);
        Ok(())
    }
}

impl Future for Acquire {
    type Output = Result<Lease, Error>;

    /// # Panics
    ///
    /// If it is polled again after it has returned its result.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let is_new = matches!(self.stage, Stage::Options(_) | Stage::Ticket(_));
        let checked = if is_new { self.shared.core.check_driver(POLLED) } else { Ok(()) };
        if let Err(error) = checked.and_then(|()| self.begin()) {
            return Poll::Ready(Err(error));
        }
        let Stage::Pending(pending, news) = &mut self.stage else {
            panic!("{OVER}");
        };
        let Poll::Ready((plain, outcome)) = pending.poll(context) else { return Poll::Pending };
        let news = Arc::clone(news);
        self.stage = Stage::Over;
        // After a failure the lease is empty.
        Poll::Ready(outcome.map(|()| Lease::of(Arc::clone(&self.shared), plain, news)))
    }
}

impl Acquire {
    /// Waits for the result in this thread, for at most `time`, and returns none if the call is still under way then.
    /// Meanwhile the thread does the work that is due, so no other thread needs to drive the manager. This is for a
    /// thread that must look after other things from time to time: the call goes on between two waits, and keeps its
    /// place in the queue of its resource. Dropping the future cancels the call.
    ///
    /// # Panics
    ///
    /// If the result was returned before.
    pub fn wait_for(&mut self, time: Duration) -> Option<Result<Lease, Error>> {
        if let Err(error) = self.begin() {
            return Some(Err(error));
        }
        let Stage::Pending(pending, news) = &mut self.stage else {
            panic!("{OVER}");
        };
        let (plain, outcome) = match pending.wait_for(time) {
            Ok(ended) => ended?,
            Err(error) => return Some(Err(error)),
        };
        let news = Arc::clone(news);
        self.stage = Stage::Over;
        Some(outcome.map(|()| Lease::of(Arc::clone(&self.shared), plain, news)))
    }
}

impl<'a> Change<'a> {
    fn new(lease: &'a mut Lease, call: Call<'static>) -> Self {
        Self { lease, stage: ChangeStage::Call(call) }
    }

    /// The submitted call. It is submitted with a copy of the lease, for the same lock. The lease keeps its own state
    /// until the call ends, even if this future is dropped.
    fn pending(&mut self) -> Result<&mut Pending, Error> {
        let pending = match std::mem::replace(&mut self.stage, ChangeStage::Over) {
            ChangeStage::Call(call) => {
                let is_cancelled = !matches!(call, Call::Unlock | Call::UnlockAfter { .. });
                let plain = self.lease.plain().with_own_call();
                let mut pending = Pending::begin(self.lease.shared(), call, plain)?;
                pending.is_open = is_cancelled;
                pending
            }
            ChangeStage::Pending(pending) => pending,
            ChangeStage::Over => panic!("{OVER}"),
        };
        self.stage = ChangeStage::Pending(pending);
        match &mut self.stage {
            ChangeStage::Pending(pending) => Ok(pending),
            _ => panic!("{OVER}"),
        }
    }

    /// The call has ended with this lease.
    fn end(&mut self, plain: PlainLease) {
        self.lease.set_plain(plain);
        self.stage = ChangeStage::Over;
    }

    /// Waits for the result in this thread: see [`Acquire::wait_for`]. Returns none if the call is still under way
    /// after `time`.
    ///
    /// # Panics
    ///
    /// If the result was returned before.
    pub fn wait_for(&mut self, time: Duration) -> Option<Result<(), Error>> {
        let (plain, outcome) = match self.pending().and_then(|pending| pending.wait_for(time)) {
            Ok(ended) => ended?,
            Err(error) => return Some(Err(error)),
        };
        self.end(plain);
        Some(outcome)
    }
}

impl Future for Change<'_> {
    type Output = Result<(), Error>;

    /// # Panics
    ///
    /// If it is polled again after it has returned its result.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let is_new = matches!(self.stage, ChangeStage::Call(_));
        let shared = self.lease.shared();
        let checked = if is_new { shared.core.check_driver(POLLED) } else { Ok(()) };
        let ended = match checked.and_then(|()| self.pending()) {
            Ok(pending) => pending.poll(context),
            Err(error) => return Poll::Ready(Err(error)),
        };
        let Poll::Ready((plain, outcome)) = ended else { return Poll::Pending };
        self.end(plain);
        Poll::Ready(outcome)
    }
}

impl Pending {
    fn begin(shared: &Arc<Shared>, call: Call<'_>, plain: PlainLease) -> Result<Self, Error> {
        let slot = Arc::new(Slot::new(call.takes()));
        let canceller = Canceller::from(&plain);
        shared.core.submit(call, plain, Tag::Call(Arc::clone(&slot)).boxed())?;
        Ok(Self { shared: Arc::clone(shared), slot, canceller, is_open: true })
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Outcome> {
        self.slot.poll(context).map(|outcome| self.end(outcome))
    }

    /// Waits for the result in this thread.
    fn wait_for(&mut self, time: Duration) -> Result<Option<Outcome>, Error> {
        let core = &self.shared.core;
        let until = clock::now().plus_ms(ms(time));
        match core.wait(&self.canceller, ms(time)) {
            Ok(Some(event)) => slot::deliver(event, |lease| core.discard(lease)),
            // Another thread has taken the event, and passes it on.
            Err(error) if error.status() == Status::InvalidArgument => {}
            Ok(None) => return Ok(None),
            Err(error) => return Err(error),
        }
        let outcome = self.slot.await_end(until);
        Ok(outcome.map(|outcome| self.end(outcome)))
    }

    /// The future gets this result now, perhaps long after the call ended.
    fn end(&mut self, (mut lease, outcome): Outcome) -> Outcome {
        self.is_open = false;
        let outcome = outcome.and_then(|()| self.shared.core.check_in_time(&mut lease));
        (lease, outcome)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(lease) = self.slot.close() {
            self.shared.core.discard(&lease);
        } else if self.is_open {
            self.shared.core.cancel(&self.canceller);
        }
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acquire")
    }
}

impl fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Change")
    }
}
