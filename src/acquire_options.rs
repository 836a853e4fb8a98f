//! The options of a program that takes a lock.

use crate::lease_call::Demand;
use crate::lock_kind::LockKind;
use crate::operation::acquire::Plan;
use crate::runtime::Runtime;
use crate::submitted::Tag;

/// How to take a lock.
pub struct AcquireOptions<'a> {
    /// The name of what to lock.
    pub resource: &'a [u8],
    /// How many callers may hold the lock at the same time.
    pub kind: LockKind,
    /// How long the lock lasts unless it is extended or released.
    pub ttl_ms: i64,
    /// How long to try. 0: one attempt. Negative: until the lock is taken.
    pub wait_ms: i64,
    /// More than 0: the number of tries, and `wait_ms` is ignored.
    pub tries: i32,
    /// To keep the lock alive: the tag of the event that reports that it cannot be kept.
    pub keep: Option<Tag>,
}

impl<'a> AcquireOptions<'a> {
    /// The lock that is wanted, and the tag of the event that reports that it cannot be kept.
    pub(crate) fn demand(self, own: &Runtime, thread: Option<usize>) -> (Demand<'a>, Option<Tag>) {
        let tries = i64::from(self.tries);
        let plan = if tries > 0 { Plan::Tries(tries) } else { own.plan(self.wait_ms) };
        let Self { resource, kind, ttl_ms, keep, .. } = self;
        (Demand { resource, kind, ttl_ms, plan, thread }, keep)
    }
}
