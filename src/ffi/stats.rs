//! The C functions about what is counted, and the structs that they fill.

use std::ffi::c_char;

use super::arguments::{Room, Versioned, versioned, write_versioned};
use super::call::{manager_call, side_call};
use super::guard::guard;
use super::handle::{RedLock, shared};
use super::status::RedLockStatus;
use crate::error::Error;
use crate::stats::counts::Outcomes;
use crate::stats::histogram::BUCKETS;
use crate::stats::{BOUNDS_US, Histogram, Outcome, Stats, Tracing};

/// How many buckets a RedLockHistogram has.
pub const REDLOCK_HISTOGRAM_BUCKETS: usize = 21;

/// How many bounds they have: the last bucket has none.
pub const REDLOCK_HISTOGRAM_BOUNDS: usize = 20;

const _: () =
    assert!(REDLOCK_HISTOGRAM_BUCKETS == BUCKETS && REDLOCK_HISTOGRAM_BOUNDS == BOUNDS_US.len());

/// How many calls of a kind have come to what.
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
    /// Any other.
    pub failed: u64,
}

/// How many took how long.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct RedLockHistogram {
    /// How many there were.
    pub count: u64,
    /// How long they took together, in microseconds.
    pub sum_us: i64,
    /// How many took at most RedLockStats.bounds_us of that place, and more than that of the place before. The
    /// last bucket has no bound.
    pub buckets: [u64; REDLOCK_HISTOGRAM_BUCKETS],
}

/// What RedLock_GetStats tells. Begin with REDLOCK_STATS_INIT. All counts are of this manager in this process, and only
/// grow; waiting and kept are what there is now.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct RedLockStats {
    /// sizeof(RedLockStats).
    pub size: usize,
    /// Calls that take locks: RedLock_Lock, RedLock_TryLock, RedLock_Acquire, RedLock_SubmitAcquire, and
    /// RedLock_ContinueLock where it had to take one. All slices of RedLock_TryLockSlice together are one call.
    pub acquire: RedLockOutcomes,
    /// RedLock_Extend, and RedLock_ContinueLock where it extended a lock.
    pub extend: RedLockOutcomes,
    /// RedLock_Confirm.
    pub confirm: RedLockOutcomes,
    /// RedLock_Unlock, but not of an inner level (RedLock_Retain); also of locks whose lease was freed before they were told.
    pub release: RedLockOutcomes,
    /// RedLock_Adopt.
    pub adopt: RedLockOutcomes,
    /// RedLock_Inspect and RedLock_IsLocked.
    pub inspect: RedLockOutcomes,
    /// Locks that were given away: RedLock_Detach.
    pub detached: u64,
    /// How often the servers were asked for a lock, all at once.
    pub attempts: u64,
    /// Calls that had to wait for a lock, for a moment at least.
    pub waits: u64,
    /// Extensions of locks that are kept, and those that failed and were tried again as long as there was time.
    pub renewed: u64,
    pub not_renewed: u64,
    /// Locks that could not be kept: REDLOCK_EVENT_LOST.
    pub kept_lost: u64,
    /// Requests that were sent, to all servers together.
    pub requests: u64,
    /// Connections that could be used, those of them that were lost, and attempts to connect that failed.
    pub connections: u64,
    pub connections_lost: u64,
    pub connections_failed: u64,
    /// How many calls wait for a lock now.
    pub waiting: u64,
    /// How many locks are kept now.
    pub kept: u64,
    /// How long it took to take a lock, of those that were taken: with pauses and waiting.
    pub acquire_time: RedLockHistogram,
    /// How long those waited that had to, from the beginning of the first wait to the end of the call.
    pub wait_time: RedLockHistogram,
    /// How long locks were held that were released, from when they were asked for.
    pub hold_time: RedLockHistogram,
    /// From the sending of a request to the reading of its answer, of all servers together.
    pub round_trip: RedLockHistogram,
    /// The upper bounds of the buckets of all histograms, in microseconds: 25, 50, 100, 250, ..., 60000000.
    pub bounds_us: [i64; REDLOCK_HISTOGRAM_BOUNDS],
}

// SAFETY: it is made of numbers, and begins with its size.
unsafe impl Versioned for RedLockStats {
    const LEAST: usize = size_of::<Self>();
    const INIT: &'static str = "REDLOCK_STATS_INIT";
}

/// Tells what was counted since the manager was made: for a monitor. Nobody is asked, nothing is waited for, and all
/// numbers are those of one moment. To count costs nothing that could be measured; a call that is refused
/// for its arguments is not counted. A forked child counts anew.
///
/// @param rl    the manager.
/// @param stats receives the numbers. Its size must be set: begin with REDLOCK_STATS_INIT.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT or REDLOCK_FORKED (the parent was using the manager when it
///         forked); RedLock_ErrorMessage(rl) has the words. Any thread may call this.
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

/// Writes what was counted, and what is known of each server, in the text format that Prometheus reads; content
/// type "text/plain; version=0.0.4". All names begin with redlock_, counters end in _total, times are in seconds. Servers are
/// named by the label server, as messages name them: never with a user or a password. No resource is named. docs/stats.md
/// tells what each of them means; names and meanings stay, and later versions may add some.
///
/// Ask for the size first, and again if it has grown meanwhile:
///
///  - size_t size = RedLock_StatsText(rl, NULL, 0) + 1;
///  - char *text = malloc(size);
///  - RedLock_StatsText(rl, text, size) is less than size if it fits in.
///
/// Nobody is asked, and nothing is waited for.
///
/// @param rl   the manager, or NULL.
/// @param text receives the text and a NUL, as a whole or, if there is too little room, not at all: then it is empty.
///             May be NULL if size is 0.
/// @param size bytes of room, with the NUL.
/// @return how many bytes the text has now, without the NUL: if that is not less than size, nothing was written. 0 for NULL, and
///         if the parent was using the manager when it forked. Any thread may call this.
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

/// For RedLock_SetTracing: nothing is told of locks.
pub const REDLOCK_TRACE_OFF: i32 = 0;

/// For RedLock_SetTracing: what becomes of locks is told, without names.
pub const REDLOCK_TRACE_EVENTS: i32 = 1;

/// For RedLock_SetTracing: the same with the names of the resources.
pub const REDLOCK_TRACE_RESOURCES: i32 = 2;

/// Sets whether the logger is told what becomes of locks, at level 3: one line for each event, made of key=value with a
/// blank in between, such as
/// event=acquired resource="invoice:42" duration_ms=1.204 attempts=1.
/// The events are acquired, refused, extended, not_extended, released, not_released, lost, adopted, detached, renewed, not_renewed
/// and kept_lost; outcome= says why something did not succeed. Lines are told as all others are: see RedLock_SetLogger and RedLock_KeepLog. Where more
/// come than can be told, the oldest are left out, and their number is told.
///
/// The name of a resource may be nobody's business: messages and log lines hold none, unless REDLOCK_TRACE_RESOURCES asks for it. There
/// it stands in quotes, of several the first, with \xNN for what cannot be printed, and is cut after 256 bytes. Never a token.
///
/// @param rl     the manager.
/// @param events REDLOCK_TRACE_OFF, the default, REDLOCK_TRACE_EVENTS or REDLOCK_TRACE_RESOURCES, for calls that begin from now on.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetTracing(rl: *mut RedLock, events: i32) -> RedLockStatus {
    manager_call(rl, |handle| {
        let tracing = match events {
            REDLOCK_TRACE_OFF => Tracing::Off,
            REDLOCK_TRACE_EVENTS => Tracing::Events,
            REDLOCK_TRACE_RESOURCES => Tracing::Resources,
            _ => return Err(Error::invalid(format!("events is {events}, which means nothing"))),
        };
        handle.manager.set_tracing(tracing);
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
