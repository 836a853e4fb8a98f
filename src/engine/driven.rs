//! The engine as the driver sees it.

use std::mem;
use std::time::Duration;

use super::{Chore, Engine, Notice, Wakening};
use crate::driver::Driven;
use crate::log::Line;
use crate::moment::Moment;
use crate::operation::Ended;
use crate::system::clock;
use crate::system::socket::{self, Watched};
use crate::transport::interest::Interest;
use crate::transport::server::Server;

/// What the driver waits for.
pub(crate) struct Watch {
    descriptors: Vec<Watched>,
    until: Moment,
    now: Moment,
}

impl Driven for Engine {
    type End = Wakening;
    type Event = Notice;
    type Chore = Chore;
    type Watch = Watch;
    type Words = Vec<Line>;

    fn advance(&mut self) {
        let now = clock::now();
        self.now = now;
        self.begin_turn();
        self.advance_servers(now);
        if self.state.is_unsent {
            // This also sends the requests that operations have made because of the first pass.
            self.advance_servers(now);
        }
    }

    /// Returns the descriptors of the servers in their order, then those of connections that owe answers
    /// too long, and the waker's descriptor last.
    fn watch(&mut self, waits: bool) -> Watch {
        const NONE: i32 = -1;
        let mut descriptors = mem::take(&mut self.watched);
        descriptors.clear();
        descriptors.extend(self.state.servers.iter().map(|server| match server.interest() {
            Some(Interest { fd, for_writing, .. }) => socket::watch(fd, for_writing),
            None => socket::watch(NONE, false),
        }));
        let predecessors = self.state.servers.iter().filter_map(Server::interest_in_predecessor);
        descriptors.extend(predecessors.map(|it| socket::watch(it.fd, it.for_writing)));
        descriptors.push(socket::watch(self.waker, false));
        let until = if waits { self.next_due() } else { self.now };
        self.watched_until = until;
        Watch { descriptors, until, now: self.now }
    }

    fn poll(watch: &mut Watch) {
        socket::poll(&mut watch.descriptors, watch.until, watch.now);
    }

    fn resume(&mut self, watch: Watch) -> bool {
        let now = clock::now();
        self.begin_turn();
        for (server, watched) in self.state.servers.iter_mut().zip(&watch.descriptors) {
            if watched.revents != 0 {
                server.handle_ready(now, &mut self.state.effects);
            }
        }
        let was_woken = watch.descriptors.last().is_some_and(|waker| waker.revents != 0);
        if watch.descriptors.len() > self.state.servers.len() + 1 {
            self.handle_predecessors(&watch.descriptors[self.state.servers.len()..], now);
        }
        self.watched = watch.descriptors;
        self.settle(now);
        self.expire(now);
        self.end_waits(now);
        was_woken
    }

    fn next_end(&mut self) -> Option<(usize, Wakening)> {
        self.ends.pop_front()
    }

    fn has_event(&self) -> bool {
        !self.notices.is_empty()
    }

    fn next_event(&mut self) -> Option<Notice> {
        self.notices.next()
    }

    fn has_chore(&self) -> bool {
        !self.state.chores.is_empty()
    }

    /// Skips the chores of operations that have ended meanwhile.
    fn next_chore(&mut self) -> Option<Chore> {
        while let Some(chore) = self.state.chores.pop_front() {
            if self.state.find(chore.ticket).is_some() {
                return Some(chore);
            }
        }
        None
    }

    fn withdraw(&mut self, thread: usize) {
        if let Some(place) = self.waits.remove(thread).and_then(|wait| wait.operation) {
            self.state.end_waiting(place);
        }
        self.standing_by = self.standing_by.filter(|&standing_by| standing_by != thread);
    }

    fn end_call(&mut self, thread: usize) {
        self.cancel_call_of(thread);
    }

    fn discard(&mut self, end: Wakening) {
        match end {
            Wakening::Ended(Ok(Ended::Acquired { hold, .. })) => self.release_unwanted(&hold),
            // Another thread may take it.
            Wakening::Noticed(notice) => self.notices.push(notice),
            Wakening::Ended(_) | Wakening::NoCall | Wakening::TimeUp => {}
        }
    }

    fn needs_driver(&mut self) -> bool {
        self.state.is_unsent || self.state.has_unattended() || self.next_due() <= clock::now()
    }

    fn note_nap(&mut self, is_driven: bool) -> Option<Duration> {
        self.nap_until = if is_driven { Moment::NEVER } else { self.next_due() };
        let nanos = (self.nap_until - clock::now()).max(0).unsigned_abs();
        (self.nap_until != Moment::NEVER).then(|| Duration::from_nanos(nanos))
    }

    fn is_due_earlier(&mut self) -> bool {
        self.state.is_unsent || self.state.has_unattended() || self.next_due() < self.nap_until
    }

    fn settle_descriptor(&mut self, is_driven: bool) {
        if self.readiness.is_none() {
            return;
        }
        let due = self.due_of_descriptor(is_driven);
        let Some(readiness) = &mut self.readiness else { return };
        if !is_driven {
            let interests =
                |it: &Server| it.interest().into_iter().chain(it.interest_in_predecessor());
            readiness.watch(self.state.servers.iter().flat_map(interests));
        }
        if let Some(due) = due {
            readiness.set_due(due, self.now);
        }
    }

    fn rest_descriptor(&mut self) {
        self.readiness.iter_mut().for_each(|it| it.rest(clock::now()));
    }

    fn take_change(&mut self) -> bool {
        // After another thread has done a chore, an operation may have an earlier deadline.
        mem::take(&mut self.state.effects.changed) || self.state.next_due() < self.watched_until
    }

    fn has_words(&self) -> bool {
        !self.state.effects.lines.is_empty()
    }

    fn take_words(&mut self) -> Vec<Line> {
        mem::take(&mut self.state.effects.lines)
    }
}

impl Engine {
    /// When the descriptor must become readable. `None` if nothing is ready and a thread drives: that
    /// thread sets the descriptor when it stops driving.
    fn due_of_descriptor(&mut self, is_driven: bool) -> Option<Moment> {
        if self.has_event() || self.has_chore() || self.state.is_unsent && !is_driven {
            return Some(Moment::from_nanos(0));
        }
        (!is_driven).then(|| self.next_due())
    }

    fn advance_servers(&mut self, now: Moment) {
        self.state.is_unsent = false;
        let is_busy = self.state.is_busy();
        self.state.visit_servers(|server, effects| {
            if is_busy || !server.is_dormant() {
                server.advance(now, effects);
            }
        });
        self.settle(now);
    }

    /// Ends the waits of threads that are over.
    pub(super) fn end_waits(&mut self, now: Moment) {
        while let Some((thread, wait)) = self.waits.take_due(now) {
            wait.operation.into_iter().for_each(|place| self.state.end_waiting(place));
            self.ends.push_back((thread, Wakening::TimeUp));
            self.state.effects.changed = true;
        }
        if self.standing_by.is_some() && self.is_look_up_due(now) {
            self.end_standing_by();
        }
    }

    /// Data may have arrived on connections that owe answers too long. By now other connections may owe
    /// answers too long, so every such connection is checked.
    fn handle_predecessors(&mut self, watched: &[Watched], now: Moment) {
        if watched.iter().any(|descriptor| descriptor.revents != 0) {
            let has_one = |server: &&mut Server| server.interest_in_predecessor().is_some();
            for server in self.state.servers.iter_mut().filter(has_one) {
                server.handle_predecessor_ready(now, &mut self.state.effects);
            }
        }
    }
}
