//! Time passes, on clocks that are right or wrong.

use crate::rules::Start;
use crate::search::Next;
use crate::state::{CLIENTS, Client, Keys, OWNERS, Owner, PLAIN, Set, World};

pub(crate) fn each_next(world: &World, start: &Start, next: &mut Next) {
    for slow in 0..1_u8 << CLIENTS {
        let slow = Set(slow);
        let may_be = |it: usize| start.has_drift && !world.clients[it].has_drifted;
        if (0..CLIENTS).all(|it| !slow.has(it) || may_be(it)) {
            tick(world, start, slow, next);
        }
    }
    if start.has_drift {
        run_ahead(world, start, next);
    }
}

/// A tick. The clocks of some clients stand still meanwhile.
fn tick(world: &World, start: &Start, slow: Set, next: &mut Next) {
    let mut after = *world;
    for (place, client) in after.clients.iter_mut().enumerate() {
        if slow.has(place) {
            client.has_drifted = true;
        } else {
            grow_older(client, start);
        }
    }
    for owner in &mut after.owners {
        pass(owner, start);
    }
    for keys in &mut after.plain {
        expire(keys);
    }
    next.tell("time passes. The clocks of clients that stood still:", slow.0.into(), after);
}

/// The clock of a server gains a tick.
fn run_ahead(world: &World, start: &Start, next: &mut Next) {
    for place in (0..OWNERS).filter(|&it| !world.owners[it].keys.has_drifted) {
        let mut after = *world;
        pass(&mut after.owners[place], start);
        after.owners[place].keys.has_drifted = true;
        next.tell("the clock gains a tick at node", place, after);
    }
    if start.has_plain_voters {
        for place in (0..PLAIN).filter(|&it| !world.plain[it].has_drifted) {
            let mut after = *world;
            expire(&mut after.plain[place]);
            after.plain[place].has_drifted = true;
            next.tell("the clock gains a tick at plain voter", place, after);
        }
    }
}

fn grow_older(client: &mut Client, start: &Start) {
    if let Some(round) = client.round.as_mut().filter(|it| it.grows_old(start)) {
        round.age += 1;
    }
    if let Some(request) = &mut client.request {
        request.age += 1;
    }
    client.holds = client.holds.saturating_sub(1);
}

fn pass(owner: &mut Owner, start: &Start) {
    expire(&mut owner.keys);
    if let Some(note) = &mut owner.note {
        note.age = (note.age + 1).min(start.age_of_vote());
    }
}

fn expire(keys: &mut Keys) {
    if let Some(lock) = &mut keys.lock {
        lock.left -= 1;
    }
    keys.lock = keys.lock.filter(|it| it.left > 0);
}
