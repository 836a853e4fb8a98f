//! The Rust interface of the library: [`Manager`], [`Options`], [`Lease`].
//!
//! Every call has two forms: one that blocks the thread, and a future (`…_async`). The futures need no
//! particular runtime, but the manager must be driven: see [`Manager`]. This module does not know the C
//! interface, and the C interface does not know this module.
#![warn(missing_docs)]

mod lease;
mod lost;
mod manager;
mod options;
mod server;
mod shared;
mod slot;
#[cfg(test)]
mod task;
mod ticket;
mod time;

pub use self::lease::{Acquire, Change, Lease};
pub use self::lost::Lost;
pub use self::manager::{Builder, Guard, Holder, Manager, Permits};
pub use self::options::Options;
pub use self::server::ServerInfo;
pub use self::ticket::Ticket;
