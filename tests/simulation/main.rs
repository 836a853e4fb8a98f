//! The rules of a lock in a world that is played: the real locker, on a network, on clocks and with
//! dice that do what a test wants. So schedules can be had that no real clock can hit, and years can
//! be had in a moment.
//!
//! `schedules` plays random ones; a seed that fails is printed, and `REDLOCK_SEED=… cargo test
//! --test simulation` plays it again.

mod client;
mod crowd;
mod faults;
mod history;
mod link;
mod peer;
mod server;
mod slices;
mod threads;
mod world;

mod continue_lock;
mod extend;
mod hand_over;
mod line;
mod manners;
mod questions;
mod releases;
mod retry;
mod schedules;
mod suspend;
mod unlock;
mod validity;

/// A TTL with its validity, by the book: 1 % and 2 ms less.
const TTL: i64 = 10_000;
const VALID: i64 = 9_898;
