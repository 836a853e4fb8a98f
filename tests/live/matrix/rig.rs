//! Servers, each behind a proxy.

use std::time::Duration;

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::support::proxy::BOTH;
use crate::support::usage::{PATIENT_MS, TTL};
use crate::support::{Cluster, Lease, Manager, Proxy, Way, wait_until, wait_until_ok};

pub(crate) struct Rig {
    pub(crate) servers: Cluster,
    pub(crate) proxies: Vec<Proxy>,
}

impl Rig {
    pub(crate) fn start(count: usize) -> Self {
        Self::of(Cluster::start(count))
    }

    /// Servers with TLS.
    pub(crate) fn start_tls(count: usize) -> Self {
        Self::of(Cluster::start_tls(count))
    }

    fn of(servers: Cluster) -> Self {
        let proxies = servers.iter().map(Proxy::to).collect();
        Self { servers, proxies }
    }

    /// A patient manager that reaches every server through its proxy.
    pub(crate) fn manager(&self) -> Manager {
        let manager = manager_through(&self.proxies);
        if let Some(file) = self.servers.authority_file() {
            assert_eq!(manager.set_tls_ca(Some(&file)), REDLOCK_OK, "{}", manager.message());
        }
        manager
    }

    /// The same, connected to all.
    pub(crate) fn connected(&self) -> Manager {
        let manager = self.manager();
        manager.connect_to_all();
        manager
    }

    /// Delays both directions to every server by this time.
    pub(crate) fn delay(&self, time: Duration) {
        for way in BOTH {
            self.proxies.iter().for_each(|it| it.delay(way, time, time));
        }
    }

    pub(crate) fn heal(&self) {
        self.proxies.iter().for_each(Proxy::heal);
    }

    /// All is well again: a granted lock is released, and every client can lock.
    #[track_caller]
    pub(crate) fn recovers(&self, manager: &Manager, key: &str) {
        recovers(manager, key, &self.servers);
    }
}

pub(crate) fn manager_through(proxies: &[Proxy]) -> Manager {
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let manager = Manager::of_urls(&urls);
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager
}

/// Once the manager has its connections again, nothing is left under the key on any server. The test goes on
/// using the manager until then. Afterwards it locks as usual, and so does another manager.
#[track_caller]
pub(crate) fn recovers(manager: &Manager, key: &str, servers: &Cluster) {
    wait_until("the key is gone from all servers", || {
        manager.is_locked("another") == Ok(false) && servers.having(key) == 0
    });
    let lease = Lease::new();
    wait_until_ok("the manager locks again", || match manager.try_lock(key, TTL, 0, &lease) {
        REDLOCK_OK => Ok(()),
        status => Err(format!("({status:?}: {})", lease.message())),
    });
    wait_until("the manager releases again", || manager.unlock(&lease) == REDLOCK_OK);
    let other = servers.manager();
    let lease = other.take(key, TTL);
    assert_eq!(other.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    servers.wait_until_gone(key);
}

/// Stalls one direction to each of these.
pub(crate) fn stall(proxies: &[Proxy], way: Way) {
    proxies.iter().for_each(|it| it.stall(way));
}
