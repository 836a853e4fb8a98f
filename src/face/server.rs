//! What is known of a server.

use std::time::Duration;

use crate::transport::server::portrait::Portrait;

/// What is known of a server, for a person or a monitor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Where it is, such as `10.0.0.7:6379`, without the user and the password. Of a master that Sentinels watch
    /// its name and its address: `mymaster (10.0.0.7:6379)`.
    pub name: String,
    /// Whether there is a connection that can be used.
    pub is_connected: bool,
    /// Whether what it grants counts.
    pub has_vote: bool,
    /// Why it is not connected, or has no vote, or what is not known of it; empty if there is nothing to say.
    pub words: String,
    /// What program it is: `7.0.15` for a Redis, `valkey 9.1.0`. This and the next four are empty where it has not
    /// said them, or the user may not ask (`INFO`, `CONFIG GET`).
    pub version: String,
    /// `primary`; or `replica` or `sentinel`, which have no vote.
    pub role: String,
    /// 40 hexadecimal digits that are others after each start of the server.
    pub run_id: String,
    /// What of its data outlives its process: `log, synced always`, `log, synced every second`,
    /// `log, never synced`, `log` or `no log`. A log is an append-only file.
    pub keeps: String,
    /// Which keys it gives up when its memory is full: its `maxmemory-policy`.
    pub eviction: String,
    /// How long its last answer took, from sending to reading.
    pub round_trip: Option<Duration>,
    /// How far its clock is ahead of this machine's, in microseconds; below 0 if it is behind. Exact to half a round
    /// trip and a millisecond.
    pub clock_offset_us: Option<i64>,
}

impl From<&Portrait> for ServerInfo {
    fn from(portrait: &Portrait) -> Self {
        let identity = &portrait.identity;
        let us = |us: i64| Duration::from_micros(u64::try_from(us).unwrap_or(0));
        Self {
            name: portrait.name.clone(),
            is_connected: portrait.is_connected,
            has_vote: portrait.has_vote,
            words: portrait.words.clone(),
            version: identity.version().to_owned(),
            role: identity.role().to_owned(),
            run_id: identity.run_id().as_ref().map_or("", |id| id.as_str()).to_owned(),
            keeps: identity.keeps().to_owned(),
            eviction: identity.eviction().to_owned(),
            round_trip: portrait.round_trip_us.map(us),
            clock_offset_us: portrait.clock_offset_us,
        }
    }
}
