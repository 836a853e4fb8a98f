//! The needs of one program besides time: memory and threads of an idle manager, and system calls.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::Outcome;
use super::contenders::{Contenders, Who};
use super::figures::{Figures, Spread};
use super::servers::Servers;
use super::talk::Talk;

const PATIENCE: Duration = Duration::from_secs(20);

/// The cycles of two runs of different length. Their difference is the cost of the additional cycles, without
/// start and end.
const FEW: u32 = 500;
const MANY: u32 = 1500;

pub(crate) struct Idle {
    pub(crate) servers: usize,
    pub(crate) kib: f64,
    pub(crate) threads: f64,
}

/// Returns the greatest of the measured values. They are taken right after connecting and after use, from the
/// heap's own count and from the process's pages.
pub(crate) fn idle(servers: usize, contenders: &Contenders, dir: &Path) -> Outcome<Idle> {
    let running = Servers::start(servers, dir)?;
    let mut talk = Talk::begin(contenders.with_library("idle").args(running.ports()))?;
    let figures = Figures::parse(&talk.hear(PATIENCE)?)?;
    let most = |names: &[&str]| names.iter().map(|n| figures.get(n)).fold(0.0, f64::max);
    let bytes = most(&["connected_heap", "used_heap", "connected_resident", "used_resident"]);
    let threads = most(&["connected_threads", "used_threads"]);
    Ok(Idle { servers, kib: (bytes / 1024.0).ceil(), threads })
}

/// How many submitted calls to measure.
const IN_FLIGHT: usize = 10_000;

/// Bytes of private memory for each of them.
pub(crate) struct InFlight {
    /// A call with its lease, when the calls wait for a hundred resources.
    pub(crate) call: f64,
    /// A call with its lease, when each call waits for a resource of its own.
    pub(crate) alone: f64,
    /// A lease without a call.
    pub(crate) lease: f64,
}

/// Each measurement uses a process of its own. Otherwise the next one would reuse memory that was returned to the
/// heap.
pub(crate) fn in_flight(contenders: &Contenders, dir: &Path) -> Outcome<InFlight> {
    const KEY: &str = "bench:inflight";
    let running = Servers::start(5, dir)?;
    running.occupy(KEY, IN_FLIGHT)?;
    let resident = |leases: usize, calls: usize, resources: usize| -> Outcome<f64> {
        let mut command = contenders.with_library("inflight");
        command.args([leases, calls, resources].map(|n| n.to_string())).arg(KEY);
        let mut talk = Talk::begin(command.args(running.ports()))?;
        let figures = Figures::parse(&talk.hear(PATIENCE)?)?;
        if figures.get("waiting") < calls as f64 {
            return Err("calls for resources that are taken have ended".into());
        }
        Ok(figures.get("resident"))
    };
    let nothing = resident(0, 0, 1)?;
    let each = |all: f64| (all - nothing) / IN_FLIGHT as f64;
    Ok(InFlight {
        call: each(resident(IN_FLIGHT, IN_FLIGHT, 100)?),
        alone: each(resident(IN_FLIGHT, IN_FLIGHT, IN_FLIGHT)?),
        lease: each(resident(IN_FLIGHT, 0, 1)?),
    })
}

pub(crate) struct Calls {
    pub(crate) by: Vec<(Who, f64)>,
    /// The library compared with the floor.
    pub(crate) ratio: Option<Spread>,
}

/// System calls per cycle on this many servers.
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
