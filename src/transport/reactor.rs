//! Asks all servers at once, with `poll`, on the threads of the callers.
//!
//! Many threads may ask through one reactor, and they share its connections. One of those that wait
//! drives: it writes what all have queued, waits for the sockets, reads, and wakes the threads
//! whose tallies have heard enough. When its own has, it leaves, and another of the waiting goes on.
//! The mutex is never held while waiting, so that others can queue their requests meanwhile.

use std::io;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::command::{Answer, Request};
use super::endpoint::{self, Endpoint};
use super::failure::Failure;
use super::server::{News, Server};
use super::socket::{self, Visible, Waker};
use super::{Patience, Servers, Tally, Ticket, Timeouts, Transport};
use crate::clock::{self, Moment};
use crate::fork::this_process;
use crate::log::Log;

/// The connections to all servers, and the calls that wait for them.
pub struct Reactor<T> {
    core: Mutex<Core<T>>,
    waker: Option<Waker>,
    /// The descriptors, for a forked child.
    visible: Vec<Visible>,
    process: u32,
    log: Arc<Log>,
}

struct Core<T> {
    servers: Vec<Server>,
    calls: Vec<Place<T>>,
    generation: u64,
    /// Whether a thread drives, and whether it is waiting for the sockets at this moment.
    driven: bool,
    polling: bool,
    /// Kept for their memory.
    news: News,
    watched: Vec<libc::pollfd>,
}

/// Where a call is kept. The condition variable stays when the call is over.
struct Place<T> {
    wake: Arc<Condvar>,
    call: Option<Call<T>>,
}

/// A thread that waits.
struct Call<T> {
    generation: u64,
    tally: Option<T>,
    /// Who has not answered yet, and to whom something was sent.
    pending: Servers,
    sent: Servers,
    since: Moment,
    until: Moment,
    decided: bool,
    /// Whether its thread sleeps until it is woken. Waking costs a system call, so one that does
    /// not sleep is not woken.
    asleep: bool,
}

type Guard<'a, T> = MutexGuard<'a, Core<T>>;

impl<T: Tally> Reactor<T> {
    /// A reactor without connections: they are made when they are needed.
    pub(crate) fn new(
        endpoints: &[Endpoint],
        timeouts: &Arc<Timeouts>,
        log: Arc<Log>,
    ) -> io::Result<Self> {
        let waker = Waker::new()?;
        let new =
            |(index, it): (usize, &Endpoint)| Server::new(index, it.clone(), timeouts.clone());
        let servers: Vec<Server> = endpoints.iter().enumerate().map(new).collect();
        let mut visible: Vec<Visible> = servers.iter().map(Server::visible).collect();
        visible.extend(waker.visible());
        let core = Core {
            servers,
            calls: Vec::new(),
            generation: 0,
            driven: false,
            polling: false,
            news: News::default(),
            watched: Vec::new(),
        };
        let (core, waker) = (Mutex::new(core), Some(waker));
        Ok(Self { core, waker, visible, process: this_process(), log })
    }

    fn lock(&self) -> Guard<'_, T> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unlocks, and tells the logger what there is to tell.
    fn leave(&self, mut core: Guard<'_, T>) {
        if mem::take(&mut core.news.changed) && core.polling {
            // The driver may wait for what has happened already, or not know what to wait for.
            core.polling = false;
            if let Some(waker) = &self.waker {
                waker.wake();
            }
        }
        let lines = mem::take(&mut core.news.lines);
        drop(core);
        self.log.tell(&lines);
    }

    /// Waits until the call is decided: drives if nobody does, or is woken by who does.
    fn wait<'a>(&'a self, mut core: Guard<'a, T>, ticket: Ticket) -> (Guard<'a, T>, Call<T>) {
        while !core.is_decided(ticket) {
            if !core.driven {
                core = self.drive_or_resign(core, ticket);
                continue;
            }
            if core.polling {
                // What we queued is to be sent now, and our time may be up before the driver's.
                core.polling = false;
                if let Some(waker) = &self.waker {
                    waker.wake();
                }
            }
            let wake = core.fall_asleep(ticket);
            core = wake.wait(core).unwrap_or_else(PoisonError::into_inner);
        }
        let call = core.close_call(ticket);
        core.wake_next_driver();
        (core, call)
    }

    /// Drives; if that panics, leaves the others able to go on.
    fn drive_or_resign<'a>(&'a self, core: Guard<'a, T>, ticket: Ticket) -> Guard<'a, T> {
        panic::catch_unwind(AssertUnwindSafe(|| self.drive(core, ticket))).unwrap_or_else(|panic| {
            let mut core = self.lock();
            core.driven = false;
            core.close_call(ticket);
            core.wake_next_driver();
            drop(core);
            panic::resume_unwind(panic)
        })
    }

    fn drive<'a>(&'a self, mut core: Guard<'a, T>, ticket: Ticket) -> Guard<'a, T> {
        core.driven = true;
        loop {
            let now = clock::now();
            core.advance(now);
            if core.is_decided(ticket) {
                break;
            }
            core.news.changed = false;
            let until = core.next_due();
            let mut watched = core.watch(self.waker.as_ref());
            core.polling = true;
            drop(core);
            socket::poll(&mut watched, until);
            core = self.lock();
            core.polling = false;
            if let (Some(waker), Some(1..)) = (&self.waker, watched.last().map(|it| it.revents)) {
                waker.clear();
            }
            let now = clock::now();
            core.handle_ready(watched, now);
            // After reading: if this thread was kept from running, the answers may all be there.
            core.expire_calls(now);
        }
        core.driven = false;
        core
    }

    /// Looks up the names for which that is due, with nothing held: the resolver may be slow. But not
    /// if so many servers are promising without it. Returns how long it took.
    fn look_up_names(&self, enough: usize) -> i64 {
        let now = clock::now();
        let wanted: Vec<(usize, (String, u16))> = {
            let mut core = self.lock();
            if core.servers.iter().filter(|it| it.is_promising()).count() >= enough {
                return 0;
            }
            let due = |it: &mut Server| it.name_to_look_up(now);
            core.servers
                .iter_mut()
                .map(due)
                .enumerate()
                .filter_map(|(i, it)| Some((i, it?)))
                .collect()
        };
        for (index, (name, port)) in wanted {
            let began = clock::now();
            let found = endpoint::look_up(&name, port);
            let now = clock::now();
            let mut core = self.lock();
            let Core { servers, news, .. } = &mut *core;
            servers[index].handle_addresses(found, began, now, news);
            core.deliver(now);
            self.leave(core);
        }
        clock::now().ms_since(now)
    }

    /// Has a tally told of all servers, as `ask` does it for each, and waits for it.
    fn exchange(
        &self,
        tally: T,
        until: Moment,
        mut ask: impl FnMut(&mut Server, Ticket, Moment, &mut News),
    ) -> (T, Servers) {
        let now = clock::now();
        let mut core = self.lock();
        let all = Servers::first(core.servers.len());
        let ticket = core.open(Some(tally), all, now, until);
        core.for_each_server(|server, news| ask(server, ticket, now, news));
        core.deliver(now);
        let (core, call) = self.wait(core, ticket);
        self.leave(core);
        match call.tally {
            Some(tally) => (tally, call.sent),
            None => unreachable!("only the caller itself takes its tally"),
        }
    }
}

impl<T> Reactor<T> {
    /// Whether this process is the one that made the reactor.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == this_process()
    }

    /// Whether no thread is using the connections at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.core.try_lock().is_ok()
    }

    /// Closes, in a forked child, its copies of the parent's sockets. Takes no mutex.
    pub(crate) fn close_inherited(&self) {
        self.visible.iter().for_each(Visible::close_inherited);
    }
}

impl<T: Tally> Transport<T> for Reactor<T> {
    fn now(&self) -> Moment {
        clock::now()
    }

    fn is_connected(&self, enough: usize, reply_ms: i64) -> bool {
        let now = clock::now();
        let mut core = self.lock();
        let mut up = 0;
        core.for_each_server(|server, news| {
            up += usize::from(server.is_keeping_up(reply_ms, now, news));
        });
        core.deliver(now);
        self.leave(core);
        up >= enough
    }

    fn connect(&self, tally: T, enough: usize, patience: Patience) -> T {
        let until = patience.until.plus_ms(self.look_up_names(enough));
        let connect = |server: &mut Server, ticket, now, news: &mut News| {
            server.hurry(now, news);
            server.await_connection(ticket, patience.reply_ms, now, news);
        };
        self.exchange(tally, until, connect).0
    }

    fn ask(&self, request: Request, tally: T, patience: Patience) -> (T, Servers) {
        let request = Arc::new(request);
        self.exchange(tally, patience.until, |server, ticket, now, news| {
            server.ask(&request, ticket, patience.reply_ms, now, news);
        })
    }

    fn tell(&self, request: Request) {
        let request = Arc::new(request);
        let now = clock::now();
        let mut core = self.lock();
        core.for_each_server(|server, news| {
            if request.is_needed_by(server.index()) {
                server.tell(&request, now, news);
            }
        });
        core.deliver(now);
        self.leave(core);
    }

    fn pause(&self, until: Moment) {
        let mut core = self.lock();
        let ticket = core.open(None, Servers::default(), clock::now(), until);
        let (core, _) = self.wait(core, ticket);
        self.leave(core);
    }
}

impl<T> Drop for Reactor<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            // A child's copy: the sockets are closed by number, and not once more by their owners.
            self.close_inherited();
            let core = self.core.get_mut().unwrap_or_else(PoisonError::into_inner);
            core.servers.iter_mut().for_each(Server::forget_socket);
            if let Some(waker) = self.waker.take() {
                waker.forget();
            }
        }
    }
}

impl<T: Tally> Core<T> {
    /// A call that waits for these servers, or, without a tally, for its time alone.
    fn open(&mut self, tally: Option<T>, pending: Servers, since: Moment, until: Moment) -> Ticket {
        self.generation += 1;
        let generation = self.generation;
        let sent = Servers::default();
        let call =
            Call { generation, tally, pending, sent, since, until, decided: false, asleep: false };
        let place = self.calls.iter().position(|it| it.call.is_none()).unwrap_or_else(|| {
            self.calls.push(Place { wake: Arc::default(), call: None });
            self.calls.len() - 1
        });
        self.calls[place].call = Some(call);
        Ticket { place, generation }
    }

    fn close_call(&mut self, ticket: Ticket) -> Call<T> {
        let Some(mut call) = self.calls[ticket.place].call.take() else {
            unreachable!("a call is closed once, by its own thread");
        };
        for (index, server) in self.servers.iter_mut().enumerate() {
            if call.pending.contains(index) && server.abandon(ticket).is_some() {
                call.sent = call.sent.with(index);
            }
        }
        call
    }

    /// What will wake the thread of this call.
    fn fall_asleep(&mut self, ticket: Ticket) -> Arc<Condvar> {
        let place = &mut self.calls[ticket.place];
        if let Some(call) = &mut place.call {
            call.asleep = true;
        }
        Arc::clone(&place.wake)
    }

    fn is_decided(&self, ticket: Ticket) -> bool {
        self.calls[ticket.place].call.as_ref().is_none_or(|it| it.decided)
    }

    fn wake_next_driver(&mut self) {
        if !self.driven {
            let waits =
                |it: &&mut Place<T>| it.call.as_ref().is_some_and(|it| it.asleep && !it.decided);
            if let Some(Place { wake, call: Some(call) }) = self.calls.iter_mut().find(waits) {
                call.wake(wake);
            }
        }
    }

    fn for_each_server(&mut self, mut visit: impl FnMut(&mut Server, &mut News)) {
        self.servers.iter_mut().for_each(|it| visit(it, &mut self.news));
    }

    /// Does what is due.
    fn advance(&mut self, now: Moment) {
        self.for_each_server(|server, news| server.advance(now, news));
        self.deliver(now);
    }

    fn next_due(&self) -> Moment {
        let servers = self.servers.iter().map(Server::next_due);
        let calls = self.calls.iter().filter_map(|it| it.call.as_ref());
        let calls = calls.filter(|it| !it.decided).map(|it| it.until);
        servers.chain(calls).min().unwrap_or(Moment::NEVER)
    }

    /// The descriptors to wait for: those of the servers in their order, and the waker's at the end.
    fn watch(&mut self, waker: Option<&Waker>) -> Vec<libc::pollfd> {
        const NONE: i32 = -1;
        let mut watched = mem::take(&mut self.watched);
        watched.clear();
        watched.extend(self.servers.iter().map(|server| {
            let (fd, for_writing) = server.interest().unwrap_or((NONE, false));
            socket::watch(fd, for_writing)
        }));
        watched.push(socket::watch(waker.map_or(NONE, Waker::fd), false));
        watched
    }

    fn handle_ready(&mut self, watched: Vec<libc::pollfd>, now: Moment) {
        for (server, watched) in self.servers.iter_mut().zip(&watched) {
            if watched.revents != 0 {
                server.handle_ready(now, &mut self.news);
            }
        }
        self.watched = watched;
        self.deliver(now);
    }

    /// Brings what the servers said to the calls, and wakes those that have heard enough.
    fn deliver(&mut self, now: Moment) {
        let mut deliveries = mem::take(&mut self.news.deliveries);
        self.news.changed |= !deliveries.is_empty();
        for it in deliveries.drain(..) {
            let place = &mut self.calls[it.ticket.place];
            let Some(call) = place.call.as_mut() else { continue };
            if call.generation == it.ticket.generation && call.pending.contains(it.server) {
                if it.sent {
                    call.sent = call.sent.with(it.server);
                }
                call.hear(it.server, it.answer, now, &place.wake);
            }
        }
        self.news.deliveries = deliveries;
    }

    /// Those whose time is up hear of no more servers.
    fn expire_calls(&mut self, now: Moment) {
        for (index, place) in self.calls.iter_mut().enumerate() {
            let Some(call) = place.call.as_mut() else { continue };
            if call.decided || now < call.until {
                continue;
            }
            let ticket = Ticket { place: index, generation: call.generation };
            for (index, server) in self.servers.iter_mut().enumerate() {
                if call.pending.contains(index) {
                    let sent_at = server.abandon(ticket);
                    if sent_at.is_some() {
                        call.sent = call.sent.with(index);
                    }
                    let failure = match sent_at {
                        Some(sent_at) => Failure::NoAnswer { ms: now.ms_since(sent_at) },
                        None => server.not_in_time(now.ms_since(call.since)),
                    };
                    call.hear(index, Answer::Failed(failure), now, &place.wake);
                }
            }
            call.decide(&place.wake);
        }
    }
}

impl<T: Tally> Call<T> {
    fn hear(&mut self, server: usize, answer: Answer, now: Moment, wake: &Condvar) {
        self.pending = self.pending.without(server);
        let tally = self.tally.as_mut();
        if tally.is_some_and(|it| it.handle_answer(server, answer, now)) {
            self.decide(wake);
        }
    }

    fn decide(&mut self, wake: &Condvar) {
        if !self.decided {
            self.decided = true;
            self.wake(wake);
        }
    }

    fn wake(&mut self, wake: &Condvar) {
        if mem::take(&mut self.asleep) {
            wake.notify_one();
        }
    }
}
