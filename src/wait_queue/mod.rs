//! Acquires of one manager that want the same resource wait in a queue. Only the head of the queue asks the
//! servers.
//!
//! A release gives the head its turn in the same step. The head's request then follows right behind the
//! release, and the lock changes hands within one round trip. A run of such handovers must not keep other
//! processes out. Therefore, after a while, the lock is released openly, and the head stands back before it
//! asks.

mod line;
mod lines;
mod own_readers;
mod permit_queue;
mod pushes;
mod queue;
mod several;
mod standing;
mod turn;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(crate) use self::line::{Line, Place};
use self::permit_queue::PermitQueue;
pub(crate) use self::queue::STAND_BACK;
use self::queue::WaitQueue;
use self::standing::Standing;
use self::turn::Wants;
pub(crate) use self::turn::{Left, Next, Permission, TurnRequest, Wait};
use crate::held_lock::HeldLock;
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::quorum::backoff::Backoff;
use crate::room::Room;
use crate::transport::ticket::Ticket;

/// How many queues there may be before queues that nobody needs any more are looked for.
const QUEUES_MIN: usize = 64;

/// All wait queues of one manager. A waiter is identified by the number that it was given.
pub(crate) struct WaitQueues {
    queues: HashMap<Arc<[u8]>, WaitQueue>,
    /// The queues of semaphores, by name and number of permits.
    semaphores: BTreeMap<(Arc<[u8]>, u16), PermitQueue>,
    /// The state of waiters that want several resources at once.
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
    /// Adds an acquire that wants the resource. `thread` is the thread that waits for it, if one does. Returns
    /// the acquire's number.
    ///
    /// If the same thread already has an acquire in that queue, the new one would wait for itself. A password
    /// callback has made it from within the other's call. Such an acquire is left out of the queue, and may ask
    /// at any time.
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

    /// Joins, and begins at once if the waiter may. Most locks are of one resource, and then its queue is
    /// looked up only once.
    pub(crate) fn join_and_begin(
        &mut self,
        target: &Target,
        thread: Option<usize>,
        turn: TurnRequest,
        now: Moment,
    ) -> (u64, Permission) {
        let wants = match target.kind {
            LockKind::Exclusive => Wants::Alone,
            LockKind::Shared => Wants::Shared,
            _ => {
                let number = self.join(target, thread, now);
                return (number, self.begin(target, number, turn, now));
            }
        };
        let number = self.next_number();
        let queue = self.queue_of(&target.resource, now);
        queue.join(number, thread, wants);
        (number, queue.begin(number, turn, now))
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The queue of this resource. Creates one if there is none.
    fn queue_of(&mut self, resource: &Arc<[u8]>, now: Moment) -> &mut WaitQueue {
        if self.is_to_clean() && !self.queues.contains_key(resource) {
            self.clean(now);
        }
        self.queues.entry(Arc::clone(resource)).or_insert_with(|| WaitQueue::new(now))
    }

    /// Whether the waiter may ask the servers now. If so, it counts as asking.
    pub(crate) fn begin(
        &mut self,
        target: &Target,
        number: u64,
        turn: TurnRequest,
        now: Moment,
    ) -> Permission {
        if let LockKind::Several(names) = &target.kind {
            return self.begin_all(names, number, turn, now);
        }
        if let Some(queue) = self.permits(target) {
            return queue.begin(number, turn, now);
        }
        let queue = self.queues.get_mut(&target.resource);
        queue.map_or(Permission::MayAsk, |queue| queue.begin(number, turn, now))
    }

    /// The servers have refused the waiter, perhaps because another client has the lock. For several resources,
    /// `in_the_way` has one bit for each one that is in the way.
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

    /// The waiter has taken the lock, and leaves the line and the queue. Returns its places in line, and the
    /// waiters whose waits must be ended.
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

    /// The waiter is about to leave the queue in the middle of a pause, and will come back. The next head goes
    /// on with that pause, and with the backoff, so that it does not begin a new wait.
    pub(crate) fn pass_on(
        &mut self,
        target: &Target,
        number: u64,
        pause_until: Moment,
        backoff: Backoff,
    ) {
        // For several resources, only the queue of the first one takes this over.
        if let Some(queue) = self.permits(target) {
            queue.pass_on(number, pause_until, backoff);
        } else if let Some(queue) = self.queues.get_mut(&target.resource) {
            queue.pass_on(number, pause_until, backoff);
        }
    }

    /// The backoff that the waiter must go on with, if an earlier head has left one.
    pub(crate) fn inherit(&mut self, target: &Target, number: u64) -> Option<Backoff> {
        if let Some(queue) = self.permits(target) {
            return queue.inherit(number);
        }
        self.queues.get_mut(&target.resource)?.inherit(number)
    }

    /// The waiter gives up. Returns the waiters whose waits must be ended.
    pub(crate) fn leave(&mut self, target: &Target, number: u64, now: Moment) -> Vec<Ticket> {
        if let Some(queue) = self.permits(target) {
            let next = queue.leave(number, now);
            self.clean_permits(target, now);
            return next.into_iter().collect();
        }
        self.forget_standing(target, number);
        target.names().iter().flat_map(|name| self.leave_one(name, number, now)).collect()
    }

    /// Only a waiter that wants several resources has state outside its queue.
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
            self.queues.give_back();
        }
        next
    }

    /// The waiter waits under this ticket. Returns until when.
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

    /// The waiter no longer waits, because its time was up or its wait was ended. Returns whether it is its
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

    /// The lock is being released at this moment. Returns what happens to the queue of one of its resources,
    /// and whether [`Self::stand_back`] must be called because others must get their chance.
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
            self.queues.give_back();
        }
        released
    }

    /// The next waiter asks at this moment, and not before.
    pub(crate) fn stand_back(&mut self, target: &Target, resource: &[u8], until: Moment) {
        if let Some(queue) = self.permits(target) {
            queue.stand_back(until);
        } else if let Some(queue) = self.queues.get_mut(resource) {
            queue.stand_back(until);
        }
    }

    /// The lock was lost. Returns the waiters whose waits must be ended.
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

    /// The lock has become a shared one. Returns the waiters whose waits must be ended.
    pub(crate) fn downgraded(&mut self, hold: &HeldLock) -> Vec<Ticket> {
        let queue = self.queues.get_mut(hold.resource());
        queue.map_or_else(Vec::new, |queue| queue.downgraded(hold))
    }

    /// Whether there are so many queues that some may no longer be needed.
    fn is_to_clean(&self) -> bool {
        self.count() >= self.clean_at
    }

    /// Forgets locks that ended without a release, before there are too many.
    fn clean(&mut self, now: Moment) {
        self.queues.retain(|_, queue| queue.is_needed(now));
        self.semaphores.retain(|_, queue| queue.is_needed(now));
        self.queues.give_back();
        self.clean_at = QUEUES_MIN.max(2 * self.count());
    }

    /// Forgets the queue of a semaphore if nobody needs it.
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

    /// The queue of a semaphore, if the target is one and there is a queue.
    fn permits(&mut self, target: &Target) -> Option<&mut PermitQueue> {
        self.semaphores.get_mut(&semaphore(target)?)
    }
}

/// The key of a semaphore's queue; none if the target is a lock.
fn semaphore(target: &Target) -> Option<(Arc<[u8]>, u16)> {
    target.kind.permits().map(|of| (Arc::clone(&target.resource), of))
}

#[cfg(test)]
mod tests;
