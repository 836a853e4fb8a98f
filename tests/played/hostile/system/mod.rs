//! The world as the library sees it, in place of src/system: the same calls, and the [`crate::world`]
//! behind them. Processes and threads are the real ones.

#[path = "../../../../src/system/cancellation.rs"]
pub(crate) mod cancellation;
pub(crate) mod clock;
pub(crate) mod entropy;
#[path = "../../../../src/system/environment.rs"]
pub(crate) mod environment;
#[cfg(feature = "tls")]
pub(crate) mod files;
#[path = "../../../../src/system/process.rs"]
pub(crate) mod process;
pub(crate) mod readiness;
pub(crate) mod socket;
#[path = "../../../../src/system/sync.rs"]
pub(crate) mod sync;
pub(crate) mod thread;
