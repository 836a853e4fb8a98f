//! Worlds that differ only in the order of arbiters, clients and plain voters are explored once.

use crate::key::{Key, key};
use crate::rules::Start;
use crate::state::{CLIENTS, Keys, World};

/// The same world with its key, in an order that depends on nothing but what is in it.
pub(crate) fn sorted(world: &World, start: &Start) -> (Key, World) {
    let mut world = *world;
    let mut swapped = world;
    swapped.clients.swap(0, 1);
    for keys in swapped.each_keys() {
        if let Some(lock) = &mut keys.lock {
            lock.client = CLIENTS as u8 - 1 - lock.client;
        }
    }
    for world in [&mut world, &mut swapped] {
        sort_arbiters(world, start);
        if start.has_plain_voters {
            sort_plain(world);
        }
    }
    let keys = (key(&world), key(&swapped));
    if keys.0 <= keys.1 { (keys.0, world) } else { (keys.1, swapped) }
}

fn sort_arbiters(world: &mut World, start: &Start) {
    let pairs = [(1, 2), (0, 1), (1, 2)];
    for &(one, other) in if start.has_equal_arbiters() { &pairs[..] } else { &pairs[..1] } {
        if rank(world, one) > rank(world, other) {
            world.arbiters.swap(one, other);
            for named in &mut world.named {
                named.swap(one, other);
            }
            for client in &mut world.clients {
                if let Some(round) = &mut client.round {
                    round.answers.swap(one, other);
                }
            }
        }
    }
}

/// Everything about an arbiter, as one number.
fn rank(world: &World, place: usize) -> u32 {
    let mut rank = u32::from(world.arbiters[place].epoch);
    for client in &world.clients {
        rank = rank << 1 | u32::from(client.round.is_some_and(|it| it.answers.has(place)));
    }
    for named in &world.named {
        rank = rank << 1 | u32::from(named.has(place));
    }
    rank
}

fn sort_plain(world: &mut World) {
    let granted = |world: &World, place| {
        world.clients.map(|it| it.request.is_some_and(|it| it.plain.has(place)))
    };
    let of = |place| (world.plain[place], granted(world, place));
    if of(0) > of(1) {
        world.plain.swap(0, 1);
        for client in &mut world.clients {
            if let Some(request) = &mut client.request {
                request.plain.swap(0, 1);
            }
        }
    }
}

impl World {
    fn each_keys(&mut self) -> impl Iterator<Item = &mut Keys> {
        let owners = self.owners.iter_mut().map(|it| &mut it.keys);
        owners.chain(&mut self.plain)
    }
}
