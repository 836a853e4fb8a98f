//! The explorations of the rules without a mistake.

use crate::rules::{Clocks, Forgets, Start};
use crate::search::{search, tell, visit};
use crate::state::{Stage, World};

/// The number of states that `cargo test` visits for each start.
const STATES: usize = 4_000;

/// The number of states that `make model` visits for each start. They fit into 4 GiB.
const MEMORY: usize = 40_000_000;

const LOSSES: Start = Start {
    losses: 2,
    rewrites: 0,
    forgets: Forgets::All,
    clocks: Clocks::AnySetAtWill,
    has_late_writes: false,
    has_outages: false,
    unreliable: 3,
    is_first_lost: false,
    is_one_by_one: false,
    mistake: None,
};
const ONE: Start = Start { losses: 1, ..LOSSES };
const NEWS: Start = Start { forgets: Forgets::AllOrNews, ..ONE };
const HASH: Start = Start { forgets: Forgets::AllOrHash, has_late_writes: true, ..ONE };
const NO_STEP_BACK: Start = Start { clocks: Clocks::NeverSetBack, is_one_by_one: true, ..ONE };

const STARTS: [Start; 13] = [
    Start { clocks: Clocks::OneBeyondTheLimit, ..ONE },
    ONE,
    Start { losses: 0, rewrites: 3, ..LOSSES },
    Start { unreliable: 1, rewrites: 1, ..NEWS },
    HASH,
    Start { has_outages: true, ..ONE },
    Start { is_first_lost: true, unreliable: 1, is_one_by_one: true, ..HASH },
    Start { is_first_lost: true, unreliable: 1, is_one_by_one: true, rewrites: 1, ..NEWS },
    Start { unreliable: 1, ..NO_STEP_BACK },
    Start { is_one_by_one: true, ..LOSSES },
    Start { losses: 2, unreliable: 2, ..NO_STEP_BACK },
    LOSSES,
    Start { losses: 3, ..LOSSES },
];

#[test]
fn fencing_tokens_never_decrease() {
    for start in &STARTS {
        explore(start, STATES);
    }
}

#[test]
#[ignore = "hours in a debug build: make model"]
fn fencing_tokens_never_decrease_in_all_states() {
    for start in &STARTS {
        println!("{start:?}");
        let states = explore(start, MEMORY);
        println!("{states} states, {}", if states < MEMORY { "all" } else { "the nearest" });
    }
}

/// Without that, an exploration that finds nothing would prove nothing.
#[test]
fn the_exploration_covers_the_important_cases() {
    let start = Start { losses: 1, unreliable: 1, ..LOSSES };
    let happens = |what: fn(&World) -> bool| {
        let mut has_happened = false;
        visit(&start, usize::MAX, |world| {
            has_happened |= what(world);
            !has_happened
        });
        assert!(has_happened);
    };
    happens(|it| it.clients.iter().all(|it| matches!(it.stage, Stage::Holds { .. })));
    happens(|it| it.clients.iter().any(|it| matches!(it.stage, Stage::Raising { .. })));
    happens(|it| it.servers.iter().any(|it| it.hash.life == 2 && it.hash.base > 0));
}

/// Returns the number of states that were visited.
fn explore(start: &Start, most: usize) -> usize {
    let found = search(start, most);
    if found.is_wrong {
        panic!("{start:?}\n{}", tell(start));
    }
    assert!(found.is_complete || found.states >= most, "{start:?}: the search ended too soon");
    found.states
}
