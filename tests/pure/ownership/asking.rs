//! Clients ask the arbiters.

use crate::rules::{Mistake, Start};
use crate::search::Next;
use crate::state::{ARBITERS, CLIENTS, Epoch, Round, Set, World};

pub(crate) fn each_next(world: &World, start: &Start, next: &mut Next) {
    if start.makes(Mistake::NoLease) {
        return;
    }
    for place in 0..ARBITERS {
        if start.makes(Mistake::OwnerIsItsOwnArbiter) && place == 0 {
            for epoch in 0..=world.promoted {
                answer(world, start, place, epoch, next);
            }
        } else {
            let epoch = world.arbiters[place].epoch;
            let has_epoch = !start.makes(Mistake::AnswerWithoutEpoch);
            answer(world, start, place, if has_epoch { epoch } else { epoch % 2 }, next);
        }
    }
}

/// An arbiter answers a client. Its answer is the first one of a round, or one more of the same epoch.
///
/// The question is sent together with the first answer: with any round that was asked earlier and had no answer yet, a
/// client may do less.
fn answer(world: &World, start: &Start, place: usize, epoch: Epoch, next: &mut Next) {
    let told = Set::default().with(place);
    for client in 0..CLIENTS {
        let round = Round { epoch, answers: told.rounded(start), age: 0 };
        let mut after = *world;
        after.clients[client].round = Some(round);
        if after != *world {
            next.tell("a new round begins with the answer of an arbiter to client", client, after);
        }
        let Some(old) = world.clients[client].round else { continue };
        if old.epoch == epoch && !old.answers.has(place) {
            let answers = old.answers.with(place).rounded(start);
            after.clients[client].round = Some(Round { answers, ..old });
            next.tell("another arbiter answers client", client, after);
        }
    }
}
