//! What servers tell by themselves, brought to the queue that it is for.

use std::sync::Arc;

use super::WaitQueues;
use super::line::Line;
use super::queue::WaitQueue;
use super::turn::Heard;
use crate::moment::Moment;
use crate::server_set::ServerSet;

impl WaitQueues {
    /// The place in line for a resource, if anybody wants that.
    pub(crate) fn line(&mut self, resource: &[u8]) -> Option<&mut Line> {
        self.queues.get_mut(resource).map(|queue| &mut queue.line)
    }

    /// Whether this waiter is to stand in line on the servers.
    pub(crate) fn may_stand_in_line(&self, resource: &[u8], number: u64) -> bool {
        self.queues.get(resource).is_some_and(|queue| queue.may_stand_in_line(number))
    }

    /// The place of the operation that asked last of those that want the resource.
    pub(crate) fn asker(&self, resource: &[u8]) -> Option<usize> {
        self.queues.get(resource)?.line.asker()
    }

    /// A server has told that the resource is free; before it has done what it was asked last, or after that.
    pub(crate) fn pushed(
        &mut self,
        resource: &[u8],
        server: usize,
        is_asked: bool,
        now: Moment,
    ) -> Heard {
        let Some(queue) = self.queues.get_mut(resource) else { return Heard::PassOn };
        if queue.line.take_left(server) {
            return Heard::Nothing;
        }
        let is_wanted = queue.has_head() || queue.line.is_kept(now);
        if !queue.line.is_listening() || !is_wanted {
            return Heard::PassOn;
        }
        queue.line.note_pushed(server, is_asked, now);
        queue.waiting_head().map_or(Heard::Nothing, Heard::Tell)
    }

    /// A release of ours has woken a waiter of another process: who of us comes next asks at this moment.
    pub(crate) fn woke(&mut self, resource: &Arc<[u8]>, until: Moment, now: Moment) {
        if !self.queues.contains_key(resource) {
            self.clean(now);
        }
        let new = || WaitQueue::new(now);
        self.queues.entry(Arc::clone(resource)).or_insert_with(new).woke(until, now);
    }

    /// Whether that was so lately.
    pub(crate) fn was_woken(&self, resource: &[u8], now: Moment) -> bool {
        self.queues.get(resource).is_some_and(|queue| queue.was_woken(now))
    }

    /// Somebody has left its queue: if nobody is left, nobody stands in line on the servers. Returns those that have to
    /// be told. To be called before [`Self::leave`] forgets the queue.
    pub(crate) fn leave_line(&mut self, resource: &[u8], number: u64) -> ServerSet {
        let queue = self.queues.get_mut(resource).filter(|queue| queue.is_alone(number));
        queue.map_or_else(ServerSet::default, |queue| queue.line.leave())
    }

    /// The waiter is about to leave the queue and to come again soon: its place in line is kept.
    pub(crate) fn keep_line(&mut self, resource: &[u8], now: Moment) {
        if let Some(queue) = self.queues.get_mut(resource) {
            queue.line.keep(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Manners, Place, Wait};
    use super::*;
    use crate::lock_kind::Target;
    use crate::transport::ticket::Ticket;

    const RESOURCE: &[u8] = b"r";

    fn target() -> Target {
        Arc::<[u8]>::from(RESOURCE).into()
    }

    fn at_ms(ms: i64) -> Moment {
        Moment::from_nanos(1_000_000_000).plus_ms(ms)
    }

    /// One waiter, in line on the servers 0 and 1.
    fn waiting() -> (WaitQueues, u64, Ticket) {
        let (mut queues, ticket) = (WaitQueues::default(), Ticket::new(4, 1));
        let number = queues.join(&target(), None, at_ms(0));
        let manners = Manners { is_urgent: false, is_last: false };
        queues.begin(&target(), number, manners, at_ms(0));
        assert!(queues.may_stand_in_line(RESOURCE, number));
        let line = queues.line(RESOURCE).unwrap();
        line.begin_look(4, 1);
        let heard = [(0, Place::Behind(0)), (1, Place::Behind(0))];
        line.note(&heard, ServerSet::default(), Default::default(), at_ms(0));
        let wait = Wait { pause_until: at_ms(200), until: at_ms(900) };
        queues.wait(&target(), number, ticket, wait, at_ms(0));
        (queues, number, ticket)
    }

    #[test]
    fn the_head_that_waits_is_told_and_nobody_else() {
        let (mut queues, number, ticket) = waiting();
        assert_eq!(queues.asker(RESOURCE), Some(4));
        assert_eq!(queues.pushed(RESOURCE, 0, false, at_ms(1)), Heard::Tell(ticket));
        assert_eq!(queues.pushed(b"other", 0, false, at_ms(1)), Heard::PassOn);
        assert_eq!(queues.leave_line(RESOURCE, number), ServerSet::first(2));
        assert_eq!(queues.pushed(RESOURCE, 1, false, at_ms(1)), Heard::Nothing);
        queues.leave(&target(), number, at_ms(1));
        assert_eq!(queues.pushed(RESOURCE, 1, false, at_ms(1)), Heard::PassOn);
    }

    #[test]
    fn one_that_leaves_others_behind_leaves_them_its_place() {
        let (mut queues, number, _) = waiting();
        queues.join(&target(), None, at_ms(0));
        assert!(queues.leave_line(RESOURCE, number).is_empty());
        queues.leave(&target(), number, at_ms(1));
        assert!(queues.line(RESOURCE).unwrap().is_listening());
    }

    #[test]
    fn what_is_told_between_two_slices_of_a_wait_is_kept_for_the_next_and_then_passed_on() {
        let (mut queues, number, _) = waiting();
        queues.keep_line(RESOURCE, at_ms(0));
        queues.leave(&target(), number, at_ms(0));
        assert_eq!(queues.pushed(RESOURCE, 0, false, at_ms(999)), Heard::Nothing);
        assert_ne!(queues.line(RESOURCE).unwrap().due(2), Moment::NEVER);
        assert_eq!(queues.pushed(RESOURCE, 1, false, at_ms(1_000)), Heard::PassOn);
    }

    #[test]
    fn who_has_woken_somebody_gives_it_its_chance() {
        let (mut queues, resource) = (WaitQueues::default(), Arc::from(RESOURCE));
        queues.woke(&resource, at_ms(3), at_ms(1));
        assert!(queues.was_woken(RESOURCE, at_ms(2)) && !queues.was_woken(RESOURCE, at_ms(251)));
        let number = queues.join(&target(), None, at_ms(2));
        let manners = Manners { is_urgent: false, is_last: false };
        let permission = queues.begin(&target(), number, manners, at_ms(2));
        assert_eq!(permission, super::super::Permission::NotYet);
        let permission = queues.begin(&target(), number, manners, at_ms(3));
        assert_eq!(permission, super::super::Permission::MayAsk);
    }
}
