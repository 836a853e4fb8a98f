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

#[path = "../../../src/driver/mod.rs"]
mod driver;
#[path = "../../../src/engine/mod.rs"]
mod engine;
#[path = "../../../src/ffi/mod.rs"]
mod ffi;
#[path = "../../../src/fork.rs"]
mod fork;
#[path = "../../../src/manager/mod.rs"]
mod manager;
#[path = "../../../src/protocol/mod.rs"]
mod protocol;
#[path = "../../../src/transport/mod.rs"]
mod transport;

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
