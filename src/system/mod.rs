//! All there is of the world outside: time, randomness, processes, threads, sockets. Nothing else
//! touches the system, so that a test can put a world of its own in the place of this folder.

pub(crate) mod cancellation;
pub(crate) mod clock;
pub(crate) mod entropy;
pub(crate) mod environment;
#[cfg(feature = "tls")]
pub(crate) mod files;
pub(crate) mod process;
pub(crate) mod readiness;
pub(crate) mod socket;
pub(crate) mod sync;
pub(crate) mod thread;
