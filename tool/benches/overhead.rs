//! What `redlock run NAME -- true` costs more than `true`: `cargo bench -p redlock-cli`, with servers of its own.
//!
//! Both run in turn, each a process, so that whatever else the machine does slows both. The goal is on the median of
//! the differences.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::env;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use support::Cluster;

const ROUNDS: usize = 300;
const GOAL: Duration = Duration::from_millis(15);

fn main() -> ExitCode {
    // Without it this is not a bench but `cargo test --all-targets`, which wants no figures.
    if !env::args().any(|it| it == "--bench") {
        return ExitCode::SUCCESS;
    }
    // With --figures and a number of rounds it is the bench of the library that asks.
    let asked = env::args().skip_while(|it| it != "--figures").nth(1);
    let rounds = asked.as_deref().map_or(ROUNDS, |it| it.parse().expect("a number of rounds"));
    let cluster = Cluster::start(3);
    let servers = cluster.urls().join(",");
    let (mut alone, mut locked, mut more) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let without = time(&mut Command::new("true"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_redlock"));
        command.args(["run", "r", "--", "true"]).env("REDLOCK_SERVERS", &servers);
        let with = time(&mut command);
        alone.push(without);
        locked.push(with);
        more.push(with.saturating_sub(without));
    }
    let (alone, locked, more) = (median(alone), median(locked), median(more));
    if asked.is_some() {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("alone_ms={:.3} locked_ms={:.3} more_ms={:.3}", ms(alone), ms(locked), ms(more));
        return ExitCode::SUCCESS;
    }
    let ratio = locked.as_secs_f64() / alone.as_secs_f64();
    println!("true                        {alone:>10.2?}");
    println!("redlock run r -- true       {locked:>10.2?}  {ratio:.1} times as long");
    println!("difference                  {more:>10.2?}  the goal is {GOAL:?} at most");
    if more <= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.status().expect("it can be run");
    assert!(status.success(), "{status}");
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
