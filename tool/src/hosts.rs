//! URLs that name several hosts: the Sentinels of a master, or nodes of a cluster. The library has checked them.

/// `scheme://[login@]host[:port][,host[:port]…][tail]`.
pub(crate) struct Hosts<'a> {
    pub(crate) is_over_tls: bool,
    /// The user and the password, with the `@` behind them.
    pub(crate) login: &'a str,
    /// Each with its port.
    pub(crate) places: Vec<String>,
    /// A path and a query.
    pub(crate) tail: &'a str,
}

impl<'a> Hosts<'a> {
    /// Takes the URL apart. Hosts without a port get this one.
    pub(crate) fn of(url: &'a str, port: u16) -> Option<Self> {
        let (_, rest) = url.split_once("://")?;
        let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let has_port = |host: &str| host.rsplit_once(':').is_some_and(|it| !it.1.ends_with(']'));
        let place = |it: &str| if has_port(it) { it.to_owned() } else { format!("{it}:{port}") };
        let places = hosts.split(',').map(place).collect();
        Some(Self { is_over_tls: is_over_tls(url), login, places, tail })
    }
}

/// Whether this is a URL of a server, or of several, that use TLS.
pub(crate) fn is_over_tls(url: &str) -> bool {
    let scheme = url.split("://").next().unwrap_or_default().to_ascii_lowercase();
    scheme.starts_with("rediss") || scheme.starts_with("valkeys")
}

/// The URL of one of them.
pub(crate) fn url_of(is_over_tls: bool, login: &str, place: &str) -> String {
    let scheme = if is_over_tls { "rediss" } else { "redis" };
    format!("{scheme}://{login}{place}")
}

pub(crate) fn place(host: &str, port: &str) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let it = Hosts::of("REDISS-cluster://u:p%40@H1,[::1]:7?tag=a", 6379).expect("a URL");
        assert_eq!((it.is_over_tls, it.login, it.tail), (true, "u:p%40@", "?tag=a"));
        assert_eq!(it.places, ["H1:6379", "[::1]:7"]);
        let it = Hosts::of("valkey-sentinel://[::1]/m/3", 26379).expect("a URL");
        assert_eq!((it.is_over_tls, it.login, it.tail), (false, "", "/m/3"));
        assert_eq!(it.places, ["[::1]:26379"]);
        assert!(Hosts::of("h:1", 6379).is_none());
    }
}
