//! Masters and Sentinels with TLS.

use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::sentinels::{Group, Sentinel};
use crate::support::usage::{everything_works, make_brief};
use crate::support::{Authority, Lease, Manager, Server, wait_until_ok};

const RESOURCE: &str = "r";

#[test]
fn m09_sentinels_and_masters_prove_who_they_are() {
    let authority = Arc::new(Authority::new());
    let identity = authority.server();
    let server = Server::start_tls(&authority, &identity, &[]);
    let group = Group::of("mymaster", vec![server], 1_000);
    let lines = |identity: &crate::support::Identity| {
        [
            format!("tls-cert-file {}", identity.certificate),
            format!("tls-key-file {}", identity.key),
            format!("tls-ca-cert-file {}", authority.file()),
            "tls-auth-clients no".to_owned(),
            "tls-replication yes".to_owned(),
        ]
    };
    let start = |identity: &crate::support::Identity| {
        let lines = lines(identity);
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        Sentinel::start_with(&[group.master_port()], 1, &lines)
    };
    let manager_of = |sentinels: &str, scheme: &str| {
        let manager = Manager::new();
        assert_eq!(manager.set_tls_ca(Some(&authority.file())), REDLOCK_OK);
        let url = format!("{scheme}://{sentinels}/mymaster");
        assert_eq!(manager.add(&url, 0), REDLOCK_OK, "{}", manager.message());
        manager
    };
    let sentinel = start(&identity);
    let manager = manager_of(&sentinel.address(), "rediss-sentinel");
    everything_works(&manager, RESOURCE);
    let plain = Sentinel::start(&[group.master_port()], 1);
    // Another Sentinel that must not be trusted is skipped. It is no part of a majority.
    let liar = start(&authority.expired());
    let both = format!("{},{}", liar.address(), sentinel.address());
    let manager = manager_of(&both, "rediss-sentinel");
    assert_eq!(manager.set_failover_guard(false), REDLOCK_OK);
    everything_works(&manager, RESOURCE);
    for (sentinel, scheme, words) in [
        (&plain, "rediss-sentinel", "use redis-sentinel://"),
        (&sentinel, "redis-sentinel", "use rediss-sentinel://"),
        (&liar, "rediss-sentinel", "expired"),
    ] {
        let manager = manager_of(&sentinel.address(), scheme);
        make_brief(&manager);
        let lease = Lease::new();
        wait_until_ok("the words say it", || {
            let status = manager.try_lock(RESOURCE, 10_000, 0, &lease);
            assert_eq!(status, REDLOCK_UNREACHABLE);
            let said = lease.message();
            if said.contains(&sentinel.address()) && said.contains(words) {
                Ok(())
            } else {
                Err(said)
            }
        });
    }
}
