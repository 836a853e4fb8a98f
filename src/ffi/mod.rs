//! The C interface. It checks and converts arguments, calls the manager, and maps the result. It contains no
//! algorithm.
//!
//! Every function is a plain function, so that cbindgen sees it, and runs within `guard`.

// The comments become those of redlock.h, where brackets mark what may be left out.
#![allow(rustdoc::broken_intra_doc_links)]

pub mod access;
pub mod acquire;
mod arguments;
mod call;
pub mod callback;
pub mod event;
pub mod fencing;
mod guard;
mod handle;
pub mod handover;
pub mod inspect;
pub mod kept_log;
pub mod language;
pub mod lease;
mod lease_state;
mod locking;
mod message;
mod redlock;
pub mod reentrant;
pub mod resources;
pub mod servers;
pub mod shared_lock;
pub mod stats;
pub mod status;
pub mod submit;
pub mod version;
pub mod waking;

pub use self::handle::RedLock;
pub use self::locking::*;
pub use self::redlock::*;
