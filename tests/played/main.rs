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

#[path = "../../src/background.rs"]
mod background;
#[path = "../../src/call.rs"]
mod call;
#[path = "../../src/call_handle.rs"]
mod call_handle;
#[path = "../../src/conclusion.rs"]
mod conclusion;
#[path = "../../src/continued_locks.rs"]
mod continued_locks;
#[path = "../../src/driver/mod.rs"]
mod driver;
#[path = "../../src/engine/mod.rs"]
mod engine;
#[path = "../../src/event.rs"]
mod event;
#[path = "../../src/fork.rs"]
mod fork;
#[path = "../../src/inspection.rs"]
mod inspection;
#[path = "../../src/lease.rs"]
mod lease;
#[path = "../../src/log.rs"]
mod log;
#[path = "../../src/process_state.rs"]
mod process_state;
#[path = "../../src/protocol/mod.rs"]
mod protocol;
#[path = "../../src/redlock.rs"]
mod redlock;
#[path = "../../src/runtime.rs"]
mod runtime;
#[path = "../../src/server_list.rs"]
mod server_list;
#[path = "../../src/settings.rs"]
mod settings;
#[path = "world/system/mod.rs"]
mod system;
#[path = "../../src/transport/mod.rs"]
mod transport;

#[path = "../support/mod.rs"]
mod support;

mod scenarios;
mod schedules;
mod world;
