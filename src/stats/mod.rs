//! What is counted: plain numbers, changed by whoever has the engine to itself, and read as a whole.

pub mod counts;
pub mod histogram;
mod record;
mod text;
mod trace;
mod traffic;

pub use self::counts::{Counts, Outcome};
pub use self::histogram::{BOUNDS_US, Histogram};
pub(crate) use self::record::{Account, Kind, Mark, Record, Stretch};
pub(crate) use self::text::text;
pub(crate) use self::trace::Tracing;
pub use self::traffic::Traffic;

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
