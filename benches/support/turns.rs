//! A turn: one contender under one load, on a number of servers, one of which may have a fault.

use std::time::Duration;

use super::Outcome;
use super::contenders::{Contenders, Who};
use super::figures::Figures;
use super::machine::{Usage, private_memory};
use super::servers::{Sent, Server, Servers};
use super::talk::{Hung, Talk};

/// How long a program may take to start. Also how much longer than told it may run before it counts as hung.
const GRACE: Duration = Duration::from_secs(5);

/// With a fault, the only question is whether there is an answer at all. This needs less patience.
const GRACE_IN_FAULT: Duration = Duration::from_secs(3);

/// How late a slow server answers, and how exactly: it shares the machine with the measured programs.
const SLOW: Duration = Duration::from_millis(5);
const TICK: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Load {
    /// This many workers, with a resource each.
    Own(usize),
    /// This many submitted calls at a time by one thread, with a resource each. Contenders without submitted
    /// calls use threads or tasks.
    InFlight(usize),
    /// One worker, which also extends each lock, if it can.
    Extending,
    /// One worker with several kinds of locks, a few of each in turn.
    Kinds,
    /// One worker that names its servers by their addresses, or by Sentinels with and without the failover guard, a few
    /// locks of each in turn.
    Watched,
    /// The same, by their addresses or by tags of a cluster.
    Clustered,
    /// Managers that connect, with and without the guard against servers that forget.
    Connecting,
    /// This many workers with a resource each, together with as many readers.
    Writers(usize),
    /// This many workers that share one resource.
    Readers(usize),
    /// Processes that each take a permit at the same moment.
    Permits(Permits),
    /// This many processes that each wait for two seconds before they are woken.
    Woken(usize),
    /// Threads or tasks that all want the same resource.
    Threads(usize),
    /// Processes that all want the same resource.
    Processes(usize),
}

/// How many permits a semaphore has, how many are held, and how many processes take one at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Permits {
    pub(crate) all: usize,
    pub(crate) held: usize,
    pub(crate) at_once: usize,
}

impl Load {
    pub(crate) fn workers(self) -> usize {
        match self {
            Self::Own(count)
            | Self::InFlight(count)
            | Self::Writers(count)
            | Self::Readers(count)
            | Self::Woken(count)
            | Self::Threads(count)
            | Self::Processes(count) => count,
            Self::Permits(permits) => permits.at_once,
            Self::Extending | Self::Kinds | Self::Watched | Self::Clustered | Self::Connecting => 1,
        }
    }

    fn mode(self) -> &'static str {
        if self.is_contended() { "contend" } else { "cycles" }
    }

    fn is_contended(self) -> bool {
        matches!(self, Self::Threads(_) | Self::Processes(_))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    None,
    /// Stopped: the server stays connected, but does not answer.
    Frozen,
    Killed,
    /// The server answers five milliseconds late.
    Slow,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    pub(crate) who: Who,
    pub(crate) servers: usize,
    pub(crate) load: Load,
    pub(crate) fault: Fault,
    /// How much later the replies of all servers come than on this machine.
    pub(crate) far: Duration,
    /// Whether the servers are started for this turn only, as for a turn with a fault.
    pub(crate) fresh: bool,
}

impl Turn {
    pub(crate) fn by(self, who: Who) -> Self {
        Self { who, ..self }
    }

    fn is_contended(self) -> bool {
        self.load.is_contended()
    }
}

/// How long to warm up, and to measure.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) warm: Duration,
    pub(crate) run: Duration,
}

pub(crate) enum End {
    Figures(Figures),
    Hung,
    Failed(String),
}

pub(crate) struct Record {
    pub(crate) round: usize,
    /// The share of the machine that others used during the turn.
    pub(crate) by_others: f64,
    pub(crate) end: End,
}

/// A contender that fails or hangs is a result, too.
pub(crate) fn take(
    turn: Turn,
    round: usize,
    key: &str,
    times: Times,
    contenders: &Contenders,
    servers: &Servers,
) -> Outcome<Record> {
    let mut by_others = 0.0;
    let end = match run(turn, round, key, times, contenders, servers) {
        Ok((figures, others)) => {
            by_others = others;
            End::Figures(figures)
        }
        Err(why) => {
            super::process::go_on()?;
            if why.is::<Hung>() { End::Hung } else { End::Failed(why.to_string()) }
        }
    };
    Ok(Record { round, by_others, end })
}

fn run(
    turn: Turn,
    round: usize,
    key: &str,
    times: Times,
    contenders: &Contenders,
    servers: &Servers,
) -> Outcome<(Figures, f64)> {
    // Each server fails in turn.
    let victim = round % turn.servers;
    let delayed = match turn.fault {
        Fault::Slow => victim..victim + 1,
        _ if turn.far > Duration::ZERO => 0..turn.servers,
        _ => 0..0,
    };
    let late = if turn.fault == Fault::Slow { [SLOW, TICK] } else { [turn.far, Duration::ZERO] };
    let mut ports = servers.ports();
    let slow = match delayed.is_empty() {
        true => None,
        false => Some(servers.delay(delayed.clone(), late, contenders)?),
    };
    if let Some(slow) = &slow {
        ports[delayed].clone_from_slice(&slow.ports);
    }
    let sentinels = match turn.load {
        Load::Watched => servers.watch_all()?,
        _ => Vec::new(),
    };
    let cluster = (turn.load == Load::Clustered).then(|| servers.cluster()).transpose()?;
    let beside = match &cluster {
        Some(it) => vec!["--clustered".to_owned(), it.ports()],
        None => watched_by(&sentinels),
    };
    let mut talk = Talk::begin(&mut command(turn, key, times, contenders, &beside, &ports))?;
    talk.expect("ready", times.warm + GRACE)?;
    let memory = private_memory(talk.process_id());
    talk.say("go")?;
    talk.expect("running", GRACE)?;
    match turn.fault {
        Fault::Frozen => servers.freeze(victim),
        Fault::Killed => servers.kill(victim),
        Fault::None | Fault::Slow => {}
    }
    let bystander = slow.as_ref().map(super::servers::Delay::process_id);
    let before = Usage::now(servers.processes(), bystander);
    let counting = turn.is_contended() || matches!(turn.load, Load::Permits(_));
    // A stopped server cannot say how many requests it has received.
    let silent = (turn.fault != Fault::None).then_some(victim);
    let asked = if silent.is_some() { turn.servers - 1 } else { turn.servers };
    let sent_before = if counting { servers.sent(silent)? } else { Sent::default() };
    let grace = if turn.fault == Fault::None { GRACE } else { GRACE_IN_FAULT };
    let mut figures = Figures::parse(&talk.hear(times.run + grace)?)?;
    let after = Usage::now(servers.processes(), bystander);
    if counting {
        let sent = servers.sent(silent)?.since(&sent_before);
        if turn.is_contended() {
            derive_contention(&mut figures, &sent, asked as f64);
        } else {
            // One script releases each permit.
            let scripts = sent.scripts as f64 / asked as f64;
            figures.set("rounds", scripts / figures.get("cycles") - 1.0);
        }
    }
    // The goal is in milliseconds.
    figures.set("woken_p99_ms", figures.get("woken_p99_us") / 1e3);
    derive(&mut figures, memory, before.servers_us_until(&after));
    let its_own = Duration::try_from_secs_f64(figures.get("busy_us") / 1e6).unwrap_or_default();
    Ok((figures, before.by_others_until(&after, its_own)))
}

/// What a program is told of the Sentinels that watch its servers, if there are any.
fn watched_by(sentinels: &[Server]) -> Vec<String> {
    let ports: Vec<_> = sentinels.iter().map(|it| it.port.to_string()).collect();
    if ports.is_empty() { Vec::new() } else { vec!["--watched".to_owned(), ports.join(",")] }
}

fn command(
    turn: Turn,
    key: &str,
    times: Times,
    contenders: &Contenders,
    beside: &[String],
    ports: &[String],
) -> std::process::Command {
    let mut command = contenders.command(turn.who, turn.load);
    command
        .args(beside)
        .args([turn.load.mode(), &turn.load.workers().to_string(), key])
        .args([times.warm, times.run].map(|t| t.as_millis().to_string()))
        .args(ports);
    command
}

fn derive(figures: &mut Figures, memory_kib: f64, servers_us: f64) {
    let cycles = figures.get("cycles");
    figures.set("per_s", cycles / figures.get("seconds"));
    figures.set("cycle_us", figures.get("seconds") * 1e6 / cycles);
    figures.set("cpu_us", figures.get("busy_us") / cycles);
    figures.set("servers_cpu_us", servers_us / cycles);
    figures.set("memory_kib", memory_kib);
}

/// An attempt sends one SET to every server.
fn derive_contention(figures: &mut Figures, sent: &Sent, servers: f64) {
    let handovers = figures.get("handovers");
    let per_s = handovers / figures.get("seconds");
    figures.set("handovers_per_s", per_s);
    figures.set("of_hold", per_s * figures.get("hold_us") / 1e6);
    figures.set("requests", sent.all as f64 / handovers);
    figures.set("attempts", sent.sets as f64 / servers / handovers);
    figures.set("longest_ms", figures.get("lock_most_us") / 1e3);
    figures.set("handover_cpu_us", figures.get("busy_us") / handovers);
    figures.set("evenness", figures.get("least") / figures.get("most"));
}
