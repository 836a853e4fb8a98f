//! Server clocks that are set. A client that knew the clocks before notices it, and waits until all keys have
//! ended that may have vanished.

use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

use crate::clocks::Timed;
use crate::rivals::{RESOURCE, Rivals};
use crate::support::usage::{PATIENT_MS, TTL, addresses, connected, everything_works, make_brief};
use crate::support::{Lease, Manager, Server, wait_until, wait_until_ok};

const NOTE: &str = "redlock:guard";
const SET_FORWARD: &str = "clock jumped forward by";

/// The shortest time for which a server has no vote.
const LEAST_MS: i64 = 3_000;

/// The manager tries until the words say that the clocks of these servers were set. It never gets the lock.
#[track_caller]
fn is_kept_out(manager: &Manager, servers: &[Server]) {
    let (lease, addresses) = (Lease::new(), addresses(servers));
    wait_until_ok("it is told whose clock was set", || {
        let status = manager.try_lock(RESOURCE, TTL, 0, &lease);
        assert!(
            [REDLOCK_UNREACHABLE, REDLOCK_TAKEN, REDLOCK_TOO_SLOW].contains(&status),
            "{status:?}: {}",
            lease.message()
        );
        let message = lease.message();
        let is_told = |it: &String| message.contains(&format!("{it} {SET_FORWARD}"));
        if addresses.iter().all(is_told) { Ok(()) } else { Err(message) }
    });
    assert!(lease.message().contains("no vote for another "), "{}", lease.message());
    for it in manager.servers().iter().filter(|it| addresses.contains(&it.name)) {
        assert!(it.connected && !it.votes && it.words.contains(SET_FORWARD), "{it:?}");
    }
}

#[test]
fn c08_servers_set_forward_have_no_vote_and_admit_nobody() {
    for (servers, by_ms) in [(0..2, TTL + 1_000), (1..3, 1_000 * TTL)] {
        let timed = Timed::start(3);
        let rivals = Rivals::of(&timed.cluster);
        make_brief(&rivals.rival);
        timed.step_some(servers.clone(), by_ms);
        assert!(!timed.cluster[servers.start].exists(RESOURCE), "its clock did not step");
        is_kept_out(&rivals.rival, &timed.cluster[servers]);
        assert_eq!(rivals.holders(), 1);
        rivals.the_holder_is_told();
    }
}

/// The connections are lost as well. Knowledge about a clock outlives the connection.
#[test]
fn c08_a_step_is_seen_after_a_new_connection() {
    let timed = Timed::start(3);
    let rivals = Rivals::of(&timed.cluster);
    make_brief(&rivals.rival);
    let log = rivals.rival.log();
    timed.step_some(0..2, TTL + 1_000);
    timed.cluster[..2].iter().for_each(Server::hang_up);
    is_kept_out(&rivals.rival, &timed.cluster[..2]);
    assert_eq!(rivals.holders(), 1);
    let is_told = |it: &Server| {
        let words = format!("{}: {SET_FORWARD}", it.address());
        log.lines().iter().any(|it| it.1.contains(&words))
    };
    assert!(timed.cluster[..2].iter().all(is_told), "{:?}", log.lines());
}

/// One server after another, and each is waited for. The lock can be taken again when that is safe.
#[test]
fn c08_a_stepped_server_votes_again_after_all_locks() {
    let timed = Timed::start(3);
    timed.cluster.iter().for_each(|it| it.be_in_use(LEAST_MS));
    let (holder, rival) = (connected(&timed.cluster), connected(&timed.cluster));
    for round in 0..2 {
        let held = holder.take(RESOURCE, LEAST_MS);
        let began = Instant::now();
        timed.step_some(round..round + 1, 10 * LEAST_MS);
        // The others still have the lock, or it is the rival's turn.
        let wanted = Lease::new();
        assert_eq!(rival.set_timeouts(PATIENT_MS, 0), REDLOCK_OK);
        wait_until("the lock is had again", || {
            let status = rival.try_lock(RESOURCE, LEAST_MS, 0, &wanted);
            assert!(!(status == REDLOCK_OK && held.is_held()), "two hold it in round {round}");
            status == REDLOCK_OK
        });
        let least = Duration::from_millis(LEAST_MS.unsigned_abs() * 9 / 10);
        assert!(began.elapsed() >= least, "after {:?}", began.elapsed());
        assert_eq!(rival.unlock(&wanted), REDLOCK_OK, "{}", wanted.message());
        // Not with a longer lock, because the guard would wait for its TTL.
        wait_until("it has its vote", || {
            let lease = holder.take("another", LEAST_MS);
            assert_eq!(holder.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            holder.servers().iter().all(|it| it.votes)
        });
    }
}

/// The same happens after our machine stood still. A manager that cannot tell which clock was set counts no
/// vote, and notes nothing on the servers.
#[test]
fn c08_with_all_clocks_set_nobody_gets_in_and_notes_stay() {
    let timed = Timed::start(3);
    let rivals = Rivals::of(&timed.cluster);
    make_brief(&rivals.rival);
    let notes: Vec<_> = timed.cluster.iter().map(|it| it.get(NOTE)).collect();
    timed.step(TTL + 1_000);
    is_kept_out(&rivals.rival, &timed.cluster);
    assert_eq!(rivals.holders(), 1);
    assert_eq!(timed.cluster.iter().map(|it| it.get(NOTE)).collect::<Vec<_>>(), notes);
}

/// The hole: keys have expired, and no clock shows why.
#[test]
fn c09_an_unseen_step_forward_and_back_admits_a_rival() {
    let timed = Timed::start(3);
    let rivals = Rivals::of(&timed.cluster);
    timed.step(TTL + 1_000);
    assert!(timed.cluster.iter().all(|it| !it.exists(RESOURCE)));
    timed.step(-TTL - 1_000);
    rivals.both_hold();
}

/// A key lives longer than it should. That is safe, and only causes a line in the log.
#[test]
fn c08_a_clock_set_back_is_only_reported() {
    let timed = Timed::start(3);
    let manager = connected(&timed.cluster);
    everything_works(&manager, RESOURCE);
    let log = manager.log();
    timed.step(-TTL);
    everything_works(&manager, RESOURCE);
    wait_until("all are told of", || {
        everything_works(&manager, RESOURCE);
        let lines = log.lines();
        let is_told = |it: &Server| {
            let words = format!("{}: clock set back by", it.address());
            lines.iter().any(|it| it.1.contains(&words))
        };
        timed.cluster.iter().all(is_told)
    });
    for it in manager.servers() {
        assert!(it.votes && it.words.is_empty(), "{it:?}");
        let (behind_us, around_us) = (-it.clock_offset_us, TTL * 1_000);
        assert!((around_us * 9 / 10..around_us * 11 / 10).contains(&behind_us), "{it:?}");
    }
    assert!(!log.lines().iter().any(|it| it.1.contains(SET_FORWARD)), "{:?}", log.lines());
}

/// The holder itself: its remaining validity is no more than the servers have.
#[test]
fn c08_the_validity_never_exceeds_that_of_the_servers() {
    for is_extended in [false, true] {
        let timed = Timed::start(3);
        let manager = connected(&timed.cluster);
        let lease = manager.take(RESOURCE, TTL);
        timed.cluster.wait_until_everywhere(RESOURCE);
        timed.step(TTL / 2);
        assert!(lease.remaining_ms() > TTL * 9 / 10, "who asks nobody does not know");
        wait_until("it is told", || {
            let status = match is_extended {
                true => manager.extend(&lease, TTL / 10),
                false => manager.confirm(&lease, TTL / 10),
            };
            assert_eq!(status, REDLOCK_OK, "{}", lease.message());
            lease.remaining_ms() <= TTL / 2
        });
        assert!(lease.remaining_ms() > TTL / 4 && lease.is_held(), "{}", lease.remaining_ms());
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        assert!(lease.remaining_ms() > TTL * 9 / 10);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}
