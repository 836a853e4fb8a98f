//! What hostile servers and careless callers can do to the library: nothing beyond what is theirs to
//! decide.
//!
//! This compiles the library's own files on top of another [`system`]. Sockets, time and randomness are
//! simulated, so that nothing waits and each run is the same. Bytes decide what is then done with the
//! library, with one target each: [`replies`], [`urls`] and [`calls`]. `cargo test` plays the corpus of
//! fuzz/ and mutations of it. With `make fuzz`, libFuzzer searches for bytes that do harm. For that, this
//! file is also the root of a library (fuzz/Cargo.toml).

// Only a part of the library is used here.
#![allow(dead_code, unreachable_pub)]

#[path = "../../../src/argument.rs"]
mod argument;
#[path = "../../../src/background.rs"]
mod background;
#[path = "../../../src/call.rs"]
mod call;
#[path = "../../../src/call_handle.rs"]
mod call_handle;
#[path = "../../../src/check.rs"]
mod check;
#[path = "../../../src/command/mod.rs"]
mod command;
#[path = "../../../src/continued.rs"]
mod continued;
#[path = "../../../src/driver/mod.rs"]
mod driver;
#[path = "../../../src/ending.rs"]
mod ending;
#[path = "../../../src/engine/mod.rs"]
mod engine;
#[path = "../../../src/error.rs"]
mod error;
#[path = "../../../src/event.rs"]
mod event;
#[path = "../../../src/failure.rs"]
mod failure;
#[path = "../../../src/ffi/mod.rs"]
mod ffi;
#[path = "../../../src/fork.rs"]
mod fork;
#[path = "../../../src/inspection.rs"]
mod inspection;
#[path = "../../../src/keeper.rs"]
mod keeper;
#[path = "../../../src/kept_log.rs"]
mod kept_log;
#[path = "../../../src/lease.rs"]
mod lease;
#[path = "../../../src/lock/mod.rs"]
mod lock;
#[path = "../../../src/lock_kind.rs"]
mod lock_kind;
#[path = "../../../src/lock_ticket.rs"]
mod lock_ticket;
#[path = "../../../src/log.rs"]
mod log;
#[path = "../../../src/moment.rs"]
mod moment;
#[path = "../../../src/operation/mod.rs"]
mod operation;
#[path = "../../../src/process_state.rs"]
mod process_state;
#[path = "../../../src/quorum/mod.rs"]
mod quorum;
#[path = "../../../src/redlock.rs"]
mod redlock;
#[path = "../../../src/refusal.rs"]
mod refusal;
#[path = "../../../src/room.rs"]
mod room;
#[path = "../../../src/runtime.rs"]
mod runtime;
#[path = "../../../src/server_list.rs"]
mod server_list;
#[path = "../../../src/server_set.rs"]
mod server_set;
#[path = "../../../src/settings.rs"]
mod settings;
#[path = "../../../src/slot_set.rs"]
mod slot_set;
#[path = "../../../src/stats/mod.rs"]
mod stats;
#[path = "../../../src/token.rs"]
mod token;
#[path = "../../../src/transport/mod.rs"]
mod transport;
#[path = "../../../src/trouble.rs"]
mod trouble;
#[path = "../../../src/wait_queue/mod.rs"]
mod wait_queue;

mod access;
mod arguments;
pub mod calls;
mod choices;
mod crowd;
mod events;
mod handles;
#[path = "../world/hashes.rs"]
mod hashes;
mod judge;
mod logger;
mod memory;
mod peer;
pub mod replies;
mod resp;
mod seen;
mod several;
mod system;
pub mod urls;
mod world;

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod succession;
