//! What does not grow with numbers, or only as they do: each curve is measured at a small size and at one that is 8
//! to 16 times as great. What is measured is counted: the instructions of the client, the commands of the servers
//! (those of scripts included), and the bytes that the client has allocated. So a busy machine changes little.
//!
//! The program `tests/programs/c/curves.c` does the work. It runs under valgrind, the servers do not. To see the
//! figures: `make test-long`, or `cargo test --profile simulation --test events -- --ignored --show-output curves`.

use super::counting::{self, commands, forget_commands};
use crate::support::directory::Directory;
use crate::support::program::Running;
use crate::support::{Cluster, Program, Server};

/// By how much the cost of a unit may grow from the small size to the great one. On an idle machine and on a busy one it
/// grows by 1.2 at most. Where each unit looks at all others, it grows nearly as the size does.
const GROWTH: f64 = 1.5;

/// The same for the commands of processes that compete. Where a machine is busy while one of the sizes is measured, they
/// ask twice as often. If each release woke all of them, they would ask 8 times as often.
const GROWTH_OF_ASKING: f64 = 4.0;

struct Curve {
    /// As the program knows it.
    name: &'static str,
    sizes: [usize; 2],
    servers: [usize; 2],
    growth: f64,
    /// The most bytes that one more may need: about twice as many as it does. Where nothing may stay, so few that
    /// anything that stays is more; not 0, because buffers differ a little.
    bytes: f64,
}

/// What a unit of work has cost at one size, and the bytes that are allocated after all work.
struct Cost {
    instructions: f64,
    commands: f64,
    bytes: f64,
}

#[test]
#[ignore = "make test-long"]
fn servers() {
    let servers = [8, 64];
    Curve { servers, bytes: 24_000.0, ..curve("servers", servers) }.is_flat();
}

#[test]
#[ignore = "make test-long"]
fn names() {
    Curve { bytes: 4.0, ..curve("names", [1_000, 16_000]) }.is_flat();
}

#[test]
#[ignore = "make test-long"]
fn several() {
    Curve { bytes: 1_000.0, ..curve("several", [16, 128]) }.is_flat();
}

#[test]
#[ignore = "make test-long"]
fn permits() {
    Curve { bytes: 2_500.0, ..curve("permits", [32, 256]) }.is_flat();
}

/// The bytes would be those of their parent, which keeps nothing for them.
#[test]
#[ignore = "make test-long"]
fn processes() {
    let (growth, bytes) = (GROWTH_OF_ASKING, f64::INFINITY);
    Curve { growth, bytes, ..curve("processes", [8, 64]) }.is_flat();
}

#[test]
#[ignore = "make test-long"]
fn managers() {
    Curve { bytes: 80_000.0, ..curve("managers", [4, 64]) }.is_flat();
}

#[test]
#[ignore = "make test-long"]
fn held_locks() {
    Curve { bytes: 4_000.0, ..curve("held", [1_000, 16_000]) }.is_flat();
}

#[test]
#[ignore = "make test-long"]
fn kept_locks() {
    Curve { bytes: 6_000.0, ..curve("kept", [512, 8_192]) }.is_flat();
}

#[test]
#[ignore = "make test-long"]
fn shared_locks() {
    Curve { bytes: 2_000.0, ..curve("shared", [1_000, 16_000]) }.is_flat();
}

#[test]
#[ignore = "make test-long"]
fn reconnects() {
    Curve { bytes: 24.0, ..curve("reconnects", [64, 1_024]) }.is_flat();
}

fn curve(name: &'static str, sizes: [usize; 2]) -> Curve {
    Curve { name, sizes, servers: [3, 3], growth: GROWTH, bytes: 0.0 }
}

impl Curve {
    #[track_caller]
    fn is_flat(&self) {
        let [small, great] = [0, 1].map(|it| self.cost(it));
        let one_more = (great.bytes - small.bytes) / (self.sizes[1] - self.sizes[0]) as f64;
        println!(
            "{}, {} and {}: {:.0} and {:.0} instructions, {:.2} and {:.2} commands for each; {one_more:.1} bytes for one more",
            self.name,
            self.sizes[0],
            self.sizes[1],
            small.instructions,
            great.instructions,
            small.commands,
            great.commands,
        );
        self.grows_little("instructions", small.instructions, great.instructions);
        self.grows_little("commands", small.commands, great.commands);
        assert!(one_more <= self.bytes, "{}: {one_more:.1} bytes for one more", self.name);
    }

    #[track_caller]
    fn grows_little(&self, what: &str, small: f64, great: f64) {
        let (name, [from, to]) = (self.name, self.sizes);
        assert!(great <= self.growth * small, "{name}: {small} {what} at {from}, {great} at {to}");
    }

    /// At the small size, or the great one.
    fn cost(&self, which: usize) -> Cost {
        let (cluster, directory) = (Cluster::start(self.servers[which]), Directory::new());
        let file = directory.join("instructions");
        // What processes do that compete depends on how fast they are. So no tool slows them down.
        let tool = if self.name == "processes" { Vec::new() } else { counting::tool(&file) };
        let mut words = vec![self.name.to_owned(), self.sizes[which].to_string()];
        words.extend(cluster.urls());
        let mut running = Program::compile("curves").start_under(&tool, &[], &words);
        let [units, bytes] = attend(&cluster, &mut running);
        let commands: u64 = cluster.iter().map(commands).sum();
        running.says("end");
        running.ends_well();
        let instructions = if tool.is_empty() { 0 } else { counting::read(&file).instructions };
        Cost { instructions: instructions as f64 / units, commands: commands as f64 / units, bytes }
    }
}

/// Does what the program asks for. Returns what it says at the end of its work: how many units it was, and how many
/// bytes are allocated.
fn attend(cluster: &Cluster, running: &mut Running) -> [f64; 2] {
    loop {
        match &*running.hears_a_word() {
            "begin" => cluster.iter().for_each(forget_commands),
            "hang up" => cluster.iter().for_each(Server::hang_up),
            counted => match counted.split_once(' ') {
                Some((units, bytes)) => return [units, bytes].map(number),
                None => {
                    running.hears("two numbers");
                }
            },
        }
        running.says("go on");
    }
}

fn number(word: &str) -> f64 {
    word.parse().expect("a number")
}
