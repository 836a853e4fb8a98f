//! A distributed lock over a majority of independent Redis or Valkey servers (Redlock).
//!
//! Rust programs use [`Manager`], [`Options`] and [`Lease`]. C programs use `include/redlock.h`, which is
//! generated from `ffi`. Both interfaces use the same manager, and neither depends on the other.
//!
//! ```no_run
//! use std::time::Duration;
//! use redlock::{Manager, Options};
//!
//! # fn main() -> Result<(), redlock::Error> {
//! let manager = Manager::builder().servers(["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"]).build()?;
//! let mut lease = manager.acquire(&Options::new("invoice:42", Duration::from_secs(10)))?;
//! assert!(lease.is_held());
//! lease.unlock()?;
//! # Ok(())
//! # }
//! ```
//!
//! A call takes this path: `face` or `ffi` → [`RedLock`] → `operation`. The `engine` runs the operation.
//! [`quorum`] decides what an answer means, and [`transport`] talks to the servers. No module depends on an
//! earlier one. DESIGN.md gives the reasons.

mod acquire_options;
#[doc(hidden)]
pub mod argument;
mod background;
mod blocking;
mod call;
mod check;
#[doc(hidden)]
pub mod command;
mod continued;
mod counted;
mod driver;
/// These tests are not inside `driver`, because `tests/pure/model` also compiles `driver`, with its own
/// mutexes.
#[cfg(test)]
mod driver_tests;
mod engine;
mod error;
mod face;
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
#[doc(hidden)]
pub mod refusal;
mod room;
mod runtime;
mod server_list;
#[doc(hidden)]
pub mod server_set;
#[doc(hidden)]
pub mod settings;
mod shared_lock;
#[doc(hidden)]
pub mod slot_set;
pub mod stats;
mod submitted;
mod system;
#[doc(hidden)]
pub mod token;
#[doc(hidden)]
pub mod transport;
mod trouble;
mod wait_queue;

pub use crate::acquire_options::AcquireOptions;
pub use crate::error::{Error, Status};
pub use crate::face::{
    Acquire, Builder, Change, Guard, Holder, Lease, Lost, Manager, Options, Permits, ServerInfo,
    Ticket,
};
#[doc(hidden)]
pub use crate::lease::Lease as PlainLease;
#[doc(hidden)]
pub use crate::lock_kind::LockKind;
pub use crate::log::{Level, Logger};
#[doc(hidden)]
pub use crate::redlock::{Canceller, RedLock};
#[doc(hidden)]
pub use crate::submitted::{Event, Tag};
pub use crate::transport::login::PasswordSource;
pub use crate::trouble::Trouble;
