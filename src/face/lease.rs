//! A held lock, for Rust programs.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::lost::{Lost, News};
use super::shared::Shared;
use super::slot::Tag;
use super::ticket::Ticket;
use super::time::{duration, ms};
use crate::error::Error;
use crate::lease::Lease as PlainLease;

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
        let shared = Arc::clone(&self.shared);
        shared.core.extend(&mut self.plain, ms(ttl))
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
        let shared = Arc::clone(&self.shared);
        shared.core.downgrade(&mut self.plain)
    }

    /// Asks the servers whether a quorum still holds the lock for at least `least`.
    ///
    /// # Errors
    ///
    /// [`crate::Status::TooShort`]: the lock is held, but not for that long. [`crate::Status::Lost`],
    /// [`crate::Status::Unreachable`].
    pub fn confirm(&mut self, least: Duration) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        shared.core.confirm(&mut self.plain, ms(least))
    }

    /// Releases the lock, and waits until a quorum has been told.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: the lock had already ended, and another client may have held it in between.
    /// [`crate::Status::Unreachable`]: too few servers could be told; the caller may call this again.
    pub fn unlock(&mut self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        shared.core.unlock(&mut self.plain)
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
        let shared = Arc::clone(&self.shared);
        shared.core.unlock_after(&mut self.plain, ms(least))
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
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.plain.hold.as_ref().is_some_and(|hold| hold.is_ours()) {
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
