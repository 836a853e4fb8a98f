//! Readers: waiters that want a lock shared. They ask together, unless a writer came before them.

use super::{Permission, Position, WaitQueue, Waiter, Wants};
use crate::held_lock::HeldLock;
use crate::moment::Moment;
use crate::transport::ticket::Ticket;

impl WaitQueue {
    /// What keeps a waiter from asking, because this manager has the lock.
    pub(super) fn held_from(&self, number: u64, now: Moment) -> Option<Permission> {
        if let Some(hold) = &self.hold {
            return Some(Permission::Held { left_ms: hold.remaining_ms(now), readers: 0 });
        }
        let left_ms = self.readers.iter().map(|hold| hold.remaining_ms(now)).max()?;
        let readers = self.readers.len();
        (!self.is_reader(number)).then_some(Permission::Held { left_ms, readers })
    }

    /// Until when the lock of this manager keeps the waiter from asking, if nothing is released.
    pub(super) fn held_until(&self, number: u64) -> Option<Moment> {
        if let Some(hold) = &self.hold {
            return Some(hold.valid_until());
        }
        let until = self.readers.iter().map(|hold| hold.valid_until()).max()?;
        (!self.is_reader(number)).then_some(until)
    }

    /// Whether no lock of this manager is in the way of the head.
    pub(super) fn is_free_for_head(&self) -> bool {
        let is_reader = self.head.as_ref().is_some_and(|head| head.wants == Wants::Shared);
        self.hold.is_none() && (is_reader || self.readers.is_empty())
    }

    /// This manager no longer has the lock through this hold.
    pub(super) fn let_go_of(&mut self, hold: &HeldLock) {
        let is_other = |ours: &std::sync::Arc<HeldLock>| ours.token() != hold.token();
        self.hold.take_if(|ours| !is_other(ours));
        self.readers.retain(is_other);
    }

    /// This manager now has the lock shared through the hold that was exclusive before. Returns the waiters
    /// whose waits must be ended.
    pub(in crate::wait_queue) fn downgraded(&mut self, hold: &HeldLock) -> Vec<Ticket> {
        let Some(ours) = self.hold.take_if(|ours| ours.token() == hold.token()) else {
            return Vec::new();
        };
        self.readers.push(ours);
        self.call_readers(0)
    }

    /// Lets readers ask without a pause if no writer comes before them and they joined after this one. Returns
    /// those that wait.
    pub(super) fn call_readers(&mut self, after: u64) -> Vec<Ticket> {
        if self.hold.is_some() {
            return Vec::new();
        }
        let first_writer = self.first_writer.unwrap_or(u64::MAX);
        let behind = self.behind.iter_mut().take_while(|waiter| waiter.number < first_writer);
        let leading = self.head.iter_mut().chain(behind);
        let called = leading.filter(|it| it.wants == Wants::Shared && it.number > after);
        let call = |waiter: &mut Waiter| {
            waiter.is_called = true;
            waiter.ticket
        };
        called.filter_map(call).collect()
    }

    /// Finds the first writer, because the previous one is gone. Behind the head, the waiters stand in the
    /// order of their numbers.
    pub(super) fn find_first_writer(&mut self) {
        let is_writer = |waiter: &&Waiter| waiter.wants != Wants::Shared;
        let head = self.head.iter().find(is_writer);
        let behind = self.behind.iter().find(is_writer);
        self.first_writer = head.into_iter().chain(behind).map(|it| it.number).min();
    }

    pub(super) fn note_called(&mut self, number: u64, is_called: bool) {
        if let Some(waiter) = self.find(number) {
            waiter.is_called = is_called;
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
        match self.position(number) {
            Position::Head => self.head.as_ref(),
            _ => self.behind.get(self.place_behind(number)?),
        }
    }
}
