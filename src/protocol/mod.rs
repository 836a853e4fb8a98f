//! What a lock is, and how it is taken, kept, and given back: the rules, and none of the work.
//!
//! Nothing here reads a clock, opens a socket, starts a thread or draws a random number: the time, what the servers
//! have said, and randomness are passed in. So a test, or the simulation, determines all of them.
//! `cargo test --test tidy` checks the imports.
//!
//! - `command`: each request to a server, as bytes, and what its reply means. `servers`: where servers are
//! - `conn`: what is in flight to a server, what has come from it, and whether its grants are votes
//! - `quorum`: the rules of votes, validity, soundness and pauses
//! - `lock`: one lock, and what each server has said of it
//! - `operation`: one state machine for each kind of call
//! - `wait_queue`: which caller of this manager is next
//! - `stats`: what is counted
//! - The files here are small types that these share.

pub mod argument;
pub(crate) mod check;
pub mod command;
pub mod condition;
pub mod conn;
pub mod electors;
pub mod error;
pub mod failure;
pub(crate) mod keeper;
pub(crate) mod lock;
pub mod lock_kind;
pub(crate) mod lock_ticket;
pub mod log_line;
pub mod moment;
pub mod op_id;
pub(crate) mod operation;
pub mod policy;
pub mod quorum;
pub mod refusal;
pub(crate) mod room;
pub mod server_set;
pub mod servers;
pub mod slot_set;
pub mod stats;
pub mod token;
pub mod trouble;
pub(crate) mod wait_queue;
