//! How many servers a lock needs, and what half of them is worth.

use std::thread;
use std::time::Instant;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN};

use crate::support::{Cluster, Lease, Server, wait_until};
use crate::{TOO_LONG, TTL, patient};

/// One test for each number of servers.
macro_rules! quorums {
    ($($name:ident: $servers:literal needs $quorum:literal),* $(,)?) => {$(
        mod $name {
            use super::*;

            #[test]
            fn a_quorum_of_grants_is_necessary_and_sufficient() {
                quorum_of_grants($servers, $quorum);
            }
        }
    )*};
}

quorums! {
    a_quorum_of_one: 1 needs 1,
    a_quorum_of_two: 2 needs 2,
    a_quorum_of_three: 3 needs 2,
    a_quorum_of_four: 4 needs 3,
    a_quorum_of_five: 5 needs 3,
    a_quorum_of_seven: 7 needs 4,
}

/// Other clients' keys are on some of the servers. No server is down, so the call waits for no silent server,
/// in a tie as well as otherwise.
fn quorum_of_grants(servers: usize, quorum: usize) {
    let cluster = Cluster::start(servers);
    let manager = patient(&cluster);
    manager.set_retry(1, 0);
    let start = Instant::now();
    let spare = servers - quorum;
    for server in &cluster[..spare] {
        server.must(&["SET", "r", "theirs"]);
    }
    let lease = manager.take("r", TTL);
    let ours = lease.token();
    assert!(cluster[spare..].iter().all(|server| server.get("r").as_deref() == Some(&*ours)));
    assert_eq!(manager.confirm(&lease, TTL / 2), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    wait_until("ours are gone", || cluster[spare..].iter().all(|server| !server.exists("r")));
    assert_eq!(manager.is_locked("r"), Ok(false));

    cluster[spare].must(&["SET", "r", "theirs"]);
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_TAKEN, "{}", lease.message());
    counts_the_votes(&lease, servers, quorum);
    assert!(lease.message().contains("held by another client"), "{}", lease.message());
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_TAKEN);
    assert_eq!(manager.continue_lock("r", TTL, &lease), REDLOCK_TAKEN);
    assert!(start.elapsed() < TOO_LONG);
    wait_until("ours are gone", || cluster[spare + 1..].iter().all(|server| !server.exists("r")));
    for server in &cluster[..=spare] {
        assert_eq!(server.get("r").as_deref(), Some("theirs"));
    }
}

/// The number of grants is not checked. The call ends when a quorum is out of reach, before or after these
/// grants.
fn counts_the_votes(lease: &Lease, servers: usize, quorum: usize) {
    let (message, of) = (lease.message(), format!(" of {servers} servers "));
    let needed = format!(", {quorum} needed: ");
    assert!(message.contains(&of) && message.contains(&needed), "{message}");
}

#[test]
fn an_impossible_lock_is_not_waited_for() {
    for (servers, taken) in [(4, 2), (5, 3)] {
        let cluster = Cluster::start(servers);
        let manager = patient(&cluster);
        for server in &cluster[..taken] {
            server.must(&["SET", "r", "theirs"]);
        }
        // The answers of the others do not matter.
        let frozen = &cluster[taken..servers - 1];
        frozen.iter().for_each(Server::freeze);
        let start = Instant::now();
        let lease = Lease::new();
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_TAKEN, "{}", lease.message());
        assert!(start.elapsed() < TOO_LONG);
        let message = lease.message();
        assert!(frozen.iter().all(|it| message.contains(&it.address())), "{message}");
        frozen.iter().for_each(Server::resume);
        wait_until("nothing is left", || {
            manager.is_locked("other") == Ok(false) && cluster.having("r") == taken
        });
    }
}

#[test]
fn a_tie_of_two_managers_ends_cleanly() {
    for servers in [2, 4] {
        let cluster = Cluster::start(servers);
        let contenders: Vec<_> = (0..2).map(|_| patient(&cluster)).collect();
        thread::scope(|scope| {
            for manager in &contenders {
                scope.spawn(|| {
                    manager.set_retry(1, 3);
                    for _ in 0..100 {
                        let lease = Lease::new();
                        match manager.try_lock("r", TTL, 0, &lease) {
                            REDLOCK_OK => assert_eq!(manager.unlock(&lease), REDLOCK_OK),
                            status => assert_eq!(status, REDLOCK_TAKEN, "{}", lease.message()),
                        }
                    }
                });
            }
        });
        cluster.wait_until_gone("r");
    }
}

#[test]
fn is_locked_asks_a_quorum() {
    let cluster = Cluster::start(4);
    let manager = patient(&cluster);
    assert_eq!(manager.is_locked("r"), Ok(false));
    for (count, server) in cluster.iter().enumerate() {
        server.must(&["SET", "r", "theirs"]);
        assert_eq!(manager.is_locked("r"), Ok(count + 1 >= 3), "on {} of 4", count + 1);
    }
    for server in &cluster[..2] {
        server.must(&["SET", "r", "somebody's"]);
    }
    assert_eq!(manager.is_locked("r"), Ok(false), "two halves are no lock");
}
