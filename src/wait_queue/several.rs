//! Waiters that want several resources at once stand in the queues of all of them, with one number.
//!
//! Numbers grow, an earlier waiter has the smaller one, and each queue is in the order of the numbers.
//! Therefore no two waiters wait for each other, in whatever order the resources are named. A waiter for
//! several resources asks when it may in every queue.
//!
//! While one of its resources is in the way, the waiter must not keep the others from waiters that want nothing
//! else. Therefore, where it would be its turn, it waits for [`HOLD_UP_MS`] at most, and then leaves that
//! queue. When the servers have said which resource is in the way, it leaves at once. It comes back, before all
//! waiters that came later, when it may ask for the resource that was in the way.

use std::sync::Arc;

use super::WaitQueues;
use super::queue::WaitQueue;
use super::standing::Standing;
use super::turn::{Permission, TurnRequest, Wait, Wants};
use crate::command::Place;
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::transport::ticket::Ticket;

/// How long a free resource is kept from other waiters of this manager for a waiter that also waits for other
/// resources.
pub(super) const HOLD_UP_MS: i64 = 100;

type Names = Arc<[Arc<[u8]>]>;

impl WaitQueues {
    pub(super) fn join_all(
        &mut self,
        names: &Names,
        number: u64,
        thread: Option<usize>,
        now: Moment,
    ) {
        self.several.insert(number, Standing::new(thread));
        self.recall_hand_overs(names, number, now);
        self.take_back_lines(names, number, now);
        self.come_back(names, number, now);
    }

    /// Joins the queues in which the waiter does not stand.
    fn come_back(&mut self, names: &Names, number: u64, now: Moment) {
        let Some(standing) = self.several.get_mut(&number) else { return };
        let (thread, before) = (standing.thread, standing.queues);
        standing.queues = names.iter().enumerate().fold(0, |all, it| all | bit(it.0));
        for name in without(names, before) {
            self.queue_of(name, now).join(number, thread, Wants::Several);
        }
    }

    /// Asks first in the queues in which the waiter stands. It comes back to the other queues only if it may
    /// ask there.
    pub(super) fn begin_all(
        &mut self,
        names: &Names,
        number: u64,
        turn: TurnRequest,
        now: Moment,
    ) -> Permission {
        let standing = self.stands_in(number);
        if let Some(blocked) = self.blocked(names, standing, number, turn, now) {
            return blocked;
        }
        self.come_back(names, number, now);
        if let Some(blocked) = self.blocked(names, !standing, number, turn, now) {
            return blocked;
        }
        for name in names.iter() {
            if let Some(queue) = self.queues.get_mut(name) {
                queue.ask(number, now);
            }
        }
        if let Some(standing) = self.several.get_mut(&number) {
            standing.holds_up_since = None;
        }
        Permission::MayAsk
    }

    /// What is in the way of these resources. If there are several reasons, the one that lasts longest.
    fn blocked(
        &mut self,
        names: &Names,
        which: u128,
        number: u64,
        turn: TurnRequest,
        now: Moment,
    ) -> Option<Permission> {
        let of = u16::try_from(names.len()).unwrap_or(u16::MAX);
        let mut blocked = None;
        for (nth, name) in (1..).zip(names.iter()).filter(|it| which & bit(it.0 - 1) != 0) {
            let Some(queue) = self.queues.get_mut(name) else { continue };
            let left_ms = match queue.permission(number, turn, now) {
                Permission::MayAsk => continue,
                Permission::Held { left_ms, .. } => Some(left_ms),
                Permission::NotYet | Permission::Blocked { .. } => None,
            };
            let place = Place { nth: u16::try_from(nth).unwrap_or(of), of };
            if blocked.is_none_or(|(longest_ms, _)| left_ms > longest_ms) {
                blocked = Some((left_ms, place));
            }
        }
        blocked.map(|(left_ms, place)| Permission::Blocked { place, left_ms })
    }

    /// The servers have refused the waiter. It waits for the resources that are in the way, and others may have
    /// the rest.
    pub(super) fn refused_several(
        &mut self,
        names: &Names,
        (number, in_the_way): (u64, u128),
        is_taken: bool,
        now: Moment,
    ) -> Vec<Ticket> {
        for name in those_of(names, in_the_way) {
            if let Some(queue) = self.queues.get_mut(name) {
                queue.refused(number, is_taken, now);
            }
        }
        if in_the_way == 0 { Vec::new() } else { self.leave_but(names, number, in_the_way, now) }
    }

    /// Leaves all queues but these. Returns the waiters whose waits must be ended.
    fn leave_but(&mut self, names: &Names, number: u64, stay: u128, now: Moment) -> Vec<Ticket> {
        let Some(standing) = self.several.get_mut(&number) else { return Vec::new() };
        let left = standing.queues & !stay;
        (standing.queues, standing.holds_up_since) = (standing.queues & stay, None);
        those_of(names, left).flat_map(|name| self.leave_one(name, number, now)).collect()
    }

    /// The waiter is about to wait. If it wants several resources, it keeps none from others for longer than it
    /// may. Returns the waiters whose waits must be ended.
    pub(crate) fn step_aside(
        &mut self,
        target: &Target,
        number: u64,
        wait: Wait,
        now: Moment,
    ) -> Vec<Ticket> {
        let LockKind::Several(names) = &target.kind else { return Vec::new() };
        let in_the_way = self.not_due(names, number, wait, now);
        let Some(standing) = self.several.get_mut(&number) else { return Vec::new() };
        if in_the_way == 0 || in_the_way == standing.queues {
            standing.holds_up_since = None;
            return Vec::new();
        }
        let since = *standing.holds_up_since.get_or_insert(now);
        match now.ms_since(since) < HOLD_UP_MS {
            true => Vec::new(),
            false => self.leave_but(names, number, in_the_way, now),
        }
    }

    pub(super) fn wait_for_all(
        &mut self,
        names: &Names,
        (number, ticket): (u64, Ticket),
        wait: Wait,
        now: Moment,
    ) -> Moment {
        let until = self.due(names, number, wait, now);
        let until = match self.several.get(&number).and_then(|it| it.holds_up_since) {
            Some(since) => until.min(since.plus_ms(HOLD_UP_MS)),
            None => until,
        };
        if until > now {
            self.note_wait(names, number, Some(ticket), until);
        }
        until
    }

    pub(super) fn end_wait_for_all(
        &mut self,
        names: &Names,
        number: u64,
        wait: Wait,
        now: Moment,
    ) -> bool {
        self.note_wait(names, number, None, now);
        self.due(names, number, wait, now) <= now
    }

    fn note_wait(&mut self, names: &Names, number: u64, ticket: Option<Ticket>, until: Moment) {
        for name in those_of(names, self.stands_in(number)) {
            if let Some(queue) = self.queues.get_mut(name) {
                queue.note_wait(number, ticket, until);
            }
        }
    }

    /// When the waiter must look again: when the last of its resources is due.
    fn due(&mut self, names: &Names, number: u64, wait: Wait, now: Moment) -> Moment {
        let standing = self.stands_in(number);
        let dues = those_of(names, standing).map(|name| self.due_of(name, number, wait, now));
        dues.max().unwrap_or(now)
    }

    /// The queues of the waiter in which it is not its turn: one bit for each.
    fn not_due(&mut self, names: &Names, number: u64, wait: Wait, now: Moment) -> u128 {
        let standing = self.stands_in(number);
        let mut found = 0;
        for (place, name) in names.iter().enumerate().filter(|it| standing & bit(it.0) != 0) {
            if self.due_of(name, number, wait, now) > now {
                found |= bit(place);
            }
        }
        found
    }

    fn due_of(&mut self, name: &[u8], number: u64, wait: Wait, now: Moment) -> Moment {
        // Without a pause, the servers were not asked, because another of the waiter's resources was in the
        // way.
        let pause_until = if wait.pause_until == Moment::NEVER { now } else { wait.pause_until };
        let wait = Wait { pause_until, ..wait };
        self.queues.get_mut(name).map_or(now, |queue: &mut WaitQueue| queue.due(number, wait, now))
    }

    pub(super) fn stands_in(&self, number: u64) -> u128 {
        self.several.get(&number).map_or(0, |standing| standing.queues)
    }
}

pub(super) fn bit(place: usize) -> u128 {
    1_u128.checked_shl(u32::try_from(place).unwrap_or(u32::MAX)).unwrap_or(0)
}

/// The names whose bits are set.
pub(super) fn those_of(names: &Names, which: u128) -> impl Iterator<Item = &Arc<[u8]>> {
    names.iter().enumerate().filter(move |it| which & bit(it.0) != 0).map(|it| it.1)
}

fn without(names: &Names, which: u128) -> impl Iterator<Item = &Arc<[u8]>> {
    those_of(names, !which)
}

#[cfg(test)]
mod tests;
