//! The face of the library for Rust programs: [`Manager`], [`Options`], [`Lease`].
//!
//! Every call exists twice: one that blocks the thread, and one that is a future (`…_async`). The futures need no
//! particular runtime; somebody has to drive them, and [`Manager`] says who can. Nothing here knows the C interface,
//! nor does that know of this.
#![warn(missing_docs)]

mod builder;
mod future;
mod lease;
mod lost;
mod manager;
mod options;
mod server;
mod shared;
mod slot;
mod ticket;
mod time;

pub use self::builder::{Builder, Guard};
pub use self::future::{Acquire, Change};
pub use self::lease::Lease;
pub use self::lost::Lost;
pub use self::manager::{Holder, Manager};
pub use self::options::Options;
pub use self::server::ServerInfo;
pub use self::ticket::Ticket;
