//! Connections that an attacker cuts or changes on the way, at any byte.

use std::sync::{Arc, Mutex};
use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::rig::{contains, manager_of};
use crate::support::proxy::BOTH;
use crate::support::usage::{TTL, interrupted_lock};
use crate::support::{Authority, Cluster, Lease, Manager, Proxy, Server, Way, wait_until};

/// The places are shared among this many threads. Each thread has its own servers.
const THREADS: usize = 4;
/// How long the side that receives a changed byte waits. A changed length makes it wait for more data.
const BRIEF_MS: i64 = 250;

/// The attack on a connection once it has carried this many bytes.
type Strike = fn(&Proxy, Way, u64);

#[test]
fn a_reset_at_any_byte_of_the_only_server_leaves_nothing() {
    BOTH.into_iter().for_each(|way| at_every_byte(1, way, step(way), Proxy::reset_after));
}

#[test]
fn a_reset_at_any_byte_of_one_server_is_harmless() {
    BOTH.into_iter().for_each(|way| at_every_byte(3, way, 11, Proxy::reset_after));
}

/// A stream that ends at an arbitrary place, as if the other side had closed it, and without the closing
/// message of TLS. The data that was cut off must not count.
#[test]
fn a_stream_cut_at_any_byte_of_the_only_server_leaves_nothing() {
    BOTH.into_iter().for_each(|way| at_every_byte(1, way, step(way), Proxy::end_after));
}

#[test]
fn a_changed_byte_of_the_only_server_leaves_nothing() {
    BOTH.into_iter().for_each(|way| at_every_byte(1, way, step(way), change_a_byte));
}

#[test]
fn a_changed_byte_of_one_server_is_harmless() {
    BOTH.into_iter().for_each(|way| at_every_byte(3, way, 13, change_a_byte));
}

/// A replay of a whole record, as if the server had sent it again.
#[test]
fn a_replayed_reply_grants_nothing() {
    let (authority, server, proxy) = behind_a_proxy();
    let manager = manager_of(&authority, &[proxy.url()]);
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let lease = manager.take("warm up", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    proxy.alter(Way::Replies, {
        let recorded = Arc::clone(&recorded);
        move |bytes| {
            recorded.lock().expect("not poisoned").extend_from_slice(&bytes);
            bytes
        }
    });
    let lease = manager.take("r", TTL);
    let played = recorded.lock().expect("not poisoned").clone();
    assert!(!played.is_empty());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);

    server.must(&["SET", "theirs", "somebody"]);
    proxy.stall(Way::Requests);
    proxy.inject(Way::Replies, &played);
    assert_eq!(manager.set_timeouts(BRIEF_MS, BRIEF_MS), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    assert_eq!(manager.try_lock("theirs", TTL, 0, &Lease::new()), REDLOCK_UNREACHABLE);
    proxy.heal();
    wait_until("it is connected to anew", || {
        manager.try_lock("r", TTL, 0, &Lease::new()) == REDLOCK_OK
    });
}

#[test]
fn no_plain_text_is_visible_on_the_way() {
    let (authority, server, proxy) = behind_a_proxy();
    server.must(&["ACL", "SETUSER", "locker", "on", ">s3same-0pen", "~*", "+@all"]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for way in BOTH {
        let seen = Arc::clone(&seen);
        proxy.alter(way, move |bytes| {
            seen.lock().expect("not poisoned").extend_from_slice(&bytes);
            bytes
        });
    }
    let url = proxy.url().replace("://", "://locker:s3same-0pen@");
    let manager = manager_of(&authority, &[url]);
    let lease = manager.take("a-resource", TTL);
    let token = lease.token();
    assert_eq!(server.get("a-resource"), Some(token.clone()));
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    let seen = seen.lock().expect("not poisoned");
    assert!(seen.len() > 500, "it did not go through the proxy");
    // Words so long that thousands of random bytes do not contain them by chance.
    for word in ["locker", "s3same", "a-resource", &token] {
        assert!(!contains(&seen, word), "{word} was readable");
    }
}

fn behind_a_proxy() -> (Arc<Authority>, Server, Proxy) {
    let authority = Arc::new(Authority::new());
    let server = Server::start_tls(&authority, &authority.server(), &[]);
    let proxy = Proxy::to(&server);
    (authority, server, proxy)
}

/// Changes the byte after this many bytes.
fn change_a_byte(proxy: &Proxy, way: Way, count: u64) {
    let mut left = Some(usize::try_from(count).expect("not that many"));
    proxy.alter(way, move |mut bytes| {
        let Some(place) = left else { return bytes };
        match bytes.get_mut(place) {
            Some(byte) => (*byte, left) = (*byte ^ 1, None),
            None => left = Some(place - bytes.len()),
        }
        bytes
    });
}

/// The position of a byte in a record hardly matters.
fn step(way: Way) -> usize {
    way.step().max(3)
}

/// Repeats the conversation with this many servers. Each time the first server is attacked some bytes later.
fn at_every_byte(servers: usize, way: Way, step: usize, strike: Strike) {
    let authority = Arc::new(Authority::new());
    let cut = |first: usize| {
        let start = || Server::start_tls(&authority, &authority.server(), &[]);
        let servers = Cluster::start_each(servers, start);
        let proxies: Vec<_> = servers.iter().map(Proxy::to).collect();
        let place = Place { authority: &authority, servers: &servers, proxies: &proxies };
        let length = place.length(way);
        assert!(length > 500, "{length} bytes are no conversation");
        for count in (0..length).skip(first * step).step_by(THREADS * step) {
            place.struck_at(way, count, strike);
        }
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || cut(first))).collect();
        running.into_iter().for_each(|it| it.join().expect("all is as it should be"));
    });
}

struct Place<'a> {
    authority: &'a Authority,
    servers: &'a Cluster,
    proxies: &'a [Proxy],
}

impl Place<'_> {
    fn manager(&self) -> Manager {
        let urls: Vec<_> = self.proxies.iter().map(Proxy::url).collect();
        let manager = manager_of(self.authority, &urls);
        assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
        manager
    }

    /// How many bytes the first server sends or gets in the conversation.
    fn length(&self, way: Way) -> u64 {
        let manager = self.manager();
        manager.connect_to_all();
        self.converse(&manager);
        self.is_released(&manager);
        drop(manager);
        self.is_closed();
        self.proxies[0].sent(way)
    }

    fn struck_at(&self, way: Way, count: u64, strike: Strike) {
        let (manager, proxy, server) = (self.manager(), &self.proxies[0], &self.servers[0]);
        if self.servers.len() == 1 {
            assert_eq!(manager.set_timeouts(BRIEF_MS, BRIEF_MS), REDLOCK_OK);
        }
        let sets = server.calls("set");
        strike(proxy, way, count);
        self.converse(&manager);
        assert!(server.calls("set") <= sets + 1, "a request to take a lock was sent twice");
        proxy.heal();
        proxy.reset();
        self.is_released(&manager);
        let lease = Lease::new();
        wait_until("it is had again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
        wait_until("it is released", || manager.unlock(&lease) == REDLOCK_OK);
        self.is_released(&manager);
        drop(manager);
        self.is_closed();
        proxy.forget_ended();
    }

    /// A server that lags behind is released while the manager is in use.
    #[track_caller]
    fn is_released(&self, manager: &Manager) {
        wait_until("what was granted is released", || {
            manager.is_locked("another") == Ok(false) && self.servers.having("r") == 0
        });
    }

    /// A lock, an extension and an unlock.
    #[track_caller]
    fn converse(&self, manager: &Manager) {
        if self.servers.len() > 1 {
            let lease = Lease::new();
            // A server that is not asked for the lock has none to extend when the first server is attacked.
            wait_until("the others are connected", || {
                assert_eq!(manager.connect(0), REDLOCK_OK, "{}", manager.message());
                let is_up = |it: &Proxy| !manager.message().contains(&it.address());
                self.proxies[1..].iter().all(is_up)
            });
            assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            return;
        }
        // Only the server can have granted it.
        if interrupted_lock(manager, "r") == REDLOCK_OK {
            assert!(self.servers[0].calls("set") > 0);
        }
    }

    /// A freed manager leaves no connection open, and everything that was sent over them was received.
    #[track_caller]
    fn is_closed(&self) {
        let ended = || self.proxies[0].connections().iter().all(|it| it.has_ended);
        wait_until("all connections are closed", ended);
        wait_until("the server knows", || self.servers[0].clients().is_empty());
    }
}
