//! The commands, their arguments and options, and the help texts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use clap_complete::engine::ArgValueCompleter;

use crate::completions::names;
use crate::time::{self, Wait};

/// Run a program while holding a distributed lock, and inspect the Redis or Valkey servers
///
/// The lock is held on a majority of the servers.
#[derive(Debug, Parser)]
#[command(name = "redlock", version, propagate_version = true, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The options of all commands: where the servers are, and the form of the output.
#[derive(Args, Debug, Default)]
pub(crate) struct Common {
    /// Servers: host:port or URLs, separated by commas; can be repeated
    ///
    /// All programs that must exclude each other name the same servers. A URL with a password is refused here,
    /// because everybody can read the arguments of a program. Put the password into --config or REDLOCK_SERVERS.
    #[arg(short, long, global = true, value_name = "SERVERS")]
    pub(crate) servers: Vec<String>,
    /// Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG
    ///
    /// TOML with the keys servers, user, password, tls_ca, tls_certificate, tls_key, tls_server_name. If the file
    /// contains a password, it must be readable by its owner only.
    #[arg(short, long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON: results on standard output, events and failures on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Report more, such as when a lock is taken, and when servers are lost or come back
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(Run),
    /// Show for each name whether it is locked, and for how much longer
    ///
    /// Asks the servers, and changes nothing on them. Exits with status 124 if one of the names is locked.
    Status {
        /// The names are semaphores of K permits: show how many are taken; one is locked when all are
        #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=256))]
        permits: Option<u16>,
        /// Names to look up
        #[arg(required = true, value_name = "NAME", add = ArgValueCompleter::new(names))]
        names: Vec<String>,
    },
    Unlock(Unlock),
    /// List the locks whose names begin with PREFIX
    ///
    /// Goes through the keys of all servers (SCAN), and lists the keys that a quorum has under the same token. It
    /// takes a key with a TTL for a lock, and ignores keys without a TTL.
    List {
        /// Beginning of the names; without it, all locks are listed
        #[arg(default_value = "", value_name = "PREFIX", add = ArgValueCompleter::new(names))]
        prefix: String,
        /// List also keys on fewer servers than a quorum: left behind, or being acquired
        #[arg(short, long)]
        all: bool,
    },
    /// Check each server: what it is, what it keeps, its vote or why it has none, and what to do about it
    ///
    /// Exits with status 1 if something is wrong.
    Doctor {
        /// Print N tags of a cluster whose slots are on N different masters, and the list of servers with them
        ///
        /// Asks the nodes that the URL of a cluster names, whatever its tag is. The last line is the list for --servers
        /// or REDLOCK_SERVERS, without the user and the password.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
        suggest_tags: Option<u8>,
    },
    /// Show how many clients wait for each lock, and how often locks change hands
    ///
    /// Shows a page in the terminal and updates it every second; q quits. Without a terminal, prints lines. The
    /// holders are read ten times a second, so at most ten changes of hands per second are counted for a lock.
    Top {
        /// Beginning of the names
        #[arg(default_value = "", value_name = "PREFIX", add = ArgValueCompleter::new(names))]
        prefix: String,
        /// Time between two updates of the page
        #[arg(short, long, default_value = "1s", value_parser = time::parse, value_name = "TIME")]
        interval: Duration,
        /// Print one page, and exit
        #[arg(long)]
        once: bool,
    },
    /// Measure how long locking takes on these servers, and draw the result
    ///
    /// Locks and unlocks names that no other program uses (redlock:bench:...), for the given duration.
    Bench {
        /// Duration of the measurement
        #[arg(short, long, default_value = "5s", value_parser = time::parse, value_name = "TIME")]
        duration: Duration,
        /// Number of threads that lock at the same time, each with a name of its own
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
        threads: u16,
    },
    /// Print a script that completes the arguments of this program in a shell
    Completions {
        /// Shell to print the script for
        shell: Shell,
    },
}

/// Run a program while holding a lock
///
/// Acquires the lock, runs the program, and keeps the lock alive while the program runs. Passes signals on to the
/// program. Releases the lock when the program ends, and exits with its status. If the lock cannot be kept, the
/// program gets SIGTERM. Before the lock can expire, the program and all its processes get SIGKILL. They also get
/// SIGKILL if redlock is killed.
///
/// The environment of the program contains REDLOCK_NAME and REDLOCK_FENCING_TOKEN, a number that increases with
/// every lock of this name.
#[derive(Args, Debug)]
#[command(after_help = AFTER_RUN)]
pub(crate) struct Run {
    /// How long the lock stays on the servers if this machine dies; renewed after a sixth to a third of that
    #[arg(short, long, default_value = "10s", value_parser = time::parse, value_name = "TIME")]
    ttl: Duration,
    /// How long to wait for the lock: a time, 0 for a single attempt, or forever
    #[arg(short, long, default_value = "30s", value_parser = time::parse_wait, value_name = "TIME")]
    pub(crate) wait: Wait,
    /// Same as --wait 0
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Share the lock with other programs that share it; only exclusive holders are kept out
    #[arg(long, conflicts_with = "permits")]
    pub(crate) shared: bool,
    /// Take one of K permits of the name: up to K programs run at the same time
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) permits: Option<u16>,
    /// Exit with this status if another client holds the lock
    #[arg(short = 'E', long, value_name = "STATUS")]
    pub(crate) conflict_exit_code: Option<u8>,
    /// Keep others out until this time after the lock was taken, also if the program ends before
    ///
    /// For a job that must run once on many machines whose clocks differ. The TTL is at least this time then. If the
    /// program cannot be run, the lock is released at once.
    #[arg(long, value_parser = time::parse, value_name = "TIME", conflicts_with_all = ["shared", "permits", "detach"])]
    pub(crate) hold_at_least: Option<Duration>,
    /// Do without a fencing token, and without the right to run scripts that a token needs
    #[arg(long)]
    pub(crate) no_fencing: bool,
    /// Hand the lock to the program, which must adopt REDLOCK_TICKET and keep and release the lock
    ///
    /// redlock becomes the program (exec), and keeps nothing. If the program does not adopt the ticket, the lock
    /// expires with its TTL.
    #[arg(long, conflicts_with_all = ["adopt", "shared", "permits"])]
    pub(crate) detach: bool,
    /// Take over the lock of the ticket in REDLOCK_TICKET instead of acquiring one; no NAME is allowed
    #[arg(long, conflicts_with_all = ["names", "shared", "permits", "wait", "no_wait"])]
    pub(crate) adopt: bool,
    /// Name to lock: the key on the servers; of several names, either all are locked or none
    #[arg(value_name = "NAME", required_unless_present = "adopt", add = ArgValueCompleter::new(names))]
    pub(crate) names: Vec<String>,
    /// Program to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// End the lock that another program holds
///
/// Shows which servers have the lock, and asks before it deletes anything. Deletes only the tokens that it has shown,
/// never the lock of a successor. The old holder works on until its next renewal fails: stop it first, or use fencing
/// tokens. A program that `redlock run` has started is stopped then.
#[derive(Args, Debug)]
pub(crate) struct Unlock {
    /// Must be given: the lock belongs to another program
    #[arg(short, long, required = true)]
    force: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// The name is a semaphore of K permits: end all that are taken
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) permits: Option<u16>,
    /// Name of the lock
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(names))]
    pub(crate) name: String,
}

impl Run {
    /// For how long a server has the lock.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl.max(self.hold_at_least.unwrap_or_default())
    }
}

const AFTER: &str = "\
Environment:
  REDLOCK_SERVERS   servers, as for --servers; passwords are allowed here
  REDLOCK_CONFIG    configuration file, as for --config
  REDLOCK_USER      user name for servers whose URLs do not give one
  REDLOCK_PASSWORD  password for servers whose URLs do not give one

Exit status:
  0    success
  1    the check found that something is wrong (doctor), or the answer was no (unlock)
  121  the lock was lost, and a process of the program could not be killed
  122  the lock was lost
  123  too few servers could be reached
  124  another client holds the lock
  125  wrong arguments or configuration, or an internal error of redlock
  126  the program could not be run
  127  the program was not found
  128+n  ended by signal n";

const AFTER_RUN: &str = "\
Exit status: that of the program, or 128+n if signal n ended it; otherwise
  121  the lock was lost, and a process of the program could not be killed
  122  the lock was lost, and the program was stopped
  123  too few servers could be reached
  124  another client holds the lock (-E sets another status)
  125  wrong arguments or configuration, or an internal error of redlock
  126  the program could not be run
  127  the program was not found

Example: redlock run --ttl 10s --wait 1m backup -- sh -c 'pg_dump shop > shop.sql'";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
