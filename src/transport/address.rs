//! Where a server listens.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// An address, which needs no look-up.
    Ip(SocketAddr),
    /// A name that must be looked up, and a port.
    Name(String, u16),
    /// The path of a Unix socket.
    Path(PathBuf),
}

/// A name that must be looked up for a server: its own name, or that of one of its Sentinels.
pub(crate) struct Lookup {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(super) sentinel: Option<usize>,
}

impl Address {
    pub(super) fn of(host: &str, port: u16) -> Result<Self, String> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Ok(Self::Ip(SocketAddr::new(ip.to_canonical(), port)));
        }
        if let Some((address, zone)) = zoned(bare) {
            return Ok(Self::Name(format!("{address}%{zone}"), port));
        }
        if is_name(bare) {
            return Ok(Self::Name(bare.to_ascii_lowercase(), port));
        }
        if bare.split_once('%').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok()) {
            return Err("the IPv6 zone is not the name or number of a network interface".to_owned());
        }
        let is_address = |letter: char| letter.is_ascii_alphanumeric() || ".:-".contains(letter);
        if bare.contains(':') && bare.chars().all(is_address) {
            return Err(
                "the host contains a colon, but is not an IPv6 address: pass the port separately"
                    .to_owned(),
            );
        }
        Err("the host is not a valid host name or IP address".to_owned())
    }

    pub(super) fn of_path(path: &Path) -> Result<Self, String> {
        let has_nul = path.as_os_str().as_bytes().contains(&0);
        if has_nul || socket2::SockAddr::unix(path).is_err() {
            return Err("the socket path is too long or contains a NUL byte".to_owned());
        }
        Ok(Self::Path(path.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "{address}"),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A host name: labels of up to 63 letters, digits, hyphens and underscores. Many networks use underscores.
/// RFC 1123.
fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(is_plain)
    };
    let absolute = host.strip_suffix('.').unwrap_or(host);
    host.len() <= 253 && absolute.split('.').all(is_label)
}

/// An IPv6 address and its zone, which is the name or the number of a network interface, as in fe80::1%eth0. The
/// resolver finds the interface.
fn zoned(host: &str) -> Option<(Ipv6Addr, &str)> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let (address, zone) = host.split_once('%')?;
    let is_zone = !zone.is_empty() && zone.bytes().all(is_plain);
    Some((address.parse().ok().filter(|_| is_zone)?, zone))
}

/// Whether it is an IPv6 address with a zone.
pub(super) fn has_zone(host: &str) -> bool {
    zoned(host).is_some()
}

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
