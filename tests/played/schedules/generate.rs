//! Generates a schedule from a seed. Each seed chooses from a subset of all faults. So schedules differ,
//! and some have almost no faults.

mod counted;
mod faults;
pub(crate) mod lives;
mod masters;
mod steps;
mod world;

use std::env;

use crate::schedules::handed::hand_some_over;
use crate::schedules::schedule::{RESOURCES, SINS, Schedule, Sin};
use crate::schedules::several::take_some_together;
use crate::schedules::shared::share_some;
use crate::world::clocks::MS;
use crate::world::dice::Dice;

/// How long clients may take to connect, in schedules in which they connect first.
pub(crate) const CONNECTS_FOR: i64 = 2_000 * MS;

/// Set in the environment: all schedules have fencing tokens.
const FENCED: &str = "REDLOCK_FENCED";

/// Set in the environment: all resources are semaphores, if locks have no fencing tokens.
const PERMITS: &str = "REDLOCK_PERMITS";

/// The password of a server that has one.
pub(crate) const PASSWORD: &str = "open-sesame";

/// The assumptions that a schedule must break.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    /// The seed decides: usually none.
    Any,
    /// The same, and all locks have fencing tokens.
    Fenced,
    Nothing,
    This(Sin),
    /// One server loses keys, and its grants are guarded against that.
    Guarded,
    /// The clock of one server is set forward after all clients have connected, and its grants are guarded
    /// against that.
    Stepped,
    /// One server changes its life in every way, and clocks are set forward and back. Its grants are guarded.
    Lived,
    /// The same, and all of it is told by this story of `lives.rs`. No server is new.
    Told(usize),
    /// Sentinels watch voters, and other servers take the place of masters.
    Watched,
    /// One server after another loses its fencing tokens, and clocks are ahead for a while.
    Counted,
}

struct Maker {
    dice: Dice,
    sins: Vec<Sin>,
    ttls_ms: Vec<i64>,
    drift: f64,
    servers: usize,
    clients: usize,
    resources: usize,
    /// Of ten actions that last for a while, this many last longer than they should.
    tardy: usize,
    /// Something happens in one of this many calls.
    mishaps_in: u64,
    /// Whether nothing goes wrong except that servers answer with an error to commands that they have
    /// executed.
    only_lies: bool,
    /// One of this many calls is submitted; 0: none.
    submits_in: u64,
    /// Decides which locks are kept, and who drives meanwhile. It has its own dice, so that the rest of a
    /// schedule does not depend on it.
    keeping: Dice,
    /// One of this many locks is kept; 0: none.
    keeps_in: u64,
    /// Nothing goes wrong except that servers lose a lock while it is extended and confirmed.
    is_siege: bool,
}

pub(crate) fn schedule(seed: u64, wish: Wish) -> Schedule {
    let mut dice = Dice::of(seed, 0, 0);
    let mut keeping = Dice::of(seed, 4, 0);
    let sins = match wish {
        Wish::Any | Wish::Fenced if dice.once_in(4) => {
            vec![dice.pick(&[&SINS[..], &[Sin::LostKeys; 3]].concat())]
        }
        Wish::Any | Wish::Fenced | Wish::Nothing => Vec::new(),
        Wish::This(sin) => vec![sin],
        Wish::Guarded => vec![Sin::LostKeys],
        Wish::Stepped => vec![Sin::LeapingClocks],
        Wish::Lived | Wish::Told(_) => vec![Sin::LostKeys, Sin::LeapingClocks],
        Wish::Watched => vec![Sin::LostKeys],
        Wish::Counted => Vec::new(),
    };
    let is_lived = matches!(wish, Wish::Lived | Wish::Told(_) | Wish::Watched);
    let is_siege = sins.contains(&Sin::LostKeys) && !is_lived && !dice.once_in(3);
    let ttls_ms: &[i64] = match is_siege {
        true => &[1_000, 3_000, 10_000],
        false => &[20, 50, 100, 200, 400, 1_000, 3_000, 10_000],
    };
    let needs_others = sins.contains(&Sin::SplitLists) || matches!(wish, Wish::Counted);
    let least_servers = if needs_others { 3 } else { 1 };
    let mut maker = Maker {
        servers: match is_siege {
            true => dice.pick(&[3, 3, 5]),
            false if matches!(wish, Wish::Watched) => dice.pick(&[1, 1, 3]),
            false if is_lived => dice.pick(&[3, 3, 3, 5]),
            false => dice.pick(&[1, 2, 3, 3, 3, 3, 4, 5, 5, 7]).max(least_servers),
        },
        clients: if is_siege || is_lived { 2 } else { dice.pick(&[2, 2, 2, 3, 3, 4, 5, 8]) },
        resources: dice.pick(&[1, 1, RESOURCES.len()]),
        ttls_ms: (0..2).map(|_| dice.pick(ttls_ms)).collect(),
        drift: dice.pick(&[0.01, 0.01, 0.01, 0.0, 0.1]),
        tardy: dice.pick(&[0, 1, 3]),
        mishaps_in: match sins.contains(&Sin::LostKeys) {
            true if is_siege => dice.pick(&[1, 2]),
            true => dice.pick(&[1_000_000, 10, 4, 2]),
            false => dice.pick(&[1_000_000, 10, 4]),
        },
        only_lies: !is_siege && dice.once_in(10),
        submits_in: dice.pick(&[0, 0, 1, 3]),
        keeps_in: keeping.pick(&[0, 0, 1, 2]),
        keeping,
        is_siege,
        dice,
        sins,
    };
    let weather = maker.weather();
    let servers = (0..maker.servers).map(|_| maker.server()).collect();
    let mut clients: Vec<_> = (0..maker.clients).map(|it| maker.client(it)).collect();
    let faults = maker.faults();
    maker.hitches(&mut clients);
    let is_guarded = is_lived || matches!(wish, Wish::Guarded | Wish::Stepped | Wish::Counted);
    let has_tokens = matches!(wish, Wish::Fenced | Wish::Counted) || env::var_os(FENCED).is_some();
    let mut schedule = Schedule {
        seed,
        sins: maker.sins,
        weather,
        servers,
        clients,
        faults,
        is_guarded,
        lives: None,
        watched: None,
        // Decided by its own dice, so that the rest of a schedule does not depend on it.
        is_fenced: Dice::of(seed, 6, 0).once_in(3) || has_tokens,
        is_waking: Dice::of(seed, 15, 0).once_in(2),
        loses_pushes_in: Dice::of(seed, 13, 0).pick(&[0, 0, 1, 4]),
        connects_first: false,
        permits: 0,
        plant: None,
    };
    schedule.permits = permits(&schedule);
    hand_some_over(&mut schedule);
    take_some_together(&mut schedule);
    share_some(&mut schedule);
    if is_guarded {
        world::have_usual_clocks(&mut schedule);
        faults::let_guard_be_asked(&mut schedule);
    }
    if schedule.is_fenced {
        world::set_clocks(&mut schedule);
    }
    if let Wish::Watched = wish {
        masters::watch(&mut schedule);
    } else if is_lived {
        let story = if let Wish::Told(story) = wish { Some(story) } else { None };
        lives::lead(&mut schedule, maker.dice.below(maker.servers), story);
    } else if let Wish::Counted = wish {
        counted::lose_numbers_in_turn(&mut schedule);
    } else if let Wish::Stepped = wish {
        faults::have_one_clock_set(&mut schedule, maker.dice.below(maker.servers));
    } else if is_guarded {
        faults::spare_all_but_one(&mut schedule, maker.dice.below(maker.servers));
    }
    schedule
}

/// A fencing token orders the holders of a lock. There is none for a permit.
fn permits(schedule: &Schedule) -> u16 {
    let mut dice = Dice::of(schedule.seed, 12, 0);
    let is_semaphore = dice.once_in(if env::var_os(PERMITS).is_some() { 1 } else { 3 });
    if is_semaphore && !schedule.is_fenced { dice.pick(&[2, 2, 3]) } else { 0 }
}

impl Maker {
    fn has(&self, sin: Sin) -> bool {
        self.sins.contains(&sin)
    }

    fn ms(&mut self, least: i64, most: i64) -> i64 {
        self.dice.between(least * MS, most * MS)
    }

    fn ttl_ms(&mut self) -> i64 {
        let which = self.dice.below(self.ttls_ms.len());
        self.ttls_ms[which]
    }
}
