//! Connections that are not established, names that resolve oddly, and one server under several names.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Instant;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::rig::Rig;
use crate::strangers::{Nobody, Stranger, are_strange};
use crate::support::fake::Abyss;
use crate::support::program::Running;
use crate::support::usage::{
    DEADLINE, PATIENT_MS, TOO_LONG, TTL, addresses, everything_works, in_time, nothing_is_left,
};
use crate::support::{Cluster, Fake, Lease, Manager, Program, Proxy, Server, Way, wait_until};

#[test]
fn n06_refused_connections_are_reported_and_block_nobody() {
    are_strange(Nobody::new, &["refused"]);
}

#[test]
fn n06_ignored_connects_are_reported_and_block_nobody() {
    are_strange(Abyss::new, &["not connected"]);
}

#[test]
fn n06_silent_connections_are_reported_and_block_nobody() {
    are_strange(Fake::silent, &["no reply", "timed out"]);
}

#[test]
fn n06_closed_connections_are_reported_and_block_nobody() {
    are_strange(Fake::closing, &["closed", "reset", "lost"]);
}

/// The connect timeout counts, however long a reply may take.
#[test]
fn n06_connecting_is_bounded_by_its_own_timeout() {
    const CONNECT_MS: i64 = 400;
    let (abyss, silent) = (Abyss::new(), Fake::silent());
    let server = Server::start();
    let all = [abyss.address(), Stranger::address(&silent), server.address()];
    let manager = Manager::at(&all);
    assert_eq!(manager.set_timeouts(CONNECT_MS, PATIENT_MS), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    let lease = Lease::new();
    for wait_ms in [0, 100] {
        let start = Instant::now();
        assert_eq!(manager.try_lock("r", TTL, wait_ms, &lease), REDLOCK_UNREACHABLE);
        let took = start.elapsed();
        assert!(took < DEADLINE, "{took:?}");
    }
    in_time(DEADLINE, || assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE));
    for address in &all[..2] {
        assert!(manager.message().contains(address), "{}", manager.message());
    }
    assert!(!manager.message().contains(&all[2]), "{}", manager.message());
    wait_until("nothing is left", || !server.exists("r"));
}

#[test]
fn n06_a_connection_that_stays_silent_is_replaced() {
    let rig = Rig::start(1);
    rig.proxies[0].stall(Way::Replies);
    let manager = rig.manager();
    assert_eq!(manager.set_timeouts(300, 300), REDLOCK_OK);
    in_time(DEADLINE, || assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE));
    // Nothing will come over the connection that hangs, not even its end.
    rig.proxies[0].strand();
    rig.heal();
    rig.recovers(&manager, "r");
}

/// The program brings its own resolver, and controls what the resolver answers.
#[test]
fn n09_names_are_looked_up_on_demand_with_all_addresses() {
    let cluster = Cluster::start(3);
    let ports: Vec<_> = cluster.iter().map(|it| it.port().to_string()).collect();
    let _hanging = [0, 1].map(|it| Abyss::beside(&cluster[it], Ipv4Addr::new(127, 0, 0, 4)));
    Program::compile("names").run(&ports);
    cluster.wait_until_gone("r");
}

/// As in a rolling restart of servers whose names get other addresses. No call lacks the server that is down.
fn are_followed(driver: &str) {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let bound = [&durable[..], &["--bind", "127.0.0.1", "127.0.0.2"]].concat();
    let mut servers = [(); 3].map(|()| Server::start_with(&bound));
    let ports = servers.iter().map(|it| it.port().to_string());
    let arguments: Vec<_> = [driver.to_owned()].into_iter().chain(ports).collect();
    let mut program = Program::compile("names_move").start(&arguments);
    program.hears("move");
    for moved in 0..servers.len() {
        // Before that, a server cannot replace the one that moves: it was connected late, or its key is the one from
        // before its move, or ended meanwhile. Then it is given the key, and counts after a renewal that succeeded.
        for _ in 0..3 {
            is_renewed_by(&servers, &mut program);
        }
        servers[moved].move_to("127.0.0.3");
        program.says("go on");
        program.hears("moved");
        program.says("go on");
        if moved + 1 < servers.len() {
            program.hears("move");
        }
    }
    program.ends_well();
    wait_until("nothing is left", || servers.iter().all(|it| !it.exists("r")));
}

#[track_caller]
fn is_renewed_by(servers: &[Server], program: &mut Running) {
    let ends: Vec<_> = servers.iter().map(|it| it.ends_at("r")).collect();
    wait_until("the lock is renewed there", || {
        program.must_run();
        servers.iter().zip(&ends).all(|(server, end)| server.ends_at("r") > *end)
    });
}

#[test]
fn n09_the_background_thread_follows_moving_names() {
    are_followed("thread");
}

#[test]
fn n09_a_program_with_its_own_look_ups_follows_moving_names() {
    are_followed("events");
}

#[test]
fn n09_an_unknown_name_is_reported_and_blocks_nobody() {
    let cluster = Cluster::start(2);
    let unknown = "no-such-name.invalid:6379".to_owned();
    let manager = Manager::at(&[&[unknown.clone()][..], &addresses(&cluster)].concat());
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    everything_works(&manager, "r");

    let manager =
        Manager::at(&[unknown, "nor-this-one.invalid:6379".to_owned(), cluster[0].address()]);
    manager.set_retry(1, 0);
    let lease = Lease::new();
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
    assert!(lease.message().contains("cannot resolve the host name"), "{}", lease.message());
    // The resolver is left alone for a while.
    in_time(TOO_LONG, || {
        for _ in 0..20 {
            assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        }
    });
    cluster.wait_until_gone("r");
}

/// What the words say about a server that is listed twice. Its process has one vote, so it is no quorum.
const SAME: &str = "same server as ";

#[test]
fn n10_one_server_under_five_names_grants_nothing() {
    let server = Server::start();
    let proxy = Proxy::to(&server);
    let manager = Manager::new();
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    assert_eq!(manager.set_retry(3, 5), REDLOCK_OK);
    for url in names_of(&server, &proxy) {
        assert_eq!(manager.add(&url, 0), REDLOCK_OK, "{url}: {}", manager.message());
    }
    assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE, "{}", manager.message());
    let lease = Lease::new();
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    assert_eq!(lease.message().matches(SAME).count(), 4, "{}", lease.message());
    wait_until("nothing is left", || !server.exists("r"));
}

fn names_of(server: &Server, proxy: &Proxy) -> Vec<String> {
    let mut names = vec![
        server.url(),
        format!("redis://localhost:{}", server.port()),
        format!("unix://{}", server.unix_socket()),
        proxy.url(),
    ];
    let has_ipv6 = TcpListener::bind("[::1]:0").is_ok();
    names.push(if has_ipv6 {
        format!("redis://[::1]:{}", server.port())
    } else {
        format!("redis://127.0.0.2:{}", server.port())
    });
    names
}

#[test]
fn n10_a_server_listed_twice_has_one_vote() {
    let servers = [Server::start(), Server::start()];
    let proxy = Proxy::to(&servers[0]);
    let all = [servers[0].address(), proxy.address(), servers[1].address()];
    let (manager, rival) = (Manager::at(&all), Manager::at(&all));
    for it in [&manager, &rival] {
        assert_eq!(it.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        assert_eq!(it.set_retry(1, 0), REDLOCK_OK);
        wait_until("the quorum is connected, and one is refused", || {
            it.connect(0) == REDLOCK_OK && it.message().matches(SAME).count() == 1
        });
    }
    let lease = manager.take("r", TTL);
    assert_eq!(rival.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_TAKEN);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    wait_until("nothing is left", || servers.iter().all(|it| !it.exists("r")));

    servers[1].kill();
    let status = manager.try_lock("r", TTL, 0, &lease);
    assert_ne!(status, REDLOCK_OK, "one process is a quorum");
    wait_until("nothing is left", || !servers[0].exists("r"));
}

/// Two databases of one process go down with it.
#[test]
fn n10_two_databases_of_one_server_have_one_vote() {
    let cluster = Cluster::start(2);
    let proxy = Proxy::to(&cluster[0]);
    let urls = [cluster[0].url(), format!("{}/1", proxy.url()), cluster[1].url()];
    let managers = [Manager::new(), Manager::new()];
    for manager in &managers {
        assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
        for url in &urls {
            assert_eq!(manager.add(url, 0), REDLOCK_OK, "{}", manager.message());
        }
        // The connection that is made first stays, so both managers use the same one of the two databases.
        proxy.stall(Way::Replies);
        wait_until("the quorum is connected", || manager.connect(0) == REDLOCK_OK);
        proxy.flow(Way::Replies);
        wait_until("the twin is refused", || {
            manager.connect(0) == REDLOCK_OK && manager.message().matches(SAME).count() == 1
        });
    }
    let lease = managers[0].take("r", TTL);
    assert_eq!(managers[1].lock("r", TTL, &Lease::new()), REDLOCK_TAKEN);
    assert_eq!(managers[0].unlock(&lease), REDLOCK_OK);
    nothing_is_left(&managers[0], &cluster, "r");
    assert_eq!(managers[1].lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
}
