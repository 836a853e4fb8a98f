//! The tests: they play many seeds, and show that the results can be believed.

use std::collections::BTreeMap;
use std::env;
use std::num::NonZero;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::schedules::generate::{Wish, schedule};
use crate::schedules::play::{Outcome, play};
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{Schedule, Sin};
use crate::schedules::shrink::{kind_of, overlaps, shrink};
use crate::schedules::simulate::{self, simulate};

/// How many seeds each run of the tests plays.
const SEEDS: u64 = 1_500;

/// The number of seeds in which one server forgets.
const GUARDED_SEEDS: u64 = 200;

/// The number of seeds in which one server changes its life.
const LIVED_SEEDS: u64 = 250;

/// The number of seeds in which masters fail over.
const WATCHED_SEEDS: u64 = 150;

/// How many schedules are played in which servers lose their fencing tokens. They are longer.
const COUNTED_SEEDS: u64 = 12;

/// Of a large number of seeds, one in this many is played again without the guard. That shows enough, and
/// takes half of the time.
const COMPARED_IN: u64 = 8;

/// How many seeds are tried to find one in which a broken assumption has an effect.
const BITES_WITHIN: u64 = 300;

/// With REDLOCK_FEW, as in `make test`, a third of the seeds is played.
fn played(seeds: u64) -> u64 {
    if env::var_os("REDLOCK_FEW").is_some() { seeds / 3 } else { seeds }
}

#[test]
fn no_seed_breaks_the_promise() {
    let seeds = played(SEEDS);
    let figures = simulate(0..seeds, 1, simulate::ENOUGH);
    println!("{figures}");
    tell_first(&figures);
    assert!(figures.granted > 2 * seeds, "they must not fail to do anything");
}

/// `make simulate` runs this test, with the first seed and the number of seeds in the environment. With
/// REDLOCK_ENOUGH, it continues until it has seen that number of violations, and reports their kinds.
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

/// Prints the story of the seed in the environment. If the seed fails, prints the story of the smallest
/// schedule that still fails. With REDLOCK_UNGUARDED, the seed is played without the guard.
#[test]
#[ignore = "it plays the seed that it is told to"]
fn one_seed() {
    let seed = number("REDLOCK_SEED").expect("REDLOCK_SEED says which");
    let wish = match env::var("REDLOCK_WISH").as_deref() {
        Ok("guarded") => Wish::Guarded,
        Ok("stepped") => Wish::Stepped,
        Ok("lived") => Wish::Lived,
        Ok("watched") => Wish::Watched,
        _ => Wish::Any,
    };
    let schedule = schedule(seed, wish);
    let schedule = Rc::new(match env::var_os("REDLOCK_UNGUARDED") {
        Some(_) => schedule.unguarded(),
        None => schedule,
    });
    println!("{}", simulate::story_of(&schedule));
    if let Some(violation) = play(&schedule, false).violation {
        panic!("{}", simulate::tell((*schedule).clone(), &violation));
    }
}

/// Each of these has once shown a fault that is fixed.
#[test]
fn seeds_of_fixed_faults_pass() {
    // A call for several resources that lost its place in the wait queue tried again and again without a
    // pause.
    let spun = [70_012_221, 70_023_539, 70_027_720, 70_029_588, 70_029_976, 90_017_623, 90_029_981];
    // An answer was considered older than it was, and the lock was assumed to end earlier than it did.
    let was_shortened = [70_015_985];
    // A lock that was being made a shared one was reported as free.
    let was_told_free = [90_162_085];
    // A caller that was never told that it holds a lock was told that the lock is lost.
    let was_lost_before_it_was_had = [98_082_701];
    let as_drawn = spun.into_iter().chain(was_shortened).chain(was_told_free);
    let as_drawn = as_drawn.chain(was_lost_before_it_was_had);
    // The same fault with fencing tokens. A server that wanted another form of a request was given more
    // time for it. A lock that readers may have had on a silent server was reported as free, because
    // somebody's attempt was in the way.
    let with_tokens = [91_022_810, 91_037_718, 97_007_235].map(|seed| (seed, Wish::Fenced));
    for (seed, wish) in as_drawn.map(|seed| (seed, Wish::Any)).chain(with_tokens) {
        let violation = play(&Rc::new(schedule(seed, wish)), false).violation;
        assert!(violation.is_none(), "seed {seed}: {violation:?}");
    }
}

#[test]
fn a_seed_replays_identically() {
    for seed in 0..60 {
        let schedule = Rc::new(schedule(seed, Wish::Any));
        let (first, again, silent) =
            (play(&schedule, true), play(&schedule, true), play(&schedule, false));
        assert!(first == again, "seed {seed}");
        assert_eq!((silent.events, silent.granted), (first.events, first.granted), "seed {seed}");
    }
}

#[test]
fn different_server_lists_are_detected() {
    assert_bites(Sin::SplitLists);
}

#[test]
fn servers_that_lose_keys_are_detected() {
    assert_bites(Sin::LostKeys);
}

#[test]
fn leaping_server_clocks_are_detected() {
    assert_bites(Sin::LeapingClocks);
}

#[test]
fn fast_server_clocks_are_detected() {
    assert_bites(Sin::FastClocks);
}

#[test]
fn stopped_client_clocks_are_detected() {
    assert_bites(Sin::StoppedClocks);
}

/// A server is restarted without its data, or flushed, any number of times.
#[test]
fn one_forgetful_guarded_server_admits_no_second_holder() {
    let figures = compare(Wish::Guarded, 0..GUARDED_SEEDS, (1, 1));
    println!("{figures:?}");
    assert_eq!(figures.overlapped, [], "of {} schedules", figures.seeds);
    assert_eq!(figures.regressed, [], "of {} schedules", figures.seeds);
    assert!(figures.fenced > GUARDED_SEEDS / 10, "tokens must be drawn");
    assert!(figures.overlapped_unguarded > 2, "nothing was broken, so this shows nothing");
    assert!(figures.granted > GUARDED_SEEDS, "they must not fail to do anything");
}

/// Each of them is restored from the others, whatever the clocks show meanwhile.
#[test]
fn servers_that_forget_in_turn_repeat_no_fencing_token() {
    let figures = compare(Wish::Counted, 0..COUNTED_SEEDS, (1, u64::MAX));
    println!("{figures:?}");
    assert_eq!(figures.regressed, [], "of {} schedules", figures.seeds);
    assert_eq!(figures.regressed_by_loss, [], "too many servers lose their numbers at one time");
    assert!(figures.granted > 20 * COUNTED_SEEDS, "they must not fail to do anything");
}

/// The clock of a server is set forward, any number of times.
#[test]
fn one_stepped_guarded_clock_admits_no_second_holder() {
    let figures = compare(Wish::Stepped, 0..GUARDED_SEEDS, (1, 1));
    println!("{figures:?}");
    assert_eq!(figures.overlapped, [], "of {} schedules", figures.seeds);
    assert_eq!(figures.regressed, [], "of {} schedules", figures.seeds);
    assert!(figures.excused.is_empty(), "so much is not to be excused");
    assert!(figures.overlapped_unguarded > 3, "nothing was broken, so this shows nothing");
    assert!(figures.granted > GUARDED_SEEDS, "they must not fail to do anything");
}

/// A server changes its life in every way, and clocks are set forward and back, one of them or all together.
/// Two clients hold one lock only in the cases that the manual names.
#[test]
fn one_changed_server_admits_only_the_documented_cases() {
    let seeds = played(LIVED_SEEDS);
    let figures = compare(Wish::Lived, 0..seeds, (1, 1));
    println!("{figures:?}");
    assert_eq!(figures.overlapped, [], "of {} schedules", figures.seeds);
    assert!(figures.others.is_empty(), "{:?}", figures.others);
    assert!(figures.overlapped_unguarded > seeds / 20, "nothing was broken");
    assert!(figures.granted > seeds, "they must not fail to do anything");
}

/// Other servers take the place of masters, with or without the keys, and the Sentinels learn that one by one.
/// The old masters go on meanwhile, or are paused and resume.
#[test]
fn watched_masters_that_fail_over_admit_no_second_holder() {
    let seeds = played(WATCHED_SEEDS);
    let figures = compare(Wish::Watched, 0..seeds, (1, 1));
    println!("{figures:?}");
    assert_eq!(figures.overlapped, [], "of {} schedules", figures.seeds);
    assert!(figures.excused.is_empty(), "nothing of this is to be excused");
    assert!(figures.others.is_empty(), "{:?}", figures.others);
    assert!(figures.overlapped_unguarded > seeds / 40, "nothing was broken");
    assert!(figures.granted > seeds, "they must not fail to do anything");
}

/// In some of these seeds, the second client had read the clock only after the step. In others, its only
/// reading from before the step had been on its way for longer than the step.
#[test]
fn an_invisible_step_is_outside_the_promise() {
    for seed in [95_407_807, 95_789_777, 95_647_928, 95_900_592, 95_964_934] {
        let outcome = play(&Rc::new(schedule(seed, Wish::Stepped)), false);
        assert!(outcome.excuse.is_some() || !outcome.overlapped, "seed {seed}");
    }
}

/// A durable copy was promoted, became a replica for a moment, and forgot both promotions. And other data took the place
/// of the data in which a lock was granted, before the note was read. Or it has the same note, but a permit is in another
/// slot there. Nobody can know that.
#[test]
fn what_nobody_can_know_of_a_changed_server_is_outside_the_promise() {
    for seed in [530_223_163, 530_691_765, 531_432_996] {
        let outcome = play(&Rc::new(schedule(seed, Wish::Lived)), false);
        assert!(outcome.excuse.is_some() || !outcome.overlapped, "seed {seed}");
    }
}

/// Another program put a value under the key of the note just before it was written. A note that told the longest TTL came
/// behind the word that the server was a replica. A note was rewritten that was another server's. A note was read from a
/// promoted server that was not marked in time, and an older one was believed. And a server was restarted empty, and another
/// client took it for a new one.
#[test]
fn seeds_of_fixed_faults_of_changed_servers_pass() {
    for seed in [530_879_115, 531_022_773, 531_061_252, 531_280_367, 531_309_260] {
        let outcome = play(&Rc::new(schedule(seed, Wish::Lived)), false);
        assert!(!outcome.overlapped, "{seed}");
    }
}

/// A connection was taken back that had the addresses of another master.
#[test]
fn seeds_of_fixed_faults_of_masters_pass() {
    let outcome = play(&Rc::new(schedule(1655, Wish::Watched)), false);
    assert!(!outcome.overlapped);
}

/// Like `many_seeds`, with the first seed and the number of seeds in the environment.
#[test]
#[ignore = "it takes as long as it is told to"]
fn many_seeds_that_are_guarded() {
    play_many(Wish::Guarded);
}

#[test]
#[ignore = "it takes as long as it is told to"]
fn many_seeds_that_are_stepped() {
    play_many(Wish::Stepped);
}

#[test]
#[ignore = "it takes as long as it is told to"]
fn many_seeds_that_are_lived() {
    play_many(Wish::Lived);
}

#[test]
#[ignore = "it takes as long as it is told to"]
fn many_seeds_that_are_watched() {
    play_many(Wish::Watched);
}

#[test]
#[ignore = "it takes as long as it is told to"]
fn many_seeds_that_are_counted() {
    play_many(Wish::Counted);
}

fn play_many(wish: Wish) {
    let first = number("REDLOCK_FIRST").unwrap_or(0);
    let count = number("REDLOCK_SEEDS").unwrap_or(100_000);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let figures = compare(wish, first..first + count, (threads, COMPARED_IN));
    println!("{figures:?}");
    if let Some(&seed) = figures.overlapped.first().or_else(|| figures.regressed.first()) {
        let is_wrong = |it: &Rc<Schedule>| {
            let outcome = play(it, false);
            let has_regressed = has_regressed(&outcome) && !outcome.too_many_lacked_numbers;
            outcome.overlapped && outcome.excuse.is_none() || has_regressed
        };
        let whole = schedule(seed, wish);
        let shown = match number("REDLOCK_WHOLE") {
            None => shrink(whole, &is_wrong),
            Some(_) => whole,
        };
        panic!("seed {seed}:\n{}", simulate::story_of(&Rc::new(shown)));
    }
}

/// The results of schedules in which one server forgets, or has its clock set: in which of them two clients
/// held one lock, and in how many of the same schedules that happened without the guard.
#[derive(Debug, Default)]
struct Comparison {
    seeds: u64,
    granted: u64,
    overlapped: Vec<u64>,
    /// Like `overlapped`, for what the guard cannot see, by its name. These are outside the promise.
    excused: BTreeMap<&'static str, Vec<u64>>,
    /// Where a server changes its life: in which seeds other promises were broken, by kind.
    others: BTreeMap<String, Vec<u64>>,
    /// How many were also played without the guard, and in how many of these two clients held one lock.
    unguarded: u64,
    overlapped_unguarded: u64,
    /// How many had fencing tokens, and in which of those a token was not greater than an earlier one.
    fenced: u64,
    regressed: Vec<u64>,
    /// The same, after too many servers had lost their numbers at one time. That is outside the promise.
    regressed_by_loss: Vec<u64>,
}

fn has_regressed(outcome: &Outcome) -> bool {
    let name = Promise::TokensGrow.name();
    outcome.violation.as_ref().is_some_and(|it| it.starts_with(name))
}

/// Plays these seeds on this number of threads, and one of every `compared_in` seeds also without the
/// guard.
fn compare(wish: Wish, seeds: Range<u64>, (threads, compared_in): (usize, u64)) -> Comparison {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut figures = Comparison::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return figures;
            }
            let schedule = schedule(seed, wish);
            let guarded = play(&Rc::new(schedule.clone()), false);
            figures.seeds += 1;
            figures.granted += guarded.granted as u64;
            figures.fenced += u64::from(schedule.is_fenced);
            match (has_regressed(&guarded), guarded.too_many_lacked_numbers) {
                (true, true) => figures.regressed_by_loss.push(seed),
                (true, false) => figures.regressed.push(seed),
                _ => {}
            }
            let overlapped = guarded.overlapped.then_some(seed);
            let broken =
                guarded.violation.filter(|_| schedule.lives.is_some() && overlapped.is_none());
            if let Some(words) = broken {
                figures.others.entry(kind_of(&words)).or_default().push(seed);
            }
            match guarded.excuse {
                Some(hole) => figures.excused.entry(hole).or_default().extend(overlapped),
                None => figures.overlapped.extend(overlapped),
            }
            if seed.is_multiple_of(compared_in) {
                figures.unguarded += 1;
                figures.overlapped_unguarded += u64::from(overlaps(&Rc::new(schedule.unguarded())));
            }
        }
    };
    let mut all = Comparison::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for it in workers.into_iter().map(|it| it.join().expect("it ends")) {
            all.seeds += it.seeds;
            all.granted += it.granted;
            all.overlapped.extend(it.overlapped);
            for (hole, seeds) in it.excused {
                all.excused.entry(hole).or_default().extend(seeds);
            }
            for (kind, seeds) in it.others {
                all.others.entry(kind).or_default().extend(seeds);
            }
            all.regressed.extend(it.regressed);
            all.regressed_by_loss.extend(it.regressed_by_loss);
            all.fenced += it.fenced;
            all.unguarded += it.unguarded;
            all.overlapped_unguarded += it.overlapped_unguarded;
        }
    });
    all.overlapped.sort_unstable();
    all
}

/// Checks that two holds overlap in one of the schedules that break this assumption, and in the smallest
/// schedule that still shows it.
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

/// Prints how often each kind of violation was seen, and in which seeds first.
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
        panic!("{}\n{}", simulate::tell(schedule(*seed, Wish::Any), violation), all.join("\n"));
    }
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|it| it.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}
