//! Shared locks: readers beside each other, a writer alone, with any mix of clients, and whatever happens to
//! the servers.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use redlock::ffi::acquire::{REDLOCK_EXCLUSIVE, REDLOCK_SHARED};
use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::usage::{
    DEADLINE, TTL, connected, connected_unguarded, in_time, make_brief, names,
};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

const RESOURCE: &str = "r";
const READERS: &str = "r:r";
const INTENT: &str = "r:i";

/// A new reader with its own lease.
#[track_caller]
fn read(manager: &Manager, ttl_ms: i64) -> Lease {
    let lease = Lease::new();
    let status = manager.acquire(&Wanted::shared(RESOURCE, ttl_ms), &lease);
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    assert!(lease.is_held() && lease.is_shared());
    lease
}

/// The lock cannot be taken in this way. Returns the words.
#[track_caller]
fn refused(manager: &Manager, wanted: &Wanted) -> String {
    let lease = Lease::new();
    assert_eq!(manager.acquire(wanted, &lease), REDLOCK_TAKEN, "{}", lease.message());
    lease.message()
}

#[track_caller]
fn unlock(manager: &Manager, lease: &Lease) {
    assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
}

/// A client that only uses `SET … NX PX`, as redis-cli sends it. Returns whether a quorum granted it.
fn take_plainly(cluster: &Cluster, token: &str) -> bool {
    let set = |server: &&Server| {
        let reply = server.command(&["SET", RESOURCE, token, "NX", "PX", "60000"]);
        reply.text().as_deref() == Some("OK")
    };
    cluster.iter().filter(set).count() >= cluster.quorum()
}

fn release_plainly(cluster: &Cluster, token: &str) {
    for server in cluster.iter().filter(|it| it.get(RESOURCE).as_deref() == Some(token)) {
        server.must(&["DEL", RESOURCE]);
    }
}

/// The ends of all readers, of the resource, and of the set of readers. All are in server time.
fn ends(server: &Server) -> (Vec<i64>, i64, i64) {
    let script = "local t={} for i,v in ipairs(redis.call('ZRANGE',KEYS[1],0,-1,'WITHSCORES')) do \
                  if i%2==0 then t[#t+1]=v end end return table.concat(t,' ')";
    let scores = server.must(&["EVAL", script, "1", READERS]).text().unwrap_or_default();
    let scores = scores.split_whitespace().map(|it| it.parse().expect("a number")).collect();
    (scores, server.ends_at(RESOURCE), server.ends_at(READERS))
}

/// On each server the resource ends with the last of its readers, and so does the set of readers.
#[track_caller]
fn ends_with_the_last_reader(cluster: &Cluster, readers: usize) {
    for server in cluster.iter() {
        wait_until("all have reached the server", || ends(server).0.len() == readers);
        let (scores, resource, set) = ends(server);
        let last = scores.iter().copied().max().expect("there are readers");
        assert_eq!((resource, set), (last, last), "{scores:?}");
        assert_eq!(server.get(RESOURCE).as_deref(), Some("redlock:shared"));
    }
}

#[test]
fn r01_readers_share_a_lock_and_a_writer_is_alone() {
    let cluster = Cluster::start(3);
    let (one, other, writer) = (connected(&cluster), connected(&cluster), connected(&cluster));
    let (long, short) = (read(&one, TTL), read(&one, TTL / 2));
    ends_with_the_last_reader(&cluster, 2);
    let leases = [long, short, read(&other, 2 * TTL)];
    ends_with_the_last_reader(&cluster, 3);
    let sight = writer.inspect(RESOURCE).expect("an answer");
    assert_eq!((sight.locked, sight.mode, sight.readers), (true, REDLOCK_SHARED, 3), "{sight:?}");
    assert!((TTL..=2 * TTL).contains(&sight.remaining_ms), "{sight:?}");
    assert_eq!(writer.is_locked(RESOURCE), Ok(true));

    let words = refused(&writer, &Wanted::new(RESOURCE, TTL));
    assert!(words.contains("held by another client ("), "{words}");
    let words = refused(&writer, &Wanted { tries: 2, ..Wanted::new(RESOURCE, TTL) });
    assert!(words.contains("held by 3 readers ("), "{words}");
    assert!(!take_plainly(&cluster, "plain"));

    for (manager, lease) in [(&one, &leases[0]), (&other, &leases[2])] {
        assert_eq!(manager.confirm(lease, TTL / 2), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.extend(lease, 3 * TTL), REDLOCK_OK, "{}", lease.message());
        assert!(lease.remaining_ms() > 2 * TTL);
    }
    ends_with_the_last_reader(&cluster, 3);
    unlock(&other, &leases[2]);
    ends_with_the_last_reader(&cluster, 2);
    unlock(&one, &leases[0]);
    ends_with_the_last_reader(&cluster, 1);
    unlock(&one, &leases[1]);
    cluster.wait_until_gone(RESOURCE);
    cluster.wait_until_gone(READERS);

    // The writer is alone, whether it is one of ours or a plain client.
    let lease = writer.take(RESOURCE, TTL);
    assert!(!lease.is_shared());
    let words = refused(&one, &Wanted::shared(RESOURCE, TTL));
    assert!(words.contains("held by another client ("), "{words}");
    let sight = one.inspect(RESOURCE).expect("an answer");
    assert_eq!((sight.locked, sight.mode, sight.readers), (true, REDLOCK_EXCLUSIVE, 0));
    unlock(&writer, &lease);
    cluster.wait_until_gone(RESOURCE);
    assert!(take_plainly(&cluster, "plain"));
    refused(&one, &Wanted::shared(RESOURCE, TTL));
    release_plainly(&cluster, "plain");
    let lease = read(&one, TTL);
    unlock(&one, &lease);
}

#[test]
fn r01_a_ticket_hands_a_shared_lock_over() {
    let cluster = Cluster::start(3);
    let (giver, taker) = (connected(&cluster), connected(&cluster));
    let (lease, other) = (read(&giver, TTL), read(&taker, TTL));
    ends_with_the_last_reader(&cluster, 2);
    let token = lease.token();
    let ticket = giver.detach(&lease).expect("it is held");
    assert!(ticket.starts_with("redlock2.shared."));
    assert_eq!(giver.unlock(&lease), REDLOCK_LOST);
    let adopted = Lease::new();
    assert_eq!(taker.adopt(&ticket, &adopted), REDLOCK_OK, "{}", adopted.message());
    assert!(adopted.is_shared() && adopted.token() == token);
    assert_eq!(taker.extend(&adopted, 2 * TTL), REDLOCK_OK, "{}", adopted.message());
    assert_eq!(taker.inspect(RESOURCE).expect("an answer").readers, 2);
    unlock(&taker, &adopted);
    ends_with_the_last_reader(&cluster, 1);
    assert_eq!(giver.adopt(&ticket, &lease), REDLOCK_LOST);
    unlock(&taker, &other);
}

#[test]
fn r02_a_writer_becomes_a_reader_but_not_the_reverse() {
    let cluster = Cluster::start(3);
    let (writer, reader) = (connected(&cluster), connected(&cluster));
    let lease = writer.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    let (token, end) = (lease.token(), cluster[0].ends_at(RESOURCE));
    refused(&reader, &Wanted::shared(RESOURCE, TTL));
    assert_eq!(writer.downgrade(&lease), REDLOCK_OK, "{}", lease.message());
    assert!(lease.is_shared() && lease.token() == token && lease.is_held());
    ends_with_the_last_reader(&cluster, 1);
    // The lock keeps its end. The server may count a millisecond more.
    let now = cluster[0].ends_at(RESOURCE);
    assert!((end..=end + 2).contains(&now), "{end} {now}");
    let beside = read(&reader, TTL);
    ends_with_the_last_reader(&cluster, 2);
    refused(&reader, &Wanted::new(RESOURCE, TTL));
    // A second downgrade changes nothing.
    assert_eq!(writer.downgrade(&lease), REDLOCK_OK, "{}", lease.message());

    for status in [
        writer.lock(RESOURCE, TTL, &lease),
        writer.continue_lock(RESOURCE, TTL, &lease),
        writer.try_lock(RESOURCE, TTL, 0, &lease),
    ] {
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
        assert!(lease.message().contains("cannot be upgraded"), "{}", lease.message());
    }
    assert!(lease.is_held());
    assert_eq!(writer.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    unlock(&writer, &lease);
    unlock(&reader, &beside);
    cluster.wait_until_gone(RESOURCE);
    assert_eq!(writer.downgrade(&lease), REDLOCK_LOST);
    // Without an event loop, and with one.
    let lease = writer.take(RESOURCE, TTL);
    assert_eq!(writer.submit_downgrade(&lease, 7), REDLOCK_OK);
    let event = writer.event();
    assert_eq!((event.status, event.user_data), (REDLOCK_OK, 7));
    let beside = read(&reader, TTL);
    unlock(&reader, &beside);
    unlock(&writer, &lease);
}

#[test]
fn r02_an_incomplete_downgrade_is_completed_by_an_extension() {
    let cluster = Cluster::start(3);
    let (writer, reader) = (connected(&cluster), connected(&cluster));
    make_brief(&writer);
    let lease = writer.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    cluster[1..].iter().for_each(Server::freeze);
    in_time(DEADLINE, || {
        assert_eq!(writer.downgrade(&lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    });
    let words = lease.message();
    assert!(words.contains("counts as shared") && names(&words, &cluster[1..]), "{words}");
    assert!(lease.is_held() && lease.is_shared());
    cluster[1..].iter().for_each(Server::resume);
    wait_until("it is extended", || writer.extend(&lease, 2 * TTL) == REDLOCK_OK);
    ends_with_the_last_reader(&cluster, 1);
    let beside = read(&reader, TTL);
    unlock(&reader, &beside);
    unlock(&writer, &lease);
    cluster.wait_until_gone(RESOURCE);
}

#[test]
fn r03_a_failing_minority_is_harmless() {
    let cluster = Cluster::start(3);
    let (one, other) = (connected_unguarded(&cluster), connected_unguarded(&cluster));
    let lease = read(&one, TTL);
    ends_with_the_last_reader(&cluster, 1);
    for (go, come) in [
        (Server::freeze as fn(&Server), Server::resume as fn(&Server)),
        (Server::kill, Server::restart),
    ] {
        go(&cluster[0]);
        let beside = Lease::new();
        wait_until("another reader is let in", || {
            other.acquire(&Wanted::shared(RESOURCE, TTL), &beside) == REDLOCK_OK
        });
        refused(&other, &Wanted::new(RESOURCE, TTL));
        assert_eq!(one.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
        assert_eq!(one.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        unlock(&other, &beside);
        come(&cluster[0]);
        wait_until("the server has the reader again", || {
            one.extend(&lease, 2 * TTL) == REDLOCK_OK && cluster[0].exists(READERS)
        });
    }
    wait_until("the restarted one vouches for it again", || {
        one.extend(&lease, 2 * TTL) == REDLOCK_OK
    });
    ends_with_the_last_reader(&cluster, 1);
    unlock(&one, &lease);
    cluster.wait_until_gone(RESOURCE);
}

#[test]
fn r03_a_reader_without_a_quorum_of_entries_is_lost() {
    let cluster = Cluster::start(3);
    let (one, other) = (connected(&cluster), connected(&cluster));
    let (lease, beside) = (read(&one, TTL), read(&other, TTL));
    ends_with_the_last_reader(&cluster, 2);
    cluster[..2].iter().for_each(|it| _ = it.must(&["ZREM", READERS, &lease.token()]));
    assert_eq!(one.confirm(&lease, 0), REDLOCK_LOST, "{}", lease.message());
    assert!(!lease.is_held());
    assert_eq!(one.extend(&lease, TTL), REDLOCK_LOST);
    wait_until("what is left of it is gone", || ends(&cluster[2]).0.len() == 1);
    assert_eq!(other.confirm(&beside, TTL / 2), REDLOCK_OK, "{}", beside.message());
    unlock(&other, &beside);
}

#[test]
fn r04_a_dead_reader_blocks_a_writer_only_for_its_ttl() {
    let cluster = Cluster::start(3);
    let (reader, writer) = (connected(&cluster), connected(&cluster));
    let long = read(&reader, TTL);
    let short = read(&reader, 400);
    ends_with_the_last_reader(&cluster, 2);
    wait_until("it has ended", || !short.is_held());
    // Its entry is still there, but it is no reader any more.
    wait_until("one is left", || {
        writer.inspect(RESOURCE).is_ok_and(|it| it.readers == 1 && it.mode == REDLOCK_SHARED)
    });
    assert_eq!(reader.extend(&short, TTL), REDLOCK_LOST, "{}", short.message());
    refused(&writer, &Wanted::new(RESOURCE, TTL));
    unlock(&reader, &long);
    cluster.wait_until_gone(RESOURCE);
    let dead = read(&reader, 500);
    let lease = Lease::new();
    let wanted = Wanted { wait_ms: 20_000, ..Wanted::new(RESOURCE, TTL) };
    assert_eq!(writer.acquire(&wanted, &lease), REDLOCK_OK, "{}", lease.message());
    assert!(!dead.is_held());
    unlock(&writer, &lease);
}

#[test]
fn r05_a_waiting_writer_comes_before_later_readers() {
    let cluster = Cluster::start(3);
    let (early, late, writer) = (connected(&cluster), connected(&cluster), connected(&cluster));
    let lease = read(&early, TTL);
    ends_with_the_last_reader(&cluster, 1);
    let (has_ended, own) = (AtomicBool::new(false), Lease::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let wanted = Wanted { wait_ms: 30_000, ..Wanted::new(RESOURCE, TTL) };
            assert_eq!(writer.acquire(&wanted, &own), REDLOCK_OK, "{}", own.message());
            has_ended.store(true, Ordering::Release);
        });
        wait_until("it has said that it waits", || cluster.having(INTENT) == 3);
        let words = refused(&late, &Wanted::shared(RESOURCE, TTL));
        assert!(words.contains("reserved for a waiting writer ("), "{words}");
        // A current reader may stay.
        assert_eq!(early.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
        assert_eq!(early.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        assert!(!has_ended.load(Ordering::Acquire));
        unlock(&early, &lease);
    });
    assert!(own.is_held() && !own.is_shared());
    cluster.wait_until_gone(INTENT);
    unlock(&writer, &own);
    let lease = read(&late, TTL);
    unlock(&late, &lease);
}

/// Two readers, each in its own process, that never leave at the same time.
#[test]
fn r05_overlapping_readers_do_not_starve_a_writer() {
    let cluster = Cluster::start(3);
    let managers = [connected(&cluster), connected(&cluster)];
    let (writer, is_over, turns) = (connected(&cluster), AtomicBool::new(false), AtomicU32::new(0));
    let lease = Lease::new();
    thread::scope(|scope| {
        for manager in &managers {
            scope.spawn(|| {
                let wanted = Wanted { wait_ms: 30_000, ..Wanted::shared(RESOURCE, TTL) };
                let own = [Lease::new(), Lease::new()];
                let mut at = 0;
                // One of the two leases is held at any time, as long as the lock can be taken.
                while !is_over.load(Ordering::Acquire) {
                    let status =
                        manager.acquire(&Wanted { wait_ms: 5, ..wanted.clone() }, &own[at]);
                    if status == REDLOCK_OK {
                        turns.fetch_add(1, Ordering::Relaxed);
                    }
                    at = 1 - at;
                    if own[at].is_held() {
                        unlock(manager, &own[at]);
                    }
                }
                own.iter().filter(|it| it.is_held()).for_each(|it| unlock(manager, it));
            });
        }
        wait_until("readers come and go", || turns.load(Ordering::Relaxed) > 20);
        for _ in 0..5 {
            let wanted = Wanted { wait_ms: 30_000, ..Wanted::new(RESOURCE, TTL) };
            let status = writer.acquire(&wanted, &lease);
            if status != REDLOCK_OK {
                is_over.store(true, Ordering::Release);
            }
            assert_eq!(status, REDLOCK_OK, "{}", lease.message());
            unlock(&writer, &lease);
            let before = turns.load(Ordering::Relaxed);
            wait_until("readers are back", || turns.load(Ordering::Relaxed) > before);
        }
        is_over.store(true, Ordering::Release);
    });
    cluster.wait_until_gone(RESOURCE);
}

#[test]
fn r05_a_local_writer_comes_before_later_readers() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let (one, other) = (read(&manager, TTL), read(&manager, TTL));
    let (own, late) = (Lease::new(), Lease::new());
    let order = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let wanted = Wanted { wait_ms: 30_000, ..Wanted::new(RESOURCE, TTL) };
            assert_eq!(manager.acquire(&wanted, &own), REDLOCK_OK, "{}", own.message());
            order.lock().expect("not poisoned").push("writer");
            unlock(&manager, &own);
        });
        // The writer also announces that it waits for readers of its own process.
        wait_until("it waits", || cluster.having(INTENT) == 3);
        let words = refused(&manager, &Wanted::shared(RESOURCE, TTL));
        assert!(words.contains("ahead in the queue"), "{words}");
        scope.spawn(|| {
            let wanted = Wanted { wait_ms: 30_000, ..Wanted::shared(RESOURCE, TTL) };
            assert_eq!(manager.acquire(&wanted, &late), REDLOCK_OK, "{}", late.message());
            order.lock().expect("not poisoned").push("reader");
        });
        unlock(&manager, &one);
        thread::sleep(Duration::from_millis(1));
        assert!(order.lock().expect("not poisoned").is_empty());
        unlock(&manager, &other);
    });
    assert_eq!(*order.lock().expect("not poisoned"), ["writer", "reader"]);
    unlock(&manager, &late);
    cluster.wait_until_gone(RESOURCE);
}

#[test]
fn r06_a_foreign_value_is_named_and_left_alone() {
    let cluster = Cluster::start(3);
    let (manager, writer) = (connected(&cluster), connected(&cluster));
    // The resource is not a string.
    cluster.iter().for_each(|it| _ = it.must(&["RPUSH", RESOURCE, "a list"]));
    let words = refused(&manager, &Wanted::shared(RESOURCE, TTL));
    assert!(words.contains("held by another client (no expiry)"), "{words}");
    cluster.iter().for_each(|it| {
        it.must(&["DEL", RESOURCE]);
        it.must(&["SET", READERS, "somebody's"]);
    });
    let lease = Lease::new();
    let status = manager.acquire(&Wanted::shared(RESOURCE, TTL), &lease);
    let words = lease.message();
    assert_eq!(
        (status, words.contains("of the resource with :r appended")),
        (REDLOCK_UNREACHABLE, true),
        "{words}"
    );
    assert!(cluster.iter().all(|it| it.get(READERS).as_deref() == Some("somebody's")));
    let lease = writer.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    assert_eq!(writer.downgrade(&lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    assert!(cluster.iter().all(|it| it.get(READERS).as_deref() == Some("somebody's")));
    unlock(&writer, &lease);
    cluster.wait_until_gone(RESOURCE);
    cluster.iter().for_each(|it| _ = it.must(&["DEL", READERS]));

    // Another client's lock has the name of the key in which writers announce that they wait.
    cluster.iter().for_each(|it| _ = it.must(&["SET", INTENT, "somebody's"]));
    let lease = read(&manager, TTL);
    refused(&writer, &Wanted { tries: 3, ..Wanted::new(RESOURCE, TTL) });
    assert!(cluster.iter().all(|it| it.get(INTENT).as_deref() == Some("somebody's")));

    // Ends that are not times.
    ends_with_the_last_reader(&cluster, 1);
    for (score, name) in [("inf", "one"), ("-inf", "two"), ("1e300", "three"), ("0.5", "four")] {
        cluster.iter().for_each(|it| _ = it.must(&["ZADD", READERS, score, name]));
    }
    assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    let beside = read(&manager, TTL);
    assert_eq!(manager.confirm(&beside, TTL / 2), REDLOCK_OK, "{}", beside.message());
    unlock(&manager, &beside);
    unlock(&manager, &lease);
    // An entry that our clients did not create is not ours to delete.
    assert!(cluster.iter().all(|it| it.pttl(RESOURCE) > 0));
    cluster.iter().for_each(|it| _ = it.must(&["ZREM", READERS, "one", "three"]));
    let lease = read(&manager, TTL);
    unlock(&manager, &lease);
    cluster.wait_until_gone(RESOURCE);
}
