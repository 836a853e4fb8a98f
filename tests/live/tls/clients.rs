//! Servers that authenticate their clients.

use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_OK, REDLOCK_UNREACHABLE,
};

use crate::authorities::{files_of_no_use, is_refused};
use crate::rig::{Peer, are_refused, are_refused_by, manager_of};
use crate::support::usage::{TTL, blames, everything_works};
use crate::support::{Authority, Cluster, Identity, Lease, Manager, Server, wait_until_ok};

/// With TLS 1.3 a server verifies the client when the client considers the handshake complete.
const VERSIONS: [[&str; 4]; 2] = [
    ["--tls-auth-clients", "yes", "--tls-protocols", "TLSv1.2"],
    ["--tls-auth-clients", "yes", "--tls-protocols", "TLSv1.3"],
];

#[test]
fn a_requested_certificate_is_shown() {
    let authority = Arc::new(Authority::new());
    for arguments in VERSIONS {
        let cluster = curious(&authority, 3, &arguments);
        for identity in [authority.client(), authority.rsa_client(), authority.chained_client()] {
            let manager = cluster.manager();
            manager.shows(&identity);
            manager.connect_to_all();
            everything_works(&manager, "r");
        }
    }
}

#[test]
fn an_unrequested_certificate_does_no_harm() {
    let cluster = Cluster::start_tls(3);
    let manager = cluster.manager();
    manager.shows(&Authority::new().client());
    manager.connect_to_all();
    everything_works(&manager, "r");
}

#[test]
fn an_optional_certificate_may_be_missing() {
    let authority = Arc::new(Authority::new());
    let cluster = curious(&authority, 3, &["--tls-auth-clients", "optional"]);
    for identity in [None, Some(authority.client())] {
        let manager = cluster.manager();
        identity.iter().for_each(|it| manager.shows(it));
        manager.connect_to_all();
        everything_works(&manager, "r");
    }
}

/// The minority of good servers wants no certificate of ours.
#[test]
fn a_server_that_misses_our_certificate_is_named() {
    let authority = Arc::new(Authority::new());
    for arguments in VERSIONS {
        let server = || Peer::of(Server::start_tls(&authority, &authority.server(), &arguments));
        are_refused(&authority, server, &["certificate"]);
    }
}

#[test]
fn a_server_that_distrusts_our_certificate_is_named() {
    let (authority, other) = (Arc::new(Authority::new()), Authority::new());
    let words = ["client certificate", "client certificate"];
    for arguments in VERSIONS {
        for identity in [other.client(), authority.expired_client(), authority.self_signed()] {
            let server =
                || Peer::of(Server::start_tls(&authority, &authority.server(), &arguments));
            are_refused_by(&authority, |it| it.shows(&identity), server, &words);
        }
    }
}

#[test]
fn a_changed_certificate_is_used_for_new_connections() {
    let authority = Arc::new(Authority::new());
    let cluster = curious(&authority, 1, &VERSIONS[1]);
    let manager = manager_of(&authority, &cluster.urls());
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    assert_eq!(manager.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_UNREACHABLE);
    manager.shows(&authority.client());
    manager.connect_to_all();
    everything_works(&manager, "r");

    assert_eq!(manager.set_tls_certificate(None, None), REDLOCK_OK);
    everything_works(&manager, "r");
    cluster[0].hang_up();
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong", || {
        match manager.try_lock("r", TTL, 0, &lease) {
            REDLOCK_UNREACHABLE => {
                blames(&lease.message(), &[cluster[0].address()], &["certificate"])
            }
            status => {
                manager.unlock(&lease);
                Err(format!("{status:?}"))
            }
        }
    });
}

#[test]
fn keys_of_every_form_are_read() {
    let authority = Arc::new(Authority::new());
    let cluster = curious(&authority, 3, &VERSIONS[0]);
    let of_curve = authority.client_of_key(KEY_PKCS8);
    for (key, certificate) in [
        (KEY_PKCS8, of_curve.clone()),
        (KEY_SEC1, of_curve.clone()),
        (KEY_WITH_PARAMETERS, of_curve),
        (KEY_PKCS1, authority.rsa_client().certificate),
    ] {
        let key_file = authority.write("a-key.pem", key);
        let manager = cluster.manager();
        manager.shows(&Identity { certificate, key: key_file });
        manager.connect_to_all();
        everything_works(&manager, "r");
    }
}

/// Many programs use such a file: the key and the certificate in one.
#[test]
fn one_file_may_contain_key_and_certificate() {
    let authority = Arc::new(Authority::new());
    let cluster = curious(&authority, 3, &VERSIONS[1]);
    let Identity { certificate, key } = authority.client();
    let read = |file: &str| std::fs::read_to_string(file).expect("a file");
    let file = authority.write("one.pem", &(read(&key) + &read(&certificate)));
    let manager = cluster.manager();
    manager.shows(&Identity { certificate: file.clone(), key: file });
    manager.connect_to_all();
    everything_works(&manager, "r");
}

#[test]
fn useless_files_are_refused_and_change_nothing() {
    let authority = Arc::new(Authority::new());
    let cluster = curious(&authority, 3, &VERSIONS[1]);
    let (manager, good) = (cluster.manager(), authority.client());
    manager.shows(&good);
    let refuses = |certificate: &str, key: &str, argument: &str, words: &str| {
        let status = manager.set_tls_certificate(Some(certificate), Some(key));
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{certificate} {key}");
        let file = if argument == "key_file" { key } else { certificate };
        is_refused(&manager.message(), argument, file, words);
    };
    for (file, words) in files_of_no_use(&authority) {
        refuses(&file, &good.key, "certificate_file", words);
    }
    for (file, words) in files_of_no_use(&authority) {
        // A file without a certificate is no key file either, except the one that contains a key.
        if file.contains("key-") {
            continue;
        }
        let words = if words.contains("file") || words.contains("dir") { words } else { "key" };
        refuses(&good.certificate, &file, "key_file", words);
    }
    refuses(&good.certificate, &good.certificate, "key_file", "no private key");
    let other = authority.client().key;
    refuses(&good.certificate, &other, "key_file", "does not match the certificate");
    for (name, key) in [("locked.pem", KEY_LOCKED), ("locked-old.pem", KEY_LOCKED_OLD)] {
        let file = authority.write(name, key);
        refuses(&good.certificate, &file, "key_file", "encrypted");
    }
    one_alone_is_refused(&manager, &good);
    manager.connect_to_all();
    everything_works(&manager, "r");
}

fn one_alone_is_refused(manager: &Manager, good: &Identity) {
    for (certificate, key) in
        [(Some(&*good.certificate), None), (None, Some(&*good.key)), (Some(""), Some(&*good.key))]
    {
        let status = manager.set_tls_certificate(certificate, key);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{certificate:?} {key:?}");
        assert_ne!(manager.message(), "");
    }
}

/// Servers that ask clients for a certificate of the authority.
fn curious(authority: &Arc<Authority>, count: usize, arguments: &[&str]) -> Cluster {
    Cluster::start_each(count, || Server::start_tls(authority, &authority.server(), arguments))
}

// Keys that protect nothing, in all existing forms.
const KEY_PKCS8: &str = include_str!("keys/pkcs8.pem");
const KEY_SEC1: &str = include_str!("keys/sec1.pem");
/// As OpenSSL writes it, with the curve in front.
const KEY_WITH_PARAMETERS: &str = include_str!("keys/parameters.pem");
/// The key that all RSA certificates are for.
const KEY_PKCS1: &str = include_str!("keys/pkcs1.pem");
const KEY_LOCKED: &str = include_str!("keys/locked.pem");
const KEY_LOCKED_OLD: &str = include_str!("keys/locked-old.pem");
