//! Servers that cannot vote, and one voter under two names. They are refused when the connection begins, by
//! name, and with the remedy. Also: what a manager reports about its servers.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::usage::{
    TTL, addresses, blames, connected, everything_works, make_brief, nothing_is_left, patient,
    unguarded,
};
use crate::support::{Cluster, Lease, Manager, Proxy, Server, Way, wait_until, wait_until_ok};

const RESOURCE: &str = "r";

/// A server with limited memory that evicts keys.
fn evicting(policy: &str) -> Server {
    Server::start_with(&["--maxmemory", "100mb", "--maxmemory-policy", policy])
}

#[test]
fn s13_an_evicting_server_is_named_and_has_no_vote() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let cluster: Cluster =
            [evicting(policy), Server::start(), Server::start()].into_iter().collect();
        let manager = patient(&cluster);
        everything_works(&manager, RESOURCE);
        make_brief(&manager);
        cluster[1].kill();
        let refused = Lease::new();
        wait_until_ok("the message tells what is wrong", || {
            assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &refused), REDLOCK_UNREACHABLE);
            blames(
                &refused.message(),
                &addresses(&cluster[..1]),
                &["maxmemory-policy to noeviction"],
            )
        });
        // The remedy in its words works.
        cluster[0].must(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        wait_until("it is a voter", || manager.try_lock(RESOURCE, TTL, 0, &refused) == REDLOCK_OK);
        assert_eq!(manager.unlock(&refused), REDLOCK_OK, "{}", refused.message());
        cluster[1].restart();
        nothing_is_left(&manager, &cluster, RESOURCE);
    }
}

/// Without a limit nothing is ever evicted.
#[test]
fn s13_an_unused_eviction_policy_is_harmless() {
    let start = || Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let cluster = Cluster::start_each(3, start);
    let manager = connected(&cluster);
    everything_works(&manager, RESOURCE);
    assert!(manager.servers().iter().all(|it| it.votes && it.eviction == "allkeys-lru"));
}

/// Two of the three are one server. Another database of a server under the same name is refused when it is
/// added.
#[test]
fn s22_a_server_under_two_names_is_named_and_has_one_vote() {
    let cluster = Cluster::start(2);
    let [twin, other] = [&cluster[0], &cluster[1]];
    let name = format!("redis://localhost:{}", twin.port());
    let others = [name, format!("unix://{}", twin.unix_socket())];
    for second in others {
        let manager = unguarded(Manager::of_urls(&[twin.url(), second.clone(), other.url()]));
        wait_until("it is found out", || {
            assert_eq!(manager.connect(0), REDLOCK_OK, "{}", manager.message());
            manager.message().contains("same server as ")
        });
        let votes = manager.servers().iter().filter(|it| it.votes).count();
        assert_eq!(votes, 2, "{second}");
        everything_works(&manager, RESOURCE);
        make_brief(&manager);
        other.kill();
        let lease = Lease::new();
        wait_until("one server is no majority", || {
            let status = manager.try_lock(RESOURCE, TTL, 0, &lease);
            assert_eq!(status, REDLOCK_UNREACHABLE, "{second}: {}", lease.message());
            lease.message().contains("same server as ")
        });
        other.restart();
        twin.must(&["FLUSHALL"]);
    }
}

/// The second name has the vote once the first has no connection.
#[test]
fn s22_the_connected_name_has_the_vote() {
    let cluster = Cluster::start(2);
    let names = [Proxy::to(&cluster[0]), Proxy::to(&cluster[0])];
    let urls = [names[0].url(), names[1].url(), cluster[1].url()];
    let manager = Manager::of_urls(&urls);
    for (it, other) in [(0, 1), (1, 0)] {
        // Only one of the names leads to the server.
        names[other].reset_each_after(Way::Requests, 0);
        names[other].reset();
        names[it].heal();
        wait_until("the name that can be connected to has the vote", || {
            manager.connect(0) == REDLOCK_OK && manager.servers()[it].votes
        });
        assert!(!manager.servers()[other].votes, "{:?}", manager.servers()[other]);
    }
    everything_works(&manager, RESOURCE);
}

#[test]
fn s23_the_facts_about_each_server_are_reported() {
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    let cluster: Cluster =
        [Server::start_with(&log), Server::start(), Server::start()].into_iter().collect();
    let manager = unguarded(patient(&cluster));
    // No server is asked before a call needs it.
    let told = manager.servers();
    assert_eq!(told.iter().map(|it| it.name.clone()).collect::<Vec<_>>(), addresses(&cluster));
    assert!(told.iter().all(|it| !it.connected && !it.votes && it.words == "not tried yet"));
    assert!(told.iter().all(|it| it.round_trip_us == -1 && it.run_id.is_empty()));
    assert!(told.iter().all(|it| it.clock_offset_us == i64::MIN));
    manager.connect_to_all();
    let told = manager.servers();
    for (it, server) in told.iter().zip(cluster.iter()) {
        let info = server.must(&["INFO", "server"]).text().expect("words");
        assert!(info.contains(&format!("run_id:{}", it.run_id)) && it.run_id.len() == 40, "{it:?}");
        let version = it.version.strip_prefix("valkey ").unwrap_or(&it.version);
        assert!(!version.is_empty() && info.contains(&format!("_version:{version}")), "{it:?}");
        assert!(it.connected && it.votes && it.words.is_empty() && it.round_trip_us >= 0, "{it:?}");
        assert_eq!((&*it.role, &*it.eviction), ("primary", "noeviction"), "{it:?}");
        // Only the guard asks for its clock.
        assert_eq!(it.clock_offset_us, i64::MIN, "{it:?}");
    }
    let keeps: Vec<_> = told.iter().map(|it| &*it.keeps).collect();
    assert_eq!(keeps, ["log, synced always", "no log", "no log"]);
    // After a restart it is another server.
    cluster[1].kill();
    wait_until("it is known to be gone", || {
        let _ = manager.connect(0);
        !manager.servers()[1].connected
    });
    let gone = &manager.servers()[1];
    assert!(!gone.words.is_empty() && !gone.votes, "{gone:?}");
    assert_eq!(gone.run_id, told[1].run_id, "what it was last");
    cluster[1].restart();
    manager.connect_to_all();
    assert_ne!(manager.servers()[1].run_id, told[1].run_id);
}

/// A server that reports nothing about itself is not rejected for that.
#[test]
fn s23_forbidden_facts_are_left_out() {
    let cluster = Cluster::start(3);
    for server in cluster.iter() {
        let rules = ["on", ">sesame", "~*", "+@all", "-info", "-config"];
        server.must(&[&["ACL", "SETUSER", "locker"][..], &rules].concat());
    }
    let url = |server: &Server| format!("redis://locker:sesame@{}", server.address());
    let manager = Manager::of_urls(&cluster.iter().map(url).collect::<Vec<_>>());
    manager.connect_to_all();
    everything_works(&manager, RESOURCE);
    for it in manager.servers() {
        assert!(it.connected && it.votes && it.words.starts_with("not guarded"), "{it:?}");
        assert!(it.run_id.is_empty() && it.version.is_empty() && it.role.is_empty(), "{it:?}");
        assert!(
            it.keeps.is_empty() && it.eviction.is_empty() && !it.name.contains("sesame"),
            "{it:?}"
        );
    }
}
