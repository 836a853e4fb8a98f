//! A lock that is held, as Rust programs have it.

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

/// A lock that was taken. It ends when it is unlocked or dropped, or by itself when its time is over: look at
/// [`Lease::is_held`] before each step that has to be guarded.
///
/// # When it is dropped
///
/// The lock is released without waiting: the request is handed to the connections that are up, and nobody hears
/// whether it has arrived. Where a server cannot be asked at that moment, whoever drives the manager next does it; if
/// nobody does, the key ends with its TTL. To know that the lock is released, use [`Lease::unlock`]. In a forked
/// child, dropping the parent's lease does nothing.
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

    pub(super) fn set_plain(&mut self, plain: PlainLease) {
        self.plain = plain;
    }

    /// Whether the lock is held now, by this machine's clock.
    pub fn is_held(&self) -> bool {
        self.plain.is_held()
    }

    /// For how long it is valid from now on, if it is not extended; rounded down to milliseconds, zero if it is not
    /// held.
    pub fn remaining(&self) -> Duration {
        duration(self.plain.remaining_ms())
    }

    /// For how long it was valid when it was granted or last extended by a call.
    pub fn validity(&self) -> Duration {
        duration(self.plain.validity_ms())
    }

    /// What is locked.
    pub fn resource(&self) -> &[u8] {
        self.plain.resource()
    }

    /// The number of this lock among all of its resource, if the manager has them ([`super::Builder::fencing`]): at
    /// most 2^53. Hand it to what the lock guards, which refuses a number that is smaller than one it has seen.
    pub fn fencing_token(&self) -> Option<NonZeroU64> {
        u64::try_from(self.plain.fencing_token()).ok().and_then(NonZeroU64::new)
    }

    /// Whether others may have the lock at the same time, who share it, too ([`super::Options::shared`],
    /// [`Lease::downgrade`]).
    pub fn is_shared(&self) -> bool {
        self.plain.is_shared()
    }

    /// Words about servers that could not take part when it was taken or last extended by a call; empty if all could.
    pub fn absent(&self) -> &str {
        self.plain.absent()
    }

    /// Gives the lock a new TTL from now on; a shorter one is no change.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: it is not held any more. [`crate::Status::Unreachable`]: too few servers answered; the
    /// lock is valid until its old end.
    pub fn extend(&mut self, ttl: Duration) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        shared.core.extend(&mut self.plain, ms(ttl))
    }

    /// Makes a shared lock of one that is exclusive: its holder goes on as a reader, and nobody else can have it alone in
    /// between. It keeps its end. There is no way back: two readers that both wanted to be writers would wait for each
    /// other.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: it is not held any more. [`crate::Status::Unreachable`]: too few servers answered; the
    /// lock is held still, and if [`Lease::is_shared`] says so, as a shared one. [`crate::Status::InvalidArgument`]: it
    /// is a permit, or of several resources.
    pub fn downgrade(&mut self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        shared.core.downgrade(&mut self.plain)
    }

    /// Asks the servers whether a quorum has the lock for `least` still.
    ///
    /// # Errors
    ///
    /// [`crate::Status::TooShort`]: it is held, but not for so long. [`crate::Status::Lost`],
    /// [`crate::Status::Unreachable`].
    pub fn confirm(&mut self, least: Duration) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        shared.core.confirm(&mut self.plain, ms(least))
    }

    /// Releases the lock, and waits until a quorum was told.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: it had ended before, and perhaps somebody else had it meanwhile.
    /// [`crate::Status::Unreachable`]: too few servers could be told; it may be called again.
    pub fn unlock(&mut self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        shared.core.unlock(&mut self.plain)
    }

    /// Has the lock extended again and again from now on, as [`super::Options::keep_alive`] does.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: it is not held. [`crate::Status::InvalidArgument`]: nobody drives the manager.
    pub fn keep_alive(&mut self) -> Result<(), Error> {
        self.shared.check_driven("a lock is to be kept")?;
        let tag = Tag::Kept(Arc::clone(&self.news)).boxed();
        self.shared.core.keep_alive(&mut self.plain, tag)
    }

    /// The news that the lock cannot be kept: a future, and a flag.
    pub fn lost(&self) -> Lost {
        Lost::new(&self.news)
    }

    /// Gives the lock away: makes a ticket, by which another process takes it over ([`super::Manager::adopt`]). No
    /// I/O. The lock stays on the servers, and ends with its TTL if nobody takes it over. This lease holds nothing any
    /// more.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: it is not held.
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
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("resource", &String::from_utf8_lossy(self.resource()))
            .field("remaining", &self.remaining())
            .finish()
    }
}
