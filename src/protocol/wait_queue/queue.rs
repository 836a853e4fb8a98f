//! The queue of the waiters that want one resource.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::own_readers::OwnReaders;
use super::turn::{LOOK_MS, Next, Permission, TurnRequest, Wait, Wants};
use super::waitlist::Waitlist;
use crate::protocol::lock::Lock;
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;

/// How long a lock is handed on within a manager before others get their chance: with rivals about, and
/// without. A rival that polls a lock that changes hands looks at it every 8 ms on average (see
/// [`crate::protocol::quorum::backoff::Backoff`]), so a few such runs let it in. Without rivals, the pauses cost two
/// percent of the time.
pub(super) const RUN_WITH_RIVALS_MS: i64 = 40;
pub(super) const RUN_MS: i64 = 200;

/// The longest time for which the head then stands back. A manager that takes a contended lock again right
/// after it has released it also stands back for at most this time.
pub(crate) const STAND_BACK: Duration = Duration::from_millis(8);

/// How long a rival is remembered.
pub(super) const RIVAL_MS: i64 = 250;

/// How often the head asks the servers although this manager has the lock. The servers may have lost the lock,
/// and then it can be taken.
pub(super) const ASK_HELD_MS: i64 = 1000;

/// How often waiters behind the head look whether they are the head by now.
pub(super) const LOOK_FROM_BEHIND_MS: i64 = 1000;

/// The waiters that want one resource, and what is known of it.
pub(super) struct WaitQueue {
    head: Option<Waiter>,
    /// The waiters behind the head, by their numbers, which is their order.
    behind: BTreeMap<u64, Waiter>,
    /// The readers behind the head for which a call is news. So each is called once, even if thousands wait
    /// and each of them calls the others.
    uncalled: BTreeSet<u64>,
    /// The number of the first waiter that wants the lock alone. Readers before it may ask together.
    first_writer: Option<u64>,
    /// The lock, while this manager holds it exclusively.
    lock: Option<Arc<Lock>>,
    /// The locks by which this manager holds it shared.
    readers: OwnReaders,
    /// When the servers may be asked although this manager has the lock.
    ask_held_at: Moment,
    /// Whether the head asks the servers although this manager has the lock.
    asks_in_vain: bool,
    /// From when on the head may ask without a pause, because the lock was given up.
    open_at: Option<Moment>,
    /// Since when the lock was handed on, and others had no chance.
    run_since: Moment,
    /// Whether the head was told to look because the lock is handed on to it.
    is_handed_on: bool,
    /// When another process was last seen to have the lock.
    rival_at: Option<Moment>,
    /// The queue's place in line on the servers.
    pub(super) line: Waitlist,
    /// When a release of this manager was last known to have woken another client.
    woken_at: Option<Moment>,
}

struct Waiter {
    number: u64,
    thread: Option<usize>,
    /// The waiter's name while it waits and may be given the turn.
    ticket: Option<OpId>,
    /// When the waiter would stop waiting.
    until: Moment,
    wants: Wants,
    /// Whether it is a reader that may ask without a pause.
    is_called: bool,
}

/// Where a waiter stands.
enum Position {
    Head,
    /// A reader behind other readers, which may ask together with them.
    Beside,
    Behind,
    /// It was left out of the queue.
    Apart,
}

impl WaitQueue {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            head: None,
            behind: BTreeMap::new(),
            uncalled: BTreeSet::new(),
            first_writer: None,
            lock: None,
            readers: OwnReaders::default(),
            ask_held_at: now,
            asks_in_vain: false,
            open_at: None,
            run_since: now,
            is_handed_on: false,
            rival_at: None,
            line: Waitlist::default(),
            woken_at: None,
        }
    }

    pub(super) fn join(&mut self, number: u64, thread: Option<usize>, wants: Wants) {
        let mut waiters = self.head.iter().chain(self.behind.values());
        if thread.is_some() && waiters.any(|waiter| waiter.thread == thread) {
            return;
        }
        if wants != Wants::Shared && self.first_writer.is_none_or(|first| number < first) {
            self.first_writer = Some(number);
        }
        let (ticket, until) = (None, Moment::NEVER);
        let waiter = Waiter { number, thread, ticket, until, wants, is_called: false };
        // A head that waits for another of its resources makes way for an earlier waiter that comes back.
        // Otherwise each would wait for the other, until the head leaves this queue.
        let makes_way = |head: &mut Waiter| {
            head.number > number && head.wants == Wants::Several && head.ticket.is_some()
        };
        let head = self.head.take_if(makes_way);
        match self.head {
            None => self.head = Some(waiter),
            Some(_) => self.stand_behind(waiter),
        }
        head.into_iter().for_each(|head| self.stand_behind(head));
    }

    /// A waiter that had left comes before those that came later.
    fn stand_behind(&mut self, waiter: Waiter) {
        if waiter.wants == Wants::Shared {
            self.uncalled.insert(waiter.number);
        }
        self.behind.insert(waiter.number, waiter);
    }

    /// Whether the waiter may ask. If so, it counts as asking.
    pub(super) fn begin(&mut self, number: u64, turn: TurnRequest, now: Moment) -> Permission {
        let permission = self.permission(number, turn, now);
        if permission == Permission::MayAsk {
            self.ask(number, now);
        }
        permission
    }

    /// Whether the waiter may ask.
    pub(super) fn permission(&mut self, number: u64, turn: TurnRequest, now: Moment) -> Permission {
        self.forget_ended(now);
        let held = self.held_from(number, now);
        match self.position(number) {
            Position::Head => {}
            Position::Beside if held.is_none() => {}
            Position::Apart => return Permission::MayAsk,
            Position::Beside | Position::Behind => {
                return self.begin_from_behind(number, held, turn.is_last, now);
            }
        }
        if let Some(held) = held
            && !turn.is_urgent
            && now < self.ask_held_at
        {
            return held;
        }
        if self.open_at.is_some_and(|open_at| open_at > now) && !turn.is_urgent {
            return Permission::NotYet;
        }
        Permission::MayAsk
    }

    fn begin_from_behind(
        &self,
        number: u64,
        held: Option<Permission>,
        is_last: bool,
        now: Moment,
    ) -> Permission {
        match held {
            Some(_) if is_last && now >= self.ask_held_at => Permission::MayAsk,
            Some(held) => held,
            // The reader would overtake a writer that waits for readers of this manager.
            None if !self.readers.is_empty() && self.is_reader(number) => Permission::NotYet,
            None if is_last => Permission::MayAsk,
            None => Permission::NotYet,
        }
    }

    /// The waiter asks the servers.
    pub(super) fn ask(&mut self, number: u64, now: Moment) {
        match self.position(number) {
            Position::Head => {
                self.ask_held_at = now.plus_ms(ASK_HELD_MS);
                self.open_at = None;
                if !mem::take(&mut self.is_handed_on) {
                    self.run_since = now;
                }
                self.asks_in_vain = self.held_from(number, now).is_some();
                self.end_call(number);
            }
            Position::Beside | Position::Behind if self.held_from(number, now).is_some() => {
                self.ask_held_at = now.plus_ms(ASK_HELD_MS);
            }
            Position::Beside => self.end_call(number),
            Position::Behind | Position::Apart => {}
        }
    }

    pub(super) fn refused(&mut self, number: u64, is_taken: bool, now: Moment) {
        if self.is_head(number) && is_taken && !self.asks_in_vain && self.lock.is_none() {
            self.rival_at = Some(now);
        }
    }

    pub(super) fn acquired(&mut self, number: u64, lock: &Arc<Lock>) -> Vec<OpId> {
        match lock.is_shared() {
            true => self.readers.add(lock),
            false => self.lock = Some(Arc::clone(lock)),
        }
        self.ask_held_at = lock.asked_at().plus_ms(ASK_HELD_MS);
        self.open_at = None;
        self.remove(number);
        // The next waiter looks by itself before long. It must be told only if that is too late.
        let next = self.head.as_ref().filter(|next| lock.valid_until() < next.until);
        let next = next.and_then(|next| next.ticket);
        // Readers behind this one may hold the lock, too.
        let readers = if lock.is_shared() { self.call_readers(0) } else { Vec::new() };
        merge(next, readers)
    }

    pub(super) fn leave(&mut self, number: u64, now: Moment) -> Vec<OpId> {
        let was_first_writer = self.first_writer == Some(number);
        let was_head = self.remove(number);
        if was_head && self.head.is_some() && self.lock.is_none() {
            self.open_at.get_or_insert(now);
        }
        let head = if was_head { self.waiting_head() } else { None };
        let readers = if was_first_writer { self.call_readers(number) } else { Vec::new() };
        merge(head, readers)
    }

    pub(super) fn wait(&mut self, number: u64, ticket: OpId, wait: Wait, now: Moment) -> Moment {
        let until = self.due(number, wait, now);
        if until > now {
            self.note_wait(number, Some(ticket), until);
        }
        until
    }

    pub(super) fn end_wait(&mut self, number: u64, wait: Wait, now: Moment) -> bool {
        self.note_wait(number, None, now);
        self.due(number, wait, now) <= now
    }

    /// Notes that the waiter waits until then under this ticket. Without a ticket, it no longer waits.
    pub(super) fn note_wait(&mut self, number: u64, ticket: Option<OpId>, until: Moment) {
        if let Some(waiter) = self.find(number) {
            (waiter.ticket, waiter.until) = (ticket, until);
            if ticket.is_some() {
                self.note_uncalled(number);
            }
        }
    }

    /// Whether this is the lock that this manager has.
    pub(super) fn has(&self, lock: &Lock) -> bool {
        self.lock.as_ref().is_some_and(|ours| ours.token() == lock.token())
            || self.readers.has(lock)
    }

    pub(super) fn has_rivals(&self, now: Moment) -> bool {
        self.rival_at.is_some_and(|rival_at| now.ms_since(rival_at) < RIVAL_MS)
    }

    pub(super) fn is_needed(&self, now: Moment) -> bool {
        self.head.is_some()
            || self.lock.as_ref().is_some_and(|lock| now < lock.valid_until())
            || self.readers.is_valid(now)
            || self.has_rivals(now)
            || self.line.is_needed(now)
    }

    fn position(&self, number: u64) -> Position {
        if self.is_head(number) {
            Position::Head
        } else {
            match self.behind.get(&number) {
                Some(waiter) if self.leads(waiter) => Position::Beside,
                Some(_) => Position::Behind,
                None => Position::Apart,
            }
        }
    }

    /// Returns whether the waiter was the head. If so, the waiter behind it is now the head.
    fn remove(&mut self, number: u64) -> bool {
        let is_head = self.is_head(number);
        if is_head {
            (self.asks_in_vain, self.is_handed_on) = (false, false);
            self.head = self.behind.pop_first().map(|it| it.1);
            if let Some(head) = &self.head {
                self.uncalled.remove(&head.number);
            }
        } else {
            self.behind.remove(&number);
            self.uncalled.remove(&number);
        }
        if self.first_writer == Some(number) {
            self.find_first_writer(number);
        }
        is_head
    }

    fn is_head(&self, number: u64) -> bool {
        self.head.as_ref().is_some_and(|head| head.number == number)
    }

    /// The ticket of the head, if it waits.
    pub(super) fn waiting_head(&self) -> Option<OpId> {
        self.head.as_ref()?.ticket
    }

    fn find(&mut self, number: u64) -> Option<&mut Waiter> {
        if self.is_head(number) {
            return self.head.as_mut();
        }
        self.behind.get_mut(&number)
    }

    /// Forgets locks that are free. A lock that nobody released is free when it has expired. A lock that was
    /// released through another manager, or was found to be lost, is free, too. A lock that is being released
    /// is not free before the release is on its way.
    fn forget_ended(&mut self, now: Moment) {
        let has_ended = |lock: &Arc<Lock>| lock.is_lost_or_over() || now >= lock.valid_until();
        if self.lock.as_ref().is_some_and(has_ended) {
            self.lock = None;
            self.open_at.get_or_insert(now);
            self.call_readers(0);
        }
        if self.readers.forget_ended(has_ended, now) {
            self.open_at.get_or_insert(now);
        }
    }

    /// When a waiter must do something.
    pub(super) fn due(&mut self, number: u64, wait: Wait, now: Moment) -> Moment {
        self.forget_ended(now);
        let held_until = self.held_until(number);
        let due = match (self.position(number), held_until, self.open_at) {
            (Position::Behind, ..) => now.plus_ms(LOOK_FROM_BEHIND_MS),
            (Position::Beside, Some(until), _) => until.min(now.plus_ms(LOOK_FROM_BEHIND_MS)),
            (Position::Head, Some(until), _) => {
                until.min(now.plus_ms(LOOK_MS)).min(self.ask_held_at)
            }
            (Position::Head | Position::Beside, None, open_at) if self.is_called(number) => {
                open_at.unwrap_or(now)
            }
            (Position::Head, None, Some(open_at)) => open_at,
            // The head stands in line on the servers for all of them.
            (Position::Beside, None, _) if self.line.is_listening() => {
                now.plus_ms(LOOK_FROM_BEHIND_MS)
            }
            (Position::Head | Position::Beside, None, _) | (Position::Apart, ..) => {
                wait.pause_until
            }
        };
        due.min(wait.until)
    }
}

/// Readers: waiters that want a lock shared. They ask together, unless a writer came before them.
impl WaitQueue {
    /// What keeps a waiter from asking, because this manager has the lock.
    fn held_from(&self, number: u64, now: Moment) -> Option<Permission> {
        if let Some(lock) = &self.lock {
            return Some(Permission::Held { left_ms: lock.remaining_ms(now), readers: 0 });
        }
        let (until, readers) = (self.readers.until()?, self.readers.len());
        let left_ms = until.ms_since(now).max(0);
        (!self.is_reader(number)).then_some(Permission::Held { left_ms, readers })
    }

    /// Until when the lock of this manager keeps the waiter from asking, if nothing is released.
    fn held_until(&self, number: u64) -> Option<Moment> {
        if let Some(lock) = &self.lock {
            return Some(lock.valid_until());
        }
        let until = self.readers.until()?;
        (!self.is_reader(number)).then_some(until)
    }

    /// Whether no lock of this manager is in the way of the head.
    fn is_free_for_head(&self) -> bool {
        let is_reader = self.head.as_ref().is_some_and(|head| head.wants == Wants::Shared);
        self.lock.is_none() && (is_reader || self.readers.is_empty())
    }

    /// This manager no longer has this lock.
    fn let_go_of(&mut self, lock: &Lock) {
        self.lock.take_if(|ours| ours.token() == lock.token());
        self.readers.remove(lock);
    }

    /// This manager now has the lock shared that was exclusive before. Returns the waiters
    /// whose waits must be ended.
    pub(super) fn downgraded(&mut self, lock: &Lock) -> Vec<OpId> {
        let Some(ours) = self.lock.take_if(|ours| ours.token() == lock.token()) else {
            return Vec::new();
        };
        self.readers.add(&ours);
        self.call_readers(0)
    }

    /// Lets readers ask without a pause if no writer comes before them and they joined after this one. Returns
    /// those that wait.
    fn call_readers(&mut self, after: u64) -> Vec<OpId> {
        if self.lock.is_some() {
            return Vec::new();
        }
        let mut called = Vec::new();
        let mut call = |waiter: &mut Waiter| {
            waiter.is_called = true;
            called.extend(waiter.ticket);
        };
        let is_called = |it: &&mut Waiter| it.wants == Wants::Shared && it.number > after;
        self.head.iter_mut().find(is_called).into_iter().for_each(&mut call);
        let first = after + 1;
        let before = self.first_writer.unwrap_or(u64::MAX).max(first);
        while let Some(&number) = self.uncalled.range(first..before).next() {
            self.uncalled.remove(&number);
            self.behind.get_mut(&number).into_iter().for_each(&mut call);
        }
        called
    }

    /// Finds the first writer, because the previous one is gone. All waiters behind the head that came before
    /// that one are readers.
    fn find_first_writer(&mut self, previous: u64) {
        let is_writer = |waiter: &&Waiter| waiter.wants != Wants::Shared;
        let head = self.head.iter().find(is_writer);
        let behind = self.behind.range(previous..).map(|it| it.1).find(is_writer);
        self.first_writer = head.into_iter().chain(behind).map(|it| it.number).min();
    }

    /// The waiter asks the servers. If it is refused, it may be called again.
    fn end_call(&mut self, number: u64) {
        if let Some(waiter) = self.find(number) {
            waiter.is_called = false;
            self.note_uncalled(number);
        }
    }

    /// From now on, a call is news for this waiter, if it is a reader behind the head.
    fn note_uncalled(&mut self, number: u64) {
        if self.behind.get(&number).is_some_and(|waiter| waiter.wants == Wants::Shared) {
            self.uncalled.insert(number);
        }
    }

    /// Whether this is a reader that no writer comes before.
    fn leads(&self, waiter: &Waiter) -> bool {
        waiter.wants == Wants::Shared && self.first_writer.is_none_or(|first| waiter.number < first)
    }

    fn is_reader(&self, number: u64) -> bool {
        self.look_at(number).is_some_and(|waiter| waiter.wants == Wants::Shared)
    }

    fn is_called(&self, number: u64) -> bool {
        self.look_at(number).is_some_and(|waiter| waiter.is_called)
    }

    fn look_at(&self, number: u64) -> Option<&Waiter> {
        match self.is_head(number) {
            true => self.head.as_ref(),
            false => self.behind.get(&number),
        }
    }
}

/// What happens to a queue when this manager gives up the lock.
impl WaitQueue {
    pub(super) fn release(&mut self, lock: &Lock, now: Moment) -> (Next, bool) {
        self.let_go_of(lock);
        if !self.is_free_for_head() {
            return (Next::Nobody, false);
        }
        let has_rivals = self.has_rivals(now);
        let readers = self.call_readers(0);
        let Some(head) = &mut self.head else { return (Next::Nobody, has_rivals) };
        let run_ms = if has_rivals { RUN_WITH_RIVALS_MS } else { RUN_MS };
        if now.ms_since(self.run_since) >= run_ms {
            self.run_since = now;
            return (Next::Tell(merge(self.waiting_head(), readers)), true);
        }
        match head.ticket {
            _ if head.wants == Wants::Shared => {
                (self.open_at, self.is_handed_on) = (Some(now), true);
                (Next::Tell(readers), false)
            }
            Some(ticket) if head.wants == Wants::Several => {
                (self.open_at, self.is_handed_on) = (Some(now), true);
                (Next::Tell(vec![ticket]), false)
            }
            Some(ticket) => {
                (head.ticket, self.asks_in_vain) = (None, false);
                (Next::Ask(ticket), false)
            }
            None => {
                self.open_at = Some(now);
                (Next::Nobody, false)
            }
        }
    }

    pub(super) fn stand_back(&mut self, until: Moment) {
        self.open_at = Some(until);
    }

    pub(super) fn lost(&mut self, lock: &Lock, now: Moment) -> Vec<OpId> {
        self.let_go_of(lock);
        if !self.is_free_for_head() {
            return Vec::new();
        }
        self.open_at = Some(now);
        let readers = self.call_readers(0);
        merge(self.waiting_head(), readers)
    }
}

/// The head and these readers. The head is not listed twice if it is one of the readers.
fn merge(head: Option<OpId>, readers: Vec<OpId>) -> Vec<OpId> {
    match head {
        Some(head) if readers.first() != Some(&head) => [vec![head], readers].concat(),
        _ => readers,
    }
}

/// What a queue has to do with the lines on the servers.
impl WaitQueue {
    /// A release of this manager has woken another client, which must get its chance now. The next waiter asks
    /// at this moment.
    pub(super) fn woke(&mut self, until: Moment, now: Moment) {
        (self.rival_at, self.woken_at) = (Some(now), Some(now));
        if self.head.is_none() {
            self.open_at = Some(until);
        }
    }

    /// Whether another client was woken lately.
    pub(super) fn was_woken(&self, now: Moment) -> bool {
        self.woken_at.is_some_and(|woken_at| now.ms_since(woken_at) < RIVAL_MS)
    }

    /// Whether this waiter may stand in line on the servers: it is the head, and no lock of this manager is in
    /// its way.
    pub(super) fn may_stand_in_line(&self, number: u64) -> bool {
        self.is_head(number) && self.is_free_for_head()
    }

    /// Whether this is the only waiter that uses the queue's place in line. A waiter that wants several
    /// resources has its own place.
    pub(super) fn is_alone(&self, number: u64) -> bool {
        self.is_head(number) && self.behind.values().all(|waiter| waiter.wants == Wants::Several)
    }

    /// The number of the head, if it wants other resources, too.
    pub(super) fn head_of_several(&self) -> Option<u64> {
        self.head.as_ref().filter(|head| head.wants == Wants::Several).map(|head| head.number)
    }

    pub(super) fn has_head(&self) -> bool {
        self.head.is_some()
    }
}

#[cfg(test)]
mod tests;
