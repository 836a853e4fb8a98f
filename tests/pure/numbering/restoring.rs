//! Clients restore the numbers of servers that have lost them.

use crate::acquiring::SECOND;
use crate::rules::{Mistake, Start};
use crate::search::Next;
use crate::state::{QUORUM, Restorer, SERVERS, Server, World, Write};
use crate::trust::{fits, trusts};

/// How many others must be read: so many that one of them is in every quorum of two with the lost server.
const OTHERS: u32 = SERVERS as u32 - QUORUM + 1;

pub(crate) fn each_next(world: &World, start: &Start, next: &mut Next) {
    for place in 0..SERVERS {
        carry_out_late_write(world, start, place, next);
        let server = &world.servers[place];
        let is_restored = fits(server, start) && !server.hash.is_by_clock;
        if !is_restored && trusts(server, start) && is_guard_time_over(world, start, place) {
            restore(world, start, place, next);
        }
    }
}

/// The guard time is longer than any lock lives. So no client relies on a vote from before it.
fn is_guard_time_over(world: &World, start: &Start, place: usize) -> bool {
    let server = &world.servers[place];
    let is_over = world.now >= server.waits_until && !world.has_open_vote(place);
    is_over || fits(server, start) || start.makes(Mistake::ReadWithinTheGuardTime)
}

fn restore(world: &World, start: &Start, place: usize, next: &mut Next) {
    let Server { restorer, hash, note, .. } = world.servers[place];
    let Some(note) = note else { return };
    if hash.seen == 0 {
        let mut after = World { seen: world.seen + 1, ..*world };
        after.servers[place].hash.seen = after.seen;
        next.tell("a client sees the loss of numbers at", place, after);
        return;
    }
    let readable = (0..SERVERS).filter(|&it| it != place && is_readable(world, start, it));
    for other in readable.clone().filter(|it| restorer.heard & 1 << it == 0) {
        let mut after = *world;
        let restorer = &mut after.servers[place].restorer;
        restorer.heard |= 1 << other;
        restorer.number = restorer.number.max(read(world, start, other));
        next.tell("a client that restores another server reads", other, after);
    }
    if has_enough(restorer, start) {
        let write = Write { note, seen: hash.seen, number: restorer.number };
        let mut after = *world;
        write_numbers(&mut after.servers[place], write, false);
        next.tell("a client restores", place, after);
        if start.has_late_writes && world.servers[place].late.is_none() {
            let mut after = *world;
            after.servers[place].late = Some(write);
            after.servers[place].restorer = Restorer::default();
            next.tell("a second client has sent what restores", place, after);
        }
    }
    let is_short = start.has_outages || (readable.count() as u32) < OTHERS;
    if is_short && !fits(&world.servers[place], start) {
        // If clocks are set at will, the worst that they can show is 0.
        let clock = world.now * SECOND;
        let mut after = *world;
        let number = clock.max(restorer.number).max(hash.base);
        let is_marked = !start.makes(Mistake::TooFewAreNotMarked);
        write_numbers(
            &mut after.servers[place],
            Write { note, seen: hash.seen, number },
            is_marked,
        );
        next.tell("by the clock, a client restores", place, after);
    }
}

fn is_readable(world: &World, start: &Start, place: usize) -> bool {
    let server = &world.servers[place];
    let may_be_by_clock = start.makes(Mistake::ServersByTheClockAreRead);
    let is_sound = fits(server, start) && (!server.hash.is_by_clock || may_be_by_clock);
    is_sound || start.makes(Mistake::UnfitServersAreRead)
}

fn read(world: &World, start: &Start, place: usize) -> u8 {
    let hash = world.servers[place].hash;
    if start.makes(Mistake::OnlyTheFieldsAreRead) { hash.field } else { hash.greatest() }
}

fn has_enough(restorer: Restorer, start: &Start) -> bool {
    let enough = match start.mistake {
        Some(Mistake::NothingIsRestored) => 0,
        Some(Mistake::ReadFromOneOther) => OTHERS - 1,
        _ => OTHERS,
    };
    restorer.heard.count_ones() >= enough
}

fn write_numbers(server: &mut Server, write: Write, is_by_clock: bool) {
    server.hash.base = server.hash.base.max(write.number);
    server.hash.life = write.note.life;
    server.hash.is_by_clock = is_by_clock;
    if !is_by_clock {
        server.hash.seen = 0;
    }
    server.restorer = Restorer::default();
}

fn carry_out_late_write(world: &World, start: &Start, place: usize, next: &mut Next) {
    let server = &world.servers[place];
    let Some(write) = server.late else { return };
    let Some(note) = server.note else { return };
    let is_of_memory = note == write.note || start.makes(Mistake::LateWriteIsNotBoundToTheNote);
    let is_of_loss =
        server.hash.seen == write.seen || start.makes(Mistake::LateWriteIsNotBoundToTheLoss);
    if !is_of_memory || !is_of_loss {
        return;
    }
    let mut after = *world;
    let server = &mut after.servers[place];
    server.late = None;
    write_numbers(server, Write { note, ..write }, false);
    next.tell("what restores it arrives late at", place, after);
}
