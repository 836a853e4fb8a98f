//! The weather of a schedule, its servers and its clients, with their clocks.

use super::Maker;
use crate::schedules::schedule::{ClientPlan, Schedule, ServerPlan, Sin, Weather};
use crate::world::START;
use crate::world::clocks::{Clock, MS};
use crate::world::dice::Dice;
use crate::world::store::Dialect;

/// How many bytes a socket accepts at once: nearly all, a script in a few pieces, or each request in
/// several pieces.
const ROOMS: [usize; 12] =
    [ROOMY, ROOMY, ROOMY, ROOMY, ROOMY, ROOMY, ROOMY, ROOMY, 400, 400, 400, 50];
const ROOMY: usize = 1 << 16;

impl Maker {
    pub(super) fn weather(&mut self) -> Weather {
        let least = self.dice.between(20_000, 500_000);
        Weather {
            least,
            most: least + self.dice.pick(&[100_000, MS, 3 * MS]),
            slow_in: if self.only_lies { 0 } else { self.dice.pick(&[0, 100, 30, 10]) },
            slow: self.dice.pick(&[5, 50, 400]) * MS,
            split_in: self.dice.pick(&[0, 20, 3]),
            // The smallest of these divides a script into thirty pieces, and takes most of the time.
            room: if self.only_lies { ROOMY } else { self.dice.pick(&ROOMS) },
            wake: self.dice.pick(&[0, 20_000, 200_000]),
        }
    }

    pub(super) fn server(&mut self) -> ServerPlan {
        // No faster than the drift factor allows, unless that is the broken assumption.
        let allowed = MS + (self.drift * MS as f64) as i64;
        let per_million = match self.dice.below(3) {
            _ if self.has(Sin::FastClocks) => self.dice.between(1_150_000, 1_400_000),
            0 => allowed,
            1 => MS,
            _ => self.dice.between(990_000, allowed),
        };
        ServerPlan {
            ahead: self.dice.between(0, 1 << 50),
            per_million,
            early_ms: self.dice.pick(&[-1, 0, 1, 1]),
            dialect: self.dice.pick(&[
                Dialect::Plain,
                Dialect::Plain,
                Dialect::Delex,
                Dialect::Delifeq,
            ]),
            password: self.dice.once_in(10),
        }
    }

    pub(super) fn client(&mut self, index: usize) -> ClientPlan {
        let list: Vec<usize> = match self.servers {
            // The first and the last half, as if the list had been changed while locks were held.
            it if self.has(Sin::SplitLists) && index.is_multiple_of(2) => {
                (0..it.div_ceil(2)).collect()
            }
            it if self.has(Sin::SplitLists) => (it / 2..it).collect(),
            it => (0..it).collect(),
        };
        let others = self.others(&list);
        let callers = if self.dice.once_in(6) { self.dice.between(2, 3) } else { 1 };
        ClientPlan {
            ahead: self.dice.between(0, 1 << 50),
            // No slower than allowed.
            per_million: self.dice.pick(&[1_000_000, 1_000_000, 1_002_000]),
            drift: self.drift,
            tries: self.dice.between(1, 3) as i32,
            // A client without pauses asks as fast as it can, and that shows few surprises.
            delay_ms: if self.dice.once_in(50) { 0 } else { self.dice.pick(&[5, 20, 100, 200]) },
            connect_ms: self.dice.pick(&[10, 50, 300]),
            reply_ms: self.dice.pick(&[0, 0, 5, 50, 300]),
            callers: (0..callers).map(|_| self.steps(&list, &others)).collect(),
            others,
            hitches: Vec::new(),
            list,
        }
    }

    /// The lists of its other managers: usually the same servers in another order.
    fn others(&mut self, list: &[usize]) -> Vec<Vec<usize>> {
        let has_others = self.dice.once_in(if self.is_siege { 2 } else { 4 });
        let count = if has_others { self.dice.between(1, 2) } else { 0 };
        let mut other = |_| {
            let mut other = list.to_vec();
            for place in (1..other.len()).rev() {
                other.swap(place, self.dice.below(place + 1));
            }
            if other.len() > 1 && self.dice.once_in(8) {
                other.pop();
            }
            other
        };
        (0..count).map(&mut other).collect()
    }
}

/// Servers whose clocks show about the same time, like clocks that are set. Some servers that lose nothing
/// show other days.
pub(super) fn set_clocks(schedule: &mut Schedule) {
    let mut dice = Dice::of(schedule.seed, 7, 0);
    if !schedule.is_guarded && dice.once_in(4) {
        return;
    }
    let clock = |it: &ServerPlan| Clock::new(it.ahead, it.per_million).read(START);
    let first = clock(&schedule.servers[0]);
    for server in &mut schedule.servers[1..] {
        server.ahead += first - clock(server) + dice.between(0, 400 * MS);
    }
}

/// Clocks that run equally fast, except for the usual differences. A larger difference counts as a clock
/// that is set. No clock runs faster than the drift factor allows. If the drift factor is 0, all are
/// equally fast.
pub(super) fn have_usual_clocks(schedule: &mut Schedule) {
    let mut dice = Dice::of(schedule.seed, 10, 0);
    let has_drift = schedule.clients.iter().all(|client| client.drift > 0.0);
    let mut speed = || match dice.between(999_800, 1_000_200) {
        usual if has_drift => usual,
        _ => MS,
    };
    for server in &mut schedule.servers {
        server.per_million = speed();
    }
    for client in &mut schedule.clients {
        client.per_million = speed();
    }
}
