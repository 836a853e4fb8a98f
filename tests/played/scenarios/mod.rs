//! The rules of a lock, one scenario after the other: calls of clients and of their threads, on a
//! network, on clocks and with dice that do what a scenario wants. So moments can be hit that no
//! real clock can hit, and years can be had in a moment.
//!
//! `cluster.rs` is what a scenario says, `client.rs` how it calls, `crowd.rs` has many threads that want
//! one lock, `processes.rs` processes that are told when one is free.

mod client;
mod cluster;
mod counts;
mod crowd;
mod history;
mod processes;

mod continue_lock;
mod extend;
mod hand_over;
mod handed;
mod late;
mod levels;
mod line;
mod manners;
mod questions;
mod releases;
mod retry;
mod slices;
mod suspend;
mod unlock;
mod validity;
mod waking;
mod waking_kinds;
mod waking_servers;

/// A TTL with its validity, by the book: 1 % and 2 ms less.
const TTL: i64 = 10_000;
const VALID: i64 = 9_898;

/// No two attempts to connect come closer than this.
const RETRY_GAP_MS: i64 = 20;

/// A connection that was quiet for so long is looked at before it is trusted with a request.
const QUIET_MS: i64 = 50;

/// The silence after which a connection with something under way is given up, at least.
const SILENCE_MIN_MS: i64 = 5_000;
