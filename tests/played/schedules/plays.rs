//! The tests: many seeds, and that what they show can be believed.

use std::collections::BTreeMap;
use std::env;
use std::num::NonZero;
use std::rc::Rc;
use std::thread;

use crate::schedules::generate::{Wish, schedule};
use crate::schedules::play::play;
use crate::schedules::schedule::Sin;
use crate::schedules::shrink::{kind_of, overlaps, shrink};
use crate::schedules::simulate::{self, simulate};

/// How many are played by each run of the tests.
const SEEDS: u64 = 1_500;

/// How many are tried for one in which a broken assumption shows.
const BITES_WITHIN: u64 = 300;

#[test]
fn no_seed_breaks_the_promise() {
    let figures = simulate(0..SEEDS, 1, simulate::ENOUGH);
    println!("{figures}");
    tell_first(&figures);
    assert!(figures.granted > 2 * SEEDS, "they must not fail to do anything");
}

/// `make simulate` runs it, with the first seed and the number of them in the environment. With
/// REDLOCK_ENOUGH it goes on until so many violations have been seen, and tells which kinds there are.
#[test]
#[ignore = "it takes as long as it is told to"]
fn many_seeds() {
    let first = number("REDLOCK_FIRST").unwrap_or(0);
    let count = number("REDLOCK_SEEDS").unwrap_or(100_000);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let enough = number("REDLOCK_ENOUGH").and_then(|it| usize::try_from(it).ok());
    let figures = simulate(first..first + count, threads, enough.unwrap_or(simulate::ENOUGH));
    println!("{figures}");
    tell_kinds(&figures);
    tell_first(&figures);
}

/// Tells the story of the seed in the environment; of the smallest schedule that is left of it, if
/// something is wrong with it.
#[test]
#[ignore = "it plays the seed that it is told to"]
fn one_seed() {
    let seed = number("REDLOCK_SEED").expect("REDLOCK_SEED says which");
    let schedule = Rc::new(schedule(seed, Wish::Any));
    println!("{}", simulate::story_of(&schedule));
    if let Some(violation) = play(&schedule, false).violation {
        panic!("{}", simulate::tell(seed, &violation));
    }
}

#[test]
fn a_seed_is_played_the_same_again() {
    for seed in 0..60 {
        let schedule = Rc::new(schedule(seed, Wish::Any));
        let (first, again, silent) =
            (play(&schedule, true), play(&schedule, true), play(&schedule, false));
        assert!(first == again, "seed {seed}");
        assert_eq!((silent.events, silent.granted), (first.events, first.granted), "seed {seed}");
    }
}

#[test]
fn different_lists_of_servers_are_found_out() {
    assert_bites(Sin::SplitLists);
}

#[test]
fn servers_that_lose_keys_are_found_out() {
    assert_bites(Sin::LostKeys);
}

#[test]
fn servers_whose_clocks_leap_are_found_out() {
    assert_bites(Sin::LeapingClocks);
}

#[test]
fn servers_whose_clocks_are_too_fast_are_found_out() {
    assert_bites(Sin::FastClocks);
}

#[test]
fn clients_whose_clocks_stop_are_found_out() {
    assert_bites(Sin::StoppedClocks);
}

/// Two holds overlap in one of the schedules that break it, and in the smallest that is left of that.
fn assert_bites(sin: Sin) {
    let mut seeds = 0..BITES_WITHIN;
    let found = seeds.find(|&it| overlaps(&Rc::new(schedule(it, Wish::This(sin)))));
    let seed = found.unwrap_or_else(|| panic!("{sin:?} is not found out"));
    let whole = schedule(seed, Wish::This(sin));
    let parts = whole.parts().len();
    let smallest = Rc::new(shrink(whole, &overlaps));
    assert!(overlaps(&smallest) && smallest.parts().len() < parts, "{smallest}");
    println!("{}", simulate::story_of(&smallest));
}

/// How often each kind of violation was seen, and in which seeds first.
fn tell_kinds(figures: &simulate::Figures) {
    let mut kinds = BTreeMap::<String, Vec<u64>>::new();
    for (seed, words) in &figures.violations {
        kinds.entry(kind_of(words)).or_default().push(*seed);
    }
    for (kind, seeds) in kinds {
        println!("{} times {kind}: seeds {:?}", seeds.len(), &seeds[..seeds.len().min(12)]);
    }
}

fn tell_first(figures: &simulate::Figures) {
    if let Some((seed, violation)) = figures.violations.first() {
        let all: Vec<_> =
            figures.violations.iter().map(|it| format!("{}: {}", it.0, it.1)).collect();
        panic!("{}\n{}", simulate::tell(*seed, violation), all.join("\n"));
    }
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|it| it.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}
