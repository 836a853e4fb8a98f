//! What the manager counts, and what it tells of locks.

use crate::redlock::RedLock;
use crate::stats::{self, Stats, Tracing};
use crate::transport::server::portrait::Portrait;

impl RedLock {
    /// What was counted in this process. Nobody is asked.
    pub fn stats(&self) -> Stats {
        if let Some(own) = self.states.known() {
            return own.stats();
        }
        let unknown = self.servers.iter().map(Portrait::of_unknown);
        Stats { servers: unknown.map(Into::into).collect(), ..Stats::default() }
    }

    /// The same as Prometheus reads it.
    pub fn stats_text(&self) -> String {
        stats::text(&self.stats(), env!("CARGO_PKG_VERSION"))
    }

    /// Sets what the log is told of locks.
    pub(crate) fn set_tracing(&self, tracing: Tracing) {
        self.settings.set_tracing(tracing);
    }
}
