//! The engine of one process, and what its threads do beside it: the chores that take their time, and are done
//! with nothing held.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, iter};

use crate::call::Call;
use crate::continued::ContinuedLocks;
use crate::driver::{Driven, Host, SharedEngine, Turn};
use crate::engine::{Chore, Engine, Notice, Wakening};
use crate::error::{Error, Status};
use crate::log::{Level, Line, Log};
use crate::moment::Moment;
use crate::operation::{End, Operation, Payload, Prepared};
use crate::settings::Settings;
use crate::stats::{ServerStats, Stats};
use crate::system::clock;
use crate::system::process::{Generation, this_process};
use crate::system::socket::{InheritedDescriptor, Waker};
use crate::transport::account::PasswordRequest;
use crate::transport::endpoint::Endpoint;
use crate::transport::lineup::Lineup;
use crate::transport::place::{self, Lookup};
use crate::transport::roster::Roster;
use crate::transport::server::Server;
use crate::transport::server::portrait::Portrait;

/// Those that were given so far. A call that is on none has 0.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// What threads of one process share.
pub(crate) struct Runtime {
    process: Generation,
    /// Tells it from all others of the process.
    number: u64,
    roster: Roster,
    settings: Arc<Settings>,
    log: Arc<Log>,
    engine: SharedEngine<Engine, WakerAndLog>,
    continued: ContinuedLocks,
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

impl Runtime {
    /// One without connections: they are made when they are needed. Also returns its descriptors, for a forked
    /// child.
    pub(crate) fn new(
        roster: Roster,
        settings: &Arc<Settings>,
        log: &Arc<Log>,
    ) -> Result<(Self, Vec<InheritedDescriptor>), Error> {
        let (timeouts, access) = (settings.timeouts(), settings.access());
        if roster.iter().any(Endpoint::has_tls) {
            // Now, and not with the connections' mutex held.
            access.tls().prepare();
        }
        let waker = Waker::new().map_err(|error| no_descriptors(&error))?;
        let lineup = Arc::new(Lineup::new(roster.len(), Arc::clone(settings.guard())));
        let servers = roster.iter().enumerate().map(|(index, endpoint)| {
            let (timeouts, access) = (Arc::clone(timeouts), Arc::clone(access));
            Server::new(index, endpoint.clone(), timeouts, access, Arc::clone(&lineup))
        });
        let servers: Vec<Server> = servers.collect();
        let mut inherited: Vec<InheritedDescriptor> =
            servers.iter().flat_map(Server::inherited).collect();
        inherited.extend(waker.inherited());
        let engine = Engine::new(servers, roster.clone(), Arc::clone(settings), waker.fd());
        let host = WakerAndLog { waker: Some(waker), log: Arc::clone(log) };
        let runtime = Self {
            process: this_process(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            roster,
            settings: Arc::clone(settings),
            log: Arc::clone(log),
            engine: SharedEngine::new(engine, host),
            continued: ContinuedLocks::default(),
        };
        Ok((runtime, inherited))
    }

    /// Whether this process is the one that it belongs to.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == this_process()
    }

    /// Who was asked for a password may have forked, and then this may be the child: what the call was
    /// about to do is the parent's to do, and threads of the parent may have been changing all that is here.
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

    /// Now, on the clock that all moments are on.
    pub(crate) fn now(&self) -> Moment {
        clock::now()
    }

    /// Runs an operation to its end, or until the call is cancelled. Meanwhile this thread does what is due on
    /// the connections, if no other does, and the chores that come up.
    pub(crate) fn run(&self, operation: Box<dyn Operation>, call: Option<&Arc<Call>>) -> End {
        let begin = |engine: &mut Engine, place| engine.run(place, operation, call);
        match self.engine.run(begin, &mut |chore| self.do_chore(chore)) {
            Turn::Ended(Wakening::Ended(end)) => end,
            _ => Err(Error::forked_within().into()),
        }
    }

    /// Ends all that no thread waits for, and all waits for notices.
    pub(crate) fn abandon(&self) {
        self.engine.visit(Engine::abandon);
    }

    /// Begins an operation, whose end is a notice with this payload. Nobody waits for it. What it asks is
    /// sent at once if nothing else is open: otherwise whoever drives next sends it along with the rest, in
    /// one write.
    pub(crate) fn submit(
        &self,
        operation: Box<dyn Operation>,
        payload: Payload,
        call: Option<&Arc<Call>>,
    ) {
        self.engine.visit(|engine| {
            engine.submit(operation, payload, call);
            if engine.has_one_question() {
                engine.advance();
            }
        });
    }

    /// The same for one that nobody waits for at all: what it sends is sent now, for nobody may come to drive.
    pub(crate) fn submit_and_send(&self, operation: Box<dyn Operation>, payload: Payload) {
        self.engine.visit(|engine| {
            engine.submit(operation, payload, None);
            engine.advance();
        });
    }

    /// Does what is due, unless another thread does, and waits until then for a notice.
    pub(crate) fn next_notice(&self, until: Moment) -> Option<Notice> {
        let engine = &self.engine;
        let mut chores = |chore| self.do_chore(chore);
        if until <= self.now() {
            return engine.look_for_event(&mut chores);
        }
        let begin = |engine: &mut Engine, place| engine.listen(place, until);
        match engine.await_event(begin, &mut chores) {
            Turn::Event(notice) => Some(notice),
            Turn::Ended(_) | Turn::Stopped => None,
        }
    }

    /// Takes a notice that is there. Nothing that is due is done.
    pub(crate) fn next_notice_at_once(&self) -> Option<Notice> {
        self.engine.visit(Engine::next_event)
    }

    /// Drives whenever somebody has to and nobody else does, until there is a notice, if it listens, or until
    /// [`Self::end_standing_by`].
    pub(crate) fn stand_by_for_notice(&self, listens: bool) -> Option<Notice> {
        let begin = |engine: &mut Engine, place| engine.stand_by(place);
        match self.engine.stand_by(listens, begin, &mut |chore| self.do_chore(chore)) {
            Turn::Event(notice) => Some(notice),
            Turn::Ended(_) | Turn::Stopped => None,
        }
    }

    /// Has the thread that stands by come back, if there is one.
    pub(crate) fn end_standing_by(&self) {
        self.engine.visit(Engine::end_standing_by);
    }

    /// Whether nobody will ask for notices any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.engine.visit(|engine| engine.is_abandoned())
    }

    /// Keeps a line for whoever listens if a lock of this TTL is not guarded to its end.
    pub(crate) fn warn_of(&self, ttl_ms: i64) {
        let warning = self.settings.guard().warning(ttl_ms);
        self.log.keep(warning.map(|it| (Level::Warning, it)).into_iter().collect());
    }

    /// Tells what log lines there are.
    pub(crate) fn tell(&self) {
        self.log.tell();
    }

    /// What is known of each server.
    pub(crate) fn portraits(&self) -> Vec<Portrait> {
        let portraits = |engine: &mut Engine| {
            let (now, wall_us) = (clock::now(), clock::wall_us());
            engine.servers().iter().map(|it| it.portrait(now, wall_us)).collect()
        };
        self.engine.visit(portraits)
    }

    /// What was counted, all of it at one moment.
    pub(crate) fn stats(&self) -> Stats {
        self.engine.visit(|engine| {
            let (now, wall_us) = (clock::now(), clock::wall_us());
            let servers = engine.servers().iter().map(|it| it.portrait(now, wall_us));
            let servers = servers.map(ServerStats::from).collect();
            let (waiting, kept) = engine.waiting_and_kept();
            Stats { counts: *engine.counts(), waiting, kept, servers }
        })
    }

    /// A descriptor that is readable whenever [`Self::next_notice`] has something to do or to tell.
    pub(crate) fn descriptor(&self) -> Result<RawFd, Error> {
        let made = self.engine.visit(|engine| engine.descriptor());
        made.map_err(|error| no_descriptors(&error))
    }

    /// Returns whether this is not a child that was forked meanwhile.
    fn do_chore(&self, chore: Chore) -> bool {
        let prepared = self.prepare(chore.enough);
        if self.is_ours() {
            self.engine.visit(|engine| engine.prepared(chore, prepared));
        }
        self.is_ours()
    }

    /// Cancels what is under way on this manager for the call.
    pub(crate) fn cancel(&self, call: &Arc<Call>) {
        self.engine.visit(|engine| {
            if call.is_on(self.number) {
                call.cancel();
                engine.cancel(call);
            }
        });
    }

    /// Asks for passwords, and looks up names if fewer servers than `enough` are promising without. In a
    /// child that was forked meanwhile it stops at once.
    fn prepare(&self, enough: usize) -> Prepared {
        let asked_ms = self.ask_for_passwords();
        if !self.is_ours() {
            return Prepared::default();
        }
        let looked_up_ms = self.look_up_names(enough);
        let took_ms = asked_ms + looked_up_ms.unwrap_or(0);
        Prepared { took_ms, has_looked_up: looked_up_ms.is_some() }
    }

    /// Looks up the names for which that is due, with nothing held: the resolver may be slow. Returns how
    /// long it took, if there were any.
    fn look_up_names(&self, enough: usize) -> Option<i64> {
        let engine = &self.engine;
        let start = clock::now();
        let wanted: Vec<(usize, Lookup)> = engine.visit(|engine| {
            let is_promising = |server: &&Server| server.is_promising();
            if engine.servers().iter().filter(is_promising).count() >= enough {
                return Vec::new();
            }
            let servers = engine.servers().iter_mut().enumerate();
            let due = servers.flat_map(|(index, server)| {
                let names = iter::from_fn(|| server.name_to_look_up(start));
                names.map(move |lookup| (index, lookup)).collect::<Vec<_>>()
            });
            due.collect()
        });
        if wanted.is_empty() {
            return None;
        }
        for (index, lookup) in wanted {
            let began = clock::now();
            let found = place::look_up(&lookup.name, lookup.port);
            if !self.is_ours() {
                return None;
            }
            let now = clock::now();
            engine.visit(|engine| {
                engine.for_server(index, |server, effects| {
                    server.handle_addresses(&lookup, found, began, now, effects);
                });
            });
        }
        Some(clock::now().ms_since(start))
    }

    /// Asks for the passwords for which that is due, with nothing held: who is asked may take his time,
    /// or call the library. Each request is taken when its turn comes, so that meanwhile other threads
    /// ask the next. Returns how long it took. If who is asked forks, the child stops at once: the
    /// connections are the parent's, and its threads may have been changing them.
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
            let password = request.ask();
            if !self.is_ours() {
                return 0;
            }
            end = clock::now();
            due = engine.visit(|engine| {
                engine.for_server(index, |server, effects| {
                    server.handle_password(password, began, end, effects);
                });
                next_request(engine, index + 1, end)
            });
        }
        end.ms_since(start)
    }

    /// Whether no thread is changing anything at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.engine.is_at_rest() && self.continued.is_at_rest()
    }

    /// Lets go of descriptors that are closed already, or are not this process's to close.
    pub(crate) fn forget_descriptors(&mut self) {
        let (engine, host) = self.engine.get_mut();
        engine.servers().iter_mut().for_each(Server::forget_sockets);
        engine.forget_descriptor();
        if let Some(waker) = host.waker.take() {
            waker.forget();
        }
    }
}

/// The first password that is to be asked for, of this server or one that comes after it.
fn next_request(
    engine: &mut Engine,
    first: usize,
    now: Moment,
) -> Option<(usize, PasswordRequest)> {
    let mut servers = engine.servers().iter_mut().enumerate().skip(first);
    servers.find_map(|(index, server)| Some((index, server.password_request(now)?)))
}

fn no_descriptors(error: &io::Error) -> Error {
    Error::new(Status::Internal, format!("the system gave no descriptors: {error}"))
}
