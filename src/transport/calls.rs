//! The connections to all servers and the calls that wait for answers: what the threads drive.

use std::collections::VecDeque;
use std::mem;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::server::{News, Server};
use super::{Patience, Tally, Ticket};
use crate::command::{Answer, Request};
use crate::driver::Driven;
use crate::failure::Failure;
use crate::log::Line;
use crate::moment::Moment;
use crate::server_set::ServerSet;
use crate::system::clock;
use crate::system::socket::{self, Watched};

pub(super) struct Calls<T> {
    pub(super) servers: Vec<Server>,
    pub(super) news: News,
    /// The descriptor that wakes the driver.
    waker: RawFd,
    /// By their places.
    calls: Vec<Option<Call<T>>>,
    generation: u64,
    ended: VecDeque<(usize, Call<T>)>,
    /// Places of calls to end; one may be there twice.
    decided: Vec<usize>,
    /// Kept for its memory.
    watched: Vec<Watched>,
    /// When it was last advanced.
    now: Moment,
}

/// Somebody who waits.
pub(super) struct Call<T> {
    generation: u64,
    /// Without one it waits for its time, or for somebody who gives it one.
    pub(super) tally: Option<T>,
    /// Who has not answered yet, and to whom something was sent.
    pending: ServerSet,
    pub(super) sent: ServerSet,
    since: Moment,
    until: Moment,
    /// How long a server may take to answer since it was sent the request, and when it is waited for no
    /// longer even so.
    reply_ms: i64,
    limit: Moment,
}

/// What the driver waits for.
pub(super) struct Watch {
    descriptors: Vec<Watched>,
    until: Moment,
    now: Moment,
}

impl<T: Tally> Calls<T> {
    pub(super) fn new(servers: Vec<Server>, waker: RawFd) -> Self {
        Self {
            servers,
            news: News::default(),
            waker,
            calls: Vec::new(),
            generation: 0,
            ended: VecDeque::new(),
            decided: Vec::new(),
            watched: Vec::new(),
            now: Moment::from_nanos(0),
        }
    }

    /// Opens a call that waits until then, or until somebody gives it a tally.
    pub(super) fn open(&mut self, place: usize, since: Moment, until: Moment) -> Ticket {
        self.generation += 1;
        let (generation, none) = (self.generation, ServerSet::default());
        if self.calls.len() <= place {
            self.calls.resize_with(place + 1, || None);
        }
        let call = Call {
            generation,
            tally: None,
            pending: none,
            sent: none,
            since,
            until,
            reply_ms: 0,
            limit: until,
        };
        self.calls[place] = Some(call);
        Ticket { place, generation }
    }

    pub(super) fn set_until(&mut self, ticket: Ticket, until: Moment) {
        if let Some(call) = self.find(ticket) {
            call.until = until;
        }
    }

    /// Has a tally told of all servers, as `ask` does it for each. Returns whether the call was
    /// waiting for one.
    pub(super) fn give(
        &mut self,
        ticket: Ticket,
        tally: T,
        (now, until): (Moment, Moment),
        mut ask: impl FnMut(&mut Server, &mut News),
    ) -> bool {
        let all = ServerSet::first(self.servers.len());
        let Some(call) = self.find(ticket).filter(|it| it.tally.is_none()) else { return false };
        (call.tally, call.pending, call.since, call.until) = (Some(tally), all, now, until);
        call.limit = until;
        self.for_each_server(|server, news| ask(server, news));
        self.deliver(now);
        true
    }

    /// Asks all servers on behalf of a call that waits for a tally.
    pub(super) fn ask(
        &mut self,
        ticket: Ticket,
        request: Request,
        tally: T,
        patience: Patience,
    ) -> bool {
        let request = Arc::new(request);
        let Patience { since, reply_ms, .. } = patience;
        let is_given = self.give(ticket, tally, (since, patience.answer_by()), |server, news| {
            server.ask(&request, ticket, reply_ms, since, news);
        });
        if let Some(call) = self.find(ticket).filter(|_| is_given) {
            (call.reply_ms, call.limit) = (reply_ms, patience.until);
        }
        is_given
    }

    /// Ends a call that waits for a tally, and has none.
    pub(super) fn call_off(&mut self, ticket: Ticket) {
        if self.find(ticket).is_some_and(|it| it.tally.is_none()) {
            self.end(ticket.place, self.now);
        }
    }

    pub(super) fn for_each_server(&mut self, mut visit: impl FnMut(&mut Server, &mut News)) {
        self.servers.iter_mut().for_each(|it| visit(it, &mut self.news));
    }

    /// Brings what the servers said to the calls, and ends those that have heard enough: when all is
    /// brought, for what comes to a call too late still tells that its request was sent.
    pub(super) fn deliver(&mut self, now: Moment) {
        // To end a call may lose a connection, and that is to be told to others.
        while !self.news.deliveries.is_empty() {
            let mut deliveries = mem::take(&mut self.news.deliveries);
            for it in deliveries.drain(..) {
                let call = self.find(it.ticket).filter(|call| call.pending.contains(it.server));
                let Some(call) = call else { continue };
                if it.sent {
                    call.sent = call.sent.with(it.server);
                }
                if call.hear(it.server, it.answer, now) {
                    self.decided.push(it.ticket.place);
                }
            }
            self.news.deliveries = deliveries;
            while let Some(place) = self.decided.pop() {
                self.end(place, now);
            }
        }
    }

    /// What was ready is known from before the clock was read, and this thread may have been kept from
    /// running in between: before anybody's time is up, all are looked at once more.
    fn look_again(&mut self, now: Moment) {
        let is_up = |it: &Call<T>| it.tally.is_some() && now >= it.until;
        if self.calls.iter().flatten().any(is_up) {
            self.for_each_server(|server, news| server.handle_ready(now, news));
            self.deliver(now);
        }
    }

    /// Something may have come over connections that owe answers too long, and there may be others of
    /// these by now: so each is looked at.
    fn handle_predecessors(&mut self, watched: &[Watched], now: Moment) {
        if watched.iter().any(|it| it.revents != 0) {
            let has_one = |it: &&mut Server| it.interest_in_predecessor().is_some();
            for server in self.servers.iter_mut().filter(has_one) {
                server.handle_predecessor_ready(now, &mut self.news);
            }
        }
    }

    /// Those whose time is up hear of no more servers.
    fn expire(&mut self, now: Moment) {
        for place in 0..self.calls.len() {
            let Some(call) = self.calls[place].as_mut().filter(|it| now >= it.until) else {
                continue;
            };
            let ticket = Ticket { place, generation: call.generation };
            call.until = call.answer_by(ticket, &self.servers);
            if now < call.until {
                continue;
            }
            for (index, server) in self.servers.iter_mut().enumerate() {
                if call.pending.contains(index) {
                    let sent_at = server.abandon(ticket, now, &mut self.news);
                    if sent_at.is_some() {
                        call.sent = call.sent.with(index);
                    }
                    let failure = match sent_at {
                        Some(sent_at) => Failure::NoAnswer { ms: now.ms_since(sent_at) },
                        None => server.not_in_time(now.ms_since(call.since)),
                    };
                    call.hear(index, Answer::Failed(failure), now);
                }
            }
            self.end(place, now);
        }
    }

    /// The call is over: who has not answered it is not waited for.
    fn end(&mut self, place: usize, now: Moment) {
        let Some(mut call) = self.calls[place].take() else { return };
        let ticket = Ticket { place, generation: call.generation };
        for (index, server) in self.servers.iter_mut().enumerate() {
            let sent_at = match call.pending.contains(index) {
                true => server.abandon(ticket, now, &mut self.news),
                false => None,
            };
            if sent_at.is_some() {
                call.sent = call.sent.with(index);
            }
            if let Some(tally) = call.tally.as_mut().filter(|it| it.wants_condition(index)) {
                tally.note_condition(index, server.condition(sent_at, now, &mut self.news));
            }
        }
        // Whoever waits for the sockets may not be the one whose call this is.
        self.news.changed = true;
        self.ended.push_back((place, call));
    }

    fn find(&mut self, ticket: Ticket) -> Option<&mut Call<T>> {
        let call = self.calls.get_mut(ticket.place)?.as_mut();
        call.filter(|it| it.generation == ticket.generation)
    }

    fn next_due(&self) -> Moment {
        let servers = self.servers.iter().map(Server::next_due);
        let calls = self.calls.iter().flatten().map(|it| it.until);
        servers.chain(calls).min().unwrap_or(Moment::NEVER)
    }
}

impl<T: Tally> Driven for Calls<T> {
    type End = Call<T>;
    type Watch = Watch;
    type Words = Vec<Line>;

    fn advance(&mut self) {
        let now = clock::now();
        self.now = now;
        self.for_each_server(|server, news| server.advance(now, news));
        self.deliver(now);
    }

    /// The descriptors of the servers in their order, those of connections that owe answers too long, and
    /// that of the waker at the end.
    fn watch(&mut self) -> Watch {
        const NONE: i32 = -1;
        let mut descriptors = mem::take(&mut self.watched);
        descriptors.clear();
        descriptors.extend(self.servers.iter().map(|server| {
            let (fd, for_writing) = server.interest().unwrap_or((NONE, false));
            socket::watch(fd, for_writing)
        }));
        let predecessors = self.servers.iter().filter_map(Server::interest_in_predecessor);
        descriptors.extend(predecessors.map(|(fd, for_writing)| socket::watch(fd, for_writing)));
        descriptors.push(socket::watch(self.waker, false));
        Watch { descriptors, until: self.next_due(), now: self.now }
    }

    fn poll(watch: &mut Watch) {
        socket::poll(&mut watch.descriptors, watch.until, watch.now);
    }

    fn resume(&mut self, watch: Watch) -> bool {
        let now = clock::now();
        for (server, watched) in self.servers.iter_mut().zip(&watch.descriptors) {
            if watched.revents != 0 {
                server.handle_ready(now, &mut self.news);
            }
        }
        let was_woken = watch.descriptors.last().is_some_and(|it| it.revents != 0);
        if watch.descriptors.len() > self.servers.len() + 1 {
            self.handle_predecessors(&watch.descriptors[self.servers.len()..], now);
        }
        self.watched = watch.descriptors;
        self.deliver(now);
        self.look_again(now);
        self.expire(now);
        was_woken
    }

    fn next_end(&mut self) -> Option<(usize, Call<T>)> {
        self.ended.pop_front()
    }

    fn take_change(&mut self) -> bool {
        mem::take(&mut self.news.changed)
    }

    fn take_words(&mut self) -> Vec<Line> {
        mem::take(&mut self.news.lines)
    }
}

impl<T: Tally> Call<T> {
    /// Until when it waits: the threads may have been kept from running between the beginning of the call
    /// and the sending of its request, and that is not the servers' time.
    fn answer_by(&self, ticket: Ticket, servers: &[Server]) -> Moment {
        let pending = servers.iter().enumerate().filter(|(index, _)| self.pending.contains(*index));
        let sent_at = pending.filter_map(|(_, server)| server.sent_at(ticket)).max();
        let answer_by = sent_at.map_or(self.until, |it| it.plus_ms(self.reply_ms).max(self.until));
        answer_by.min(self.limit)
    }

    /// Returns whether it has heard enough.
    fn hear(&mut self, server: usize, answer: Answer, now: Moment) -> bool {
        self.pending = self.pending.without(server);
        self.tally.as_mut().is_some_and(|it| it.handle_answer(server, answer, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::endpoint::Endpoint;
    use crate::transport::server::Delivery;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    /// So many answers are enough.
    struct Enough(usize);

    impl Tally for Enough {
        fn handle_answer(&mut self, _: usize, _: Answer, _: Moment) -> bool {
            self.0 = self.0.saturating_sub(1);
            self.0 == 0
        }
    }

    fn calls_to_three() -> Calls<Enough> {
        let endpoint = Endpoint::parse("127.0.0.1", 1).unwrap();
        let server = |it| Server::new(it, endpoint.clone(), Arc::default(), Arc::default());
        Calls::new((0..3).map(server).collect(), -1)
    }

    fn ask(calls: &mut Calls<Enough>, tally: Enough) -> Ticket {
        let ticket = calls.open(0, NOW, NOW);
        assert!(calls.give(ticket, tally, (NOW, Moment::NEVER), |_, _| {}));
        ticket
    }

    fn bring(calls: &mut Calls<Enough>, ticket: Ticket, servers: usize) {
        let answer = |server| Delivery { ticket, server, answer: Answer::Done, sent: true };
        calls.news.deliveries.extend((0..servers).map(answer));
        calls.deliver(NOW);
    }

    #[test]
    fn what_comes_along_with_the_last_answer_that_is_needed_still_tells_who_was_asked() {
        let mut calls = calls_to_three();
        let ticket = ask(&mut calls, Enough(2));
        bring(&mut calls, ticket, 3);
        let sent = calls.next_end().map(|(place, call)| (place, call.sent));
        assert_eq!(sent, Some((0, ServerSet::first(3))));
        assert!(calls.next_end().is_none());
    }

    /// The driver may poll a socket that another thread has read in passing, and with it the last answer to
    /// the driver's own call: then no socket wakes it. That the waker does is the affair of `driver.rs`, for
    /// which `tests/model` goes through every order.
    #[test]
    fn who_ends_a_call_in_passing_wakes_the_driver() {
        let mut calls = calls_to_three();
        let ticket = ask(&mut calls, Enough(1));
        calls.take_change();
        bring(&mut calls, ticket, 1);
        assert!(calls.take_change(), "its answer came");
        let standby = calls.open(0, NOW, Moment::NEVER);
        assert!(calls.next_end().is_some() && !calls.take_change());
        calls.call_off(standby);
        assert!(calls.take_change(), "it is waited for no more");
        let ticket = ask(&mut calls, Enough(9));
        calls.set_until(ticket, NOW);
        calls.take_change();
        calls.expire(NOW);
        assert!(calls.take_change(), "its time was up");
    }

    #[test]
    fn what_comes_too_late_is_not_told_to_the_next_call_in_its_place() {
        let mut calls = calls_to_three();
        let early = ask(&mut calls, Enough(1));
        bring(&mut calls, early, 1);
        assert!(calls.next_end().is_some());
        let late = ask(&mut calls, Enough(1));
        bring(&mut calls, early, 3);
        calls.call_off(early);
        calls.set_until(early, NOW);
        assert!(calls.next_end().is_none());
        assert_eq!(calls.calls[0].as_ref().map(|it| it.until), Some(Moment::NEVER));
        bring(&mut calls, late, 1);
        assert!(calls.next_end().is_some());
    }
}
