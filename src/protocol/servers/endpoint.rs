//! Where a server is, and the login on it.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use redis::{ConnectionAddr, IntoConnectionInfo};
use url::{ParseError, Url};

use super::address::{Address, has_zone};
use super::cluster_slot::ClusterSlot;
use super::electorate::Electorate;
use super::sentinels::Sentinels;
use super::url_parts::{
    check_database, check_escapes, check_extras, without_zone, wrong_login, wrong_part, wrong_value,
};

/// A server as the user named it.
#[derive(Clone)]
pub struct Endpoint {
    site: Site,
    user: Option<String>,
    password: Option<String>,
    database: i64,
    has_tls: bool,
}

/// Where the server is, and the words for that. They are made once, because each call names the servers that took no part.
#[derive(Clone)]
struct Site {
    place: Place,
    name: Arc<str>,
}

#[derive(Clone)]
enum Place {
    At(Address),
    /// At the place that its Sentinels give, or the nodes of its cluster.
    Watched(Electorate),
}

impl Site {
    fn at(address: Address) -> Self {
        let name = address.to_string().into();
        Self { place: Place::At(address), name }
    }

    fn watched(electorate: Electorate) -> Self {
        let name = electorate.to_string().into();
        Self { place: Place::Watched(electorate), name }
    }
}

impl Endpoint {
    /// Parses a host name or an address with its port, host:port with port 0, or a whole URL with port 0.
    /// Error messages contain no password.
    pub fn parse(host_or_url: &str, port: i32) -> Result<Self, String> {
        if host_or_url.is_empty() {
            return Err("the host is empty".to_owned());
        }
        match host_or_url.split_once("://") {
            Some((scheme, _)) => Self::parse_url(&scheme.to_ascii_lowercase(), host_or_url, port),
            None => {
                let (host, port) = host_and_port(host_or_url, port)?;
                let site = Site::at(Address::of(host, port)?);
                Ok(Self { site, user: None, password: None, database: 0, has_tls: false })
            }
        }
    }

    /// Whether both are the same server, whatever the login and the database. A Sentinel knows one master of
    /// a name.
    pub fn is_same_server(&self, other: &Self) -> bool {
        match (&self.site.place, &other.site.place) {
            (Place::At(mine), Place::At(theirs)) => mine == theirs,
            (Place::Watched(mine), Place::Watched(theirs)) => mine.are_related(theirs),
            _ => false,
        }
    }

    /// Whether both have the same keys, whatever the login.
    pub fn has_same_keys(&self, other: &Self) -> bool {
        let is_same = match (&self.site.place, &other.site.place) {
            (Place::At(mine), Place::At(theirs)) => mine == theirs,
            (Place::Watched(mine), Place::Watched(theirs)) => mine == theirs,
            _ => false,
        };
        is_same && self.database == other.database
    }

    fn parse_url(scheme: &str, url: &str, port: i32) -> Result<Self, String> {
        let (kind, has_tls) = match scheme {
            "redis" | "valkey" => (Kind::Server, false),
            "rediss" | "valkeys" => (Kind::Server, true),
            "unix" | "redis+unix" | "valkey+unix" => (Kind::Path, false),
            "redis-sentinel" | "redis+sentinel" | "valkey-sentinel" => (Kind::Master, false),
            "rediss-sentinel" | "rediss+sentinel" | "valkeys-sentinel" => (Kind::Master, true),
            "redis-cluster" | "redis+cluster" | "valkey-cluster" => (Kind::Slot, false),
            "rediss-cluster" | "rediss+cluster" | "valkeys-cluster" => (Kind::Slot, true),
            // The scheme is not quoted, because it may be part of a password.
            _ => {
                let words = "unknown URL scheme: use redis, rediss, unix, redis+unix, redis-sentinel, rediss-sentinel, redis-cluster or rediss-cluster";
                return Err(words.to_owned());
            }
        };
        if has_tls && !cfg!(feature = "tls") {
            return Err(format!("{scheme}:// needs TLS: this build has no TLS support"));
        }
        if port != 0 {
            return Err(format!(
                "port is {port}: with a URL, pass 0 and put the port into the URL"
            ));
        }
        // The parsers' own words are not passed on, because they may quote the URL with its password.
        let login = if kind == Kind::Path { None } else { wrong_login(url) };
        let fault = |what: &str| format!("invalid {scheme}:// URL: {}", login.unwrap_or(what));
        // The parsers skip line ends and tabs wherever they find them.
        if url.chars().any(char::is_control) {
            return Err(fault("it contains a control character"));
        }
        check_escapes(url).map_err(|what| fault(&what))?;
        if matches!(kind, Kind::Master | Kind::Slot) {
            let rest = &url[scheme.len() + 3..];
            return Self::parse_watched(kind, rest, has_tls).map_err(|it| fault(&it));
        }
        let (plain, zoned) = without_zone(url);
        let url = &*plain;
        let mut parsed = Url::parse(url).map_err(|error| fault(wrong_part(error)))?;
        check_extras(&parsed, kind == Kind::Path).map_err(|what| fault(&what))?;
        if has_tls && parsed.set_scheme("redis").is_err() {
            return Err(fault(wrong_part(ParseError::InvalidDomainCharacter)));
        }
        let endpoint = Self::from_url(parsed, zoned.as_deref()).map_err(|what| fault(&what))?;
        if let (true, Some(place)) = (has_tls, endpoint.place()) {
            place.check_certificate_name().map_err(|what| fault(&what))?;
        }
        Ok(Self { has_tls, ..endpoint })
    }

    /// Parses a master that Sentinels know, or a slot of a cluster. Its user, password and database are read as those of
    /// any server.
    fn parse_watched(kind: Kind, rest: &str, has_tls: bool) -> Result<Self, String> {
        let (electorate, plain) = match kind {
            Kind::Slot => {
                let (slot, plain) = ClusterSlot::parse(rest)?;
                (Electorate::Nodes(Arc::new(slot)), plain)
            }
            _ => {
                let (sentinels, plain) = Sentinels::parse(rest)?;
                (Electorate::Sentinels(Arc::new(sentinels)), plain)
            }
        };
        if has_tls {
            electorate.places().iter().try_for_each(Address::check_certificate_name)?;
        }
        let url = Url::parse(&plain).map_err(|_| "invalid user or password")?;
        let site = Site::watched(electorate);
        Ok(Self { site, has_tls, ..Self::from_url(url, None)? })
    }

    /// Reads the URL of a server. `zoned` is the address in it with its zone, if it has one.
    fn from_url(url: Url, zoned: Option<&str>) -> Result<Self, String> {
        if url.scheme() == "redis" || url.scheme() == "valkey" {
            check_database(url.path().trim_matches('/'))?;
        }
        let info = url.into_connection_info().map_err(|error| wrong_value(&error))?;
        let place = match info.addr() {
            ConnectionAddr::Tcp(_, 0) => return Err("the port is 0, not 1 to 65535".to_owned()),
            ConnectionAddr::Tcp(host, port) => Address::of(zoned.unwrap_or(host), *port)?,
            ConnectionAddr::Unix(path) => Address::of_path(path)?,
            _ => return Err("this build does not support this kind of connection".to_owned()),
        };
        let settings = info.redis_settings();
        if settings.db() < 0 {
            return Err("the database number is negative".to_owned());
        }
        Ok(Self {
            site: Site::at(place),
            user: settings.username().map(str::to_owned),
            password: settings.password().map(str::to_owned),
            database: settings.db(),
            has_tls: false,
        })
    }

    /// The server's place. None if its Sentinels must be asked.
    pub(crate) fn place(&self) -> Option<&Address> {
        match &self.site.place {
            Place::At(place) => Some(place),
            Place::Watched(_) => None,
        }
    }

    /// Whom to ask for the server's place, if somebody must be asked.
    pub(crate) fn electorate(&self) -> Option<&Electorate> {
        match &self.site.place {
            Place::At(_) => None,
            Place::Watched(electorate) => Some(electorate),
        }
    }

    /// Which slot of a cluster it is, if it is one.
    pub fn cluster_slot(&self) -> Option<&ClusterSlot> {
        match self.electorate()? {
            Electorate::Sentinels(_) => None,
            Electorate::Nodes(slot) => Some(slot),
        }
    }

    /// What all its keys have before their names.
    pub(crate) fn key_prefix(&self) -> Vec<u8> {
        self.electorate().map(Electorate::key_prefix).unwrap_or_default()
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    pub(crate) fn database(&self) -> i64 {
        self.database
    }

    /// Whether connections to it use TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.has_tls
    }
}

/// The name for a person, always without user and password.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.site.name)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

/// What a URL names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Server,
    Path,
    /// A master and its Sentinels.
    Master,
    /// A slot of a cluster.
    Slot,
}

/// A host and its port. The port is given beside the host or, with 0 beside it, behind a colon. Error
/// messages quote only the port, because the text is no host if it contains a user and a password.
fn host_and_port(host: &str, port: i32) -> Result<(&str, u16), String> {
    let behind = host.rsplit_once(':').filter(|at| !is_bare_address(host) && !at.1.contains(']'));
    if port != 0 {
        let beside = u16::try_from(port).ok().filter(|&port| port > 0);
        let beside = beside.ok_or_else(|| format!("port is {port}: it must be 1 to 65535"))?;
        let twice = behind.and_then(|(host, it)| Some((Address::of(host, 1).ok()?, port_of(it)?)));
        return match twice {
            None => Ok((host, beside)),
            Some((_, it)) => Err(format!(
                "port is {beside}, but the host already has port {it}: pass one of them, or port 0"
            )),
        };
    }
    match behind {
        Some((host, _)) if host.contains(':') && !host.starts_with('[') => Err(
            "port is 0, and the host has several colons: write an IPv6 address as [::1]:6379, and a user or password as redis://user:password@host".to_owned(),
        ),
        Some((host, port)) => {
            let words = "port is 0, and the port after the colon of the host is not 1 to 65535";
            Ok((host, port_of(port).ok_or(words)?))
        }
        None => Err(
            "port is 0, and the host has no port: pass host:port, [IPv6 address]:port, a URL, or a port of 1 to 65535".to_owned(),
        ),
    }
}

/// Whether all its colons belong to an address.
fn is_bare_address(host: &str) -> bool {
    host.parse::<Ipv6Addr>().is_ok() || has_zone(host)
}

fn port_of(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| is_number && port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(host_or_url: &str, port: i32) -> String {
        Endpoint::parse(host_or_url, port).map_or_else(|it| it, |it| it.to_string())
    }

    #[test]
    fn hosts_and_urls_are_parsed() {
        assert_eq!(name("127.0.0.1", 6379), "127.0.0.1:6379");
        assert_eq!(name("::1", 6379), "[::1]:6379");
        assert_eq!(name("[::1]", 6379), "[::1]:6379");
        assert_eq!(name("Redis-1.example", 1), "redis-1.example:1");
        assert_eq!(name("redis://h", 0), "h:6379");
        assert_eq!(name("redis://u:p@[::1]:7/3", 0), "[::1]:7");
        assert_eq!(name("unix:///run/redis.sock?db=2&pass=p", 0), "/run/redis.sock");
        assert_eq!(name("redis+unix:///run/redis.sock", 0), "/run/redis.sock");
    }

    #[test]
    fn a_host_may_name_its_port() {
        assert_eq!(name("127.0.0.1:6379", 0), "127.0.0.1:6379");
        assert_eq!(name("Redis-1.example:7", 0), "redis-1.example:7");
        assert_eq!(name("[::1]:7", 0), "[::1]:7");
        assert_eq!(name("[fe80::1%eth0]:7", 0), "fe80::1%eth0:7");
        assert!(name("::1", 0).contains("[IPv6 address]:port"));
        // This is an address as it stands.
        assert!(name("::1:6379", 0).contains("[IPv6 address]:port"));
        assert_eq!(name("::1:6379", 1), "[::1:6379]:1");
        assert!(name("fe80::1%eth0:7", 0).contains("[::1]:6379"));
        for host in ["h:", "h:0", "h:65536", "h:+1", "h:x", ":"] {
            assert!(name(host, 0).contains("not 1 to 65535"), "{host}: {}", name(host, 0));
        }
        assert!(name(":1", 0).contains("not a valid host name"));
        assert!(name("h:1", 2).contains("port is 2, but the host already has port 1"));
        assert!(name("[::1]:1", 2).contains("already has port 1"));
    }

    #[test]
    fn an_error_in_an_address_is_named() {
        for port in [0, -1, 65_536] {
            assert!(name("h", port).starts_with(&format!("port is {port}")));
        }
        assert!(name("redis://h:1", 1).contains("pass 0"));
        assert!(name("", 1).contains("empty"));
        assert!(name("a b", 1).contains("not a valid host name"));
        assert!(name("h:1", 1).contains("already has port 1"));
        assert!(name("http://h", 0).starts_with("unknown URL scheme"));
        assert!(name("redis://h:99999", 0).contains("invalid redis:// URL"));
        assert!(name("redis://", 0).contains("invalid redis:// URL"));
        assert!(name("redis://h/x", 0).contains("database is not a number"));
        assert!(name("redis://h/-1", 0).contains("negative"));
        assert!(name("redis://h:0", 0).contains("0"));
        for url in [
            "redis://h/+1",
            "rediss://h/+1",
            "valkey://h/+1",
            "redis-sentinel://h/m/+1",
            "unix:///s?db=%2B1",
        ] {
            assert!(name(url, 0).contains("the database number has a sign"), "{}", name(url, 0));
        }
        // A path may begin with that sign.
        assert_eq!(name("unix:///+1", 0), "/+1");
        assert!(name("unix:///s?db=1&db=1", 0).contains("db is given twice"));
        for scheme in ["redis", "rediss", "redis-sentinel"] {
            let words = name(&format!("{scheme}://u:p%ZZ@h/m"), 0);
            assert!(words.contains("invalid % escape in the password"), "{words}");
            let words = name(&format!("{scheme}://u:12/34@h/m"), 0);
            assert!(words.ends_with("as %2F %3F %23"), "{words}");
        }
        assert!(name("unix:///@?x@", 0).contains("unknown query parameter"));
    }

    #[test]
    fn an_address_may_have_a_zone() {
        assert_eq!(name("redis://u:p@[FE80:0::1%25Eth0]:7/3", 0), "fe80::1%Eth0:7");
        assert_eq!(name("redis://[fe80::1%252]", 0), "fe80::1%2:6379");
        assert_eq!(name("redis-sentinel://[fe80::1%25eth0]:7/m", 0), "m (Sentinel fe80::1%eth0:7)");
        let it = |text, port| Endpoint::parse(text, port).expect("an address");
        let first = it("FE80::1%Eth0", 7);
        assert!(first.is_same_server(&it("redis://[fe80:0::1%25Eth0]:7", 0)));
        assert!(!first.is_same_server(&it("fe80::1%eth0", 7)), "another interface");
        let endpoint = it("redis://u:p@[fe80::1%25eth0]/3", 0);
        let login = (endpoint.user(), endpoint.password(), endpoint.database());
        assert_eq!(login, (Some("u"), Some("p"), 3));
        for host in ["[fe80::1%25]", "[fe80::1%25a%20b]", "[fe80::1%25a%25b]"] {
            assert!(name(&format!("redis://{host}"), 0).contains("zone"), "{host}");
        }
        assert!(name("redis://[fe80::1%eth0]", 0).contains("invalid % escape in the host"));
        assert!(name("redis://[::g%25eth0]", 0).contains("not a valid host name"));
    }

    #[test]
    fn a_master_is_known_by_name_and_sentinels() {
        let it = |url| Endpoint::parse(url, 0).expect("a URL");
        let first = it("redis-sentinel://u:p@a,b/m/1");
        assert_eq!(first.to_string(), "m (Sentinel a:26379)");
        assert_eq!((first.user(), first.password(), first.database()), (Some("u"), Some("p"), 1));
        assert!(first.has_same_keys(&it("REDIS+SENTINEL://b,a/m/1?sentinel_password=p")));
        assert!(!first.has_same_keys(&it("redis-sentinel://a,b/m")));
        assert!(!first.has_same_keys(&it("redis-sentinel://a/m/1")));
        assert!(first.is_same_server(&it("redis-sentinel://b,c/m")));
        assert!(!first.is_same_server(&it("redis-sentinel://a,b/n")));
        assert!(!first.is_same_server(&it("redis://a:26379")));
        for url in ["redis-sentinel://a/m/x", "redis-sentinel://u:s3cret@a/m/-1"] {
            let words = name(url, 0);
            assert!(words.contains("database") && !words.contains("s3cret"), "{words}");
        }
        assert!(name("redis-sentinel://u:%FF@a/m", 0).contains("password is not UTF-8"));
        assert!(name("redis-sentinel://h/m", 1).contains("pass 0"));
    }

    #[test]
    #[cfg(feature = "tls")]
    fn the_scheme_asks_for_tls() {
        assert_eq!(name("rediss://u:p@[::1]:7/3", 0), "[::1]:7");
        let has_tls = |url| Endpoint::parse(url, 0).unwrap().has_tls();
        assert!(has_tls("rediss://h") && has_tls("VALKEYS://h"));
        assert!(!has_tls("redis://h") && !has_tls("unix:///h"));
        assert!(name("rediss://h/#insecure", 0).contains("fragment"));
        assert!(name("rediss://h-/", 0).contains("not a valid name for a certificate"));
    }

    #[test]
    #[cfg(not(feature = "tls"))]
    fn a_tls_scheme_without_tls_support_is_refused() {
        assert!(name("rediss://h", 0).contains("needs TLS"));
        assert!(name("valkeys://h", 0).contains("needs TLS"));
    }

    #[test]
    fn no_password_is_shown() {
        for url in [
            "redis://u:s3cret@h:99999",
            "redis://u:s3cret@/x",
            "s3cret://h",
            "redis://:s3cret@h/x",
            "redis://:s3cret/s3cret@h",
            "u:s3cret@h",
            "u:s3cret@h:1",
        ] {
            assert!(!name(url, 0).contains("s3cret"), "{}", name(url, 0));
        }
        let endpoint = Endpoint::parse("redis://u:s3cret@h", 0).unwrap();
        assert!(!format!("{endpoint:?} {endpoint}").contains("s3cret"));
    }

    #[test]
    fn the_user_does_not_change_the_server() {
        let first = Endpoint::parse("redis://u:p@H:7/3", 0).unwrap();
        assert!(first.is_same_server(&Endpoint::parse("h", 7).unwrap()));
        assert!(!first.is_same_server(&Endpoint::parse("h", 8).unwrap()));
    }
}
