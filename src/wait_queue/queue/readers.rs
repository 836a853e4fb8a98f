//! Readers: waiters that want a lock shared. They ask together, unless a writer came before them.

use super::{Permission, WaitQueue, Waiter, Wants};
use crate::held_lock::HeldLock;
use crate::moment::Moment;
use crate::transport::ticket::Ticket;

impl WaitQueue {
    /// What keeps a waiter from asking, because this manager has the lock.
    pub(super) fn held_from(&self, number: u64, now: Moment) -> Option<Permission> {
        if let Some(hold) = &self.hold {
            return Some(Permission::Held { left_ms: hold.remaining_ms(now), readers: 0 });
        }
        let (until, readers) = (self.readers.until()?, self.readers.len());
        let left_ms = until.ms_since(now).max(0);
        (!self.is_reader(number)).then_some(Permission::Held { left_ms, readers })
    }

    /// Until when the lock of this manager keeps the waiter from asking, if nothing is released.
    pub(super) fn held_until(&self, number: u64) -> Option<Moment> {
        if let Some(hold) = &self.hold {
            return Some(hold.valid_until());
        }
        let until = self.readers.until()?;
        (!self.is_reader(number)).then_some(until)
    }

    /// Whether no lock of this manager is in the way of the head.
    pub(super) fn is_free_for_head(&self) -> bool {
        let is_reader = self.head.as_ref().is_some_and(|head| head.wants == Wants::Shared);
        self.hold.is_none() && (is_reader || self.readers.is_empty())
    }

    /// This manager no longer has the lock through this hold.
    pub(super) fn let_go_of(&mut self, hold: &HeldLock) {
        self.hold.take_if(|ours| ours.token() == hold.token());
        self.readers.remove(hold);
    }

    /// This manager now has the lock shared through the hold that was exclusive before. Returns the waiters
    /// whose waits must be ended.
    pub(in crate::wait_queue) fn downgraded(&mut self, hold: &HeldLock) -> Vec<Ticket> {
        let Some(ours) = self.hold.take_if(|ours| ours.token() == hold.token()) else {
            return Vec::new();
        };
        self.readers.add(&ours);
        self.call_readers(0)
    }

    /// Lets readers ask without a pause if no writer comes before them and they joined after this one. Returns
    /// those that wait.
    pub(super) fn call_readers(&mut self, after: u64) -> Vec<Ticket> {
        if self.hold.is_some() {
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
    pub(super) fn find_first_writer(&mut self, previous: u64) {
        let is_writer = |waiter: &&Waiter| waiter.wants != Wants::Shared;
        let head = self.head.iter().find(is_writer);
        let behind = self.behind.range(previous..).map(|it| it.1).find(is_writer);
        self.first_writer = head.into_iter().chain(behind).map(|it| it.number).min();
    }

    /// The waiter asks the servers. If it is refused, it may be called again.
    pub(super) fn end_call(&mut self, number: u64) {
        if let Some(waiter) = self.find(number) {
            waiter.is_called = false;
            self.note_uncalled(number);
        }
    }

    /// From now on, a call is news for this waiter, if it is a reader behind the head.
    pub(super) fn note_uncalled(&mut self, number: u64) {
        if self.behind.get(&number).is_some_and(|waiter| waiter.wants == Wants::Shared) {
            self.uncalled.insert(number);
        }
    }

    /// Whether this is a reader that no writer comes before.
    pub(super) fn leads(&self, waiter: &Waiter) -> bool {
        waiter.wants == Wants::Shared && self.first_writer.is_none_or(|first| waiter.number < first)
    }

    pub(super) fn is_reader(&self, number: u64) -> bool {
        self.look_at(number).is_some_and(|waiter| waiter.wants == Wants::Shared)
    }

    pub(super) fn is_called(&self, number: u64) -> bool {
        self.look_at(number).is_some_and(|waiter| waiter.is_called)
    }

    fn look_at(&self, number: u64) -> Option<&Waiter> {
        match self.is_head(number) {
            true => self.head.as_ref(),
            false => self.behind.get(&number),
        }
    }
}
