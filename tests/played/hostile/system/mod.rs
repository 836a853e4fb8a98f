//! The system as the library sees it, in place of src/system: the same calls, with [`crate::world`] behind
//! them. Processes and mutexes are real. There are no files, no threads and no descriptors for event loops,
//! as in the world of `played`.

#[path = "../../../../src/system/cancellation.rs"]
pub(crate) mod cancellation;
pub(crate) mod clock;
pub(crate) mod entropy;
#[path = "../../../../src/system/environment.rs"]
pub(crate) mod environment;
#[cfg(feature = "tls")]
#[path = "../../world/system/files.rs"]
pub(crate) mod files;
#[path = "../../../../src/system/process.rs"]
pub(crate) mod process;
#[path = "../../world/system/readiness.rs"]
pub(crate) mod readiness;
#[path = "../../../../src/system/resolver.rs"]
pub(crate) mod resolver;
pub(crate) mod socket;
#[path = "../../../../src/system/sync.rs"]
pub(crate) mod sync;
#[path = "../../world/system/thread.rs"]
pub(crate) mod thread;
