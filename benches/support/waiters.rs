//! Goroutines, asyncio tasks and promises that wait for locks, through the bindings in `bindings/`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::Outcome;
use super::contenders::Contenders;
use super::figures::Figures;
use super::machine;
use super::servers::Servers;
use super::talk::Talk;

const RESOURCES: usize = 100;

/// How often each waiter takes its lock.
const ROUNDS: usize = 3;

const PATIENCE: Duration = Duration::from_secs(200);

/// How often the threads are counted.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Goroutines,
    Tasks,
    Promises,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Goroutines, Self::Tasks, Self::Promises];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Goroutines => "10,000 goroutines, 100 resources",
            Self::Tasks => "1,000 asyncio tasks, 100 resources",
            Self::Promises => "1,000 promises, 100 resources",
        }
    }

    fn count(self) -> usize {
        match self {
            Self::Goroutines => 10_000,
            Self::Tasks | Self::Promises => 1000,
        }
    }
}

pub(crate) struct Waiters {
    pub(crate) kind: Kind,
    /// The greatest number of threads, without those that the runtime had before it used locks.
    pub(crate) threads: f64,
    pub(crate) figures: Figures,
}

pub(crate) fn measure(kind: Kind, contenders: &Contenders, dir: &Path) -> Outcome<Waiters> {
    let mut command = program(kind, contenders)?;
    let servers = Servers::start(5, dir)?;
    command.args([kind.count(), RESOURCES, ROUNDS].map(|n| n.to_string())).arg("bench:waiters");
    let mut talk = Talk::begin(command.args(servers.ports()))?;
    talk.expect("ready", PATIENCE)?;
    let process = talk.process_id();
    let (own, mut most) = (machine::threads(process), 0.0);
    talk.say("go")?;
    let line = talk.hear_beside(PATIENCE, LOOK, || {
        most = machine::threads(process).max(most);
    })?;
    Ok(Waiters { kind, threads: (most - own).max(0.0), figures: Figures::parse(&line)? })
}

/// Names the library to the loader in advance, as for the C programs.
fn program(kind: Kind, contenders: &Contenders) -> Outcome<Command> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = &contenders.programs;
    let missing = match kind {
        Kind::Goroutines => &programs.without_go,
        Kind::Promises => &programs.without_node,
        Kind::Tasks => &None,
    };
    if let Some(why) = missing {
        return Err(why.clone().into());
    }
    let mut command = match kind {
        Kind::Goroutines => Command::new(programs.path("go-waiters")),
        Kind::Tasks => {
            let mut command = Command::new("python3");
            command.arg("-B").arg(root.join("benches/waiters/python/waiters.py"));
            command.env("PYTHONPATH", root.join("bindings/python"));
            command.env("REDLOCK_LIBRARY", &programs.library);
            command
        }
        Kind::Promises => {
            let mut command = Command::new("node");
            command.arg(root.join("benches/waiters/node/waiters.cjs"));
            command.env("REDLOCK_ADDON", programs.path("redlock.node"));
            command
        }
    };
    command.env("LD_PRELOAD", &programs.library);
    Ok(command)
}
