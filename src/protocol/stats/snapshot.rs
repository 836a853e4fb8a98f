//! All counters at one moment.

use super::counts::Counts;
use super::traffic::Traffic;

/// The counters of one manager in one process.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub counts: Counts,
    /// The number of calls that are waiting for a lock at this moment.
    pub waiting: u64,
    /// The number of locks that are kept alive at this moment.
    pub kept: u64,
    /// The servers, in the order in which they were added.
    pub servers: Vec<ServerStats>,
}

/// What is known of one server.
#[derive(Clone, Debug)]
pub struct ServerStats {
    /// The name of the server as in messages.
    pub name: String,
    pub is_connected: bool,
    pub has_vote: bool,
    pub clock_offset_us: Option<i64>,
    pub traffic: Traffic,
}

impl Stats {
    /// The traffic with all servers together.
    pub fn traffic(&self) -> Traffic {
        self.servers.iter().fold(Traffic::default(), |sum, it| sum.with(&it.traffic))
    }
}
