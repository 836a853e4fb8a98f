//! Extending a lock: only one's own lock, only in time, and never to a shorter time.

use std::cell::Cell;
use std::rc::Rc;

use super::client::{Client, token};
use super::cluster::{Cluster, MS, Trip, Verb};
use super::history::is_borne_out;
use super::{QUIET_MS, RETRY_GAP_MS, TTL, VALID};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

/// So long that no key expires by itself.
const LONG: i64 = 1_000_000;

/// A lock on all of this number of servers, and when it ends.
fn locked(servers: usize) -> (Cluster, Client, Lease, i64) {
    let cluster = Cluster::new(servers);
    let client = cluster.client().waits_ms(1_500).connected();
    let lease = client.take("r", TTL);
    let end = client.end_of(&lease);
    cluster.run_ms(1);
    assert_eq!(cluster.having("r", &token(&lease)), servers);
    (cluster, client, lease, end)
}

#[test]
fn a_quorum_before_the_expiry_extends() {
    let (cluster, client, mut lease, end) = locked(3);
    for _ in 0..100 {
        cluster.run_ms(TTL / 2);
        let start = cluster.now();
        assert_eq!(client.extend(&mut lease, TTL), Ok(()));
        assert_eq!(client.end_of(&lease), start + VALID * MS);
        assert!(is_borne_out(*cluster, &client, &lease));
    }
    assert!(cluster.now() > end);
}

#[test]
fn a_quorum_after_the_expiry_leaves_nothing() {
    for (late_ns, expected) in [
        (-1, Ok(())),
        (0, Err(Status::Lost)),
        (1, Err(Status::Lost)),
        (200 * MS, Err(Status::Lost)),
    ] {
        let (cluster, client, mut lease, end) = locked(3);
        cluster.run_until(end - 1_000 * MS);
        let slow = Trip { there: 500 * MS, back: 500 * MS + late_ns, ..Trip::default() };
        (0..2).for_each(|it| cluster.script(client.way(it), [slow]));
        assert_eq!(client.extend(&mut lease, TTL), expected);
        assert!(cluster.now() <= end, "it does not wait for what cannot help");
        assert_eq!(lease.token().is_some(), expected.is_ok());
        cluster.run_ms(1_000);
        assert_eq!(cluster.having_any("r"), if expected.is_ok() { 3 } else { 0 });
    }
}

#[test]
fn after_the_expiry_no_server_is_asked() {
    let (cluster, client, mut lease, end) = locked(3);
    // The servers' clocks are slower than the client's, so they still have it.
    (0..3).for_each(|it| cluster.step_clock(it, -5_000));
    cluster.run_until(end);
    assert_eq!(cluster.having("r", &token(&lease)), 3);
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
    assert_eq!(lease.token(), None);
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
    let deeds = cluster.deeds();
    assert!(!deeds.iter().any(|it| it.verb == Verb::Extend));
}

#[test]
fn the_expiry_never_comes_nearer() {
    let (cluster, client, mut lease, _) = locked(3);
    let start = cluster.now();
    assert_eq!(client.extend(&mut lease, 3 * TTL), Ok(()));
    let end = client.end_of(&lease);
    for ttl_ms in [1_000, TTL, 2 * TTL] {
        assert_eq!(client.extend(&mut lease, ttl_ms), Ok(()));
        assert!(client.end_of(&lease) >= end - MS);
        assert!(is_borne_out(*cluster, &client, &lease), "the servers shorten nothing either");
    }
    cluster.run_until(end - 1);
    assert!(client.still_holds(&mut lease));
    assert_eq!(cluster.having("r", &token(&lease)), 3);
    assert_eq!(end, start + (3 * TTL - 3 * TTL / 100 - 2) * MS);
}

#[test]
fn a_longer_ttl_on_few_servers_is_not_shortened() {
    let (cluster, client, mut lease, _) = locked(3);
    cluster.freeze(1);
    cluster.freeze(2);
    assert_eq!(client.extend(&mut lease, 3 * TTL), Err(Status::Unreachable));
    cluster.thaw(1);
    cluster.thaw(2);
    cluster.run_ms(10);
    let kept_until = cluster.kept_until("r", &token(&lease));
    assert_eq!(client.extend(&mut lease, 2 * TTL), Ok(()));
    assert_eq!(cluster.kept_until("r", &token(&lease)), kept_until);
}

/// A request that was sent over a lost connection may be executed after a request over the next connection.
#[test]
fn a_late_extension_shortens_nothing() {
    let (cluster, client, mut lease, _) = locked(3);
    for server in 0..3 {
        let way = client.way(server);
        cluster.script(way, [Trip::ms(500, 1)]);
        cluster.after_ms(100, move |world| world.cut(way, false));
    }
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Unreachable));
    assert_eq!(client.extend(&mut lease, 3 * TTL), Ok(()));
    let end = client.end_of(&lease);
    cluster.run_ms(1_000);
    assert!(end <= cluster.kept_until("r", &token(&lease)));
}

#[test]
fn a_repaired_key_is_no_vote_in_its_round() {
    for (servers, gone) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
        let (cluster, client, mut lease, _) = locked(servers);
        cluster.lose(0..gone, "r");
        assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost), "{gone} of {servers}");
        assert_eq!(lease.token(), None);
        cluster.run_ms(10);
        assert_eq!(cluster.having_any("r"), 0, "{gone} of {servers}");
    }
}

#[test]
fn a_repaired_key_is_a_vote_after_a_later_round() {
    let (cluster, client, mut lease, _) = locked(3);
    for gone in [0, 1, 2, 0] {
        cluster.lose([gone], "r");
        // The first extension finds that the key is gone. The second at the latest sets the key again. The
        // third shows that nobody else can have had it.
        for _ in 0..3 {
            assert_eq!(client.extend(&mut lease, TTL), Ok(()));
            cluster.run_ms(10);
            assert!(is_borne_out(*cluster, &client, &lease));
        }
        assert_eq!(cluster.having("r", &token(&lease)), 3);
    }
}

/// The third server has the key again. But this was heard when the second server had lost it, perhaps to
/// another client.
#[test]
fn a_repaired_key_is_no_vote_before_a_later_round() {
    let (cluster, client, mut lease, _) = locked(3);
    cluster.lose([0], "r");
    assert_eq!(client.extend(&mut lease, TTL), Ok(()));
    cluster.run_ms(10);
    assert_eq!(cluster.having("r", &token(&lease)), 3);
    cluster.lose([1], "r");
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

/// The third server's answer to the manager that took the lock is under way for a long time. Meanwhile
/// another manager hears that the server has lost the key, and sends the key again. The old answer is not
/// an answer to that repair: when the key is set, another client has had the lock.
#[test]
fn a_late_grant_is_not_taken_for_a_repair() {
    let cluster = Cluster::new(3);
    let (client, other) = (cluster.client().connected(), cluster.client().connected());
    let rival = cluster.client().connected();
    cluster.script(client.way(2), [Trip::ms(1, 300)]);
    let mut lease = client.take("r", LONG);
    assert_eq!(other.extend(&mut lease, LONG), Ok(()));
    cluster.lose([2], "r");
    cluster.script(other.way(2), [Trip::ms(1, 1), Trip::ms(2_000, 1)]);
    cluster.script(other.way(1), [Trip::ms(10, 1)]);
    assert_eq!(other.extend(&mut lease, LONG), Ok(()));
    cluster.run_ms(400);
    // It reads the data that has arrived.
    assert_eq!(client.is_locked("another"), Ok(false));
    let has_repaired = || cluster.having("r", &token(&lease)) == 3;
    assert!(!has_repaired(), "the key was sent too soon, so this shows nothing");
    cluster.script(client.way(2), [Trip::ms(5_000, 1)]);
    assert_eq!(client.confirm(&mut lease.clone(), 0), Ok(()));
    cluster.lose([1], "r");
    let theirs = rival.take("r", TTL);
    assert_eq!(cluster.having("r", &token(&theirs)), 2);
    assert_eq!(rival.unlock(&mut theirs.clone()), Ok(()));
    cluster.run_ms(2_000);
    assert_eq!(cluster.having("r", &token(&lease)), 2, "the key is not set, so this shows nothing");
    assert_eq!(other.extend(&mut lease, LONG), Err(Status::Lost));
}

/// The server's connection ends between its answer and the end of the extension, so the repair has no
/// connection.
#[test]
fn an_unsent_repair_is_sent_with_a_later_extension() {
    let (cluster, client, mut lease, _) = locked(3);
    cluster.lose([0], "r");
    for server in 1..3 {
        cluster.script(client.way(server), [Trip::ms(1, 10)]);
    }
    let way = client.way(0);
    cluster.after_ms(6, move |world| world.cut(way, false));
    assert_eq!(client.extend(&mut lease, TTL), Ok(()));
    cluster.run_ms(50);
    assert_eq!(
        cluster.having("r", &token(&lease)),
        2,
        "the repair was sent, so this shows nothing"
    );
    client.connect_to_all();
    for _ in 0..2 {
        assert_eq!(client.extend(&mut lease, TTL), Ok(()));
        cluster.run_ms(10);
    }
    assert_eq!(cluster.having("r", &token(&lease)), 3);
}

/// The server was down when the lock was taken, so only the repair can have set the key there.
#[test]
fn a_repaired_server_gets_the_release_too() {
    let cluster = Cluster::new(3);
    let client = cluster.client().waits_ms(1_500).connected();
    cluster.kill(0);
    cluster.run_ms(QUIET_MS);
    let mut lease = client.take("r", TTL);
    cluster.start(0);
    cluster.run_ms(RETRY_GAP_MS);
    client.connect_to_all();
    for _ in 0..2 {
        assert_eq!(client.extend(&mut lease, TTL), Ok(()));
        cluster.run_ms(10);
    }
    assert_eq!(cluster.having("r", &token(&lease)), 3);
    // The release is swallowed there, and sent over the next connection.
    let way = client.way(0);
    cluster.script(way, [Trip::ms(5, 5)]);
    cluster.after_ms(1, move |world| world.cut(way, true));
    assert_eq!(client.unlock(&mut lease), Ok(()));
    cluster.run_ms(10);
    client.connect_to_all();
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

/// A client that loses a lock on a quorum, server by server, has lost it. The fact that the key is there
/// again does not mean that nobody else had the lock meanwhile.
#[test]
fn a_repaired_key_needs_a_quorum_of_others() {
    let (cluster, client, mut lease, _) = locked(3);
    cluster.kill(0);
    cluster.lose([1], "r");
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Unreachable));
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Unreachable));
    assert_eq!(client.confirm(&mut lease, 0), Err(Status::Unreachable));
    assert!(client.still_holds(&mut lease));
    assert_eq!(cluster.having("r", &token(&lease)), 2, "an extension sets no key");
    cluster.start(0);
    cluster.run_ms(RETRY_GAP_MS);
    client.connect_to_all();
    for words in ["the first had it all the time", "so the second is given it", "and trusted again"]
    {
        assert_eq!(client.extend(&mut lease, TTL), Ok(()), "{words}");
        cluster.run_ms(10);
    }
    cluster.kill(0);
    assert_eq!(client.extend(&mut lease, TTL), Ok(()), "the second and the third");
    cluster.lose([1], "r");
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Unreachable));
    cluster.start(0);
    cluster.lose([0], "r");
    cluster.run_ms(RETRY_GAP_MS);
    client.connect_to_all();
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

/// The answer of a silent server comes when nobody waits for it, and is noted.
#[test]
fn a_late_report_of_a_missing_key_counts() {
    for asks in [Client::extend, |it: &Client, lease: &mut Lease, _| it.confirm(lease, 0)] {
        let (cluster, client, mut lease, _) = locked(3);
        cluster.freeze(0);
        cluster.lose([0, 1], "r");
        assert_eq!(client.extend(&mut lease, TTL), Err(Status::Unreachable));
        cluster.thaw(0);
        cluster.run_ms(10);
        assert_eq!(cluster.having("r", &token(&lease)), 1, "an extension sets no key");
        assert_eq!(asks(&client, &mut lease, TTL), Err(Status::Lost));
        assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
    }
}

#[test]
fn a_lock_with_a_new_holder_is_lost_and_theirs_stays() {
    let (cluster, client, mut lease, _) = locked(3);
    (0..2).for_each(|it| cluster.put(it, "r", "theirs", TTL));
    let kept_until = cluster.kept_until("r", "theirs");
    assert_eq!(client.extend(&mut lease, 3 * TTL), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!((cluster.having("r", "theirs"), cluster.having_any("r")), (2, 2));
    assert_eq!(cluster.kept_until("r", "theirs"), kept_until);
}

#[test]
fn among_silent_servers_a_lock_is_held_until_it_expires() {
    let (cluster, client, mut lease, end) = locked(3);
    cluster.freeze(0);
    cluster.freeze(1);
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Unreachable));
    cluster.run_until(end - 1);
    assert!(client.still_holds(&mut lease));
    cluster.run_until(end);
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
    assert_eq!(lease.token(), None);
    // The requests that they got meanwhile are undone when they continue.
    cluster.thaw(0);
    cluster.thaw(1);
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn a_silent_server_may_still_have_the_lock() {
    let (cluster, client, mut lease, _) = locked(3);
    cluster.freeze(0);
    cluster.lose([1], "r");
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Unreachable));
    assert!(client.still_holds(&mut lease));
    cluster.thaw(0);
    cluster.run_ms(10);
    assert_eq!(client.extend(&mut lease, TTL), Ok(()));
    assert_eq!(client.unlock(&mut lease), Ok(()));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

/// Two handles of one lock, on the first two of three servers that are all connected.
fn two_handles() -> (Cluster, Rc<Client>, Lease, Lease) {
    let cluster = Cluster::new(3);
    let client = Rc::new(cluster.client().waits_ms(100));
    cluster.kill(2);
    let (mut first, mut second) = (Lease::new(), Lease::new());
    assert_eq!(client.continue_lock("r", LONG, &mut first), Ok(()));
    assert_eq!(client.continue_lock("r", LONG, &mut second), Ok(()));
    cluster.start(2);
    cluster.run_ms(RETRY_GAP_MS);
    client.connect_to_all();
    (cluster, client, first, second)
}

/// Releases one handle while the other is being extended.
fn unlock_after(cluster: &Cluster, client: &Rc<Client>, mut lease: Lease, ns: i64) {
    let client = Rc::clone(client);
    cluster.at(cluster.now() + ns, move |_| {
        let said = client.unlock(&mut lease);
        assert!(said == Ok(()) || said == Err(Status::Unreachable), "{said:?}");
    });
}

#[test]
fn a_release_during_an_extension_leaves_nothing() {
    for silent in 0..=2 {
        for unlocked_ms in 0..=2 {
            for is_cut in [false, true] {
                let (cluster, client, first, mut second) = two_handles();
                (3 - silent..3).for_each(|it| cluster.script(client.way(it), [Trip::ms(1, 200)]));
                unlock_after(&cluster, &client, first, unlocked_ms * MS);
                let way = client.way(2);
                if is_cut {
                    // The extension has arrived by then, and the release has not.
                    let at = cluster.now() + (unlocked_ms.max(1) * MS) + MS / 2;
                    cluster.at(at, move |world| world.cut(way, true));
                }
                assert_eq!(client.extend(&mut second, LONG), Err(Status::Lost));
                cluster.run_ms(1_000);
                client.connect_to_all();
                cluster.run_ms(10);
                let words = format!("{silent} silent, after {unlocked_ms} ms, {is_cut}");
                assert_eq!(cluster.having_any("r"), 0, "{words}");
            }
        }
    }
}

#[test]
fn a_release_before_an_extension_is_not_undone() {
    for nth in 1.. {
        let (cluster, client, first, mut second) = two_handles();
        client.stall_once(nth, MS);
        unlock_after(&cluster, &client, first, MS / 2);
        let _ = client.extend(&mut second, LONG);
        let has_stalled = client.has_stalled();
        cluster.run_ms(1_000);
        assert_eq!(cluster.having_any("r"), 0, "at look {nth}");
        if !has_stalled {
            break;
        }
    }
}

#[test]
fn an_extension_by_another_handle_saves_the_lock() {
    let mut count = 0;
    for nth in 1.. {
        let (cluster, client, mut first, mut second) = two_handles();
        let end = cluster.now() + second.remaining_ms() * MS;
        cluster.run_until(end - 20 * MS);
        client.stall_once(nth, 40 * MS);
        let other = Rc::clone(&client);
        let extended = Rc::<Cell<bool>>::default();
        let is_extended = Rc::clone(&extended);
        cluster.at(cluster.now() + 5 * MS, move |_| {
            is_extended.set(other.extend(&mut first, LONG) == Ok(()));
        });
        let said = client.extend(&mut second, LONG);
        let has_stalled = client.has_stalled();
        cluster.run_ms(10);
        // Otherwise it was held up, too.
        if extended.get() {
            assert!(said != Err(Status::Lost) && client.still_holds(&mut second), "at look {nth}");
            count += 1;
        }
        if !has_stalled {
            break;
        }
    }
    assert!(count >= 3, "{count}");
}
