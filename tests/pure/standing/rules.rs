//! The exploration, and what it checks.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::world::{Start, Third, World};

/// The maximum number of states that the tests explore for each start. Every mutant for which the lists name
/// this test is found within that number. One other fault is found among the first three million states of the
/// second start: a server counts after a round that began before the server was heard.
const STATES: usize = 60_000;

/// One manager extends the lock once; one key is lost.
const BASE: Start = Start { rounds: 1, losses: 1, ends: 0, managers: 1, third: Third::IsRepaired };

/// The starts to explore: how often the holder extends, how many keys are lost, and so on.
const STARTS: [Start; 14] = [
    BASE,
    Start { rounds: 2, third: Third::IsRepairedAndHeardLate, ..BASE },
    Start { managers: 2, ..BASE },
    Start { rounds: 2, ..BASE },
    Start { losses: 2, third: Third::IsAsked, ..BASE },
    Start { rounds: 2, losses: 2, third: Third::IsAsked, ..BASE },
    Start { rounds: 2, losses: 2, third: Third::HasIt, ..BASE },
    Start { ends: 1, ..BASE },
    Start { rounds: 2, ends: 1, third: Third::IsAsked, ..BASE },
    Start { rounds: 2, losses: 2, ends: 1, third: Third::IsAsked, ..BASE },
    Start { rounds: 2, losses: 3, third: Third::HasIt, ..BASE },
    Start { rounds: 3, losses: 2, third: Third::HasIt, ..BASE },
    Start { rounds: 2, losses: 3, third: Third::IsAsked, ..BASE },
    Start { rounds: 3, losses: 2, third: Third::IsAsked, ..BASE },
];

#[test]
fn no_lock_of_a_rival_is_vouched_for() {
    for start in &STARTS[..9] {
        explore(start, STATES);
    }
}

#[test]
#[ignore = "an hour in a debug build: make model"]
fn no_lock_of_a_rival_is_vouched_for_in_all_states() {
    for start in &STARTS {
        println!("{start:?}: {} states, all", explore(start, usize::MAX));
    }
}

/// A holder takes a lost connection for the end of the server's process.
#[test]
fn a_late_request_after_a_presumed_end_is_found() {
    let hasty = Start { third: Third::IsRepairedTooEarly, ..BASE };
    let mut is_wrong = false;
    visit(&hasty, STATES, |world| {
        is_wrong |= world.is_wrong;
        !is_wrong
    });
    assert!(is_wrong);
}

/// Shows that the exploration covers the important cases: the rival does hold the lock, and repaired servers do
/// vote. Without that, a test that finds nothing would prove nothing.
#[test]
fn the_exploration_covers_the_important_cases() {
    let (mut has_had, mut was_repaired) = (false, false);
    visit(&STARTS[0], STATES, |world| {
        has_had |= world.rival_has_had_it();
        was_repaired |= world.was_admitted();
        !(has_had && was_repaired)
    });
    assert!(has_had && was_repaired);
}

/// Returns the number of explored states, which is at most `most`.
fn explore(start: &Start, most: usize) -> usize {
    visit(start, most, |world| {
        assert!(!world.is_wrong, "{start:?}: {world:#?}");
        true
    })
}

/// Visits the states, nearest to the start first, until the visitor returns false or none is left.
fn visit(start: &Start, most: usize, mut visitor: impl FnMut(&World) -> bool) -> usize {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let first = World::new(start);
    let mut seen = HashSet::from([hasher.hash_one(&first)]);
    let mut due = VecDeque::from([first]);
    while let Some(world) = due.pop_front() {
        if !visitor(&world) {
            break;
        }
        world.each_next(|next| {
            if seen.len() < most && seen.insert(hasher.hash_one(&next)) {
                due.push_back(next);
            }
        });
    }
    seen.len()
}
