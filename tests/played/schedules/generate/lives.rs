//! The faults of schedules in which one server changes its life. Each story prepares something, such as a copy
//! of the data, and then has it take effect, usually while somebody has just taken a lock. Some stories are
//! about the clock of the server, or about the clocks of all servers.

use std::ops::Range;

use super::{CONNECTS_FOR, faults};
use crate::schedules::schedule::{
    Call, ClientPlan, Fault, Keeps, Life, Lives, Mishap, Schedule, Step, What,
};
use crate::world::clocks::MS;
use crate::world::dice::Dice;

/// The stories begin within this time.
const SPAN: i64 = 5_000 * MS;

/// The number of stories. The first one swaps data, and another one demotes the server for a while.
const STORIES: usize = 12;
pub(crate) const SWAP: usize = 0;
pub(crate) const DEMOTE: usize = 4;

/// For longer than a schedule lasts.
const FOR_EVER: i64 = 120_000 * MS;

/// When all clients of a new deployment have connected, if nothing delays them.
const GREETED: i64 = 25 * MS;

/// Writes the stories of one server.
pub(super) struct Author {
    dice: Dice,
    lives: Lives,
    victim: usize,
    servers: usize,
    /// The least and the greatest number of locks that a client takes.
    pub(super) turns: (i64, i64),
    longest_ttl: i64,
    faults: Vec<Fault>,
}

/// Replaces the steps and the faults of the schedule.
pub(super) fn lead(schedule: &mut Schedule, victim: usize, story: Option<usize>) {
    let mut dice = Dice::of(schedule.seed, 20, 0);
    let lives = Lives { are_logged: dice.once_in(2), are_new: dice.once_in(4) && story.is_none() };
    schedule.lives = Some(lives);
    // What a dataset that is brought back does to fencing tokens is looked at elsewhere.
    schedule.is_fenced = false;
    faults::spare_all_but_one(schedule, victim);
    schedule.connects_first = !lives.are_new && !dice.once_in(3);
    let mut author = Author::new(dice, lives, (victim, schedule.servers.len()));
    author.occupy(schedule);
    // Half of the schedules tell one story again and again.
    let (main, is_monotonous) = (author.dice.below(STORIES), author.dice.once_in(2));
    for _ in 0..author.dice.between(1, 4) {
        let other = author.dice.below(STORIES);
        author.tell(schedule, story.unwrap_or(if is_monotonous { main } else { other }));
    }
    let since = if schedule.connects_first { CONNECTS_FOR } else { 0 };
    author.faults.iter_mut().for_each(|it| it.at += since);
    let since = if lives.are_new { GREETED } else { since };
    let clients = if lives.are_new { 1 } else { schedule.clients.len() };
    let mut parting = author.parting(clients);
    parting.iter_mut().for_each(|it| it.at = since);
    author.faults.append(&mut parting);
    author.faults.sort_by_key(|it| it.at);
    schedule.faults = author.faults;
}

impl Author {
    pub(super) fn new(dice: Dice, lives: Lives, (victim, servers): (usize, usize)) -> Self {
        let (turns, faults) = ((2, 6), Vec::new());
        Self { dice, lives, victim, servers, turns, longest_ttl: 0, faults }
    }

    fn tell(&mut self, schedule: &mut Schedule, story: usize) {
        let shows = !self.dice.once_in(3);
        let (down, moment_ms) =
            (self.dice.between(0, 20 * MS), self.dice.pick(&[40, 70, 70, 200, 500]));
        let (first, life, lasts) = match story {
            SWAP | 1 => (Some(Life::Copy), Life::Swap, 0),
            2 => (Some(Life::Copy), Life::RestartOld, down),
            3 => (Some(Life::Copy), Life::Promote { shows }, down),
            DEMOTE | 5 => (Some(Life::Copy), Life::Demote { shows }, moment_ms * MS),
            6 if self.lives.are_logged => (Some(Life::LogOff), Life::RestartLog, down),
            7 if self.lives.are_logged => (Some(Life::Copy), Life::StartCopy, down),
            8 => {
                let notes = [Life::DropNote, Life::DamageNote, Life::RetypeNote];
                (None, self.dice.pick(&notes), self.dice.between(0, 3_000 * MS))
            }
            _ => return self.tell_of_clocks(story),
        };
        let server = self.victim;
        let first = first.filter(|_| !self.lives.are_new);
        let strike = Mishap::Live { server, life, lasts };
        let is_sudden = self.dice.once_in(2);
        self.strike_soon(schedule, first.filter(|_| is_sudden), strike);
        if let Some(life) = first.filter(|_| !is_sudden) {
            let at = if self.dice.once_in(2) { 0 } else { self.dice.between(0, SPAN) };
            self.faults.push(Fault { at, lasts: 0, what: What::Live { server, life } });
        }
        if !self.dice.once_in(3) {
            let (at, life) = (self.dice.between(0, 3 * SPAN), Life::ForgetPromotion);
            self.faults.push(Fault { at, lasts: 0, what: What::Live { server, life } });
        }
    }

    fn tell_of_clocks(&mut self, story: usize) {
        let (server, at) = (self.victim, self.dice.between(0, SPAN));
        let after_ms = self.dice.pick(&[20, 1_000, 3_000, 6_000]);
        let back_at = at + self.dice.between(0, after_ms * MS);
        match story {
            9 => self.set_clocks(server..server + 1, (at, back_at)),
            10 => self.set_clocks(0..self.servers, (at, back_at)),
            _ if self.dice.once_in(2) => {
                // The server restarts empty with a clock that is ahead, and is set right later.
                let what = What::Kill { server, keeps: Keeps::None, quietly: false };
                self.faults.push(Fault { at, lasts: self.dice.between(0, 20 * MS), what });
                self.set_clocks(server..server + 1, (at, back_at));
            }
            _ => {
                // A loss and a step, soon one after the other.
                self.faults.push(Fault { at, lasts: 0, what: What::Flush { server } });
                self.set_clocks(server..server + 1, (back_at, FOR_EVER));
            }
        }
    }

    /// The clocks of these servers are set forward, and back again later.
    fn set_clocks(&mut self, servers: Range<usize>, (at, back_at): (i64, i64)) {
        let by = self.dice.between(self.longest_ttl / 20, 2 * self.longest_ttl);
        for server in servers {
            for (at, by) in [(at, by), (back_at, -by)] {
                self.faults.push(Fault { at, lasts: 0, what: What::StepClock { server, by } });
            }
        }
    }

    /// It happens soon after some call for a lock has begun, and the preparation, if any, before that call.
    fn strike_soon(&mut self, schedule: &mut Schedule, first: Option<Life>, mishap: Mishap) {
        let client = self.dice.below(schedule.clients.len());
        let steps = &mut schedule.clients[client].callers[0];
        let is_take = |it: &usize| matches!(steps[*it].call, Call::TryLock { .. });
        let takes: Vec<usize> = (0..steps.len()).filter(is_take).collect();
        let which = self.dice.pick(&takes);
        let after_ms = self.dice.pick(&[5, 50, 500, 1_500]);
        steps[which].mishap = Some((self.dice.between(0, after_ms * MS), mishap));
        if let (Some(life), Some(before)) = (first, which.checked_sub(1)) {
            let copy = Mishap::Live { server: self.victim, life, lasts: 0 };
            steps[before].mishap = Some((0, copy));
        }
    }

    /// All clients want the same locks, hold them for long, and are idle for a while in between.
    pub(super) fn occupy(&mut self, schedule: &mut Schedule) {
        let ttls_ms = [self.dice.pick(&[1_000, 3_000]), self.dice.pick(&[1_000, 3_000, 10_000])];
        self.longest_ttl = ttls_ms.into_iter().max().unwrap_or(0) * MS;
        for (client, plan) in schedule.clients.iter_mut().enumerate() {
            plan.callers.truncate(1);
            let same = |it: &usize| !plan.is_foreign(*it);
            let managers: Vec<_> = (0..=plan.others.len()).filter(same).collect();
            let turns = self.dice.between(self.turns.0, self.turns.1);
            let mut steps: Vec<_> =
                (0..turns).flat_map(|_| self.turn(&ttls_ms, &managers)).collect();
            if self.lives.are_new {
                self.come_in_turn(client, plan, &mut steps);
            }
            plan.callers = vec![steps];
        }
    }

    /// The first client uses the servers for the first time, and the others come when they are still new.
    fn come_in_turn(&mut self, client: usize, plan: &mut ClientPlan, steps: &mut Vec<Step>) {
        plan.hitches.clear();
        let manager = steps[0].manager;
        steps[0].pause = if client == 0 { 2 * GREETED } else { self.dice.between(0, 1_500 * MS) };
        if client == 0 {
            steps.insert(0, Step { manager, ..Step::of(Call::IsLocked) });
        }
    }

    /// A lock, for a while.
    fn turn(&mut self, ttls_ms: &[i64], managers: &[usize]) -> Vec<Step> {
        let (ttl_ms, manager) = (self.dice.pick(ttls_ms), self.dice.pick(managers));
        let wait_ms = self.dice.pick(&[20, 3_000, 12_000]);
        let mut turn = Vec::new();
        let mut add = |author: &mut Self, call, pauses_ms: &[i64]| {
            let longest_ms = author.dice.pick(pauses_ms);
            let pause = author.dice.between(0, longest_ms * MS);
            turn.push(Step { pause, manager, ..Step::of(call) });
        };
        add(self, Call::TryLock { ttl_ms, wait_ms }, &[0, 5, 60, 200, 1_000]);
        while self.dice.once_in(3) {
            let call = self.dice.pick(&[Call::Extend { ttl_ms }, Call::Confirm { least_ms: 10 }]);
            add(self, call, &[5, 200, ttl_ms / 2]);
        }
        let last = if self.dice.once_in(6) { Call::Forget } else { Call::Unlock };
        add(self, last, &[200, ttl_ms / 2, ttl_ms]);
        turn
    }

    /// Some clients cannot reach some of the servers that keep their memory. So each client may have a quorum
    /// of its own, and the server that changes its life belongs to all of them.
    pub(super) fn parting(&mut self, clients: usize) -> Vec<Fault> {
        let others: Vec<_> = (0..self.servers).filter(|it| *it != self.victim).collect();
        let mut faults = Vec::new();
        if others.is_empty() {
            return faults;
        }
        let first = self.dice.below(others.len());
        for client in 0..clients {
            if self.dice.once_in(8) {
                continue;
            }
            let half = others.len() / 2;
            for place in 0..half {
                let server = others[(first + client * half + place) % others.len()];
                let what = What::Stall { client, server, there: true, back: true };
                faults.push(Fault { at: 0, lasts: FOR_EVER, what });
            }
        }
        faults
    }
}
