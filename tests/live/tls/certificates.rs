//! The certificates that a server shows: good ones and others.

use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::front::{Front, Manners};
use crate::rig::{Peer, are_refused, manager_of};
use crate::support::usage::{TTL, blames, everything_works};
use crate::support::{Authority, Cluster, Identity, Lease, Manager, Server, wait_until_ok};

type Kind = fn(&Authority) -> Identity;

#[test]
fn good_servers_grant_locks() {
    let cluster = Cluster::start_tls(3);
    let manager = cluster.manager();
    manager.connect_to_all();
    (0..10).for_each(|_| everything_works(&manager, "r"));
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    assert_eq!(cluster[0].get("r"), Some(lease.token()));
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone("r");
}

#[test]
fn good_servers_grant_locks_under_all_tls_schemes() {
    let cluster = Cluster::start_tls(3);
    let trusting = Manager::new();
    assert_eq!(trusting.set_tls_ca(cluster.authority_file().as_deref()), REDLOCK_OK);
    for (server, scheme) in cluster.iter().zip(["rediss", "valkeys", "REDISS"]) {
        let url = format!("{scheme}://{}", server.address());
        assert_eq!(trusting.add(&url, 0), REDLOCK_OK, "{url}: {}", trusting.message());
    }
    trusting.connect_to_all();
    everything_works(&trusting, "r");
}

#[test]
fn keys_and_chains_of_every_kind_work() {
    let authority = Arc::new(Authority::new());
    let kinds: [Kind; 3] = [Authority::server, Authority::rsa, Authority::chained];
    for kind in kinds {
        let start = || Server::start_tls(&authority, &kind(&authority), &[]);
        let cluster = Cluster::start_each(3, start);
        let manager = cluster.manager();
        manager.connect_to_all();
        everything_works(&manager, "r");
    }
}

#[test]
fn an_expired_certificate_is_refused() {
    refuses(Authority::expired, &["certificate has expired"]);
}

#[test]
fn a_certificate_that_is_not_yet_valid_is_refused() {
    refuses(Authority::not_yet_valid, &["certificate is not valid yet"]);
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    refuses(|it| it.server_named(&["127.0.0.2", "redis.example"]), &["for another host name"]);
}

/// The name in the subject has not counted for a long time.
#[test]
fn a_certificate_without_a_name_is_refused() {
    refuses(|it| it.server_named(&[]), &["for another host name"]);
}

#[test]
fn a_client_certificate_of_a_server_is_refused() {
    refuses(Authority::client, &["not a server certificate", "for another host name"]);
}

#[test]
fn a_certificate_of_an_untrusted_authority_is_refused() {
    let stranger = Authority::new();
    refuses(move |_| stranger.server(), &["unknown authority"]);
}

#[test]
fn a_certificate_of_a_false_authority_is_refused() {
    let authority = Arc::new(Authority::new());
    let impostor = authority.impostor();
    let words = ["unknown authority", "invalid signature"];
    are_refused(&authority, || Peer::server(&authority, &impostor.server()), &words);
}

#[test]
fn a_self_signed_certificate_is_refused() {
    refuses(Authority::self_signed, &["unknown authority"]);
}

#[test]
fn a_certificate_chain_with_a_gap_is_refused() {
    refuses(Authority::chained_with_a_gap, &["unknown authority"]);
}

#[test]
fn without_verification_all_certificates_are_accepted() {
    let (authority, other) = (Arc::new(Authority::new()), Authority::new());
    let identities = [
        authority.expired(),
        authority.not_yet_valid(),
        authority.server_named(&["redis.example"]),
        authority.self_signed(),
        other.server(),
    ];
    let servers = identities.iter().map(|it| Server::start_tls(&authority, it, &[]));
    let cluster: Cluster = servers.collect();
    let manager = manager_of(&authority, &cluster.urls());
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    assert_eq!(manager.lock("r", TTL, &Lease::new()), REDLOCK_UNREACHABLE);

    assert_eq!(manager.set_tls_insecure_skip_verify(true), REDLOCK_OK);
    manager.connect_to_all();
    everything_works(&manager, "r");

    // The setting applies to connections that are made from then on.
    assert_eq!(manager.set_tls_insecure_skip_verify(false), REDLOCK_OK);
    everything_works(&manager, "r");
    cluster.iter().for_each(Server::hang_up);
    let lease = Lease::new();
    wait_until_ok("they are refused again", || match manager.try_lock("r", TTL, 0, &lease) {
        REDLOCK_UNREACHABLE => Ok(()),
        status => {
            manager.unlock(&lease);
            Err(format!("{status:?}"))
        }
    });
}

/// A client that skips verification cannot be sure who the server is. The server must still prove that it has
/// the key of its certificate.
#[test]
fn without_verification_the_key_must_still_be_proven() {
    // redis-server refuses to start with a key that does not match, so there is no real server to test.
    let authority = Arc::new(Authority::new());
    let (one, other) = (authority.server(), authority.server());
    let mixed = Identity { certificate: one.certificate, key: other.key };
    let front = Front::start(&mixed, Manners::default());
    let manager = manager_of(&authority, &[front.url()]);
    assert_eq!(manager.set_tls_insecure_skip_verify(true), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &[front.address()], &["invalid signature"])
    });
}

/// Servers with this identity are refused in these words.
#[track_caller]
fn refuses(identity: impl Fn(&Authority) -> Identity, words: &[&str]) {
    let authority = Arc::new(Authority::new());
    are_refused(&authority, || Peer::server(&authority, &identity(&authority)), words);
}
