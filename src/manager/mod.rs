//! The manager, and what stands between the interfaces and the protocol: calls on leases, the state of a process,
//! settings, events, the log, and the thread that programs may ask for.
//!
//! A call comes from `face` or `ffi` to [`redlock`]. That one finds the state of this process ([`process_state`],
//! [`runtime`]). [`call`] checks the arguments and makes an operation, and [`conclusion`] says what its end does to the
//! lease.

pub(crate) mod background;
pub(crate) mod call;
pub(crate) mod canceller;
mod conclusion;
mod continued_locks;
pub(crate) mod event;
pub(crate) mod inspection;
pub(crate) mod kept_log;
pub(crate) mod lease;
pub(crate) mod log;
pub(crate) mod process_state;
pub(crate) mod redlock;
pub(crate) mod runtime;
mod server_list;
pub mod settings;
