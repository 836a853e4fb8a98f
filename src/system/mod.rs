//! All access to the outside world: time, randomness, processes, threads, sockets. Nothing else uses the
//! system, so that a test can replace this folder with a world of its own.

pub(crate) mod cancellation;
pub(crate) mod clock;
pub(crate) mod entropy;
pub(crate) mod environment;
#[cfg(feature = "tls")]
pub(crate) mod files;
pub(crate) mod process;
pub(crate) mod readiness;
pub(crate) mod resolver;
pub(crate) mod socket;
pub(crate) mod sync;
pub(crate) mod thread;
