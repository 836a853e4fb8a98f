//! The counters. They are plain numbers. The thread that has exclusive access to the engine changes them, and
//! they are read as a whole.

pub mod counts;
pub mod histogram;
mod record;
mod snapshot;
mod text;
mod trace;
mod traffic;

pub use self::counts::{Counts, Outcome};
pub use self::histogram::{BOUNDS_US, Histogram};
pub(crate) use self::record::{Account, Kind, Mark, Record};
pub use self::snapshot::{ServerStats, Stats};
pub(crate) use self::text::text;
pub(crate) use self::trace::Tracing;
pub use self::traffic::Traffic;
