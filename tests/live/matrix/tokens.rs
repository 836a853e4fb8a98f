//! Fencing tokens grow with every lock of a resource, whatever the counters of the servers show. If a token
//! cannot be stored on a quorum, there is no lock.

use std::time::{SystemTime, UNIX_EPOCH};

use redlock::ffi::servers::REDLOCK_GUARD_OFF;
use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::usage::{
    TTL, addresses, blames, connected, everything_works, make_brief, nothing_is_left, patient,
};
use crate::support::{Cluster, Lease, Manager, Proxy, Server, Way, wait_until};

const RESOURCE: &str = "r";
const COUNTER: &str = "r:f";

/// How far a number may be from a server's clock, in microseconds.
const SPREAD_US: i64 = 1_000_000;

/// The shortest time for which a server has no vote.
const SHORT_MS: i64 = 3_000;

const HOUR_MS: i64 = 3_600_000;

/// The manager draws tokens.
fn fencing(manager: Manager) -> Manager {
    assert_eq!(manager.set_fencing(true), REDLOCK_OK);
    manager
}

/// Takes the lock, releases it, and returns its token.
#[track_caller]
fn token_of_a_lock(manager: &Manager) -> i64 {
    token_of_a_lock_for(manager, TTL)
}

#[track_caller]
fn token_of_a_lock_for(manager: &Manager, ttl_ms: i64) -> i64 {
    let lease = manager.take(RESOURCE, ttl_ms);
    let token = lease.fencing_token();
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(lease.fencing_token(), 0, "an empty lease has none");
    token
}

fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_micros() as i64
}

fn last(server: &Server) -> i64 {
    server.get(COUNTER).map_or(0, |it| it.parse().expect("a number"))
}

/// How many servers have drawn this number, or a greater one.
fn having_drawn(cluster: &Cluster, token: i64) -> usize {
    cluster.iter().filter(|it| last(it) >= token).count()
}

#[test]
fn k01_tokens_grow_with_every_lock_and_are_about_the_time_of_day() {
    let cluster = Cluster::start(3);
    let managers = [(); 3].map(|()| fencing(connected(&cluster)));
    let (mut before, began) = (0, now_us());
    for manager in managers.iter().cycle().take(60) {
        let token = token_of_a_lock(manager);
        assert!(token > before, "{token} after {before}");
        assert!((began - SPREAD_US..now_us() + SPREAD_US).contains(&token), "{token}");
        assert!(having_drawn(&cluster, token) >= cluster.quorum());
        before = token;
    }
    nothing_is_left(&managers[0], &cluster, RESOURCE);
    // All drew the same number, so none was raised. Each lock is one script, and its release is another script
    // or none.
    let raised = cluster.iter().map(|it| it.scripts()).max();
    assert!(raised.is_some_and(|it| it <= 120 + 3), "{raised:?} scripts");
}

#[test]
fn k01_a_lock_keeps_its_token_when_it_is_extended_confirmed_and_continued() {
    let cluster = Cluster::start(3);
    let manager = fencing(connected(&cluster));
    everything_works(&manager, RESOURCE);
    let lease = Lease::new();
    assert_eq!(manager.continue_lock(RESOURCE, TTL, &lease), REDLOCK_OK, "{}", lease.message());
    let token = lease.fencing_token();
    assert!(token > 0);
    for status in [
        manager.extend(&lease, 2 * TTL),
        manager.confirm(&lease, TTL),
        manager.continue_lock(RESOURCE, 2 * TTL, &lease),
    ] {
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(lease.fencing_token(), token);
    }
    let other = Lease::new();
    assert_eq!(manager.continue_lock(RESOURCE, TTL, &other), REDLOCK_OK, "{}", other.message());
    assert_eq!(other.fencing_token(), token, "it is the same lock");
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert!(token_of_a_lock(&manager) > token);
}

#[test]
fn k01_who_does_not_ask_for_tokens_has_none_and_draws_none() {
    let cluster = Cluster::start(3);
    let (with, without) = (fencing(connected(&cluster)), connected(&cluster));
    let first = token_of_a_lock(&with);
    let counters: Vec<_> = cluster.iter().map(last).collect();
    assert_eq!(token_of_a_lock(&without), 0);
    assert_eq!(cluster.iter().map(last).collect::<Vec<_>>(), counters);
    assert!(token_of_a_lock(&with) > first);
    assert_eq!(with.set_fencing(false), REDLOCK_OK);
    assert_eq!(token_of_a_lock(&with), 0);
    assert_eq!(Lease::new().fencing_token(), 0);
}

/// Locks that are handed over within a process, by threads that wait.
#[test]
fn k01_who_waits_for_a_lock_has_a_greater_token() {
    let cluster = Cluster::start(3);
    let manager = fencing(connected(&cluster));
    let tokens = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let lease = Lease::new();
                    let status = manager.try_lock(RESOURCE, TTL, -1, &lease);
                    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                    tokens.lock().expect("nobody panics").push(lease.fencing_token());
                    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
                }
            });
        }
    });
    let tokens = tokens.into_inner().expect("nobody panics");
    assert!(tokens.len() == 80 && tokens.is_sorted_by(|one, other| one < other), "{tokens:?}");
}

/// The counters of a minority or a majority are far ahead, as after a time with a wrong clock.
#[test]
fn k02_a_token_is_greater_than_what_any_counter_of_a_quorum_shows() {
    for ahead in [&[0][..], &[0, 1], &[2], &[0, 1, 2]] {
        let cluster = Cluster::start(3);
        let manager = fencing(connected(&cluster));
        let mut before = token_of_a_lock(&manager);
        let far = before + 1_000 * HOUR_MS * 1_000;
        for &server in ahead {
            let value = (far + server as i64).to_string();
            cluster[server].must(&["SET", COUNTER, &value, "PX", "100000000"]);
        }
        // It does not matter which servers answer first. After every server has taken part, the number is on
        // all of them.
        let mut greatest = 0;
        for _ in 0..40 {
            let token = token_of_a_lock(&manager);
            assert!(token > before, "{token} after {before}");
            assert!(having_drawn(&cluster, token) >= cluster.quorum(), "{token}");
            (before, greatest) = (token, token.max(greatest));
        }
        if ahead.len() >= cluster.quorum() {
            assert!(greatest > far, "a quorum hears of the counters");
        }
    }
}

#[test]
fn k02_a_counter_that_is_ahead_is_raised_on_others_and_lives_until_its_time_has_come() {
    let cluster = Cluster::start(3);
    let manager = fencing(patient(&cluster));
    manager.connect_to_all();
    let hour_us = HOUR_MS * 1_000;
    let far = now_us() + 5 * hour_us;
    cluster[0].must(&["SET", COUNTER, &far.to_string()]);
    // One of the others does not answer, so the server that is ahead is needed.
    cluster[2].freeze();
    let lease = manager.take(RESOURCE, 30_000);
    assert_eq!(lease.fencing_token(), far + 1);
    assert_eq!([last(&cluster[0]), last(&cluster[1])], [far + 1; 2]);
    for server in &cluster[..2] {
        let left_ms = server.pttl(COUNTER);
        assert!((5 * HOUR_MS..=6 * HOUR_MS + 1).contains(&left_ms), "{left_ms}");
    }
    cluster[2].resume();
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    nothing_is_left(&manager, &cluster, RESOURCE);
}

#[test]
fn k02_a_counter_outlives_the_locks_by_far() {
    let cluster = Cluster::start(1);
    let manager = fencing(connected(&cluster));
    for (ttl_ms, least_ms) in [(1_000, HOUR_MS), (TTL, 100 * TTL)] {
        let lease = manager.take(RESOURCE, ttl_ms);
        let left_ms = cluster[0].pttl(COUNTER);
        assert!(
            (least_ms - 100_000..=least_ms + SPREAD_US / 1_000).contains(&left_ms),
            "{left_ms}"
        );
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}

/// The value there belongs to another client, has another type, or is as great as possible.
#[test]
fn k03_something_else_under_the_name_of_the_counter_is_named_and_left_alone() {
    let spoils: [&[&str]; 4] = [
        &["SET", COUNTER, "not a number"],
        &["SET", COUNTER, "9007199254740991"],
        &["SET", COUNTER, "-5"],
        &["RPUSH", COUNTER, "a", "b"],
    ];
    for spoil in spoils {
        let cluster = Cluster::start(3);
        let manager = fencing(connected(&cluster));
        token_of_a_lock(&manager);
        // A minority does not matter, and is named.
        for (count, is_had) in [(1, true), (2, false)] {
            for server in &cluster[..count] {
                server.must(&["DEL", COUNTER]);
                server.must(spoil);
            }
            let lease = Lease::new();
            if is_had {
                assert_eq!(manager.lock(RESOURCE, TTL, &lease), REDLOCK_OK, "{}", lease.message());
                assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
                continue;
            }
            make_brief(&manager);
            assert_eq!(manager.lock(RESOURCE, TTL, &lease), REDLOCK_UNREACHABLE);
            let named = ["something else than a counter", "WRONGTYPE"];
            blames(&lease.message(), &addresses(&cluster[..count]), &named).expect("named");
            assert_eq!(lease.fencing_token(), 0);
            nothing_is_left(&manager, &cluster, RESOURCE);
            let kind = cluster[0].must(&["TYPE", COUNTER]).text();
            assert_eq!(kind.as_deref(), Some(if spoil[0] == "SET" { "string" } else { "list" }));
        }
    }
}

#[test]
fn k03_a_user_who_may_not_use_the_counter_is_told_so() {
    let cluster = Cluster::start(3);
    let manager = fencing(connected(&cluster));
    token_of_a_lock(&manager);
    for server in &*cluster {
        server.must(&[
            "ACL",
            "SETUSER",
            "default",
            "resetkeys",
            "~r",
            "~another",
            "~redlock:guard",
        ]);
    }
    make_brief(&manager);
    let lease = Lease::new();
    assert_eq!(manager.lock(RESOURCE, TTL, &lease), REDLOCK_UNREACHABLE);
    let message = lease.message();
    assert!(message.matches("NOPERM: does not permit this user").count() >= 2, "{message}");
    // Without tokens the user may lock.
    assert_eq!(manager.set_fencing(false), REDLOCK_OK);
    everything_works(&manager, RESOURCE);
    cluster.iter().for_each(|it| drop(it.must(&["ACL", "SETUSER", "default", "allkeys"])));
    nothing_is_left(&manager, &cluster, RESOURCE);
}

/// The lock is deleted on both servers that granted it. This happens after they drew different numbers and
/// before these are raised.
#[test]
fn k04_a_token_that_is_not_raised_in_time_is_no_lock() {
    let cluster = Cluster::start(3);
    let proxies: Vec<_> = cluster.iter().map(Proxy::to).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let manager = fencing(Manager::of_urls(&urls));
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    manager.connect_to_all();
    let before = token_of_a_lock(&manager);
    nothing_is_left(&manager, &cluster, RESOURCE);
    cluster[0].must(&["INCRBY", COUNTER, "99999999999"]);
    // The answers to an acquire are held back, so the test decides when the raise is requested.
    cluster[2].freeze();
    proxies[..2].iter().for_each(|it| it.stall(Way::Replies));
    let lease = Lease::new();
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| manager.lock(RESOURCE, TTL, &lease));
        wait_until("both have granted it", || cluster[..2].iter().all(|it| it.exists(RESOURCE)));
        for server in &cluster[..2] {
            server.must(&["DEL", RESOURCE]);
        }
        proxies[..2].iter().for_each(|it| it.flow(Way::Replies));
        let status = caller.join().expect("it ends");
        assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
    });
    let message = lease.message();
    assert!(message.contains("0 of 3 servers have its fencing token"), "{message}");
    assert!(!lease.is_held() && lease.fencing_token() == 0);
    cluster[2].resume();
    nothing_is_left(&manager, &cluster, RESOURCE);
    // A drawn number counts.
    let token = token_of_a_lock(&manager);
    assert!(token > before, "{token} after {before}");
}

/// One server after the other loses its counter with its memory. The guard makes sure that other servers know
/// what it knew.
#[test]
fn k05_tokens_grow_while_one_server_after_another_forgets() {
    let cluster = Cluster::start(3);
    // Locks are short, so a server that has lost its memory has its vote soon.
    cluster.iter().for_each(|it| it.be_in_use(SHORT_MS));
    let manager = fencing(connected(&cluster));
    let mut before = token_of_a_lock_for(&manager, SHORT_MS);
    for round in 0..3 {
        cluster[round].restart();
        for _ in 0..5 {
            let token = token_of_a_lock_for(&manager, SHORT_MS);
            assert!(token > before, "{token} after {before}");
            before = token;
        }
        wait_until("it has its vote again", || {
            token_of_a_lock_for(&manager, SHORT_MS) > 0
                && manager.servers().iter().all(|it| it.votes)
        });
    }
    assert!(token_of_a_lock_for(&manager, SHORT_MS) > before);
}

/// Shows that the test can see the fault: the counters are lost on all servers at once, and one counter had
/// been ahead.
#[test]
fn k05_without_a_guard_a_token_may_come_again() {
    let cluster = Cluster::start(3);
    let manager = fencing(patient(&cluster));
    assert_eq!(manager.set_restart_guard(REDLOCK_GUARD_OFF), REDLOCK_OK);
    manager.connect_to_all();
    let far = (now_us() + 5 * HOUR_MS * 1_000).to_string();
    cluster.iter().for_each(|it| drop(it.must(&["SET", COUNTER, &far])));
    let before = token_of_a_lock(&manager);
    cluster.iter().for_each(|it| drop(it.must(&["FLUSHALL"])));
    assert!(token_of_a_lock(&manager) < before);
}
