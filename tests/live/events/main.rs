//! Calls that block no thread: submitted calls and their events, a descriptor for event loops, calls that are
//! cancelled, and kept locks.

#[path = "../../support/mod.rs"]
mod support;

mod background;
mod cancelled;
mod counting;
mod crowds;
mod curves;
mod hopeless;
mod kept;
mod kept_out;
mod loops;
mod submitted;
mod told;
mod waited;
mod walks;
mod wrong;

const TTL: i64 = 600_000;
