//! A world as one number, by which it is recognized.

use crate::state::{Client, Keys, Owner, Request, Round, ToOwner, World};

/// No two worlds have the same number.
pub(crate) type Key = u128;

/// The number of bits for a time, and for a place, an epoch or a choice of four.
const TIME: u32 = 3;
const CHOICE: u32 = 2;

struct Packer {
    key: Key,
}

pub(crate) fn key(world: &World) -> Key {
    // The first bit marks the beginning. A client without a request needs fewer bits.
    let mut packer = Packer { key: 1 };
    for arbiter in world.arbiters {
        packer.put(arbiter.epoch, CHOICE);
    }
    // All arbiters have named the first epoch.
    for named in &world.named[1..] {
        packer.put(named.0, world.arbiters.len() as u32);
    }
    packer.put(world.promoted, CHOICE);
    for owner in &world.owners {
        packer.put_owner(owner);
    }
    for keys in &world.plain {
        packer.put_keys(keys);
    }
    for client in &world.clients {
        packer.put_client(client);
    }
    packer.key
}

impl Packer {
    fn put(&mut self, number: u8, bits: u32) {
        debug_assert!(number < 1 << bits && bits <= self.key.leading_zeros(), "{number}");
        self.key = self.key << bits | Key::from(number);
    }

    fn put_flag(&mut self, flag: bool) {
        self.put(flag.into(), 1);
    }

    fn put_owner(&mut self, owner: &Owner) {
        self.put_keys(&owner.keys);
        self.put_flag(owner.note.is_some());
        self.put(owner.note.map_or(0, |it| it.epoch), CHOICE);
        self.put(owner.note.map_or(0, |it| it.age), TIME);
    }

    fn put_keys(&mut self, keys: &Keys) {
        // A lock that is there has some time left.
        self.put(keys.lock.map_or(0, |it| it.left), TIME);
        self.put(keys.lock.map_or(0, |it| it.client), 1);
        self.put_flag(keys.has_drifted);
    }

    fn put_client(&mut self, client: &Client) {
        self.put_round(client.round);
        self.put_flag(client.request.is_some());
        if let Some(request) = client.request {
            self.put_request(request);
        }
        self.put(client.holds, TIME);
        self.put_flag(client.has_drifted);
    }

    fn put_round(&mut self, round: Option<Round>) {
        // A round has an answer.
        self.put(round.map_or(0, |it| it.answers.0), 3);
        self.put(round.map_or(0, |it| it.epoch), CHOICE);
        self.put(round.map_or(0, |it| it.age), TIME);
    }

    fn put_request(&mut self, request: Request) {
        let (choice, node, note) = match request.to_owner {
            ToOwner::Sent { node } => (0, node, 0),
            ToOwner::Granted { node, note } => (1, node, note),
            ToOwner::Counted => (2, 0, 0),
            ToOwner::Void => (3, 0, 0),
        };
        self.put(choice, CHOICE);
        self.put(node, 1);
        self.put(note, CHOICE);
        self.put(request.age, TIME);
        self.put(request.plain.0, 2);
    }
}
