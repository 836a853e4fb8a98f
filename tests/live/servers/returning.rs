//! Servers and connections that come back, and the effects of late requests.

use std::thread;
use std::time::Instant;

use redlock::ffi::status::RedLockStatus::{REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::fake::GREETING;
use crate::support::{Cluster, Fake, Fault, Lease, Manager, Proxy, Server, Way, wait_until};
use crate::{
    DEADLINE, PATIENT_MS, TOO_LONG, TTL, addresses, blames, connected, connected_unguarded,
    everything_works, in_time, locks_again, make_brief, names, nothing_is_left, patient,
};

/// The server executes the requests of a connection in order. A release over another connection might come
/// first.
#[test]
fn a_late_answer_costs_no_connection() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    make_brief(&manager);
    let before: Vec<_> = cluster.iter().map(connections_made).collect();
    cluster[..2].iter().for_each(Server::freeze);
    assert_eq!(manager.lock("r", TTL, &Lease::new()), REDLOCK_UNREACHABLE);
    cluster[..2].iter().for_each(Server::resume);
    wait_until("they are asked again", || {
        manager.try_lock("r", TTL, 0, &Lease::new()) == REDLOCK_OK
    });
    assert_eq!(cluster.iter().map(connections_made).collect::<Vec<_>>(), before);
}

fn connections_made(server: &Server) -> String {
    let statistics = server.must(&["INFO", "stats"]).text().expect("statistics");
    let line = statistics.lines().find(|it| it.starts_with("total_connections_received:"));
    line.expect("it counts them").to_owned()
}

#[test]
fn a_release_reaches_a_thawed_minority() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    cluster[0].freeze();
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    drop(manager);
    cluster[0].resume();
    cluster.wait_until_gone("r");
}

#[test]
fn an_undelivered_unlock_can_be_repeated() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    let token = lease.token();
    let strike = Fault::PASSWORD.strike;
    cluster[..2].iter().for_each(strike);
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE);
    assert!(!lease.is_held());
    assert_eq!(lease.remaining_ms(), 0);
    assert_eq!(lease.token(), token);
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE);

    cluster[..2].iter().for_each(Fault::PASSWORD.mend);
    wait_until("the unlock gets through", || match manager.unlock(&lease) {
        REDLOCK_UNREACHABLE => false,
        status => {
            assert!([REDLOCK_OK, REDLOCK_LOST].contains(&status), "{status:?}");
            true
        }
    });
    nothing_is_left(&manager, &cluster, "r");
    assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
}

#[test]
fn a_release_lost_with_its_connection_is_sent_again() {
    let server = Server::start();
    let proxy = Proxy::to(&server);
    let manager = Manager::at(&[proxy.address()]);
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    let lease = manager.take("r", TTL);
    make_brief(&manager);
    proxy.stall(Way::Requests);
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE);
    assert!(server.exists("r"), "it got through all the same");
    proxy.reset();
    proxy.heal();
    wait_until("the release arrives", || {
        manager.is_locked("another") == Ok(false) && !server.exists("r")
    });
}

#[test]
fn a_restarted_server_is_used_again() {
    let cluster = Cluster::start(3);
    let manager = connected_unguarded(&cluster);
    everything_works(&manager, "r");
    for (server, other) in cluster.iter().zip(cluster.iter().cycle().skip(1)) {
        server.kill();
        for _ in 0..10 {
            everything_works(&manager, "r");
        }
        server.restart();
        wait_until("it is used although it is not needed", || {
            let lease = manager.take("r", TTL);
            let is_there = server.exists("r");
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            is_there
        });
        // There is a quorum only with the server that is back.
        other.kill();
        let lease = Lease::new();
        wait_until("the manager locks again", || {
            manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK
        });
        assert_eq!(server.get("r"), Some(lease.token()));
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        other.restart();
        manager.connect_to_all();
    }
}

#[test]
fn a_waiting_call_notices_dying_servers() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    manager.set_retry(1, 0);
    cluster[..2].iter().for_each(Server::freeze);
    let before = cluster[2].calls("set");
    thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let lease = Lease::new();
            (manager.lock("r", TTL, &lease), lease.message())
        });
        wait_until("the call has begun", || cluster[2].calls("set") > before);
        assert!(!calling.is_finished());
        in_time(TOO_LONG, || {
            cluster[..2].iter().for_each(Server::kill);
            let (status, message) = calling.join().expect("it does not panic");
            assert_eq!(status, REDLOCK_UNREACHABLE, "{message}");
        });
    });
    wait_until("nothing is left", || !cluster[2].exists("r"));
}

#[test]
fn broken_connections_are_replaced() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    everything_works(&manager, "r");
    for _ in 0..5 {
        for server in cluster.iter() {
            server.must(&["CLIENT", "KILL", "TYPE", "normal"]);
        }
        locks_again(&manager, "r");
    }
    nothing_is_left(&manager, &cluster, "r");
}

#[test]
fn connect_succeeds_with_a_quorum_and_names_the_rest() {
    let cluster = Cluster::start(5);
    let manager = patient(&cluster);
    assert_eq!(manager.connect(0), REDLOCK_OK);
    manager.connect_to_all();

    cluster[..2].iter().for_each(Server::kill);
    let manager = patient(&cluster);
    assert_eq!(manager.connect(0), REDLOCK_OK);
    assert!(names(&manager.message(), &cluster[..2]), "{}", manager.message());
    assert!(!names(&manager.message(), &cluster[2..3]), "{}", manager.message());

    cluster[2].kill();
    let manager = patient(&cluster);
    in_time(DEADLINE, || assert_eq!(manager.connect(500), REDLOCK_UNREACHABLE));
    let blamed = blames(&manager.message(), &addresses(&cluster[..3]), &["refused"]);
    assert_eq!(blamed, Ok(()));
}

/// It answers the first request as a server does, and closes the connection.
#[test]
fn a_server_that_keeps_closing_is_not_hammered() {
    let fake = Fake::start(|guest| {
        guest.read()?;
        guest.write(GREETING)
    });
    let manager = Manager::at(&[fake.address()]);
    let began = Instant::now();
    let lease = Lease::new();
    assert_eq!(manager.try_lock("r", TTL, 500, &lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    // There are at least 20 ms between two connections.
    let most = began.elapsed().as_millis() / 20 + 2;
    assert!((2..=most).contains(&(fake.connections() as u128)), "{} of {most}", fake.connections());
}
