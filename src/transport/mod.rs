//! The connections to the servers. This module knows the sockets, the request queue of each server and where
//! replies end. It knows nothing about the meaning of requests or about locks. Of votes it knows only which
//! servers have none for now.

pub mod access;
pub(crate) mod account;
mod addresses;
mod asking;
mod clocks;
pub mod condition;
mod effects;
pub mod endpoint;
mod entries;
pub mod guard;
mod guide;
pub(crate) mod health;
mod inbox;
pub(crate) mod interest;
pub(crate) mod lineup;
mod link;
pub mod login;
mod mixup;
pub(crate) mod place;
mod predecessor;
mod queue;
mod reading;
mod remarks;
mod reply;
pub mod roster;
mod scripts;
mod sentinels;
pub(crate) mod server;
mod simple_reply;
mod stream;
mod subscription;
pub mod ticket;
pub mod timeouts;
#[cfg_attr(not(feature = "tls"), path = "tls/absent.rs")]
pub mod tls;
mod useless;
mod wire;
