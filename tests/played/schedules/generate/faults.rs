//! What goes wrong in a schedule: on the servers and on the way to them, with clients, and during calls.
//! Also limits the faults of schedules in which a guard must prevent harm.

use super::{CONNECTS_FOR, Maker};
use crate::schedules::schedule::{
    ClientPlan, Cut, Fault, Hitch, Keeps, Mishap, Schedule, Sin, What,
};
use crate::world::clocks::MS;
use crate::world::dice::Dice;
use crate::world::store::Refusal;

/// All faults begin within this time.
const SPAN_MS: i64 = 2_500;

impl Maker {
    pub(super) fn faults(&mut self) -> Vec<Fault> {
        // The kinds of faults that this schedule chooses from.
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
                // Sometimes longer than the library waits for a connection.
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

    /// A server may start again without its keys only when no lock can be left that had them.
    fn keeps(&mut self, lasts: &mut i64) -> Keeps {
        if self.dice.once_in(4) {
            let longest_ms = self.ttls_ms.iter().max().copied().unwrap_or(0);
            *lasts = (longest_ms + longest_ms / 50 + 1) * MS;
            return Keeps::None;
        }
        Keeps::All
    }

    /// A fault that breaks an assumption.
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

    /// Stops or ends some clients at some of their steps.
    pub(super) fn hitches(&mut self, clients: &mut [ClientPlan]) {
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

    /// At a moment when a request or its replies may be on their way.
    pub(super) fn mishap(&mut self) -> Option<(i64, Mishap)> {
        let longest_ms = self.ttl_ms();
        let (after, short, long) = (self.ms(0, 4), self.ms(0, 10), self.ms(0, longest_ms));
        // A majority loses a lock sooner if the same servers always lose it.
        let server = self.dice.below(if self.is_siege { 3 } else { self.servers });
        let lasts = if self.dice.once_in(3) { long } else { short };
        // A lock is lost server by server, while its extensions are under way.
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
}

/// Sets only this server's clock forward, after all clients have connected. No server becomes another
/// process, because nobody would know anything of its clock.
pub(super) fn have_one_clock_set(schedule: &mut Schedule, victim: usize) {
    schedule.connects_first = true;
    // A client that is stopped while it connects does not know the clocks well.
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

/// At all times, users may run the commands with which the guard and the clock sentinel read and write. A
/// user that may not is unguarded.
pub(super) fn let_guard_be_asked(schedule: &mut Schedule) {
    for fault in &mut schedule.faults {
        if let What::Refuse { how: how @ (Refusal::NoPerm | Refusal::NoPermLook), .. } =
            &mut fault.what
        {
            *how = Refusal::Oom;
        }
    }
}

/// Only this server loses keys that may belong to locks.
pub(super) fn spare_all_but_one(schedule: &mut Schedule, victim: usize) {
    for fault in &mut schedule.faults {
        match &mut fault.what {
            What::Flush { server } => *server = victim,
            What::Kill { server, keeps, .. } if *keeps != Keeps::All => *server = victim,
            _ => {}
        }
    }
    for step in schedule.steps_mut() {
        if let Some((_, Mishap::Lose { server, .. })) = &mut step.mishap {
            *server = victim;
        }
    }
}
