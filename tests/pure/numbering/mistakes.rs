//! Rules that are broken, each in one place. For each of them, a token comes after a greater one, or twice.

use crate::rules::{Clocks, Forgets, Mistake, Start};
use crate::search::{play, search};

const LOSSES: Start = Start {
    losses: 1,
    rewrites: 0,
    forgets: Forgets::All,
    clocks: Clocks::AnySetAtWill,
    has_late_writes: false,
    has_outages: false,
    unreliable: 1,
    is_first_lost: false,
    is_one_by_one: true,
    mistake: None,
};
const TWO: Start = Start { losses: 2, unreliable: 2, ..LOSSES };
const NEWS: Start = Start { forgets: Forgets::AllOrNews, ..LOSSES };
const LATE: Start = Start { is_first_lost: true, ..LOSSES };
const TIME: Start = Start { clocks: Clocks::NeverSetBack, ..TWO };
const AT_ONCE: Start = Start { losses: 0, is_one_by_one: false, ..LOSSES };

/// The mistakes that random games show soon.
const SOON: [(Mistake, Start); 8] = [
    (Mistake::NothingIsRestored, LOSSES),
    (Mistake::ReadFromOneOther, TWO),
    (Mistake::TooFewAreNotMarked, TWO),
    (Mistake::RewriteBeginsALife, Start { rewrites: 1, unreliable: 2, ..LOSSES }),
    (Mistake::RewriteMakesAnyHashFit, Start { rewrites: 1, ..LOSSES }),
    (Mistake::CopyIsBelieved, NEWS),
    (Mistake::NoRaise, LOSSES),
    (Mistake::NoLimit, Start { clocks: Clocks::OneBeyondTheLimit, ..LOSSES }),
];

/// The mistakes that they show later.
const LATER: [(Mistake, Start); 9] = [
    (Mistake::UnfitServersAreRead, TWO),
    (Mistake::ServersByTheClockAreRead, Start { has_outages: true, ..TWO }),
    (Mistake::OnlyTheFieldsAreRead, TWO),
    (Mistake::ReadWithinTheGuardTime, LOSSES),
    (Mistake::ReadWithinTheGuardTime, TIME),
    (Mistake::LateWriteIsNotBoundToTheLoss, Start { forgets: Forgets::AllOrHash, ..LATE }),
    (Mistake::DrawBeginsTheLife, TWO),
    (Mistake::OlderNoteIsBelieved, Start { rewrites: 1, ..NEWS }),
    (Mistake::OlderNoteOfTheSameLifeIsBelieved, Start { rewrites: 1, ..NEWS }),
];

/// The mistakes that a search finds sooner than random games do.
const RARE: [(Mistake, Start); 2] = [
    (Mistake::RaiseWithoutTheLock, AT_ONCE),
    (Mistake::LateWriteIsNotBoundToTheNote, Start { forgets: Forgets::AllOrNews, ..LATE }),
];

/// In a debug build, a second or two.
const GAMES: usize = 40_000;

#[test]
fn easy_mistakes_are_found() {
    for (mistake, start) in SOON {
        assert!(is_found_by_games(mistake, start, GAMES), "{mistake:?}");
    }
}

/// The games are the same in every run. So a test that finds a mistake always finds it.
#[test]
#[ignore = "a minute in a debug build: make model"]
fn harder_mistakes_are_found() {
    for (mistake, start) in LATER {
        assert!(is_found_by_games(mistake, start, usize::MAX), "{mistake:?}");
    }
}

#[test]
#[ignore = "an hour in a debug build: make model"]
fn mistakes_beyond_the_games_are_found() {
    for (mistake, start) in RARE {
        let found = search(&Start { mistake: Some(mistake), ..start }, usize::MAX);
        assert!(found.is_wrong, "{mistake:?}: not in {} states", found.states);
        println!("{mistake:?}: among {} states", found.states);
    }
}

fn is_found_by_games(mistake: Mistake, start: Start, most: usize) -> bool {
    play(&Start { mistake: Some(mistake), ..start }, most)
}
