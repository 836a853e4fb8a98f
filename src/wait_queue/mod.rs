//! Acquires of one manager that want the same resource wait in a queue, and only the head of it asks
//! the servers.
//!
//! A release gives the head its turn in the same step, so that the request follows right behind the
//! release and the lock changes hands within one round trip. A run of that must not keep other
//! processes out: after a while the lock is released openly, and the head stands back before it asks.

mod line;
mod lines;
mod permit_queue;
mod pushes;
mod queue;
mod several;
mod standing;
mod turn;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(crate) use self::line::Place;
use self::permit_queue::PermitQueue;
pub(crate) use self::queue::STAND_BACK;
use self::queue::WaitQueue;
use self::standing::Standing;
use self::turn::Wants;
pub(crate) use self::turn::{Left, Manners, Next, Permission, Wait};
use crate::held_lock::HeldLock;
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::quorum::backoff::Backoff;
use crate::transport::ticket::Ticket;

/// How many queues there may be before those are looked for that nobody needs any more.
const QUEUES_MIN: usize = 64;

/// All wait queues of one manager. A waiter is known by the number that it was given.
pub(crate) struct WaitQueues {
    queues: HashMap<Arc<[u8]>, WaitQueue>,
    /// Those of semaphores, by their names and how many permits they have.
    semaphores: BTreeMap<(Arc<[u8]>, u16), PermitQueue>,
    /// Where those stand that want several resources at once.
    several: HashMap<u64, Standing>,
    last_number: u64,
    clean_at: usize,
}

impl Default for WaitQueues {
    fn default() -> Self {
        let (queues, semaphores, several) = Default::default();
        Self { queues, semaphores, several, last_number: 0, clean_at: QUEUES_MIN }
    }
}

impl WaitQueues {
    /// An acquire that wants the resource, of this thread if one waits for it. Returns its number.
    ///
    /// One whose thread has another in that queue already would wait for itself: it is a password
    /// callback's, made from within the other's call. It is left out of the queue, and asks when it likes.
    pub(crate) fn join(&mut self, target: &Target, thread: Option<usize>, now: Moment) -> u64 {
        let number = self.next_number();
        if let Some(key) = semaphore(target) {
            if self.is_to_clean() && !self.semaphores.contains_key(&key) {
                self.clean(now);
            }
            let new = || PermitQueue::new(key.1, now);
            self.semaphores.entry(key.clone()).or_insert_with(new).join(number, thread);
            return number;
        }
        match &target.kind {
            LockKind::Several(names) => self.join_all(names, number, thread, now),
            LockKind::Shared => {
                self.queue_of(&target.resource, now).join(number, thread, Wants::Shared);
            }
            _ => self.queue_of(&target.resource, now).join(number, thread, Wants::Alone),
        }
        number
    }

    /// It joins, and begins at once if it may. Most locks are of one resource: then its queue is looked for once.
    pub(crate) fn join_and_begin(
        &mut self,
        target: &Target,
        thread: Option<usize>,
        manners: Manners,
        now: Moment,
    ) -> (u64, Permission) {
        let wants = match target.kind {
            LockKind::Exclusive => Wants::Alone,
            LockKind::Shared => Wants::Shared,
            _ => {
                let number = self.join(target, thread, now);
                return (number, self.begin(target, number, manners, now));
            }
        };
        let number = self.next_number();
        let queue = self.queue_of(&target.resource, now);
        queue.join(number, thread, wants);
        (number, queue.begin(number, manners, now))
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The queue of this resource; a new one if there is none.
    fn queue_of(&mut self, resource: &Arc<[u8]>, now: Moment) -> &mut WaitQueue {
        if self.is_to_clean() && !self.queues.contains_key(resource) {
            self.clean(now);
        }
        self.queues.entry(Arc::clone(resource)).or_insert_with(|| WaitQueue::new(now))
    }

    /// Whether the waiter may ask the servers now; then it is taken to do it.
    pub(crate) fn begin(
        &mut self,
        target: &Target,
        number: u64,
        manners: Manners,
        now: Moment,
    ) -> Permission {
        if let LockKind::Several(names) = &target.kind {
            return self.begin_all(names, number, manners, now);
        }
        if let Some(queue) = self.permits(target) {
            return queue.begin(number, manners, now);
        }
        let queue = self.queues.get_mut(&target.resource);
        queue.map_or(Permission::MayAsk, |queue| queue.begin(number, manners, now))
    }

    /// The servers have refused the waiter; perhaps because somebody else has the lock. Of several resources, these are in
    /// the way: a bit for each.
    pub(crate) fn refused(
        &mut self,
        target: &Target,
        (number, in_the_way): (u64, u128),
        is_taken: bool,
        now: Moment,
    ) -> Vec<Ticket> {
        if let LockKind::Several(names) = &target.kind {
            return self.refused_several(names, (number, in_the_way), is_taken, now);
        }
        if let Some(queue) = self.permits(target) {
            queue.refused(number, is_taken, now);
        } else if let Some(queue) = self.queues.get_mut(&target.resource) {
            queue.refused(number, is_taken, now);
        }
        Vec::new()
    }

    /// The waiter has got the lock, and leaves the line and the queue. Returns its places in line, and whose waits are to
    /// be ended.
    pub(crate) fn acquired(
        &mut self,
        target: &Target,
        number: u64,
        hold: &Arc<HeldLock>,
    ) -> (Vec<Left>, Vec<Ticket>) {
        if !matches!(target.kind, LockKind::Exclusive | LockKind::Shared) {
            let left = self.end_line(target, number);
            return (left, self.acquired_of_many(target, number, hold));
        }
        let Some(queue) = self.queues.get_mut(&target.resource) else { return Default::default() };
        let left = lines::left_by(target, queue.line.leave());
        (left, queue.acquired(number, hold))
    }

    fn acquired_of_many(
        &mut self,
        target: &Target,
        number: u64,
        hold: &Arc<HeldLock>,
    ) -> Vec<Ticket> {
        if let Some(queue) = self.permits(target) {
            return queue.acquired(number, hold).into_iter().collect();
        }
        self.forget_standing(target, number);
        let mut ended = Vec::new();
        for name in target.names() {
            if let Some(queue) = self.queues.get_mut(name) {
                ended.append(&mut queue.acquired(number, hold));
            }
        }
        ended
    }

    /// The waiter is about to leave the queue, in the midst of a pause, and to come again. Whoever is the
    /// head then goes on with that pause, and with the backoff: it begins no new wait.
    pub(crate) fn pass_on(
        &mut self,
        target: &Target,
        number: u64,
        pause_until: Moment,
        backoff: Backoff,
    ) {
        // What several resources are waited for in has no slices.
        if let Some(queue) = self.permits(target) {
            queue.pass_on(number, pause_until, backoff);
        } else if let Some(queue) = self.queues.get_mut(&target.resource) {
            queue.pass_on(number, pause_until, backoff);
        }
    }

    /// The backoff that the waiter is to go on with, if one that was the head before it has left any.
    pub(crate) fn inherit(&mut self, target: &Target, number: u64) -> Option<Backoff> {
        if let Some(queue) = self.permits(target) {
            return queue.inherit(number);
        }
        self.queues.get_mut(&target.resource)?.inherit(number)
    }

    /// The waiter gives up. Returns whose waits are to be ended.
    pub(crate) fn leave(&mut self, target: &Target, number: u64, now: Moment) -> Vec<Ticket> {
        if let Some(queue) = self.permits(target) {
            let next = queue.leave(number, now);
            self.clean_permits(target, now);
            return next.into_iter().collect();
        }
        self.forget_standing(target, number);
        target.names().iter().flat_map(|name| self.leave_one(name, number, now)).collect()
    }

    /// Only who wants several resources stands anywhere but in the one queue.
    fn forget_standing(&mut self, target: &Target, number: u64) {
        if let LockKind::Several(_) = target.kind {
            self.several.remove(&number);
        }
    }

    fn leave_one(&mut self, resource: &[u8], number: u64, now: Moment) -> Vec<Ticket> {
        let Some(queue) = self.queues.get_mut(resource) else { return Vec::new() };
        let next = queue.leave(number, now);
        if !queue.is_needed(now) {
            self.queues.remove(resource);
        }
        next
    }

    /// The waiter waits, under that name. Returns until when.
    pub(crate) fn wait(
        &mut self,
        target: &Target,
        number: u64,
        ticket: Ticket,
        wait: Wait,
        now: Moment,
    ) -> Moment {
        if let LockKind::Several(names) = &target.kind {
            return self.wait_for_all(names, (number, ticket), wait, now);
        }
        if let Some(queue) = self.permits(target) {
            return queue.wait(number, ticket, wait, now);
        }
        self.queues
            .get_mut(&target.resource)
            .map_or(now, |queue| queue.wait(number, ticket, wait, now))
    }

    /// The waiter waits no more: its time was up, or somebody has ended its wait. Returns whether it is its
    /// turn to ask.
    pub(crate) fn end_wait(
        &mut self,
        target: &Target,
        number: u64,
        wait: Wait,
        now: Moment,
    ) -> bool {
        if let LockKind::Several(names) = &target.kind {
            return self.end_wait_for_all(names, number, wait, now);
        }
        if let Some(queue) = self.permits(target) {
            return queue.end_wait(number, wait, now);
        }
        self.queues.get_mut(&target.resource).is_none_or(|queue| queue.end_wait(number, wait, now))
    }

    /// The lock is being released, at this moment. Returns what becomes of the queue of one of its resources, and
    /// whether [`Self::stand_back`] is to be called: others have to get their chance.
    pub(crate) fn release(
        &mut self,
        hold: &HeldLock,
        resource: &Arc<[u8]>,
        now: Moment,
    ) -> (Next, bool) {
        let target = hold.target();
        if let Some(queue) = self.permits(target).filter(|queue| queue.has(hold)) {
            let released = queue.release(hold, now);
            self.clean_permits(target, now);
            return released;
        }
        let Entry::Occupied(mut entry) = self.queues.entry(Arc::clone(resource)) else {
            return (Next::Nobody, false);
        };
        let queue = entry.get_mut();
        if !queue.has(hold) {
            return (Next::Nobody, false);
        }
        let released = queue.release(hold, now);
        if !queue.is_needed(now) {
            entry.remove();
        }
        released
    }

    /// Whoever comes next asks at this moment, and not before.
    pub(crate) fn stand_back(&mut self, target: &Target, resource: &[u8], until: Moment) {
        if let Some(queue) = self.permits(target) {
            queue.stand_back(until);
        } else if let Some(queue) = self.queues.get_mut(resource) {
            queue.stand_back(until);
        }
    }

    /// The lock was lost. Returns whose waits are to be ended.
    pub(crate) fn lost(&mut self, hold: &HeldLock, now: Moment) -> Vec<Ticket> {
        if let Some(queue) = self.permits(hold.target()).filter(|queue| queue.has(hold)) {
            return queue.lost(hold, now).into_iter().collect();
        }
        let lose = |name: &Arc<[u8]>| {
            let queue = self.queues.get_mut(name).filter(|queue| queue.has(hold));
            queue.map_or_else(Vec::new, |queue| queue.lost(hold, now))
        };
        hold.target().names().iter().flat_map(lose).collect()
    }

    /// The lock has become a shared one. Returns whose waits are to be ended.
    pub(crate) fn downgraded(&mut self, hold: &HeldLock) -> Vec<Ticket> {
        let queue = self.queues.get_mut(hold.resource());
        queue.map_or_else(Vec::new, |queue| queue.downgraded(hold))
    }

    /// Whether there are so many queues that some may be needed no more.
    fn is_to_clean(&self) -> bool {
        self.count() >= self.clean_at
    }

    /// Forgets locks that ended without a release, before there are too many.
    fn clean(&mut self, now: Moment) {
        self.queues.retain(|_, queue| queue.is_needed(now));
        self.semaphores.retain(|_, queue| queue.is_needed(now));
        self.clean_at = QUEUES_MIN.max(2 * self.count());
    }

    /// Forgets the queue of a semaphore that nobody needs.
    fn clean_permits(&mut self, target: &Target, now: Moment) {
        if let Some(key) = semaphore(target)
            && self.semaphores.get(&key).is_some_and(|queue| !queue.is_needed(now))
        {
            self.semaphores.remove(&key);
        }
    }

    fn count(&self) -> usize {
        self.queues.len() + self.semaphores.len()
    }

    /// The queue of a semaphore, if it is one and there is a queue.
    fn permits(&mut self, target: &Target) -> Option<&mut PermitQueue> {
        self.semaphores.get_mut(&semaphore(target)?)
    }
}

/// By what the queue of a semaphore is known; none if it is a lock.
fn semaphore(target: &Target) -> Option<(Arc<[u8]>, u16)> {
    target.kind.permits().map(|of| (Arc::clone(&target.resource), of))
}

#[cfg(test)]
mod tests;
