//! All the ways to give a server's address and our credentials.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::resp::Connection;
use crate::support::{Lease, Manager, Server, wait_until_ok};
use crate::{PATIENT_MS, TTL, blames, everything_works};

#[test]
fn a_unix_socket_works_in_each_spelling() {
    let server = Server::start();
    let path = server.unix_socket();
    serves(&server, &format!("unix://{path}"), 0, 0);
    serves(&server, &format!("redis+unix://{path}"), 0, 0);
    serves(&server, &format!("unix://{path}?db=5"), 0, 5);
}

#[test]
fn an_ipv6_address_works_in_each_spelling() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("this machine has no IPv6");
        return;
    }
    let server = Server::start();
    serves(&server, "::1", server.port(), 0);
    serves(&server, &format!("redis://[::1]:{}", server.port()), 0, 0);
}

/// The address of a network interface on its link, and the name and number of the interface, if there is one.
fn link_local() -> Option<(String, String, u32)> {
    let known = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
    let line = known.lines().find(|line| line.starts_with("fe80"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [address, number, .., name] = words[..] else { return None };
    let number = u32::from_str_radix(number, 16).ok()?;
    let address = u128::from_str_radix(address, 16).ok()?;
    Some((std::net::Ipv6Addr::from(address).to_string(), name.to_owned(), number))
}

/// The address is good on one link only, and the zone says on which.
#[test]
fn an_address_with_a_zone_works_in_each_spelling() {
    let Some((address, name, number)) = link_local() else {
        println!("this machine has no link-local address");
        return;
    };
    let bound = format!("{address}%{name}");
    let server = Server::start_with(&["--protected-mode", "no", "--bind", "127.0.0.1", &bound]);
    let port = server.port();
    for zone in [name, number.to_string()] {
        serves(&server, &format!("{address}%{zone}"), port, 0);
        serves(&server, &format!("[{address}%{zone}]:{port}"), 0, 0);
        serves(&server, &format!("redis://[{address}%25{zone}]:{port}/2"), 0, 2);
    }
}

#[test]
fn an_unknown_zone_is_named() {
    for (host, port) in [("fe80::1%nosuch0", 6379), ("redis://[fe80::1%25nosuch0]", 0)] {
        let (manager, lease) = (Manager::new(), Lease::new());
        assert_eq!(manager.add(host, port), REDLOCK_OK, "{host}: {}", manager.message());
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
        let message = lease.message();
        assert!(message.contains("IPv6 zone nosuch0 of fe80::1 is not a usable"), "{message}");
    }
}

#[test]
fn a_host_name_works_in_each_spelling() {
    let server = Server::start();
    serves(&server, "localhost", server.port(), 0);
    serves(&server, &format!("redis://localhost:{}", server.port()), 0, 0);
}

/// At first, two servers seem to be enough without a look-up of the third server's name. Then one of them turns
/// out to be down.
#[test]
fn a_server_by_name_is_tried_before_a_call_fails() {
    let (one, other) = (Server::start(), Server::start());
    for _ in 0..5 {
        let manager = Manager::new();
        assert_eq!(manager.add("127.0.0.1", 1), REDLOCK_OK);
        assert_eq!(manager.add(&one.url(), 0), REDLOCK_OK);
        assert_eq!(manager.add("localhost", other.port().into()), REDLOCK_OK);
        assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        let lease = Lease::new();
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}

#[test]
fn a_database_number_is_used() {
    let server = Server::start();
    serves(&server, &format!("redis://{}/3", server.address()), 0, 3);
    serves(&server, &format!("redis://{}/15", server.address()), 0, 15);
    let manager = Manager::new();
    manager.set_retry(1, 0);
    assert_eq!(manager.add(&format!("redis://{}/16", server.address()), 0), REDLOCK_OK);
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &[server.address()], &["database"])
    });
    assert!(!server.exists("r"), "it went to database 0 instead");
}

#[test]
fn a_user_with_a_password_is_let_in() {
    let server = Server::start();
    server.must(&["ACL", "SETUSER", "locker", "on", ">p@ss:w/rd?#%", "~*", "+@all"]);
    server.must(&["CONFIG", "SET", "requirepass", "sesame"]);
    let (address, path) = (server.address(), server.unix_socket());
    serves(&server, &format!("redis://locker:p%40ss%3Aw%2Frd%3F%23%25@{address}"), 0, 0);
    serves(&server, &format!("redis://locker:p%40ss%3Aw%2Frd%3F%23%25@{address}/7"), 0, 7);
    serves(&server, &format!("redis://:sesame@{address}"), 0, 0);
    serves(&server, &format!("redis://default:sesame@{address}"), 0, 0);
    serves(&server, &format!("unix://{path}?user=default&pass=sesame&db=2"), 0, 2);
}

/// A manager of this server alone takes, keeps and releases a lock, in this database.
#[track_caller]
fn serves(server: &Server, host_or_url: &str, port: u16, database: u8) {
    let manager = Manager::new();
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    let status = manager.add(host_or_url, port.into());
    assert_eq!(status, REDLOCK_OK, "{host_or_url}: {}", manager.message());
    let lease = manager.take("r", TTL);
    let mut look = look_into(server, database);
    assert_eq!(look(&["GET", "r"]), Some(lease.token()), "{host_or_url}");
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    assert_eq!(look(&["GET", "r"]), None, "{host_or_url}");
    everything_works(&manager, "r");
}

/// Asks one database of a server, with its password if it has one.
fn look_into(server: &Server, database: u8) -> impl FnMut(&[&str]) -> Option<String> {
    let mut connection = Connection::open(&server.address()).expect("the server can be reached");
    let _ = connection.command(&["AUTH", "sesame"]);
    let selected = connection.command(&["SELECT", &database.to_string()]).expect("it answers");
    assert!(selected.is_ok(), "{selected:?}");
    move |words| connection.command(words).expect("it answers").text()
}
