//! The world as the library sees it, in place of `src/system`: the same calls, and all of it played.

pub(crate) mod clock;
pub(crate) mod entropy;
#[cfg(feature = "tls")]
pub(crate) mod files;
pub(crate) mod process;
pub(crate) mod readiness;
pub(crate) mod socket;
pub(crate) mod sync;
pub(crate) mod thread;
