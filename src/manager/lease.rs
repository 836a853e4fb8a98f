//! A handle of one lock, which may be held or not.

use std::slice;
use std::sync::Arc;

use crate::engine::call_handle::CallHandle;
use crate::manager::canceller::Canceller;
use crate::protocol::error::{Error, Status};
use crate::protocol::keeper::Keeper;
use crate::protocol::lock::Lock;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::system::clock;
use crate::system::process::{Generation, this_process};

/// A handle of one lock. It is empty, or it holds the lock.
///
/// Dropping a lease releases nothing: a lock ends when it is unlocked, or when it expires.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    /// Lets another thread cancel the call that uses the lease.
    pub(crate) call: Arc<CallHandle>,
    pub(crate) lock: Option<Arc<Lock>>,
    /// The process that took the lock. Only this process may use it.
    process: Generation,
    /// Present if the lock is kept alive.
    pub(crate) keeper: Option<Keeper>,
    pub(crate) resource: Arc<[u8]>,
    pub(crate) kind: LockKind,
    pub(crate) validity_ms: i64,
    pub(crate) absent: String,
    /// Whether the last call took the lock. If that lock ends before the caller has the result, the call was too slow.
    /// After any other call, the lock is lost.
    pub(crate) is_new: bool,
    /// How many unlocks are needed in addition to the last one.
    pub(crate) inner_levels: u32,
}

impl From<&Lease> for Canceller {
    fn from(lease: &Lease) -> Self {
        Self::of(&lease.call)
    }
}

impl Lease {
    /// An empty lease.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the lock is held and valid now, by this machine's clock.
    pub fn is_held(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_held(clock::now())) && self.is_ours()
    }

    /// Whether the lock that a call reports as held is not held any more. A lock that was given away, or that belongs
    /// to the parent process, is not reported as held.
    pub(crate) fn is_over(&self) -> bool {
        let is_over = |lock: &Arc<Lock>| !lock.is_detached() && !lock.is_held(clock::now());
        self.lock.as_ref().is_some_and(is_over) && self.is_ours()
    }

    /// How long the lock is still valid, rounded down; 0 if it is not held.
    pub fn remaining_ms(&self) -> i64 {
        let own = self.lock.as_ref().filter(|_| self.is_ours());
        own.map_or(0, |lock| lock.remaining_ms(clock::now()))
    }

    /// Whether this process took the lock, and did not inherit it from its parent.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == this_process()
    }

    /// How long the lock was valid when it was granted or last extended; 0 if there is no lock.
    pub fn validity_ms(&self) -> i64 {
        self.validity_ms
    }

    /// The resource of the last locking call on this lease, or the first of several.
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// The resources of the last locking call on this lease. There is one, or several that were to be locked
    /// at once, in the order in which they were given. Empty if there was no such call.
    pub fn resources(&self) -> &[Arc<[u8]>] {
        match &self.kind {
            LockKind::Several(names) => names,
            _ if self.resource.is_empty() => &[],
            _ => slice::from_ref(&self.resource),
        }
    }

    /// The token of the lock on the servers, if there is a lock.
    pub fn token(&self) -> Option<&str> {
        self.lock.as_ref().map(|lock| lock.token().as_str())
    }

    /// The fencing token of the lock; 0 if it has none, or if there is no lock.
    pub fn fencing_token(&self) -> i64 {
        self.lock.as_ref().map_or(0, |lock| lock.fencing_token())
    }

    /// Whether others may hold the lock at the same time.
    pub fn is_shared(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_shared())
    }

    /// A message about servers that could not take part in the last call, if the call succeeded anyway. Empty
    /// if all servers took part.
    pub fn absent(&self) -> &str {
        &self.absent
    }

    /// A copy for another call that may be under way at the same time. Each of them is cancelled separately.
    pub(crate) fn with_own_call(&self) -> Self {
        Self { call: Arc::default(), ..self.clone() }
    }

    /// Makes the lease hold a lock that was taken or extended. `absent` describes the servers that did not
    /// take part.
    pub(crate) fn keep(&mut self, lock: Arc<Lock>, absent: String, now: Moment) {
        self.absent = absent;
        self.validity_ms = lock.valid_until().ms_since(now);
        (self.lock, self.process) = (Some(lock), this_process());
    }

    /// Makes the lease empty.
    pub(crate) fn clear(&mut self) {
        self.lock = None;
        self.validity_ms = 0;
        self.absent.clear();
        self.inner_levels = 0;
    }

    /// Makes the lease empty, for a call about this target.
    pub(crate) fn begin_for(&mut self, target: &Target) {
        self.begin(&target.resource);
        self.kind = target.kind.clone();
    }

    /// Makes the lease empty, for a call about this resource.
    pub(crate) fn begin(&mut self, resource: &[u8]) {
        self.clear();
        self.keeper = None;
        self.kind = LockKind::Exclusive;
        if *self.resource != *resource {
            self.resource = Arc::from(resource);
        }
    }
}

/// How many levels a lease may have in addition to the outermost level.
const INNER_LEVELS_MAX: u32 = i32::MAX as u32 - 1;

/// The lock, for calls that use it.
impl Lease {
    /// The lock, if there is one, even if it is no longer held. An error if it belongs to the parent process.
    pub(crate) fn own_lock(&self) -> Result<Option<&Arc<Lock>>, Error> {
        match &self.lock {
            Some(_) if !self.is_ours() => {
                Err(Error::new(Status::Forked, "the lease belongs to the parent process"))
            }
            lock => Ok(lock.as_ref()),
        }
    }

    /// The lock, which must be there, even if it is no longer held.
    pub(crate) fn required_lock(&self) -> Result<&Arc<Lock>, Error> {
        let lacking = || Error::new(Status::Lost, "the lease holds no lock");
        self.own_lock()?.ok_or_else(lacking)
    }
}

/// A lock that is held at several levels: it takes as many unlocks to release it. The lease keeps the count.
impl Lease {
    /// Adds a level, so that one more unlock is needed. No server is asked.
    pub fn retain(&mut self) -> Result<(), Error> {
        self.required_lock()?.check_valid(clock::now())?;
        if self.inner_levels >= INNER_LEVELS_MAX {
            return Err(Error::invalid("the lock has too many levels"));
        }
        self.inner_levels += 1;
        self.absent.clear();
        Ok(())
    }

    /// How many unlocks release the lock of this lease; 0 if it has none.
    pub fn levels(&self) -> u32 {
        match &self.lock {
            Some(_) if self.is_ours() => self.inner_levels + 1,
            _ => 0,
        }
    }

    /// For calls that would take the lock away from the outer levels.
    pub(crate) fn check_one_level(&self) -> Result<(), Error> {
        if self.inner_levels == 0 {
            return Ok(());
        }
        let levels = self.levels();
        let words = format!("the lock is held at {levels} levels: unlock the inner levels first");
        Err(Error::invalid(words))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::protocol::error::Status;
    use crate::protocol::lock::{Lock, Phase};
    use crate::protocol::token::Token;

    fn lease(ttl_ms: i64) -> Lease {
        let token = Token::from_random([7; 20]);
        let lock = Arc::new(Lock::of_one_server(b"r", token, (clock::now(), ttl_ms)));
        let mut lease = Lease::new();
        lease.begin(b"r");
        lease.keep(lock, "words of the call before".to_owned(), clock::now());
        lease
    }

    #[test]
    fn each_level_is_counted() {
        let mut lease = lease(600_000);
        assert_eq!(lease.levels(), 1);
        for level in 2..=5 {
            assert_eq!(lease.retain(), Ok(()));
            assert_eq!(lease.levels(), level);
        }
        assert!(lease.absent().is_empty(), "words of a call before");
    }

    #[test]
    fn a_lost_or_empty_lease_has_no_levels() {
        let mut empty = Lease::new();
        assert_eq!(empty.levels(), 0);
        assert_eq!(empty.retain().map_err(|it| it.status()), Err(Status::Lost));
        let mut expired = lease(0);
        let mut lost = lease(600_000);
        lost.lock.as_ref().expect("a lock").pass_to(Phase::Lost);
        for lease in [&mut expired, &mut lost] {
            assert_eq!(lease.retain().map_err(|it| it.status()), Err(Status::Lost));
            // It still takes the same number of unlocks.
            assert_eq!(lease.levels(), 1);
        }
    }

    #[test]
    fn the_number_of_levels_is_bounded() {
        let mut lease = lease(600_000);
        lease.inner_levels = INNER_LEVELS_MAX;
        assert_eq!(i32::try_from(lease.levels()), Ok(i32::MAX));
        assert_eq!(lease.retain().map_err(|it| it.status()), Err(Status::InvalidArgument));
        assert_eq!(i32::try_from(lease.levels()), Ok(i32::MAX));
    }

    #[test]
    fn a_reused_lease_has_one_level() {
        let mut lease = lease(600_000);
        lease.retain().unwrap();
        let lock = lease.lock.clone().unwrap();
        lease.begin(b"r");
        lease.keep(lock, String::new(), clock::now());
        assert_eq!(lease.levels(), 1);
    }
}
