//! The connections to the servers: how they are opened and closed, and what goes over them. It knows nothing about the
//! meaning of requests or about locks. Of votes it knows only which servers have none for now.

pub(crate) mod account;
mod arbiters;
mod connector;
mod draining_connection;
pub(crate) mod interest;
pub mod security;
pub(crate) mod server;
mod stream;
#[cfg_attr(not(feature = "tls"), path = "tls/absent.rs")]
pub mod tls;
mod tls_mismatch;
mod wire;
