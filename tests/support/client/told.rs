//! What the library reports of servers and resources, and its counters.

use std::ffi::{CStr, c_char};
use std::mem;

use redlock::ffi::inspect::RedLockInfo;
use redlock::ffi::servers::RedLockServerInfo;
use redlock::ffi::stats::RedLockStats;

/// A struct as a program initializes it.
pub(crate) fn no_server_info() -> RedLockServerInfo {
    // SAFETY: it consists of numbers, for which 0 is a value.
    let info = unsafe { mem::zeroed() };
    RedLockServerInfo { size: size_of::<RedLockServerInfo>(), ..info }
}

/// Nothing counted yet.
pub(crate) fn no_stats() -> RedLockStats {
    RedLockStats { size: size_of::<RedLockStats>(), ..RedLockStats::default() }
}

/// A struct as a program initializes it.
pub(crate) fn no_info() -> RedLockInfo {
    // SAFETY: it consists of numbers, for which 0 is a value.
    let info = unsafe { mem::zeroed() };
    RedLockInfo { size: size_of::<RedLockInfo>(), ..info }
}

/// What RedLock_Inspect reports, with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) locked: bool,
    pub(crate) mode: i32,
    pub(crate) remaining_ms: i64,
    pub(crate) readers: i64,
    pub(crate) permits_taken: i32,
    pub(crate) words: String,
}

/// What is reported of a server.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) connected: bool,
    pub(crate) votes: bool,
    pub(crate) words: String,
    pub(crate) version: String,
    pub(crate) role: String,
    pub(crate) run_id: String,
    pub(crate) keeps: String,
    pub(crate) eviction: String,
    pub(crate) round_trip_us: i64,
    pub(crate) clock_offset_us: i64,
}

impl Known {
    pub(super) fn of(info: &RedLockServerInfo) -> Self {
        let text = |room: &[c_char]| {
            let bytes: Vec<u8> = room.iter().map(|it| it.to_ne_bytes()[0]).collect();
            let words = CStr::from_bytes_until_nul(&bytes).expect("it ends with a NUL");
            words.to_str().expect("it is UTF-8").to_owned()
        };
        assert_eq!(info.size, size_of::<RedLockServerInfo>());
        Self {
            name: text(&info.name),
            connected: info.connected == 1,
            votes: info.votes == 1,
            words: text(&info.words),
            version: text(&info.version),
            role: text(&info.role),
            run_id: text(&info.run_id),
            keeps: text(&info.keeps),
            eviction: text(&info.eviction),
            round_trip_us: info.round_trip_us,
            clock_offset_us: info.clock_offset_us,
        }
    }
}
