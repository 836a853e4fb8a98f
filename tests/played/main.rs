//! The whole library in a simulated world. This compiles the library's own files again, with another
//! `system` in place of `src/system`. So connections, queues, codec and threads are those of production,
//! and a schedule controls time, sockets and randomness.
//!
//! - `world/` is that world: servers, connections, clocks, and callers that are coroutines.
//! - `scenarios/` are written by hand: each determines the events, to the nanosecond, and the required
//!   results.
//! - `schedules/` are made from seeds, with an oracle that checks all promises.
//!
//! - `cargo test --test played` plays all scenarios and a few seeds. It shows that each broken assumption
//!   is detected, and compares the simulated servers with a real one.
//! - `make simulate SEEDS=1000000 FIRST=0` plays many seeds, on all processors.
//! - `REDLOCK_SEED=7 cargo test --test played one_seed -- --ignored --nocapture` prints the story of one
//!   seed. If the seed fails, it leaves out everything that can be left out, and prints the rest.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the library's own files are compiled here, and not all in them is used"
)]

#[path = "../../src/driver/mod.rs"]
mod driver;
#[path = "../../src/engine/mod.rs"]
mod engine;
#[path = "../../src/fork.rs"]
mod fork;
#[path = "../../src/manager/mod.rs"]
mod manager;
#[path = "../../src/protocol/mod.rs"]
mod protocol;
#[path = "world/system/mod.rs"]
mod system;
#[path = "../../src/transport/mod.rs"]
mod transport;

#[path = "../support/mod.rs"]
mod support;

mod scenarios;
mod schedules;
mod world;
