//! The connections to the servers. This module knows the sockets, the request queue of each server and where
//! replies end. It knows nothing about the meaning of requests or about locks. Of votes it knows only which
//! servers have none for now.

pub(crate) mod account;
mod addresses;
mod asking;
mod clocks;
mod close_reason;
mod connector;
mod draining_connection;
mod effects;
mod entries;
mod event_log;
pub mod guard;
pub(crate) mod health;
mod inbox;
pub(crate) mod interest;
pub mod login;
mod memories;
mod numbers;
mod queue;
mod reading;
mod reply;
mod scripts;
pub mod security;
mod sentinel_client;
pub(crate) mod server;
pub(crate) mod server_registry;
mod simple_reply;
mod stream;
mod subscription;
#[cfg_attr(not(feature = "tls"), path = "tls/absent.rs")]
pub mod tls;
mod tls_mismatch;
mod unanswered;
mod untrusted;
mod why;
mod wire;
