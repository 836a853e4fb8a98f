//! The traffic between a manager and one server.

use super::histogram::Histogram;

/// The counters for one server, over all connections to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests that were sent.
    pub requests: u64,
    /// Connections that could be used.
    pub connections: u64,
    /// Usable connections that were lost.
    pub connections_lost: u64,
    /// Attempts to connect that failed.
    pub connections_failed: u64,
    /// The time from sending a request to reading its answer.
    pub round_trip: Histogram,
}

impl Traffic {
    /// Counts an answer that took this long.
    pub(crate) fn note_answer(&mut self, us: Option<i64>) {
        us.into_iter().for_each(|us| self.round_trip.observe(us));
    }

    pub(crate) fn with(mut self, other: &Self) -> Self {
        self.requests += other.requests;
        self.connections += other.connections;
        self.connections_lost += other.connections_lost;
        self.connections_failed += other.connections_failed;
        self.round_trip.add(&other.round_trip);
        self
    }
}
