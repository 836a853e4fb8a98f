//! A handle of one lock, held or not.

use std::slice;
use std::sync::Arc;

use crate::call::Call;
use crate::error::Error;
use crate::held_lock::HeldLock;
use crate::keeper::Keeper;
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::quorum::backoff::Backoff;
use crate::stats::Stretch;
use crate::system::clock;

/// A handle of one lock: empty, or the holder of it.
///
/// Dropping a lease releases nothing: a lock ends by [`crate::RedLock::unlock`] or by itself.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    /// By which another thread can cancel the call that uses the lease.
    pub(crate) call: Arc<Call>,
    pub(crate) hold: Option<Arc<HeldLock>>,
    /// If the lock is kept.
    pub(crate) keeper: Option<Keeper>,
    pub(crate) resource: Arc<[u8]>,
    pub(crate) kind: LockKind,
    pub(crate) validity_ms: i64,
    pub(crate) absent: String,
    /// How many unlocks it takes beside the last one.
    pub(crate) inner_levels: u32,
    /// The wait that the last call has left off in the middle, if it was a slice of one.
    pub(crate) wait: Option<Box<BrokenOff>>,
}

/// A wait for a lock between two of the slices that it is made in.
#[derive(Clone, Debug)]
pub(crate) struct BrokenOff {
    /// The end of the pause that was under way.
    pub(crate) pause_until: Moment,
    pub(crate) backoff: Backoff,
    pub(crate) has_asked: bool,
    /// What is counted of it when it has ended.
    pub(crate) stretch: Option<Stretch>,
    /// What the last try has come to.
    pub(crate) error: Error,
}

impl Lease {
    /// An empty lease.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the lock is held and valid now, by this machine's clock.
    pub fn is_held(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.is_held(clock::now()))
    }

    /// How long the lock is valid from now on, rounded down; 0 when it is not held.
    pub fn remaining_ms(&self) -> i64 {
        self.hold.as_ref().map_or(0, |hold| hold.remaining_ms(clock::now()))
    }

    /// How long the lock was valid when it was granted or last extended; 0 if there is none.
    pub fn validity_ms(&self) -> i64 {
        self.validity_ms
    }

    /// The resource of the last locking call on this lease; the first of several.
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// The resources of the last locking call on this lease: one, or several that were to be locked at once, in the order
    /// in which they were given; none if there was no such call.
    pub fn resources(&self) -> &[Arc<[u8]>] {
        match &self.kind {
            LockKind::Several(names) => names,
            _ if self.resource.is_empty() => &[],
            _ => slice::from_ref(&self.resource),
        }
    }

    /// The token that stands on the servers, if there is a lock.
    pub fn token(&self) -> Option<&str> {
        self.hold.as_ref().map(|hold| hold.token().as_str())
    }

    /// The fencing token of the lock; 0 if it has none, or there is no lock.
    pub fn fencing_token(&self) -> i64 {
        self.hold.as_ref().map_or(0, |hold| hold.fencing_token())
    }

    /// Whether others may have the lock at the same time.
    pub fn is_shared(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.is_shared())
    }

    /// Words about servers that could not take part in the last call, if it succeeded all the same;
    /// empty if all could.
    pub fn absent(&self) -> &str {
        &self.absent
    }

    /// Makes it the holder of a lock that was taken or extended without some servers.
    pub(crate) fn keep(&mut self, hold: Arc<HeldLock>, absent: String, now: Moment) {
        self.absent = absent;
        self.validity_ms = hold.valid_until().ms_since(now);
        self.hold = Some(hold);
    }

    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.hold = None;
        self.validity_ms = 0;
        self.absent.clear();
        self.inner_levels = 0;
        self.wait = None;
    }

    /// Makes it empty, for a call about this target.
    pub(crate) fn begin_for(&mut self, target: &Target) {
        self.begin(&target.resource);
        self.kind = target.kind.clone();
    }

    /// Makes it empty, for a call about this resource.
    pub(crate) fn begin(&mut self, resource: &[u8]) {
        self.clear();
        self.keeper = None;
        self.kind = LockKind::Exclusive;
        if *self.resource != *resource {
            self.resource = Arc::from(resource);
        }
    }
}
