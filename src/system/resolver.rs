//! The addresses of a host name.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::protocol::servers::address::zoned;

/// Asks the system's resolver. This may take long.
pub(crate) fn look_up(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    match ((name, port).to_socket_addrs(), zoned(name)) {
        (Ok(addresses), _) => Ok(addresses.collect()),
        // The resolver's words are about names.
        (Err(_), Some((address, zone))) => Err(format!(
            "IPv6 zone {zone} of {address} is not a usable network interface of this machine"
        )),
        (Err(error), None) => Err(error.to_string()),
    }
}
