//! Rules that are broken, each in one place. For each of them, two clients hold the lock at once.

use crate::rules::{Mistake, Start};
use crate::search::search;
use crate::starts::{BEFORE, BESIDE, DRIFT, THERE_AND_BACK, THREE_VOTERS};

/// The mistakes that a search through few states finds.
const SOON: [(Mistake, Start); 8] = [
    (Mistake::NoLease, BESIDE),
    (Mistake::NoteWithoutAMajority, BESIDE),
    (Mistake::PromotedOwnerIsNew, BESIDE),
    (Mistake::OneArbiterIsEnough, BESIDE),
    (Mistake::OwnerIsItsOwnArbiter, BESIDE),
    (Mistake::ArbiterForgets, BESIDE),
    (Mistake::AgeFromTheAnswer, BESIDE),
    (Mistake::OwnerVotesATickTooSoon, BESIDE),
];

/// The mistakes that need more states, and the same ones where arbiters are asked before a request is sent.
const LATER: [(Mistake, Start); 16] = [
    (Mistake::NoLease, BEFORE),
    (Mistake::NoteWithoutAMajority, BEFORE),
    (Mistake::NoteWithoutEpoch, THERE_AND_BACK),
    (Mistake::PromotedOwnerIsNew, BEFORE),
    (Mistake::CopiedNoteIsBelieved, THERE_AND_BACK),
    (Mistake::AnswerWithoutEpoch, THERE_AND_BACK),
    (Mistake::OneArbiterIsEnough, BEFORE),
    (Mistake::OwnerIsItsOwnArbiter, BEFORE),
    (Mistake::ArbiterForgets, BEFORE),
    (Mistake::AgeFromTheAnswer, BEFORE),
    (Mistake::OwnerVotesATickTooSoon, BEFORE),
    (Mistake::OwnerVotesATickTooSoon, DRIFT),
    (Mistake::NoLease, THREE_VOTERS),
    (Mistake::NoteWithoutAMajority, THREE_VOTERS),
    (Mistake::OneArbiterIsEnough, THREE_VOTERS),
    (Mistake::OwnerVotesATickTooSoon, THREE_VOTERS),
];

#[test]
fn easy_mistakes_are_found() {
    find(&SOON);
}

#[test]
#[ignore = "ten minutes in a debug build: make model"]
fn harder_mistakes_are_found() {
    find(&LATER);
}

fn find(mistakes: &[(Mistake, Start)]) {
    for &(mistake, start) in mistakes {
        let start = Start { mistake: Some(mistake), ..start };
        let found = search(&start, usize::MAX);
        assert!(found.is_wrong, "{start:?}: not in {} states", found.states);
        println!("{mistake:?}: after {} steps, among {} states", found.steps, found.states);
    }
}
