//! A world with servers, in the terms of a scenario. Time passes only while somebody waits: the scenario
//! itself, a call that it makes, or a thread that it has started.

use std::cell::{Cell, RefCell};
use std::mem;
use std::ops::Deref;
use std::panic::resume_unwind;

use crate::schedules::promises::Promise;
pub(crate) use crate::world::clocks::MS;
use crate::world::coroutine::Coroutine;
pub(crate) use crate::world::script::{Done, Fault, Telling, Trip, Verb};
use crate::world::store::{Memory, Refusal};
use crate::world::turns::{self, Stall};
use crate::world::{self, World};

/// Longer than any call takes.
const LONGEST: i64 = 1 << 60;

/// The client that is the scenario itself. It has no connections, and nothing happens to it.
const NOBODY: usize = 0;

thread_local! {
    static STAGE: RefCell<Stage> = RefCell::default();
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// The actors that have begun and not ended, by the numbers of their callers.
#[derive(Default)]
struct Stage {
    actors: Vec<Option<Actor>>,
    /// How many of them are threads, and not scheduled events.
    threads: usize,
}

struct Actor {
    /// `None` while it runs.
    coroutine: Option<Coroutine>,
    is_thread: bool,
}

/// The path from a client to a server.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) client: usize,
    pub(crate) server: usize,
}

/// The world of one scenario.
pub(crate) struct Cluster(Scene);

/// The same world, for all that take part.
#[derive(Clone, Copy)]
pub(crate) struct Scene {
    number: u64,
    servers: usize,
}

impl Cluster {
    /// This number of servers that run correctly, all of them one millisecond away.
    pub(crate) fn new(servers: usize) -> Self {
        Self::begin(servers, false)
    }

    /// The same with servers that want a password.
    pub(crate) fn with_password(servers: usize) -> Self {
        Self::begin(servers, true)
    }

    fn begin(servers: usize, password: bool) -> Self {
        let number = CURRENT.get() + 1;
        CURRENT.set(number);
        world::set(World::of_scenario(servers, password));
        drop(STAGE.take());
        let scene = Scene { number, servers };
        let nobody = scene.with(|world| world.add_client(0, 1_000_000));
        assert_eq!(nobody, NOBODY);
        Self(scene)
    }
}

impl Deref for Cluster {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.0
    }
}

impl Drop for Cluster {
    /// Events that are still scheduled may hold clients, which close their connections.
    fn drop(&mut self) {
        if CURRENT.get() == self.number {
            drop(STAGE.take());
            drop(world::take());
        }
    }
}

impl Scene {
    pub(crate) fn with<T>(self, look: impl FnOnce(&mut World) -> T) -> T {
        assert_eq!(CURRENT.get(), self.number, "the world of another scenario");
        world::with(look)
    }

    /// The true time. No client and no server can see this clock.
    pub(crate) fn now(self) -> i64 {
        self.with(|world| world.now)
    }

    /// Schedules an event at this time.
    pub(crate) fn at(self, time: i64, event: impl FnOnce(Self) + 'static) {
        let coroutine = Coroutine::new(move || event(self));
        self.begin(NOBODY, time, coroutine, false);
    }

    /// Schedules an event after this time.
    pub(crate) fn after_ms(self, ms: i64, event: impl FnOnce(Self) + 'static) {
        self.at(self.now() + ms * MS, event);
    }

    /// Starts a thread after this time.
    pub(crate) fn thread(self, after_ms: i64, body: impl FnOnce() + 'static) {
        self.begin(NOBODY, self.now() + after_ms * MS, Coroutine::new(body), true);
    }

    /// Makes a call of a client: on the current thread, or on a thread of its own.
    pub(crate) fn call<T>(self, client: usize, call: impl FnOnce() -> T) -> T {
        if self.is_within() {
            self.with(|world| world.go_as(client));
            return call();
        }
        let mut outcome = None;
        let body = || outcome = Some(call());
        // SAFETY: if it does not end here, this function panics, and no scene continues after that.
        let coroutine = unsafe { Coroutine::borrowing(body) };
        let caller = self.begin(client, self.now(), coroutine, false);
        let has_ended = || STAGE.with_borrow(|it| it.actors[caller].is_none());
        self.play(LONGEST, has_ended);
        outcome.expect("a call ends")
    }

    /// Lets this time pass.
    pub(crate) fn run_ms(self, ms: i64) {
        self.run_until(self.now() + ms * MS);
    }

    /// Lets time pass until then.
    pub(crate) fn run_until(self, time: i64) {
        if self.is_within() {
            turns::sleep((time - self.now()).max(0));
        } else {
            self.play(time, || false);
        }
    }

    /// Lets time pass until all threads have ended. They must end within this time.
    #[track_caller]
    pub(crate) fn end_threads(self, within_ms: i64) {
        let has_ended = || STAGE.with_borrow(|it| it.threads == 0);
        self.play(self.now() + within_ms * MS, has_ended);
        assert!(has_ended(), "threads are still at it after {within_ms} ms");
    }

    /// Makes a call on the current thread, which is delayed at its `nth` look at the clock. Returns whether
    /// it was delayed.
    pub(crate) fn held_up(self, (nth, ns): (u32, i64), call: impl FnOnce()) -> bool {
        let set = |world: &mut World, stall| {
            let caller = world.current().expect("a thread makes the call");
            mem::replace(&mut world.callers[caller].stall, stall)
        };
        self.with(|world| set(world, Some(Stall { looks: nth, lasts: ns })));
        call();
        self.with(|world| set(world, None)).is_none()
    }

    /// Whether the current code runs in one of the world's callers.
    fn is_within(self) -> bool {
        self.with(|world| world.current().is_some())
    }

    fn begin(self, client: usize, at: i64, coroutine: Coroutine, is_thread: bool) -> usize {
        let caller = self.with(|world| world.add_caller_at(client, at));
        STAGE.with_borrow_mut(|stage| {
            if stage.actors.len() <= caller {
                stage.actors.resize_with(caller + 1, || None);
            }
            stage.actors[caller] = Some(Actor { coroutine: Some(coroutine), is_thread });
            stage.threads += usize::from(is_thread);
        });
        caller
    }

    /// Lets time pass until then, or until it is done.
    fn play(self, until: i64, is_done: impl Fn() -> bool) {
        while !is_done() {
            let next = self.with(|world| world.play(until));
            let Some(caller) = next else { break };
            let actor = |stage: &mut Stage| stage.actors[caller].as_mut()?.coroutine.take();
            let coroutine = STAGE.with_borrow_mut(actor);
            let Some(mut coroutine) = coroutine else { continue };
            let end = coroutine.resume();
            self.with(World::stop_running);
            let Some(end) = end else {
                STAGE.with_borrow_mut(|stage| {
                    let actor = stage.actors[caller].as_mut().expect("it has not ended");
                    actor.coroutine = Some(coroutine);
                });
                continue;
            };
            STAGE.with_borrow_mut(|stage| {
                let actor = stage.actors[caller].take();
                stage.threads -= usize::from(actor.is_some_and(|it| it.is_thread));
            });
            self.with(|world| world.script.as_mut().map(|it| it.spare.push(caller)));
            if let Err(panic) = end {
                resume_unwind(panic);
            }
        }
        self.check();
    }

    /// Checks every request with the oracle of the schedules. There is one exception: two clients may use
    /// one lease as if they were one client.
    fn check(self) {
        let violation = self.with(|world| world.records.violation.take());
        let is_shared = |it: &String| it.starts_with(Promise::TokensDiffer.name());
        if let Some(words) = violation.filter(|it| !is_shared(it)) {
            panic!("{words}");
        }
    }

    pub(crate) fn servers(self) -> usize {
        self.servers
    }

    pub(crate) fn quorum(self) -> usize {
        self.servers / 2 + 1
    }

    /// The number of servers on which this value exists.
    pub(crate) fn having(self, resource: &str, value: &str) -> usize {
        self.lives(resource, value).into_iter().filter(|&end| end > i64::MIN).count()
    }

    /// The number of servers on which any value exists.
    pub(crate) fn having_any(self, resource: &str) -> usize {
        let has = |server: &usize| self.with(|world| world.kept(*server, resource)).is_some();
        (0..self.servers).filter(has).count()
    }

    /// When the first server of a quorum will delete this value if nothing happens. Until then, and no
    /// longer, nobody else can have a quorum.
    pub(crate) fn kept_until(self, resource: &str, value: &str) -> i64 {
        let mut lives = self.lives(resource, value);
        lives.sort_unstable_by(|a, b| b.cmp(a));
        lives[self.quorum() - 1]
    }

    fn lives(self, resource: &str, value: &str) -> Vec<i64> {
        let life = |server| {
            let kept = self.with(|world| world.kept(server, resource));
            kept.filter(|it| it.0 == value).map_or(i64::MIN, |it| it.1)
        };
        (0..self.servers).map(life).collect()
    }

    /// The actions of the servers, in order.
    pub(crate) fn deeds(self) -> Vec<Done> {
        self.with(|world| world.script.as_ref().map_or_else(Vec::new, |it| it.done.clone()))
    }

    /// How long each request and each reply takes that no script determines.
    pub(crate) fn usual(self, usual: Trip) {
        self.with(|world| world.script.as_mut().expect("it is a scenario").usual = usual);
    }

    /// What happens to the next requests on this path. The requests of a handshake do not count.
    pub(crate) fn script(self, way: Way, trips: impl IntoIterator<Item = Trip>) {
        self.with(|world| world.wire(way.client, way.server).trips.extend(trips));
    }

    /// The connection is lost. Data under way to the server arrives, unless it is swallowed.
    pub(crate) fn cut(self, way: Way, is_swallowed: bool) {
        self.with(|world| world.sever(way.client, way.server, is_swallowed));
    }

    /// The client does nothing for this time, and time passes for all others.
    pub(crate) fn suspend(self, client: usize, ms: i64) {
        self.with(|world| world.stop(client, ms * MS));
    }

    /// What happens to the next messages that the server sends to this client by itself.
    pub(crate) fn telling(self, way: Way, tellings: impl IntoIterator<Item = Telling>) {
        self.with(|world| world.wire(way.client, way.server).tellings.extend(tellings));
    }

    /// The length of this wait queue, on each server.
    pub(crate) fn in_line(self, line: &str) -> Vec<usize> {
        let count = |server: usize| {
            self.with(|world| {
                let now_ms = world.servers[server].now_ms(world.now);
                let mut lines = world.servers[server].store.lines.iter();
                lines.find(|it| it.is_of(line.as_bytes())).map_or(0, |it| it.len(now_ms))
            })
        };
        (0..self.servers).map(count).collect()
    }

    /// The server is older than RESP3.
    pub(crate) fn speaks_resp2(self, server: usize) {
        self.with(|world| world.servers[server].store.knows_resp3 = false);
    }

    /// From now on the server refuses this.
    pub(crate) fn refuse(self, server: usize, what: Refusal) {
        self.with(|world| world.servers[server].refusals.push(what));
    }

    /// The process of this client ends.
    pub(crate) fn end_process(self, client: usize) {
        self.with(|world| world.crash(client, false));
    }

    /// Freezes a server: requests to it wait, and its sent replies are on their way.
    pub(crate) fn freeze(self, server: usize) {
        self.with(|world| world.servers[server].frozen = 1);
    }

    /// Lets a frozen server continue, first with the requests that have arrived meanwhile.
    pub(crate) fn thaw(self, server: usize) {
        self.with(|world| {
            world.servers[server].frozen = 0;
            world.thaw(server);
        });
    }

    /// Ends a server. Its disk keeps the keys, and their TTLs go on.
    pub(crate) fn kill(self, server: usize) {
        self.with(|world| {
            world.servers[server].down = 1;
            world.kill(server, false);
        });
    }

    /// Starts a server that was ended.
    pub(crate) fn start(self, server: usize) {
        self.with(|world| world.servers[server].down = 0);
    }

    /// From now on the servers let clients ask for their notes. They have been in use for a long time.
    pub(crate) fn tell_notes(self) {
        self.with(|world| {
            for (server, it) in world.servers.iter_mut().enumerate() {
                it.store.memory = Some(Memory::of(server));
            }
        });
    }

    /// The note of a server about its memory. Empty if it has none.
    pub(crate) fn note(self, server: usize) -> String {
        self.with(|world| {
            let note =
                world.servers[server].store.memory.as_ref().and_then(|it| it.note.as_deref());
            String::from_utf8_lossy(note.unwrap_or_default()).into_owned()
        })
    }

    /// Dates the note of a server at this time of its clock.
    pub(crate) fn date_note(self, server: usize, since_ms: i64) {
        let note = self.note(server);
        let mut words: Vec<&str> = note.split(' ').collect();
        let since = since_ms.to_string();
        words[3] = &since;
        self.with(|world| {
            let memory = world.servers[server].store.memory.as_mut().expect("it tells its note");
            memory.note = Some(words.join(" ").into_bytes().into());
        });
    }

    /// The server forgets everything, and its note.
    pub(crate) fn flush(self, server: usize) {
        self.with(|world| {
            let store = &mut world.servers[server].store;
            store.keys.clear();
            store.memory.as_mut().expect("it tells its note").note = None;
        });
    }

    /// The server is started again, without its data.
    pub(crate) fn restart_empty(self, server: usize) {
        self.kill(server);
        self.flush(server);
        self.with(|world| {
            world.servers[server].store.memory.as_mut().expect("it tells its note").restart();
        });
        self.start(server);
    }

    /// The servers want this password from now on.
    pub(crate) fn change_password(self, password: &'static str) {
        self.with(|world| {
            world.servers.iter_mut().for_each(|it| it.store.password = Some(password));
        });
    }

    /// The servers lose this key.
    pub(crate) fn lose(self, servers: impl IntoIterator<Item = usize>, resource: &str) {
        self.with(|world| {
            for server in servers {
                let keys = &mut world.servers[server].store.keys;
                keys.retain(|it| *it.name != *resource.as_bytes());
            }
        });
    }

    /// Writes the key by hand.
    pub(crate) fn put(self, server: usize, resource: &str, value: &str, ttl_ms: i64) {
        self.with(|world| world.put(server, resource, value, ttl_ms));
    }

    /// The server reports that every lock belongs to another client, with this remaining time.
    pub(crate) fn lie(self, server: usize, left_ms: i64) {
        self.with(|world| world.servers[server].store.lies_ms = Some(left_ms));
    }

    /// The server's clock steps by this amount.
    pub(crate) fn step_clock(self, server: usize, ms: i64) {
        self.with(|world| {
            let now = world.now;
            world.servers[server].clock.step(now, ms * MS);
        });
    }

    /// The server's clock has always been ahead by this amount, and had this rate.
    pub(crate) fn set_clock(self, server: usize, ahead: i64, per_million: i64) {
        let clock = world::clocks::Clock::new(ahead, per_million);
        self.with(|world| world.servers[server].clock = clock);
    }
}
