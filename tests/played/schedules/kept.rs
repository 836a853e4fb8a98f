//! Whether kept locks are renewed and reported as promised. They are checked whenever a driving thread is
//! about to wait, and whenever a call has ended.

mod attendance;
mod news;

use std::mem;
use std::sync::Arc;

pub(crate) use self::attendance::{Attendance, Attends};
use crate::engine::call_handle::CallHandle;
use crate::manager::lease::Lease;
use crate::protocol::lock::Lock as LibraryLock;
use crate::protocol::quorum::validity::Drift;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::Call;
use crate::schedules::verdicts::{Asked, Told};
use crate::world::World;
use crate::world::clocks::MS;
use crate::world::store::tag;

/// A client that has asked for events since this part of the TTL was left is told in time.
const LISTENS_PARTS: i64 = 5;

/// A caller's request to keep a lock.
pub(crate) struct Keeping {
    client: usize,
    manager: usize,
    /// The number in its client's count; it comes with the event that reports the loss.
    number: usize,
    /// The lease that has the lock.
    lease: Arc<CallHandle>,
    /// `None` until the call that starts the keeping has ended, and if that call has failed.
    lock: Option<KeptLock>,
    begun_at: i64,
    has_failed: bool,
    is_told: bool,
    /// A call is under way that continues the lock, or takes another lock if it is lost. That call reports
    /// the result.
    is_continued: bool,
    /// Its holder has begun to give it up: nothing must be reported any more. Then the time when that ended:
    /// from then on nothing may be reported.
    ends: bool,
    over_at: Option<i64>,
}

struct KeptLock {
    hold: Arc<LibraryLock>,
    tag: u64,
    /// The state at the last look: the end of validity, how often the client's callers had extended locks,
    /// and for how long the client had been stopped.
    until: i64,
    extensions: u64,
    stopped: i64,
    /// Whether little time was left when nobody had driven since the renewal was due. Then the lock may be
    /// given up.
    was_alone: bool,
    /// The shortest TTL that it had at any look.
    least_ttl: i64,
    /// Since the last renewal, a question has found out that the lock ends earlier.
    shortened: Option<Shortened>,
}

/// Keys were lost, or a clock was set: the servers have a lock for less time than they had said.
#[derive(Clone, Copy)]
struct Shortened {
    at: i64,
    /// The end of validity before that, on the client's clock.
    known: i64,
}

impl KeptLock {
    /// Whether so little is left because a question has just found that out. Nobody could report it before.
    fn has_just_shrunk(&self, now: i64) -> bool {
        let is_known = self.hold.valid_until().as_nanos() >= self.until;
        !is_known || self.shortened.is_some_and(|it| now <= it.at + attendance::GAP)
    }
}

impl Keeping {
    fn is_of(&self, client: usize, number: usize) -> bool {
        (self.client, self.number) == (client, number)
    }

    fn has_tag(&self, tag: Option<u64>) -> bool {
        self.lock.as_ref().is_some_and(|it| Some(it.tag) == tag)
    }

    fn end(&mut self, now: i64) {
        self.ends = true;
        self.over_at.get_or_insert(now);
    }
}

impl World {
    /// A caller is about to start keeping a lock.
    pub(crate) fn begin_keeping(
        &mut self,
        client: usize,
        manager: usize,
        number: usize,
        lease: &Lease,
    ) {
        self.records.keepings.push(Keeping {
            client,
            manager,
            number,
            lease: Arc::clone(&lease.call),
            lock: None,
            begun_at: self.now,
            has_failed: false,
            is_told: false,
            is_continued: false,
            ends: false,
            over_at: None,
        });
    }

    /// The lock is now kept, or the request has failed.
    pub(crate) fn note_keeping(
        &mut self,
        client: usize,
        number: usize,
        hold: Option<&Arc<LibraryLock>>,
    ) {
        let (now, stopped) = (self.now, self.clients[client].stopped);
        let extensions = self.clients[client].extensions;
        // A thread that drove before that could not know that the lock was to be renewed.
        let shown = self.clients[client].read(now);
        let is_near = |it: &LibraryLock| {
            shown > it.valid_until().as_nanos() - it.ttl_ms() * MS / LISTENS_PARTS
        };
        let all = &mut self.records.keepings;
        if let Some(hold) = hold {
            let Some(own) = all.iter().find(|it| it.is_of(client, number)) else { return };
            // If a lock is kept twice, the later request applies.
            let (lease, is_told) = (Arc::clone(&own.lease), own.is_told);
            let before = all.iter_mut().filter(|it| it.number != number);
            before.filter(|it| Arc::ptr_eq(&it.lease, &lease)).for_each(|it| it.end(now));
            let tag = tag(hold.token().as_bytes());
            if let Some(held) = self.records.hold(tag) {
                held.is_kept = true;
                if is_told {
                    // Another caller was told that it is lost, before this one goes on with the end of its call.
                    held.told_lost.get_or_insert(now);
                }
            }
        }
        let Some(own) = self.records.keepings.iter_mut().find(|it| it.is_of(client, number)) else {
            return;
        };
        own.begun_at = now;
        own.has_failed = hold.is_none();
        own.lock = hold.map(|hold| KeptLock {
            tag: tag(hold.token().as_bytes()),
            until: hold.valid_until().as_nanos(),
            hold: Arc::clone(hold),
            extensions,
            stopped,
            was_alone: is_near(hold),
            least_ttl: hold.ttl_ms() * MS,
            shortened: None,
        });
    }

    /// A call begins that may end the keeping.
    pub(crate) fn note_call_on_kept(&mut self, asked: &Asked, lease: &Arc<CallHandle>) {
        let (now, me) = (self.now, asked.client);
        let is_foreign = self.schedule.clients[me].is_foreign(asked.manager);
        let all = self.records.keepings.iter_mut().filter(|it| it.client == me);
        let own = |it: &Keeping| Arc::ptr_eq(&it.lease, lease);
        match asked.call {
            Call::Unlock if !is_foreign => {
                all.filter(|it| it.has_tag(asked.tag)).for_each(|it| it.ends = true);
            }
            Call::Forget => all.filter(|it| own(it)).for_each(|it| it.end(now)),
            Call::Lock { .. } | Call::TryLock { .. } if !asked.is_held => {
                all.filter(|it| own(it) && it.lock.is_some()).for_each(|it| it.ends = true);
            }
            Call::Continue { .. } => all.filter(|it| own(it)).for_each(|it| it.is_continued = true),
            _ => {}
        }
        if matches!(asked.call, Call::Extend { .. } | Call::Continue { .. }) {
            self.clients[me].extensions += 1;
            self.clients[me].extending += 1;
        }
    }

    /// That call has ended.
    pub(crate) fn note_call_on_kept_ended(
        &mut self,
        asked: &Asked,
        told: &Told,
        lease: &Arc<CallHandle>,
    ) {
        let (now, me) = (self.now, asked.client);
        let all = self.records.keepings.iter_mut().filter(|it| it.client == me);
        let own = |it: &Keeping| Arc::ptr_eq(&it.lease, lease);
        match asked.call {
            // A lock that was found lost before may still be reported.
            Call::Unlock if told.said.is_ok() && asked.is_held => {
                all.filter(|it| it.has_tag(asked.tag)).for_each(|it| it.end(now));
            }
            Call::Continue { .. } if asked.tag != told.tag || told.said.is_err() => {
                all.filter(|it| own(it)).for_each(|it| it.ends = true);
            }
            Call::Continue { .. } => {
                all.filter(|it| own(it)).for_each(|it| it.is_continued = false)
            }
            _ => {}
        }
        if matches!(asked.call, Call::Extend { .. } | Call::Continue { .. }) {
            self.clients[me].extensions += 1;
            self.clients[me].extending -= 1;
        }
        self.look_at_kept(me);
    }

    /// A caller drops a lease.
    pub(crate) fn note_dropped(&mut self, lease: &Lease) {
        let now = self.now;
        let all = self.records.keepings.iter_mut();
        all.filter(|it| Arc::ptr_eq(&it.lease, &lease.call)).for_each(|it| it.end(now));
    }

    /// Checks all locks that this client keeps, or has kept. A renewal is judged like a call that extends.
    pub(crate) fn look_at_kept(&mut self, client: usize) {
        if self.clients[client].is_gone || self.records.keepings.is_empty() {
            return;
        }
        let mut keepings = mem::take(&mut self.records.keepings);
        // When nobody kept it any more. Two leases may hold one lock, and each of them may keep it.
        let over_at = |lock: &KeptLock| {
            let same = keepings.iter().filter(|it| it.has_tag(Some(lock.tag)));
            let ends: Option<Vec<i64>> = same.map(|it| it.over_at).collect();
            ends.and_then(|ends| ends.into_iter().max())
        };
        let overs: Vec<Option<i64>> =
            keepings.iter().map(|it| it.lock.as_ref().and_then(over_at)).collect();
        for (keeping, over_at) in keepings.iter_mut().zip(overs) {
            if keeping.client == client
                && let Some(lock) = &mut keeping.lock
            {
                self.look_at_lock((client, keeping.manager), lock, over_at);
            }
        }
        self.records.keepings = keepings;
    }

    fn look_at_lock(
        &mut self,
        (me, manager): (usize, usize),
        lock: &mut KeptLock,
        over_at: Option<i64>,
    ) {
        let until = lock.hold.valid_until().as_nanos();
        let drives_since = self.attended_since(me, manager, Attends::Drives);
        let (client, ttl) = (&self.clients[me], lock.hold.ttl_ms() * MS);
        let is_near = client.read(self.now) > lock.until - ttl / LISTENS_PARTS;
        let renewed_by = client.clock.when(lock.until - ttl + ttl / 3);
        lock.was_alone |= is_near && drives_since > renewed_by;
        let (extensions, extending, stopped) =
            (client.extensions, client.extending, client.stopped);
        let before = mem::replace(&mut lock.until, until);
        lock.least_ttl = lock.least_ttl.min(ttl);
        if until < before {
            lock.shortened = Some(Shortened { at: self.now, known: before });
        }
        let is_renewed =
            mem::replace(&mut lock.extensions, extensions) == extensions && extending == 0;
        let was_stopped = mem::replace(&mut lock.stopped, stopped) != stopped;
        if until <= before {
            return;
        }
        let shortened = lock.shortened.take();
        if let Some(held) = self.records.hold(lock.tag) {
            held.until = held.until.max(until);
        }
        if is_renewed {
            let plan = &self.schedule.clients[me];
            let drift = Drift::new(plan.drift).unwrap_or(Drift::DEFAULT);
            let clock = &self.clients[me].clock;
            // Two requests may extend the lock by different TTLs.
            let longest_ms = lock.hold.longest_ttl_ms();
            let since = clock.when(until - drift.validity_ms(longest_ms) * MS);
            // A question that found an earlier end reports the minimum time for which the servers have the
            // lock.
            let known = shortened.filter(|it| since <= it.at).map_or(before, |it| it.known);
            let end = clock.when(known.max(before));
            let quorum = self.clients[me].quorum();
            if over_at.is_some_and(|over_at| since > over_at) {
                let words = "a lock was renewed that nobody keeps any more";
                self.records.violate(Promise::KeptNoMore, words);
            }
            // A client that is stopped between a look at its clock and a look at its sockets may take a
            // late answer for one in time. The keys were there, or the servers would not have extended
            // them.
            if !was_stopped && self.records.extended(lock.tag, since, end) < quorum {
                let words = "a lock was renewed that no quorum extended before its end";
                self.records.violate(Promise::TrueExtend, words);
            }
            let is_over = until <= self.clients[me].read(self.now);
            if is_over && !was_stopped && self.clients[me].callers == 1 {
                self.records.violate(Promise::GrantInTime, "a lock was renewed that was over");
            }
            self.judge_vouched(me, since, lock.tag);
        }
        self.judge_kept_until(me, lock.tag, until);
    }
}
