//! The name that a certificate must have.

use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_OK, REDLOCK_UNREACHABLE,
};

use crate::rig::manager_of;
use crate::support::usage::{TTL, blames, everything_works, unguarded};
use crate::support::{Authority, Lease, Manager, Server, wait_until_ok};

/// A server whose certificate has only these names.
fn server_of(authority: &Arc<Authority>, names: &[&str]) -> Server {
    Server::start_tls(authority, &authority.server_named(names), &[])
}

#[test]
fn a_url_can_have_an_address_or_a_name() {
    let authority = Arc::new(Authority::new());
    for (host, name) in [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost"),
        ("LocalHost", "localhost"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
    ] {
        let server = server_of(&authority, &[name]);
        let url = format!("rediss://{host}:{}", server.port());
        everything_works(&manager_of(&authority, &[url]), "r");
        assert!(server.calls("set") > 0, "{host}");
    }
}

#[test]
fn a_certificate_for_another_host_does_not_fit() {
    let authority = Arc::new(Authority::new());
    for (host, name) in [
        ("127.0.0.1", "localhost"),
        ("localhost", "127.0.0.1"),
        ("[::1]", "127.0.0.1"),
        ("localhost", "*.localhost"),
        ("localhost", "localhost.example"),
        ("localhost", "host"),
    ] {
        let server = server_of(&authority, &[name]);
        let manager = manager_of(&authority, &[format!("rediss://{host}:{}", server.port())]);
        is_for_another_name(&manager, &format!("{host}:{}", server.port()));
        assert_eq!(server.calls("set"), 0, "{host}");
    }
}

#[test]
fn a_server_name_replaces_the_host_of_every_url() {
    let authority = Arc::new(Authority::new());
    let names = ["redis.example", "*.lock.example", "192.0.2.7", "2001:db8::7"];
    for (name, server_name) in [
        (names[0], "redis.example"),
        (names[0], "Redis.Example"),
        (names[1], "one.lock.example"),
        (names[2], "192.0.2.7"),
        (names[3], "2001:db8::7"),
    ] {
        let server = server_of(&authority, &[name]);
        let manager = manager_of(&authority, &[server.url()]);
        let status = manager.set_tls_server_name(Some(server_name));
        assert_eq!(status, REDLOCK_OK, "{server_name}: {}", manager.message());
        everything_works(&manager, "r");
    }
}

#[test]
fn a_server_name_outside_the_certificate_is_refused() {
    let authority = Arc::new(Authority::new());
    let server = Server::start_tls(&authority, &authority.server(), &[]);
    let manager = manager_of(&authority, &[server.url()]);
    for name in ["redis.example", "127.0.0.2", "one.two.lock.example"] {
        assert_eq!(manager.set_tls_server_name(Some(name)), REDLOCK_OK, "{name}");
        is_for_another_name(&manager, &server.address());
    }
    // Without one, each host is its own name again.
    assert_eq!(manager.set_tls_server_name(None), REDLOCK_OK);
    manager.connect_to_all();
    everything_works(&manager, "r");
}

#[test]
fn an_impossible_server_name_is_refused_at_once() {
    let manager = Manager::new();
    let long = "x".repeat(300);
    for name in [
        "",
        " ",
        "two words",
        "redis.example:6379",
        "rediss://redis.example",
        "[::1]",
        "caf\u{e9}.example",
        "-x.example",
        "a..example",
        ".",
        "*",
        "redis.example\n",
        &long,
    ] {
        assert_eq!(manager.set_tls_server_name(Some(name)), REDLOCK_INVALID_ARGUMENT, "{name:?}");
        let message = manager.message();
        assert!(message.contains("name") && !message.contains('\n'), "{message:?}");
    }
}

/// At the first address of a name, there may be no server, or another one.
#[test]
fn a_certificate_is_checked_by_name_at_every_address() {
    let authority = Arc::new(Authority::new());
    let server = server_of(&authority, &["localhost"]);
    let manager =
        unguarded(manager_of(&authority, &[format!("rediss://localhost:{}", server.port())]));
    everything_works(&manager, "r");
    server.restart();
    let lease = Lease::new();
    wait_until_ok("it is connected to anew", || match manager.try_lock("r", TTL, 0, &lease) {
        REDLOCK_OK => Ok(()),
        _ => Err(lease.message()),
    });
}

#[track_caller]
fn is_for_another_name(manager: &Manager, server: &str) {
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &[server.to_owned()], &["for another host name"])
    });
}
