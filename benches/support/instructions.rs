//! How many instructions a lock and its release take of the client, and how much memory it asks for: counted by valgrind,
//! so no other program on the machine matters. Only how many answers come together differs from run to run.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Outcome;
use super::contenders::{Contenders, Who};
use super::machine::output;
use super::servers::Servers;
use super::turns::Load;

const SERVERS: usize = 5;

/// What was counted when somebody last looked, and with which compiler and libc.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.txt");

/// So much more than recorded is a fault.
const MORE: f64 = 1.03;

/// With the goal for each. Only the last one is compared with what is recorded: with many calls in flight it does not
/// matter how many answers come together.
pub(crate) const LOADS: [(Load, f64); 3] =
    [(Load::Own(1), 32_000.0), (Load::InFlight(8), 24_000.0), (Load::InFlight(64), 20_000.0)];

const WHO: [Who; 3] = [Who::Ours, Who::Same, Who::Floor];

pub(crate) struct Instructions {
    /// For each load, the instructions of a cycle.
    pub(crate) all: Vec<(Load, Vec<(Who, f64)>)>,
    /// For the loads without and with many calls in flight: how often a cycle of ours asks for memory, and for how many
    /// bytes.
    pub(crate) memory: Vec<(Load, f64, f64)>,
}

/// The least of so many runs counts. A short look counts only what is compared with what is recorded.
pub(crate) fn count(
    runs: usize,
    is_short: bool,
    contenders: &Contenders,
    dir: &Path,
) -> Outcome<Instructions> {
    if output("valgrind", &["--version"]).is_empty() {
        return Err("needs valgrind".into());
    }
    let servers = Servers::start(SERVERS, dir)?;
    let mut all = Vec::new();
    let (loads, who) = if is_short { (&LOADS[2..], &WHO[..1]) } else { (&LOADS[..], &WHO[..]) };
    for &(load, _) in loads {
        let mut by = Vec::new();
        for &who in who {
            let mut least = f64::INFINITY;
            for _ in 0..runs {
                let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
                let of = |cycles| figures(who, load, cycles, tool, contenders, &servers);
                least = least.min(each(load, of)?[0]);
            }
            by.push((who, least));
        }
        all.push((load, by));
    }
    let mut memory = Vec::new();
    let with_memory = [LOADS[0].0, LOADS[2].0];
    for load in with_memory.into_iter().filter(|_| !is_short) {
        let tool = ["--tool=memcheck", "--undef-value-errors=no"];
        let of = |cycles| figures(Who::Ours, load, cycles, tool, contenders, &servers);
        let [times, _, bytes] = each(load, of)?[..] else {
            return Err("valgrind does not tell of the heap".into());
        };
        memory.push((load, times, bytes));
    }
    Ok(Instructions { all, memory })
}

/// The difference of a long run and a short one, for each cycle. It has no start and no end.
fn each(load: Load, of: impl Fn(usize) -> Outcome<Vec<f64>>) -> Outcome<Vec<f64>> {
    let few = 500 * load.workers().min(8);
    let (short, long) = (of(few)?, of(3 * few)?);
    let difference = |it: (&f64, &f64)| (it.1 - it.0) / (2 * few) as f64;
    Ok(short.iter().zip(&long).map(difference).collect())
}

/// The numbers in the line with which the tool sums up: the instructions; or the blocks that were asked for, those that
/// were given back, and the bytes that were asked for.
fn figures(
    who: Who,
    load: Load,
    cycles: usize,
    tool: [&str; 2],
    contenders: &Contenders,
    servers: &Servers,
) -> Outcome<Vec<f64>> {
    let program = contenders.command(who, load);
    let mut command = Command::new("valgrind");
    command.args(tool).arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (cycles, key) = (cycles.to_string(), format!("bench:instructions:{}", load.workers()));
    match load {
        Load::InFlight(calls) => {
            command.args(["exactly", &calls.to_string(), &key, &cycles]);
        }
        _ => {
            command.args(["exactly", &cycles, &key]);
        }
    }
    let done = command.args(servers.ports()).output()?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let line =
        |words: &str| said.lines().find_map(|line| Some(line.split_once(words)?.1.to_owned()));
    let sum = line("Collected :").or_else(|| line("total heap usage:"));
    let sum = sum.filter(|_| done.status.success());
    let sum = sum.ok_or_else(|| format!("{} under valgrind: {}", who.name(), done.status))?;
    let numbers = sum.split(' ').map(|word| word.replace(',', ""));
    Ok(numbers.filter_map(|word| word.parse().ok()).collect())
}

impl Instructions {
    /// Compares with what is recorded, or records it.
    pub(crate) fn judge(&self, records: bool) -> Outcome<()> {
        let counted = || self.all.iter().map(|(load, by)| (name(*load), by[0].1));
        if records {
            let lines: String =
                counted().map(|(load, count)| format!("{load}: {count:.0}\n")).collect();
            return Ok(fs::write(RECORDED, format!("{}\n{lines}", tools()))?);
        }
        let recorded = fs::read_to_string(RECORDED)?;
        if recorded.lines().next() != Some(&*tools()) {
            eprintln!("bench: the recorded instructions are those of other tools: {RECORDED}");
            return Ok(());
        }
        let (load, count) = counted().next_back().ok_or("nothing was counted")?;
        let before =
            recorded.lines().find_map(|line| line.strip_prefix(&*load)?.strip_prefix(": "));
        let before: f64 = before.ok_or("an incomplete record")?.parse()?;
        match count > MORE * before {
            true => Err(format!("{load}: {count:.0} instructions, recorded were {before}").into()),
            false => Ok(()),
        }
    }
}

pub(crate) fn name(load: Load) -> String {
    match load {
        Load::InFlight(calls) => format!("{calls} submitted calls in flight, 1 thread, 5 servers"),
        _ => "1 thread, 5 servers".to_owned(),
    }
}

/// What the counts depend on, beside our code.
fn tools() -> String {
    let first = |program, args: &[&str]| {
        output(program, args).lines().next().unwrap_or_default().to_owned()
    };
    let libc = first("ldd", &["--version"]);
    format!("{}; {libc}; {}", first("rustc", &["--version"]), first("valgrind", &["--version"]))
}
