//! Reads the keys on the servers. It uses its own connections, because the library never looks at resources
//! that it was not asked to lock.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError,
    RedisResult, cmd, pipe,
};
use redlock::protocol::servers::cluster_slot::ClusterSlot;
use redlock::protocol::servers::endpoint::Endpoint;

use crate::cli::Common;
use crate::config::Config;
use crate::failure::{Failure, Kind};
use crate::hosts::{self, Hosts};
use crate::servers::Servers;

const CONNECT: Duration = Duration::from_millis(1500);
const REPLY: Duration = Duration::from_secs(3);

/// The number of keys in one request.
const BATCH: usize = 500;

/// How many requests go through a part of the keys, each through about a thousand.
const QUICK_SCANS: usize = 20;

/// Connections to all servers that can be reached.
pub(crate) struct Survey {
    places: Vec<Place>,
}

struct Place {
    name: String,
    /// What all keys on the server have before their names.
    prefix: String,
    connection: Result<Connection, String>,
}

/// A key that looks like a lock, as the servers have it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) name: Vec<u8>,
    /// How many servers have the key with the same token.
    pub(crate) servers: usize,
    /// Whether these servers are a quorum.
    pub(crate) is_held: bool,
    /// For how long a quorum still has the key. If no quorum has it, for how long the server that has it
    /// longest does.
    pub(crate) left: Duration,
    /// The number of waiting clients in the wait queues on the servers.
    pub(crate) waiters: u64,
    /// Distinguishes one holder from the next. It is as secret as a password.
    pub(crate) token: Vec<u8>,
}

/// What one server has under a name: a token, its remaining time, and the number of waiting clients.
type Entry = (Vec<u8>, i64, u64);

impl Survey {
    pub(crate) fn open(common: &Common, servers: &Servers) -> Result<Self, Failure> {
        let config = &servers.config;
        let targets = targets(common, servers)?;
        let connect = |Target { name, url, prefix }: Target| {
            let connection = client(config, &url).and_then(|client| open(&client));
            Place { name, prefix, connection: connection.map_err(|error| words(&error)) }
        };
        let connect = &connect;
        let places = thread::scope(|scope| {
            let opening: Vec<_> =
                targets.into_iter().map(|it| scope.spawn(move || connect(it))).collect();
            opening.into_iter().flat_map(|it| it.join()).collect()
        });
        Ok(Self { places })
    }

    pub(crate) fn quorum(&self) -> usize {
        self.places.len() / 2 + 1
    }

    /// All keys that look like a lock and begin with the prefix, by name.
    pub(crate) fn locks(&mut self, prefix: &str) -> Result<Vec<Found>, Failure> {
        let found =
            self.ask(|connection, of_all| entries(connection, [of_all, prefix], usize::MAX))?;
        let quorum = self.quorum();
        let mut by_name: BTreeMap<Vec<u8>, Vec<Entry>> = BTreeMap::new();
        for (name, entry) in found.into_iter().flatten() {
            by_name.entry(name).or_default().push(entry);
        }
        Ok(by_name.into_iter().map(|(name, entries)| merge(name, &entries, quorum)).collect())
    }

    /// The names of some locks that begin with the prefix. On large servers, only a part of the keys is looked at.
    pub(crate) fn some_names(&mut self, prefix: &str) -> Result<Vec<Vec<u8>>, Failure> {
        let found =
            self.ask(|connection, of_all| entries(connection, [of_all, prefix], QUICK_SCANS))?;
        let names: BTreeSet<Vec<u8>> = found.into_iter().flatten().map(|it| it.0).collect();
        Ok(names.into_iter().collect())
    }

    /// For each name, the token that a quorum of the servers has.
    pub(crate) fn tokens(&mut self, names: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let found: Vec<Vec<Option<Vec<u8>>>> = self.ask(|connection, of_all| {
            let keys = names.iter().map(|it| [of_all.as_bytes(), it].concat());
            cmd("MGET").arg(keys.collect::<Vec<_>>()).query(connection)
        })?;
        let quorum = self.quorum();
        let agreed = |place: usize| {
            let said: Vec<_> = found.iter().filter_map(|it| it.get(place)?.clone()).collect();
            let count = |token: &Vec<u8>| said.iter().filter(|it| *it == token).count();
            said.iter().find(|token| count(token) >= quorum).cloned()
        };
        Ok((0..names.len()).map(agreed).collect())
    }

    /// Asks all servers at the same time. The question is told what keys have before their names. Fails if fewer than a
    /// quorum answer.
    fn ask<T: Send>(
        &mut self,
        question: impl Fn(&mut Connection, &str) -> RedisResult<T> + Sync,
    ) -> Result<Vec<T>, Failure> {
        Ok(self.ask_each(question)?.into_iter().flatten().collect())
    }

    /// The same, and returns the answer of each server in the order of [`Survey::names`].
    pub(crate) fn ask_each<T: Send>(
        &mut self,
        question: impl Fn(&mut Connection, &str) -> RedisResult<T> + Sync,
    ) -> Result<Vec<Option<T>>, Failure> {
        let question = &question;
        let answers: Vec<Option<T>> = thread::scope(|scope| {
            let asked = self.places.iter_mut().map(|place| {
                scope.spawn(move || {
                    let connection = place.connection.as_mut().ok()?;
                    match question(connection, &place.prefix) {
                        Ok(answer) => Some(answer),
                        Err(error) => {
                            // A later reply on this connection would answer another request.
                            place.connection = Err(words(&error));
                            None
                        }
                    }
                })
            });
            let asked: Vec<_> = asked.collect();
            asked.into_iter().map(|it| it.join().unwrap_or(None)).collect()
        });
        let count = answers.iter().flatten().count();
        if count >= self.quorum() {
            return Ok(answers);
        }
        let silent = self.silent().map(|(name, why)| format!("{name} {why}"));
        let (all, quorum) = (self.places.len(), self.quorum());
        let silent = silent.collect::<Vec<_>>().join(", ");
        let words = format!("{count} of {all} servers answered, {quorum} needed: {silent}");
        Err(Failure::new(Kind::Unreachable, words))
    }

    /// The names of all servers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|it| it.name.as_str())
    }

    /// The servers that do not answer, and why.
    pub(crate) fn silent(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places
            .iter()
            .filter_map(|it| Some((it.name.as_str(), it.connection.as_ref().err()?.as_str())))
    }
}

/// A server: its name, a URL for the redis crate, and what all keys there have before their names.
struct Target {
    name: String,
    url: String,
    prefix: String,
}

/// All servers. The library finds the address of a master.
fn targets(common: &Common, servers: &Servers) -> Result<Vec<Target>, Failure> {
    let manager = servers.builder(common)?.build()?;
    let named = servers.named();
    if named.iter().any(|it| is_watched(it)) {
        manager.connect(Duration::ZERO)?;
    }
    let infos = manager.servers();
    let target = |(url, info): (String, redlock::ServerInfo)| {
        let prefix = slot_of(&url).map(|it| format!("{{{}}}", it.tag())).unwrap_or_default();
        let url = match url.split_once("://") {
            None => format!("redis://{}", url.replace('%', "%25")),
            Some((scheme, rest)) => url_of_master(&url, &info.name)
                .filter(|_| is_watched(&url))
                .unwrap_or_else(|| format!("{}://{rest}", plain_scheme(scheme))),
        };
        Target { name: info.name, url, prefix }
    };
    Ok(named.into_iter().zip(infos).map(target).collect())
}

/// Whether this is a URL of a master that Sentinels watch.
pub(crate) fn names_sentinels(url: &str) -> bool {
    url.contains("-sentinel://") || url.contains("+sentinel://")
}

/// Whether others give the server's address: Sentinels, or the nodes of a cluster.
fn is_watched(url: &str) -> bool {
    names_sentinels(url) || slot_of(url).is_some()
}

/// The slot, if this is a URL of a cluster.
pub(crate) fn slot_of(url: &str) -> Option<ClusterSlot> {
    Endpoint::parse(url, 0).ok()?.cluster_slot().cloned()
}

/// The scheme in the form that the redis crate knows.
fn plain_scheme(scheme: &str) -> &'static str {
    match scheme.to_ascii_lowercase().as_str() {
        "rediss" | "valkeys" => "rediss",
        "unix" | "redis+unix" | "valkey+unix" => "redis+unix",
        _ => "redis",
    }
}

/// `mymaster (10.0.0.7:6379)` is the name of a master that was found.
fn url_of_master(url: &str, name: &str) -> Option<String> {
    let it = Hosts::of(url, 0)?;
    let address = name.rsplit_once('(').map_or("", |it| it.1.trim_end_matches(')'));
    let path = it.tail.split('?').next().unwrap_or_default();
    let database = path.split('/').nth(2).unwrap_or("0");
    Some(format!("{}/{database}", hosts::url_of(it.is_over_tls, it.login, address)))
}

/// A connection to a node of a cluster, with the login that its URL or the configuration gives.
pub(crate) fn open_at(config: &Config, url: &str) -> RedisResult<Connection> {
    open(&client(config, url)?)
}

fn client(config: &Config, url: &str) -> RedisResult<Client> {
    let mut info = connection_info(url)?;
    let settings = info.redis_settings();
    if let Some(password) = config.password.as_ref().filter(|_| settings.password().is_none()) {
        let mut settings = settings.clone().set_password(password);
        if let Some(user) = &config.user {
            settings = settings.set_username(user);
        }
        info = info.set_redis_settings(settings);
    }
    client_of(config, info, url)
}

fn client_of(config: &Config, info: ConnectionInfo, url: &str) -> RedisResult<Client> {
    if url.starts_with("rediss") { with_tls(config, info) } else { Client::open(info) }
}

/// A connection to a Sentinel. It does not get the password of the servers, which is not its own.
pub(crate) fn open_without_login(config: &Config, url: &str) -> RedisResult<Connection> {
    open(&client_of(config, connection_info(url)?, url)?)
}

/// Reads a URL. The redis crate does not know that an IPv6 address may have a zone: `redis://[fe80::1%25eth0]`.
fn connection_info(url: &str) -> RedisResult<ConnectionInfo> {
    let start = url.rfind("@[").or_else(|| url.find("//[").map(|at| at + 1)).map(|at| at + 2);
    let host = start.and_then(|at| Some((at, url[at..].split_once(']')?.0)));
    let zoned = host.and_then(|(at, host)| Some((at, host, host.split_once("%25")?)));
    let Some((start, host, (address, zone))) = zoned else { return url.into_connection_info() };
    let plain = format!("{}{address}{}", &url[..start], &url[start + host.len()..]);
    let info = plain.into_connection_info()?;
    Ok(match *info.addr() {
        ConnectionAddr::Tcp(_, port) => {
            info.set_addr(ConnectionAddr::Tcp(format!("{address}%{zone}"), port))
        }
        _ => info,
    })
}

fn open(client: &Client) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(CONNECT)?;
    connection.set_read_timeout(Some(REPLY))?;
    connection.set_write_timeout(Some(REPLY))?;
    Ok(connection)
}

#[cfg(feature = "tls")]
fn with_tls(config: &Config, info: ConnectionInfo) -> RedisResult<Client> {
    let read = |path: &std::path::PathBuf| std::fs::read(path).map_err(RedisError::from);
    let client_tls = match (&config.tls_certificate, &config.tls_key) {
        (Some(certificate), Some(key)) => {
            let (client_cert, client_key) = (read(certificate)?, read(key)?);
            Some(redis::ClientTlsConfig { client_cert, client_key })
        }
        _ => None,
    };
    let root_cert = config.tls_ca.as_ref().map(read).transpose()?;
    // Needed once in a process. Later calls find it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::build_with_tls(info, redis::TlsCertificates { client_tls, root_cert })
}

#[cfg(not(feature = "tls"))]
fn with_tls(_: &Config, info: ConnectionInfo) -> RedisResult<Client> {
    Client::open(info)
}

/// Why a server gave no answer. The server's own message is not quoted.
pub(crate) fn words(error: &RedisError) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    if error.is_connection_refusal() {
        return "connection refused".to_owned();
    }
    match error.code() {
        Some(code) if code.bytes().all(|it| it.is_ascii_uppercase()) => {
            format!("replied with the error {code}")
        }
        _ => format!("request failed ({})", error.category()),
    }
}

/// The keys of one server that begin so, without what all of them have before their names. At most so many requests go
/// through them.
fn entries(
    connection: &mut Connection,
    [of_all, prefix]: [&str; 2],
    scans: usize,
) -> RedisResult<Vec<(Vec<u8>, Entry)>> {
    let pattern = format!("{}{}*", escape(of_all), escape(prefix));
    let names = scan(connection, &pattern, "string", scans)?;
    let lines = scan(connection, &format!("{pattern}:w"), "zset", scans)?;
    let mut waiting = BTreeMap::new();
    for batch in lines.chunks(BATCH) {
        let mut request = pipe();
        for line in batch {
            request.cmd("ZCARD").arg(line);
        }
        let counts: Vec<u64> = request.query(connection)?;
        let name = |line: &[u8]| line[..line.len() - 2].to_vec();
        waiting.extend(batch.iter().map(|it| name(it)).zip(counts));
    }
    let mut found = Vec::new();
    for batch in names.chunks(BATCH) {
        let mut request = pipe();
        for name in batch {
            request.cmd("GETRANGE").arg(name).arg(0).arg(127).cmd("PTTL").arg(name);
        }
        let answers: Vec<(Vec<u8>, i64)> = request.query(connection)?;
        for (name, (token, left_ms)) in batch.iter().zip(answers) {
            // A key without a TTL is not a lock.
            if left_ms >= 0 && !token.is_empty() {
                let waiters = waiting.get(name).copied().unwrap_or(0);
                found.push((name[of_all.len()..].to_vec(), (token, left_ms, waiters)));
            }
        }
    }
    Ok(found)
}

fn scan(
    connection: &mut Connection,
    pattern: &str,
    kind: &str,
    scans: usize,
) -> RedisResult<Vec<Vec<u8>>> {
    let (mut names, mut cursor) = (Vec::new(), 0u64);
    for _ in 0..scans {
        let mut request = cmd("SCAN");
        request.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(1000).arg("TYPE").arg(kind);
        let (next, mut found): (u64, Vec<Vec<u8>>) = request.query(connection)?;
        names.append(&mut found);
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    // SCAN may return a key twice.
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// A pattern that matches only the text itself.
fn escape(text: &str) -> String {
    let special = |it: char| "*?[]\\^-".contains(it);
    text.chars().fold(String::new(), |mut escaped, it| {
        if special(it) {
            escaped.push('\\');
        }
        escaped.push(it);
        escaped
    })
}

fn merge(name: Vec<u8>, entries: &[Entry], quorum: usize) -> Found {
    let count = |token: &[u8]| entries.iter().filter(|it| it.0 == token).count();
    let token = entries.iter().map(|it| &it.0).max_by_key(|it| count(it));
    let token = token.cloned().unwrap_or_default();
    let mut left: Vec<i64> = entries.iter().filter(|it| it.0 == token).map(|it| it.1).collect();
    left.sort_unstable_by(|one, other| other.cmp(one));
    let left_ms = left.get(quorum - 1).or_else(|| left.first()).copied().unwrap_or(0);
    let waiters = entries.iter().map(|it| it.2).max().unwrap_or(0);
    let left_time = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
    let servers = left.len();
    Found { name, servers, is_held: servers >= quorum, left: left_time, waiters, token }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_quorum_is_held() {
        let entry = |token: &str, left_ms, waiters| (token.as_bytes().to_vec(), left_ms, waiters);
        let found =
            merge(b"r".to_vec(), &[entry("a", 5, 0), entry("b", 9, 3), entry("a", 7, 1)], 2);
        assert!(found.is_held);
        assert_eq!((found.servers, found.left.as_millis(), found.waiters), (2, 5, 3));
        let found = merge(b"r".to_vec(), &[entry("a", 5, 0), entry("b", 9, 0)], 2);
        assert!(!found.is_held);
    }

    #[test]
    fn a_url_of_a_cluster_has_a_tag() {
        for (url, tag) in [
            ("redis-cluster://a,b?tag=x", Some("x")),
            ("valkey-cluster://u:p@a", Some("redlock")),
            ("redis+cluster://a/?tag=%78", Some("x")),
            ("redis://a", None),
            ("redis-sentinel://a/m", None),
            ("a:1", None),
        ] {
            assert_eq!(slot_of(url).as_ref().map(ClusterSlot::tag), tag, "{url}");
        }
    }

    #[test]
    fn a_prefix_is_matched_literally() {
        assert_eq!(escape("a*b?[c]\\"), "a\\*b\\?\\[c\\]\\\\");
    }

    #[test]
    fn an_address_may_have_a_zone() {
        let address = |url: &str| connection_info(url).expect("a URL").addr().to_string();
        assert_eq!(address("redis://u:p%25@[fe80::1%25eth0]:7/3"), "fe80::1%eth0:7");
        assert_eq!(address("redis://[fe80::1%25eth0]"), "fe80::1%eth0:6379");
        assert_eq!(address("redis://[::1]:7"), "::1:7");
        assert_eq!(address("redis://u:p%25@h:7"), "h:7");
    }

    #[test]
    fn the_address_of_a_master_goes_into_its_url() {
        let name = "mymaster (10.0.0.7:6379)";
        let url = url_of_master("rediss-sentinel://me:pw@s1,s2:26379/mymaster/3", name);
        assert_eq!(url.as_deref(), Some("rediss://me:pw@10.0.0.7:6379/3"));
    }
}
