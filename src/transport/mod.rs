//! The connections to the servers. This module knows the sockets, the request queue of each server and where
//! replies end. It knows nothing about the meaning of requests or about locks. Of votes it knows only which
//! servers have none for now.

pub(crate) mod account;
pub(crate) mod address;
mod addresses;
mod asking;
mod clocks;
mod close_reason;
pub mod condition;
mod connector;
mod draining_connection;
mod effects;
pub mod endpoint;
mod entries;
mod event_log;
pub mod guard;
pub(crate) mod health;
mod inbox;
pub(crate) mod interest;
pub mod login;
mod memories;
mod numbers;
pub mod op_id;
mod queue;
mod reading;
mod reply;
pub mod roster;
mod scripts;
pub mod security;
mod sentinel_client;
mod sentinels;
pub(crate) mod server;
pub(crate) mod server_registry;
mod simple_reply;
mod stream;
mod subscription;
pub mod timeouts;
#[cfg_attr(not(feature = "tls"), path = "tls/absent.rs")]
pub mod tls;
mod tls_mismatch;
mod unanswered;
mod untrusted;
mod url_parts;
mod why;
mod wire;
