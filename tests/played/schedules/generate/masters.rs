//! The faults of schedules in which Sentinels watch voters: another server takes the place of a master, the
//! Sentinels learn that one by one, and the old master goes on for a while, or for ever.

use std::iter;

use super::CONNECTS_FOR;
use super::lives::Author;
use crate::schedules::schedule::{Fault, Keeps, Life, Lives, Schedule, Watched, What};
use crate::world::clocks::MS;
use crate::world::dice::Dice;

/// The first failovers begin within this time.
const SPAN: i64 = 4_000 * MS;

/// One master that fails over, one or more times.
struct Succession<'a> {
    dice: &'a mut Dice,
    watched: Watched,
    voter: usize,
    faults: Vec<Fault>,
}

/// Adds the Sentinels and the servers that can take the place of a master. Replaces the steps and the faults.
pub(super) fn watch(schedule: &mut Schedule) {
    let mut dice = Dice::of(schedule.seed, 21, 0);
    let voters = schedule.servers.len();
    let masters = dice.pick(&[1, voters]);
    let watched = Watched { voters, masters, sentinels: dice.pick(&[3, 3, 3, 5]), is_led: true };
    let lives = Lives { are_logged: false, are_new: false };
    (schedule.watched, schedule.lives, schedule.is_fenced) = (Some(watched), Some(lives), false);
    schedule.connects_first = !dice.once_in(3);
    let mut author = Author::new(Dice::of(schedule.seed, 22, 0), lives, (0, voters));
    author.turns = (4, 12);
    if !dice.once_in(4) {
        // Another manager of a client would ask the Sentinels anew.
        schedule.clients.iter_mut().for_each(|it| it.others.clear());
    }
    author.occupy(schedule);
    add_servers(schedule, watched);
    let mut faults = author.parting(schedule.clients.len());
    // Often it is the same voter on which all depends.
    for voter in 0..masters {
        if voter > 0 && dice.once_in(2) {
            continue;
        }
        let mut story = Succession { dice: &mut dice, watched, voter, faults: Vec::new() };
        story.tell(schedule.clients.len());
        faults.append(&mut story.faults);
    }
    trouble(&mut dice, watched, schedule.clients.len(), &mut faults);
    let since = if schedule.connects_first { CONNECTS_FOR } else { 0 };
    faults.iter_mut().for_each(|it| it.at = (it.at + since).max(0));
    faults.sort_by_key(|it| it.at);
    schedule.faults = faults;
}

/// The server that can take the place of a master has the same clock. Replicas get the ends of keys as times of day.
fn add_servers(schedule: &mut Schedule, watched: Watched) {
    schedule.servers.iter_mut().for_each(|it| it.password = false);
    schedule.servers.extend_from_within(..watched.masters);
    let sentinel = schedule.servers[0].clone();
    schedule.servers.extend(iter::repeat_n(sentinel, watched.sentinels));
}

/// Sentinels stop for a while, restart with what they know, or cannot be reached by a client. Nor can a server.
fn trouble(dice: &mut Dice, watched: Watched, clients: usize, faults: &mut Vec<Fault>) {
    let lasts = |dice: &mut Dice| {
        let longest_ms = dice.pick(&[500, 3_000, 20_000]);
        dice.between(0, longest_ms * MS)
    };
    for server in watched.sentinels() {
        if dice.once_in(4) {
            let (at, lasts) = (dice.between(0, 2 * SPAN), lasts(dice));
            let kill = What::Kill { server, keeps: Keeps::All, quietly: dice.once_in(2) };
            let what = if dice.once_in(2) { What::Freeze { server } } else { kill };
            faults.push(Fault { at, lasts, what });
        }
    }
    let reached = (watched.voters..watched.sentinels().end).chain(0..watched.masters);
    for server in reached {
        for client in 0..clients {
            if !dice.once_in(5) {
                continue;
            }
            let (there, back) = dice.pick(&[(true, false), (false, true), (true, true)]);
            let (at, lasts) = (dice.between(0, 2 * SPAN), lasts(dice));
            faults.push(Fault { at, lasts, what: What::Stall { client, server, there, back } });
        }
    }
}

impl Succession<'_> {
    fn tell(&mut self, clients: usize) {
        let mut at = self.dice.between(0, SPAN);
        for epoch in 1..=self.dice.pick(&[1, 1, 2, 3]) {
            self.fail_over(epoch, at);
            let old = self.watched.owner(self.voter, epoch - 1);
            self.end_reign(epoch, (old, clients), at);
            let longest_ms = self.dice.pick(&[200, 5_000, 12_000]);
            at += self.dice.between(0, longest_ms * MS);
        }
    }

    fn fail_over(&mut self, epoch: u64, at: i64) {
        let voter = self.voter;
        let spread_ms = self.dice.pick(&[2, 50, 900, 900, 6_000]);
        let spread = spread_ms * MS;
        for sentinel in self.watched.sentinels() {
            // It may never hear of the new master.
            if self.dice.once_in(8) {
                continue;
            }
            let begins = at + self.dice.between(0, spread);
            let moves_ms = self.dice.pick(&[0, 0, 5, 300]);
            self.add(begins, moves_ms * MS, What::Turn { sentinel, voter, epoch });
        }
        let old = self.watched.owner(voter, epoch - 1);
        let keeps = self.dice.once_in(2);
        if !keeps {
            let copied_at = at - self.dice.between(0, SPAN / 2);
            self.add(copied_at, 0, What::Live { server: old, life: Life::Copy });
        }
        let shows = !self.dice.once_in(3);
        let begins = at + self.dice.between(-spread / 2, spread);
        self.add(begins, 0, What::TakeOver { voter, epoch, keeps, shows });
    }

    /// What becomes of the old master: it is stopped and resumes, restarts, or serves those who can still reach it.
    fn end_reign(&mut self, epoch: u64, (old, clients): (usize, usize), at: i64) {
        let voter = self.voter;
        let begins = at - self.dice.between(0, 400 * MS);
        let lasts_ms = self.dice.pick(&[500, 3_000, 6_000, 15_000]);
        let mut lasts = self.dice.between(0, lasts_ms * MS);
        match self.dice.below(4) {
            0 => self.add(begins, lasts, What::Freeze { server: old }),
            1 => {
                let what = What::Kill { server: old, keeps: Keeps::All, quietly: true };
                self.add(begins, lasts, what);
            }
            _ => {
                // One client can reach only the new master, and another one only the old master.
                lasts += self.dice.pick(&[0, 20_000 * MS]);
                let (first, new) = (self.dice.below(clients), self.watched.owner(voter, epoch));
                for (client, server) in [(first, old), ((first + 1) % clients, new)] {
                    let what = What::Stall { client, server, there: true, back: true };
                    self.add(begins, lasts, what);
                }
            }
        }
        if !self.dice.once_in(3) {
            let after_ms = self.dice.pick(&[5, 200, 10_000]);
            let told_at = begins + lasts + self.dice.between(0, after_ms * MS);
            self.add(told_at, 0, What::StepDown { voter, epoch });
        }
    }

    fn add(&mut self, at: i64, lasts: i64, what: What) {
        self.faults.push(Fault { at, lasts, what });
    }
}
