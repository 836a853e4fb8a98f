//! A distributed lock over a majority of independent Redis or Valkey servers (Redlock).
//!
//! The crate is made for C: `include/redlock.h` is generated from [`ffi`]. The same manager serves
//! Rust callers as [`RedLock`].
//!
//! One way through: `ffi` → [`RedLock`] → `operation`, played by `engine`, which asks [`quorum`] what an
//! answer means and [`transport`] to talk to the servers. Nothing points back. DESIGN.md has the reasons.

mod background;
mod blocking;
mod call;
mod check;
#[doc(hidden)]
pub mod command;
mod continued;
mod counted;
mod driver;
mod engine;
mod error;
#[doc(hidden)]
pub mod failure;
#[doc(hidden)]
pub mod ffi;
mod fork;
mod held_lock;
mod keeper;
mod kept_log;
mod lease;
mod lease_call;
#[doc(hidden)]
pub mod lock_kind;
mod lock_ticket;
mod log;
pub mod moment;
mod operation;
mod process_state;
#[doc(hidden)]
pub mod quorum;
mod redlock;
mod reentrant;
mod runtime;
mod server_list;
#[doc(hidden)]
pub mod server_set;
#[doc(hidden)]
pub mod settings;
#[doc(hidden)]
pub mod stats;
mod submitted;
mod system;
#[doc(hidden)]
pub mod token;
#[doc(hidden)]
pub mod transport;
mod wait_queue;

pub use crate::error::{Error, Status};
pub use crate::lease::Lease;
pub use crate::lock_kind::LockKind;
pub use crate::log::{Level, Logger};
pub use crate::redlock::{AcquireOptions, Canceller, RedLock};
pub use crate::submitted::{Event, Tag};
pub use crate::transport::login::PasswordSource;
