//! Reads the logs of processes that locked, and finds contradictions.
//!
//! A log is a text of one process, `NAME.log`, with one line for each event. Each line is added in one write:
//!
//! ```text
//! TIME NAME:THREAD EVENT KEY=VALUE...
//! ```
//!
//! `TIME` is `CLOCK_BOOTTIME` in nanoseconds, the same clock for all processes of a machine. Whether it is read
//! before or after the event is chosen so that no claim is too wide: a violation that is found is real. Tokens are
//! written as hashes. Times that end in `_ms`, `ttl`, `bound` and `pttl` are milliseconds. Statuses have the names
//! of the header without `REDLOCK_`.
//!
//! | event | its fields | what it says | time and line |
//! |---|---|---|---|
//! | `begin` | `pid`, `parent` of a forked child | first line | |
//! | `end` | | last line: the process ends by itself | |
//! | `sample` | `fds`, `threads`, `rss_kb` | the resources that the process uses | |
//! | `call` | `op`, `resource`, `ttl`, `bound`, `token` | a call begins | both before the call |
//! | `return` | `op`, `resource`, `status`, `held`, `token`, `until`, `until_max` | it has ended | both after |
//! | `look` | `resource`, `token`, `held` | a lease was asked whether it is held | time before, line after |
//! | `writing` | `resource`, `token`, `value` | the counter is about to get this value | before |
//! | `wrote` | the same | it has got this value | after |
//! | `abandon` | the same | it has not: too little validity was left | after |
//! | `drop` | `resource`, `token` | a held lease was freed without a release | before |
//!
//! In a `call`, `bound` is the longest time that its timeouts allow, and `token` is the token of its lock. In a
//! `return`, `held` is what the lease then says, and the lock ends at a time between `until` and `until_max`.
//!
//! The log of the process that controls the workers has these events, besides its own calls:
//!
//! | event | its fields | what it says | time and line |
//! |---|---|---|---|
//! | `stop`, `cont` | `process` | a process is stopped, and continues | before the one, after the other |
//! | `kill`, `dead` | `process` | it is killed, and is gone | before, after |
//! | `fault` | `kind`, `target` | something was done to a server | |
//! | `healed` | | every fault is over | after |
//! | `listing` | `settled` | the remaining keys on the servers are listed | before |
//! | `left` | `server`, `resource`, `token`, `pttl` | a key that was there | |
//! | `counter` | `resource`, `value` | the last value of a counter | |
//!
//! Since the time `settled` of a `listing`, nothing was wrong, and every manager of a living process was used.
//!
//! A lock of several resources at once has all their names as its resource, with `+` between them. A permit has the
//! name of the semaphore, and the number of its permits behind a `*`.
//!
//! A lock counts as held from the return of the call that took it to the call of its release, its deadline, or the
//! death of the process. It counts as shared if the call was a `share`, and from the call of a `downgrade` on, unless
//! the `downgrade` left it unchanged (`UNREACHABLE` may have shared it, too).

mod calls;
mod counters;
mod holds;
mod keys;
mod leaks;
mod line;
mod lives;
mod read;
mod verdict;

#[allow(unused_imports)]
pub(crate) use self::{
    leaks::{drift_of, samples},
    line::{Event, Line, Op, Sample},
    lives::Life,
    read::{File, History},
    verdict::{Rule, Violation},
};

/// The limits within which there is no violation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How much longer than its bound a call may take. A thread whose answer has come waits for a
    /// processor, and waits longest on a machine with other work.
    pub(crate) late_ms: i64,
    /// The drift of the servers' clocks that the manager was told, in parts per thousand.
    pub(crate) drift_permille: i64,
    /// The allowed growth from the first tenth of the samples to the last, if there are at least this many
    /// samples.
    pub(crate) samples: usize,
    pub(crate) fds: i64,
    pub(crate) threads: i64,
    pub(crate) rss_kb: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { late_ms: 2000, drift_permille: 10, samples: 20, fds: 8, threads: 0, rss_kb: 4096 }
    }
}

/// All violations of a history; empty if there are none.
pub(crate) fn check(history: &History<'_>, limits: &Limits) -> Vec<Violation> {
    let mut found = history.malformed.clone();
    holds::check(history, limits, &mut found);
    counters::check(history, &mut found);
    calls::check(history, limits, &mut found);
    keys::check(history, &mut found);
    lives::check(history, &mut found);
    leaks::check(history, limits, &mut found);
    found
}
