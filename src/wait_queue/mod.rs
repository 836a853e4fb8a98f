//! Acquires of one manager that want the same resource wait in a queue, and only the head of it asks
//! the servers.
//!
//! A release gives the head its turn in the same step, so that the request follows right behind the
//! release and the lock changes hands within one round trip. A run of that must not keep other
//! processes out: after a while the lock is released openly, and the head stands back before it asks.

mod line;
mod pushes;
mod queue;
mod turn;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use self::line::{Line, Place};
pub(crate) use self::pushes::Heard;
pub(crate) use self::queue::STAND_BACK;
use self::queue::WaitQueue;
pub(crate) use self::turn::{Manners, Next, Permission, Wait};
use crate::held_lock::HeldLock;
use crate::moment::Moment;
use crate::quorum::backoff::Backoff;
use crate::transport::ticket::Ticket;

/// How many queues there may be before those are looked for that nobody needs any more.
const QUEUES_MIN: usize = 64;

/// All wait queues of one manager. A waiter is known by the number that it was given.
pub(crate) struct WaitQueues {
    queues: HashMap<Arc<[u8]>, WaitQueue>,
    last_number: u64,
    clean_at: usize,
}

impl Default for WaitQueues {
    fn default() -> Self {
        Self { queues: HashMap::new(), last_number: 0, clean_at: QUEUES_MIN }
    }
}

impl WaitQueues {
    /// An acquire that wants the resource, of this thread if one waits for it. Returns its number.
    ///
    /// One whose thread has another in that queue already would wait for itself: it is a password
    /// callback's, made from within the other's call. It is left out of the queue, and asks when it likes.
    pub(crate) fn join(&mut self, resource: &Arc<[u8]>, thread: Option<usize>, now: Moment) -> u64 {
        self.last_number += 1;
        if !self.queues.contains_key(resource) {
            self.clean(now);
        }
        let new = || WaitQueue::new(now);
        let queue = self.queues.entry(Arc::clone(resource)).or_insert_with(new);
        queue.join(self.last_number, thread);
        self.last_number
    }

    /// Whether the waiter may ask the servers now; then it is taken to do it.
    pub(crate) fn begin(
        &mut self,
        resource: &[u8],
        number: u64,
        manners: Manners,
        now: Moment,
    ) -> Permission {
        let queue = self.queues.get_mut(resource);
        queue.map_or(Permission::MayAsk, |queue| queue.begin(number, manners, now))
    }

    /// The servers have refused the waiter; perhaps because somebody else has the lock.
    pub(crate) fn refused(&mut self, resource: &[u8], number: u64, is_taken: bool, now: Moment) {
        if let Some(queue) = self.queues.get_mut(resource) {
            queue.refused(number, is_taken, now);
        }
    }

    /// The waiter has got the lock, and leaves the queue. Returns whose wait is to be ended.
    pub(crate) fn acquired(
        &mut self,
        resource: &[u8],
        number: u64,
        hold: &Arc<HeldLock>,
    ) -> Option<Ticket> {
        self.queues.get_mut(resource)?.acquired(number, hold)
    }

    /// The waiter is about to leave the queue, in the midst of a pause, and to come again. Whoever is the
    /// head then goes on with that pause, and with the backoff: it begins no new wait.
    pub(crate) fn pass_on(
        &mut self,
        resource: &[u8],
        number: u64,
        pause_until: Moment,
        backoff: Backoff,
    ) {
        if let Some(queue) = self.queues.get_mut(resource) {
            queue.pass_on(number, pause_until, backoff);
        }
    }

    /// The backoff that the waiter is to go on with, if one that was the head before it has left any.
    pub(crate) fn inherit(&mut self, resource: &[u8], number: u64) -> Option<Backoff> {
        self.queues.get_mut(resource)?.inherit(number)
    }

    /// The waiter gives up. Returns whose wait is to be ended.
    pub(crate) fn leave(&mut self, resource: &[u8], number: u64, now: Moment) -> Option<Ticket> {
        let queue = self.queues.get_mut(resource)?;
        let next = queue.leave(number, now);
        if !queue.is_needed(now) {
            self.queues.remove(resource);
        }
        next
    }

    /// The waiter waits, under that name. Returns until when.
    pub(crate) fn wait(
        &mut self,
        resource: &[u8],
        number: u64,
        ticket: Ticket,
        wait: Wait,
        now: Moment,
    ) -> Moment {
        self.queues.get_mut(resource).map_or(now, |queue| queue.wait(number, ticket, wait, now))
    }

    /// The waiter waits no more: its time was up, or somebody has ended its wait. Returns whether it is its
    /// turn to ask.
    pub(crate) fn end_wait(
        &mut self,
        resource: &[u8],
        number: u64,
        wait: Wait,
        now: Moment,
    ) -> bool {
        self.queues.get_mut(resource).is_none_or(|queue| queue.end_wait(number, wait, now))
    }

    /// The lock is being released, at this moment. Returns what becomes of the queue, and whether
    /// [`Self::stand_back`] is to be called: others have to get their chance.
    pub(crate) fn release(&mut self, hold: &HeldLock, now: Moment) -> (Next, bool) {
        let queue = self.queues.get_mut(hold.resource()).filter(|queue| queue.has(hold));
        let Some(queue) = queue else { return (Next::Nobody, false) };
        let released = queue.release(now);
        if !queue.is_needed(now) {
            self.queues.remove(hold.resource());
        }
        released
    }

    /// Whoever comes next asks at this moment, and not before.
    pub(crate) fn stand_back(&mut self, resource: &[u8], until: Moment) {
        if let Some(queue) = self.queues.get_mut(resource) {
            queue.stand_back(until);
        }
    }

    /// The lock was lost. Returns whose wait is to be ended.
    pub(crate) fn lost(&mut self, hold: &HeldLock, now: Moment) -> Option<Ticket> {
        let queue = self.queues.get_mut(hold.resource()).filter(|queue| queue.has(hold))?;
        queue.lost(now)
    }

    /// Forgets locks that ended without a release, before there are too many.
    fn clean(&mut self, now: Moment) {
        if self.queues.len() >= self.clean_at {
            self.queues.retain(|_, queue| queue.is_needed(now));
            self.clean_at = QUEUES_MIN.max(2 * self.queues.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::queue::RIVAL_MS;
    use super::*;
    use crate::token::Token;

    const MANY: usize = 10_000;
    const URGENT: Manners = Manners { is_urgent: true, is_last: true };

    fn at_ms(ms: i64) -> Moment {
        Moment::from_nanos(1_000_000_000).plus_ms(ms)
    }

    /// Somebody takes the lock for 100 ms, at this time.
    fn take(queues: &mut WaitQueues, resource: &Arc<[u8]>, ms: i64) -> Arc<HeldLock> {
        let number = queues.join(resource, None, at_ms(ms));
        assert_eq!(queues.begin(resource, number, URGENT, at_ms(ms)), Permission::MayAsk);
        let token = Token::from_random([0; 20]);
        let hold = Arc::new(HeldLock::of_one_server(resource, token, (at_ms(ms), 100)));
        assert_eq!(queues.acquired(resource, number, &hold), None);
        hold
    }

    fn name(number: usize) -> Arc<[u8]> {
        number.to_string().into_bytes().into()
    }

    fn count(queues: &WaitQueues) -> usize {
        queues.queues.len()
    }

    #[test]
    fn a_queue_is_forgotten_with_the_release() {
        let mut queues = WaitQueues::default();
        for number in 0..MANY {
            let hold = take(&mut queues, &name(number), 0);
            assert_eq!(queues.release(&hold, at_ms(1)), (Next::Nobody, false));
            assert_eq!(count(&queues), 0);
        }
    }

    #[test]
    fn a_queue_is_forgotten_when_its_only_waiter_gives_up() {
        let mut queues = WaitQueues::default();
        for number in 0..MANY {
            let resource = name(number);
            let waiter = queues.join(&resource, None, at_ms(0));
            assert_eq!(queues.leave(&resource, waiter, at_ms(1)), None);
            assert_eq!(count(&queues), 0);
        }
    }

    #[test]
    fn locks_that_nobody_releases_are_forgotten_when_they_are_over() {
        let mut queues = WaitQueues::default();
        for number in 0..MANY {
            take(&mut queues, &name(number), number as i64);
            // A hundred of them are held at a time.
            assert!(count(&queues) <= 4 * 100, "{} queues", count(&queues));
        }
    }

    #[test]
    fn a_rival_is_forgotten_after_a_while() {
        let mut queues = WaitQueues::default();
        for number in 0..MANY {
            let (resource, now) = (name(number), at_ms(number as i64));
            let waiter = queues.join(&resource, None, now);
            assert_eq!(queues.begin(&resource, waiter, URGENT, now), Permission::MayAsk);
            queues.refused(&resource, waiter, true, now);
            assert_eq!(queues.leave(&resource, waiter, now), None);
            assert!(queues.queues[&resource].has_rivals(now));
            assert!(count(&queues) <= 4 * RIVAL_MS as usize, "{} queues", count(&queues));
        }
    }

    #[test]
    fn what_is_held_or_waited_for_is_not_forgotten() {
        let mut queues = WaitQueues::default();
        let held = take(&mut queues, &name(MANY), 0);
        let waited_for = name(MANY + 1);
        queues.join(&waited_for, None, at_ms(0));
        for number in 0..MANY {
            take(&mut queues, &name(number), 0);
        }
        assert!(queues.queues[held.resource()].has(&held));
        assert!(queues.queues.contains_key(&waited_for));
    }
}
