//! The C functions about servers as voters: what is known of each, and what is done against those that forget.

use std::ffi::c_char;

use super::arguments::{Array, Versioned, words as text};
use super::call::{manager_call, side_call};
use super::handle::RedLock;
use super::status::RedLockStatus;
use crate::error::Error;
use crate::transport::guard::Mode;
use crate::transport::server::portrait::Portrait;

/// What RedLock_Servers tells of one server. All words end with a NUL; longer ones are cut.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockServerInfo {
    /// sizeof(RedLockServerInfo).
    pub size: usize,
    /// 1 if there is a connection that can be used, else 0.
    pub connected: i32,
    /// 1 if what it grants counts, else 0.
    pub votes: i32,
    /// How long its last answer took, from sending to reading, in microseconds; -1 if it has given none.
    pub round_trip_us: i64,
    /// How far its clock is ahead of this machine's, in microseconds; below 0 if it is behind. It is exact to half a
    /// round trip and a millisecond. It was measured when the connection began and whenever a lock was asked
    /// for, and is told for what this machine's clock shows now. INT64_MIN if it is not known: there was no
    /// connection yet, the guard is off (RedLock_SetRestartGuard), or the user may not ask (TIME).
    pub clock_offset_us: i64,
    /// Where it is: host:port, or the path of its socket. Of a master that Sentinels watch its name with its
    /// address: "mymaster (10.0.0.7:6379)", or that of the first Sentinel before it is known:
    /// "mymaster (Sentinel 10.0.0.5:26379)". Never a user or a password.
    pub name: [c_char; 256],
    /// Why it is not connected, or does not vote. Empty if there is nothing to say.
    pub words: [c_char; 512],
    /// What program it is: "7.0.15" for a Redis, "valkey 9.1.0". This and what follows is what it said when it
    /// was last asked; empty if it has not said it, or the user may not ask (INFO, CONFIG GET).
    pub version: [c_char; 32],
    /// "primary", or "replica" or "sentinel", which cannot vote.
    pub role: [c_char; 16],
    /// 40 hexadecimal digits that are others after each start of the server.
    pub run_id: [c_char; 48],
    /// What of its data outlives its process: "log, synced always", "log, synced every second", "log, never
    /// synced", "log", "no log". A log is an append-only file.
    pub keeps: [c_char; 32],
    /// Which keys it gives up when its memory is full: its maxmemory-policy.
    pub eviction: [c_char; 32],
}

// SAFETY: it is made of numbers, and begins with its size.
unsafe impl Versioned for RedLockServerInfo {
    const LEAST: usize = size_of::<Self>();
    const INIT: &'static str = "REDLOCK_SERVER_INFO_INIT";
}

/// Tells what is known of each server, for a person or a monitor: nobody is asked, and nothing is waited for.
/// Before the first call that asks servers none is connected; RedLock_Connect is one.
///
/// @param rl    the manager.
/// @param infos receives one struct for each server, in the order in which they were added, as far as there is
///              room. Begin the first one with REDLOCK_SERVER_INFO_INIT: its size holds for all. May be NULL if
///              *count is 0.
/// @param count how many structs there is room for; receives how many servers there are, which may be more.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT or REDLOCK_FORKED (the parent was using the manager when it
///         forked); RedLock_ErrorMessage(rl) has the words. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Servers(
    rl: *mut RedLock,
    infos: *mut RedLockServerInfo,
    count: *mut usize,
) -> RedLockStatus {
    side_call(rl, |handle| {
        let mut array = Array::new(infos, count, ("infos", "count"))?;
        let portraits = handle.manager.servers();
        for portrait in &portraits {
            array.push(|size| RedLockServerInfo { size, ..info(portrait) });
        }
        array.finish();
        Ok(RedLockStatus::REDLOCK_OK)
    })
}

/// For RedLock_SetRestartGuard: a server that lost its memory has no vote for as long as a lock may live that it
/// has forgotten. Servers that are all new at once have one.
pub const REDLOCK_GUARD_ON: i32 = 0;

/// For RedLock_SetRestartGuard: as REDLOCK_GUARD_ON, and servers that seem to be new have no vote at first either.
pub const REDLOCK_GUARD_STRICT: i32 = 1;

/// For RedLock_SetRestartGuard: every server that can be reached has a vote.
pub const REDLOCK_GUARD_OFF: i32 = 2;

/// For RedLock_SetRestartGuard: the same, because the program vouches that no server ever forgets what it granted.
pub const REDLOCK_GUARD_DURABLE: i32 = 3;

/// Sets what is done against servers that forget: after a restart without their data, FLUSHALL, a failover to a
/// copy, or with an empty server at the same address. Such a server might grant a lock that another client still
/// holds on it.
///
/// Each server bears a note of its memory in the key redlock:guard, which has no TTL. The user needs the right to
/// read and write this key, and to use INFO, TIME, GETRANGE and EVAL; without it, the server has a vote, and is
/// not guarded: RedLock_Servers says so. The note is read when a connection begins, and again along with every
/// acquire. If it is missing or another's, what the server grants is no vote until the longest TTL has passed that
/// is asked for, noted on any server, or given here; at least 3 s, at most cap_ms. A server whose append-only file is
/// synced always (appendfsync always) forgets nothing when it restarts, and has its vote at once. If all servers
/// were asked and none has a note, they are taken for new, and have their votes at once: so if all lose
/// everything in the same moment, nobody can tell.
///
/// A server whose clock is set forward lets go of keys before their time. A client that was connected to it before sees that
/// by its next acquire, and takes no vote of that server for as long as of one that has forgotten.
///
/// A server that may evict keys (maxmemory with another maxmemory-policy than noeviction) is refused, unless the
/// mode is REDLOCK_GUARD_OFF.
///
/// @param rl             the manager.
/// @param mode           REDLOCK_GUARD_ON, the default, REDLOCK_GUARD_STRICT, REDLOCK_GUARD_OFF or
///                       REDLOCK_GUARD_DURABLE. It holds for connections that are made from now on.
/// @param longest_ttl_ms the longest TTL that any client uses on these servers, 0 to 315360000000 (ten years). 0, the default: what is
///                       noted on the servers, which is enough unless several of them are lost at once.
/// @param cap_ms         for how long a server is left without a vote at most, 0 to 315360000000; less than
///                       3000 is 3000. 0, the default: 600000. Locks with a longer TTL are guarded for that long only.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetRestartGuard(
    rl: *mut RedLock,
    mode: i32,
    longest_ttl_ms: i64,
    cap_ms: i64,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        let mode = match mode {
            REDLOCK_GUARD_ON => Mode::On,
            REDLOCK_GUARD_STRICT => Mode::Strict,
            REDLOCK_GUARD_OFF => Mode::Off,
            REDLOCK_GUARD_DURABLE => Mode::Durable,
            _ => return Err(Error::invalid(format!("mode is {mode}, which means nothing"))),
        };
        handle.manager.set_restart_guard(mode, longest_ttl_ms, cap_ms)
    })
}

fn info(portrait: &Portrait) -> RedLockServerInfo {
    let Portrait {
        name,
        is_connected,
        has_vote,
        words,
        identity,
        round_trip_us,
        clock_offset_us,
        ..
    } = portrait;
    RedLockServerInfo {
        size: 0,
        connected: i32::from(*is_connected),
        votes: i32::from(*has_vote),
        round_trip_us: round_trip_us.unwrap_or(-1),
        clock_offset_us: clock_offset_us.unwrap_or(i64::MIN),
        name: text(name),
        words: text(words),
        version: text(identity.version()),
        role: text(identity.role()),
        run_id: text(identity.run_id().as_ref().map_or("", |id| id.as_str())),
        keeps: text(identity.keeps()),
        eviction: text(identity.eviction()),
    }
}
