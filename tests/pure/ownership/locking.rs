//! Clients send requests for the lock, voters carry them out, and clients count the grants.

use crate::rules::{Mistake, Start};
use crate::search::Next;
use crate::state::{CLIENTS, Keys, Lock, OWNERS, PLAIN, Request, Set, ToOwner, World, node_of};

pub(crate) fn each_next(world: &World, start: &Start, next: &mut Next) {
    for client in 0..CLIENTS {
        let Some(request) = world.clients[client].request else {
            send(world, client, next);
            continue;
        };
        match request.to_owner {
            ToOwner::Sent { node } => carry_out(world, start, client, node.into(), next),
            ToOwner::Granted { .. } => count(world, start, client, next),
            ToOwner::Counted | ToOwner::Void => {}
        }
        if start.has_plain_voters {
            for place in (0..PLAIN).filter(|&it| !request.plain.has(it)) {
                carry_out_plainly(world, start, client, place, next);
            }
        }
    }
}

/// A client takes any node that was ever promoted for the owner. It asks the arbiters before, beside or after that.
fn send(world: &World, client: usize, next: &mut Next) {
    for node in 0..OWNERS.min(usize::from(world.promoted) + 1) {
        let to_owner = ToOwner::Sent { node: node as u8 };
        let mut after = *world;
        after.clients[client].request = Some(Request { age: 0, to_owner, plain: Set::default() });
        next.tell("a request for the lock is sent by client", client, after);
    }
}

/// An owner, or a deposed one, grants or refuses the request. The client reads the note behind it.
fn carry_out(world: &World, start: &Start, client: usize, node: usize, next: &mut Next) {
    let mut after = *world;
    let owner = &mut after.owners[node];
    let mut to_owner = ToOwner::Void;
    if grant(&mut owner.keys, start, client) {
        let note = owner.note.filter(|it| it.age >= start.age_of_vote());
        if let Some(note) = note {
            to_owner = ToOwner::Granted { node: node as u8, note: note.epoch };
        }
    }
    if let Some(request) = &mut after.clients[client].request {
        request.to_owner = to_owner;
    }
    next.tell("the owner carries out the request of client", client, after);
}

fn carry_out_plainly(world: &World, start: &Start, client: usize, place: usize, next: &mut Next) {
    let mut after = *world;
    if !grant(&mut after.plain[place], start, client) {
        return;
    }
    if let Some(request) = &mut after.clients[client].request {
        request.plain = request.plain.with(place);
    }
    hold(&mut after, start, client);
    next.tell("a plain voter carries out the request of client", client, after);
}

/// Takes the lock if it is free, and extends it if the client has it.
fn grant(keys: &mut Keys, start: &Start, client: usize) -> bool {
    let client = client as u8;
    if keys.lock.is_some_and(|it| it.client != client) {
        return false;
    }
    keys.lock = Some(Lock { client, left: start.ttl });
    true
}

fn count(world: &World, start: &Start, client: usize, next: &mut Next) {
    let mut after = *world;
    let Some(request) = &mut after.clients[client].request else { return };
    if is_under_a_lease(world, start, client, *request) {
        request.to_owner = ToOwner::Counted;
        hold(&mut after, start, client);
        next.tell("the grant of the owner is counted by client", client, after);
    }
}

/// Whether a majority of arbiters names the node of the grant, with the epoch of its note, and was asked late enough.
fn is_under_a_lease(world: &World, start: &Start, client: usize, request: Request) -> bool {
    if start.makes(Mistake::NoLease) {
        return true;
    }
    let ToOwner::Granted { node, note } = request.to_owner else { return false };
    world.clients[client].round.is_some_and(|it| {
        let is_of_the_node = node_of(it.epoch) == usize::from(node);
        let is_of_the_note = note == it.epoch || !start.notes_have_epochs();
        it.is_lease() && is_of_the_node && is_of_the_note && it.age <= request.age + start.lead
    })
}

/// The client holds the lock if it has enough votes, for as long as is left since it sent its request.
fn hold(world: &mut World, start: &Start, client: usize) {
    let client = &mut world.clients[client];
    if let Some(request) = client.request.filter(|it| it.has_quorum(start)) {
        client.holds = client.holds.max(start.hold - request.age);
    }
}
