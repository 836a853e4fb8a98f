//! Servers that forget have no vote until the forgotten locks have ended. A client that wants the lock waits,
//! and is told for how long.

use std::time::{Duration, Instant};

use redlock::ffi::servers::{
    REDLOCK_GUARD_DURABLE, REDLOCK_GUARD_OFF, REDLOCK_GUARD_ON, REDLOCK_GUARD_STRICT,
};
use redlock::ffi::status::RedLockStatus::{
    REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

use crate::rivals::{RESOURCE, Rivals};
use crate::support::events::Wanted;
use crate::support::usage::{
    PATIENT_MS, TTL, connected, everything_works, make_brief, patient, unguarded,
};
use crate::support::{Cluster, Lease, Manager, Proxy, Server, wait_until, wait_until_ok};

/// The key of the note, and the minimum time without a vote.
pub(crate) const NOTE: &str = "redlock:guard";
const LEAST: Duration = Duration::from_secs(3);
const LEAST_MS: i64 = 3_000;

pub(crate) const LOST: &str = "new, or lost its data";

/// Nothing is known about these servers: they were just set up.
fn new(count: usize) -> Cluster {
    let cluster = Cluster::start(count);
    cluster.iter().for_each(Server::be_new);
    cluster
}

#[track_caller]
fn is_kept_out(manager: &Manager, addresses: &[String]) {
    is_kept_out_who_wants(&Wanted::new(RESOURCE, TTL), manager, addresses);
}

/// The manager tries until the words say that these servers have no vote. It never gets the lock.
#[track_caller]
pub(crate) fn is_kept_out_who_wants(wanted: &Wanted, manager: &Manager, addresses: &[String]) {
    let lease = Lease::new();
    wait_until_ok("it is told who lost its memory", || {
        let status = manager.acquire(wanted, &lease);
        assert!(
            [REDLOCK_UNREACHABLE, REDLOCK_TAKEN, REDLOCK_TOO_SLOW].contains(&status),
            "{status:?}: {}",
            lease.message()
        );
        let message = lease.message();
        let is_told = |it: &String| message.contains(&format!("{it} {LOST}"));
        if addresses.iter().all(is_told) { Ok(()) } else { Err(message) }
    });
    assert!(lease.message().contains("no vote for another "), "{}", lease.message());
    for it in manager.servers().iter().filter(|it| addresses.contains(&it.name)) {
        assert!(it.connected && !it.votes && it.words.contains(LOST), "{it:?}");
    }
}

/// A majority forgets in this way. Then the rival wants the lock.
fn a_majority_forgets(forget: impl Fn(&Server)) {
    let cluster = Cluster::start(3);
    let rivals = Rivals::of(&cluster);
    let forgetful: Vec<_> = cluster[..2].iter().map(Server::address).collect();
    cluster[..2].iter().for_each(forget);
    make_brief(&rivals.rival);
    is_kept_out(&rivals.rival, &forgetful);
    // A client that comes only now does not get it either.
    is_kept_out(&connected_to(&cluster), &forgetful);
    assert_eq!(rivals.holders(), 1);
    rivals.the_holder_is_told();
}

/// Also to servers that have no votes.
pub(crate) fn connected_to(cluster: &Cluster) -> Manager {
    let manager = patient(cluster);
    wait_until("all servers are connected", || {
        manager.connect(0) == REDLOCK_OK && manager.servers().iter().all(|it| it.connected)
    });
    manager
}

#[test]
fn s24_a_majority_restarted_without_data_has_no_vote() {
    a_majority_forgets(Server::restart);
}

#[test]
fn s24_a_flushed_majority_has_no_vote() {
    for way in [&["FLUSHALL"][..], &["FLUSHDB", "ASYNC"], &["SWAPDB", "0", "1"]] {
        a_majority_forgets(|server| _ = server.must(way));
    }
}

#[test]
fn s24_empty_servers_behind_the_addresses_have_no_vote() {
    let (cluster, empty) = (Cluster::start(3), new(2));
    let proxies: Vec<Proxy> = cluster.iter().map(Proxy::to).collect();
    let addresses: Vec<_> = proxies.iter().map(Proxy::address).collect();
    let (holder, rival) = (Manager::at(&addresses), Manager::at(&addresses));
    for it in [&holder, &rival] {
        assert_eq!(it.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        it.connect_to_all();
    }
    let rivals = Rivals::among(holder, rival);
    for (proxy, server) in proxies.iter().zip(empty.iter()) {
        proxy.lead_to(server);
        proxy.reset();
    }
    make_brief(&rivals.rival);
    is_kept_out(&rivals.rival, &addresses[..2]);
    assert_eq!(rivals.holders(), 1);
    rivals.the_holder_is_told();
}

#[test]
fn s24_servers_restarted_in_turn_admit_nobody() {
    let cluster = Cluster::start(5);
    let rivals = Rivals::of(&cluster);
    make_brief(&rivals.rival);
    for server in cluster.iter() {
        server.restart();
        is_kept_out(&rivals.rival, &[server.address()]);
        assert!(!rivals.wanted.is_held());
    }
    assert_eq!(rivals.holders(), 1);
}

#[test]
fn s24_a_vote_counts_again_after_all_forgotten_locks() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    assert_eq!(manager.set_restart_guard_for(REDLOCK_GUARD_ON, 0, LEAST_MS), REDLOCK_OK);
    everything_works(&manager, RESOURCE);
    let began = Instant::now();
    cluster[..2].iter().for_each(Server::restart);
    let lease = Lease::new();
    assert_eq!(manager.try_lock(RESOURCE, TTL, 60_000, &lease), REDLOCK_OK, "{}", lease.message());
    assert!(began.elapsed() >= LEAST, "{:?}", began.elapsed());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    // The other of the two was restarted a moment later, perhaps.
    wait_until("all vote again", || {
        manager.connect(0);
        manager.servers().iter().all(|it| it.votes)
    });
}

/// Two servers have the note about this TTL. The rival's own TTL would be over long before.
#[test]
fn s24_the_longest_ttl_of_others_is_waited_for() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| it.be_in_use(1));
    let holder = connected(&cluster);
    let held = holder.take(RESOURCE, TTL);
    wait_until("it is noted everywhere", || {
        cluster.iter().all(|it| it.get(NOTE).is_some_and(|it| it.contains(&format!(" {TTL} "))))
    });
    cluster[0].restart();
    let rival = connected_to(&cluster);
    assert_eq!(rival.connect(0), REDLOCK_OK);
    let message = rival.message();
    let words = format!("{} {LOST}", cluster[0].address());
    assert!(message.contains(&words), "{message}");
    let left_s = message.rsplit("for another ").next().and_then(|it| it.split(' ').next());
    let left_s: i64 = left_s.and_then(|it| it.parse().ok()).expect("so many seconds");
    assert!(left_s > TTL / 1_000 / 2, "{message}");
    assert!(held.is_held());
}

#[test]
fn s25_an_all_new_deployment_votes_at_once() {
    let cluster = new(5);
    let manager = connected(&cluster);
    assert!(manager.servers().iter().all(|it| it.votes && it.words.is_empty()));
    everything_works(&manager, RESOURCE);
    everything_works(&connected(&cluster), RESOURCE);
    for server in cluster.iter() {
        let note = server.get(NOTE).expect("it bears a note");
        assert!(note.contains(" -"), "it counts as new: {note}");
        assert_eq!(server.pttl(NOTE), -1);
    }
}

#[test]
fn s25_new_servers_have_no_vote_in_strict_mode_or_incomplete() {
    let cluster = new(3);
    let strict = patient(&cluster);
    assert_eq!(strict.set_restart_guard(REDLOCK_GUARD_STRICT), REDLOCK_OK);
    let addresses: Vec<_> = cluster.iter().map(Server::address).collect();
    is_kept_out(&strict, &addresses);

    let cluster = new(3);
    cluster[2].kill();
    let manager = patient(&cluster);
    assert_eq!(manager.set_restart_guard_for(REDLOCK_GUARD_ON, 0, LEAST_MS), REDLOCK_OK);
    let addresses: Vec<_> = cluster[..2].iter().map(Server::address).collect();
    is_kept_out(&manager, &addresses);
    assert_eq!(manager.connect(0), REDLOCK_OK);
    assert!(manager.message().contains(LOST), "{}", manager.message());
    let lease = Lease::new();
    assert_eq!(manager.try_lock(RESOURCE, LEAST_MS, 60_000, &lease), REDLOCK_OK);
}

#[test]
fn s25_a_replacement_server_has_no_vote_at_first() {
    let cluster = Cluster::start(3);
    cluster[0].be_new();
    let manager = connected_to(&cluster);
    is_kept_out_of_one(&manager, &cluster[0]);
}

/// The others are a quorum.
fn is_kept_out_of_one(manager: &Manager, server: &Server) {
    let lease = manager.take(RESOURCE, TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    let known = manager.servers();
    let it = known.iter().find(|it| it.name == server.address()).expect("it is known");
    assert!(!it.votes && it.words.contains(LOST), "{it:?}");
}

#[test]
fn s25_an_always_synced_server_votes_after_its_restart() {
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    let cluster = Cluster::start_each(3, || Server::start_with(&log));
    let manager = connected(&cluster);
    cluster.iter().for_each(Server::restart);
    manager.connect_to_all();
    everything_works(&manager, RESOURCE);
    // Deleted keys are an exception.
    cluster[0].must(&["FLUSHALL"]);
    cluster[0].restart();
    is_kept_out_of_one(&connected_to(&cluster), &cluster[0]);
}

#[test]
fn s25_an_unguarded_manager_asks_and_writes_nothing() {
    for mode in [REDLOCK_GUARD_OFF, REDLOCK_GUARD_DURABLE] {
        let cluster = new(3);
        let manager = patient(&cluster);
        assert_eq!(manager.set_restart_guard(mode), REDLOCK_OK);
        manager.connect_to_all();
        everything_works(&manager, RESOURCE);
        cluster.iter().for_each(Server::restart);
        manager.connect_to_all();
        everything_works(&manager, RESOURCE);
        assert!(cluster.iter().all(|it| !it.exists(NOTE) && it.calls("time") == 0));
    }
}

#[test]
fn s25_an_evicting_server_is_accepted_without_a_guard() {
    let evicting = ["--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"];
    let server = Server::start_with(&evicting);
    everything_works(&unguarded(Manager::at(&[server.address()])), RESOURCE);
    assert_eq!(Manager::at(&[server.address()]).connect(0), REDLOCK_UNREACHABLE);
}

#[test]
fn s25_a_user_without_access_to_the_note_is_unguarded() {
    let cluster = new(3);
    for server in cluster.iter() {
        server.must(&["ACL", "SETUSER", "default", "resetkeys", "~r"]);
    }
    let manager = connected(&cluster);
    everything_works(&manager, RESOURCE);
    for it in manager.servers() {
        assert!(it.votes && it.words.contains("not guarded") && it.words.contains(NOTE), "{it:?}");
    }
}

/// They look new again. But this manager has seen their notes.
#[test]
fn s25_flushed_new_servers_have_no_vote_for_witnesses() {
    let cluster = new(3);
    let manager = connected(&cluster);
    let held = manager.take(RESOURCE, TTL);
    cluster.iter().for_each(|it| _ = it.must(&["FLUSHALL"]));
    cluster.iter().for_each(Server::hang_up);
    wait_until("all have lost their memory", || {
        let _ = manager.try_lock("another", TTL, 0, &Lease::new());
        manager.servers().iter().all(|it| !it.votes && it.words.contains(LOST))
    });
    assert!(held.is_held());
}

/// Then a promotion is not seen.
#[test]
fn s25_a_user_without_access_to_the_role_is_told() {
    let replication = &["-info", "+info|server", "+info|memory", "+info|persistence"][..];
    for (rights, is_told_at_once) in [(replication, true), (&["-eval"], false)] {
        let cluster = Cluster::start(3);
        let manager = connected(&cluster);
        everything_works(&manager, RESOURCE);
        for server in cluster.iter() {
            server.must(&[&["ACL", "SETUSER", "default"], rights].concat());
            server.hang_up();
        }
        let manager = connected(&cluster);
        let is_told =
            || manager.servers().iter().all(|it| it.votes && it.words.contains("not guarded"));
        assert!(is_told() || !is_told_at_once, "{rights:?}");
        // Otherwise it is told when it asks: before a lock after some quiet.
        let quiet_since = Instant::now();
        wait_until("it was quiet", || quiet_since.elapsed() > Duration::from_millis(100));
        let lease = Lease::new();
        assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
        wait_until("it is told", || {
            assert_eq!(manager.connect(0), REDLOCK_OK);
            is_told()
        });
    }
}

#[test]
fn s25_a_damaged_note_is_a_lost_memory() {
    for damage in [&["SET", NOTE, "x"][..], &["DEL", NOTE]] {
        let cluster = Cluster::start(3);
        let manager = connected(&cluster);
        cluster[0].must(damage);
        wait_until("it is noticed", || {
            let lease = manager.take(RESOURCE, TTL);
            assert_eq!(manager.unlock(&lease), REDLOCK_OK);
            manager.servers()[0].words.contains("no vote for another ")
        });
        let note = cluster[0].get(NOTE).expect("it is given another");
        assert!(note.starts_with("1 ") && !note.contains('-'), "{note}");
    }
}

/// Once, and only if there is a guard.
#[test]
fn s24_a_lock_guarded_only_in_part_is_reported() {
    const LONG_MS: i64 = 700_000;
    for (mode, count) in [(REDLOCK_GUARD_ON, 1), (REDLOCK_GUARD_OFF, 0)] {
        let cluster = Cluster::start(1);
        let manager = patient(&cluster);
        assert_eq!(manager.set_restart_guard(mode), REDLOCK_OK);
        let log = manager.log();
        let take = |ttl_ms| {
            let lease = manager.take(RESOURCE, ttl_ms);
            assert_eq!(manager.extend(&lease, 2 * ttl_ms), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        };
        take(300_000);
        let said = || {
            let lines = log.lines().into_iter().map(|it| it.1);
            lines.filter(|it| it.contains("restart guard covers only")).collect::<Vec<_>>()
        };
        assert_eq!(said(), Vec::<String>::new());
        take(LONG_MS);
        take(2 * LONG_MS);
        assert_eq!(said().len(), count, "{:?}", said());
        let words =
            format!("the restart guard covers only 600000 ms of a lock with a TTL of {LONG_MS} ms");
        assert!(said().iter().all(|it| it.starts_with(&words)), "{:?}", said());
    }
}
