//! The message of a failed call about each server: everything that is known about it. This includes servers
//! that were not heard because the result was decided without them.

use redlock::ffi::servers::REDLOCK_GUARD_OFF;
use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::support::sockets::is_connected_to;
use crate::support::usage::{addresses, blames};
use crate::support::{Cluster, Fake, Lease, Manager, Server, wait_until, wait_until_ok};
use crate::{PATIENT_MS, TTL, patient};

/// Words that tell the reader nothing.
const VAGUE: &str = "not waited for";

#[track_caller]
fn says(message: &str, server: &str, reasons: &[&str]) {
    assert_eq!(blames(message, &[server.to_owned()], reasons), Ok(()), "{server}: {reasons:?}");
    assert!(!message.contains(VAGUE), "{message}");
}

/// Just after servers were stopped, the connections to them look the same as before.
#[test]
fn just_stopped_servers_are_not_called_connected() {
    for stopped in 1..=3 {
        let cluster = Cluster::start(3);
        let manager = patient(&cluster);
        manager.set_retry(1, 0);
        let lease = manager.take("r", TTL);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        for server in &cluster[..stopped] {
            server.kill();
            wait_until("the system knows that it is gone", || !is_connected_to(server.port()));
        }
        let status = manager.connect(0);
        let message = manager.message();
        let expected = if stopped == 1 { REDLOCK_OK } else { REDLOCK_UNREACHABLE };
        assert_eq!(status, expected, "{message}");
        if stopped > 1 {
            let words = format!("{} of 3 servers are connected, 2 needed", 3 - stopped);
            assert!(message.starts_with(&words), "{message}");
        }
        for (nth, server) in addresses(&cluster).iter().enumerate() {
            if nth < stopped {
                says(&message, server, &["not connected"]);
            } else {
                assert!(!message.contains(server), "{message}");
            }
        }
    }
}

/// The servers may be up again, and are used.
#[test]
fn just_restarted_servers_are_connected() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    assert_eq!(manager.set_restart_guard(REDLOCK_GUARD_OFF), REDLOCK_OK);
    let lease = manager.take("r", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    cluster.iter().for_each(Server::restart);
    // This succeeds at the first try, unless the servers were so quick that they closed connections which had
    // only just been made. Then new connections take a moment.
    wait_until("they are connected to", || manager.connect(0) == REDLOCK_OK);
    manager.connect_to_all();
}

#[test]
fn no_fault_is_reported_of_healthy_servers() {
    let cluster = Cluster::start(5);
    let manager = patient(&cluster);
    manager.set_retry(1, 0);
    cluster[..3].iter().for_each(Server::kill);
    let lease = Lease::new();
    for nth in 0..50 {
        let resource = format!("r{nth}");
        assert_eq!(manager.try_lock(&*resource, TTL, 0, &lease), REDLOCK_UNREACHABLE);
        let message = lease.message();
        let down = ["not connected", "connection lost"];
        addresses(&cluster[..3]).iter().for_each(|it| says(&message, it, &down));
        for it in addresses(&cluster[3..]) {
            // About connections only: that there is one.
            assert!(blames(&message, std::slice::from_ref(&it), &down).is_err(), "{message}");
            assert!(message.contains("2 of 5 servers are connected") || message.contains(&it));
        }
        assert!(!message.contains(VAGUE), "{message}");
    }
}

/// Each server is in another state: down, not logged in to, frozen, taken, and well.
#[test]
fn the_state_of_each_server_is_reported() {
    let cluster = Cluster::start(3);
    let (refusing, down) = (
        Fake::obeying(|command, _| {
            let is_ping = command == "PING";
            is_ping.then(|| "-NOAUTH Authentication required.".to_owned())
        }),
        Server::start(),
    );
    let urls = [down.address(), refusing.address()].into_iter().chain(addresses(&cluster));
    let manager = Manager::at(&urls.collect::<Vec<_>>());
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager.set_retry(1, 0);
    let lease = manager.take("before", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    down.kill();
    assert_eq!(manager.set_timeouts(1_500, 300), REDLOCK_OK);
    // One of the three servers that are up, so that its answer decides.
    cluster[0].freeze();
    let well = addresses(&cluster[1..]);
    wait_until_ok("all of it is known", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        let message = lease.message();
        assert!(!message.contains(VAGUE), "{message}");
        blames(&message, &[down.address()], &["not connected: connection refused"])?;
        blames(&message, &[refusing.address()], &["not connected: NOAUTH: password required"])?;
        blames(&message, &[cluster[0].address()], &["not asked: no reply"])?;
        blames(&message, &well, &["asked", "agreed later"]).or_else(|message| {
            let count = "2 of 5 servers";
            if message.contains(count) { Ok(()) } else { Err(message) }
        })
    });
    cluster[0].resume();
    // Another client holds the lock on two servers. The third server is not heard, because the result is
    // decided.
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    manager.set_retry(1, 0);
    cluster[..2].iter().for_each(|it| drop(it.must(&["SET", "r", "theirs", "PX", "600000"])));
    cluster[2].freeze();
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_TAKEN);
    let message = lease.message();
    addresses(&cluster[..2]).iter().for_each(|it| says(&message, it, &["held by another client"]));
    says(&message, &cluster[2].address(), &["no reply yet, asked"]);
    cluster[2].resume();
}
