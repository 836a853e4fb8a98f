//! What six walks through the library cost: instructions of the walk, and system calls and allocations of the client
//! and commands of the servers in a whole turn, in which a lock is taken and released. `make golden` compares them with the recorded ones. All four depend on the machine and its compiler,
//! so they are compared on the machine where they were recorded, or recorded before a change is begun.

use std::fmt::{self, Write};
use std::{env, fs};

use super::counting::{self, commands, forget_commands};
use crate::support::directory::Directory;
use crate::support::{Cluster, Program, Server};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/events/walks.txt");

/// Set in the environment: the file is written instead of compared.
const RECORD: &str = "REDLOCK_RECORD_GOLDEN";

const WALKS: [&str; 6] =
    ["lock", "unlock", "push", "failing renewal", "shared release", "fenced lock"];

/// All walks together may cost this much more than recorded. A single one differs by more, because answers come alone or
/// together.
const MORE: f64 = 1.06;

/// How often each walk is gone in a run.
const TURNS: u64 = 40;

const RUNS: usize = 3;

/// The costs of one walk, in the order of `UNITS`.
#[derive(Clone, Copy)]
struct Cost([u64; 4]);

const UNITS: [&str; 4] = ["instructions", "system calls", "allocations", "commands"];

impl Cost {
    /// The least that a turn costs. How many answers come together is left to chance, and differs from one run to the
    /// next.
    fn of(walk: &str) -> Self {
        let runs = (0..RUNS).map(|_| Self::of_one_run(walk));
        runs.reduce(Self::least).expect("there are some")
    }

    fn of_one_run(walk: &str) -> Self {
        let (cluster, directory) = (Cluster::start(3), Directory::new());
        let file = directory.join("counts");
        let mut tool = counting::tool(&file);
        tool.push("--dump-after=measured".to_owned());
        let mut words = vec![walk.to_owned(), TURNS.to_string()];
        words.extend(cluster.urls());
        let mut running = Program::compile("walks").start_under(&tool, &[], &words);
        loop {
            match &*running.hears_a_word() {
                "begin" => cluster.iter().for_each(forget_commands),
                "forget" => cluster.iter().for_each(forget_locks),
                word => break assert_eq!(word, "done"),
            }
            running.says("go on");
        }
        let commands = cluster.iter().map(commands).sum::<u64>() / TURNS;
        running.says("end");
        running.ends_well();
        // The first one has the start of the program, too.
        let turns = (2..=TURNS).map(|turn| {
            let it = counting::read(&format!("{file}.{turn}"));
            Self([it.instructions, it.system_calls, it.allocations, commands])
        });
        turns.reduce(Self::least).expect("there are some")
    }

    fn least(self, other: Self) -> Self {
        Self([0, 1, 2, 3].map(|it| self.0[it].min(other.0[it])))
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..).zip(UNITS).try_for_each(|(it, unit): (usize, _)| write!(f, ", {} {unit}", self.0[it]))
    }
}

fn forget_locks(server: &Server) {
    server.must(&["DEL", "walk"]);
}

/// The recorded costs of this walk.
fn recorded(text: &str, walk: &str) -> Cost {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{walk}, ")));
    let numbers = line
        .expect("it is recorded")
        .split(", ")
        .map(|it| it.split(' ').next().and_then(|it| it.parse().ok()).expect("a number"));
    Cost(numbers.collect::<Vec<u64>>().try_into().expect("four numbers"))
}

#[test]
#[ignore = "make golden"]
fn golden_walks() {
    let costs = WALKS.map(|walk| (walk, Cost::of(walk)));
    let now = costs.iter().fold(String::new(), |mut text, (walk, cost)| {
        let _ = writeln!(text, "{walk}{cost}");
        text
    });
    println!("{now}");
    if env::var_os(RECORD).is_some() {
        return fs::write(RECORDED, now).expect("it can be written");
    }
    let before = fs::read_to_string(RECORDED).expect("the recorded walks");
    let earlier = WALKS.map(|walk| recorded(&before, walk));
    for (place, unit) in UNITS.iter().enumerate() {
        let now: u64 = costs.iter().map(|it| it.1.0[place]).sum();
        let before: u64 = earlier.iter().map(|it| it.0[place]).sum();
        assert!(now as f64 <= MORE * before as f64, "{now} {unit} in all, and {before} before");
    }
}
