//! Who the servers are: their addresses, what a URL says of one, and the list of a manager.

pub(crate) mod address;
pub mod cluster_slot;
pub mod electorate;
pub mod endpoint;
mod hosts;
pub mod roster;
pub(crate) mod sentinels;
mod url_parts;
