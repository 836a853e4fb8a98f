//! The plan: which figures are measured, how often, and how long that may take.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use super::contenders::Who;
use super::turns::{Fault, Load, Permits, Times, Turn};

const MOST_SERVERS: usize = 5;

/// Contenders that are too slow, or too far behind, to be measured in every round.
const NOW_AND_THEN: [Who; 3] = [Who::NodeRedlock, Who::RedlockPy, Who::Pottery];

pub(crate) const MANY_PROCESSES: Load = Load::Processes(32);

/// With this many waiters, a run has more than a hundred trials.
pub(crate) const WAITERS: Load = Load::Woken(48);

pub(crate) const PERMITS: [Permits; 2] =
    [Permits { all: 8, held: 7, at_once: 1 }, Permits { all: 100, held: 90, at_once: 8 }];

/// How much later replies come from servers that are not on this machine.
pub(crate) const FAR: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(2)];

pub(crate) struct Plan {
    pub(crate) short: bool,
    pub(crate) budget: Duration,
    pub(crate) only: Option<String>,
    pub(crate) write: Option<PathBuf>,
    /// Whether the counted instructions are recorded.
    pub(crate) record: bool,
    /// How long locks are kept while servers fail.
    pub(crate) kept: Duration,
}

/// Turns that are compared with one another. So they take turns, round after round.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) servers: usize,
    /// The part's share of the total time.
    pub(crate) weight: f64,
    pub(crate) rounds: usize,
    pub(crate) turns: Vec<Planned>,
}

pub(crate) struct Planned {
    pub(crate) turn: Turn,
    pub(crate) times: Times,
    /// The turn is taken in every round that is a multiple of this number.
    pub(crate) every: usize,
}

impl Plan {
    /// Returns `None` if the arguments make no sense.
    pub(crate) fn from_args() -> Option<Self> {
        let (budget, kept) = (Duration::from_secs(660), Duration::from_secs(40));
        let mut plan = Self { short: false, budget, only: None, write: None, record: false, kept };
        let mut kept_for = None;
        let mut args = env::args().skip(1).filter(|a| a != "--bench");
        while let Some(arg) = args.next() {
            match &*arg {
                "--short" => {
                    plan.short = true;
                    plan.budget = Duration::from_secs(75);
                    plan.kept = Duration::from_secs(20);
                }
                "--record" => plan.record = true,
                "--only" => plan.only = Some(args.next()?),
                "--kept" => kept_for = Some(Duration::from_secs(args.next()?.parse().ok()?)),
                "--write" => plan.write = Some(args.next()?.into()),
                _ => return None,
            }
        }
        plan.kept = kept_for.unwrap_or(plan.kept);
        Some(plan)
    }

    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut parts =
            vec![self.cycles(5), self.submitted(), self.kinds(), self.cycles(3), self.cycles(1)];
        parts.extend([self.contention(), self.few_contention(), self.woken(), self.faults()]);
        parts.push(self.network());
        parts.retain(|part| self.wants(part.name));
        parts
    }

    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only.split(',').any(|it| it == part))
    }

    /// In how many rounds system calls are counted.
    pub(crate) fn counts(&self) -> usize {
        if self.short { 1 } else { 3 }
    }

    fn times(&self, run_ms: u64) -> Times {
        let warm = if self.short { 150 } else { 300 };
        Times { warm: Duration::from_millis(warm), run: Duration::from_millis(run_ms) }
    }

    /// A resource for each worker.
    fn cycles(&self, servers: usize) -> Part {
        let (name, weight, rounds, seldom) = match (servers, self.short) {
            (MOST_SERVERS, false) => ("5-servers", 33.0, 9, 4),
            (MOST_SERVERS, true) => ("5-servers", 38.0, 2, 2),
            (3, false) => ("3-servers", 12.0, 3, 3),
            (_, false) => ("1-server", 12.0, 3, 3),
            (3, true) => ("3-servers", 14.0, 1, 0),
            (_, true) => ("1-server", 15.0, 1, 0),
        };
        let often = if servers == MOST_SERVERS { 2 } else { 1 };
        let mut turns = Vec::new();
        for workers in [1, 8, 64] {
            for who in Who::ALL {
                let every = match who {
                    Who::Ours | Who::Floor => 1,
                    Who::Same if servers == MOST_SERVERS => 1,
                    // The best peer so far, which a goal compares with.
                    Who::Rslock if workers == 8 => 1,
                    Who::Rslock => often,
                    Who::Serial if workers < 64 => often,
                    Who::RedisPy if workers < 64 && servers == 1 => seldom.max(1),
                    _ if NOW_AND_THEN.contains(&who) && workers < 64 => seldom,
                    _ => 0,
                };
                let turn = healthy(who, servers, Load::Own(workers));
                turns.push(Planned { turn, every, ..self.planned(1000, 400) });
            }
        }
        part(name, servers, weight, rounds, turns)
    }

    /// How often a majority dies, and under how many locks each time.
    pub(crate) fn deaths(&self) -> (usize, usize) {
        if self.short { (3, 50) } else { (10, 100) }
    }

    /// Submitted calls, compared with an event loop and with peers.
    fn submitted(&self) -> Part {
        let (weight, rounds, seldom) = if self.short { (16.0, 2, 0) } else { (25.0, 9, 3) };
        let mut turns = Vec::new();
        let mut plan = |who, load, every| {
            let turn = healthy(who, MOST_SERVERS, load);
            turns.push(Planned { turn, every, ..self.planned(1000, 400) });
        };
        for load in [Load::InFlight(8), Load::InFlight(64)] {
            for who in [Who::Ours, Who::Floor, Who::Same, Who::Rslock] {
                plan(who, load, 1);
            }
            // Some peers are too slow to be the best. They are measured now and then, to confirm this.
            plan(Who::Serial, load, seldom);
            plan(Who::NodeRedlock, load, seldom);
        }
        for who in [Who::RedlockPy, Who::Pottery] {
            plan(who, Load::InFlight(8), if self.short { 0 } else { rounds });
        }
        part("submitted", MOST_SERVERS, weight, rounds, turns)
    }

    /// One resource for all workers, on five servers.
    fn contention(&self) -> Part {
        let rounds = if self.short { 1 } else { 5 };
        let seldom = if self.short { 0 } else { 3 };
        let mut turns = Vec::new();
        let mut plan = |who, load, every| {
            let turn = healthy(who, MOST_SERVERS, load);
            turns.push(Planned { turn, every, ..self.planned(1500, 800) });
        };
        for load in [Load::Threads(8), Load::Processes(8)] {
            plan(Who::Ours, load, 1);
            plan(Who::Polling, load, 1);
            plan(Who::Serial, load, seldom);
        }
        plan(Who::Ours, Load::Threads(64), 1);
        plan(Who::Rslock, Load::Threads(8), seldom);
        for who in NOW_AND_THEN {
            plan(who, Load::Threads(8), seldom);
        }
        turns.extend(self.many_processes(MOST_SERVERS));
        part("contention", MOST_SERVERS, 28.0, rounds, turns)
    }

    /// One resource for many processes, on three servers.
    fn few_contention(&self) -> Part {
        let rounds = if self.short { 1 } else { 5 };
        let turn = healthy(Who::Ours, 3, Load::Processes(8));
        let mut turns = vec![Planned { turn, ..self.planned(1500, 800) }];
        turns.extend(self.many_processes(3));
        part("contention-3", 3, 12.0, rounds, turns)
    }

    /// Each process gets the lock often enough to show whether some get it more often than others. Then the same
    /// with one server stopped.
    fn many_processes(&self, servers: usize) -> [Planned; 2] {
        let turn = healthy(Who::Ours, servers, MANY_PROCESSES);
        let frozen = Turn { fault: Fault::Frozen, fresh: true, ..turn };
        [turn, frozen].map(|turn| Planned { turn, ..self.planned(3000, 1500) })
    }

    /// Kinds of locks, compared with plain ones.
    fn kinds(&self) -> Part {
        let (weight, rounds) = if self.short { (12.0, 2) } else { (20.0, 7) };
        let mut turns = Vec::new();
        let mut plan = |load, (run, short)| {
            let turn = match load {
                Load::Clustered => clustered(),
                _ => healthy(Who::Ours, MOST_SERVERS, load),
            };
            turns.push(Planned { turn, ..self.planned(run, short) });
        };
        plan(Load::Kinds, (4000, 1500));
        plan(Load::Watched, (2000, 800));
        plan(Load::Clustered, (2000, 800));
        plan(Load::Connecting, (1000, 500));
        plan(Load::Writers(64), (1000, 400));
        plan(Load::Readers(64), (1000, 400));
        for permits in PERMITS {
            plan(Load::Permits(permits), (1000, 400));
        }
        part("kinds", MOST_SERVERS, weight, rounds, turns)
    }

    /// Processes that have waited for two seconds. That is why the runs are long.
    fn woken(&self) -> Part {
        let (weight, rounds) = if self.short { (10.0, 1) } else { (8.0, 4) };
        let turn = healthy(Who::Ours, MOST_SERVERS, WAITERS);
        let planned = Planned { turn, ..self.planned(7500, 7500) };
        part("woken", MOST_SERVERS, weight, rounds, vec![planned])
    }

    /// One thread, with one of five servers in trouble.
    fn faults(&self) -> Part {
        let rounds = if self.short { 2 } else { 7 };
        let mut turns = Vec::new();
        for fault in [Fault::None, Fault::Frozen, Fault::Killed, Fault::Slow] {
            let ours = Turn { fault, ..alone(Who::Ours) };
            turns.push(Planned { turn: ours, every: 1, ..self.planned(1500, 500) });
            if self.short {
                continue;
            }
            if fault != Fault::Killed {
                // The cost of the fault for the program that does the least. A lost connection ends the floor.
                let floor = Turn { fault, ..alone(Who::Floor) };
                turns.push(Planned { turn: floor, every: 1, ..self.planned(1000, 500) });
            }
            if fault == Fault::None {
                continue;
            }
            for who in Who::PEERS {
                // Once is enough: most peers either lock or fail every time.
                let turn = Turn { fault, ..alone(who) };
                turns.push(Planned { turn, every: rounds, ..self.planned(1000, 500) });
            }
        }
        part("faults", MOST_SERVERS, 22.0, rounds, turns)
    }

    /// Servers that are as far as in another zone of a data centre, and farther: beside the floor with the same requests.
    fn network(&self) -> Part {
        let (weight, rounds) = if self.short { (8.0, 1) } else { (14.0, 5) };
        let mut turns = Vec::new();
        for far in FAR {
            for load in [Load::Extending, Load::InFlight(64)] {
                for who in [Who::Ours, Who::Same] {
                    let turn = Turn { far, ..healthy(who, MOST_SERVERS, load) };
                    turns.push(Planned { turn, ..self.planned(1500, 600) });
                }
            }
        }
        part("network", MOST_SERVERS, weight, rounds, turns)
    }

    fn planned(&self, run_ms: u64, short_run_ms: u64) -> Planned {
        let times = self.times(if self.short { short_run_ms } else { run_ms });
        Planned { turn: healthy(Who::Ours, 1, Load::Own(1)), times, every: 1 }
    }
}

fn part(
    name: &'static str,
    servers: usize,
    weight: f64,
    rounds: usize,
    mut turns: Vec<Planned>,
) -> Part {
    turns.retain(|planned| planned.every > 0);
    Part { name, servers, weight, rounds, turns }
}

/// One contender, on servers that other contenders use before and after it.
pub(crate) fn healthy(who: Who, servers: usize, load: Load) -> Turn {
    Turn { who, servers, load, fault: Fault::None, far: Duration::ZERO, fresh: false }
}

/// Three servers, and a cluster of three masters beside them.
pub(crate) fn clustered() -> Turn {
    Turn { fresh: true, ..healthy(Who::Ours, 3, Load::Clustered) }
}

/// One thread, on five servers of its own.
pub(crate) fn alone(who: Who) -> Turn {
    Turn { fresh: true, ..healthy(who, MOST_SERVERS, Load::Own(1)) }
}
