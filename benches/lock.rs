//! How fast a lock is taken and released. Compares with a floor of bare sockets and with other clients. Uses one
//! thread and many, on healthy servers and with one of five in trouble.
//!
//! `make bench`, or `cargo bench --bench lock --` with
//!
//! - `--short`: a quick look, within four minutes rather than a quarter of an hour
//! - `--only PARTS`: some of 5-servers, 3-servers, 1-server, contention, contention-3, woken, waiting, kinds, faults,
//!   network, footprint, instructions, submitted, command, kept, lost, waiters, with commas between them
//! - `--record`: records the counted instructions, with which later runs are compared
//! - `--kept SECONDS`: how long locks are kept while servers fail (20 with --short, else 40)
//! - `--write FILE.md`: writes the report into that file, and the picture beside it
//!
//! The compared programs run in turn, round after round, each in a process of its own. A goal applies to the
//! median, over the rounds, of the ratio within a round. The bench ends everything that it starts, and removes
//! everything that it writes outside of cargo's directory.

mod support;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::time::Instant;

use support::Outcome;
use support::command;
use support::contenders::{Contenders, Who};
use support::footprint;
use support::instructions;
use support::kept;
use support::machine;
use support::plan::Plan;
use support::process::catch_interrupts;
use support::report::{self, Measured};
use support::results::Results;
use support::schedule;
use support::waiters;
use support::waiting;

fn main() -> ExitCode {
    // Without `--bench`, this is run by `cargo test --all-targets`, which needs no figures.
    if !env::args().any(|a| a == "--bench") {
        return ExitCode::SUCCESS;
    }
    let Some(plan) = Plan::from_args() else {
        eprintln!(
            "cargo bench --bench lock -- [--short] [--only PARTS] [--record] [--kept SECONDS] [--write FILE.md]"
        );
        return ExitCode::FAILURE;
    };
    catch_interrupts();
    match measure(&plan).and_then(|measured| conclude(&plan, &measured)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn conclude(plan: &Plan, measured: &Measured) -> Outcome<()> {
    report::publish(plan, measured)?;
    measured.instructions.as_ref().map_or(Ok(()), |it| it.judge(plan.record))
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

    // First, because it takes next to no time.
    let (mut calls, mut idle, mut in_flight) = (None, Vec::new(), None);
    if plan.wants("footprint") {
        let counted = footprint::calls(5, plan.counts(), &contenders, &dir.0);
        calls = results.tolerate("system calls", counted)?;
        for servers in [1, 5] {
            let seen = footprint::idle(servers, &contenders, &dir.0);
            idle.extend(results.tolerate("idle manager", seen)?);
        }
        let seen = footprint::in_flight(&contenders, &dir.0);
        in_flight = results.tolerate("memory of a call in flight", seen)?;
    }

    let mut instructions = None;
    if plan.wants("instructions") {
        let counted = instructions::count(plan.counts(), plan.short, &contenders, &dir.0);
        instructions = results.tolerate("instructions", counted)?;
    }

    // If a part does not use all of its time, the other parts get the rest.
    let parts = plan.parts();
    let all: f64 = parts.iter().map(|part| part.weight).sum();
    let begin = Instant::now();
    let time = plan.budget.saturating_sub(begin - start);
    let mut share = 0.0;
    for part in &parts {
        share += part.weight / all;
        schedule::run(part, begin + time.mul_f64(share), &contenders, &dir.0, &mut results)?;
    }

    // These parts have no time limit.
    let (mut kept, mut deaths, mut waiters) = (None, None, Vec::new());
    let (mut waiting, mut command) = (None, None);
    if plan.wants("waiting") {
        let seen = waiting::measure(&contenders, &dir.0);
        waiting = results.tolerate("a waiter for ten seconds", seen)?;
    }
    if plan.wants("command") {
        command = results.tolerate("the command", command::measure(plan.short))?;
    }
    if plan.wants("waiters") {
        for kind in waiters::Kind::ALL {
            let seen = waiters::measure(kind, &contenders, &dir.0);
            waiters.extend(results.tolerate(kind.name(), seen)?);
        }
    }
    if plan.wants("lost") {
        let seen = kept::deaths(plan.deaths(), &contenders, &dir.0);
        deaths = results.tolerate("a majority that dies", seen)?;
    }
    if plan.wants("kept") {
        let seen = kept::keep(plan.kept, &contenders, &dir.0);
        kept = results.tolerate("kept locks", seen)?;
    }
    Ok(Measured {
        results,
        instructions,
        calls,
        idle,
        in_flight,
        kept,
        deaths,
        waiters,
        waiting,
        command,
    })
}

/// A directory for this run only, removed when dropped.
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
        // An error has no receiver here. At worst, a directory is left in the place for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
