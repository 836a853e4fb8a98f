//! The machine on which the figures were taken, and how busy it was with other work.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::Outcome;

/// A second in the units of /proc/stat. It is a hundred on every Linux, whatever the frequency of its timer.
const TICKS: f64 = 100.0;

/// One line for each fact that a reader needs to judge the figures.
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

/// Returns an error if there is no server to start.
pub(crate) fn require_server() -> Outcome<()> {
    if server_version().is_empty() {
        return Err("redis-server was not found: the bench starts servers of its own".into());
    }
    Ok(())
}

/// The processor time used up to one moment by the whole machine, the servers, and a helper of the bench.
pub(crate) struct Usage {
    machine: u64,
    idle: u64,
    processes: u64,
    servers_ns: u64,
}

impl Usage {
    pub(crate) fn now(servers: impl Iterator<Item = u32>, bystander: Option<u32>) -> Self {
        let stat = read("/proc/stat");
        let ticks: Vec<u64> =
            stat.lines().next().unwrap_or("").split(' ').filter_map(|n| n.parse().ok()).collect();
        let servers: Vec<u32> = servers.collect();
        Self {
            machine: ticks.iter().take(8).sum(),
            idle: ticks.iter().skip(3).take(2).sum(),
            processes: servers.iter().copied().chain(bystander).map(ticks_of).sum(),
            servers_ns: servers.iter().copied().map(nanoseconds_of).sum(),
        }
    }

    /// The time that the servers have used since, in microseconds. NaN if the system does not say.
    pub(crate) fn servers_us_until(&self, now: &Self) -> f64 {
        match now.servers_ns.checked_sub(self.servers_ns) {
            None | Some(0) => f64::NAN,
            Some(ns) => ns as f64 / 1e3,
        }
    }

    /// The share of the machine, from 0 to 1, that others have used since. Does not include the servers, the
    /// helper, and one more process that reports its own time as `besides`.
    pub(crate) fn by_others_until(&self, now: &Self, besides: Duration) -> f64 {
        let all = (now.machine - self.machine) as f64;
        let idle = (now.idle - self.idle) as f64;
        let known =
            now.processes.saturating_sub(self.processes) as f64 + besides.as_secs_f64() * TICKS;
        ((all - idle - known) / all.max(1.0)).max(0.0)
    }
}

/// User and system time: the 14th and 15th field. They are counted from the end of the name, which may contain
/// blanks.
fn ticks_of(process: u32) -> u64 {
    let stat = read(format!("/proc/{process}/stat"));
    let behind_name = stat.rsplit(')').next().unwrap_or("");
    behind_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// The run time of all threads together, in nanoseconds. For this purpose, ticks are too coarse.
fn nanoseconds_of(process: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else {
        return 0;
    };
    let of_task = |task: fs::DirEntry| {
        let stat = read(task.path().join("schedstat"));
        stat.split(' ').next().and_then(|n| n.parse::<u64>().ok())
    };
    tasks.flatten().filter_map(of_task).sum()
}

/// The resident pages that belong only to the process, in KiB. Excludes its code and its shared mappings. NaN if
/// the system does not say.
pub(crate) fn private_memory(process: u32) -> f64 {
    let status = read(format!("/proc/{process}/status"));
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    let number = line.and_then(|l| l.trim().split(' ').next());
    number.and_then(|n| n.parse().ok()).unwrap_or(f64::NAN)
}

/// How many threads a process has. NaN if the system does not say.
pub(crate) fn threads(process: u32) -> f64 {
    fs::read_dir(format!("/proc/{process}/task")).map_or(f64::NAN, |tasks| tasks.count() as f64)
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

pub(crate) fn output(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).output();
    done.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
