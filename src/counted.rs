//! The manager's statistics, and its trace of locks in the log.

use crate::redlock::RedLock;
use crate::stats::{self, Stats, Tracing};
use crate::transport::server::snapshot::ServerSnapshot;

impl RedLock {
    /// The statistics of this process. Asks no server.
    pub fn stats(&self) -> Stats {
        if let Some(own) = self.states.known() {
            return own.stats();
        }
        let unknown = self.servers.iter().map(ServerSnapshot::of_unknown);
        Stats { servers: unknown.map(Into::into).collect(), ..Stats::default() }
    }

    /// The same in the text format of Prometheus.
    pub fn stats_text(&self) -> String {
        stats::text(&self.stats(), env!("CARGO_PKG_VERSION"))
    }

    /// Sets which events of locks are logged.
    pub(crate) fn set_tracing(&self, tracing: Tracing) {
        self.settings.set_tracing(tracing);
    }
}
