//! The contenders, and how each one is started: the library, the programs that it is compared with, and clients
//! by others. Those clients may be missing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Outcome;
use super::compile::{Programs, target_directory};
use super::turns::Load;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Ours,
    /// Raw sockets: a blocking style for one worker, one event loop for several.
    Floor,
    /// The same, with the requests of the library. For several workers: as many threads, with connections of their own.
    Same,
    /// hiredis with the pauses of CRedLock.
    Serial,
    /// The same client, but it asks again after 0 to 5 ms.
    Polling,
    Rslock,
    NodeRedlock,
    RedisPy,
    RedlockPy,
    Pottery,
}

impl Who {
    pub(crate) const ALL: [Self; 10] = [
        Self::Ours,
        Self::Floor,
        Self::Same,
        Self::Serial,
        Self::Polling,
        Self::Rslock,
        Self::NodeRedlock,
        Self::RedisPy,
        Self::RedlockPy,
        Self::Pottery,
    ];

    /// The peers that the library should beat: clients that can lock on several servers.
    pub(crate) const PEERS: [Self; 5] =
        [Self::Serial, Self::Rslock, Self::NodeRedlock, Self::RedlockPy, Self::Pottery];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Floor => "floor",
            Self::Same => "floor, same requests",
            Self::Serial => "hiredis",
            Self::Polling => "hiredis, polling",
            Self::Rslock => "rslock",
            Self::NodeRedlock => "node redlock",
            Self::RedisPy => "redis-py",
            Self::RedlockPy => "redlock-py",
            Self::Pottery => "pottery",
        }
    }
}

pub(crate) struct Contenders {
    pub(crate) programs: Programs,
    /// Where `make bench-peers` has installed the clients by others.
    peers: PathBuf,
    sources: PathBuf,
}

impl Contenders {
    pub(crate) fn prepare() -> Outcome<Self> {
        Ok(Self {
            programs: Programs::compile()?,
            peers: target_directory()?.join("bench-peers"),
            sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join("peers"),
        })
    }

    /// Why this contender cannot be measured here.
    pub(crate) fn missing(&self, who: Who) -> Option<String> {
        let needed = match who {
            Who::Ours | Who::Floor | Who::Same => return None,
            Who::Serial | Who::Polling => return self.programs.without_hiredis.clone(),
            Who::Rslock => self.rslock(),
            Who::NodeRedlock => self.node_modules().join("redlock"),
            Who::RedisPy | Who::RedlockPy | Who::Pottery => self.python(),
        };
        (!needed.exists()).then(|| "not installed: make bench-peers".to_owned())
    }

    /// The command, up to the kind of load. The remaining arguments are the same for all contenders.
    pub(crate) fn command(&self, who: Who, load: Load) -> Command {
        let mut command = match (who, load) {
            (Who::Ours, Load::InFlight(_)) => self.with_library("submitted"),
            (Who::Ours, Load::Kinds | Load::Watched | Load::Clustered) => {
                self.with_library("beside")
            }
            (Who::Ours, Load::Connecting) => self.with_library("connects"),
            (Who::Ours, Load::Woken(_)) => self.with_library("woken"),
            (Who::Ours, Load::Permits(it)) => {
                with(self.with_library("semaphore"), [it.all, it.held].map(|n| n.to_string()))
            }
            (Who::Floor, Load::InFlight(_)) => Command::new(self.programs.path("loop")),
            (Who::Same, Load::InFlight(_)) => self.with_same_requests("loop"),
            _ => self.program(who, load.workers()),
        };
        if matches!(load, Load::Readers(_)) {
            command.arg("--readers");
        }
        if who == Who::Ours && load == Load::Extending {
            command.arg("--extends");
        }
        if matches!(load, Load::Processes(_)) {
            command.arg("--processes");
        }
        command
    }

    /// Names the library to the loader in advance. The program asks for the library's soname, and the build
    /// directory has no file of that name.
    pub(crate) fn with_library(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.path(program));
        command.env("LD_PRELOAD", &self.programs.library);
        command
    }

    fn with_same_requests(&self, program: &str) -> Command {
        with(Command::new(self.programs.path(program)), ["--same", &release_script()])
    }

    pub(crate) fn program(&self, who: Who, workers: usize) -> Command {
        match who {
            Who::Ours => self.with_library("ours"),
            Who::Floor if workers == 1 => Command::new(self.programs.path("floor")),
            Who::Floor => Command::new(self.programs.path("loop")),
            Who::Same => self.with_same_requests("floor"),
            Who::Serial => Command::new(self.programs.path("serial")),
            Who::Polling => with(Command::new(self.programs.path("serial")), ["--pause", "0", "5"]),
            Who::Rslock => Command::new(self.rslock()),
            Who::NodeRedlock => {
                let mut command = Command::new("node");
                command.env("NODE_PATH", self.node_modules());
                command.arg(self.sources.join("node").join("peer.cjs"));
                command
            }
            Who::RedisPy | Who::RedlockPy | Who::Pottery => {
                // -B: write nothing beside the sources.
                let mut command = with(Command::new(self.python()), ["-B"]);
                command.arg(self.sources.join("python").join("peer.py")).arg(who.name());
                command
            }
        }
    }

    fn rslock(&self) -> PathBuf {
        self.peers.join("rslock").join("release").join("rslock-peer")
    }

    fn node_modules(&self) -> PathBuf {
        self.peers.join("node").join("node_modules")
    }

    fn python(&self) -> PathBuf {
        self.peers.join("python").join("bin").join("python")
    }
}

/// The script with which the library releases a lock and wakes a waiter, without comments.
fn release_script() -> String {
    let files = [
        include_str!("../../src/protocol/command/wake.lua"),
        include_str!("../../src/protocol/command/release_and_wake.lua"),
    ];
    let lines = files.iter().flat_map(|it| it.lines().map(str::trim));
    lines.filter(|it| !it.is_empty() && !it.starts_with("--")).collect::<Vec<_>>().join(" ")
}

fn with<const N: usize>(mut command: Command, args: [impl AsRef<OsStr>; N]) -> Command {
    command.args(args);
    command
}
