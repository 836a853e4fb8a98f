//! Makes a schedule of a seed. Each seed has some of all faults to choose from, so that not all
//! schedules are alike, and some are almost without.

use std::{env, mem};

use crate::schedules::handed::hand_some_over;
use crate::schedules::schedule::{
    Call, ClientPlan, Cut, Fault, Hitch, How, Keeps, Mishap, RESOURCES, SINS, SLOTS, Schedule,
    ServerPlan, Sin, Step, Weather, What,
};
use crate::schedules::several::take_some_together;
use crate::schedules::shared::share_some;
use crate::world::START;
use crate::world::clocks::{Clock, MS};
use crate::world::dice::Dice;
use crate::world::store::{Dialect, Refusal};

/// Within so long all faults begin.
const SPAN_MS: i64 = 2_500;

/// So long clients have for connecting, where they are to connect first.
pub(crate) const CONNECTS_FOR: i64 = 2_000 * MS;

/// Set in the environment: all schedules have fencing tokens.
const FENCED: &str = "REDLOCK_FENCED";

/// Set in the environment: all resources are semaphores, where locks have no fencing tokens.
const PERMITS: &str = "REDLOCK_PERMITS";

/// A server with a password has this one.
pub(crate) const PASSWORD: &str = "open-sesame";

/// Which assumptions a schedule is to break.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    /// The seed says: none, mostly.
    Any,
    /// The same, and all locks have fencing tokens.
    Fenced,
    Nothing,
    This(Sin),
    /// Servers lose keys, one of them only, and what they grant is guarded against that.
    Guarded,
    /// The clock of one server is set forward, when all clients are connected, and what it grants is guarded
    /// against that.
    Stepped,
}

struct Maker {
    dice: Dice,
    sins: Vec<Sin>,
    ttls_ms: Vec<i64>,
    drift: f64,
    servers: usize,
    clients: usize,
    resources: usize,
    /// Of ten things done for a while, so many are done for longer than they should.
    tardy: usize,
    /// In one of so many calls something happens.
    mishaps_in: u64,
    /// Whether nothing goes wrong but that servers answer with an error to what they have done.
    only_lies: bool,
    /// One in so many calls is submitted; none, if 0.
    submits_in: u64,
    /// What locks are kept, and who drives meanwhile, is drawn by dice of its own: the rest of a schedule is the same
    /// without.
    keeping: Dice,
    /// One in so many locks is kept; none, if 0.
    keeps_in: u64,
    /// Nothing goes wrong but that servers lose a lock while it is extended and confirmed.
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
    };
    let is_siege = sins.contains(&Sin::LostKeys) && !dice.once_in(3);
    let ttls_ms: &[i64] = match is_siege {
        true => &[1_000, 3_000, 10_000],
        false => &[20, 50, 100, 200, 400, 1_000, 3_000, 10_000],
    };
    let least_servers = if sins.contains(&Sin::SplitLists) { 3 } else { 1 };
    let mut maker = Maker {
        servers: match is_siege {
            true => dice.pick(&[3, 3, 5]),
            false => dice.pick(&[1, 2, 3, 3, 3, 3, 4, 5, 5, 7]).max(least_servers),
        },
        clients: if is_siege { 2 } else { dice.pick(&[2, 2, 2, 3, 3, 4, 5, 8]) },
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
    let is_guarded = matches!(wish, Wish::Guarded | Wish::Stepped);
    let has_tokens = matches!(wish, Wish::Fenced) || env::var_os(FENCED).is_some();
    let mut schedule = Schedule {
        seed,
        sins: maker.sins,
        weather,
        servers,
        clients,
        faults,
        is_guarded,
        // Drawn by dice of its own: the rest of a schedule is the same without.
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
        have_usual_clocks(&mut schedule);
        let_guard_be_asked(&mut schedule);
    }
    if schedule.is_fenced {
        set_clocks(&mut schedule);
    }
    if let Wish::Stepped = wish {
        have_one_clock_set(&mut schedule, maker.dice.below(maker.servers));
    } else if is_guarded {
        spare_all_but_one(&mut schedule, maker.dice.below(maker.servers));
    }
    schedule
}

/// A fencing token orders those that have a lock, and there is none for a permit.
fn permits(schedule: &Schedule) -> u16 {
    let mut dice = Dice::of(schedule.seed, 12, 0);
    let is_semaphore = dice.once_in(if env::var_os(PERMITS).is_some() { 1 } else { 3 });
    if is_semaphore && !schedule.is_fenced { dice.pick(&[2, 2, 3]) } else { 0 }
}

/// Servers whose clocks show about the same, as those that are set do. Some of servers that lose nothing show other days.
fn set_clocks(schedule: &mut Schedule) {
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

/// This server's clock alone is set forward, once all clients have connected. No server is another process, of whose
/// clock nobody would know anything.
fn have_one_clock_set(schedule: &mut Schedule, victim: usize) {
    schedule.connects_first = true;
    // A client that is stopped while it connects knows no clock well.
    schedule.clients.iter_mut().for_each(|it| it.hitches.clear());
    let mut dice = Dice::of(schedule.seed, 9, 0);
    let ttl = schedule.longest_ttl_ms() * MS;
    schedule.faults.retain(|it| !matches!(it.what, What::Kill { .. }));
    for fault in &mut schedule.faults {
        fault.at += CONNECTS_FOR;
        let is_step = matches!(fault.what, What::StepClock { by: 1.., .. });
        if is_step || dice.once_in(3) {
            fault.what = What::StepClock { server: victim, by: dice.between(ttl / 20, 2 * ttl) };
        }
    }
}

/// Clocks that are as fast as each other, but for what is usual: what is more is taken for one that is set. Nor does any
/// run faster than by the drift factor: with none all are equally fast.
fn have_usual_clocks(schedule: &mut Schedule) {
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

/// Users may at all times ask for, and note, what the guard and the clock sentinel go by: who may not is unguarded.
fn let_guard_be_asked(schedule: &mut Schedule) {
    for fault in &mut schedule.faults {
        if let What::Refuse { how: how @ (Refusal::NoPerm | Refusal::NoPermLook), .. } =
            &mut fault.what
        {
            *how = Refusal::Oom;
        }
    }
}

/// Of all servers this one alone loses keys that may be of locks.
fn spare_all_but_one(schedule: &mut Schedule, victim: usize) {
    for fault in &mut schedule.faults {
        match &mut fault.what {
            What::Flush { server } => *server = victim,
            What::Kill { server, keeps, .. } if *keeps != Keeps::All => *server = victim,
            _ => {}
        }
    }
    let callers = schedule.clients.iter_mut().flat_map(|it| &mut it.callers);
    for step in callers.flatten() {
        if let Some((_, Mishap::Lose { server, .. })) = &mut step.mishap {
            *server = victim;
        }
    }
}

/// How many bytes are taken at once: of nearly all, a script in a few pieces, or each request in several.
const ROOMS: [usize; 12] =
    [ROOMY, ROOMY, ROOMY, ROOMY, ROOMY, ROOMY, ROOMY, ROOMY, 400, 400, 400, 50];
const ROOMY: usize = 1 << 16;

impl Maker {
    fn has(&self, sin: Sin) -> bool {
        self.sins.contains(&sin)
    }

    fn ms(&mut self, least: i64, most: i64) -> i64 {
        self.dice.between(least * MS, most * MS)
    }

    fn weather(&mut self) -> Weather {
        let least = self.dice.between(20_000, 500_000);
        Weather {
            least,
            most: least + self.dice.pick(&[100_000, MS, 3 * MS]),
            slow_in: if self.only_lies { 0 } else { self.dice.pick(&[0, 100, 30, 10]) },
            slow: self.dice.pick(&[5, 50, 400]) * MS,
            split_in: self.dice.pick(&[0, 20, 3]),
            // The least of these makes thirty pieces of a script, and takes most of the time.
            room: if self.only_lies { ROOMY } else { self.dice.pick(&ROOMS) },
            wake: self.dice.pick(&[0, 20_000, 200_000]),
        }
    }

    fn server(&mut self) -> ServerPlan {
        // No faster than by the drift factor, unless that is what is wrong.
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

    fn client(&mut self, index: usize) -> ClientPlan {
        let list: Vec<usize> = match self.servers {
            // The first and the last half, as if the list had been changed with locks taken.
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
            // No slower than it should be.
            per_million: self.dice.pick(&[1_000_000, 1_000_000, 1_002_000]),
            drift: self.drift,
            tries: self.dice.between(1, 3) as i32,
            // Who allows no pause asks as fast as it can, and there are few surprises in that.
            delay_ms: if self.dice.once_in(50) { 0 } else { self.dice.pick(&[5, 20, 100, 200]) },
            connect_ms: self.dice.pick(&[10, 50, 300]),
            reply_ms: self.dice.pick(&[0, 0, 5, 50, 300]),
            callers: (0..callers).map(|_| self.steps(&list, &others)).collect(),
            others,
            hitches: Vec::new(),
            list,
        }
    }

    /// What its other managers know: mostly the same servers in another order.
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

    fn ttl_ms(&mut self) -> i64 {
        let which = self.dice.below(self.ttls_ms.len());
        self.ttls_ms[which]
    }

    /// A while between two calls, mostly a part of a TTL.
    fn pause(&mut self) -> i64 {
        let ttl_ms = self.ttl_ms();
        match self.dice.below(10) {
            _ if self.is_siege => self.ms(0, 8),
            it if it < self.tardy => self.ms(ttl_ms, 2 * ttl_ms),
            0..=3 => 0,
            4..=6 => self.ms(0, 5),
            _ => self.ms(0, ttl_ms),
        }
    }

    /// So long before the lock has no validity left, now and then.
    fn before_end(&mut self) -> Option<i64> {
        let before = self.ms(0, 4);
        self.dice.once_in(4).then_some(before)
    }

    /// In a moment in which a request or its replies may be on their way.
    fn mishap(&mut self) -> Option<(i64, Mishap)> {
        let longest_ms = self.ttl_ms();
        let (after, short, long) = (self.ms(0, 4), self.ms(0, 10), self.ms(0, longest_ms));
        // A lock is lost by a majority sooner if always the same servers lose it.
        let server = self.dice.below(if self.is_siege { 3 } else { self.servers });
        let lasts = if self.dice.once_in(3) { long } else { short };
        // A lock is lost server by server, with its extensions under way.
        let kind = match self.has(Sin::LostKeys) {
            true if self.is_siege => 9,
            true => self.dice.below(10),
            false => self.dice.below(6),
        };
        let what = match kind {
            0 => Mishap::Stop { lasts: long },
            1 => Mishap::Stop { lasts: short },
            2 | 3 => Mishap::Cut { server },
            4 => Mishap::Stall { server, back: true, lasts },
            5 | 6 => Mishap::Stall { server, back: false, lasts },
            _ => Mishap::Lose { server, lasts: if self.dice.once_in(2) { 0 } else { short } },
        };
        (self.dice.once_in(self.mishaps_in) && !self.only_lies).then_some((after, what))
    }

    /// In half of the schedules all callers block; in the others a part of the calls is submitted, and some of
    /// those are cancelled at whatever they are.
    fn how(&mut self) -> How {
        if self.submits_in == 0 || !self.dice.once_in(self.submits_in) {
            return How::Blocks;
        }
        let (soon, late) = (self.ms(0, 4), self.ms(0, 200));
        let cancelled_after = match self.dice.below(8) {
            0 => Some(0),
            1 => Some(soon),
            2 => Some(late),
            _ => None,
        };
        How::Submits { cancelled_after }
    }

    fn steps(&mut self, list: &[usize], others: &[Vec<usize>]) -> Vec<Step> {
        let mut steps = Vec::new();
        let count = self.dice.between(1, if self.clients > 3 { 5 } else { 8 }) as usize;
        while steps.len() < count {
            let (slot, resource) = (self.dice.below(SLOTS), self.dice.below(self.resources));
            let mut add = |maker: &mut Self, call, before_end| {
                let (pause, mishap, how) = (maker.pause(), maker.mishap(), maker.how());
                // No lock may be taken through one that knows other servers.
                let manager = maker.dice.below(others.len() + 1);
                let takes =
                    !matches!(call, Call::Extend { .. } | Call::Confirm { .. } | Call::Unlock);
                let is_same = |it: &Vec<usize>| it.len() == list.len();
                let may = manager == 0 || !takes || is_same(&others[manager - 1]);
                let manager = if may { manager } else { 0 };
                let (keeps, drives) = (false, false);
                let step = Step {
                    pause,
                    before_end,
                    call,
                    manager,
                    slot,
                    resource,
                    mishap,
                    how,
                    keeps,
                    drives,
                    shares: false,
                };
                steps.push(step);
            };
            let take = self.take();
            add(self, take, None);
            while self.dice.once_in(2) || self.is_siege && !self.dice.once_in(3) {
                let (keep, before_end) = (self.keep(), self.before_end());
                add(self, keep, before_end);
            }
            let last = match self.dice.below(10) {
                0 => Call::Forget,
                1 => Call::IsLocked,
                _ => Call::Unlock,
            };
            let before_end = self.before_end();
            add(self, last, before_end);
        }
        if self.keeps_in > 0 {
            let is_foreign = |it: usize| it > 0 && others[it - 1].len() != list.len();
            self.keep_some(&mut steps, is_foreign);
        }
        steps
    }

    /// Has some of the locks kept, from their beginning or from later on, and a caller that has some driven
    /// between its calls, mostly.
    fn keep_some(&mut self, steps: &mut Vec<Step>, is_foreign: impl Fn(usize) -> bool) {
        for mut step in mem::take(steps) {
            let is_about_one = step.call.ttl_ms().is_some();
            let is_kept = is_about_one && self.keeping.once_in(self.keeps_in);
            let is_new = matches!(step.call, Call::Lock { .. } | Call::TryLock { .. });
            let is_later = is_kept && (!is_new || self.keeping.once_in(3));
            step.keeps = is_kept && !is_later;
            step.drives = !self.keeping.once_in(4) && step.pause < self.longest_drive();
            steps.push(step);
            if is_later {
                let (call, mishap) = (Call::KeepAlive, None);
                let pause = self.keeping.between(0, 3 * MS);
                let (before_end, how) = (None, How::Blocks);
                steps.push(Step { call, mishap, pause, before_end, how, ..step });
            }
            let ttl_ms = step.call.ttl_ms().filter(|_| is_kept && !is_foreign(step.manager));
            if let Some(ttl_ms) = ttl_ms {
                self.drive_for_long(steps, step, ttl_ms);
            }
        }
    }

    /// A lock is renewed a few hundred times at the most.
    fn longest_drive(&self) -> i64 {
        200 * self.ttls_ms.iter().min().copied().unwrap_or(0) * MS
    }

    /// A kept lock outlives its TTL, now and then.
    fn drive_for_long(&mut self, steps: &mut Vec<Step>, step: Step, ttl_ms: i64) {
        let (pause, drives) = (self.keeping.between(0, 3 * ttl_ms * MS), !self.keeping.once_in(6));
        let drives = drives && pause < self.longest_drive();
        if self.keeping.once_in(2) {
            let (call, mishap, how) = (Call::IsLocked, None, How::Blocks);
            let before_end = None;
            let keeps = false;
            steps.push(Step { call, mishap, pause, before_end, how, drives, keeps, ..step });
        }
    }

    fn take(&mut self) -> Call {
        let ttl_ms = self.ttl_ms();
        match self.dice.below(5) {
            0 => Call::Lock { ttl_ms },
            1 => Call::Continue { ttl_ms },
            2 => Call::TryLock { ttl_ms, wait_ms: 0 },
            _ => Call::TryLock { ttl_ms, wait_ms: self.dice.pick(&[20, 100, 500]) },
        }
    }

    fn keep(&mut self) -> Call {
        let ttl_ms = self.ttl_ms();
        match self.dice.below(6) {
            0 => Call::Confirm { least_ms: self.dice.pick(&[0, 10, 100]) },
            1 => Call::Continue { ttl_ms },
            2 => Call::IsLocked,
            _ => Call::Extend { ttl_ms },
        }
    }

    fn faults(&mut self) -> Vec<Fault> {
        // What this schedule has to choose from.
        let kinds: Vec<usize> = (0..9).filter(|_| self.dice.once_in(2)).collect();
        let count = self.dice.pick(&[0, 1, 3, 6, 12]);
        let kinds = match () {
            () if self.only_lies => vec![5],
            () if self.is_siege => vec![],
            () => kinds,
        };
        let mut faults = Vec::new();
        for _ in 0..if kinds.is_empty() { 0 } else { count } {
            let kind = kinds[self.dice.below(kinds.len())];
            faults.push(self.fault(kind));
        }
        for _ in 0..if self.sins.is_empty() || self.is_siege { 0 } else { 4 } {
            faults.extend(self.sinful());
        }
        faults.sort_by_key(|it| it.at);
        faults
    }

    fn fault(&mut self, kind: usize) -> Fault {
        let (server, client) = (self.dice.below(self.servers), self.dice.below(self.clients));
        let at = self.ms(0, SPAN_MS);
        let longest_ms = self.dice.pick(&[20, 200, 1_000]);
        let mut lasts = self.ms(0, longest_ms);
        let what = match kind {
            0 => What::Freeze { server },
            1 => {
                What::Kill { server, keeps: self.keeps(&mut lasts), quietly: self.dice.once_in(3) }
            }
            2 => What::Cut { client, server, how: self.dice.pick(&[Cut::Reset, Cut::HalfClose]) },
            3 | 4 => {
                // For longer than a connection is waited for, now and then.
                if self.dice.once_in(10) {
                    lasts += 6_000 * MS;
                }
                let (there, back) = self.dice.pick(&[(true, false), (false, true), (true, true)]);
                What::Stall { client, server, there, back }
            }
            5 => What::Refuse {
                server,
                how: if self.only_lies {
                    Refusal::AfterAll
                } else {
                    self.dice.pick(&[
                        Refusal::Loading,
                        Refusal::Busy,
                        Refusal::ReadOnly,
                        Refusal::Misconf,
                        Refusal::Oom,
                        Refusal::NoPerm,
                        Refusal::NoPermDelete,
                        Refusal::NoPermLook,
                        Refusal::AfterAll,
                        Refusal::AfterAll,
                    ])
                },
            },
            6 => What::StepClock { server, by: -self.ms(1, 100) },
            7 => What::Pause { client },
            _ if self.dice.once_in(3) => What::Crash { client, quietly: self.dice.once_in(2) },
            _ => What::Suspend { client, is_counted: true },
        };
        Fault { at, lasts, what }
    }

    /// Without its keys it may start again when no lock can be left that had them.
    fn keeps(&mut self, lasts: &mut i64) -> Keeps {
        if self.dice.once_in(4) {
            let longest_ms = self.ttls_ms.iter().max().copied().unwrap_or(0);
            *lasts = (longest_ms + longest_ms / 50 + 1) * MS;
            return Keeps::None;
        }
        Keeps::All
    }

    /// What must not happen.
    fn sinful(&mut self) -> Option<Fault> {
        let (server, client) = (self.dice.below(self.servers), self.dice.below(self.clients));
        let at = self.ms(0, SPAN_MS / 2);
        let ttl_ms = self.ttls_ms.iter().max().copied().unwrap_or(0);
        let (mut lasts, loses) = (0, self.has(Sin::LostKeys));
        let what = if loses && self.dice.once_in(2) {
            What::Flush { server }
        } else if loses {
            lasts = self.ms(0, 20);
            What::Kill {
                server,
                keeps: self.dice.pick(&[Keeps::Some, Keeps::None]),
                quietly: false,
            }
        } else if self.has(Sin::LeapingClocks) {
            What::StepClock { server, by: self.ms(ttl_ms / 2, 2 * ttl_ms) }
        } else if self.has(Sin::StoppedClocks) {
            lasts = self.ms(ttl_ms / 2, 2 * ttl_ms);
            What::Suspend { client, is_counted: false }
        } else {
            return None;
        };
        Some(Fault { at, lasts, what })
    }

    /// At some of the steps of some clients they are stopped, or end.
    fn hitches(&mut self, clients: &mut [ClientPlan]) {
        let often = if self.only_lies { 0 } else { self.dice.pick(&[0, 2, 6]) };
        for client in clients {
            for _ in 0..self.dice.between(0, often) {
                let (step, ttl_ms) = (self.dice.between(1, 600) as u64, self.ttl_ms());
                let ends = self.dice.once_in(20);
                let longest = self.dice.pick(&[1, ttl_ms / 2 + 1, 2 * ttl_ms]);
                let lasts = (!ends).then(|| self.ms(0, longest));
                client.hitches.push(Hitch { step, lasts });
            }
            client.hitches.sort_by_key(|it| it.step);
        }
    }
}
