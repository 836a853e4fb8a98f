//! The explorations of the rules without a mistake.

use std::collections::HashSet;

use crate::key::key;
use crate::rules::Start;
use crate::search::{following, search, tell, visit};
use crate::state::{OWNERS, Set, ToOwner, World};

/// The number of states that `make model` visits for each start. They fit into 3 GiB.
const MEMORY: usize = 50_000_000;

/// The arbiters are asked when the request is sent, or later.
pub(crate) const BESIDE: Start = Start {
    ttl: 1,
    hold: 1,
    lead: 0,
    wait: 1,
    last: 1,
    has_drift: false,
    has_plain_voters: false,
    mistake: None,
};
pub(crate) const BEFORE: Start = Start { lead: 1, wait: 2, ..BESIDE };
pub(crate) const THERE_AND_BACK: Start = Start { last: 2, ..BEFORE };
pub(crate) const THREE_VOTERS: Start = Start { has_plain_voters: true, ..BEFORE };

/// A client may be a tick behind, and a server a tick ahead. So keys live two ticks longer than locks, and owners wait
/// for two ticks longer.
pub(crate) const DRIFT: Start = Start { ttl: 3, wait: 4, has_drift: true, ..BEFORE };

/// The starts that every run goes through.
const FEW: [Start; 2] = [BESIDE, BEFORE];

/// The others.
const MORE: [Start; 10] = [
    Start { lead: 2, wait: 3, ..BEFORE },
    Start { ttl: 2, hold: 2, wait: 2, ..BESIDE },
    Start { ttl: 2, hold: 2, wait: 3, ..BEFORE },
    Start { ttl: 3, hold: 3, wait: 4, ..BEFORE },
    THERE_AND_BACK,
    Start { last: 3, ..BEFORE },
    DRIFT,
    THREE_VOTERS,
    Start { ttl: 2, hold: 2, wait: 3, ..THREE_VOTERS },
    Start { lead: 0, wait: 1, last: 2, ..THREE_VOTERS },
];

#[test]
fn no_two_clients_hold_the_lock() {
    for start in &FEW {
        explore(start);
    }
}

#[test]
#[ignore = "hours in a debug build: make model"]
fn no_two_clients_hold_the_lock_in_all_states() {
    for start in FEW.iter().chain(&MORE) {
        println!("{start:?}");
        println!("{} states, all", explore(start));
    }
}

/// Without that, an exploration that finds nothing would prove nothing.
#[test]
fn the_exploration_covers_the_important_cases() {
    let happens = |start: &Start, what: fn(&World) -> bool| {
        let is_complete = visit(start, usize::MAX, |world, _| !what(world));
        assert!(!is_complete, "{start:?}: a case does not happen");
    };
    // The new owner has a vote. The deposed one still has one after the new one got its note.
    happens(&BESIDE, |it| is_held(it) && has_lock(it) == [false, true]);
    happens(&BESIDE, |it| {
        is_held(it) && has_lock(it) == [true, false] && it.owners[1].note.is_some()
    });
    // Both of them have granted, and each client has a lease.
    happens(&BESIDE, |it| {
        it.clients.iter().all(|it| it.round.is_some_and(|it| it.is_lease()))
            && it.clients.iter().all(|it| {
                it.request.is_some_and(|it| matches!(it.to_owner, ToOwner::Granted { .. }))
            })
    });
    // The plain voters are enough, and so is one of them with the owner.
    happens(&THREE_VOTERS, |it| is_held(it) && has_lock(it) == [false, false]);
    happens(&THREE_VOTERS, |it| is_held(it) && it.plain.iter().any(|it| it.lock.is_none()));
    // An arbiter has skipped an owner.
    happens(&THERE_AND_BACK, |it| {
        it.arbiters.iter().any(|it| it.epoch == 2) && it.named[1] == Set::default()
    });
}

fn is_held(world: &World) -> bool {
    world.clients.iter().any(|it| it.holds > 0)
}

fn has_lock(world: &World) -> [bool; OWNERS] {
    world.owners.map(|it| it.keys.lock.is_some())
}

/// Otherwise states would be left out.
#[test]
fn each_world_has_a_key_of_its_own() {
    const WORLDS: usize = 30_000;
    let start = Start { last: 3, ttl: 3, wait: 4, has_drift: true, ..THREE_VOTERS };
    let first = World::new(&start);
    let mut worlds = HashSet::from([first]);
    let mut due = vec![first];
    while worlds.len() < WORLDS
        && let Some(world) = due.pop()
    {
        due.extend(following(&world, &start).into_iter().filter(|it| worlds.insert(*it)));
    }
    let keys: HashSet<_> = worlds.iter().map(key).collect();
    assert_eq!(keys.len(), worlds.len());
}

/// Returns the number of states.
fn explore(start: &Start) -> usize {
    let found = search(start, MEMORY);
    if found.is_wrong {
        panic!("{start:?}\n{}", tell(start));
    }
    assert!(found.is_complete, "{start:?}: more than {MEMORY} states");
    found.states
}
