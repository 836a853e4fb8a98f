//! The queue of the waiters that want a permit of one semaphore.
//!
//! As long as permits may be free, as many waiters may ask as there are permits, and later ones wait. Once the
//! servers have said that all permits are taken, only the first waiter in the queue asks, with pauses. When it
//! is granted a permit, the next waiter is told, and so on. A release gives the first waiter its turn at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::queue::{ASK_HELD_MS, LOOK_FROM_BEHIND_MS, RIVAL_MS, RUN_MS, RUN_WITH_RIVALS_MS};
use super::turn::{LOOK_MS, Next, Permission, TurnRequest, Wait};
use super::waitlist::Waitlist;
use crate::protocol::lock::Lock;
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;

/// The waiters that want a permit, in the order in which they came, and what is known of the permits.
pub(super) struct PermitQueue {
    /// How many permits there are.
    of: usize,
    /// By their numbers, which is their order.
    waiters: BTreeMap<u64, Waiter>,
    /// How many of them the servers are being asked for. There may be thousands of others.
    asking: usize,
    /// The permits that this manager has.
    locks: Vec<Arc<Lock>>,
    /// Whether the servers have said that all permits are taken, and no waiter has found out since that this
    /// has changed.
    is_full: bool,
    /// When the servers may be asked although this manager has all permits.
    ask_held_at: Moment,
    /// From when on the first waiter may ask without a pause.
    open_at: Option<Moment>,
    /// Since when permits were handed on, and others had no chance.
    run_since: Moment,
    /// When other processes were last seen to have permits that are wanted here.
    rival_at: Option<Moment>,
    /// The queue's place in line on the servers.
    pub(super) line: Waitlist,
    /// When a release of this manager was last known to have woken another client.
    woken_at: Option<Moment>,
}

struct Waiter {
    thread: Option<usize>,
    /// The waiter's name while it waits and may be given the turn.
    ticket: Option<OpId>,
    /// When the waiter would stop waiting.
    until: Moment,
    /// Whether the servers are being asked for this waiter.
    asks: bool,
}

impl PermitQueue {
    pub(super) fn new(of: u16, now: Moment) -> Self {
        Self {
            of: usize::from(of),
            waiters: BTreeMap::new(),
            asking: 0,
            locks: Vec::new(),
            is_full: false,
            ask_held_at: now,
            open_at: None,
            run_since: now,
            rival_at: None,
            line: Waitlist::default(),
            woken_at: None,
        }
    }

    pub(super) fn join(&mut self, number: u64, thread: Option<usize>) {
        if thread.is_some() && self.waiters.values().any(|it| it.thread == thread) {
            return;
        }
        let (ticket, until, asks) = (None, Moment::NEVER, false);
        self.waiters.insert(number, Waiter { thread, ticket, until, asks });
    }

    pub(super) fn begin(&mut self, number: u64, turn: TurnRequest, now: Moment) -> Permission {
        self.forget_ended(now);
        if !self.waiters.contains_key(&number) {
            return Permission::MayAsk;
        }
        let is_first = self.is_first(number);
        if !is_first && !turn.is_last {
            return Permission::NotYet;
        }
        if let Some(left_ms) = self.all_held_ms(now) {
            let is_urgent = is_first && turn.is_urgent;
            if !is_urgent && now < self.ask_held_at {
                return Permission::Held { left_ms, readers: 0 };
            }
            self.ask_held_at = now.plus_ms(ASK_HELD_MS);
        } else if !turn.is_last {
            let is_open = self.open_at.is_none_or(|open_at| open_at <= now);
            if self.is_blocked() || !(is_open || turn.is_urgent) {
                return Permission::NotYet;
            }
        }
        (self.open_at, self.run_since) = (None, now);
        self.set_asks(number, true);
        Permission::MayAsk
    }

    pub(super) fn refused(&mut self, number: u64, is_taken: bool, now: Moment) {
        if !self.waiters.contains_key(&number) {
            return;
        }
        self.set_asks(number, false);
        if is_taken {
            self.is_full = true;
            if self.locks.len() < self.of {
                self.rival_at = Some(now);
            }
        }
    }

    pub(super) fn acquired(&mut self, number: u64, lock: &Arc<Lock>) -> Option<OpId> {
        self.remove(number);
        self.locks.push(Arc::clone(lock));
        self.ask_held_at = lock.asked_at().plus_ms(ASK_HELD_MS);
        self.open_at = None;
        self.is_full &= !self.waiters.is_empty();
        let (has_room, earliest) = (self.has_room(), self.earliest_end());
        let &Waiter { ticket, until, .. } = self.first_idle()?;
        if has_room {
            self.open_at = Some(lock.asked_at());
            return ticket;
        }
        // The next waiter looks by itself before long. It must be told only if that is too late.
        ticket.filter(|_| earliest < until)
    }

    pub(super) fn leave(&mut self, number: u64, now: Moment) -> Option<OpId> {
        let was_first = self.is_first(number) || self.waiters.get(&number)?.asks;
        self.remove(number);
        let next = self.first_idle().filter(|_| was_first)?;
        let ticket = next.ticket;
        if self.has_room() {
            self.open_at.get_or_insert(now);
        }
        ticket
    }

    pub(super) fn wait(&mut self, number: u64, ticket: OpId, wait: Wait, now: Moment) -> Moment {
        self.forget_ended(now);
        let until = self.due(number, wait, now);
        if let Some(waiter) = self.waiters.get_mut(&number).filter(|_| until > now) {
            (waiter.ticket, waiter.until) = (Some(ticket), until);
        }
        until
    }

    pub(super) fn end_wait(&mut self, number: u64, wait: Wait, now: Moment) -> bool {
        self.forget_ended(now);
        if let Some(waiter) = self.waiters.get_mut(&number) {
            waiter.ticket = None;
        }
        self.due(number, wait, now) <= now
    }

    pub(super) fn release(&mut self, lock: &Lock, now: Moment) -> (Next, bool) {
        self.forget(lock);
        let has_rivals = self.has_rivals(now);
        let (was_full, run_ms) =
            (self.is_full, if has_rivals { RUN_WITH_RIVALS_MS } else { RUN_MS });
        self.is_full &= !self.waiters.is_empty();
        let is_run_over = now.ms_since(self.run_since) >= run_ms;
        let waits = |waiter: &&mut Waiter| !waiter.asks && waiter.ticket.is_some();
        let first = self.waiters.values_mut().find(waits);
        let Some(first) = first else {
            self.open_at = Some(now);
            return (Next::Nobody, was_full && has_rivals);
        };
        if is_run_over {
            self.run_since = now;
            return (first.ticket.map_or(Next::Nobody, |ticket| Next::Tell(vec![ticket])), true);
        }
        (first.asks, self.asking) = (true, self.asking + 1);
        (first.ticket.take().map_or(Next::Nobody, Next::Ask), false)
    }

    pub(super) fn stand_back(&mut self, until: Moment) {
        self.open_at = Some(until);
    }

    pub(super) fn lost(&mut self, lock: &Lock, now: Moment) -> Option<OpId> {
        self.forget(lock);
        self.open_at = Some(now);
        self.first_idle()?.ticket
    }

    /// Whether this is a permit that this manager has.
    pub(super) fn has(&self, lock: &Lock) -> bool {
        self.locks.iter().any(|ours| ours.token() == lock.token())
    }

    pub(super) fn is_needed(&self, now: Moment) -> bool {
        !self.waiters.is_empty()
            || self.locks.iter().any(|lock| now < lock.valid_until())
            || self.has_rivals(now)
    }

    /// A release of this manager has woken another client, which must get its chance now. The next waiter asks
    /// at this moment.
    pub(super) fn woke(&mut self, until: Moment, now: Moment) {
        (self.rival_at, self.woken_at) = (Some(now), Some(now));
        if self.waiters.is_empty() {
            self.open_at = Some(until);
        }
    }

    /// Whether another client was woken lately.
    pub(super) fn was_woken(&self, now: Moment) -> bool {
        self.woken_at.is_some_and(|woken_at| now.ms_since(woken_at) < RIVAL_MS)
    }

    /// Whether this waiter may stand in line on the servers: it is the first, and others have some of the
    /// permits.
    pub(super) fn may_stand_in_line(&self, number: u64) -> bool {
        self.waiters.keys().next() == Some(&number) && self.locks.len() < self.of
    }

    /// Whether this is the only waiter.
    pub(super) fn is_alone(&self, number: u64) -> bool {
        self.waiters.contains_key(&number) && self.waiters.len() == 1
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// The ticket of the first waiter, if it waits.
    pub(super) fn waiting_first(&self) -> Option<OpId> {
        self.waiters.values().next()?.ticket
    }

    fn has_rivals(&self, now: Moment) -> bool {
        self.rival_at.is_some_and(|rival_at| now.ms_since(rival_at) < RIVAL_MS)
    }

    fn forget(&mut self, lock: &Lock) {
        self.locks.retain(|ours| ours.token() != lock.token());
    }

    fn remove(&mut self, number: u64) {
        let asked = self.waiters.remove(&number).is_some_and(|waiter| waiter.asks);
        self.asking -= usize::from(asked);
    }

    /// Notes whether the servers are being asked for this waiter.
    fn set_asks(&mut self, number: u64, asks: bool) {
        if let Some(waiter) = self.waiters.get_mut(&number) {
            self.asking -= usize::from(waiter.asks);
            (waiter.asks, self.asking) = (asks, self.asking + usize::from(asks));
        }
    }

    /// The first waiter that the servers are not being asked for. Those before it ask, and are not many.
    fn first_idle(&self) -> Option<&Waiter> {
        self.waiters.values().find(|waiter| !waiter.asks)
    }

    /// Whether it is a waiter, and all waiters before it are asking already.
    fn is_first(&self, number: u64) -> bool {
        self.waiters.contains_key(&number)
            && self.waiters.range(..number).all(|(_, waiter)| waiter.asks)
    }

    /// Whether one more waiter may ask, if permits that this manager does not have are free.
    fn has_room(&self) -> bool {
        self.locks.len() + self.asking < self.of
    }

    /// Whether the waiters that ask already must be heard first.
    fn is_blocked(&self) -> bool {
        if self.is_full { self.asking > 0 } else { !self.has_room() }
    }

    /// When the first of this manager's permits ends.
    fn earliest_end(&self) -> Moment {
        self.locks.iter().map(|lock| lock.valid_until()).min().unwrap_or(Moment::NEVER)
    }

    /// How many milliseconds are left until then, if this manager has all permits.
    fn all_held_ms(&self, now: Moment) -> Option<i64> {
        (self.locks.len() >= self.of).then(|| self.earliest_end().ms_since(now))
    }

    fn forget_ended(&mut self, now: Moment) {
        let before = self.locks.len();
        self.locks.retain(|lock| !lock.is_lost_or_over() && now < lock.valid_until());
        if self.locks.len() < before {
            self.open_at.get_or_insert(now);
        }
    }

    /// When a waiter must do something.
    fn due(&self, number: u64, wait: Wait, now: Moment) -> Moment {
        if !self.waiters.contains_key(&number) {
            return wait.pause_until.min(wait.until);
        }
        let due = if !self.is_first(number) {
            now.plus_ms(LOOK_FROM_BEHIND_MS)
        } else if self.locks.len() >= self.of {
            self.earliest_end().min(now.plus_ms(LOOK_MS)).min(self.ask_held_at)
        } else if self.is_blocked() {
            now.plus_ms(LOOK_FROM_BEHIND_MS)
        } else if let Some(open_at) = self.open_at {
            open_at
        } else if wait.pause_until != Moment::NEVER {
            wait.pause_until
        } else {
            now
        };
        due.min(wait.until)
    }
}

#[cfg(test)]
mod tests;
