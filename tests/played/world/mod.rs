//! A simulated world. True time passes only when something is due, and the same schedule always plays in
//! the same way. The world belongs to the thread that plays it. The callers of the library are coroutines
//! on that thread, and one of them runs at a time.

pub(crate) mod client;
pub(crate) mod clocks;
pub(crate) mod commands;
pub(crate) mod coroutine;
pub(crate) mod dice;
pub(crate) mod digest;
pub(crate) mod fences;
pub(crate) mod hashes;
pub(crate) mod lines;
mod lives;
mod locks;
pub(crate) mod masters;
pub(crate) mod network;
mod notes;
pub(crate) mod permits;
pub(crate) mod readers;
pub(crate) mod resp;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod several;
pub(crate) mod store;
pub(crate) mod turns;
mod waiting;

use std::cell::RefCell;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::fmt::Write;
use std::ops::Range;
use std::rc::Rc;

use crate::schedules::holes::{Told, WAIVED};
use crate::schedules::plants::Plant;
use crate::schedules::promises::Promise;
use crate::schedules::records::Records;
use crate::schedules::schedule::{At, ClientPlan, Life, Mishap, Schedule, Weather};
use crate::schedules::watch::Watch;
use crate::world::client::Client;
use crate::world::dice::Dice;
use crate::world::digest::Digest;
use crate::world::network::{Bell, Connection, Way, Wire};
use crate::world::script::Script;
use crate::world::server::Server;
use crate::world::store::{Memory, Refusal};
use crate::world::turns::Caller;

/// The maximum number of events in a schedule; a schedule with more runs for ever. Most events come from
/// short locks that are kept for a minute, while requests go out in small pieces.
const EVENTS_MAX: u64 = 1_500_000;

/// The maximum of a scenario. Some scenarios take years of simulated time.
const EVENTS_OF_SCENARIO_MAX: u64 = 5_000_000;

/// The beginning of a play. It is not 0, because a difference of two times must not be mistaken for a time.
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
    pub(crate) digest: Digest,
    /// By client, manager and server.
    pub(crate) watches: HashMap<(usize, usize, usize), Watch>,
    /// What each manager was told of the memory of each server: by client, manager and server.
    pub(crate) known: HashMap<(usize, usize, usize), Vec<Told>>,
    /// When a server was first marked.
    pub(crate) used_at: Option<i64>,
    /// For each voter that Sentinels watch: the epoch of the last server that has taken its place.
    pub(crate) reigns: Vec<u64>,
    /// How long bytes are on their way now.
    pub(crate) weather: Weather,
    /// Whether nothing goes wrong any more.
    pub(crate) is_calm: bool,
    /// The events so far, if somebody wants the story.
    pub(crate) story: Option<String>,
    pub(crate) callers: Vec<Caller>,
    /// When a caller last waited for nothing, and how often that happened since time last passed.
    pub(crate) idle: (i64, u32),
    /// The same for something that was ready.
    pub(crate) ready: (i64, u32),
    /// Kept to reuse its memory.
    pub(crate) ranges: Vec<Range<usize>>,
    pub(crate) keys_before: Vec<(u64, u64, Option<i64>)>,
    /// Whether the server's current action is part of a planted fault.
    pub(crate) is_tricked: bool,
    due: BinaryHeap<Reverse<Due>>,
    pub(crate) events: u64,
    pub(crate) running: Option<usize>,
    pub(crate) turns: Dice,
    /// When a lock was released for which a client waited.
    pub(crate) let_go_at: Option<i64>,
    /// Set if a scenario is played.
    pub(crate) script: Option<Script>,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The caller continues, unless it has done so meanwhile.
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
    Befall {
        client: usize,
        mishap: Mishap,
    },
    Strike {
        fault: usize,
    },
    Heal {
        fault: usize,
    },
    EndLife {
        server: usize,
        life: Life,
    },
}

/// Ordered by time, and then by the order of planning.
#[derive(Clone, Copy)]
struct Due {
    at: i64,
    number: u64,
    event: Event,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

thread_local! {
    static WORLD: RefCell<Option<Box<World>>> = const { RefCell::new(None) };
}

/// Accesses the world of this thread. Outside a play there is an empty world.
pub(crate) fn with<T>(look: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| {
        look(world.get_or_insert_with(|| Box::new(World::new(Rc::new(Schedule::empty())))))
    })
}

/// Sets another world.
pub(crate) fn set(world: World) {
    WORLD.with_borrow_mut(|it| *it = Some(Box::new(world)));
}

/// Ends the world.
pub(crate) fn take() -> Option<Box<World>> {
    WORLD.with_borrow_mut(Option::take)
}

impl World {
    pub(crate) fn new(schedule: Rc<Schedule>) -> Self {
        let seed = schedule.seed;
        let mut servers: Vec<Server> = schedule.servers.iter().map(Server::new).collect();
        if schedule.is_guarded || schedule.watched.is_some() {
            for (index, server) in servers.iter_mut().enumerate() {
                let tells_ends = !Dice::of(seed, 8, index).once_in(3);
                server.store.have_memory(Memory { tells_ends, ..Memory::of(index) });
                server.begin_as(schedule.lives);
            }
        }
        let mut world = Self {
            now: START,
            clients: Vec::new(),
            servers,
            connections: Vec::new(),
            wires: Vec::new(),
            bells: Vec::new(),
            records: Records::default(),
            digest: Digest::default(),
            watches: HashMap::new(),
            known: HashMap::new(),
            used_at: None,
            reigns: Vec::new(),
            weather: schedule.weather.clone(),
            is_calm: false,
            story: None,
            callers: Vec::new(),
            idle: (0, 0),
            ready: (0, 0),
            ranges: Vec::new(),
            keys_before: Vec::new(),
            is_tricked: false,
            due: BinaryHeap::new(),
            events: 0,
            running: None,
            turns: Dice::of(seed, 3, 0),
            let_go_at: None,
            script: None,
            schedule: Rc::clone(&schedule),
        };
        for plan in &schedule.clients {
            world.add_client_of(plan);
        }
        for (index, server) in world.servers.iter_mut().enumerate() {
            server.store.plant = schedule.plant;
            server.store.knows_resp3 = !Dice::of(seed, 14, index).once_in(6);
            // Only in schedules in which no verdict asks whether a fault was a reason: sending a script
            // again takes time.
            let mut losing = Dice::of(seed, 18, index);
            let loses = schedule.is_guarded && losing.once_in(4);
            server.store.loses_scripts = loses.then_some(losing);
        }
        if schedule.lives.is_some() {
            world.records.waived = &WAIVED;
        }
        world.begin_to_watch();
        for (fault, it) in schedule.faults.iter().enumerate() {
            world.at(START + it.at, Event::Strike { fault });
        }
        world
    }

    /// Returns the client's number.
    pub(crate) fn add_client_of(&mut self, plan: &ClientPlan) -> usize {
        let (seed, client) = (self.schedule.seed, self.clients.len());
        self.clients.push(Client::new(seed, client, plan));
        let wires = self.wires.len()..self.wires.len() + self.servers.len();
        self.wires.extend(wires.map(|it| Wire::new(seed, it)));
        client
    }

    /// Schedules an event at this time.
    pub(crate) fn at(&mut self, at: i64, event: Event) {
        self.events += 1;
        self.due.push(Reverse(Due { at: at.max(self.now), number: self.events, event }));
    }

    /// Plays until a caller continues, and returns the caller; or until this time.
    pub(crate) fn play(&mut self, until: i64) -> Option<usize> {
        while let Some(Reverse(due)) = self.due.peek().copied() {
            if due.at > until {
                break;
            }
            self.due.pop();
            self.now = due.at;
            if self.events > self.events_max() {
                self.records.violate(Promise::InTime, "it goes on for ever");
                return None;
            }
            match due.event {
                Event::GoOn { caller, pause } if self.goes_on(caller, pause) => {
                    return Some(caller);
                }
                Event::GoOn { .. } => {}
                Event::Connected { connection } => self.handle_connected(connection),
                Event::Deliver { connection, way } => self.deliver(connection, way),
                Event::Befall { client, mishap } => self.befall(client, mishap),
                Event::Strike { fault } => self.strike(fault),
                Event::Heal { fault } => self.heal(fault),
                Event::EndLife { server, life } => self.end_life(server, life),
            }
        }
        self.now = self.now.max(until);
        None
    }

    fn events_max(&self) -> u64 {
        if self.script.is_some() { EVENTS_OF_SCENARIO_MAX } else { EVENTS_MAX }
    }

    /// Whether nothing will ever happen again.
    pub(crate) fn is_over(&self) -> bool {
        self.due.is_empty()
    }

    pub(crate) fn clock_of_current(&self) -> i64 {
        self.current_client().map_or(self.now, |it| self.clients[it].read(self.now))
    }

    /// The time of day on the machine of the running client, in microseconds.
    pub(crate) fn wall_us_of_current(&mut self) -> i64 {
        let (now, client) = (self.now, self.current_client());
        let truth = self.servers.first().map_or(now, |it| it.clock.read(now));
        (truth + client.map_or(0, |it| self.clients[it].wall_ahead())) / 1_000
    }

    /// The random number that a scenario has chosen for the running client.
    pub(crate) fn rigged(&self) -> Option<u64> {
        self.clients[self.current_client()?].rigged
    }

    pub(crate) fn dice_of_current(&mut self) -> &mut Dice {
        match self.current_client() {
            Some(client) => &mut self.clients[client].dice,
            None => &mut self.turns,
        }
    }

    /// The running caller, for the story.
    pub(crate) fn who(&self) -> String {
        let Some(caller) = self.running else { return "nobody".to_owned() };
        let client = self.callers[caller].client;
        let first = self.callers.iter().position(|it| it.client == client).unwrap_or(0);
        format!("client {client}.{}", caller - first)
    }

    /// Nothing goes wrong from now on, and nothing takes long.
    pub(crate) fn calm_down(&mut self) {
        self.is_calm = true;
        let least = self.weather.least;
        self.weather = Weather { least, most: 2 * least, ..Weather::CALM };
        self.clients.iter_mut().for_each(Client::calm_down);
        self.end_stalls();
        if self.is_broken(Plant::NeverMends) {
            self.servers.iter_mut().for_each(|it| it.refusals.push(Refusal::Loading));
        }
        self.say(|_| "== from now on all goes well".to_owned());
    }

    /// Whether anything went wrong, including slow weather.
    pub(crate) fn has_had_faults(&self) -> bool {
        self.schedule.clients.iter().any(ClientPlan::is_stopped)
            || !self.schedule.faults.is_empty()
            || self.schedule.weather.slow_in > 0
    }

    /// Whether a client still exists, and has any steps.
    pub(crate) fn has_part(&self, client: usize) -> bool {
        let is_idle = self.schedule.clients[client].callers.iter().all(Vec::is_empty);
        !self.clients[client].is_gone && !is_idle
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
