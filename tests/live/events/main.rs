//! Calls that block nobody: submitted ones and their events, a descriptor for loops, calls that are cancelled,
//! and locks that are kept.

#[path = "../../support/mod.rs"]
mod support;

mod background;
mod cancelled;
mod kept;
mod loops;
mod submitted;
mod wrong;

const TTL: i64 = 600_000;
