//! What can be asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::time::{self, Wait};

/// Runs a program while a distributed lock is held on a majority of Redis or Valkey servers, and looks after the
/// servers.
#[derive(Debug, Parser)]
#[command(name = "redlock", version, propagate_version = true, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Where the servers are, and how things are told.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// The servers: host:port or URLs, with commas between them; may be given again
    ///
    /// All programs that are to exclude each other name the same servers. A URL with a password is refused here, for
    /// everybody can read the arguments of a program: put it into --config or REDLOCK_SERVERS.
    #[arg(short, long, global = true, value_name = "SERVERS")]
    pub(crate) servers: Vec<String>,
    /// A file that says where the servers are; otherwise REDLOCK_SERVERS, then REDLOCK_CONFIG
    ///
    /// TOML with the keys servers, user, password, tls_ca, tls_certificate, tls_key, tls_server_name. With a password
    /// in it, nobody but its owner may read it.
    #[arg(short, long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Tell in JSON: results on standard output, what happens and failures on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Tell more, such as when a lock is taken, and of servers that are lost or come back
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(Run),
    /// Tell of each name whether it is locked, and for how long still
    ///
    /// Asks the servers; nothing is changed on them.
    Status {
        /// The names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// List what is locked: the names that begin with PREFIX
    ///
    /// Goes through the keys of all servers (SCAN), and lists what a quorum has under the same token. Of other keys
    /// than locks it knows that they have no TTL.
    List {
        /// What the names begin with; all of them without it
        #[arg(default_value = "", value_name = "PREFIX")]
        prefix: String,
        /// Also what stands on fewer servers than a quorum: left behind, or being taken
        #[arg(short, long)]
        all: bool,
    },
    /// Look at each server: what it is, what it keeps, whether its vote counts or why not, and what to do about it
    ///
    /// Ends with 1 if something is wrong.
    Doctor,
    /// Show who waits for what, and how often locks change hands
    ///
    /// A page in the terminal, anew each second; q ends it. Without a terminal, lines. How often a lock changes hands
    /// is what is seen by looking ten times a second: at most that often.
    Top {
        /// What the names begin with
        #[arg(default_value = "", value_name = "PREFIX")]
        prefix: String,
        /// How often the page is new
        #[arg(short, long, default_value = "1s", value_parser = time::parse, value_name = "TIME")]
        interval: Duration,
        /// One page, and no more
        #[arg(long)]
        once: bool,
    },
    /// Measure how long a lock takes on these servers, and draw it
    ///
    /// Locks and unlocks names that nobody else uses (redlock:bench:...), for so long and no longer.
    Bench {
        /// For how long
        #[arg(short, long, default_value = "5s", value_parser = time::parse, value_name = "TIME")]
        duration: Duration,
        /// How many threads lock at the same time, each a name of its own
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
        threads: u16,
    },
    /// Print a script that completes the arguments of this program in a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// Run a program while a lock is held
///
/// Takes the lock, runs the program with the lock kept alive, passes signals on to it, releases the lock when it
/// ends, and ends with its status. If the lock cannot be kept, the program gets SIGTERM, and before the lock can
/// have ended, it and all its processes get SIGKILL. They get it, too, if redlock is killed.
///
/// In the environment of the program are REDLOCK_NAME and REDLOCK_FENCING_TOKEN, a number that grows with every lock of
/// this name.
#[derive(Args, Debug)]
#[command(after_help = AFTER_RUN)]
pub(crate) struct Run {
    /// For how long the lock lives on the servers if this machine dies; it is renewed each third of that
    #[arg(short, long, default_value = "10s", value_parser = time::parse, value_name = "TIME")]
    pub(crate) ttl: Duration,
    /// How long to wait for the lock: a time, 0 for a single attempt, or forever
    #[arg(short, long, default_value = "30s", value_parser = time::parse_wait, value_name = "TIME")]
    pub(crate) wait: Wait,
    /// The same as --wait 0
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Share the lock with others that share it; only who does not share it is kept out
    #[arg(long, conflicts_with = "permits")]
    pub(crate) shared: bool,
    /// Take one of so many permits of the name: so many programs run at once
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) permits: Option<u16>,
    /// End with this status if somebody else has the lock
    #[arg(short = 'E', long, value_name = "STATUS")]
    pub(crate) conflict_exit_code: Option<u8>,
    /// Do without a fencing token, and the right to run scripts that it takes
    #[arg(long)]
    pub(crate) no_fencing: bool,
    /// Give the lock to the program: it has to adopt REDLOCK_TICKET, and to keep and release the lock by itself
    ///
    /// redlock becomes the program (exec), and keeps nothing. If the program does not adopt the ticket, the lock ends
    /// with its TTL.
    #[arg(long, conflicts_with_all = ["adopt", "shared", "permits"])]
    pub(crate) detach: bool,
    /// Take over the lock of the ticket in REDLOCK_TICKET in the place of taking one; then there is no NAME
    #[arg(long, conflicts_with_all = ["names", "shared", "permits", "wait", "no_wait"])]
    pub(crate) adopt: bool,
    /// What to lock: the name of the key on the servers. Of several, all are locked or none
    #[arg(value_name = "NAME", required_unless_present = "adopt")]
    pub(crate) names: Vec<String>,
    /// The program, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const AFTER: &str = "\
Environment:
  REDLOCK_SERVERS   the servers, as for --servers; passwords are allowed here
  REDLOCK_CONFIG    a file, as for --config
  REDLOCK_USER      who to be on servers whose URLs do not say
  REDLOCK_PASSWORD  the password on servers whose URLs do not say

Exit status:
  0    all is well
  1    it looked, and something is wrong (doctor)
  122  the lock was lost
  123  too few servers could be reached
  124  somebody else has the lock
  125  wrong arguments, configuration, or a fault of redlock itself
  126  the program could not be run
  127  there is no such program
  128+n  ended by signal n";

const AFTER_RUN: &str = "\
Exit status: that of the program, 128+n if signal n has ended it; or
  122  the lock was lost, and the program was stopped
  123  too few servers could be reached
  124  somebody else has the lock (-E sets another)
  125  wrong arguments, configuration, or a fault of redlock itself
  126  the program could not be run
  127  there is no such program

Example: redlock run --ttl 10s --wait 1m backup -- sh -c 'pg_dump shop > shop.sql'";

/// The script for this shell.
pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "redlock", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
