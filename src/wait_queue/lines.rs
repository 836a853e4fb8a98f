//! Where the waiters of this manager stand in line on the servers. There is one place for each resource, one
//! for each semaphore, and one for each waiter that wants several resources at once.
//!
//! Servers tell all of them over one channel, and a channel has one place in each line. Therefore one waiter
//! may take the place of another. That can happen with a lock and a semaphore of the same name, or with several
//! resources and one of them. The waiter that lost its place asks for it again.

use std::sync::Arc;

use super::WaitQueues;
use super::line::Line;
use super::queue::WaitQueue;
use super::semaphore;
use super::several::{bit, those_of};
use super::standing::Standing;
use super::turn::Left;
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::server_set::ServerSet;
use crate::transport::ticket::Ticket;

impl WaitQueues {
    /// The place in line of this waiter, or of the queue in which it stands.
    pub(crate) fn line(&mut self, target: &Target, number: u64) -> Option<&mut Line> {
        match &target.kind {
            LockKind::Several(_) => self.several.get_mut(&number).map(|it| &mut it.line),
            LockKind::Permit { .. } => self.permits(target).map(|queue| &mut queue.line),
            _ => self.queues.get_mut(&target.resource).map(|queue| &mut queue.line),
        }
    }

    /// A lock of this resource was released where others want it. Whether the next waiter of this manager must
    /// let some time pass before it asks.
    pub(crate) fn is_to_stand_back(&mut self, resource: &[u8], now: Moment) -> bool {
        let queue = self.queues.get_mut(resource);
        queue.is_none_or(|queue| queue.line.untold().is_to_stand_back(now))
    }

    /// Whether this waiter may stand in line on the servers.
    pub(crate) fn may_stand_in_line(&mut self, target: &Target, number: u64) -> bool {
        match &target.kind {
            LockKind::Several(names) => {
                let standing = self.stands_in(number);
                let may = |name: &Arc<[u8]>| {
                    self.queues.get(name).is_some_and(|queue| queue.may_stand_in_line(number))
                };
                standing != 0 && those_of(names, standing).all(may)
            }
            LockKind::Permit { .. } => {
                self.permits(target).is_some_and(|queue| queue.may_stand_in_line(number))
            }
            _ => {
                let queue = self.queues.get(&target.resource);
                queue.is_some_and(|queue| queue.may_stand_in_line(number))
            }
        }
    }

    /// This waiter is about to ask for its place. For several resources, returns the lines in which it asks. If
    /// it was refused just now, it stands in the queues of the resources that are in the way. Otherwise the
    /// resources that were in the way before may still be.
    pub(crate) fn lines_of(&mut self, number: u64, was_refused: bool) -> u128 {
        let Some(standing) = self.several.get_mut(&number) else { return u128::MAX };
        if was_refused || standing.lined == 0 {
            standing.lined |= standing.queues;
        }
        standing.lined
    }

    /// A release of this manager has woken a waiter of another process. The next waiter of this manager asks at
    /// this moment.
    pub(crate) fn woke(&mut self, target: &Target, until: Moment, now: Moment) {
        if let Some(queue) = self.permits(target) {
            return queue.woke(until, now);
        }
        if target.kind.permits().is_none() {
            target.names().iter().for_each(|name| self.queue_of(name, now).woke(until, now));
        }
    }

    /// Whether a waiter of another process was woken lately.
    pub(crate) fn was_woken(&mut self, target: &Target, now: Moment) -> bool {
        if target.kind.permits().is_some() {
            return self.permits(target).is_some_and(|queue| queue.was_woken(now));
        }
        let was_woken = |queue: &WaitQueue| queue.was_woken(now);
        target.names().iter().any(|name| self.queues.get(name).is_some_and(was_woken))
    }

    /// For several resources: if this waiter stands in the lines of resources that are no longer in the way, it
    /// leaves those lines.
    pub(crate) fn leave_lines_behind(&mut self, target: &Target, number: u64) -> Vec<Left> {
        let LockKind::Several(names) = &target.kind else { return Vec::new() };
        let Some(standing) = self.several.get_mut(&number) else { return Vec::new() };
        let (behind, servers) = (standing.lined & !standing.queues, standing.line.servers());
        standing.lined &= standing.queues;
        each_of(names, behind, servers)
    }

    /// The waiter has got what it waited for.
    pub(super) fn end_line(&mut self, target: &Target, number: u64) -> Vec<Left> {
        let servers = self.line(target, number).map_or_else(ServerSet::default, Line::leave);
        match (&target.kind, self.several.get_mut(&number)) {
            (LockKind::Several(names), Some(standing)) => {
                let lined = std::mem::take(&mut standing.lined);
                // The next waiter goes on with what is known of hand-overs.
                let untold = *standing.line.untold();
                for name in those_of(names, lined) {
                    let queue = self.queues.get_mut(name).filter(|it| !it.line.is_listening());
                    queue.into_iter().for_each(|queue| *queue.line.untold() = untold);
                }
                each_of(names, lined, servers)
            }
            _ => left_by(target, servers),
        }
    }

    /// The waiter gives up. It leaves the line if no other waiter needs its place, so that servers do not tell
    /// it in vain. This must be called before [`Self::leave`] forgets the queue.
    pub(crate) fn leave_line(&mut self, target: &Target, number: u64) -> Vec<Left> {
        let is_alone = match &target.kind {
            LockKind::Several(_) => true,
            LockKind::Permit { .. } => {
                self.permits(target).is_some_and(|queue| queue.is_alone(number))
            }
            _ => self.queues.get(&target.resource).is_some_and(|queue| queue.is_alone(number)),
        };
        if is_alone { self.end_line(target, number) } else { Vec::new() }
    }

    /// The waiter is about to leave the queue and will come back soon, so its place in line is kept.
    pub(crate) fn keep_line(&mut self, target: &Target, number: u64, now: Moment) {
        let LockKind::Several(names) = &target.kind else {
            if let Some(line) = self.line(target, number) {
                line.keep(now);
            }
            return;
        };
        let Some(Standing { line, lined, .. }) = self.several.get(&number) else { return };
        for name in those_of(names, *lined) {
            if let Some(queue) = self.queues.get_mut(name).filter(|it| !it.line.is_listening()) {
                queue.line = line.clone();
                queue.line.keep(now);
            }
        }
    }

    /// A waiter that wants several resources goes on with what those before it have seen of hand-overs.
    pub(super) fn recall_hand_overs(&mut self, names: &[Arc<[u8]>], number: u64, now: Moment) {
        let mut known = names
            .iter()
            .filter_map(|name| self.queues.get_mut(name).map(|queue| *queue.line.untold()));
        let remembered = known.find(|it| it.is_remembered(now));
        if let Some((untold, standing)) = remembered.zip(self.several.get_mut(&number)) {
            *standing.line.untold() = untold;
        }
    }

    /// Takes back what was kept for a waiter that wants several resources.
    pub(super) fn take_back_lines(&mut self, names: &Arc<[Arc<[u8]>]>, number: u64, now: Moment) {
        let Some(standing) = self.several.get_mut(&number) else { return };
        for (place, name) in names.iter().enumerate() {
            let kept =
                self.queues.get_mut(name).filter(|it| !it.has_head() && it.line.is_kept(now));
            if let Some(queue) = kept {
                let line = std::mem::take(&mut queue.line);
                standing.lined |= bit(place);
                if !standing.line.is_listening() {
                    standing.line = line;
                }
            }
        }
    }

    /// Places in these lines were taken from other waiters of this manager. Returns the waiters whose waits
    /// must be ended, because they must ask for their places again.
    pub(crate) fn lose_places(&mut self, (target, servers): &Left) -> Vec<Ticket> {
        let mut losers = Vec::new();
        let own = semaphore(target);
        for server in servers.iter() {
            losers.extend(self.lose_place(&target.resource, server, own.is_some(), |key, _| {
                own.as_ref() != Some(key)
            }));
        }
        losers
    }

    /// The place in the line of this name is gone on a server. The queue loses it if `of_queue` is set, and so
    /// do the semaphores that `of_semaphore` selects.
    pub(super) fn lose_place(
        &mut self,
        name: &Arc<[u8]>,
        server: usize,
        of_queue: bool,
        of_semaphore: impl Fn(&(Arc<[u8]>, u16), &Line) -> bool,
    ) -> Vec<Ticket> {
        let mut losers = Vec::new();
        if let Some(queue) = self.queues.get_mut(name).filter(|_| of_queue) {
            let (head, ticket) = (queue.head_of_several(), queue.waiting_head());
            let line = match head.and_then(|number| self.several.get_mut(&number)) {
                Some(standing) => &mut standing.line,
                None => &mut queue.line,
            };
            if line.lose_place(server) {
                losers.extend(ticket);
            }
        }
        for (key, queue) in self.semaphores.range_mut((Arc::clone(name), 0)..) {
            if key.0 != *name {
                break;
            }
            if of_semaphore(key, &queue.line) && queue.line.lose_place(server) {
                losers.extend(queue.waiting_first());
            }
        }
        losers
    }
}

/// The places on these servers that a waiter for one resource, or for a permit, has left.
pub(super) fn left_by(target: &Target, servers: ServerSet) -> Vec<Left> {
    match &target.kind {
        _ if servers.is_empty() => Vec::new(),
        LockKind::Permit { .. } => vec![(target.clone(), servers)],
        _ => vec![(Arc::clone(&target.resource).into(), servers)],
    }
}

fn each_of(names: &Arc<[Arc<[u8]>]>, which: u128, servers: ServerSet) -> Vec<Left> {
    if servers.is_empty() {
        return Vec::new();
    }
    those_of(names, which).map(|name| (Arc::clone(name).into(), servers)).collect()
}
