//! What is known of a server.

use std::time::Duration;

use crate::protocol::trouble::Trouble;
use crate::transport::server::ServerSnapshot;

/// The state of one server, for a person or a monitor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The address, such as `10.0.0.7:6379`, without the user and the password. For a master that Sentinels
    /// watch: its name with its address, `mymaster (10.0.0.7:6379)`.
    pub name: String,
    /// Whether there is a usable connection.
    pub is_connected: bool,
    /// Whether the grants of the server count.
    pub has_vote: bool,
    /// Why the server is not connected or has no vote, or what is not known of it. Empty if there is nothing to
    /// report.
    pub words: String,
    /// The same for programs: what is wrong with a server that is not connected, has no vote, or lacks its fencing
    /// counters.
    pub trouble: Option<Trouble>,
    /// The program and its version: `7.0.15` for a Redis, `valkey 9.1.0`. This field and the next four are
    /// empty if the server has not said them, or if the user may not ask (`INFO`, `CONFIG GET`).
    pub version: String,
    /// `primary`, or `replica` or `sentinel`, which have no vote.
    pub role: String,
    /// 40 hexadecimal digits that change with each start of the server.
    pub run_id: String,
    /// Which data of the server outlives its process: `log, synced always`, `log, synced every second`,
    /// `log, never synced`, `log` or `no log`. A log is an append-only file.
    pub keeps: String,
    /// Which keys the server evicts when its memory is full: its `maxmemory-policy`.
    pub eviction: String,
    /// The time that the last answer took, from sending to reading.
    pub round_trip: Option<Duration>,
    /// How far the clock of the server is ahead of the clock of this machine, in microseconds; below 0 if it is
    /// behind. The value is exact to half a round trip and a millisecond.
    pub clock_offset_us: Option<i64>,
}

impl From<&ServerSnapshot> for ServerInfo {
    fn from(snapshot: &ServerSnapshot) -> Self {
        let identity = &snapshot.identity;
        let us = |us: i64| Duration::from_micros(u64::try_from(us).unwrap_or(0));
        Self {
            name: snapshot.name.clone(),
            is_connected: snapshot.is_connected,
            has_vote: snapshot.has_vote,
            words: snapshot.words.clone(),
            trouble: snapshot.trouble,
            version: identity.version().to_owned(),
            role: identity.role().to_owned(),
            run_id: identity.run_id().as_ref().map_or("", |id| id.as_str()).to_owned(),
            keeps: identity.keeps().to_owned(),
            eviction: identity.eviction().to_owned(),
            round_trip: snapshot.round_trip_us.map(us),
            clock_offset_us: snapshot.clock_offset_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::servers::endpoint::Endpoint;

    #[test]
    fn server_numbers_keep_unit_and_sign() {
        let endpoint = Endpoint::parse("10.0.0.7", 6379).expect("an address");
        let mut snapshot = ServerSnapshot::of_unknown(&endpoint);
        let info = ServerInfo::from(&snapshot);
        assert_eq!((info.name.as_str(), info.round_trip), ("10.0.0.7:6379", None));
        (snapshot.round_trip_us, snapshot.clock_offset_us) = (Some(1_500), Some(-7));
        (snapshot.is_connected, snapshot.has_vote) = (true, false);
        let info = ServerInfo::from(&snapshot);
        assert_eq!(info.round_trip, Some(Duration::from_micros(1_500)));
        assert_eq!(info.clock_offset_us, Some(-7));
        assert!(info.is_connected && !info.has_vote);
    }
}
