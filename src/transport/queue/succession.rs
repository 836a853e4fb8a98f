//! What happens to a queue when its connection is lost, or when another one is opened beside it. Requests
//! that must reach the server go over the next connection, in the right order.

use std::collections::BTreeSet;
use std::mem;

use super::Queue;
use crate::command::{KeyEffect, Request};
use crate::moment::Moment;
use crate::token::Token;
use crate::transport::entries::{Entries, Entry};
use crate::transport::scripts::Scripts;
use crate::transport::ticket::Ticket;

impl Queue {
    /// Until when something may exist on the server that an unanswered request has left, if the server
    /// executed the request when it was sent.
    pub(in crate::transport) fn guarded_until(&self) -> Option<Moment> {
        let leaves = |entry: &&Entry| entry.request.effect() == KeyEffect::Leaves;
        let ends = self.awaiting.iter().filter(leaves);
        ends.map(|entry| entry.since.plus_ms(entry.request.ttl_ms())).max()
    }

    /// Whether an unanswered request may leave what this request undoes, or undo what this request does, and no
    /// undoing request is behind it yet.
    pub(in crate::transport) fn wants(&self, undoing: &Request) -> bool {
        let matters = |entry: &&Entry| {
            let request = &entry.request;
            let is_same = request.token() == undoing.token();
            is_same && request.effect() == KeyEffect::Undoes || undoing.may_be_undone_by(request)
        };
        let mut latest_first = self.unsent.iter().rev().chain(self.awaiting.iter().rev());
        latest_first.find(matters).is_some_and(|entry| undoing.may_be_undone_by(&entry.request))
    }

    /// The connection is gone, so no request in the queue will be answered. Tells the waiting tickets, with
    /// whether their request was sent. Keeps the requests that must reach the server for the next connection.
    pub(in crate::transport) fn fail(&mut self, mut tell: impl FnMut(Ticket, bool)) {
        (self.silent_until, self.probe_at) = (None, Moment::NEVER);
        (self.outbox_bytes, self.unwritten) = (0, 0);
        self.reading = None;
        self.scripts = Scripts::default();
        self.forget_subscription();
        let parts = [&mut self.refused, &mut self.awaiting, &mut self.unsent].map(mem::take);
        self.give_up_setters(&parts[1], &parts[2]);
        for (part, was_sent) in parts.into_iter().zip([true, true, false]) {
            for mut entry in part {
                if let Some(ticket) = entry.ticket.take() {
                    tell(ticket, was_sent);
                }
                if entry.keep_until.is_some() {
                    self.unsent.push_back(entry);
                }
            }
        }
    }

    /// Requests that may set a key are dropped. Those that were sent may still be carried out.
    fn give_up_setters(&self, sent: &Entries, unsent: &Entries) {
        let setter = |entry: &Entry| entry.request.setter(self.server);
        unsent.iter().filter_map(setter).for_each(|it| it.note_end());
        self.lasting.unanswered.add(self.process, sent.iter().filter_map(setter));
    }

    /// Copies the requests that must reach the server from the queue of a connection that owes answers. They
    /// go over both connections: over the other one they overtake nothing, and over this one they are
    /// executed now. The waiting calls get the answers from this connection.
    pub(in crate::transport) fn repeat_required(&mut self, other: &mut Self) {
        other.probe_at = Moment::NEVER;
        let refused = mem::take(&mut other.refused).into_iter();
        let entries = other.awaiting.iter_mut().chain(other.unsent.iter_mut());
        let others = entries.filter(|entry| entry.keep_until.is_some()).map(Entry::hand_over);
        self.add_required(refused.chain(others));
    }

    /// Takes over the requests that must reach the server from a connection that is given up. Tells the
    /// waiting tickets, as [`Self::fail`] does.
    pub(in crate::transport) fn take_required(
        &mut self,
        mut other: Self,
        tell: impl FnMut(Ticket, bool),
    ) {
        other.fail(tell);
        self.add_required(other.unsent.into_iter());
    }

    /// Adds requests of another connection that must reach the server. Of several waiting requests that do
    /// the same, one is enough. Otherwise their number would double with each connection that is given up.
    fn add_required(&mut self, entries: impl Iterator<Item = Entry>) {
        let what = |entry: &Entry| (entry.token(), entry.request.effect() == KeyEffect::UndoesRest);
        let mut waiting: BTreeSet<(Token, bool)> = self.unsent.iter().map(what).collect();
        for entry in entries {
            let is_new = waiting.insert(what(&entry));
            if entry.ticket.is_some() || (is_new && !self.is_crammed()) {
                self.unsent.push_back(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redis::Value;

    use super::super::samples::{
        NOW, OTHER, SERVER, TICKET, fresh, long, of_semaphore, refused, request, send, settle,
    };
    use super::*;
    use crate::command::identity::RunId;
    use crate::command::{Answer, Told, Verb};
    use crate::transport::guard::Guard;

    #[test]
    fn releases_outlive_the_connection_but_not_the_key() {
        let mut queue = fresh();
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        queue.push(&request(Verb::Release), None, NOW);
        send(&mut queue, NOW);
        let mut told = Vec::new();
        queue.fail(|ticket, sent| told.push((ticket, sent)));
        assert_eq!(told, [(TICKET, true)]);
        assert!(send(&mut queue, NOW.plus_ms(9_999)) > 0);
        queue.fail(|_, _| {});
        assert_eq!(send(&mut queue, NOW.plus_ms(10_000)), 0);
    }

    #[test]
    fn refused_releases_outlive_the_connection() {
        let mut queue = fresh();
        queue.push(&request(Verb::Release), None, NOW);
        send(&mut queue, NOW);
        settle(&mut queue, &[refused()]).unwrap();
        assert!(!queue.has_unsent());
        queue.fail(|_, _| {});
        assert!(send(&mut queue, NOW.plus_ms(9_999)) > 0);
    }

    #[test]
    fn a_waiting_call_learns_whether_its_request_was_sent() {
        let mut queue = fresh();
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW);
        queue.push(&request(Verb::Acquire), Some(OTHER), NOW);
        let mut told = Vec::new();
        queue.fail(|ticket, sent| told.push((ticket, sent)));
        assert_eq!(told, [(TICKET, true), (OTHER, false)]);
    }

    #[test]
    fn another_process_ends_all_requests_that_set_keys() {
        let (mut queue, told) = (fresh(), Told::new());
        let numbered = |verb, number| {
            let (resource, token) = (Arc::from(&b"r"[..]), Token::from_random([7; 20]));
            let request = Request::new(verb, resource, token, 10_000).numbered(number);
            Arc::new(request.before(told.witness()))
        };
        queue.remember(Some(RunId::sample('a')), Guard::default());
        let setters = [Verb::Acquire, Verb::AcquireAgain, Verb::AcquireFenced, Verb::Repair];
        let others = [Verb::Extend, Verb::Inspect, Verb::Release];
        for (verb, number) in setters.into_iter().chain(others).zip(1..) {
            queue.push(&numbered(verb, number), None, NOW);
        }
        queue.push(&of_semaphore(Verb::Move), None, NOW);
        send(&mut queue, NOW);
        queue.push(&numbered(Verb::Repair, 9), None, NOW);
        queue.fail(|_, _| {});
        assert_eq!(told.all(), [(SERVER, 9)], "it was never sent");
        queue.remember(Some(RunId::sample('a')), Guard::default());
        assert_eq!(told.all().len(), 1);
        queue.remember(Some(RunId::sample('b')), Guard::default());
        assert_eq!(told.all()[1..], [1, 2, 3, 4].map(|number| (SERVER, number)));
    }

    #[test]
    fn requests_keep_their_order_on_a_new_connection() {
        let (mut old, mut new) = (fresh(), fresh());
        for token in 1..=3 {
            old.push(&long(Verb::Release, 1, token), None, NOW);
            if token < 3 {
                send(&mut old, NOW);
            }
        }
        settle(&mut old, &[refused()]).unwrap();
        new.repeat_required(&mut old);
        let tokens: Vec<Token> = new.unsent.iter().map(Entry::token).collect();
        assert_eq!(tokens, [1, 2, 3].map(|it| *long(Verb::Release, 1, it).token()));
    }

    #[test]
    fn a_key_is_guarded_for_its_ttl_from_the_request() {
        let mut queue = fresh();
        for verb in [Verb::Release, Verb::Inspect] {
            queue.push(&request(verb), None, NOW);
        }
        send(&mut queue, NOW);
        assert_eq!(queue.guarded_until(), None);
        for ms in [3, 7] {
            queue.push(&request(Verb::Acquire), None, NOW);
            send(&mut queue, NOW.plus_ms(ms));
        }
        assert_eq!(queue.guarded_until(), Some(NOW.plus_ms(10_007)));
    }

    #[test]
    fn one_release_is_wanted_behind_an_acquire() {
        let mut queue = fresh();
        let (ours, other) = (long(Verb::Release, 1, 1), long(Verb::Release, 1, 2));
        assert!(!queue.wants(&ours));
        queue.push(&long(Verb::Acquire, 1, 1), None, NOW);
        send(&mut queue, NOW);
        queue.push(&long(Verb::Inspect, 1, 1), None, NOW);
        assert!(queue.wants(&ours) && !queue.wants(&other));
        queue.push(&ours, None, NOW);
        assert!(!queue.wants(&ours));
        // The acquire is answered, so nothing of it can arrive late.
        settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert!(!queue.wants(&ours));
    }

    /// An extension that is executed behind it would make the key live on.
    #[test]
    fn a_delayed_release_is_wanted_behind_an_extension() {
        let mut queue = fresh();
        let (after, release) = (request(Verb::ReleaseAfter), request(Verb::Release));
        queue.push(&request(Verb::Extend), None, NOW);
        send(&mut queue, NOW);
        assert!(queue.wants(&after) && !queue.wants(&release));
        queue.push(&after, None, NOW);
        assert!(!queue.wants(&after));
    }

    #[test]
    fn freeing_other_slots_is_no_release() {
        let (mut old, mut new) = (fresh(), fresh());
        old.push(&of_semaphore(Verb::Acquire), None, NOW);
        assert!(old.wants(&of_semaphore(Verb::ReleaseRest)));
        old.push(&of_semaphore(Verb::ReleaseRest), None, NOW);
        // The held slot is released behind it.
        assert!(old.wants(&request(Verb::Release)));
        old.push(&request(Verb::Release), None, NOW);
        assert!(!old.wants(&request(Verb::Release)));
        send(&mut old, NOW);
        new.repeat_required(&mut old);
        new.repeat_required(&mut old);
        assert_eq!(new.length(), 2, "each of them once");
    }

    #[test]
    fn releases_move_to_a_new_connection_with_their_callers() {
        let (mut old, mut new) = (fresh(), fresh());
        old.push(&long(Verb::Release, 1, 1), None, NOW);
        send(&mut old, NOW);
        settle(&mut old, &[refused()]).unwrap();
        old.push(&long(Verb::Acquire, 1, 2), Some(OTHER), NOW);
        old.push(&long(Verb::Release, 1, 2), Some(TICKET), NOW);
        send(&mut old, NOW);
        new.repeat_required(&mut old);
        assert_eq!((old.length(), new.length()), (2, 2));
        assert_eq!(new.abandon(TICKET), None);
        assert_eq!(old.abandon(TICKET), None, "nobody waits for it there any more");
        assert_eq!(old.abandon(OTHER), Some(NOW));
        send(&mut new, NOW);
        assert_eq!(new.length(), 2);
    }

    /// The release may have been executed first over the other connection.
    #[test]
    fn a_release_over_two_connections_may_have_worked() {
        let (mut old, mut new) = (fresh(), fresh());
        old.push(&request(Verb::Release), Some(TICKET), NOW);
        send(&mut old, NOW);
        new.repeat_required(&mut old);
        new.push(&request(Verb::Release), Some(OTHER), NOW);
        send(&mut new, NOW);
        for (ticket, answer) in [(TICKET, Answer::AbsentOrReleased), (OTHER, Answer::Absent)] {
            let told = settle(&mut new, &[Value::Int(0)]).unwrap();
            assert_eq!((told.ticket, told.answer), (Some(ticket), answer));
        }
    }

    #[test]
    fn releases_do_not_multiply_with_connections() {
        let (mut old, mut new) = (fresh(), fresh());
        new.push(&request(Verb::Release), None, NOW);
        for _ in 0..9 {
            new.take_required(mem::replace(&mut old, fresh()), |_, _| {});
            send(&mut new, NOW);
            old = mem::replace(&mut new, fresh());
            new.repeat_required(&mut old);
            send(&mut new, NOW);
        }
        assert_eq!((old.length(), new.length()), (2, 1));
    }
}
