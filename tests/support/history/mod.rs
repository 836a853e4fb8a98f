//! Reads the logs of processes that locked, and finds what cannot have been.
//!
//! A log is a text of one process, `NAME.log`, a line for each event, added in one write:
//!
//! ```text
//! TIME NAME:THREAD EVENT KEY=VALUE...
//! ```
//!
//! `TIME` is `CLOCK_BOOTTIME` in nanoseconds, the same clock for all processes of a machine. Whether
//! it is read before or after what the line tells of is chosen so that no claim is made too wide: a
//! violation that is found is one. Tokens are written as hashes, and times that end in `_ms`, `ttl`,
//! `bound` and `pttl` are milliseconds; statuses have the names of the header without `REDLOCK_`.
//!
//! | event | its fields | what it says | time and line |
//! |---|---|---|---|
//! | `begin` | `pid`, `parent` of a forked child | first line | |
//! | `end` | | last line: it ends by itself | |
//! | `sample` | `fds`, `threads`, `rss_kb` | what the process takes up | |
//! | `call` | `op`, `resource`, `ttl`, `bound`, `token` | a call begins; `bound` is the longest that its timeouts allow, `token` that of the lock it is about | both before the call |
//! | `return` | `op`, `resource`, `status`, `held`, `token`, `until`, `until_max` | it is over; the lease then says that it is held, until a time between those two | both after |
//! | `look` | `resource`, `token`, `held` | a lease was asked whether it is held | time before, line after |
//! | `writing` | `resource`, `token`, `value` | the counter is about to become this | before |
//! | `wrote` | the same | it has | after |
//! | `abandon` | the same | it has not: too little validity was left | after |
//! | `drop` | `resource`, `token` | a held lease was freed without a release | before |
//!
//! A log of whoever drives the workers has, besides calls of its own:
//!
//! | event | its fields | what it says | time and line |
//! |---|---|---|---|
//! | `stop`, `cont` | `process` | a process is stopped, and goes on | before the one, after the other |
//! | `kill`, `dead` | `process` | it is killed, and is gone | before, after |
//! | `fault` | `kind`, `target` | something was done to a server | |
//! | `healed` | | every fault is over | after |
//! | `listing` | `settled` | what is left on the servers is listed; since `settled` nothing was wrong, and every manager of a living process was used | before |
//! | `left` | `server`, `resource`, `token`, `pttl` | a key that was there | |
//! | `counter` | `resource`, `value` | the last value of a counter | |
//!
//! A lock of several resources at once has all their names as its resource, with `+` between them. A permit has the name of
//! the semaphore, and how many there are behind a `*`.
//!
//! A lock counts as held from the return of the call that took it to the call of its release, its
//! deadline, or the death of the process; as shared, if the call was a `share`, and from the call of a
//! `downgrade` on that did not leave it as it was (`UNREACHABLE`, too, may have shared it).

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

/// What is still no violation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How much longer than its bound a call may take: a thread whose answer has come waits for a
    /// processor, and longest on a machine that has other things to do.
    pub(crate) late_ms: i64,
    /// What the manager was told of the servers' clocks, in parts of a thousand.
    pub(crate) drift_permille: i64,
    /// Growth from the first tenth of the samples to the last, with this many samples at least.
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

/// Everything that is wrong with a history. Empty: nothing is.
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
