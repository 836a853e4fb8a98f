//! Peers behind a rediss:// URL that are no server with TLS, or a server that never gets so far.

use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::front::{Front, Manners, Then};
use crate::rig::{Peer, are_refused, contains, manager_of};
use crate::support::usage::{
    DEADLINE, PATIENT_MS, TTL, addresses, blames, everything_works, in_time,
};
use crate::support::{
    Authority, Cluster, Fake, Lease, Manager, Proxy, Server, Way, wait_until, wait_until_ok,
};

/// The words about silent peers.
const SILENT: [&str; 2] = ["no reply", "timed out"];
/// The words about peers that close.
const GONE: [&str; 3] = ["closed", "reset", "lost"];

/// The server mistakes the handshake for a command. It waits for the end of it, or says that it does not know
/// it.
#[test]
fn a_server_without_tls_is_refused() {
    let words = [&SILENT[..], &["not support TLS"], &GONE].concat();
    refuses(|_| plain_server(), &words);
}

#[test]
fn a_server_without_tls_gets_no_password() {
    let server = Server::start();
    let proxy = Proxy::to(&server);
    let authority = Authority::new();
    let manager = manager_of(&authority, &[format!("rediss://:s3same-0pen@{}", proxy.address())]);
    assert_eq!(manager.set_timeouts(300, 300), REDLOCK_OK);
    for _ in 0..3 {
        assert_eq!(manager.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_UNREACHABLE);
    }
    drop(manager);
    assert_eq!(server.calls("auth") + server.calls("hello") + server.calls("ping"), 0);
}

/// It resets the connection, and cannot say why.
#[test]
fn a_tls_server_asked_in_plain_text_is_unreachable() {
    let cluster = Cluster::start_tls(3);
    let manager = Manager::at(&addresses(&cluster));
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    let lease = Lease::new();
    in_time(DEADLINE, || assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE));
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &addresses(&cluster[..2]), &GONE)
    });
    assert_eq!(cluster.having("r"), 0);
}

#[test]
fn a_server_without_hello_is_refused() {
    let strange: [fn() -> Fake; 5] = [
        || Fake::answering(b"+OK\r\n"),
        || Fake::answering(b"-ERR unknown command\r\n"),
        || Fake::answering(vec![0; 100]),
        || Fake::answering(vec![0xff; 10_000]),
        Fake::web,
    ];
    for fake in strange {
        refuses(|_| Peer::fake(fake()), &["not support TLS"]);
    }
}

/// The type and the version of a record, and then too much, too little, or something else.
#[test]
fn a_server_with_bad_records_is_refused() {
    let strange: [&[u8]; 6] = [
        b"\x16\x03\x03\xff\xff",
        b"\x16\x03\x03\x00\x00",
        b"\x16\x03\x03\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x03\x00\x04\x0e\x00\x00\x00",
        b"\x17\x03\x03\x00\x05+OK\r\n",
        b"\x14\x03\x03\x00\x01\x01\x14\x03\x03\x00\x01\x01",
    ];
    let words = [&SILENT[..], &["TLS"]].concat();
    for bytes in strange {
        refuses(move |_| Peer::fake(Fake::answering(bytes)), &words);
    }
}

#[test]
fn a_server_that_sends_an_alert_is_refused() {
    // A fatal alert: internal error; and a warning that the connection is over.
    refuses(|_| Peer::fake(Fake::answering(b"\x15\x03\x03\x00\x02\x02\x50")), &["rejected"]);
    let words = [&GONE[..], &["rejected", "TLS"]].concat();
    refuses(|_| Peer::fake(Fake::answering(b"\x15\x03\x03\x00\x02\x01\x00")), &words);
}

#[test]
fn a_server_that_closes_in_the_handshake_is_refused() {
    refuses(|_| Peer::fake(Fake::closing()), &GONE);
    let after_hello = || Fake::start(|guest| guest.read().map(|_| ()));
    refuses(|_| Peer::fake(after_hello()), &["closed by the server during the TLS handshake"]);
    for count in [1, 5, 6, 100, 400] {
        let closing = |authority: &Arc<Authority>| {
            behind(authority, |proxy| proxy.reset_each_after(Way::Replies, count))
        };
        refuses(closing, &GONE);
    }
}

#[test]
fn a_server_that_stalls_in_the_handshake_is_refused() {
    refuses(|_| Peer::fake(Fake::silent()), &SILENT);
    for count in [1, 5, 6, 100, 400] {
        let stalling = |authority: &Arc<Authority>| {
            behind(authority, move |proxy| {
                let mut left = count;
                proxy.alter(Way::Replies, move |mut bytes| {
                    bytes.truncate(left);
                    left -= bytes.len();
                    bytes
                });
            })
        };
        refuses(stalling, &SILENT);
    }
}

#[test]
fn a_server_that_stalls_in_the_handshake_is_retried() {
    let silent = Fake::silent();
    let url = format!("rediss://{}", silent.address());
    let manager = manager_of(&Authority::new(), &[url]);
    assert_eq!(manager.set_timeouts(100, 100), REDLOCK_OK);
    wait_until("it is given up, and tried again", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_UNREACHABLE);
        silent.connections() > 1
    });
}

#[test]
fn a_server_that_stalls_after_the_handshake_is_refused() {
    fronts(Then::IsSilent, &SILENT);
}

#[test]
fn a_server_that_closes_after_the_handshake_is_refused() {
    fronts(Then::SaysGoodbye, &GONE);
    fronts(Then::Closes, &GONE);
}

#[test]
fn a_server_that_drops_tls_is_refused() {
    fronts(Then::SpeaksPlainly, &["TLS"]);
}

/// Long answers: longer than the read buffer, and than a record.
#[test]
fn nonsense_over_tls_is_refused() {
    fronts(
        Then::Answers(b"HTTP/1.1 400 Bad Request\r\n\r\n", 1),
        &["protocol error: unexpected reply"],
    );
    fronts(Then::Answers(b"\0", 300_000), &["protocol error: unexpected reply"]);
    fronts(Then::Answers(b"+", 300_000), &["protocol error: unexpected reply", "reply too large"]);
}

/// A password is only sent to servers that showed a good certificate. Data that is sent before is not readable,
/// and data that is received before the end of the handshake is no reply.
#[test]
fn nothing_is_sent_before_the_handshake_is_complete() {
    let server = Server::start();
    let log = Fake::silent();
    let authority = Authority::new();
    let url = format!("rediss://locker:s3same-0pen@{}", log.address());
    let manager = manager_of(&authority, &[url, format!("redis://{}", server.address())]);
    assert_eq!(manager.set_timeouts(300, PATIENT_MS), REDLOCK_OK);
    for _ in 0..3 {
        assert_eq!(manager.try_lock("resource", TTL, 0, &Lease::new()), REDLOCK_UNREACHABLE);
    }
    let received = log.received();
    assert_eq!(received.first(), Some(&0x16), "it is a handshake");
    for word in ["s3same", "locker", "resource", "PING", "HELLO"] {
        assert!(!contains(&received, word), "{word} was sent in the clear");
    }
    assert!(!server.exists("resource"));
}

#[track_caller]
fn fronts(then: Then, words: &[&str]) {
    refuses(
        |authority| {
            let front = Front::start(&authority.server(), Manners { then, ..Manners::default() });
            Peer::deaf(front.url(), front.address(), front)
        },
        words,
    );
}

fn plain_server() -> Peer {
    let server = Server::start();
    let url = format!("rediss://{}", server.address());
    Peer::of_url(url, server)
}

/// A good server behind a bad proxy.
fn behind(authority: &Arc<Authority>, spoil: impl Fn(&Proxy)) -> Peer {
    let server = Server::start_tls(authority, &authority.server(), &[]);
    let proxy = Proxy::to(&server);
    spoil(&proxy);
    Peer::deaf(proxy.url(), proxy.address(), (proxy, server))
}

#[track_caller]
fn refuses(stranger: impl Fn(&Arc<Authority>) -> Peer, words: &[&str]) {
    let authority = Arc::new(Authority::new());
    are_refused(&authority, || stranger(&authority), words);
}

/// The good servers are still used, whatever other servers there are.
#[test]
fn plain_and_tls_servers_work_together() {
    let authority = Arc::new(Authority::new());
    let secure = Server::start_tls(&authority, &authority.server(), &[]);
    let plain = [Server::start(), Server::start()];
    let urls = [secure.url(), plain[0].url(), format!("unix://{}", plain[1].unix_socket())];
    let manager = manager_of(&authority, &urls);
    manager.connect_to_all();
    everything_works(&manager, "r");
    assert!(secure.calls("set") > 0);
}

/// One of each.
pub(crate) fn of_many_kinds() -> Vec<Peer> {
    let authority = Arc::new(Authority::new());
    let front = |then| {
        let front = Front::start(&authority.server(), Manners { then, ..Manners::default() });
        Peer::deaf(front.url(), front.address(), front)
    };
    let curious = ["--tls-auth-clients", "yes"];
    vec![
        Peer::server(&authority, &authority.server()),
        Peer::server(&authority, &authority.expired()),
        Peer::of(Server::start_tls(&authority, &authority.server(), &curious)),
        plain_server(),
        Peer::fake(Fake::silent()),
        Peer::fake(Fake::closing()),
        Peer::fake(Fake::answering(b"\x16\x03\x03\x00\x04\x02\x00\x00\x00")),
        Peer::fake(Fake::web()),
        behind(&authority, |proxy| proxy.reset_each_after(Way::Replies, 400)),
        front(Then::Closes),
        front(Then::SpeaksPlainly),
    ]
}
