//! A distributed lock for programs on different machines. A client holds the lock on a majority of independent Redis
//! or Valkey servers (Redlock). Two of five servers can be down or frozen, and the clients do not notice.
//!
//! ```no_run
//! use std::time::Duration;
//! use redlock::{Manager, Options};
//!
//! # fn main() -> Result<(), redlock::Error> {
//! let manager = Manager::builder().servers(["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"]).build()?;
//! let options = Options::new("invoice:42", Duration::from_secs(10)).wait(Duration::from_secs(5));
//! let mut lease = manager.acquire(&options)?;
//! // ... the work, while lease.is_held() ...
//! lease.unlock()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a lock is
//!
//! A lock is a lease: it expires after its TTL, also while its holder still works. Check [`Lease::remaining`], extend
//! the lock, or have it kept ([`Options::keep_alive`]). Call [`Lease::confirm`] right before a step that cannot be
//! undone. Where two writers would be a disaster, pass the fencing token with each write ([`Lease::fencing_token`]).
//!
//! # Where to begin
//!
//! | to | see |
//! |---|---|
//! | name the servers, set TLS, passwords, timeouts | [`Manager::builder`], [`Builder`] |
//! | say what to lock, for how long, how long to wait | [`Options`] |
//! | take a lock, blocking or as a future | [`Manager::acquire`], [`Manager::acquire_async`] |
//! | extend, confirm, release, hand over | [`Lease`] |
//! | stop when a kept lock is lost | [`Lease::lost`] |
//! | share a lock, limit how many hold it, lock several names | [`Options::shared`], [`Options::permit_of`], [`Options::several`] |
//! | see who holds it | [`Manager::inspect`], [`Manager::inspect_permits`] |
//! | know why a call failed | [`Error`], [`Status`] |
//!
//! Futures need no particular runtime: [`Manager`] says who drives them. Without `.wait(…)`, a call makes one attempt.
//!
//! # Features
//!
//! `tls`, on by default: servers at `rediss://`. `default-features = false` leaves it out.
//!
//! # Closing, and fork
//!
//! The connections are closed when the last clone of a manager, lease and future is dropped; a dropped lease releases
//! its lock. A forked child can use the manager, and makes its own connections. It holds none of its parent's locks.

// C programs use include/redlock.h, which is generated from `ffi`. Both interfaces use the same manager, and neither
// depends on the other. A call takes this path: `face` or `ffi` → `RedLock` → `operation`. The `engine` runs the
// operation. `quorum` decides what an answer means, and `transport` talks to the servers. No module depends on an
// earlier one. ARCHITECTURE.md has the tree and the life of one lock call, and docs/internals/ gives the reasons.

mod driver;
/// These tests are not inside `driver`, because `tests/pure/model` also compiles `driver`, with its own
/// mutexes.
#[cfg(test)]
mod driver_tests;
mod engine;
mod face;
#[doc(hidden)]
pub mod ffi;
mod fork;
mod manager;
#[doc(hidden)]
pub mod protocol;
mod system;
#[doc(hidden)]
pub mod transport;

pub use crate::face::{
    Acquire, Builder, Change, Guard, Holder, Lease, Lost, Manager, Options, Permits, ServerInfo,
    Ticket,
};
#[doc(hidden)]
pub use crate::manager::call::{AcquireOptions, Call};
#[doc(hidden)]
pub use crate::manager::canceller::Canceller;
#[doc(hidden)]
pub use crate::manager::event::{Event, Tag};
#[doc(hidden)]
pub use crate::manager::lease::Lease as PlainLease;
#[doc(hidden)]
pub use crate::manager::log::Logger;
#[doc(hidden)]
pub use crate::manager::redlock::RedLock;
#[doc(hidden)]
pub use crate::manager::settings;
#[doc(hidden)]
pub use crate::protocol::conn::login::PasswordSource;
pub use crate::protocol::error::{Error, Status};
#[doc(hidden)]
pub use crate::protocol::lock_kind::LockKind;
pub use crate::protocol::log_line::Level;
pub use crate::protocol::trouble::Trouble;
