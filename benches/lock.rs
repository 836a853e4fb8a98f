//! How fast a lock is taken and released: beside a floor of bare sockets, beside itself with one
//! of five servers frozen or killed, and what an idle manager takes up.
//!
//! `cargo bench --bench lock`, or with `-- --short` for a quick look. The programs that are
//! compared run in turn, round after round, each in a process of its own; a goal is on the median
//! over the rounds of the ratio within a round, so that a machine that is slower for a while is so
//! for both. Everything it starts it ends, and everything it writes it removes.

mod support;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::Duration;

use support::Outcome;
use support::figures::{Figures, Spread, Table};
use support::machine::{self, Usage};
use support::process::catch_interrupts;
use support::programs::Program;
use support::servers::Servers;

const SERVERS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(500);

/// A round in which others used more of the machine than this is measured again if time allows.
const BUSY: f64 = 0.08;

const LOCK: [(&str, &str); 2] =
    [("lock, median", "lock_p50_us"), ("lock, 99th percentile", "lock_p99_us")];
const UNLOCK: [(&str, &str); 2] =
    [("unlock, median", "unlock_p50_us"), ("unlock, 99th percentile", "unlock_p99_us")];

fn main() -> ExitCode {
    // Without it this is not a bench but `cargo test --all-targets`, which wants no figures.
    if !env::args().any(|a| a == "--bench") {
        return ExitCode::SUCCESS;
    }
    catch_interrupts();
    match bench(&Plan::from_args()) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Plan {
    rounds: usize,
    run: Duration,
    command: &'static str,
}

impl Plan {
    fn from_args() -> Self {
        if env::args().any(|a| a == "--short") {
            let command = "cargo bench --bench lock -- --short";
            return Self { rounds: 3, run: Duration::from_secs(1), command };
        }
        Self { rounds: 7, run: Duration::from_secs(2), command: "cargo bench --bench lock" }
    }
}

fn bench(plan: &Plan) -> Outcome<String> {
    machine::require_server()?;
    let dir = TemporaryDir::new()?;
    let floor = Program::floor(&dir.0)?;
    let ours = Program::ours(&dir.0)?;
    let mut table = Table::new();

    let beside_floor = measure_beside_floor(plan, &floor, &ours, &dir.0)?;
    let with_faults = measure_faults(plan, &ours, &dir.0)?;
    report_beside_floor(&mut table, &beside_floor);
    report_faults(&mut table, &with_faults);
    report_failures(&mut table, &[&beside_floor, &with_faults]);
    for count in [1, SERVERS] {
        report_idle(&mut table, &ours, count, &dir.0)?;
    }
    Ok(format!(
        "{}\n{}\n- Command: `{}`: {} rounds of {} s, {SERVERS} servers on this machine, one thread\n\
         - {}\n",
        table.text(),
        machine::description(),
        plan.command,
        plan.rounds,
        plan.run.as_secs(),
        disturbance(&[&beside_floor, &with_faults]),
    ))
}

/// One turn of every contender, in the order in which they are compared.
struct Round {
    turns: Vec<Figures>,
    by_others: f64,
}

fn measure_beside_floor(
    plan: &Plan,
    floor: &Program,
    ours: &Program,
    dir: &Path,
) -> Outcome<Vec<Round>> {
    let servers = Servers::start(SERVERS, dir)?;
    rounds("beside the floor", plan, 2, |key, turn, _| {
        let program = [floor, ours][turn];
        run(program, key, plan, &servers, || ())
    })
}

/// Fresh servers for each turn, and each of the five gets its turn to fail.
fn measure_faults(plan: &Plan, ours: &Program, dir: &Path) -> Outcome<Vec<Round>> {
    rounds("healthy, frozen, killed", plan, 3, |key, turn, round| {
        let servers = Servers::start(SERVERS, dir)?;
        let victim = round % SERVERS;
        run(ours, key, plan, &servers, || match turn {
            0 => {}
            1 => servers.freeze(victim),
            _ => servers.kill(victim),
        })
    })
}

/// As many rounds as planned. Some more where others use the machine: the quietest ones count.
fn rounds(
    what: &str,
    plan: &Plan,
    contenders: usize,
    mut turn: impl FnMut(&str, usize, usize) -> Outcome<(Figures, f64)>,
) -> Outcome<Vec<Round>> {
    let mut all: Vec<Round> = Vec::new();
    let most = plan.rounds + plan.rounds / 2;
    while all.len() < most && all.iter().filter(|r| r.by_others <= BUSY).count() < plan.rounds {
        eprintln!("{what}: round {} ({} planned)", all.len() + 1, plan.rounds);
        all.push(one_round(all.len(), contenders, &mut turn)?);
    }
    all.sort_by(|a, b| a.by_others.total_cmp(&b.by_others));
    all.truncate(plan.rounds);
    Ok(all)
}

/// Each round another contender begins: who runs first must not matter.
fn one_round(
    round: usize,
    contenders: usize,
    turn: &mut impl FnMut(&str, usize, usize) -> Outcome<(Figures, f64)>,
) -> Outcome<Round> {
    let mut turns: Vec<Option<Figures>> = (0..contenders).map(|_| None).collect();
    let mut by_others: f64 = 0.0;
    for place in 0..contenders {
        let who = (round + place) % contenders;
        // A key for each turn, all of one length: no turn meets what another has left.
        let key = format!("bench:lock:{round:03}:{who}");
        let (figures, others) = turn(&key, who, round)?;
        turns[who] = Some(figures);
        by_others = by_others.max(others);
    }
    Ok(Round { turns: turns.into_iter().flatten().collect(), by_others })
}

/// One turn, with the share of the machine that others used in it.
fn run(
    program: &Program,
    key: &str,
    plan: &Plan,
    servers: &Servers,
    fault: impl FnOnce(),
) -> Outcome<(Figures, f64)> {
    let mut before = None;
    let figures = program.cycle(key, (WARM_UP, plan.run), servers.ports(), || {
        fault();
        before = Some(Usage::now(servers.processes()));
    })?;
    let after = Usage::now(servers.processes());
    let its_own = figures.get("cpu_us") * figures.get("cycles") / 1e6;
    let its_own = Duration::try_from_secs_f64(its_own).unwrap_or_default();
    let by_others = before.map_or(0.0, |before| before.by_others_until(&after, its_own));
    Ok((figures, by_others))
}

fn report_beside_floor(table: &mut Table, rounds: &[Round]) {
    let [(lock, lock_name), (slow_lock, slow_lock_name)] = LOCK;
    let [(unlock, unlock_name), (slow_unlock, slow_unlock_name)] = UNLOCK;
    for (what, name, goal) in [
        (lock, lock_name, Some(1.15)),
        (unlock, unlock_name, Some(1.15)),
        ("processor time of a cycle", "cpu_us", Some(1.25)),
        (slow_lock, slow_lock_name, None),
        (slow_unlock, slow_unlock_name, None),
    ] {
        compare(table, what, rounds, name, (1, 0, "floor"), goal);
    }
}

fn report_faults(table: &mut Table, rounds: &[Round]) {
    for (turn, fault) in [(1, "frozen"), (2, "killed")] {
        for (what, name) in LOCK.into_iter().chain(UNLOCK) {
            let what = format!("one of five {fault}: {what}");
            compare(table, &what, rounds, name, (turn, 0, "healthy"), Some(1.10));
        }
    }
}

fn compare(
    table: &mut Table,
    what: &str,
    rounds: &[Round],
    name: &str,
    (ours, beside, other): (usize, usize, &str),
    goal: Option<f64>,
) {
    let of = |turn: usize| Spread::of(rounds.iter().map(|r| r.turns[turn].get(name)));
    let ratio = rounds.iter().map(|r| r.turns[ours].get(name) / r.turns[beside].get(name));
    table.ratio(what, (of(ours), of(beside), other), Spread::of(ratio), goal);
}

/// Speed is worth nothing where the lock was not had.
fn report_failures(table: &mut Table, parts: &[&[Round]]) {
    let turns = parts.iter().flat_map(|rounds| rounds.iter()).flat_map(|r| &r.turns);
    let failed: f64 = turns.map(|figures| figures.get("failed")).sum();
    table.amount("cycles that failed, all runs", failed, "", 0.0);
}

/// What counts is the most of it: right after connecting or after use, in the books of the heap or
/// in the pages that the process has.
fn report_idle(table: &mut Table, ours: &Program, count: usize, dir: &Path) -> Outcome<()> {
    let servers = Servers::start(count, dir)?;
    let idle = ours.idle(servers.ports())?;
    let most = |names: &[&str]| names.iter().map(|n| idle.get(n)).fold(0.0, f64::max);
    let bytes = most(&["connected_heap", "used_heap", "connected_resident", "used_resident"]);
    let threads = most(&["connected_threads", "used_threads"]);
    let of_servers = if count == 1 { "1 server".to_owned() } else { format!("{count} servers") };
    let goal = 64.0 + 32.0 * count as f64;
    table.amount(
        &format!("idle manager, {of_servers}: memory"),
        (bytes / 1024.0).ceil(),
        "KiB",
        goal,
    );
    table.amount(&format!("idle manager, {of_servers}: threads"), threads, "", 0.0);
    Ok(())
}

/// For the reader to judge the rest by: on a busy machine the slowest hundredth is not ours.
fn disturbance(parts: &[&[Round]]) -> String {
    let shares: Vec<f64> = parts.iter().flat_map(|r| r.iter()).map(|r| r.by_others).collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let disturbed = shares.iter().filter(|&&it| it > BUSY).count();
    format!(
        "Other programs used up to {:.0} % of the machine meanwhile, and more than {:.0} % in \
         {disturbed} of {} rounds",
        most * 100.0,
        BUSY * 100.0,
        shares.len(),
    )
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
