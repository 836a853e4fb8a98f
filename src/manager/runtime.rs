//! The engine of one process, and the work that its threads do beside it: chores, which are slow and are
//! done with no mutex held.

use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{io, iter};

use crate::driver::{Driven, Host, SharedEngine, Turn};
use crate::engine::call_handle::CallHandle;
use crate::engine::{Chore, DeferredChore, Engine, LookUps, Notice, Wakening};
use crate::manager::continued_locks::ContinuedLocks;
use crate::manager::log::Log;
use crate::manager::settings::Settings;
use crate::protocol::conn::server_registry::ServerRegistry;
use crate::protocol::error::{Error, Status};
use crate::protocol::lock::{Lock, View};
use crate::protocol::log_line::{Level, LogLine};
use crate::protocol::moment::Moment;
use crate::protocol::operation::{End, Operation, Payload, Prepared};
use crate::protocol::servers::address::Lookup;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::servers::roster::Roster;
use crate::protocol::stats::{ServerStats, Stats};
use crate::system::clock;
use crate::system::process::{Generation, this_process};
use crate::system::resolver;
use crate::system::socket::{InheritedDescriptor, Waker};
use crate::system::thread;
use crate::transport::account::PasswordRequest;
use crate::transport::server::Server;
use crate::transport::server::ServerSnapshot;

/// The next number to give to a runtime. A call that is on no runtime has 0.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// What the threads of one process share.
pub(crate) struct Runtime {
    process: Generation,
    /// Distinguishes this runtime from all others of the process.
    number: u64,
    roster: Roster,
    settings: Arc<Settings>,
    log: Arc<Log>,
    engine: SharedEngine<Engine, WakerAndLog>,
    continued: ContinuedLocks,
    /// Whether a thread has asked for events. Between two such calls it drives, too: it will be back.
    pub(crate) has_event_loop: AtomicBool,
}

/// The waker of the polling thread, and the log that keeps lines about servers.
struct WakerAndLog {
    /// Empty only while it is dropped.
    waker: Option<Waker>,
    log: Arc<Log>,
}

/// Who looks up the names that a chore needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resolving {
    /// The thread that does the chore.
    Here,
    /// Another thread, because this one must not wait for the resolver.
    Aside,
}

impl Host<Vec<LogLine>> for WakerAndLog {
    fn wake(&self) {
        self.waker.iter().for_each(Waker::wake);
    }

    fn clear(&self) {
        self.waker.iter().for_each(Waker::clear);
    }

    fn tell(&self) -> bool {
        let process = this_process();
        self.log.tell();
        this_process() == process
    }

    fn keep(&self, lines: Vec<LogLine>) {
        self.log.keep(lines);
    }
}

impl Runtime {
    /// A runtime without connections: they are made when they are needed. Also returns its descriptors, for
    /// a forked child.
    pub(crate) fn new(
        roster: Roster,
        settings: &Arc<Settings>,
        log: &Arc<Log>,
    ) -> Result<(Self, Vec<InheritedDescriptor>), Error> {
        let (policy, access) = (settings.policy(), settings.access());
        if roster.iter().any(Endpoint::has_tls) {
            // Now, because later the connections' mutex would be held.
            access.tls().prepare();
        }
        let waker = Waker::new().map_err(|error| no_descriptors(&error))?;
        let server_registry =
            Arc::new(ServerRegistry::new(roster.len(), Arc::clone(settings.guard())));
        let servers = roster.iter().enumerate().map(|(index, endpoint)| {
            let (policy, access) = (Arc::clone(policy), Arc::clone(access));
            Server::new(index, endpoint.clone(), policy, access, Arc::clone(&server_registry))
        });
        let servers: Vec<Server> = servers.collect();
        let mut inherited: Vec<InheritedDescriptor> =
            servers.iter().flat_map(Server::inherited).collect();
        inherited.extend(waker.inherited());
        let engine =
            Engine::new(servers, roster.clone(), Arc::clone(settings.policy()), waker.fd());
        let host = WakerAndLog { waker: Some(waker), log: Arc::clone(log) };
        let runtime = Self {
            process: this_process(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            roster,
            settings: Arc::clone(settings),
            log: Arc::clone(log),
            engine: SharedEngine::new(engine, host),
            continued: ContinuedLocks::default(),
            has_event_loop: AtomicBool::new(false),
        };
        Ok((runtime, inherited))
    }

    /// Whether this runtime belongs to the current process.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == this_process()
    }

    /// Checks that this process was not forked meanwhile. The callback that is asked for a password may
    /// have forked, and this may be the child. The rest of the call is the parent's work, and threads of
    /// the parent may have been changing everything here.
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if self.is_ours() { Ok(()) } else { Err(Error::forked_within()) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn continued(&self) -> &ContinuedLocks {
        &self.continued
    }

    /// The lock, with the servers in the order of this manager.
    pub(crate) fn view(&self, lock: &Arc<Lock>) -> Result<View, Error> {
        let other = || {
            Error::invalid("the lock is on other servers or databases than those of this manager")
        };
        View::new(lock, &self.roster).ok_or_else(other)
    }

    /// The current moment, on the clock of all moments.
    pub(crate) fn now(&self) -> Moment {
        clock::now()
    }

    /// When a wait of `wait_ms` milliseconds ends, or never if that is negative.
    pub(crate) fn until(&self, wait_ms: i64) -> Moment {
        if wait_ms < 0 { Moment::NEVER } else { self.now().plus_ms(wait_ms) }
    }

    /// Runs an operation to its end, or until the call is cancelled. Meanwhile this thread does the work
    /// that is due on the connections, if no other thread does, and the chores that come up.
    pub(crate) fn run(&self, operation: Box<dyn Operation>, call: Option<&Arc<CallHandle>>) -> End {
        let begin = |engine: &mut Engine, place| engine.run(place, operation, call);
        match self.engine.run(begin, &mut |chore| self.do_chore(chore, Resolving::Here)) {
            Turn::Ended(Wakening::Ended(end)) => end,
            _ => Err(Error::forked_within()),
        }
    }

    /// Cancels all operations that no thread waits for, and ends all waits for notices.
    pub(crate) fn abandon(&self) {
        self.engine.visit(Engine::abandon);
    }

    /// Begins an operation whose end is reported as a notice with this payload. No thread waits for it. Its
    /// requests are sent at once if no other question is open. Otherwise the next driver sends them
    /// together with other requests, in one write.
    pub(crate) fn submit(
        &self,
        operation: Box<dyn Operation>,
        payload: Payload,
        call: Option<&Arc<CallHandle>>,
    ) {
        self.engine.visit(|engine| {
            engine.submit(operation, payload, call);
            if engine.has_one_question() {
                engine.advance();
            }
        });
    }

    /// The same for an operation whose end nobody waits for at all. Its requests are sent now, because
    /// perhaps no thread will drive.
    pub(crate) fn submit_and_send(&self, operation: Box<dyn Operation>, payload: Payload) {
        self.engine.visit(|engine| {
            engine.submit(operation, payload, None);
            engine.advance();
        });
    }

    /// Whether the program drives, apart from the calls that block: its threads ask for events, or wait for the
    /// descriptor or for submitted calls.
    pub(crate) fn has_driver(&self) -> bool {
        self.has_event_loop.load(Ordering::Relaxed)
            || self.engine.visit(|engine| engine.has_driver())
    }

    /// Does the work that is due, unless another thread does, and waits for a notice until this moment.
    pub(crate) fn next_notice(&self, until: Moment) -> Option<Notice> {
        self.has_event_loop.store(true, Ordering::Relaxed);
        let (engine, resolving) = (&self.engine, self.resolving(until));
        let mut chores = |chore| self.do_chore(chore, resolving);
        if until <= self.now() {
            return engine.look_for_event(&mut chores);
        }
        let begin = |engine: &mut Engine, place| engine.listen(place, until);
        match engine.await_event(begin, &mut chores) {
            Turn::Event(notice) => Some(notice),
            Turn::Ended(_) | Turn::Stopped => None,
        }
    }

    /// Waits until this moment for the end of a submitted call. Meanwhile does the work that is due, unless another
    /// thread does. `None` in a child that was forked meanwhile.
    pub(crate) fn await_call(&self, call: &Arc<CallHandle>, until: Moment) -> Option<Wakening> {
        let (engine, resolving) = (&self.engine, self.resolving(until));
        let mut chores = |chore| self.do_chore(chore, resolving);
        if until <= self.now() {
            let found = engine.look_for(&mut |engine| engine.end_of(call), &mut chores);
            return Some(found.unwrap_or(Wakening::TimeUp));
        }
        let begin = |engine: &mut Engine, place| engine.await_call(place, call, until);
        match engine.run_and_tell(begin, &mut chores) {
            Turn::Ended(wakening) => Some(wakening),
            Turn::Event(_) | Turn::Stopped => None,
        }
    }

    /// A program that looks up names itself cannot begin to while its only thread waits here without a limit.
    fn resolving(&self, until: Moment) -> Resolving {
        match self.settings.looks_up_aside() && until != Moment::NEVER {
            true => Resolving::Aside,
            false => Resolving::Here,
        }
    }

    /// Ends a submitted call whose end is kept for a caller that will not come. Returns the notice.
    pub(crate) fn forget_call(&self, call: &Arc<CallHandle>) -> Option<Notice> {
        self.engine.visit(|engine| engine.forget_call(call))
    }

    /// Takes a notice that is kept for a caller that will not come, because the engine is abandoned.
    pub(crate) fn next_kept_notice(&self) -> Option<Notice> {
        self.engine.visit(Engine::next_kept_notice)
    }

    /// Takes a notice if there is one. Does none of the work that is due.
    pub(crate) fn next_notice_at_once(&self) -> Option<Notice> {
        self.engine.visit(Engine::next_event)
    }

    /// Drives whenever a driver is needed and no other thread drives. Returns when there is a notice, if
    /// `listens`, or after [`Self::end_standing_by`].
    pub(crate) fn stand_by_for_notice(&self, listens: bool) -> Option<Notice> {
        let begin = |engine: &mut Engine, place| engine.stand_by(place);
        let mut chores = |chore| self.do_chore(chore, Resolving::Aside);
        match self.engine.stand_by(listens, begin, &mut chores) {
            Turn::Event(notice) => Some(notice),
            Turn::Ended(_) | Turn::Stopped => None,
        }
    }

    /// Makes the standby thread return, if there is one.
    pub(crate) fn end_standing_by(&self) {
        self.engine.visit(Engine::end_standing_by);
    }

    /// Whether no thread will ask for notices any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.engine.visit(|engine| engine.is_abandoned())
    }

    /// Keeps a warning for the logger if a lock of this TTL is not guarded until its end.
    pub(crate) fn warn_of(&self, ttl_ms: i64) {
        let warning = self.settings.guard().warning(ttl_ms);
        self.log.keep(warning.map(|it| (Level::Warning, it)).into_iter().collect());
    }

    /// Passes the kept log lines to the logger.
    pub(crate) fn tell(&self) {
        self.log.tell();
    }

    /// What is known about each server.
    pub(crate) fn snapshots(&self) -> Vec<ServerSnapshot> {
        let snapshots = |engine: &mut Engine| {
            let (now, wall_us) = (clock::now(), clock::wall_us());
            engine.servers().iter().map(|it| it.snapshot(now, wall_us)).collect()
        };
        self.engine.visit(snapshots)
    }

    /// The statistics, all of one moment.
    pub(crate) fn stats(&self) -> Stats {
        self.engine.visit(|engine| {
            let (now, wall_us) = (clock::now(), clock::wall_us());
            let servers = engine.servers().iter().map(|it| it.snapshot(now, wall_us));
            let servers = servers.map(ServerStats::from).collect();
            let (waiting, kept) = engine.waiting_and_kept();
            Stats { counts: *engine.counts(), waiting, kept, servers }
        })
    }

    /// A descriptor that is readable whenever [`Self::next_notice`] has work to do or a notice to return.
    pub(crate) fn descriptor(&self) -> Result<RawFd, Error> {
        let made = self.engine.visit(|engine| engine.descriptor());
        made.map_err(|error| no_descriptors(&error))
    }

    /// Asks for passwords, and looks up names if fewer servers than the chore needs are promising without that. Returns
    /// false in a child that was forked meanwhile.
    fn do_chore(&self, chore: Chore, resolving: Resolving) -> bool {
        let asked = panic::catch_unwind(AssertUnwindSafe(|| self.ask_for_passwords()));
        if self.is_ours() {
            // The chore may be one of another call, which must go on even if the password callback panics.
            self.look_up_for(chore, *asked.as_ref().unwrap_or(&0), resolving);
        }
        if let Err(panic) = asked {
            panic::resume_unwind(panic);
        }
        self.is_ours()
    }

    /// Cancels the operation that is under way on this manager for the call.
    pub(crate) fn cancel(&self, call: &Arc<CallHandle>) {
        self.engine.visit(|engine| {
            if call.is_on(self.number) {
                call.cancel();
                engine.cancel(call);
            }
        });
    }

    fn look_up_for(&self, chore: Chore, asked_ms: i64, resolving: Resolving) {
        let since = clock::now();
        let (deferred, names) = self.engine.visit(|engine| {
            if count_promising(engine) >= chore.enough {
                return (Vec::new(), Vec::new());
            }
            let names = names_to_look_up(engine, |server| server.name_to_look_up(since));
            match resolving {
                // These may be the names that the chore lacks, and perhaps no other thread comes.
                Resolving::Here => (engine.take_deferred(), names),
                Resolving::Aside => (Vec::new(), names),
            }
        });
        let due = LookUps { names, chore: Some(DeferredChore { chore, asked_ms, since }) };
        if resolving == Resolving::Aside && !due.names.is_empty() {
            return self.engine.visit(|engine| engine.defer(due));
        }
        deferred.iter().for_each(|it| self.resolve(it));
        self.resolve(&due);
    }

    /// Whether [`Self::look_up_due`] would ask the resolver now, for a call that is under way or a lock that is
    /// kept.
    pub(crate) fn is_look_up_due(&self) -> bool {
        self.engine.visit(|engine| engine.is_look_up_due(clock::now()))
    }

    /// Looks up the names that calls wait for, those of servers that are down and may have moved, and those that are not
    /// known yet. The calls of other threads go on meanwhile.
    pub(crate) fn look_up_due(&self) -> Result<(), Error> {
        loop {
            let due = self.take_due_look_ups();
            if due.is_empty() {
                return Ok(());
            }
            for names in due {
                self.resolve(&names);
                self.check_process()?;
            }
            // The resolver may have taken long. Meanwhile nobody begins another look-up.
        }
    }

    /// The same in a thread of its own, which ends with that. The thread that stands by must not wait for the
    /// resolver: it renews locks.
    pub(crate) fn look_up_due_aside(self: &Arc<Self>) {
        let due = Arc::new(self.take_due_look_ups());
        if due.is_empty() {
            return;
        }
        // The resolver may take long, and the manager may end meanwhile.
        let (runtime, its_due) = (Arc::downgrade(self), Arc::clone(&due));
        let started = thread::start("redlock-names", move || {
            its_due.iter().for_each(|it| resolve(it, look_up, || runtime.upgrade()));
        });
        if let Err(error) = started {
            let without = |_: &Lookup| LookedUp::without_thread(&error);
            due.iter().for_each(|it| resolve(it, without, || Some(&**self)));
        }
    }

    fn resolve(&self, due: &LookUps) {
        resolve(due, look_up, || Some(self));
    }

    /// A chore that needs the names goes on, if there is one.
    fn end_chore(&self, due: &LookUps) {
        let Some(DeferredChore { chore, asked_ms, since }) = &due.chore else { return };
        let has_looked_up = !due.names.is_empty();
        let looked_up_ms = if has_looked_up { clock::now().ms_since(*since) } else { 0 };
        let prepared = Prepared { took_ms: asked_ms + looked_up_ms, has_looked_up };
        self.engine.visit(|engine| engine.prepared(*chore, prepared));
    }

    fn take_due_look_ups(&self) -> Vec<LookUps> {
        let now = clock::now();
        self.engine.visit(|engine| {
            let mut due = engine.take_deferred();
            let names = names_to_look_up(engine, |server| server.name_of_lost_to_look_up(now));
            if !names.is_empty() {
                due.push(LookUps { names, chore: None });
            }
            due
        })
    }

    /// Hands in the result of a look-up. Returns whether this is still the process that began it.
    fn handle_addresses(&self, index: usize, name: &Lookup, result: LookedUp) -> bool {
        let LookedUp { found, began, ended } = result;
        let is_ours = self.is_ours();
        if is_ours {
            self.engine.visit(|engine| {
                engine.for_server(index, |server, effects| {
                    server.handle_addresses(name, found, began, ended, effects);
                });
            });
        }
        is_ours
    }

    /// Asks for the passwords that are due, with no mutex held: the password callback may be slow, or may
    /// call the library. Each request is taken when its turn comes, so that other threads can ask the next
    /// one meanwhile. Returns how long it took, in milliseconds. If the callback forks, the child stops at
    /// once: the connections belong to the parent, and its threads may have been changing them.
    pub(crate) fn ask_for_passwords(&self) -> i64 {
        if !self.settings.access().asks() {
            return 0;
        }
        let engine = &self.engine;
        let start = clock::now();
        let mut due = engine.visit(|engine| next_request(engine, 0, start));
        let mut end = start;
        while let Some((index, request)) = due {
            let began = clock::now();
            let asked = panic::catch_unwind(AssertUnwindSafe(|| request.ask()));
            if !self.is_ours() {
                return 0;
            }
            end = clock::now();
            due = engine.visit(|engine| {
                // A callback that panics has no password now. It is asked again later.
                let password = asked.as_ref().cloned().unwrap_or_default();
                engine.for_server(index, |server, effects| {
                    server.handle_password(password, began, end, effects);
                });
                if asked.is_ok() { next_request(engine, index + 1, end) } else { None }
            });
            if let Err(panic) = asked {
                panic::resume_unwind(panic);
            }
        }
        end.ms_since(start)
    }

    /// Whether no thread is changing anything in the runtime at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.engine.is_at_rest() && self.continued.is_at_rest()
    }

    /// Forgets descriptors that are already closed, or that this process must not close.
    pub(crate) fn forget_descriptors(&mut self) {
        let (engine, host) = self.engine.get_mut();
        engine.servers().iter_mut().for_each(Server::forget_sockets);
        engine.forget_descriptor();
        if let Some(waker) = host.waker.take() {
            waker.forget();
        }
    }
}

/// What the resolver found, and when it was asked and answered.
struct LookedUp {
    found: Result<Vec<SocketAddr>, String>,
    began: Moment,
    ended: Moment,
}

impl LookedUp {
    fn without_thread(error: &io::Error) -> Self {
        let now = clock::now();
        let words = format!("cannot start a thread to resolve the host name: {error}");
        Self { found: Err(words), began: now, ended: now }
    }
}

/// Asks the resolver, with no mutex held, because it may be slow.
fn look_up(name: &Lookup) -> LookedUp {
    let began = clock::now();
    let found = resolver::look_up(&name.name, name.port);
    LookedUp { found, began, ended: clock::now() }
}

/// The names whose look-ups `begin` begins, each with the index of its server.
/// Looks up the names and hands in the results. Then a chore that needs them goes on. The manager may end meanwhile, and
/// a thread must not keep it from that. A child that is forked meanwhile stops.
fn resolve<R: Deref<Target = Runtime>>(
    due: &LookUps,
    look_up: impl Fn(&Lookup) -> LookedUp,
    runtime: impl Fn() -> Option<R>,
) {
    for (index, name) in &due.names {
        let found = look_up(name);
        if !runtime().is_some_and(|it| it.handle_addresses(*index, name, found)) {
            return;
        }
    }
    if let Some(runtime) = runtime() {
        runtime.end_chore(due);
    }
}

/// How many servers may be connected to without a look-up.
fn count_promising(engine: &mut Engine) -> usize {
    engine.servers().iter().filter(|server| server.is_promising()).count()
}

fn names_to_look_up(
    engine: &mut Engine,
    begin: impl Fn(&mut Server) -> Option<Lookup>,
) -> Vec<(usize, Lookup)> {
    let servers = engine.servers().iter_mut().enumerate();
    let due = servers.flat_map(|(index, server)| {
        let names = iter::from_fn(|| begin(server));
        names.map(move |lookup| (index, lookup)).collect::<Vec<_>>()
    });
    due.collect()
}

/// The first password request that is due, of the server `first` or a later one.
fn next_request(
    engine: &mut Engine,
    first: usize,
    now: Moment,
) -> Option<(usize, PasswordRequest)> {
    let mut servers = engine.servers().iter_mut().enumerate().skip(first);
    servers.find_map(|(index, server)| Some((index, server.password_request(now)?)))
}

fn no_descriptors(error: &io::Error) -> Error {
    Error::new(Status::Internal, format!("cannot create file descriptors: {error}"))
}
