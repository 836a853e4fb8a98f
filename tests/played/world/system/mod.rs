//! The system as the library sees it, in place of `src/system`: the same calls, all of them simulated.

pub(crate) mod clock;
pub(crate) mod entropy;
#[cfg(feature = "tls")]
pub(crate) mod files;
pub(crate) mod process;
pub(crate) mod readiness;
#[path = "../../../../src/system/resolver.rs"]
pub(crate) mod resolver;
pub(crate) mod socket;
pub(crate) mod sync;
pub(crate) mod thread;
