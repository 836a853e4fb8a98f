//! Kept locks: what keeping them costs, whether a lock is lost while single servers fail, and whether the loss is
//! reported in time when a majority dies.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Outcome;
use super::contenders::Contenders;
use super::figures::Figures;
use super::process::go_on;
use super::servers::Servers;
use super::talk::Talk;

const SERVERS: usize = 5;

const LOCKS: usize = 10_000;
const TTL: Duration = Duration::from_secs(10);

/// The TTL of locks whose servers die. It is short, so that a tenth of it is little.
const SHORT_TTL: Duration = Duration::from_secs(2);

/// How often a lock is renewed during a TTL.
const RENEWALS: f64 = 3.0;

const PATIENCE: Duration = Duration::from_secs(60);

/// One server is frozen, and another one is killed and comes back, within about this time.
const SPELL: Duration = Duration::from_secs(40);

pub(crate) struct Kept {
    /// The share of one processor that the program used while all servers were healthy.
    pub(crate) cpu: f64,
    /// Renewals that the servers received, as a share of those that were due.
    pub(crate) renewals: f64,
    /// Requests other than renewals.
    pub(crate) others: f64,
    pub(crate) lost: f64,
    /// For how long servers failed.
    pub(crate) during: Duration,
}

pub(crate) struct Deaths {
    pub(crate) trials: f64,
    /// Locks for which no event reported the loss while a tenth of the TTL was left.
    pub(crate) late: f64,
    /// The shortest remaining time when a loss was reported, as a share of the TTL.
    pub(crate) least: f64,
}

pub(crate) fn keep(length: Duration, contenders: &Contenders, dir: &Path) -> Outcome<Kept> {
    let mut servers = Servers::start(SERVERS, dir)?;
    // Renewals are spread over time and do not happen all at once.
    let mut talk = begin(contenders, &servers, LOCKS, TTL, TTL / 3)?;
    // Until each lock was renewed once. After that, each lock keeps its place in the cycle.
    pause(TTL / 3)?;
    ask(&mut talk, "figures")?;
    let (renewals, others) = servers.renewals()?;
    pause((length / 4).clamp(Duration::from_secs(7), Duration::from_secs(60)))?;
    let quiet = ask(&mut talk, "figures")?;
    let after = servers.renewals()?;
    let due = (LOCKS * SERVERS) as f64 * quiet.get("seconds") * RENEWALS / TTL.as_secs_f64();

    eprintln!("bench: kept locks, {} s with faults", length.as_secs());
    let spells = (length.as_secs_f64() / SPELL.as_secs_f64()).round().max(1.0) as usize;
    for number in 0..spells {
        spell(&mut servers, number, length / spells as u32, dir)?;
    }
    let end = ask(&mut talk, "end")?;
    Ok(Kept {
        cpu: quiet.get("busy_us") / 1e6 / quiet.get("seconds"),
        renewals: (after.0 - renewals) as f64 / due,
        others: (after.1 - others) as f64,
        lost: end.get("lost") + end.get("refused"),
        during: length,
    })
}

/// For a while, three of five servers are left. Then there is time to set lost keys again.
fn spell(servers: &mut Servers, number: usize, length: Duration, dir: &Path) -> Outcome<()> {
    let (frozen, killed) = (number % SERVERS, (number + 1 + number / SERVERS % 4) % SERVERS);
    servers.freeze(frozen);
    pause(length / 10)?;
    servers.kill(killed);
    pause(length / 4)?;
    servers.restart(killed, dir)?;
    pause(length * 3 / 10)?;
    servers.thaw(frozen);
    pause(length * 7 / 20)
}

/// Kills a majority `rounds` times, under `locks` locks each time. Each lock is a trial.
pub(crate) fn deaths(
    (rounds, locks): (usize, usize),
    contenders: &Contenders,
    dir: &Path,
) -> Outcome<Deaths> {
    let mut all = Deaths { trials: 0.0, late: 0.0, least: 1.0 };
    for round in 0..rounds {
        eprintln!("bench: a majority dies, {} of {rounds}", round + 1);
        let servers = Servers::start(SERVERS, dir)?;
        let mut talk = begin(contenders, &servers, locks, SHORT_TTL, SHORT_TTL / 3)?;
        // Each round, at another moment between two renewals.
        pause(SHORT_TTL / 3 + SHORT_TTL / 3 * round as u32 / rounds as u32)?;
        let victims = [0, 1, 2].map(|n| (round + n) % SERVERS);
        match round % 3 {
            0 => victims.iter().for_each(|it| servers.kill(*it)),
            1 => victims.iter().for_each(|it| servers.freeze(*it)),
            _ => {
                // One after the other, in different ways.
                servers.kill(victims[0]);
                pause(SHORT_TTL / 4)?;
                servers.freeze(victims[1]);
                pause(SHORT_TTL / 4)?;
                servers.kill(victims[2]);
            }
        }
        // The bench must not talk to the program during this time, because that would wake it.
        pause(SHORT_TTL * 3 / 2)?;
        let figures = ask(&mut talk, "figures")?;
        let untold = locks as f64 - figures.get("lost");
        all.trials += locks as f64;
        all.late += figures.get("late") + untold;
        all.least = if untold > 0.0 { 0.0 } else { all.least.min(figures.get("least_share")) };
    }
    Ok(all)
}

/// Returns when all locks are kept.
fn begin(
    contenders: &Contenders,
    servers: &Servers,
    locks: usize,
    ttl: Duration,
    spread: Duration,
) -> Outcome<Talk> {
    let mut command = contenders.with_library("kept");
    command.args([&locks.to_string(), "bench:kept"]);
    command.args([ttl, spread].map(|it| it.as_millis().to_string())).args(servers.ports());
    let mut talk = Talk::begin(&mut command)?;
    talk.expect("ready", PATIENCE)?;
    Ok(talk)
}

fn ask(talk: &mut Talk, line: &str) -> Outcome<Figures> {
    talk.say(line)?;
    Figures::parse(&talk.hear(PATIENCE)?)
}

/// Checks now and then whether the user wants to end the bench.
fn pause(length: Duration) -> Outcome<()> {
    let end = Instant::now() + length;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        go_on()?;
        thread::sleep(left.min(Duration::from_millis(100)));
    }
    Ok(())
}
