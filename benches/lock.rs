//! How fast a lock is taken and released: beside a floor of bare sockets, beside other clients, by
//! one thread and by many, on healthy servers and with one of five in trouble.
//!
//! `make bench`, or `cargo bench --bench lock --` with
//!
//! - `--short`: a quick look, within a minute rather than ten
//! - `--only PARTS`: some of 5-servers, 3-servers, 1-server, contention, faults, footprint, with
//!   commas between them
//! - `--write FILE.md`: the report into that file, and the picture beside it
//!
//! The programs that are compared run in turn, round after round, each in a process of its own; a
//! goal is on the median over the rounds of the ratio within a round. Everything it starts it ends,
//! and everything that it writes outside of cargo's directory it removes.

mod support;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::time::Instant;

use support::Outcome;
use support::contenders::{Contenders, Who};
use support::footprint;
use support::machine;
use support::plan::Plan;
use support::process::catch_interrupts;
use support::report::{self, Measured};
use support::results::Results;
use support::schedule;

fn main() -> ExitCode {
    // Without it this is not a bench but `cargo test --all-targets`, which wants no figures.
    if !env::args().any(|a| a == "--bench") {
        return ExitCode::SUCCESS;
    }
    let Some(plan) = Plan::from_args() else {
        eprintln!("cargo bench --bench lock -- [--short] [--only PARTS] [--write FILE.md]");
        return ExitCode::FAILURE;
    };
    catch_interrupts();
    match measure(&plan).and_then(|measured| report::publish(&plan, &measured)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure(plan: &Plan) -> Outcome<Measured> {
    let start = Instant::now();
    machine::require_server()?;
    let dir = TemporaryDir::new()?;
    let contenders = Contenders::prepare()?;
    let mut results = Results::default();
    for who in Who::ALL {
        if let Some(why) = contenders.missing(who) {
            results.note_absence(who, why);
        }
    }

    // First, as it takes next to no time.
    let (mut calls, mut idle) = (None, Vec::new());
    if plan.wants("footprint") {
        let counted = footprint::calls(5, plan.counts(), &contenders, &dir.0);
        calls = results.tolerate("system calls", counted)?;
        for servers in [1, 5] {
            let seen = footprint::idle(servers, &contenders, &dir.0);
            idle.extend(results.tolerate("idle manager", seen)?);
        }
    }

    // What one part leaves of its time the others have.
    let parts = plan.parts();
    let all: f64 = parts.iter().map(|part| part.weight).sum();
    let begin = Instant::now();
    let time = plan.budget.saturating_sub(begin - start);
    let mut share = 0.0;
    for part in &parts {
        share += part.weight / all;
        schedule::run(part, begin + time.mul_f64(share), &contenders, &dir.0, &mut results)?;
    }
    Ok(Measured { results, calls, idle })
}

/// A directory of this run alone, removed when dropped.
struct TemporaryDir(PathBuf);

impl TemporaryDir {
    fn new() -> Outcome<Self> {
        let path = env::temp_dir().join(format!("redlock-bench-{}", process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        // Nobody is left to tell; what remains is a directory in the place for such.
        let _ = fs::remove_dir_all(&self.0);
    }
}
