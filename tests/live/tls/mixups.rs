//! rediss:// to a server without TLS, and redis:// to a server with TLS. The words name the mix-up, as soon as
//! it can be known.

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::rig::{contains, manager_of};
use crate::support::usage::{PATIENT_MS, TOO_LONG, TTL, in_time};
use crate::support::{Authority, Fake, Lease, Manager, Server, wait_until, wait_until_ok};

/// The words must not appear by chance while something else is wrong.
#[track_caller]
fn is_told(manager: &Manager, words: &[&str]) {
    let lease = Lease::new();
    wait_until_ok("the mix-up is named", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        let message = lease.message();
        if words.iter().all(|it| message.contains(it)) { Ok(()) } else { Err(message) }
    });
    assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE);
    let message = manager.message();
    assert!(words.iter().all(|it| message.contains(it)), "{message}");
}

/// The server waits for the end of a supposed command, so nothing is known until the timeout.
#[test]
fn a_plain_server_behind_rediss_is_guessed() {
    let server = Server::start();
    let manager = manager_of(&Authority::new(), &[format!("rediss://{}", server.address())]);
    assert_eq!(manager.set_timeouts(200, PATIENT_MS), REDLOCK_OK);
    is_told(&manager, &["no reply in the TLS handshake", "may not support", "use redis://"]);
}

#[test]
fn a_redis_reply_to_a_handshake_is_recognised() {
    for reply in ["-ERR Protocol error: unbalanced quotes in request\r\n", "+OK\r\n", "$-1\r\n"] {
        let fake = Fake::answering(reply);
        let manager = manager_of(&Authority::new(), &[format!("rediss://{}", fake.address())]);
        in_time(TOO_LONG, || is_told(&manager, &["not support TLS (use redis://)"]));
    }
    // Whatever else it is, it is no server without TLS.
    let fake = Fake::web();
    let manager = manager_of(&Authority::new(), &[format!("rediss://{}", fake.address())]);
    in_time(TOO_LONG, || is_told(&manager, &["not support TLS"]));
    assert!(!manager.message().contains("use redis://"), "{}", manager.message());
}

/// It closes without a word.
#[test]
fn a_tls_server_behind_redis_is_guessed_at_once() {
    let authority = Arc::new(Authority::new());
    for arguments in [&[][..], &["--tls-auth-clients", "yes"]] {
        let server = Server::start_tls(&authority, &authority.server(), arguments);
        for user in ["", ":s3same-0pen@", "u:s3same-0pen@"] {
            let manager = manager_of(&authority, &[format!("redis://{user}{}", server.address())]);
            in_time(TOO_LONG, || {
                is_told(&manager, &["after the first request", "may expect", "use rediss://"])
            });
            assert!(!manager.message().contains("s3same"), "{}", manager.message());
        }
    }
}

#[test]
fn a_tls_alert_to_a_greeting_is_recognised() {
    let fake = Fake::answering(b"\x15\x03\x03\x00\x02\x02\x46");
    let manager = manager_of(&Authority::new(), &[format!("redis://{}", fake.address())]);
    in_time(TOO_LONG, || is_told(&manager, &["expects TLS (use rediss://)"]));
    assert!(contains(&fake.received(), "PING"));
}

/// A server that closes for another reason, or has sent data, is not suspected.
#[test]
fn no_other_server_is_suspected() {
    let folder = Server::start();
    let path = folder.file("closing");
    let listener = UnixListener::bind(&path).expect("the path is free");
    thread::spawn(move || listener.incoming().for_each(drop));
    let refusing = Fake::start(|guest| {
        guest.read()?;
        guest.write(b"-ERR max number of clients reached\r\n")
    });
    for url in [format!("unix://{path}"), refusing.address(), "127.0.0.1:1".to_owned()] {
        let manager = Manager::new();
        assert_eq!(manager.add(&url, 0), REDLOCK_OK, "{}", manager.message());
        assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE);
        assert!(!manager.message().contains("TLS"), "{}", manager.message());
    }
    // A connection that worked, and is lost.
    let server = Server::start();
    let manager = manager_of(&Authority::new(), &[server.url()]);
    manager.connect_to_all();
    let log = manager.log();
    server.kill();
    wait_until("the loss is told of", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_UNREACHABLE);
        log.text().contains("connection lost")
    });
    assert!(!log.text().contains("TLS"), "{}", log.text());
}
