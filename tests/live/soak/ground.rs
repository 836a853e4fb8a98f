//! The servers, and the faults that they can have.

use std::thread;
use std::time::Duration;

use crate::journal::hash;
use crate::support::{Proxy, Reply, Server, wait_until};

pub(crate) const SERVERS: usize = 5;

/// A key with its token and its remaining milliseconds.
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) pttl_ms: i64,
}

pub(crate) struct Ground {
    servers: Vec<Server>,
    /// One in front of each server, for some of its clients.
    proxies: Vec<Proxy>,
}

impl Ground {
    /// Servers that write their keys to the disk before they answer. Such servers lose no key when they are
    /// killed, and so no lock.
    pub(crate) fn new() -> Self {
        let start = || Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
        let servers: Vec<_> = thread::scope(|scope| {
            let starting: Vec<_> = (0..SERVERS).map(|_| scope.spawn(start)).collect();
            starting.into_iter().map(|server| server.join().expect("it starts")).collect()
        });
        let proxies = servers.iter().map(Proxy::to).collect();
        Self { servers, proxies }
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.servers.iter().map(Server::address).collect()
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }

    /// The URLs through the proxies.
    pub(crate) fn detours(&self) -> Vec<String> {
        self.proxies.iter().map(Proxy::url).collect()
    }

    pub(crate) fn server(&self, number: usize) -> &Server {
        &self.servers[number]
    }

    pub(crate) fn proxy(&self, number: usize) -> &Proxy {
        &self.proxies[number]
    }

    /// From now on the server answers no command of this kind for this time, and holds back all of them.
    pub(crate) fn pause(&self, number: usize, time: Duration, kind: &str) {
        self.servers[number].must(&["CLIENT", "PAUSE", &time.as_millis().to_string(), kind]);
    }

    /// It loses every key.
    pub(crate) fn forget(&self, number: usize) {
        self.servers[number].must(&["FLUSHALL"]);
    }

    /// Restarts it. Returns when it has its keys and answers.
    pub(crate) fn restart(&self, number: usize) {
        self.servers[number].restart();
        self.wait_for(number);
    }

    pub(crate) fn wait_for(&self, number: usize) {
        let answers = || matches!(self.servers[number].command(&["GET", "x"]), Reply::Nil);
        wait_until("a server answers", answers);
    }

    /// All keys of a server.
    pub(crate) fn keys(&self, number: usize) -> Vec<Key> {
        let server = &self.servers[number];
        let Reply::Array(names) = server.must(&["KEYS", "*"]) else { panic!("a list of keys") };
        let mut keys = Vec::new();
        // Beside locks, the library has notes there.
        for name in names.iter().filter_map(Reply::text).filter(|it| !it.starts_with("redlock:")) {
            // The key may have expired by now.
            if let (Some(token), pttl_ms) = (server.get(&name), server.pttl(&name))
                && pttl_ms != -2
            {
                keys.push(Key { name, token: hash(&token), pttl_ms });
            }
        }
        keys
    }
}
