//! Fencing tokens grow with every lock of a resource, whatever the counters of the servers show. If a token
//! cannot be stored on a quorum, there is no lock.

use std::time::{SystemTime, UNIX_EPOCH};

use redlock::ffi::servers::REDLOCK_GUARD_OFF;
use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::clocks::Timed;
use crate::support::usage::{
    TTL, addresses, blames, connected, everything_works, make_brief, nothing_is_left, patient,
};
use crate::support::{Cluster, Lease, Manager, Proxy, Server, Way, wait_until};

const RESOURCE: &str = "r";
/// Where servers count the tokens of all resources, and the field of this one.
const FENCES: &str = "redlock:fence";
const FIELD: &str = "3285";

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
    let said = server.must(&["HGET", FENCES, FIELD]).text();
    said.map_or(0, |it| it.parse().expect("a number"))
}

/// How many servers have drawn this number, or a greater one.
fn having_drawn(cluster: &Cluster, token: i64) -> usize {
    cluster.iter().filter(|it| last(it) >= token).count()
}

#[test]
fn k01_tokens_grow_with_every_lock_and_follow_the_clock() {
    let cluster = Cluster::start(3);
    let managers = [(); 3].map(|()| fencing(connected(&cluster)));
    let (mut before, began) = (0, now_us());
    let requests = cluster[0].requests_in(|| {
        for manager in managers.iter().cycle().take(60) {
            let token = token_of_a_lock(manager);
            assert!(token > before, "{token} after {before}");
            assert!((began - SPREAD_US..now_us() + SPREAD_US).contains(&token), "{token}");
            assert!(having_drawn(&cluster, token) >= cluster.quorum());
            before = token;
        }
    });
    nothing_is_left(&managers[0], &cluster, RESOURCE);
    // All drew the same number, so none was raised.
    assert!(requests.iter().any(|it| it.contains("draw()")));
    let raises: Vec<_> = requests.iter().filter(|it| it.contains("behind")).collect();
    assert!(raises.is_empty(), "{raises:?}");
}

#[test]
fn k01_a_held_lock_keeps_its_token() {
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
fn k01_without_fencing_no_token_is_drawn() {
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
fn k01_a_waiter_gets_a_greater_token() {
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
fn k02_a_token_exceeds_all_counters_of_a_quorum() {
    for ahead in [&[0][..], &[0, 1], &[2], &[0, 1, 2]] {
        let cluster = Cluster::start(3);
        let manager = fencing(connected(&cluster));
        let mut before = token_of_a_lock(&manager);
        let far = before + 1_000 * HOUR_MS * 1_000;
        for &server in ahead {
            let value = (far + server as i64).to_string();
            cluster[server].must(&["HSET", FENCES, FIELD, &value]);
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
fn k02_a_counter_ahead_is_raised_on_others_and_kept() {
    let cluster = Cluster::start(3);
    let manager = fencing(patient(&cluster));
    manager.connect_to_all();
    let far = now_us() + 5 * HOUR_MS * 1_000;
    cluster[0].must(&["HSET", FENCES, FIELD, &far.to_string()]);
    // One of the others does not answer, so the server that is ahead is needed.
    cluster[2].freeze();
    let lease = manager.take(RESOURCE, 30_000);
    assert_eq!(lease.fencing_token(), far + 1);
    assert_eq!([last(&cluster[0]), last(&cluster[1])], [far + 1; 2]);
    assert!(cluster[..2].iter().all(|it| it.pttl(FENCES) == -1), "it has no end");
    cluster[2].resume();
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    nothing_is_left(&manager, &cluster, RESOURCE);
}

/// The value there belongs to another client, has another type, or is as great as possible.
#[test]
fn k03_a_foreign_value_under_the_counter_is_named_and_kept() {
    let spoils: [&[&str]; 6] = [
        &["HSET", FENCES, FIELD, "not a number"],
        &["HSET", FENCES, FIELD, "9007199254740991"],
        &["HSET", FENCES, FIELD, "-5"],
        &["HSET", FENCES, "base", "9007199254740991"],
        &["SET", FENCES, "another's"],
        &["RPUSH", FENCES, "a", "b"],
    ];
    for spoil in spoils {
        let cluster = Cluster::start(3);
        let manager = fencing(connected(&cluster));
        token_of_a_lock(&manager);
        // A minority does not matter, and is named.
        for (count, is_had) in [(1, true), (2, false)] {
            for server in &cluster[..count] {
                if spoil[0] != "HSET" {
                    server.must(&["DEL", FENCES]);
                }
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
            let named =
                ["key redlock:fence holds something other than fencing counters: delete the key"];
            blames(&lease.message(), &addresses(&cluster[..count]), &named).expect("named");
            assert_eq!(lease.fencing_token(), 0);
            nothing_is_left(&manager, &cluster, RESOURCE);
            let kind = cluster[0].must(&["TYPE", FENCES]).text();
            let kinds = [("HSET", "hash"), ("SET", "string"), ("RPUSH", "list")];
            assert!(kinds.map(|it| (it.0, Some(it.1))).contains(&(spoil[0], kind.as_deref())));
        }
    }
}

#[test]
fn k03_a_user_without_access_to_the_counter_is_told() {
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
    assert!(message.matches("NOPERM: user lacks").count() >= 2, "{message}");
    // Without tokens the user may lock.
    assert_eq!(manager.set_fencing(false), REDLOCK_OK);
    everything_works(&manager, RESOURCE);
    cluster.iter().for_each(|it| drop(it.must(&["ACL", "SETUSER", "default", "allkeys"])));
    nothing_is_left(&manager, &cluster, RESOURCE);
}

/// The lock is deleted on both servers that granted it. This happens after they drew different numbers and
/// before these are raised.
#[test]
fn k04_a_failed_raise_of_the_token_gives_no_lock() {
    let cluster = Cluster::start(3);
    let proxies: Vec<_> = cluster.iter().map(Proxy::to).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let manager = fencing(Manager::of_urls(&urls));
    assert_eq!(manager.set_timeouts(20_000, 20_000), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    manager.connect_to_all();
    let before = token_of_a_lock(&manager);
    nothing_is_left(&manager, &cluster, RESOURCE);
    cluster[0].must(&["HINCRBY", FENCES, FIELD, "99999999999"]);
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
    assert!(message.contains("0 of 3 servers stored the fencing token"), "{message}");
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
fn k05_tokens_grow_while_servers_forget_in_turn() {
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
        votes_with_tokens_again(&manager, &cluster[round]);
    }
    assert!(token_of_a_lock_for(&manager, SHORT_MS) > before);
}

/// Shows that the test can see the fault: the counters are lost on all servers at once, and one counter had
/// been ahead.
#[test]
fn k05_without_a_guard_a_token_can_repeat() {
    let cluster = Cluster::start(3);
    let manager = fencing(patient(&cluster));
    assert_eq!(manager.set_restart_guard(REDLOCK_GUARD_OFF), REDLOCK_OK);
    manager.connect_to_all();
    let far = (now_us() + 5 * HOUR_MS * 1_000).to_string();
    cluster.iter().for_each(|it| drop(it.must(&["HSET", FENCES, FIELD, &far])));
    let before = token_of_a_lock(&manager);
    cluster.iter().for_each(|it| drop(it.must(&["FLUSHALL"])));
    assert!(token_of_a_lock(&manager) < before);
}

/// The clocks of all servers are ahead for a while, and set right again later. The numbers that were drawn meanwhile
/// are remembered for longer than any time that passes in between.
#[test]
fn k06_tokens_grow_when_fast_clocks_are_corrected() {
    let timed = Timed::start(3);
    timed.step(5 * HOUR_MS);
    let before = token_of_a_lock(&fencing(connected(&timed.cluster)));
    timed.step(200 * HOUR_MS);
    timed.step(-205 * HOUR_MS);
    let token = token_of_a_lock(&fencing(connected(&timed.cluster)));
    assert!(token > before, "{token} after {before}");
    // Without that, the test would show nothing.
    assert!(before > now_us() + HOUR_MS * 1_000, "the clocks were not ahead");
}

#[test]
fn k06_tokens_grow_when_clocks_are_corrected_and_servers_forget() {
    let timed = Timed::start(3);
    timed.cluster.iter().for_each(|it| it.be_in_use(SHORT_MS));
    timed.step(5 * HOUR_MS);
    let before = token_of_a_lock_for(&fencing(connected(&timed.cluster)), SHORT_MS);
    timed.step(-5 * HOUR_MS);
    let manager = fencing(connected(&timed.cluster));
    for server in timed.cluster.iter() {
        server.restart();
        votes_with_tokens_again(&manager, server);
    }
    let token = token_of_a_lock_for(&manager, SHORT_MS);
    assert!(token > before, "{token} after {before}");
    assert!(before > now_us() + HOUR_MS * 1_000, "the clocks were not ahead");
}

/// The server draws numbers of its own again. Locks of another resource are taken until then: that is what restores the
/// numbers of all resources, and it does not bring the number of this one to other servers.
#[track_caller]
fn votes_with_tokens_again(manager: &Manager, server: &Server) {
    let address = server.address();
    wait_until("fencing tokens are available again", || {
        let lease = manager.take("another", SHORT_MS);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        let life = server.must(&["HGET", FENCES, "life"]).text();
        let is_its = |note: String| life.is_some_and(|life| note.contains(&life));
        let known = manager.servers();
        let votes = known.iter().any(|it| it.name == address && it.votes && it.words.is_empty());
        votes && server.get("redlock:guard").is_some_and(is_its)
    });
}

/// In the year 2260.
#[test]
fn k06_an_absurd_clock_raises_no_number_and_is_named() {
    const TO_2260_MS: i64 = 234 * 365 * 24 * HOUR_MS;
    let timed = Timed::start(3);
    timed.step_some(0..1, TO_2260_MS);
    let manager = fencing(connected(&timed.cluster));
    for _ in 0..10 {
        let lease = manager.take(RESOURCE, TTL);
        let token = lease.fencing_token();
        assert!((now_us() - HOUR_MS * 1_000..=now_us() + SPREAD_US).contains(&token), "{token}");
        let ticket = manager.detach(&lease).expect("it is held");
        let adopted = Lease::new();
        assert_eq!(manager.adopt(&ticket, &adopted), REDLOCK_OK, "{}", adopted.message());
        assert_eq!(adopted.fencing_token(), token);
        assert_eq!(manager.unlock(&adopted), REDLOCK_OK, "{}", adopted.message());
    }
    assert_eq!(last(&timed.cluster[0]), 0);
    // The lock needs that server now.
    timed.cluster[2].freeze();
    make_brief(&manager);
    let lease = Lease::new();
    assert_eq!(manager.lock(RESOURCE, TTL, &lease), REDLOCK_UNREACHABLE);
    assert!(lease.message().contains("the clock is past the year 2112"), "{}", lease.message());
    timed.cluster[2].resume();
    nothing_is_left(&manager, &timed.cluster, RESOURCE);
}

/// Only locks with tokens need the numbers.
#[test]
fn k07_deleted_numbers_are_restored_after_all_old_locks() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| it.be_in_use(SHORT_MS));
    let (manager, plain) = (fencing(connected(&cluster)), connected(&cluster));
    let far = now_us() + 5 * HOUR_MS * 1_000;
    cluster.iter().for_each(|it| drop(it.must(&["HSET", FENCES, FIELD, &far.to_string()])));
    for server in &*cluster {
        let before = token_of_a_lock_for(&manager, SHORT_MS);
        assert!(before > far, "{before}");
        server.must(&["DEL", FENCES]);
        let deleted_at = std::time::Instant::now();
        votes_with_tokens_again(&manager, server);
        let wait = std::time::Duration::from_millis(SHORT_MS.unsigned_abs());
        assert!(deleted_at.elapsed() > wait, "a lock of before may be left");
        assert!(
            server
                .must(&["HGET", FENCES, "base"])
                .text()
                .is_some_and(|it| it >= before.to_string())
        );
        assert!(server.must(&["HGET", FENCES, "clock"]).text().is_none());
        assert!(plain.servers().iter().all(|it| it.votes));
    }
    assert!(token_of_a_lock_for(&manager, SHORT_MS) > far);
}

/// One server is lost for good, and one is down: nothing that is known is enough.
#[test]
fn k07_the_clock_replaces_unreadable_numbers_for_a_while() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| it.be_in_use(SHORT_MS));
    let manager = fencing(connected(&cluster));
    let log = manager.log();
    let before = token_of_a_lock_for(&manager, SHORT_MS);
    cluster[0].restart();
    cluster[1].freeze();
    let lease = Lease::new();
    wait_until("it is restored by the clock", || {
        let status = manager.lock(RESOURCE, SHORT_MS, &lease);
        status == REDLOCK_OK && manager.unlock(&lease) == REDLOCK_OK
    });
    let marked = |server: &Server| server.must(&["HGET", FENCES, "clock"]).text().is_some();
    assert!(marked(&cluster[0]) && !marked(&cluster[2]));
    let words = "the fencing counters were lost and restarted from the clock";
    let known = manager.servers();
    assert!(known.iter().any(|it| it.votes && it.words.contains(words)), "{known:?}");
    let told = format!("{}: {words}", cluster[0].address());
    wait_until("it is reported", || {
        token_of_a_lock_for(&manager, SHORT_MS);
        log.lines().iter().any(|it| it.1.contains(&told))
    });
    cluster[1].resume();
    wait_until("it is restored from the others", || {
        token_of_a_lock_for(&manager, SHORT_MS) > before && !marked(&cluster[0])
    });
    votes_with_tokens_again(&manager, &cluster[0]);
}

#[test]
fn k07_a_single_forgetful_server_continues_by_its_clock() {
    let cluster = Cluster::start(1);
    cluster[0].be_in_use(SHORT_MS);
    let manager = fencing(connected(&cluster));
    let before = token_of_a_lock_for(&manager, SHORT_MS);
    cluster[0].restart();
    let lease = Lease::new();
    wait_until("it has its vote again", || manager.lock(RESOURCE, SHORT_MS, &lease) == REDLOCK_OK);
    assert!(lease.fencing_token() > before);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    // No other server could tell it more.
    assert!(cluster[0].must(&["HGET", FENCES, "clock"]).text().is_none());
}

#[test]
fn k07_a_restart_with_data_keeps_the_numbers() {
    const LOGGED: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];
    let cluster = Cluster::start_each(3, || Server::start_with(&LOGGED));
    let manager = fencing(connected(&cluster));
    let mut before = token_of_a_lock(&manager);
    let lives = || cluster.iter().map(|it| it.must(&["HGET", FENCES, "life"]).text());
    let known: Vec<_> = lives().collect();
    for server in &*cluster {
        server.restart();
        manager.connect_to_all();
        let token = token_of_a_lock(&manager);
        assert!(token > before, "{token} after {before}");
        // It has drawn it, or raised it.
        wait_until("it takes part at once", || {
            before = token_of_a_lock(&manager);
            last(server) >= token
        });
    }
    assert_eq!(lives().collect::<Vec<_>>(), known);
}
