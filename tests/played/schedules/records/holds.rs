//! Locks as reported to their holders, and which of them were held at the same time.

use crate::schedules::schedule::share;
use crate::world::World;
use crate::world::clocks::Clock;

/// A lock that a client holds, as reported to the client.
#[derive(Clone, Debug)]
pub(crate) struct HeldLock {
    pub(crate) tag: u64,
    pub(crate) client: usize,
    pub(crate) resource: usize,
    /// The slot of a semaphore; 0 also for a lock.
    pub(crate) slot: u16,
    /// The fencing token; 0: none.
    pub(crate) fence: i64,
    pub(crate) from: i64,
    /// The end of validity on the client's clock.
    pub(crate) until: i64,
    /// When the lock was known to have ended, if that was before `until`.
    pub(crate) ended: Option<i64>,
    /// When the holder was told that the lock is lost, or found that in the lease. From then on nobody
    /// holds it, though remains of it may be on the servers.
    pub(crate) told_lost: Option<i64>,
    /// Whether it ended because its lease was dropped without a release. The manager and the servers still
    /// have the lock.
    pub(crate) is_forgotten: bool,
    /// From when on others may hold it at the same time; the end of time if never.
    pub(crate) shared_from: i64,
    /// How often somebody has begun to release it, and to extend it.
    pub(crate) releases: usize,
    pub(crate) extensions: usize,
    /// Whether it is, or was, kept.
    pub(crate) is_kept: bool,
    /// Whether an extension may have been cancelled. Its answers may arrive when they no longer prove when
    /// the lock was granted.
    pub(crate) was_cancelled: bool,
}

impl HeldLock {
    /// When it ends, or ended, in true time.
    pub(crate) fn end(&self, clock: &Clock) -> i64 {
        clock.when(self.until).min(self.ended.unwrap_or(i64::MAX))
    }

    /// Until when its holder may believe that the lock is held.
    pub(crate) fn held_until(&self, clock: &Clock) -> i64 {
        self.end(clock).min(self.told_lost.unwrap_or(i64::MAX))
    }

    /// Until when its manager keeps other callers of its process out.
    pub(crate) fn kept_until(&self, clock: &Clock) -> i64 {
        if self.is_forgotten { clock.when(self.until) } else { self.end(clock) }
    }
}

/// Two holds at the same time, that time, and the excuse for it.
pub(crate) type Overlap<'a> = (&'a HeldLock, &'a HeldLock, i64, Option<&'static str>);

impl World {
    /// Two holds of one resource at the same time, if there are any, with the time, and the excuse if the
    /// overlap is outside the promise. An overlap that is within the promise is preferred.
    pub(crate) fn overlap(&self) -> Option<Overlap<'_>> {
        let mut all = self.overlaps();
        all.sort_by_key(|it| it.3.is_some());
        all.first().copied()
    }

    fn overlaps(&self) -> Vec<Overlap<'_>> {
        let spans =
            self.records.holds.iter().map(|it| (it, it.held_until(&self.clients[it.client].clock)));
        let spans: Vec<_> = spans.filter(|(it, end)| it.from < *end).collect();
        let pairs = spans.iter().enumerate();
        let pairs = pairs.flat_map(|(i, one)| spans[i + 1..].iter().map(move |two| (one, two)));
        let overlaps = pairs.filter_map(|((one, end), (two, other_end))| {
            let (from, until) = (one.from.max(two.from), *end.min(other_end));
            // Both share it from then on.
            let until = until.min(one.shared_from.max(two.shared_from));
            let is_same = share(one.resource, two.resource) && one.slot == two.slot;
            let is_one = is_same && from < until;
            is_one.then(|| (*one, *two, from, self.excuse(one, two)))
        });
        overlaps.collect()
    }

    /// More locks of one resource at the same time than the semaphore has permits, if there are any: how
    /// many, and when.
    pub(crate) fn crowd(&self) -> Option<(usize, i64)> {
        let span =
            |it: &HeldLock| (it.resource, it.from, it.held_until(&self.clients[it.client].clock));
        let spans: Vec<_> = self.records.holds.iter().map(span).filter(|it| it.1 < it.2).collect();
        let most = usize::from(self.schedule.permits.max(1));
        spans.iter().find_map(|&(resource, at, _)| {
            let is_there = |it: &&(usize, i64, i64)| it.0 == resource && it.1 <= at && at < it.2;
            let count = spans.iter().filter(is_there).count();
            (count > most).then_some((count, at))
        })
    }

    /// Until when a quorum of the client's servers keeps this value, if nothing more happens.
    pub(crate) fn kept_until(&self, client: usize, tag: u64) -> i64 {
        let client = &self.clients[client];
        let mut ends: Vec<i64> =
            client.list.iter().map(|&it| self.servers[it].kept_until(tag)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends[client.quorum() - 1]
    }
}
