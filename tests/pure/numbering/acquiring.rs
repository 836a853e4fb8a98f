//! Clients take the lock with a number, raise the greatest number to a quorum, and give up.

use crate::rules::{Clocks, Mistake, Start};
use crate::search::Next;
use crate::state::{CLIENTS, QUORUM, Request, SERVERS, Stage, World};
use crate::trust::{fits, life_for_clients, trusts};

/// The greatest number that a clock may propose. In this model, no count of draws comes near it.
pub(crate) const LIMIT: u8 = 200;

/// The numbers of a second.
pub(crate) const SECOND: u8 = 4;

/// Two clocks that differ by more than the clients can draw.
const CLOCKS: [u8; 2] = [1, 3];

pub(crate) fn each_next(world: &World, start: &Start, next: &mut Next) {
    for client in 0..CLIENTS {
        match world.clients[client].stage {
            Stage::Idle if start.is_one_by_one && world.clients.iter().any(|it| it.is_active()) => {
                continue;
            }
            Stage::Idle => {
                let mut after = *world;
                after.clients[client].stage = Stage::Asking;
                after.clients[client].floor = world.greatest;
                next.tell("begins", client, after);
                continue;
            }
            Stage::Asking => decide(world, start, client, next),
            Stage::Raising { .. } => raise(world, start, client, next),
            Stage::Holds { .. } | Stage::GaveUp => {}
        }
        if world.clients[client].is_active() {
            let mut after = *world;
            after.clients[client].enter(Stage::GaveUp);
            next.tell("gives up", client, after);
        }
        for place in 0..SERVERS {
            if world.clients[client].requests[place] == Request::Sent {
                carry_out(world, start, client, place, next);
            }
        }
    }
}

/// A server carries out the request of a client. The client may have given up long ago.
fn carry_out(world: &World, start: &Start, client: usize, place: usize, next: &mut Next) {
    let mut after = *world;
    after.clients[client].requests[place] = Request::Void;
    if world.servers[place].lock.is_some() {
        next.tell("is refused by", place, after);
        return;
    }
    let clocks = clocks_of(world, start, place);
    if clocks[0] >= LIMIT && !start.makes(Mistake::NoLimit) {
        next.tell("finds a clock beyond the limit at", place, after);
        return;
    }
    after.servers[place].lock = Some(client as u8);
    let server = &world.servers[place];
    let draws = server.hash.life == life_for_clients(server, start);
    if !draws && start.makes(Mistake::DrawBeginsTheLife) {
        after.servers[place].hash.life = life_for_clients(server, start);
    } else if !draws {
        next.tell("takes the lock without a number from", place, after);
        return;
    }
    for clock in clocks {
        let mut after = after;
        let number = clock.max(server.hash.greatest() + 1);
        after.servers[place].hash.field = number;
        let taken = &mut after.clients[client];
        // The client reads the note behind its request. Only then does it know whether this is a vote.
        if draws && trusts(server, start) && taken.stage == Stage::Asking {
            let is_by_clock = server.hash.is_by_clock;
            taken.requests[place] = Request::Vote { number, is_by_clock };
        }
        after.is_wrong |= is_beyond(&after, start);
        next.tell("draws a number from", place, after);
    }
}

/// The numbers that a draw may propose, after they were brought close to the server's clock.
fn clocks_of(world: &World, start: &Start, place: usize) -> [u8; 2] {
    match start.clocks {
        Clocks::AnySetAtWill => CLOCKS,
        Clocks::NeverSetBack => [(world.now - 1) * SECOND, (world.now + 1) * SECOND],
        Clocks::OneBeyondTheLimit if place == 0 => [LIMIT; 2],
        Clocks::OneBeyondTheLimit => CLOCKS,
    }
}

/// Whether a clock has used up the numbers of a server whose own clock is right.
fn is_beyond(world: &World, start: &Start) -> bool {
    let mut sound = world.servers[1..].iter();
    start.clocks == Clocks::OneBeyondTheLimit && sound.any(|it| it.hash.greatest() >= LIMIT)
}

/// The client has a quorum.
fn decide(world: &World, start: &Start, client: usize, next: &mut Next) {
    for quorum in (1_u8..1 << SERVERS).filter(|it| it.count_ones() == QUORUM) {
        let votes = (0..SERVERS).filter(|it| quorum & 1 << it != 0).map(|place| {
            match world.clients[client].requests[place] {
                Request::Vote { number, is_by_clock } => Some((place, number, is_by_clock)),
                _ => None,
            }
        });
        let Some(votes) = votes.collect::<Option<Vec<_>>>() else { continue };
        let number = votes.iter().map(|it| it.1).max().unwrap_or(0);
        let drew = votes.iter().filter(|it| it.1 == number);
        let raised = drew.fold(0, |all, it| all | 1 << it.0);
        let is_by_clock = votes.iter().any(|it| it.2);
        let mut after = *world;
        if raised == quorum || start.makes(Mistake::NoRaise) {
            take(&mut after, start, client, number, is_by_clock);
            next.tell("gets its token", client, after);
        } else {
            let stage = Stage::Raising { number, quorum, raised, is_by_clock };
            after.clients[client].enter(stage);
            next.tell("raises its number", client, after);
        }
    }
}

fn raise(world: &World, start: &Start, client: usize, next: &mut Next) {
    let Stage::Raising { number, quorum, raised, is_by_clock } = world.clients[client].stage else {
        return;
    };
    for place in (0..SERVERS).filter(|it| (quorum & !raised) & 1 << it != 0) {
        let server = &world.servers[place];
        let is_ours = server.lock == Some(client as u8);
        if !fits(server, start) || !is_ours && !start.makes(Mistake::RaiseWithoutTheLock) {
            continue;
        }
        let mut after = *world;
        let hash = &mut after.servers[place].hash;
        hash.field = hash.field.max(number);
        let raised = raised | 1 << place;
        if raised == quorum {
            take(&mut after, start, client, number, is_by_clock);
        } else {
            after.clients[client].stage = Stage::Raising { number, quorum, raised, is_by_clock };
        }
        after.is_wrong |= is_beyond(&after, start);
        next.tell("raises the number at", place, after);
    }
}

/// The client gets the lock. Its token must be greater than those of all locks that were taken before it began,
/// and no other lock may have it.
fn take(world: &mut World, start: &Start, client: usize, token: u8, is_by_clock: bool) {
    let is_taken = world.clients.iter().any(|it| it.stage == Stage::Holds { token });
    let is_wrong = is_taken || token <= world.clients[client].floor;
    world.is_wrong |= is_wrong && !(is_by_clock && is_excused(world, start));
    world.clients[client].enter(Stage::Holds { token });
    world.greatest = world.greatest.max(token);
}

/// Whether too few other servers could be read, so that the clock had to decide, and the clock was set back.
fn is_excused(world: &World, start: &Start) -> bool {
    let is_bridged = u32::from(world.losses) < QUORUM && !start.has_outages;
    start.clocks != Clocks::NeverSetBack && !is_bridged
}
