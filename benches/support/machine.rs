//! What the figures were taken on, and how busy it was with other things.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::Outcome;

/// A second in the units of /proc/stat: a hundred on every Linux, whatever its timer.
const TICKS: f64 = 100.0;

/// A line for each thing that a reader must know to judge the figures.
pub(crate) fn description() -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    format!(
        "- Machine: {}, {cores} processors, Linux {}\n- Date: {}\n- Servers: {}",
        model(),
        read("/proc/sys/kernel/osrelease").trim(),
        output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
        server_version(),
    )
}

/// An error where there is no server to start.
pub(crate) fn require_server() -> Outcome<()> {
    if server_version().is_empty() {
        return Err("redis-server was not found: the bench starts servers of its own".into());
    }
    Ok(())
}

/// The processor time that the whole machine and some processes had used at one moment.
pub(crate) struct Usage {
    machine: u64,
    idle: u64,
    processes: u64,
}

impl Usage {
    pub(crate) fn now(processes: impl Iterator<Item = u32>) -> Self {
        let stat = read("/proc/stat");
        let ticks: Vec<u64> =
            stat.lines().next().unwrap_or("").split(' ').filter_map(|n| n.parse().ok()).collect();
        Self {
            machine: ticks.iter().take(8).sum(),
            idle: ticks.iter().skip(3).take(2).sum(),
            processes: processes.map(ticks_of).sum(),
        }
    }

    /// The share of the machine, from 0 to 1, that has since been used by neither these processes
    /// nor the one whose own account of itself is `besides`.
    pub(crate) fn by_others_until(&self, now: &Self, besides: Duration) -> f64 {
        let all = (now.machine - self.machine) as f64;
        let idle = (now.idle - self.idle) as f64;
        let known = (now.processes - self.processes) as f64 + besides.as_secs_f64() * TICKS;
        ((all - idle - known) / all.max(1.0)).max(0.0)
    }
}

/// User and system time: the 14th and 15th field, counted behind the name, which may hold blanks.
fn ticks_of(process: u32) -> u64 {
    let stat = read(&format!("/proc/{process}/stat"));
    let behind_name = stat.rsplit(')').next().unwrap_or("");
    behind_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
}

fn model() -> String {
    let cpus = read("/proc/cpuinfo");
    let line = cpus.lines().find(|l| l.starts_with("model name"));
    line.and_then(|l| l.split_once(": ")).map_or("unknown processor", |(_, m)| m).to_owned()
}

fn server_version() -> String {
    let line = output("redis-server", &["--version"]);
    let version = line.split(' ').find_map(|w| w.strip_prefix("v="));
    version.map_or_else(String::new, |v| format!("redis-server {v}"))
}

fn output(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).output();
    done.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
