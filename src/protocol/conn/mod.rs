//! What is known of a server, and of the data that goes to it and comes from it. The sockets are in `transport`.
//!
//! `queue`: the requests of a connection and their answers. `guard`, `clocks`, `memories`: whether what a server grants
//! is a vote. `inbox`, `reply`: replies as bytes.

pub(crate) mod addresses;
pub(crate) mod admission;
pub(crate) mod ask_schedule;
pub(crate) mod certificate_error;
pub(crate) mod clocks;
pub(crate) mod close_reason;
pub(crate) mod effects;
pub(crate) mod entries;
pub(crate) mod event_log;
pub mod guard;
pub(crate) mod health;
pub(crate) mod inbox;
pub mod login;
mod lost_requests;
pub(crate) mod memories;
mod numbers;
pub(crate) mod queue;
mod reply;
mod scripts;
pub(crate) mod server_registry;
mod simple_reply;
mod subscription;
pub(crate) mod why;
