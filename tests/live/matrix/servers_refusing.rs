//! Servers that answer, and refuse: because they lack memory, are replicas, are nodes of a cluster, cannot
//! save, or have another value under the name.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::rivals::{RESOURCE, Rivals};
use crate::servers::error_replies;
use crate::support::events::Wanted;
use crate::support::product::product;
use crate::support::usage::{
    PATIENT_MS, TOO_LONG, TTL, addresses, blames, connected, connected_unguarded, everything_works,
    in_time, make_brief, nothing_is_left, patient, unguarded,
};
use crate::support::{
    Cluster, Fault, Lease, Manager, Reply, Server, ports, wait_until, wait_until_ok,
};

#[test]
fn s12_without_memory_held_locks_still_work_but_new_fail() {
    let cluster = Cluster::start(3);
    let rivals = Rivals::of(&cluster);
    cluster.iter().for_each(Fault::OUT_OF_MEMORY.strike);
    let manager = &rivals.holder;
    let lease = Lease::new();
    assert_eq!(manager.try_lock("new", TTL, 0, &lease), REDLOCK_UNREACHABLE);
    let out_of_memory = ["OOM"];
    // The third server need not have been heard.
    let blamed = addresses(&cluster);
    let told = |it: &String| blames(&lease.message(), std::slice::from_ref(it), &out_of_memory);
    assert!(blamed.iter().filter(|it| told(it).is_ok()).count() >= 2, "{}", lease.message());
    nothing_is_left(manager, &cluster, "new");

    the_holder_keeps_it(&rivals);
    // A server that lost the key cannot get it again. There is no other effect.
    cluster[0].must(&["DEL", RESOURCE]);
    the_holder_keeps_it(&rivals);
    assert!(!cluster[0].exists(RESOURCE));
    assert_eq!(manager.unlock(&rivals.held), REDLOCK_OK, "{}", rivals.held.message());
    rivals.nothing_is_left(&cluster);
    lost_for_want_of_memory();

    // In the middle of an acquire: one grants, two have no memory.
    (Fault::OUT_OF_MEMORY.mend)(&cluster[2]);
    assert_eq!(manager.try_lock("new", TTL, 0, &lease), REDLOCK_UNREACHABLE);
    nothing_is_left(manager, &cluster, "new");
    cluster.iter().for_each(Fault::OUT_OF_MEMORY.mend);
    everything_works(manager, "new");
}

/// A server that cannot restore the key still reports reliably that the key is gone.
fn lost_for_want_of_memory() {
    let cluster = Cluster::start(3);
    let rivals = Rivals::of(&cluster);
    for server in &cluster[..2] {
        server.must(&["DEL", RESOURCE]);
        (Fault::OUT_OF_MEMORY.strike)(server);
    }
    rivals.the_holder_is_told_by_extending();
}

fn the_holder_keeps_it(rivals: &Rivals) {
    assert_eq!(rivals.try_to_take_over(), REDLOCK_UNREACHABLE, "{}", rivals.wanted.message());
    let (manager, lease) = (&rivals.holder, &rivals.held);
    assert_eq!(manager.confirm(lease, 1000), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.extend(lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    assert!(lease.remaining_ms() > TTL);
}

#[test]
fn s14_a_replica_in_the_list_is_named_and_has_no_vote() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    // Existing connections go on, and a new one is refused.
    replicate(&cluster[1], &cluster[2]);
    let late = patient(&cluster);
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(late.connect(0), REDLOCK_OK, "{}", late.message());
        blames(&late.message(), &addresses(&cluster[2..]), &["use its primary"])
    });
    assert_eq!(late.servers()[2].role, "replica");
    // It has the key, but from its primary.
    let lease = manager.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    make_brief(&manager);
    let refused = Lease::new();
    cluster[0].kill();
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.try_lock("other", TTL, 0, &refused), REDLOCK_UNREACHABLE);
        blames(&refused.message(), &addresses(&cluster[2..]), &["READONLY"])
    });
    // The first server comes back without the key. The replica's key is no vote, because the replica never
    // granted it. If the manager has asked it for its role meanwhile, it is connected no more.
    cluster[0].restart();
    wait_until("it is known that the replica has no vote", || {
        let status = manager.extend(&lease, TTL);
        assert!([REDLOCK_LOST, REDLOCK_UNREACHABLE].contains(&status), "{}", lease.message());
        let words = lease.message();
        let is_refused = words.contains("use its primary") && !words.contains("connection refused");
        status == REDLOCK_LOST || is_refused
    });
    manager.unlock(&lease);
    nothing_is_left(&manager, &cluster, RESOURCE);
}

/// A writable replica grants on its own, and forgets the grant with the next synchronization. It is not
/// independent, and so breaks that assumption.
#[test]
fn s14_a_writable_replica_forgets_its_grants() {
    let (cluster, elsewhere) = (Cluster::start(3), Server::start());
    // A new connection to a replica is refused.
    let (holder, rival) = (connected_unguarded(&cluster), connected_unguarded(&cluster));
    for server in &cluster[..2] {
        server.must(&["CONFIG", "SET", "replica-read-only", "no"]);
        replicate(&elsewhere, server);
    }
    let rivals = Rivals::among(holder, rival);
    cluster.wait_until_everywhere(RESOURCE);
    rivals.one_holds();
    // The replication history differs from now on: the replica receives all of the primary's keys, and loses
    // all others.
    elsewhere.must(&["DEBUG", "CHANGE-REPL-ID"]);
    elsewhere.must(&["CLIENT", "KILL", "TYPE", "replica"]);
    for server in &cluster[..2] {
        wait_until("it is a copy again", || is_linked(server) && !server.exists(RESOURCE));
    }
    rivals.both_hold();
}

#[test]
fn s15_a_replica_without_its_primary_has_no_vote() {
    let (cluster, primary) = (Cluster::start(3), Server::start());
    let manager = connected_unguarded(&cluster);
    make_brief(&manager);
    for server in &cluster[..2] {
        // A read-only one would report that first.
        server.must(&["CONFIG", "SET", "replica-read-only", "no"]);
        server.must(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
        replicate(&primary, server);
    }
    primary.kill();
    for server in &cluster[..2] {
        let is_stale = || matches!(server.command(&["GET", "x"]), Reply::Error(it) if it.starts_with("MASTERDOWN"));
        wait_until("it misses its primary", is_stale);
    }
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &addresses(&cluster[..2]), &["MASTERDOWN"])
    });
    // The connections stay.
    let before = connections(&cluster[0]);
    cluster[..2].iter().for_each(|server| _ = server.must(&["REPLICAOF", "NO", "ONE"]));
    wait_until("it locks again", || manager.try_lock(RESOURCE, TTL, 0, &lease) == REDLOCK_OK);
    assert_eq!(connections(&cluster[0]), before);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    nothing_is_left(&manager, &cluster, RESOURCE);
}

pub(crate) fn replicate(primary: &Server, replica: &Server) {
    primary.must(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
    replica.must(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    wait_until("it is a copy", || is_linked(replica));
}

fn is_linked(replica: &Server) -> bool {
    let info = replica.must(&["INFO", "replication"]).text().expect("words");
    info.contains("master_link_status:up")
}

/// The number of connections that the server has ever had.
fn connections(server: &Server) -> u64 {
    let info = server.must(&["INFO", "stats"]).text().expect("words");
    let line = info.lines().find_map(|it| it.strip_prefix("total_connections_received:"));
    line.expect("it counts them").trim().parse().expect("a number")
}

#[test]
fn s17_servers_that_cannot_save_are_not_hammered() {
    refuses_writes("MISCONF", fail_to_save, |server| {
        server.must(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
    });
}

#[test]
fn s17_servers_with_too_few_replicas_are_not_hammered() {
    let demand = |server: &Server, replicas| {
        server.must(&["CONFIG", "SET", "min-replicas-to-write", replicas]);
    };
    refuses_writes("NOREPLICAS", |it| demand(it, "1"), |it| demand(it, "0"));
}

/// The file that it would save to is a directory.
fn fail_to_save(server: &Server) {
    fs::create_dir(server.file("dump.rdb")).expect("a directory can be made");
    server.must(&["CONFIG", "SET", "save", "3600 1"]);
    server.must(&["BGSAVE"]);
    wait_until("it fails", || {
        let info = server.must(&["INFO", "persistence"]).text().expect("words");
        info.contains("rdb_last_bgsave_status:err")
    });
}

fn refuses_writes(code: &'static str, strike: impl Fn(&Server), mend: impl Fn(&Server)) {
    let cluster = Cluster::start(3);
    let rivals = Rivals::of(&cluster);
    strike(&cluster[0]);
    in_time(TOO_LONG, || everything_works(&rivals.rival, "other"));
    strike(&cluster[1]);

    let (manager, lease) = (&rivals.holder, Lease::new());
    make_brief(manager);
    let before = error_replies(&cluster[0], code);
    let calls = 200;
    for _ in 0..calls {
        assert_eq!(manager.try_lock("other", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        assert_eq!(blames(&lease.message(), &addresses(&cluster[..2]), &[code]), Ok(()));
    }
    assert_eq!(manager.extend(&rivals.held, TTL), REDLOCK_UNREACHABLE);
    assert_eq!(manager.confirm(&rivals.held, 1000), REDLOCK_OK, "{}", rivals.held.message());
    assert_eq!(manager.unlock(&rivals.held), REDLOCK_UNREACHABLE);
    let refused = error_replies(&cluster[0], code) - before;
    assert!(refused <= 3 * calls + 100, "{refused} commands of {calls} calls were refused");

    cluster[..2].iter().for_each(mend);
    nothing_is_left(manager, &cluster, RESOURCE);
    nothing_is_left(manager, &cluster, "other");
    everything_works(manager, "other");
}

/// No error of a forgotten script ever reaches the caller.
#[test]
fn s19_forgotten_scripts_are_harmless() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for server in cluster.iter() {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    server.must(&["SCRIPT", "FLUSH"]);
                }
            });
        }
        let locking = scope.spawn(|| {
            for _ in 0..20 {
                everything_works(&manager, RESOURCE);
                locks_of_all_kinds_at_once(&manager);
            }
        });
        let locked = locking.join();
        done.store(true, Ordering::Relaxed);
        locked.expect("everything works");
    });
    cluster.wait_until_gone(RESOURCE);
    for key in ["a", "b", "c", "d", "e", "e#1"] {
        cluster.wait_until_gone(key);
    }
}

/// Takes locks of all kinds at once, and releases them at once. Their scripts are sent by hash if the server
/// knows the hash.
fn locks_of_all_kinds_at_once(manager: &Manager) {
    let permit = || Wanted { permits: 2, ..Wanted::new("e", TTL) };
    let wanted = [
        Wanted::new("a", TTL),
        Wanted::shared("b", TTL),
        Wanted::shared("b", TTL),
        Wanted::several(&["c", "d"], TTL),
        permit(),
        permit(),
    ];
    let leases: Vec<Lease> = wanted.iter().map(|_| Lease::new()).collect();
    let all_succeed = |what: &str| {
        for _ in &leases {
            let event = manager.event();
            let words = leases[event.user_data].message();
            assert_eq!(event.status, REDLOCK_OK, "{what} {}: {words}", event.user_data);
        }
    };
    for (number, (wanted, lease)) in wanted.iter().zip(&leases).enumerate() {
        let wanted = Wanted { tries: 20, ..wanted.clone() };
        assert_eq!(manager.submit_acquire(&wanted, lease, number), REDLOCK_OK);
    }
    all_succeed("acquire");
    for (number, lease) in leases.iter().enumerate() {
        assert_eq!(manager.submit_extend(lease, TTL, number), REDLOCK_OK);
    }
    all_succeed("extend");
    for (number, lease) in leases.iter().enumerate() {
        assert_eq!(manager.submit_unlock(lease, number), REDLOCK_OK);
    }
    all_succeed("unlock");
}

/// A script is sent by its hash once its text was sent over the connection. If the server has lost it, its text
/// is sent again. A guard would send scripts of its own.
#[test]
fn s19_a_lost_script_is_sent_again() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (connected_unguarded(&cluster), Lease::new());
    let server = &cluster[0];
    let calls = |name| server.calls(name);
    let flush = || _ = server.must(&["SCRIPT", "FLUSH"]);
    let take_and = |meanwhile: &dyn Fn()| {
        let status = manager.acquire(&Wanted::shared(RESOURCE, TTL), &lease);
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        meanwhile();
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    };
    let take = || take_and(&|| ());
    take();
    let texts = calls("eval");
    assert_eq!(calls("evalsha"), 0);
    take();
    assert_eq!((calls("eval"), calls("evalsha")), (texts, 2));
    flush();
    take();
    // The client got this error, and sent the text in the same call.
    assert_eq!((calls("eval"), calls("evalsha")), (texts + 2, 3));
    assert_eq!(error_replies(server, "NOSCRIPT"), 1);
    take();
    assert_eq!((calls("eval"), calls("evalsha")), (texts + 2, 5));
    take_and(&flush);
    assert_eq!((calls("eval"), calls("evalsha")), (texts + 3, 7));
    assert_eq!(error_replies(server, "NOSCRIPT"), 2);
    take();
}

#[test]
fn s20_a_foreign_value_counts_as_a_lock_and_is_left_alone() {
    let others: [&[&str]; 6] = [
        &["RPUSH", RESOURCE, "a"],
        &["HSET", RESOURCE, "a", "b"],
        &["SADD", RESOURCE, "a"],
        &["ZADD", RESOURCE, "1", "a"],
        &["XADD", RESOURCE, "1-1", "a", "b"],
        &["SET", RESOURCE, "for ever"],
    ];
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    manager.set_retry(3, 1);
    for other in others {
        cluster.iter().for_each(|server| _ = server.must(other));
        let before = dumps(&cluster);
        let lease = Lease::new();
        for status in [
            manager.lock(RESOURCE, TTL, &lease),
            manager.continue_lock(RESOURCE, TTL, &lease),
            manager.try_lock(RESOURCE, TTL, 20, &lease),
            manager.try_lock(RESOURCE, TTL, 0, &lease),
        ] {
            assert_eq!(status, REDLOCK_TAKEN, "{other:?}: {}", lease.message());
        }
        assert!(
            lease.message().contains("held by another client (no expiry)"),
            "{}",
            lease.message()
        );

        cluster.iter().for_each(|server| _ = server.must(&["DEL", RESOURCE]));
        let held = manager.take(RESOURCE, TTL);
        cluster.wait_until_everywhere(RESOURCE);
        for server in &cluster[..2] {
            server.must(&["DEL", RESOURCE]);
            server.must(other);
        }
        assert_ne!(manager.confirm(&held, 0), REDLOCK_OK, "{other:?}");
        assert_ne!(manager.extend(&held, TTL), REDLOCK_OK, "{other:?}");
        assert_ne!(manager.unlock(&held), REDLOCK_OK, "{other:?}");
        wait_until("ours is released", || !cluster[2].exists(RESOURCE));
        assert_eq!(dumps(&cluster)[..2], before[..2], "{other:?} was changed");
        cluster.iter().for_each(|server| _ = server.must(&["DEL", RESOURCE]));
    }
}

/// The value under the name, whatever it is, and its remaining time.
fn dumps(cluster: &Cluster) -> Vec<(Reply, i64)> {
    cluster.iter().map(|it| (it.must(&["DUMP", RESOURCE]), it.pttl(RESOURCE))).collect()
}

#[test]
fn s21_a_cluster_node_without_the_slot_is_named() {
    let plain = Cluster::start(2);
    let (full, empty) = (node(), node());
    let manager = Manager::of(&[]);
    for server in plain.iter().chain([&empty]) {
        assert_eq!(manager.add(&server.url(), 0), REDLOCK_OK);
    }
    make_brief(&manager);
    everything_works(&manager, RESOURCE);
    plain[0].kill();
    is_refused(&manager, &empty, "CLUSTERDOWN");

    let slots: Vec<_> = (0..16_384).map(|it| it.to_string()).collect();
    let slots: Vec<_> = slots.iter().map(String::as_str).collect();
    full.must(&[&["CLUSTER", "ADDSLOTS"], &slots[..]].concat());
    let ports = ports_of(&full);
    let ports: Vec<_> = ports.iter().map(String::as_str).collect();
    empty.must(&[&["CLUSTER", "MEET", "127.0.0.1"], &ports[..]].concat());
    wait_until(
        "it knows who has the slots",
        || matches!(empty.command(&["GET", RESOURCE]), Reply::Error(it) if it.starts_with("MOVED")),
    );
    is_refused(&manager, &empty, "MOVED: cluster node without this key");
    let lease = Lease::new();
    assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_UNREACHABLE);
    let who = format!("(it is on {})", full.address());
    assert!(lease.message().contains(&who), "{}", lease.message());
    // The redirection was not followed, and no request arrives there later.
    wait_until("the other serves", || full.command(&["GET", RESOURCE]) == Reply::Nil);

    // A node that has the slot works like any other server.
    let manager = unguarded(Manager::at(&[full.address(), plain[1].address()]));
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    everything_works(&manager, RESOURCE);
}

/// A node of a cluster that has no slot yet. Before Redis 7.0, the port between nodes is the client port plus
/// 10,000.
fn node() -> Server {
    let bus = ports::free().to_string();
    let port = ["--cluster-port", &bus];
    let port = if product().is_before_7() { &[] } else { &port[..] };
    Server::start_with(&[&["--cluster-enabled", "yes"], port].concat())
}

/// Its ports, in the form that `CLUSTER MEET` expects.
fn ports_of(node: &Server) -> Vec<String> {
    let port = node.port().to_string();
    if product().is_before_7() {
        return vec![port];
    }
    let bus = node.must(&["CONFIG", "GET", "cluster-port"]);
    let Reply::Array(bus) = bus else { panic!("{bus:?}") };
    vec![port, bus[1].text().expect("a number")]
}

#[track_caller]
fn is_refused(manager: &Manager, server: &Server, code: &str) {
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &[server.address()], &[code])
    });
}
