//! The C functions about servers as voters: the state of each server, and the guard against servers that
//! forget.

use std::ffi::c_char;
use std::mem::offset_of;

use super::arguments::{Array, Versioned, words as text};
use super::call::{manager_call, side_call};
use super::handle::RedLock;
use super::status::RedLockStatus;
use crate::protocol::conn::guard::Mode;
use crate::protocol::error::Error;
use crate::transport::server::ServerSnapshot;

/// The state of one server, from RedLock_Servers. All strings end with a NUL; longer strings are cut.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockServerInfo {
    /// sizeof(RedLockServerInfo).
    pub size: usize,
    /// 1 if there is a usable connection, else 0.
    pub connected: i32,
    /// 1 if the grants of the server count, else 0.
    pub votes: i32,
    /// The time that the last answer took, from sending to reading, in microseconds; -1 if there was no
    /// answer yet.
    pub round_trip_us: i64,
    /// How far the clock of the server is ahead of the clock of this machine, in microseconds; below 0 if it
    /// is behind. The value is exact to half a round trip and a millisecond. It was measured when the
    /// connection began and whenever a lock was requested, and is given for the time that the clock of this
    /// machine shows now. INT64_MIN if it is not known: there was no connection yet, the guard is off
    /// (RedLock_SetRestartGuard), or the user may not ask (TIME).
    pub clock_offset_us: i64,
    /// The address: host:port, or the path of the socket. For a master that Sentinels watch: its name with
    /// its address, "mymaster (10.0.0.7:6379)". Before the address is known: its name with the address of the
    /// first Sentinel, "mymaster (Sentinel 10.0.0.5:26379)". Never a user or a password.
    pub name: [c_char; 256],
    /// Why the server is not connected, does not vote, or is not guarded. Empty if there is nothing to
    /// report.
    pub words: [c_char; 512],
    /// The program and its version: "7.0.15" for a Redis, "valkey 9.1.0". This field and the following ones
    /// are what the server said when it was last asked. They are empty if the server has not said it, or if
    /// the user may not ask (INFO, CONFIG GET).
    pub version: [c_char; 32],
    /// "primary", or "replica" or "sentinel", which cannot vote.
    pub role: [c_char; 16],
    /// 40 hexadecimal digits that change with each start of the server.
    pub run_id: [c_char; 48],
    /// Which data of the server outlives its process: "log, synced always", "log, synced every second", "log,
    /// never synced", "log", "no log". A log is an append-only file.
    pub keeps: [c_char; 32],
    /// Which keys the server evicts when its memory is full: its maxmemory-policy.
    pub eviction: [c_char; 32],
}

// SAFETY: the struct consists of numbers, and begins with its size.
unsafe impl Versioned for RedLockServerInfo {
    const LEAST: usize = offset_of!(Self, eviction) + size_of::<[c_char; 32]>();
    const INIT: &'static str = "REDLOCK_SERVER_INFO_INIT";
}

/// Reports what is known of each server, for a person or a monitor. No server is asked, and the call does not
/// wait. Before the first call that asks servers, none is connected. RedLock_Connect is such a call.
///
/// @param rl    the manager.
/// @param infos receives one struct for each server, in the order in which they were added, as far as there
///              is room. Begin the first one with REDLOCK_SERVER_INFO_INIT: its size applies to all of them.
///              May be NULL if *count is 0.
/// @param count the number of structs that there is room for. Receives the number of servers, which may be
///              greater.
/// @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT or REDLOCK_FORKED (the parent was using the manager when it
///         forked): RedLock_ErrorMessage(rl) returns the message. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Servers(
    rl: *mut RedLock,
    infos: *mut RedLockServerInfo,
    count: *mut usize,
) -> RedLockStatus {
    side_call(rl, |handle| {
        let mut array = Array::new(infos, count, ("infos", "count"))?;
        let snapshots = handle.manager.servers();
        for snapshot in &snapshots {
            array.push(|size| RedLockServerInfo { size, ..info(snapshot) });
        }
        array.finish();
        Ok(RedLockStatus::REDLOCK_OK)
    })
}

/// For RedLock_SetRestartGuard: the guard is on. A server that lost its memory has no vote for as long as a
/// lock that it has forgotten may live. If all servers are new at once, they have a vote.
pub const REDLOCK_GUARD_ON: i32 = 0;

/// For RedLock_SetRestartGuard: the guard is strict. This is REDLOCK_GUARD_ON, but servers that seem to be
/// new also have no vote at first.
pub const REDLOCK_GUARD_STRICT: i32 = 1;

/// For RedLock_SetRestartGuard: the guard is off. Every server that can be reached has a vote.
pub const REDLOCK_GUARD_OFF: i32 = 2;

/// For RedLock_SetRestartGuard: the servers are durable. Every server that can be reached has a vote, because
/// the program vouches that no server ever forgets what it granted.
pub const REDLOCK_GUARD_DURABLE: i32 = 3;

/// Sets how the manager guards against servers that forget their locks. A server forgets them by a restart
/// without its data, by FLUSHALL, by a failover to a copy, or if an empty server takes over its address. Such
/// a server might grant a lock that another client still holds on it.
///
/// Each server bears a note of its memory in the key redlock:guard, which has no TTL. The user needs the right
/// to read and write this key, and to use INFO, TIME, PEXPIRETIME (Redis 7.0), GETRANGE, GET, SET and EVAL.
/// Without this right the server has a vote but is not guarded, and RedLock_Servers reports this. The note is
/// read when a connection begins, and again along with every acquire. If the note is missing or belongs to
/// another server process, the grants of the server are not votes for a time. This time is the longest of these
/// TTLs: the requested one, those noted on any server, and longest_ttl_ms. It is at least 3 s, and at most
/// cap_ms.
///
/// A server whose append-only file is always synced (appendfsync always) forgets nothing when it restarts,
/// and has its vote at once. If all servers were asked and none has a note, the library takes them for new
/// servers, which have their votes at once. So if all servers lose everything at the same moment, nobody can
/// tell.
///
/// A server whose clock is set forward expires keys before their time. A client that was connected to it
/// before notices this at its next acquire. Then it takes no vote of that server for as long as of a server
/// that has forgotten its locks.
///
/// A server that may evict keys (maxmemory with another maxmemory-policy than noeviction) is refused, unless
/// the mode is REDLOCK_GUARD_OFF.
///
/// @param rl             the manager.
/// @param mode           REDLOCK_GUARD_ON, the default, REDLOCK_GUARD_STRICT, REDLOCK_GUARD_OFF or
///                       REDLOCK_GUARD_DURABLE. It applies to connections that are made from now on.
/// @param longest_ttl_ms the longest TTL that any client uses on these servers, 0 to 315360000000 (ten
///                       years). 0, the default: the TTL that is noted on the servers. This is enough unless
///                       several of them are lost at once.
/// @param cap_ms         the longest time that a server stays without a vote, 0 to 315360000000; less than
///                       3000 is 3000. 0, the default: 600000. Locks with a longer TTL are guarded for that
///                       time only.
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
            _ => {
                return Err(Error::invalid(format!(
                    "mode is {mode}: use a REDLOCK_GUARD_ constant"
                )));
            }
        };
        handle.manager.settings().set_guard(mode, longest_ttl_ms, cap_ms)
    })
}

/// Sets whether a master that Sentinels watch needs a majority of them for its vote. If enabled, it has a vote only
/// while a majority of all its Sentinels names it as the master. They are asked about once a second while locks are
/// taken, in parallel with the requests. So an old master that was paused or cut off while another one was elected
/// never votes beside its successor.
///
/// If not enabled, one Sentinel that answers is enough, and a master keeps its vote while no Sentinel can be
/// reached. Then an old master may vote beside its successor, and two clients may hold one lock.
///
/// This has no effect on servers that no Sentinel watches. Nor has it any effect if the restart guard is off or
/// durable (RedLock_SetRestartGuard), because the servers bear no notes then.
///
/// @param rl      the manager.
/// @param enabled true, the default, or false. It applies to connections that are made from now on.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetFailoverGuard(
    rl: *mut RedLock,
    enabled: bool,
) -> RedLockStatus {
    manager_call(rl, |handle| {
        handle.manager.settings().set_failover_guard(enabled);
        Ok(())
    })
}

fn info(snapshot: &ServerSnapshot) -> RedLockServerInfo {
    let ServerSnapshot {
        name,
        is_connected,
        has_vote,
        words,
        identity,
        round_trip_us,
        clock_offset_us,
        ..
    } = snapshot;
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
