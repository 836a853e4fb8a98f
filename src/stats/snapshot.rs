//! What was counted, all of it at one moment.

use super::counts::Counts;
use super::traffic::Traffic;

/// The counters of one manager in one process.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub counts: Counts,
    /// How many locks are waited for at this moment.
    pub waiting: u64,
    /// How many locks are kept at this moment.
    pub kept: u64,
    /// The servers, in the order in which they were added.
    pub servers: Vec<ServerStats>,
}

/// What is known of one server.
#[derive(Clone, Debug)]
pub struct ServerStats {
    /// As messages name it.
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
