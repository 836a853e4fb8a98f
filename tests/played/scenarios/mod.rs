//! The rules of a lock, one scenario after the other: calls of clients and of their threads, on a network,
//! on clocks and with dice that a scenario controls. So scenarios can hit moments that no real clock can
//! hit, and years pass in a moment.
//!
//! `cluster.rs` has the actions of a scenario, `client.rs` the calls, `crowd.rs` many threads that want one
//! lock, and `processes.rs` processes that are told when a lock is free.

mod client;
mod cluster;
mod counts;
mod crowd;
mod history;
mod processes;

mod continue_lock;
mod extend;
mod golden;
mod hand_over;
mod handed;
mod late;
mod levels;
mod line;
mod manners;
mod memories;
mod multitudes;
mod polling;
mod questions;
mod releases;
mod retry;
mod suspend;
mod unlock;
mod unlock_after;
mod validity;
mod waking;
mod waking_kinds;
mod waking_servers;

/// A TTL with its validity: 1 % and 2 ms less.
const TTL: i64 = 10_000;
const VALID: i64 = 9_898;

/// The minimum time between two attempts to connect.
const RETRY_GAP_MS: i64 = 20;

/// A connection that was quiet for this time is checked before a request is sent over it.
const QUIET_MS: i64 = 50;

/// The minimum silence after which a connection with something under way is given up.
const SILENCE_MIN_MS: i64 = 5_000;
