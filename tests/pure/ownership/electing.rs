//! Owners are promoted, arbiters learn of them, and clients write notes.

use crate::rules::{Mistake, Start};
use crate::search::Next;
use crate::state::{ARBITERS, Epoch, Keys, Note, OWNERS, Owner, Set, World, node_of};

pub(crate) fn each_next(world: &World, start: &Start, next: &mut Next) {
    if world.promoted < start.last {
        promote(world, start, next);
    }
    for place in 0..ARBITERS {
        learn(world, start, place, next);
    }
    for epoch in 0..=world.promoted {
        write_note(world, start, epoch, next);
    }
}

/// The other node becomes the owner, as a copy that has the key or lacks it. It has no note of its own.
fn promote(world: &World, start: &Start, next: &mut Next) {
    let epoch = world.promoted + 1;
    let node = node_of(epoch);
    let has_drifted = world.owners[node].keys.has_drifted;
    let lock = world.owners[1 - node].keys.lock;
    let note = match start.mistake {
        Some(Mistake::PromotedOwnerIsNew) => Some(Note { epoch, age: start.age_of_vote() }),
        Some(Mistake::CopiedNoteIsBelieved) => world.owners[1 - node].note,
        _ => None,
    };
    let mut after = World { promoted: epoch, ..*world };
    after.owners[node] = Owner { keys: Keys { lock: None, has_drifted }, note };
    next.tell("without the key, the other node is promoted to epoch", epoch.into(), after);
    if lock.is_some() {
        after.owners[node].keys.lock = lock;
        next.tell("with the key, the other node is promoted to epoch", epoch.into(), after);
    }
}

/// An arbiter learns of an owner at any time after it was promoted. It may skip epochs.
fn learn(world: &World, start: &Start, place: usize, next: &mut Next) {
    let known = world.arbiters[place].epoch;
    for epoch in 0..=world.promoted {
        if epoch > known || epoch < known && start.makes(Mistake::ArbiterForgets) {
            let mut after = *world;
            after.arbiters[place].epoch = epoch;
            let named = &mut after.named[usize::from(epoch)];
            *named = named.with(place).rounded(start);
            next.tell("another epoch is known to arbiter", place, after);
        }
    }
}

/// The client that writes may have asked long ago, and what it sends may arrive late. So it is enough that each arbiter
/// of a majority has named the epoch at some time.
fn write_note(world: &World, start: &Start, epoch: Epoch, next: &mut Next) {
    if !may_be_noted(world, start, epoch) {
        return;
    }
    let node = node_of(epoch);
    let epoch = if start.notes_have_epochs() { epoch } else { 0 };
    if world.owners[node].note.is_none_or(|it| it.epoch < epoch) {
        let mut after = *world;
        after.owners[node].note = Some(Note { epoch, age: 0 });
        next.tell("a note is written at node", node, after);
    }
}

fn may_be_noted(world: &World, start: &Start, epoch: Epoch) -> bool {
    if start.makes(Mistake::NoLease) || start.makes(Mistake::NoteWithoutAMajority) {
        return true;
    }
    let mut named = world.named[usize::from(epoch)];
    if start.makes(Mistake::OwnerIsItsOwnArbiter) {
        named = named.with(0);
    }
    if start.makes(Mistake::AnswerWithoutEpoch) {
        let same = world.named.iter().skip(node_of(epoch)).step_by(OWNERS);
        named = Set(same.fold(0, |all, it| all | it.0));
    }
    named.len() >= start.majority()
}
