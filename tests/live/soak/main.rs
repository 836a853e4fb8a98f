//! The soak: workers of many kinds lock and count on five servers, with random faults of every allowed kind.
//! Then their logs are checked. `make soak MINUTES=30` runs it for long.
//!
//! By default it is short. Environment variables change it: `REDLOCK_MINUTES`, `REDLOCK_SEED`, and
//! `REDLOCK_LAWLESS=1` for servers that forget.

#[allow(dead_code)]
#[path = "../../support/history/mod.rs"]
mod history;
#[path = "../../support/mod.rs"]
mod support;

mod board;
mod dice;
mod fleet;
mod ground;
mod journal;
mod plan;
mod report;
mod run;
mod storm;
mod workshop;

use std::sync::{Mutex, MutexGuard, PoisonError};

use history::Rule;
use plan::Plan;

/// The maximum number of seeds until servers that forget are detected. One has always been enough.
const LAWLESS_SEEDS: u64 = 5;

#[test]
fn permitted_faults_do_not_break_the_promise() {
    let _alone = alone();
    succeed(&Plan::short());
}

#[test]
fn forgetful_servers_are_detected() {
    let _alone = alone();
    let plan = Plan::short_and_lawless();
    let mut seeds = (0..LAWLESS_SEEDS).map(|more| Plan { seed: plan.seed + more, ..plan });
    let finds = |plan: Plan| {
        let report = run::run(&plan);
        println!("{}", report.line());
        report.counts(Rule::Overlap) > 0 && report.counts(Rule::LostUpdate) > 0
    };
    assert!(seeds.any(finds), "two may hold a lock, and nobody sees it");
}

#[test]
fn the_worker_is_clean_c() {
    for compiler in ["gcc", "clang"] {
        workshop::compile(compiler);
    }
}

/// `make soak` runs this.
#[test]
#[ignore = "it takes as long as it is told to"]
fn soak() {
    let _alone = alone();
    succeed(&Plan::from_environment());
}

fn succeed(plan: &Plan) {
    let report = run::run(plan);
    println!("{}", report.line());
    assert!(report.is_clean(), "{}", report.violations());
}

/// One at a time, because each needs all the power of a small machine.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
