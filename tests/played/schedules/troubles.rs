//! The faults of a schedule, and how each of them ends.

use crate::schedules::holes::Cause;
use crate::schedules::schedule::{At, Cut, Fault, Keeps, Mishap, What};
use crate::world::dice::Dice;
use crate::world::store::{Memory, Place};
use crate::world::{Event, World};

impl World {
    pub(crate) fn strike(&mut self, fault: usize) {
        let Fault { lasts, what, .. } = self.schedule.faults[fault];
        let until = self.now + lasts;
        self.say(|_| format!("!! {what:?} for {}", At(lasts)));
        match what {
            What::Freeze { server } => self.servers[server].frozen += 1,
            What::Kill { server, quietly, .. } => {
                self.servers[server].down += 1;
                self.kill(server, quietly);
            }
            What::Cut { client, server, how } => self.cut(client, server, how),
            What::Stall { client, server, there, back } => {
                let stalled = &mut self.wire(client, server).stalled_until;
                for (until_then, _) in stalled.iter_mut().zip([there, back]).filter(|it| it.1) {
                    *until_then = until.max(*until_then);
                }
            }
            What::Refuse { server, how } => self.servers[server].refusals.push(how),
            What::Flush { server } => self.forget_keys(server, Keeps::None),
            What::StepClock { server, by } => self.step_clock(server, by),
            What::Live { server, life } => self.begin_life(server, life),
            What::Turn { sentinel, voter, epoch } => self.begin_turn(sentinel, voter, epoch),
            What::TakeOver { voter, epoch, keeps, shows } => {
                self.take_over((voter, epoch), keeps, shows);
            }
            What::StepDown { voter, epoch } => self.step_down(voter, epoch),
            What::Pause { client } => self.stop(client, lasts),
            What::Suspend { client, is_counted } => self.suspend(client, lasts, is_counted),
            What::Crash { client, quietly } => self.crash(client, quietly),
        }
        self.at(until, Event::Heal { fault });
    }

    pub(crate) fn heal(&mut self, fault: usize) {
        match self.schedule.faults[fault].what {
            What::Freeze { server } => {
                self.servers[server].frozen -= 1;
                self.thaw(server);
            }
            What::Kill { server, keeps, .. } => {
                self.servers[server].down -= 1;
                self.forget_keys(server, keeps);
                self.servers[server].store.memory.iter_mut().for_each(Memory::restart);
            }
            What::Live { server, life } => self.end_life(server, life),
            What::Turn { sentinel, voter, epoch } => self.end_turn(sentinel, voter, epoch),
            What::Refuse { server, how } => {
                let refusals = &mut self.servers[server].refusals;
                if let Some(place) = refusals.iter().position(|it| *it == how) {
                    refusals.remove(place);
                }
            }
            // These end by themselves, or never.
            What::Cut { .. }
            | What::Stall { .. }
            | What::Flush { .. }
            | What::StepClock { .. }
            | What::TakeOver { .. }
            | What::StepDown { .. }
            | What::Pause { .. }
            | What::Suspend { .. }
            | What::Crash { .. } => return,
        }
        self.say(|world| format!("!! mended: {:?}", world.schedule.faults[fault].what));
    }

    fn stall(&mut self, client: usize, server: usize, back: bool, lasts: i64) {
        let until = self.now + lasts;
        let stalled = &mut self.wire(client, server).stalled_until[usize::from(back)];
        *stalled = until.max(*stalled);
    }

    /// Something happens during a call, unless the calm end of the play has begun.
    pub(crate) fn befall(&mut self, client: usize, mishap: Mishap) {
        if self.is_calm {
            return;
        }
        self.say(|_| format!("!! client {client}: {mishap:?}"));
        match mishap {
            Mishap::Stop { lasts } => self.stop(client, lasts),
            Mishap::Cut { server } => self.cut(client, server, Cut::Reset),
            Mishap::Stall { server, back, lasts } => self.stall(client, server, back, lasts),
            Mishap::Live { server, life, lasts } => {
                self.begin_life(server, life);
                self.at(self.now + lasts, Event::EndLife { server, life });
            }
            Mishap::Lose { server, lasts } => {
                self.forget_keys(server, Keeps::None);
                self.records.forgetful |= 1 << server;
                self.stall(client, server, false, lasts);
            }
        }
    }

    fn step_clock(&mut self, server: usize, by: i64) {
        let (now, tags) = (self.now, self.tags_on(server));
        self.servers[server].clock.step(now, by);
        // What has expired is gone, also if the clock is set back soon.
        self.servers[server].count_keys(now);
        self.note_clock(server, by);
        self.note_ends(server, &tags);
        if by > 0 {
            self.note_loss(server, Cause::Step, self.note_of(server));
        }
    }

    fn forget_keys(&mut self, server: usize, keeps: Keeps) {
        let mut dice = Dice::new(self.now as u64);
        let before = self.note_of(server);
        let tags = self.tags_on(server);
        let lost = self.servers[server].store.lose(|| match keeps {
            Keeps::All => false,
            Keeps::Some => dice.once_in(2),
            Keeps::None => true,
        });
        let lost = lost.into_iter().map(|it| (self.now, it));
        self.servers[server].lost.extend(lost);
        self.note_ends(server, &tags);
        if keeps != Keeps::All {
            self.note_loss(server, Cause::Emptied, before);
        }
        let lacking = self.servers.iter().filter(|it| it.store.lacks_numbers).count();
        self.records.too_many_lack_numbers |= lacking * 2 > self.servers.len();
    }

    /// The tags of all keys that a server has now.
    pub(crate) fn tags_on(&mut self, server: usize) -> Vec<u64> {
        let (now, server) = (self.now, &mut self.servers[server]);
        server.count_keys(now);
        server.store.tags().collect()
    }

    /// Where a server has which token now.
    pub(crate) fn places_on(&mut self, server: usize) -> Vec<Place> {
        let (now, server) = (self.now, &mut self.servers[server]);
        server.count_keys(now);
        server.store.places().collect()
    }

    fn suspend(&mut self, client: usize, lasts: i64, is_counted: bool) {
        let now = self.now;
        // A client that already sleeps continues to sleep.
        if self.clients[client].stopped_until > now {
            return;
        }
        self.stop(client, lasts);
        if !is_counted && !self.clients[client].is_gone {
            self.clients[client].clock.stand_still(now, lasts);
        }
    }
}
