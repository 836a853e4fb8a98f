//! Worlds that differ only in the order of servers and clients are explored once.

use std::cmp::Reverse;

use crate::state::{CLIENTS, Client, Request, SERVERS, Server, Stage, World};

/// The same world, in an order that depends on nothing but what is in it. Few worlds have several such orders, and
/// are explored several times.
pub(crate) fn sorted(world: &World, sorts_servers: bool) -> World {
    let mut swapped = *world;
    swapped.clients.swap(0, 1);
    for server in &mut swapped.servers {
        server.lock = server.lock.map(|it| CLIENTS as u8 - 1 - it);
    }
    if sorts_servers {
        with_sorted_servers(world).min(with_sorted_servers(&swapped))
    } else {
        swapped.min(*world)
    }
}

fn with_sorted_servers(world: &World) -> World {
    let mut order: [usize; SERVERS] = std::array::from_fn(|place| place);
    order.sort_by_cached_key(|&place| Reverse(key(world, place)));
    let moved = |set: u8| {
        let has = |&it: &usize| set & 1 << order[it] != 0;
        (0..SERVERS).filter(has).fold(0, |all, it| all | 1 << it)
    };
    let mut sorted = *world;
    sorted.servers = order.map(|place| {
        let mut server = world.servers[place];
        server.restorer.heard = moved(server.restorer.heard);
        server
    });
    for (client, old) in sorted.clients.iter_mut().zip(&world.clients) {
        client.requests = order.map(|place| old.requests[place]);
        if let Stage::Raising { quorum, raised, .. } = &mut client.stage {
            (*quorum, *raised) = (moved(*quorum), moved(*raised));
        }
    }
    sorted
}

type Key = (Server, [(Request, bool, bool); CLIENTS], usize);

/// Everything about a server that does not depend on the order of the servers.
fn key(world: &World, place: usize) -> Key {
    let mut server = world.servers[place];
    let bit = 1 << place;
    server.restorer.heard = server.restorer.heard.count_ones() as u8;
    let of = |client: Client| {
        let (quorum, raised) = match client.stage {
            Stage::Raising { quorum, raised, .. } => (quorum, raised),
            _ => (0, 0),
        };
        (client.requests[place], quorum & bit != 0, raised & bit != 0)
    };
    let readers = world.servers.iter().filter(|it| it.restorer.heard & bit != 0).count();
    (server, world.clients.map(of), readers)
}
