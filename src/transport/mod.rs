//! The connections to the servers. This module knows the sockets, the request queue of each server and where
//! replies end. It knows nothing about the meaning of requests or about locks. Of votes it knows only which
//! servers have none for now.

pub mod access;
pub(crate) mod account;
mod addresses;
mod asking;
mod clocks;
mod close_reason;
pub mod condition;
mod effects;
pub mod endpoint;
mod entries;
mod event_log;
pub mod guard;
pub(crate) mod health;
mod inbox;
pub(crate) mod interest;
mod link;
pub mod login;
mod memories;
mod numbers;
pub(crate) mod place;
mod predecessor;
mod queue;
mod reading;
mod reply;
pub mod roster;
mod scripts;
mod sentinel_client;
mod sentinels;
pub(crate) mod server;
pub(crate) mod server_registry;
mod simple_reply;
mod stream;
mod subscription;
pub mod ticket;
pub mod timeouts;
#[cfg_attr(not(feature = "tls"), path = "tls/absent.rs")]
pub mod tls;
mod tls_mismatch;
mod unanswered;
mod untrusted;
mod url_parts;
mod why;
mod wire;
