//! Shared parts of the tests: real servers, servers that misbehave, and wrappers of the C interface.

// Every test program is compiled with all of this and uses a part.
#![allow(dead_code)]

pub(crate) mod client;
pub(crate) mod directory;
pub(crate) mod events;
pub(crate) mod fake;
pub(crate) mod faults;
pub(crate) mod island;
pub(crate) mod library;
pub(crate) mod loading;
pub(crate) mod moving_names;
pub(crate) mod nodes;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod product;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod resp;
pub(crate) mod secure;
pub(crate) mod sentinels;
pub(crate) mod servers;
pub(crate) mod shim;
pub(crate) mod sockets;
pub(crate) mod tls;
pub(crate) mod usage;
pub(crate) mod wait;

#[allow(unused_imports)]
pub(crate) use self::{
    client::{Lease, Log, Manager},
    fake::Fake,
    faults::Fault,
    program::Program,
    proxy::{Proxy, Way},
    resp::Reply,
    servers::{Cluster, Server},
    tls::{Authority, Identity},
    wait::{finishes, wait_until, wait_until_ok},
};
