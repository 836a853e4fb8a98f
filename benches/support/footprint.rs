//! What a single program takes up besides time: memory and threads of an idle manager, and system
//! calls.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::Outcome;
use super::contenders::{Contenders, Who};
use super::figures::{Figures, Spread};
use super::servers::Servers;
use super::talk::Talk;

const PATIENCE: Duration = Duration::from_secs(20);

/// Two runs of different length: what they differ in is what so many cycles cost, without start
/// and end.
const FEW: u32 = 500;
const MANY: u32 = 1500;

pub(crate) struct Idle {
    pub(crate) servers: usize,
    pub(crate) kib: f64,
    pub(crate) threads: f64,
}

/// What counts is the most of it: right after connecting or after use, in the books of the heap or
/// in the pages that the process has.
pub(crate) fn idle(servers: usize, contenders: &Contenders, dir: &Path) -> Outcome<Idle> {
    let running = Servers::start(servers, dir)?;
    let mut talk = Talk::begin(contenders.with_library("idle").args(running.ports()))?;
    let figures = Figures::parse(&talk.hear(PATIENCE)?)?;
    let most = |names: &[&str]| names.iter().map(|n| figures.get(n)).fold(0.0, f64::max);
    let bytes = most(&["connected_heap", "used_heap", "connected_resident", "used_resident"]);
    let threads = most(&["connected_threads", "used_threads"]);
    Ok(Idle { servers, kib: (bytes / 1024.0).ceil(), threads })
}

pub(crate) struct Calls {
    pub(crate) by: Vec<(Who, f64)>,
    /// Ours beside the floor.
    pub(crate) ratio: Option<Spread>,
}

/// System calls of a cycle, on so many servers.
pub(crate) fn calls(
    servers: usize,
    rounds: usize,
    contenders: &Contenders,
    dir: &Path,
) -> Outcome<Calls> {
    let running = Servers::start(servers, dir)?;
    let mut who = vec![Who::Ours, Who::Floor, Who::Serial];
    who.retain(|who| contenders.missing(*who).is_none());
    let mut counted: Vec<Vec<f64>> = vec![Vec::new(); who.len()];
    for round in 0..rounds {
        for (who, counted) in who.iter().zip(&mut counted) {
            let key = format!("bench:calls:{round:02}:{}", who.name());
            let few = count(FEW, &key, *who, contenders, &running)?;
            let many = count(MANY, &key, *who, contenders, &running)?;
            counted.push((many - few) / f64::from(MANY - FEW));
        }
    }
    let ratio = Spread::of(counted[0].iter().zip(&counted[1]).map(|(ours, floor)| ours / floor));
    let median = |all: Vec<f64>| Spread::of(all.into_iter()).map(|spread| spread.median);
    let by = who.into_iter().zip(counted.into_iter().filter_map(median)).collect();
    Ok(Calls { by, ratio })
}

fn count(
    cycles: u32,
    key: &str,
    who: Who,
    contenders: &Contenders,
    servers: &Servers,
) -> Outcome<f64> {
    let watched = contenders.program(who, 1);
    let mut command = Command::new(contenders.programs.path("syscalls"));
    command
        .arg(watched.get_program())
        .envs(watched.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .args(["exactly", &cycles.to_string(), key])
        .args(servers.ports());
    let mut talk = Talk::begin(&mut command)?;
    Ok(Figures::parse(&talk.hear(PATIENCE)?)?.get("calls"))
}
