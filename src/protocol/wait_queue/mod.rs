//! Acquires of one manager that want the same resource wait in a queue. Only the head of the queue asks the
//! servers.
//!
//! A release gives the head its turn in the same step. The head's request then follows right behind the
//! release, and the lock changes hands within one round trip. A run of such handovers must not keep other
//! processes out. Therefore, after a while, the lock is released openly, and the head stands back before it
//! asks.

mod multi_wait;
mod own_readers;
mod permit_queue;
mod queue;
mod turn;
mod waitlist;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use self::multi_wait::MultiWait;
use self::permit_queue::PermitQueue;
pub(crate) use self::queue::STAND_BACK;
use self::queue::WaitQueue;
use self::turn::{Heard, Wants};
pub(crate) use self::turn::{Left, Next, Permission, TurnRequest, Wait};
pub(crate) use self::waitlist::{QueueRank, Waitlist};
use crate::protocol::command::NthKey;
use crate::protocol::lock::Lock;
use crate::protocol::lock_kind::{LockKind, Target, slot_of};
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::room::Room;
use crate::protocol::server_set::ServerSet;

/// How many queues there may be before queues that nobody needs any more are looked for.
const QUEUES_MIN: usize = 64;

/// All wait queues of one manager. A waiter is identified by the number that it was given.
pub(crate) struct WaitQueues {
    queues: HashMap<Arc<[u8]>, WaitQueue>,
    /// The queues of semaphores, by name and number of permits.
    semaphores: BTreeMap<(Arc<[u8]>, u16), PermitQueue>,
    /// The state of waiters that want several resources at once.
    several: HashMap<u64, MultiWait>,
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
    ) -> Vec<OpId> {
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
        lock: &Arc<Lock>,
    ) -> (Vec<Left>, Vec<OpId>) {
        if !matches!(target.kind, LockKind::Exclusive | LockKind::Shared) {
            let left = self.end_line(target, number);
            return (left, self.acquired_of_many(target, number, lock));
        }
        let Some(queue) = self.queues.get_mut(&target.resource) else { return Default::default() };
        let left = left_by(target, queue.line.leave());
        (left, queue.acquired(number, lock))
    }

    fn acquired_of_many(&mut self, target: &Target, number: u64, lock: &Arc<Lock>) -> Vec<OpId> {
        if let Some(queue) = self.permits(target) {
            return queue.acquired(number, lock).into_iter().collect();
        }
        self.forget_standing(target, number);
        let mut ended = Vec::new();
        for name in target.names() {
            if let Some(queue) = self.queues.get_mut(name) {
                ended.append(&mut queue.acquired(number, lock));
            }
        }
        ended
    }

    /// The waiter gives up. Returns the waiters whose waits must be ended.
    pub(crate) fn leave(&mut self, target: &Target, number: u64, now: Moment) -> Vec<OpId> {
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

    fn leave_one(&mut self, resource: &[u8], number: u64, now: Moment) -> Vec<OpId> {
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
        ticket: OpId,
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
        lock: &Lock,
        resource: &Arc<[u8]>,
        now: Moment,
    ) -> (Next, bool) {
        let target = lock.target();
        if let Some(queue) = self.permits(target).filter(|queue| queue.has(lock)) {
            let released = queue.release(lock, now);
            self.clean_permits(target, now);
            return released;
        }
        let Entry::Occupied(mut entry) = self.queues.entry(Arc::clone(resource)) else {
            return (Next::Nobody, false);
        };
        let queue = entry.get_mut();
        if !queue.has(lock) {
            return (Next::Nobody, false);
        }
        let released = queue.release(lock, now);
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
    pub(crate) fn lost(&mut self, lock: &Lock, now: Moment) -> Vec<OpId> {
        if let Some(queue) = self.permits(lock.target()).filter(|queue| queue.has(lock)) {
            return queue.lost(lock, now).into_iter().collect();
        }
        let lose = |name: &Arc<[u8]>| {
            let queue = self.queues.get_mut(name).filter(|queue| queue.has(lock));
            queue.map_or_else(Vec::new, |queue| queue.lost(lock, now))
        };
        lock.target().names().iter().flat_map(lose).collect()
    }

    /// The lock has become a shared one. Returns the waiters whose waits must be ended.
    pub(crate) fn downgraded(&mut self, lock: &Lock) -> Vec<OpId> {
        let queue = self.queues.get_mut(lock.resource());
        queue.map_or_else(Vec::new, |queue| queue.downgraded(lock))
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

/// Where the waiters of this manager stand in line on the servers. There is one place for each resource, one
/// for each semaphore, and one for each waiter that wants several resources at once.
///
/// Servers tell all of them over one channel, and a channel has one place in each line. Therefore one waiter
/// may take the place of another. That can happen with a lock and a semaphore of the same name, or with several
/// resources and one of them. The waiter that lost its place asks for it again.
impl WaitQueues {
    /// The place in line of this waiter, or of the queue in which it stands.
    pub(crate) fn line(&mut self, target: &Target, number: u64) -> Option<&mut Waitlist> {
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
    fn end_line(&mut self, target: &Target, number: u64) -> Vec<Left> {
        let servers = self.line(target, number).map_or_else(ServerSet::default, Waitlist::leave);
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

    /// A waiter that wants several resources goes on with what those before it have seen of hand-overs.
    fn recall_hand_overs(&mut self, names: &[Arc<[u8]>], number: u64, now: Moment) {
        let mut known = names
            .iter()
            .filter_map(|name| self.queues.get_mut(name).map(|queue| *queue.line.untold()));
        let remembered = known.find(|it| it.is_remembered(now));
        if let Some((untold, standing)) = remembered.zip(self.several.get_mut(&number)) {
            *standing.line.untold() = untold;
        }
    }

    /// Places in these lines were taken from other waiters of this manager. Returns the waiters whose waits
    /// must be ended, because they must ask for their places again.
    pub(crate) fn lose_places(&mut self, (target, servers): &Left) -> Vec<OpId> {
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
    fn lose_place(
        &mut self,
        name: &Arc<[u8]>,
        server: usize,
        of_queue: bool,
        of_semaphore: impl Fn(&(Arc<[u8]>, u16), &Waitlist) -> bool,
    ) -> Vec<OpId> {
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
fn left_by(target: &Target, servers: ServerSet) -> Vec<Left> {
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

/// What a message means to the waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Wanted,
    /// The place was given up while the message was on its way. The waiter that gave it up has taken care of
    /// it.
    SeenTo,
    Unwanted,
}

/// Messages that servers send by themselves, and how they reach the waiters that they are for.
impl WaitQueues {
    /// A server has told that a resource, or a slot of a semaphore, is free. `is_asked` says whether the
    /// operation at a place waits for an answer of that server. If so, the server told this before that answer.
    pub(crate) fn pushed(
        &mut self,
        name: &[u8],
        server: usize,
        is_asked: impl Fn(usize) -> bool,
        now: Moment,
    ) -> Heard {
        let name = Arc::<[u8]>::from(name);
        let (base, slot) = match slot_of(&name) {
            Some((base, slot)) => (Arc::from(base), slot),
            None => (Arc::clone(&name), 0),
        };
        let (mut heard, mut meanings) = (Heard::default(), Vec::new());
        if let Some(queue) = self.queues.get_mut(&name) {
            let (head, is_wanted) = (queue.waiting_head(), queue.has_head());
            // A waiter that wants several resources has a place of its own, if it is the head.
            let several = queue.head_of_several().and_then(|number| self.several.get_mut(&number));
            let meaning = match several {
                Some(standing) if standing.line.is_listening() => {
                    hear(&mut standing.line, is_wanted, server, &is_asked, now)
                }
                _ => hear(&mut queue.line, is_wanted, server, &is_asked, now),
            };
            heard.tell.extend(head.filter(|_| meaning == Meaning::Wanted));
            meanings.push(meaning);
        }
        for (key, queue) in self.semaphores.range_mut((Arc::clone(&base), slot + 1)..) {
            if key.0 != base {
                break;
            }
            let is_wanted = queue.is_waited_for();
            let meaning = hear(&mut queue.line, is_wanted, server, &is_asked, now);
            heard.tell.extend(queue.waiting_first().filter(|_| meaning == Meaning::Wanted));
            meanings.push(meaning);
        }
        heard.pass_on = meanings.iter().all(|&it| it == Meaning::Unwanted);
        // Other waiters in the line of the semaphore cannot use a slot of this number.
        heard.tell.extend(self.lose_place(&base, server, slot > 0, |key, _| key.1 <= slot));
        heard
    }
}

fn hear(
    line: &mut Waitlist,
    is_waited_for: bool,
    server: usize,
    is_asked: impl Fn(usize) -> bool,
    now: Moment,
) -> Meaning {
    if line.take_left(server) {
        return Meaning::SeenTo;
    }
    if !line.is_listening() || !is_waited_for {
        return Meaning::Unwanted;
    }
    line.note_pushed(server, line.asker().is_some_and(is_asked), now);
    Meaning::Wanted
}

/// How long a free resource is kept from other waiters of this manager for a waiter that also waits for other
/// resources.
const HOLD_UP_MS: i64 = 100;

type Names = Arc<[Arc<[u8]>]>;

/// Waiters that want several resources at once stand in the queues of all of them, with one number.
///
/// Numbers grow, an earlier waiter has the smaller one, and each queue is in the order of the numbers.
/// Therefore no two waiters wait for each other, in whatever order the resources are named. A waiter for
/// several resources asks when it may in every queue.
///
/// While one of its resources is in the way, the waiter must not keep the others from waiters that want nothing
/// else. Therefore, where it would be its turn, it waits for [`HOLD_UP_MS`] at most, and then leaves that
/// queue. When the servers have said which resource is in the way, it leaves at once. It comes back, before all
/// waiters that came later, when it may ask for the resource that was in the way.
impl WaitQueues {
    fn join_all(&mut self, names: &Names, number: u64, thread: Option<usize>, now: Moment) {
        self.several.insert(number, MultiWait::new(thread));
        self.recall_hand_overs(names, number, now);
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
    fn begin_all(
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
            let place = NthKey { nth: u16::try_from(nth).unwrap_or(of), of };
            if blocked.is_none_or(|(longest_ms, _)| left_ms > longest_ms) {
                blocked = Some((left_ms, place));
            }
        }
        blocked.map(|(left_ms, place)| Permission::Blocked { place, left_ms })
    }

    /// The servers have refused the waiter. It waits for the resources that are in the way, and others may have
    /// the rest.
    fn refused_several(
        &mut self,
        names: &Names,
        (number, in_the_way): (u64, u128),
        is_taken: bool,
        now: Moment,
    ) -> Vec<OpId> {
        for name in those_of(names, in_the_way) {
            if let Some(queue) = self.queues.get_mut(name) {
                queue.refused(number, is_taken, now);
            }
        }
        if in_the_way == 0 { Vec::new() } else { self.leave_but(names, number, in_the_way, now) }
    }

    /// Leaves all queues but these. Returns the waiters whose waits must be ended.
    fn leave_but(&mut self, names: &Names, number: u64, stay: u128, now: Moment) -> Vec<OpId> {
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
    ) -> Vec<OpId> {
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

    fn wait_for_all(
        &mut self,
        names: &Names,
        (number, ticket): (u64, OpId),
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

    fn end_wait_for_all(&mut self, names: &Names, number: u64, wait: Wait, now: Moment) -> bool {
        self.note_wait(names, number, None, now);
        self.due(names, number, wait, now) <= now
    }

    fn note_wait(&mut self, names: &Names, number: u64, ticket: Option<OpId>, until: Moment) {
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

    fn stands_in(&self, number: u64) -> u128 {
        self.several.get(&number).map_or(0, |standing| standing.queues)
    }
}

fn bit(place: usize) -> u128 {
    1_u128.checked_shl(u32::try_from(place).unwrap_or(u32::MAX)).unwrap_or(0)
}

/// The names whose bits are set.
fn those_of(names: &Names, which: u128) -> impl Iterator<Item = &Arc<[u8]>> {
    names.iter().enumerate().filter(move |it| which & bit(it.0) != 0).map(|it| it.1)
}

fn without(names: &Names, which: u128) -> impl Iterator<Item = &Arc<[u8]>> {
    those_of(names, !which)
}

#[cfg(test)]
mod tests;
