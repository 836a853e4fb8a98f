//! The recorded fingerprints of many plays. They show that a change of the library's structure changes nothing
//! that it does: no byte, no moment, no result, no word.
//!
//! - `cargo test --test played golden` compares a few plays, `make golden` all of them.
//! - A change that is meant to change something records them again with `make golden-record`. Its commit says
//!   what has changed, and why.
//! - Where they differ, `REDLOCK_SEED=… cargo test --test played one_seed -- --ignored --nocapture` tells what
//!   happens in a seed, before the change and after it.

use std::fmt::{self, Write};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use crate::schedules::generate::{Wish, schedule};
use crate::schedules::play::play;
use crate::world::digest::Digest;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/played/golden/plays.txt");

/// How many seeds of each kind of schedule, and how many of them are one line.
const SEEDS: u64 = 10_000;
const SEEDS_OF_LINE: u64 = 100;

/// The kinds of which every run of the tests compares the first line. The others take longer.
const QUICK: usize = 4;

/// Set in the environment: the lines are written instead of compared.
const RECORD: &str = "REDLOCK_RECORD_GOLDEN";

const KINDS: [(&str, Wish); 6] = [
    ("plain", Wish::Any),
    ("fenced", Wish::Fenced),
    ("guarded", Wish::Guarded),
    ("stepped", Wish::Stepped),
    ("lived", Wish::Lived),
    ("counted", Wish::Counted),
];

/// Plays `SEEDS_OF_LINE` schedules of a kind.
#[derive(Clone, Copy)]
struct Line {
    kind: &'static str,
    wish: Wish,
    first: u64,
}

impl Line {
    fn play(&self) -> String {
        let mut joint = Digest::default();
        for seed in self.first..self.first + SEEDS_OF_LINE {
            let outcome = play(&Rc::new(schedule(seed, self.wish)), false);
            joint.actions.join(outcome.digest.actions);
            joint.answers.join(outcome.digest.answers);
        }
        format!("{self} actions {} answers {}", joint.actions, joint.answers)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}-{}:", self.kind, self.first, self.first + SEEDS_OF_LINE - 1)
    }
}

/// So many lines of each of these kinds.
fn lines(kinds: &[(&'static str, Wish)], count: u64) -> Vec<Line> {
    let of_kind = |&(kind, wish): &(&'static str, Wish)| {
        (0..count).map(move |it| Line { kind, wish, first: it * SEEDS_OF_LINE })
    };
    kinds.iter().flat_map(of_kind).collect()
}

/// Plays all lines, on all processors.
fn played(lines: &[Line]) -> Vec<String> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); lines.len()]));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(line) = lines.get(place) else { return };
                    let words = line.play();
                    found.lock().expect("no panic")[place] = words;
                }
            });
        }
    });
    found.into_inner().expect("no panic")
}

fn compare(lines: &[Line]) {
    let recorded = fs::read_to_string(RECORDED).expect("the recorded plays");
    let mut differences = String::new();
    for line in played(lines) {
        if !recorded.lines().any(|it| it == line) {
            let _ = writeln!(differences, "{line}");
        }
    }
    assert!(
        differences.is_empty(),
        "these plays are not as recorded in tests/played/golden/plays.txt:\n{differences}"
    );
}

#[test]
fn golden_plays_of_a_few_seeds() {
    // They are being recorded meanwhile.
    if env::var_os(RECORD).is_none() {
        compare(&lines(&KINDS[..QUICK], 1));
    }
}

#[test]
#[ignore = "make golden"]
fn golden_plays() {
    let all = lines(&KINDS, SEEDS / SEEDS_OF_LINE);
    if env::var_os(RECORD).is_none() {
        return compare(&all);
    }
    fs::write(RECORDED, played(&all).join("\n") + "\n").expect("it can be written");
}
