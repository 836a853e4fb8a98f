//! The versions of TLS, and how they are used.

use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::front::{Front, Manners};
use crate::rig::{Peer, are_refused, manager_of};
use crate::support::usage::{TTL, everything_works};
use crate::support::{Authority, Cluster, Lease, Manager, Server, wait_until};

#[test]
fn servers_with_a_single_tls_version_work() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        is_good(&["--tls-protocols", version]);
    }
}

#[test]
fn servers_with_any_safe_cipher_work() {
    for cipher in
        ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
    {
        is_good(&["--tls-protocols", "TLSv1.3", "--tls-ciphersuites", cipher]);
    }
    for cipher in ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"] {
        is_good(&["--tls-protocols", "TLSv1.2", "--tls-ciphers", cipher]);
    }
}

#[test]
fn servers_with_only_an_old_version_are_refused() {
    let old = ["--tls-protocols", "TLSv1.1", "--tls-ciphers", "DEFAULT:@SECLEVEL=0"];
    is_refused(&old, &["no TLS version in common"]);
}

#[test]
fn servers_with_only_old_ciphers_are_refused() {
    let old = ["--tls-protocols", "TLSv1.2", "--tls-ciphers", "ECDHE-ECDSA-AES128-SHA"];
    is_refused(&old, &["rejected the TLS handshake"]);
}

#[test]
fn records_of_any_size_and_tickets_work() {
    for (record, tickets) in [(Some(33), 0), (Some(100), 1), (None, 8)] {
        over(Manners { record, tickets, ..Manners::default() }, |manager, _| {
            everything_works(manager, "r");
        });
    }
}

#[test]
fn constant_key_renewals_are_harmless() {
    over(Manners { renews_keys: true, ..Manners::default() }, |manager, fronts| {
        for _ in 0..20 {
            everything_works(manager, "r");
        }
        let used: Vec<_> = fronts.iter().map(Front::connections).collect();
        assert_eq!(used, [1, 1, 1], "the connections were lost in between");
    });
}

/// A request of five records, and an error that quotes most of it.
#[test]
fn names_longer_than_a_record_work() {
    let long = "x".repeat(64 * 1024);
    let cluster = Cluster::start_tls(3);
    let manager = cluster.manager();
    manager.connect_to_all();
    for _ in 0..5 {
        everything_works(&manager, &long);
    }
    let lease = manager.take(&long, TTL);
    cluster.wait_until_everywhere(&long);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone(&long);
}

#[test]
fn names_longer_than_a_record_work_with_any_records() {
    let manners = Manners { record: Some(500), renews_keys: true, ..Manners::default() };
    over(manners, |manager, _| everything_works(manager, &"x".repeat(64 * 1024)));
}

/// Requests of 32 KiB each for a server that receives nothing meanwhile. They are far more than a socket or a
/// TLS session can buffer, and within the limit of what may wait for a server.
#[test]
fn a_thawed_server_gets_many_long_requests() {
    let cluster = Cluster::start_tls(3);
    let manager = crate::support::usage::connected(&cluster);
    let names: Vec<_> = (0..60).map(|it| format!("{it:02}").repeat(8 * 1024)).collect();
    cluster[0].freeze();
    let leases: Vec<Lease> = names.iter().map(|name| manager.take(name, TTL)).collect();
    cluster[0].resume();
    for name in &names {
        wait_until("the server has it, too", || {
            manager.is_locked("another") == Ok(false) && cluster[0].exists(name)
        });
    }
    for lease in &leases {
        assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
    }
    names.iter().for_each(|name| cluster.wait_until_gone(name));
}

#[track_caller]
fn is_good(arguments: &[&str]) {
    let authority = Arc::new(Authority::new());
    let start = || Server::start_tls(&authority, &authority.server(), arguments);
    let cluster = Cluster::start_each(3, start);
    let manager = cluster.manager();
    manager.connect_to_all();
    everything_works(&manager, "r");
    assert!(cluster.iter().all(|it| it.calls("set") > 0), "{arguments:?}");
}

#[track_caller]
fn is_refused(arguments: &[&str], words: &[&str]) {
    let authority = Arc::new(Authority::new());
    let old = || Peer::of(Server::start_tls(&authority, &authority.server(), arguments));
    are_refused(&authority, old, words);
}

#[track_caller]
fn over(manners: Manners, body: impl FnOnce(&Manager, &[Front; 3])) {
    let authority = Authority::new();
    let fronts = [(); 3].map(|()| Front::start(&authority.server(), manners));
    let manager = manager_of(&authority, &fronts.each_ref().map(Front::url));
    manager.connect_to_all();
    body(&manager, &fronts);
}
