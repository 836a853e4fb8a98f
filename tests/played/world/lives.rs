//! How a server changes its life: older data takes the place of its data, another process takes its place, it
//! is a replica for a while, its log is turned off, or its note is gone.

use std::mem;

use crate::schedules::holes::Cause;
use crate::schedules::plants::Plant;
use crate::schedules::schedule::{Life, Lives};
use crate::world::World;
use crate::world::server::Server;
use crate::world::store::{Dataset, Memory, Refusal};

impl Server {
    /// What it is at the beginning of a schedule.
    pub(crate) fn begin_as(&mut self, lives: Option<Lives>) {
        let (Some(lives), Some(memory)) = (lives, &mut self.store.memory) else { return };
        memory.past.is_logged = lives.are_logged;
        if lives.are_logged {
            memory.note = memory.note.take().map(|note| [&note[..], b" a"].concat().into());
        }
        memory.note.take_if(|_| lives.are_new);
    }
}

impl World {
    pub(crate) fn begin_life(&mut self, server: usize, life: Life) {
        match life {
            Life::Copy => {
                self.tags_on(server);
                self.servers[server].copy = self.servers[server].store.dataset();
            }
            Life::Swap => {
                let copy = mem::take(&mut self.servers[server].copy);
                self.servers[server].copy = self.take_data(server, copy, life);
            }
            Life::Demote { .. } => {
                let copy = self.servers[server].copy.clone();
                self.servers[server].refusals.push(Refusal::ReadOnly);
                self.change_memory(server, |it| {
                    (it.past.is_replica, it.past.was_replica) = (true, true);
                });
                self.take_data(server, copy, life);
            }
            Life::ForgetPromotion => {
                self.change_memory(server, |it| it.past.promotion = None);
                self.note_promotion_forgotten(server);
            }
            Life::LogOff => self.turn_log_off(server),
            Life::DropNote => self.change_memory(server, |it| it.note = None),
            Life::DamageNote => self.change_memory(server, |it| {
                it.note = it.note.take().map(|note| note[..note.len() / 2].into());
            }),
            Life::RetypeNote => self.change_memory(server, |it| it.past.is_retyped = true),
            restart if restart.is_restart() => {
                self.servers[server].down += 1;
                self.kill(server, false);
            }
            _ => {}
        }
    }

    pub(crate) fn end_life(&mut self, server: usize, life: Life) {
        match life {
            Life::Demote { shows } => {
                let refusals = &mut self.servers[server].refusals;
                if let Some(place) = refusals.iter().position(|it| *it == Refusal::ReadOnly) {
                    refusals.remove(place);
                }
                let number = self.events;
                self.change_memory(server, |it| {
                    (it.past.is_replica, it.past.promotion) = (false, shows.then_some(number));
                });
                self.note_promoted(server, shows);
            }
            Life::RetypeNote => self.change_memory(server, |it| {
                (it.past.is_retyped, it.note) = (false, None);
            }),
            restart if restart.is_restart() => self.restart_as(server, life),
            _ => {}
        }
    }

    fn restart_as(&mut self, server: usize, life: Life) {
        self.servers[server].down -= 1;
        let number = self.events;
        let old_log = self.servers[server].old_log.take();
        let is_old_log = old_log.is_some();
        let data = match life {
            Life::RestartLog => old_log,
            _ => Some(self.servers[server].copy.clone()),
        };
        self.change_memory(server, |it| {
            it.restart();
            // The settings of the server are in its file.
            it.past.is_logged |= is_old_log;
            if let Life::Promote { shows } = life {
                it.past.was_replica = true;
                it.past.promotion = shows.then_some(number);
            }
        });
        self.servers[server].store.scripts.clear();
        self.note_restarted(server);
        match data {
            Some(data) => drop(self.take_data(server, data, life)),
            // Without a log, a server that stops has written nothing down.
            None if !self.is_logged(server) => {
                self.take_data(server, Dataset::default(), life);
            }
            None => {}
        }
    }

    fn turn_log_off(&mut self, server: usize) {
        self.tags_on(server);
        if self.is_logged(server) {
            self.servers[server].old_log = Some(self.servers[server].store.dataset());
            self.change_memory(server, |it| it.past.is_logged = false);
        }
    }

    fn change_memory(&mut self, server: usize, change: impl FnOnce(&mut Memory)) {
        if let Some(memory) = &mut self.servers[server].store.memory {
            change(memory);
        }
    }

    pub(crate) fn is_logged(&self, server: usize) -> bool {
        self.servers[server].store.memory.as_ref().is_some_and(|it| it.past.is_logged)
    }

    /// This data takes the place of the server's data, which is returned.
    fn take_data(&mut self, server: usize, data: Dataset, life: Life) -> Dataset {
        let (before, had) = (self.note_of(server), self.places_on(server));
        let old = self.servers[server].store.replace(data);
        let has = self.places_on(server);
        let tags: Vec<_> = had.iter().map(|it| it.tag).collect();
        self.note_ends(server, &tags);
        self.note_replaced(server, &had, &has);
        let generation = before.as_ref().map_or(0, |it| it.generation);
        self.note_loss(server, Cause::Live(life), before);
        if self.is_broken(Plant::BelievesOlderNotes) {
            self.change_memory(server, |it| it.pretend_generation(generation + 1));
        }
        old
    }
}
