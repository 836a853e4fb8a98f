//! A world that is played: true time passes only when something is due, and the same schedule always
//! plays the same. It belongs to the thread that plays it; the callers of the library are coroutines
//! on that thread, and one of them runs at a time.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;
use std::rc::Rc;
use std::thread;

use crate::client::Client;
use crate::coroutine;
use crate::dice::Dice;
use crate::network::{Bell, Connection, Way, Wire};
use crate::records::Records;
use crate::schedule::{At, Schedule, Weather};
use crate::server::Server;
use crate::system::socket::Watched;

/// No schedule has so many, or it goes on for ever.
const EVENTS_MAX: u64 = 300_000;

/// When a play begins. Not 0: a difference of two times must not be mistaken for a time.
pub(crate) const START: i64 = 1_000_000_000_000;

pub(crate) struct World {
    pub(crate) now: i64,
    pub(crate) schedule: Rc<Schedule>,
    pub(crate) clients: Vec<Client>,
    pub(crate) servers: Vec<Server>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) bells: Vec<Bell>,
    pub(crate) records: Records,
    /// How long bytes are on their way, now.
    pub(crate) weather: Weather,
    /// What has happened, if somebody wants to know.
    pub(crate) story: Option<String>,
    pub(crate) callers: Vec<Caller>,
    due: BinaryHeap<Reverse<Due>>,
    pub(crate) events: u64,
    running: Option<usize>,
    turns: Dice,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// Unless it has gone on meanwhile, the caller does.
    GoOn {
        caller: usize,
        pause: u64,
    },
    Connected {
        connection: usize,
    },
    Deliver {
        connection: usize,
        way: Way,
    },
    Strike {
        fault: usize,
    },
    Heal {
        fault: usize,
    },
}

/// In the order of time, and of what was planned first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: i64,
    number: u64,
    event: Event,
}

/// A thread of a client.
pub(crate) struct Caller {
    pub(crate) client: usize,
    /// Counts its pauses.
    pause: u64,
    state: State,
    watched: Vec<Watched>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// Until its time is over.
    Resting,
    /// Until something that it watches is ready, too.
    Watching,
    /// Until somebody gives this signal.
    Waiting {
        signal: usize,
    },
    /// It will go on in a moment.
    Woken,
}

thread_local! {
    static WORLD: RefCell<Option<Box<World>>> = const { RefCell::new(None) };
}

/// Looks at the world of this thread, or changes it. Outside of a play there is an empty one.
pub(crate) fn with<T>(look: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| {
        look(world.get_or_insert_with(|| Box::new(World::new(Rc::new(Schedule::empty())))))
    })
}

/// Begins another one.
pub(crate) fn set(world: World) {
    WORLD.with_borrow_mut(|it| *it = Some(Box::new(world)));
}

/// Ends it.
pub(crate) fn take() -> Option<Box<World>> {
    WORLD.with_borrow_mut(Option::take)
}

/// The caller that runs has come to where the system might stop it.
pub(crate) fn step() {
    if with(World::take_step) {
        coroutine::pause();
    }
}

/// The other callers of the same client may run first.
pub(crate) fn take_turns() {
    if with(World::take_turn) {
        coroutine::pause();
    }
}

/// Stops the caller that runs, which has said why.
pub(crate) fn pause() {
    coroutine::pause();
}

/// Stops the caller that runs for so long.
pub(crate) fn sleep(ns: i64) {
    with(|world| {
        let until = world.now + ns;
        world.rest(State::Resting, Some(until));
    });
    coroutine::pause();
}

/// Stops the caller that runs until somebody signals.
pub(crate) fn wait_for(signal: usize) {
    with(|world| world.rest(State::Waiting { signal }, None));
    coroutine::pause();
}

/// Lets those callers of the same client go on that wait for it.
pub(crate) fn signal(signal: usize) {
    with(|world| {
        for caller in 0..world.callers.len() {
            if world.callers[caller].state == (State::Waiting { signal }) {
                world.wake(caller);
            }
        }
    });
}

impl World {
    pub(crate) fn new(schedule: Rc<Schedule>) -> Self {
        let seed = schedule.seed;
        let clients: Vec<Client> =
            schedule.clients.iter().enumerate().map(|(i, it)| Client::new(seed, i, it)).collect();
        let servers: Vec<Server> = schedule.servers.iter().map(Server::new).collect();
        let wires = (0..clients.len() * servers.len()).map(|it| Wire::new(seed, it)).collect();
        let mut world = Self {
            now: START,
            clients,
            servers,
            connections: Vec::new(),
            wires,
            bells: Vec::new(),
            records: Records::default(),
            weather: schedule.weather.clone(),
            story: None,
            callers: Vec::new(),
            due: BinaryHeap::new(),
            events: 0,
            running: None,
            turns: Dice::of(seed, 3, 0),
            schedule: Rc::clone(&schedule),
        };
        for (fault, it) in schedule.faults.iter().enumerate() {
            world.at(START + it.at, Event::Strike { fault });
        }
        world
    }

    /// Has something happen then.
    pub(crate) fn at(&mut self, at: i64, event: Event) {
        self.events += 1;
        self.due.push(Reverse(Due { at: at.max(self.now), number: self.events, event }));
    }

    /// Plays until a caller goes on, which is returned, or until then.
    pub(crate) fn play(&mut self, until: i64) -> Option<usize> {
        while let Some(Reverse(due)) = self.due.peek().copied() {
            if due.at > until {
                break;
            }
            self.due.pop();
            self.now = due.at;
            if self.events > EVENTS_MAX {
                self.records.violate("it goes on for ever");
                return None;
            }
            match due.event {
                Event::GoOn { caller, pause } if self.goes_on(caller, pause) => {
                    return Some(caller);
                }
                Event::GoOn { .. } => {}
                Event::Connected { connection } => self.handle_connected(connection),
                Event::Deliver { connection, way } => self.deliver(connection, way),
                Event::Strike { fault } => self.strike(fault),
                Event::Heal { fault } => self.heal(fault),
            }
        }
        self.now = self.now.max(until);
        None
    }

    /// Whether nothing will ever happen again.
    pub(crate) fn is_over(&self) -> bool {
        self.due.is_empty()
    }

    /// A new caller, who goes on so much later.
    pub(crate) fn add_caller(&mut self, client: usize) -> usize {
        let caller = self.callers.len();
        let watched = Vec::new();
        self.callers.push(Caller { client, pause: 1, state: State::Resting, watched });
        self.clients[client].callers += 1;
        self.at(self.now, Event::GoOn { caller, pause: 1 });
        caller
    }

    /// Whether it is time. A client that is stopped goes on with nothing.
    fn goes_on(&mut self, caller: usize, pause: u64) -> bool {
        let it = &mut self.callers[caller];
        if it.pause != pause || it.state == State::Running {
            return false;
        }
        let stopped_until = self.clients[it.client].stopped_until;
        if stopped_until > self.now {
            self.at(stopped_until, Event::GoOn { caller, pause });
            return false;
        }
        it.state = State::Running;
        self.running = Some(caller);
        true
    }

    pub(crate) fn stop_running(&mut self) {
        self.running = None;
    }

    /// The caller that runs.
    pub(crate) fn current(&self) -> Option<usize> {
        self.running
    }

    pub(crate) fn current_client(&self) -> Option<usize> {
        self.running.map(|it| self.callers[it].client)
    }

    fn rest(&mut self, state: State, until: Option<i64>) {
        let Some(caller) = self.running else { panic!("nobody runs who could wait") };
        let it = &mut self.callers[caller];
        it.state = state;
        it.pause += 1;
        let pause = it.pause;
        if let Some(until) = until {
            self.at(until, Event::GoOn { caller, pause });
        }
    }

    /// It goes on in a moment.
    pub(crate) fn wake(&mut self, caller: usize) {
        let it = &mut self.callers[caller];
        if matches!(it.state, State::Running | State::Woken) {
            return;
        }
        it.state = State::Woken;
        it.pause += 1;
        let pause = it.pause;
        let most = self.weather.wake;
        let later = if most > 0 { self.turns.between(0, most) } else { 0 };
        self.at(self.now + later, Event::GoOn { caller, pause });
    }

    /// Returns whether it stops.
    fn take_step(&mut self) -> bool {
        let Some(client) = self.current_client() else { return false };
        if thread::panicking() {
            return false;
        }
        let Some(hitch) = self.clients[client].take_step() else { return false };
        let Some(lasts) = hitch.lasts else {
            self.say(|world| format!("{} ends at its step {}", world.who(), hitch.step));
            self.crash(client, false);
            return false;
        };
        self.say(|world| format!("{} is stopped for {}", world.who(), At(lasts)));
        self.stop(client, lasts);
        self.rest(State::Resting, Some(self.now));
        true
    }

    fn take_turn(&mut self) -> bool {
        let Some(client) = self.current_client() else { return false };
        let has_company = self.clients[client].callers > 1 && !self.clients[client].is_gone;
        if !has_company || thread::panicking() || !self.turns.once_in(3) {
            return false;
        }
        let later = self.turns.between(0, 20_000);
        self.rest(State::Resting, Some(self.now + later));
        true
    }

    /// Whether there is no need to wait. If there is, the caller that runs is about to.
    pub(crate) fn look(&mut self, watched: &mut [Watched], until: i64) -> bool {
        let Some(caller) = self.running else { return true };
        let client = self.callers[caller].client;
        if self.clients[client].is_gone {
            self.clients[client].skip_to(until);
        }
        if self.note_ready(watched) || self.clients[client].read(self.now) >= until {
            return true;
        }
        let until = self.clients[client].clock.when(until);
        self.callers[caller].watched.clear();
        self.callers[caller].watched.extend_from_slice(watched);
        self.rest(State::Watching, Some(until));
        false
    }

    /// Notes what is ready. Returns whether something is.
    pub(crate) fn note_ready(&self, watched: &mut [Watched]) -> bool {
        let mut is_ready = false;
        for it in watched {
            it.revents = 0;
            if let Ok(which) = usize::try_from(it.fd) {
                it.revents = self.readiness(which, it.events & libc::POLLOUT != 0);
                is_ready |= it.revents != 0;
            }
        }
        is_ready
    }

    /// Something may be ready: who watches it goes on.
    pub(crate) fn notice(&mut self, client: usize, which: usize) {
        for caller in 0..self.callers.len() {
            let it = &self.callers[caller];
            if it.client != client || it.state != State::Watching {
                continue;
            }
            let watched = it.watched.iter().find(|it| usize::try_from(it.fd) == Ok(which));
            let for_writing = |it: &Watched| it.events & libc::POLLOUT != 0;
            if watched.is_some_and(|it| self.readiness(which, for_writing(it)) != 0) {
                self.wake(caller);
            }
        }
    }

    pub(crate) fn clock_of_current(&self) -> i64 {
        self.current_client().map_or(self.now, |it| self.clients[it].read(self.now))
    }

    pub(crate) fn dice_of_current(&mut self) -> &mut Dice {
        match self.current_client() {
            Some(client) => &mut self.clients[client].dice,
            None => &mut self.turns,
        }
    }

    /// The caller that runs, for the story.
    pub(crate) fn who(&self) -> String {
        let Some(caller) = self.running else { return "nobody".to_owned() };
        let client = self.callers[caller].client;
        let first = self.callers.iter().position(|it| it.client == client).unwrap_or(0);
        format!("client {client}.{}", caller - first)
    }

    /// Nothing goes wrong from now on, and nothing takes long.
    pub(crate) fn calm_down(&mut self) {
        let least = self.weather.least;
        self.weather = Weather { least, most: 2 * least, ..Weather::CALM };
        self.clients.iter_mut().for_each(Client::calm_down);
        self.say(|_| "== from now on all goes well".to_owned());
    }

    /// Whether it was all good weather without anything that went wrong.
    pub(crate) fn has_had_faults(&self) -> bool {
        let has_hitches = self.schedule.clients.iter().any(|it| !it.hitches.is_empty());
        has_hitches || !self.schedule.faults.is_empty() || self.schedule.weather.slow_in > 0
    }

    /// Adds a line to the story, if there is one.
    pub(crate) fn say(&mut self, words: impl FnOnce(&Self) -> String) {
        if self.story.is_some() {
            let words = words(self);
            if let Some(story) = &mut self.story {
                let _ = writeln!(story, "{:>14}  {words}", At(self.now - START).to_string());
            }
        }
    }
}
