//! The C functions for counters and traces, and the structs that they fill.

use std::ffi::c_char;
use std::mem::offset_of;

use super::arguments::{Room, Versioned, versioned, write_versioned};
use super::call::{manager_call, side_call};
use super::guard::guard;
use super::handle::{RedLock, shared};
use super::status::RedLockStatus;
use crate::protocol::error::Error;
use crate::protocol::stats::counts::Outcomes;
use crate::protocol::stats::histogram::BUCKETS;
use crate::protocol::stats::{BOUNDS_US, Histogram, Outcome, Stats, Tracing};

/// The number of buckets of a RedLockHistogram.
pub const REDLOCK_HISTOGRAM_BUCKETS: usize = 21;

/// The number of bounds of these buckets: the last bucket has no bound.
pub const REDLOCK_HISTOGRAM_BOUNDS: usize = 20;

const _: () =
    assert!(REDLOCK_HISTOGRAM_BUCKETS == BUCKETS && REDLOCK_HISTOGRAM_BOUNDS == BOUNDS_US.len());

/// The number of calls of one kind, by outcome.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct RedLockOutcomes {
    /// REDLOCK_OK.
    pub ok: u64,
    /// REDLOCK_TAKEN.
    pub taken: u64,
    /// REDLOCK_UNREACHABLE.
    pub unreachable: u64,
    /// REDLOCK_TOO_SLOW.
    pub too_slow: u64,
    /// REDLOCK_LOST.
    pub lost: u64,
    /// REDLOCK_TOO_SHORT.
    pub too_short: u64,
    /// REDLOCK_CANCELLED.
    pub cancelled: u64,
    /// Any other status.
    pub failed: u64,
}

/// A histogram of durations.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct RedLockHistogram {
    /// The number of durations.
    pub count: u64,
    /// The sum of all durations, in microseconds.
    pub sum_us: i64,
    /// The number of durations in each bucket: at most the bound at the same index in RedLockStats.bounds_us,
    /// and more than the bound before it. The last bucket has no bound.
    pub buckets: [u64; REDLOCK_HISTOGRAM_BUCKETS],
}

/// The counters of a manager, from RedLock_GetStats. Begin with REDLOCK_STATS_INIT. All counts are of this
/// manager in this process, and only grow. The fields waiting and kept are current numbers.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct RedLockStats {
    /// sizeof(RedLockStats).
    pub size: usize,
    /// Calls that take locks: RedLock_Lock, RedLock_TryLock, RedLock_Acquire, RedLock_SubmitAcquire, and
    /// RedLock_ContinueLock if it had to take the lock.
    pub acquire: RedLockOutcomes,
    /// RedLock_Extend, and RedLock_ContinueLock if it extended the lock.
    pub extend: RedLockOutcomes,
    /// RedLock_Confirm.
    pub confirm: RedLockOutcomes,
    /// RedLock_Unlock, except for an inner level (RedLock_Retain). Also releases of locks whose lease was
    /// freed before the program was told of the lock.
    pub release: RedLockOutcomes,
    /// RedLock_Adopt.
    pub adopt: RedLockOutcomes,
    /// RedLock_Inspect and RedLock_IsLocked.
    pub inspect: RedLockOutcomes,
    /// Locks that were given away: RedLock_Detach.
    pub detached: u64,
    /// How often the servers were asked for a lock. Asking all of them at once counts as one.
    pub attempts: u64,
    /// Calls that had to wait for a lock, even if only for a moment.
    pub waits: u64,
    /// Extensions of locks that are kept alive. renewed: those that succeeded. not_renewed: those that
    /// failed, and were tried again as long as there was time.
    pub renewed: u64,
    pub not_renewed: u64,
    /// Locks that could not be kept alive: REDLOCK_EVENT_LOST.
    pub kept_lost: u64,
    /// Requests that were sent, for all servers together.
    pub requests: u64,
    /// Connections that could be used, those of them that were lost, and attempts to connect that failed.
    pub connections: u64,
    pub connections_lost: u64,
    pub connections_failed: u64,
    /// The number of calls that are waiting for a lock now.
    pub waiting: u64,
    /// The number of locks that are kept alive now.
    pub kept: u64,
    /// How long it took to take a lock, for locks that were taken. Includes pauses and waiting.
    pub acquire_time: RedLockHistogram,
    /// The waiting time of calls that had to wait, from the beginning of the first wait to the end of the
    /// call.
    pub wait_time: RedLockHistogram,
    /// How long released locks were held, from the time when they were requested.
    pub hold_time: RedLockHistogram,
    /// The time from sending a request to reading its answer, for all servers together.
    pub round_trip: RedLockHistogram,
    /// The upper bounds of the buckets of all histograms, in microseconds: 25, 50, 100, 250, ..., 60000000.
    pub bounds_us: [i64; REDLOCK_HISTOGRAM_BOUNDS],
}

// SAFETY: the struct consists of numbers, and begins with its size.
unsafe impl Versioned for RedLockStats {
    const LEAST: usize = offset_of!(Self, bounds_us) + size_of::<[i64; REDLOCK_HISTOGRAM_BOUNDS]>();
    const INIT: &'static str = "REDLOCK_STATS_INIT";
}

/// Reports what was counted since the manager was made, for a monitor. No server is asked, and the call does
/// not wait. All numbers are of the same moment. Counting has no measurable cost. A call that is refused
/// because of its arguments is not counted. A forked child begins to count at zero.
///
/// @param rl    the manager.
/// @param stats receives the numbers. Its size must be set: begin with REDLOCK_STATS_INIT.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT or REDLOCK_FORKED (the parent was using the manager when it
///         forked): RedLock_ErrorMessage(rl) returns the message. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_GetStats(
    rl: *mut RedLock,
    stats: *mut RedLockStats,
) -> RedLockStatus {
    side_call(rl, |handle| {
        let size = versioned(stats.cast_const(), RedLockStats::default(), "stats")?.size;
        let counted = RedLockStats { size, ..of(&handle.manager.stats()) };
        write_versioned(stats, &counted, size);
        Ok(RedLockStatus::REDLOCK_OK)
    })
}

/// Writes the counters and the state of each server as text for Prometheus. Its content type is
/// "text/plain; version=0.0.4". All names begin with redlock_, counters end in _total, and times are in
/// seconds. The label server names a server as messages do: never with a user or a password. No resource is
/// named. docs/stats.md explains each name. Names and meanings stay; later versions may add some.
///
/// Ask for the size first, and again if it has grown meanwhile:
///
///  - size_t size = RedLock_StatsText(rl, NULL, 0) + 1;
///  - char *text = malloc(size);
///  - RedLock_StatsText(rl, text, size) is less than size if the text fits.
///
/// No server is asked, and the call does not wait.
///
/// @param rl   the manager, or NULL.
/// @param text receives the whole text and a NUL. If there is too little room, it receives an empty string.
///             May be NULL if size is 0.
/// @param size the size of the buffer in bytes, including the NUL.
/// @return the present size of the text in bytes, without the NUL. If that is not less than size, the text
///         was not written. 0 for NULL, and if the parent was using the manager when it forked. Any thread
///         may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_StatsText(
    rl: *mut RedLock,
    text: *mut c_char,
    size: usize,
) -> usize {
    let made = shared(rl).and_then(|handle| guard(|| Ok(handle.manager.stats_text())).ok());
    let made = made.unwrap_or_default();
    if size > 0
        && let Ok(mut room) = Room::new(text, size, "text")
    {
        room.write(if made.len() < size { &made } else { "" });
    }
    made.len()
}

/// For RedLock_SetTracing: log no events of locks.
pub const REDLOCK_TRACE_OFF: i32 = 0;

/// For RedLock_SetTracing: log the events of locks, without names.
pub const REDLOCK_TRACE_EVENTS: i32 = 1;

/// For RedLock_SetTracing: log the events of locks, with resource names.
pub const REDLOCK_TRACE_RESOURCES: i32 = 2;

/// Sets whether the events of locks are logged, at level 3. Each event is one line of key=value pairs with a
/// space in between, such as
/// event=acquired resource="invoice:42" duration_ms=1.204 attempts=1.
/// The events are acquired, refused, extended, not_extended, released, not_released, lost, adopted, detached,
/// renewed, not_renewed and kept_lost. outcome= says why something did not succeed. The lines are logged like
/// all others: see RedLock_SetLogger and RedLock_KeepLog. If there are more lines than can be logged, the
/// oldest are left out, and their number is logged.
///
/// The name of a resource may be confidential. So messages and log lines contain no such name, unless
/// REDLOCK_TRACE_RESOURCES asks for it. The name is then in quotes, with \xNN for characters that cannot be
/// printed, and is cut after 256 bytes. For several resources it is the name of the first. A token is never
/// logged.
///
/// @param rl     the manager.
/// @param events REDLOCK_TRACE_OFF, the default, REDLOCK_TRACE_EVENTS or REDLOCK_TRACE_RESOURCES, for calls
///               that begin from now on.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTracing(rl: *mut RedLock, events: i32) -> RedLockStatus {
    manager_call(rl, |handle| {
        let tracing = match events {
            REDLOCK_TRACE_OFF => Tracing::Off,
            REDLOCK_TRACE_EVENTS => Tracing::Events,
            REDLOCK_TRACE_RESOURCES => Tracing::Resources,
            _ => {
                return Err(Error::invalid(format!(
                    "events is {events}: use a REDLOCK_TRACE_ constant"
                )));
            }
        };
        handle.manager.settings().set_tracing(tracing);
        Ok(())
    })
}

fn of(stats: &Stats) -> RedLockStats {
    let (counts, traffic) = (&stats.counts, stats.traffic());
    RedLockStats {
        size: 0,
        acquire: outcomes(&counts.acquire),
        extend: outcomes(&counts.extend),
        confirm: outcomes(&counts.confirm),
        release: outcomes(&counts.release),
        adopt: outcomes(&counts.adopt),
        inspect: outcomes(&counts.inspect),
        detached: counts.detached,
        attempts: counts.attempts,
        waits: counts.waits,
        renewed: counts.renewed,
        not_renewed: counts.not_renewed,
        kept_lost: counts.kept_lost,
        requests: traffic.requests,
        connections: traffic.connections,
        connections_lost: traffic.connections_lost,
        connections_failed: traffic.connections_failed,
        waiting: stats.waiting,
        kept: stats.kept,
        acquire_time: histogram(&counts.acquire_time),
        wait_time: histogram(&counts.wait_time),
        hold_time: histogram(&counts.hold_time),
        round_trip: histogram(&traffic.round_trip),
        bounds_us: BOUNDS_US,
    }
}

fn outcomes(outcomes: &Outcomes) -> RedLockOutcomes {
    RedLockOutcomes {
        ok: outcomes.of(Outcome::Ok),
        taken: outcomes.of(Outcome::Taken),
        unreachable: outcomes.of(Outcome::Unreachable),
        too_slow: outcomes.of(Outcome::TooSlow),
        lost: outcomes.of(Outcome::Lost),
        too_short: outcomes.of(Outcome::TooShort),
        cancelled: outcomes.of(Outcome::Cancelled),
        failed: outcomes.of(Outcome::Failed),
    }
}

fn histogram(histogram: &Histogram) -> RedLockHistogram {
    let Histogram { count, sum_us, buckets } = *histogram;
    RedLockHistogram { count, sum_us, buckets }
}
