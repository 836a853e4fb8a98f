//! Asks all servers at once, with `poll`, on the threads of the callers, which share the connections.

use std::io;
use std::sync::Arc;

use super::access::Access;
use super::calls::{Call, Calls};
use super::endpoint::{self, Endpoint};
use super::health::Health;
use super::login::Question;
use super::server::{News, Server};
use super::{Errand, Patience, Tally, Ticket, Timeouts, Transport};
use crate::command::Request;
use crate::driver::{Host, SharedEngine};
use crate::log::{Line, Log};
use crate::moment::Moment;
use crate::server_set::ServerSet;
use crate::system::clock;
use crate::system::process::{Generation, this_process};
use crate::system::socket::{Visible, Waker};

/// The connections to all servers, and the calls that wait for them.
pub struct Reactor<T: Tally> {
    engine: SharedEngine<Calls<T>, WakerAndLog>,
    health: Arc<Health>,
    access: Arc<Access>,
    /// The descriptors, for a forked child.
    visible: Vec<Visible>,
    process: Generation,
}

/// What wakes the thread that waits for the sockets, and what keeps lines about servers.
struct WakerAndLog {
    /// Empty only while it is dropped.
    waker: Option<Waker>,
    log: Arc<Log>,
}

impl Host<Vec<Line>> for WakerAndLog {
    fn wake(&self) {
        self.waker.iter().for_each(Waker::wake);
    }

    fn clear(&self) {
        self.waker.iter().for_each(Waker::clear);
    }

    fn keep(&self, lines: Vec<Line>) {
        self.log.keep(lines);
    }
}

impl<T: Tally> Reactor<T> {
    /// A reactor without connections: they are made when they are needed.
    pub(crate) fn new(
        endpoints: &[Endpoint],
        timeouts: &Arc<Timeouts>,
        access: &Arc<Access>,
        log: Arc<Log>,
    ) -> io::Result<Self> {
        let waker = Waker::new()?;
        let new = |(index, it): (usize, &Endpoint)| {
            Server::new(index, it.clone(), timeouts.clone(), access.clone())
        };
        let servers: Vec<Server> = endpoints.iter().enumerate().map(new).collect();
        let mut visible: Vec<Visible> = servers.iter().flat_map(Server::visible).collect();
        visible.extend(waker.visible());
        let calls = Calls::new(servers, waker.fd());
        let health = Arc::clone(&calls.news.health);
        let engine = SharedEngine::new(calls, WakerAndLog { waker: Some(waker), log });
        let access = Arc::clone(access);
        Ok(Self { engine, health, access, visible, process: this_process() })
    }

    /// Looks up the names for which that is due, with nothing held: the resolver may be slow. But not
    /// if so many servers are promising without it. Returns how long it took, if there were any.
    fn look_up_names(&self, enough: usize) -> Option<i64> {
        let now = clock::now();
        let wanted: Vec<(usize, (String, u16))> = self.engine.visit(|calls| {
            if calls.servers.iter().filter(|it| it.is_promising()).count() >= enough {
                return Vec::new();
            }
            let due = |it: &mut Server| it.name_to_look_up(now);
            let due = calls.servers.iter_mut().map(due).enumerate();
            due.filter_map(|(i, it)| Some((i, it?))).collect()
        });
        if wanted.is_empty() {
            return None;
        }
        for (index, (name, port)) in wanted {
            let began = clock::now();
            let found = endpoint::look_up(&name, port);
            if !self.is_ours() {
                return None;
            }
            let now = clock::now();
            self.engine.visit(|calls| {
                calls.servers[index].handle_addresses(found, began, now, &mut calls.news);
                calls.deliver(now);
            });
        }
        Some(clock::now().ms_since(now))
    }

    /// Asks for the passwords for which that is due, with nothing held: who is asked may take his time,
    /// or call the library. Each question is taken when its turn comes, so that meanwhile other threads
    /// ask the next. Returns how long it took. If who is asked forks, the child stops at once: the
    /// connections are the parent's, and its threads may have been changing them.
    fn ask_who_is_asked(&self) -> i64 {
        if !self.access.asks() {
            return 0;
        }
        let start = clock::now();
        let mut due = self.engine.visit(|calls| next_question(calls, 0, start));
        let mut end = start;
        while let Some((index, question)) = due {
            let began = clock::now();
            let password = question.ask();
            if !self.is_ours() {
                return 0;
            }
            end = clock::now();
            due = self.engine.visit(|calls| {
                calls.servers[index].handle_password(password, began, end, &mut calls.news);
                calls.deliver(end);
                next_question(calls, index + 1, end)
            });
        }
        end.ms_since(start)
    }
}

/// The first password that is to be asked for, of this server or one that comes after it.
fn next_question<T: Tally>(
    calls: &mut Calls<T>,
    first: usize,
    now: Moment,
) -> Option<(usize, Question)> {
    let mut servers = calls.servers.iter_mut().enumerate().skip(first);
    servers.find_map(|(index, it)| Some((index, it.question(now)?)))
}

impl<T: Tally> Reactor<T> {
    /// Whether no thread is using the connections at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.engine.is_at_rest()
    }

    /// Closes, in a forked child, its copies of the parent's sockets. Takes no mutex.
    pub(crate) fn close_inherited(&self) {
        self.visible.iter().for_each(Visible::close_inherited);
    }
}

impl<T: Tally> Transport<T> for Reactor<T> {
    type Standby = Ticket;

    fn now(&self) -> Moment {
        clock::now()
    }

    fn is_ours(&self) -> bool {
        self.process == this_process()
    }

    fn is_connected(&self, enough: usize, reply_ms: i64, now: Moment) -> bool {
        if self.health.is_good(enough, now) {
            return true;
        }
        self.engine.visit(|calls| {
            let mut up = 0;
            calls.for_each_server(|server, news| {
                up += usize::from(server.is_keeping_up(reply_ms, now, news));
            });
            calls.deliver(now);
            calls.news.health.note(up, now);
            up >= enough
        })
    }

    fn look_up_the_rest(&self) -> bool {
        self.look_up_names(usize::MAX).is_some()
    }

    fn ask_for_passwords(&self) {
        self.ask_who_is_asked();
    }

    fn connect(&self, tally: T, enough: usize, patience: Patience) -> T {
        let mut asked_ms = self.ask_who_is_asked();
        if self.is_ours() {
            asked_ms += self.look_up_names(enough).unwrap_or(0);
        }
        if !self.is_ours() {
            return tally;
        }
        let until = patience.until.plus_ms(asked_ms);
        let now = clock::now();
        let call = self.engine.run(|calls, place| {
            let ticket = calls.open(place, now, until);
            calls.give(ticket, tally, (now, until), |server: &mut Server, news: &mut News| {
                server.hurry(now, news);
                server.await_connection(ticket, patience.reply_ms, now, news);
            });
        });
        heard(call).0
    }

    fn ask_then(
        &self,
        request: Request,
        tally: T,
        patience: Patience,
        then: impl FnOnce() -> Option<Errand<Ticket, T>>,
    ) -> (T, ServerSet) {
        let call = self.engine.run(|calls, place| {
            let ticket = calls.open(place, patience.since, patience.until);
            calls.ask(ticket, request, tally, patience);
            if let Some(it) = then() {
                calls.ask(it.on_behalf_of, it.request, it.tally, it.patience);
            }
        });
        heard(call)
    }

    fn tell(&self, request: Request) -> ServerSet {
        let request = Arc::new(request);
        let now = clock::now();
        self.engine.visit(|calls| {
            let mut told = ServerSet::default();
            calls.for_each_server(|server, news| {
                if request.is_for(server.index()) && server.tell(&request, now, news) {
                    told = told.with(server.index());
                }
            });
            calls.deliver(now);
            told
        })
    }

    fn stand_by(&self, begin: impl FnOnce(Ticket, Moment) -> Moment) -> Option<(T, ServerSet)> {
        let now = clock::now();
        let call = self.engine.run(|calls, place| {
            let ticket = calls.open(place, now, Moment::NEVER);
            calls.set_until(ticket, begin(ticket, now));
        });
        call.tally.map(|it| (it, call.sent))
    }

    fn call_off(&self, standby: Ticket) {
        self.engine.visit(|calls| calls.call_off(standby));
    }
}

/// What a call has come to that had a tally from the beginning.
fn heard<T>(call: Call<T>) -> (T, ServerSet) {
    match call.tally {
        Some(tally) => (tally, call.sent),
        None => unreachable!("a call keeps the tally that it was given"),
    }
}

impl<T: Tally> Drop for Reactor<T> {
    fn drop(&mut self) {
        if self.process != this_process() {
            // A child's copy: the sockets are closed by number, and not once more by their owners.
            self.close_inherited();
            let (calls, host) = self.engine.get_mut();
            calls.servers.iter_mut().for_each(Server::forget_sockets);
            if let Some(waker) = host.waker.take() {
                waker.forget();
            }
        }
    }
}
