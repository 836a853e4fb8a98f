//! Where a server listens.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::net;
use std::path::{Path, PathBuf};

#[cfg(feature = "tls")]
use rustls::pki_types::ServerName;

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
    pub(crate) sentinel: Option<usize>,
}

impl Address {
    pub(crate) fn of(host: &str, port: u16) -> Result<Self, String> {
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

    pub(crate) fn of_path(path: &Path) -> Result<Self, String> {
        if net::SocketAddr::from_pathname(path).is_err() {
            return Err("the socket path is too long or contains a NUL byte".to_owned());
        }
        Ok(Self::Path(path.to_owned()))
    }

    /// The name for which the server's certificate must be.
    #[cfg(feature = "tls")]
    pub(crate) fn certificate_name(&self) -> Option<ServerName<'static>> {
        match self {
            Self::Ip(address) => Some(ServerName::IpAddress(address.ip().into())),
            Self::Name(name, _) => {
                // The zone of an address is no part of the name, and neither is the dot at the end of a name.
                let name = name.split('%').next().unwrap_or_default();
                let name = name.strip_suffix('.').unwrap_or(name);
                ServerName::try_from(name.to_owned()).ok()
            }
            Self::Path(_) => None,
        }
    }

    /// Whether a certificate can be for the server's name.
    #[cfg(feature = "tls")]
    pub(crate) fn check_certificate_name(&self) -> Result<(), String> {
        match self.certificate_name() {
            Some(_) => Ok(()),
            None => Err("the host is not a valid name for a certificate".to_owned()),
        }
    }

    #[cfg(not(feature = "tls"))]
    pub(crate) fn check_certificate_name(&self) -> Result<(), String> {
        Ok(())
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
pub(crate) fn zoned(host: &str) -> Option<(Ipv6Addr, &str)> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let (address, zone) = host.split_once('%')?;
    let is_zone = !zone.is_empty() && zone.bytes().all(is_plain);
    Some((address.parse().ok().filter(|_| is_zone)?, zone))
}

/// Whether it is an IPv6 address with a zone.
pub(crate) fn has_zone(host: &str) -> bool {
    zoned(host).is_some()
}
