//! How a program says which lock it wants, and how.

use crate::lease_call::Demand;
use crate::lock_kind::LockKind;
use crate::operation::acquire::Plan;
use crate::runtime::Runtime;
use crate::submitted::Tag;

/// How a lock is to be taken.
pub struct AcquireOptions<'a> {
    /// What to lock.
    pub resource: &'a [u8],
    /// How many may have it at the same time.
    pub kind: LockKind,
    /// How long it lasts unless it is extended or released.
    pub ttl_ms: i64,
    /// How long to try: 0: one attempt; less: until it is had.
    pub wait_ms: i64,
    /// More than 0: so many tries, and `wait_ms` is not looked at.
    pub tries: i32,
    /// For one slice of a wait, which the next one goes on with: how long it may wait.
    pub slice_ms: Option<i64>,
    /// To keep the lock: what comes with the news that it cannot be kept.
    pub keep: Option<Tag>,
}

impl<'a> AcquireOptions<'a> {
    /// What is wanted, and what comes with the news that it cannot be kept.
    pub(crate) fn demand(self, own: &Runtime, thread: Option<usize>) -> (Demand<'a>, Option<Tag>) {
        let tries = i64::from(self.tries);
        let plan = if tries > 0 { Plan::Tries(tries) } else { own.plan(self.wait_ms) };
        let slice_end = self.slice_ms.map(|slice_ms| own.slice_end(self.wait_ms, slice_ms));
        let Self { resource, kind, ttl_ms, keep, .. } = self;
        (Demand { resource, kind, ttl_ms, plan, slice_end, thread }, keep)
    }
}
