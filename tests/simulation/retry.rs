//! How often a lock is tried for, and how long the pauses are.

use redlock::transport::command::Verb;
use redlock::{Lease, Status};

use crate::TTL;
use crate::client::Client;
use crate::link::Trip;
use crate::world::{Cluster, MS};

/// Somebody else has "r" for so long.
fn taken_for(ms: i64) -> (Cluster, Client) {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    (0..3).for_each(|it| cluster.server(it).put("r", "theirs", ms, cluster.now()));
    (cluster, client)
}

/// When the first server was asked for the lock, in milliseconds since then.
fn attempts_ms(cluster: &Cluster, start: i64) -> Vec<i64> {
    let deeds = cluster.deeds.borrow();
    let asked = deeds.iter().filter(|it| it.verb == Verb::Acquire && it.way.server == 0);
    // It is under way for 1 ms.
    asked.map(|it| (it.at - start) / MS - 1).collect()
}

#[test]
fn a_pause_is_from_a_half_to_one_and_a_half_of_the_delay() {
    let (cluster, client) = taken_for(3_600_000);
    let client = client.tries(500, 200);
    assert_eq!(client.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
    let peer = cluster.peer(client.me);
    assert!(peer.pauses.iter().all(|it| (100 * MS..300 * MS).contains(it)));
    assert!(peer.pauses.iter().any(|&it| it < 105 * MS));
    assert!(peer.pauses.iter().any(|&it| it >= 295 * MS));
}

#[test]
fn the_bounds_of_a_pause_are_those() {
    for (number, least, most) in [(0, 100 * MS, 100 * MS), (u64::MAX, 299 * MS, 300 * MS - 1)] {
        let (cluster, client) = taken_for(3_600_000);
        let client = client.tries(2, 200);
        client.rigged.set(Some(number));
        assert_eq!(client.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
        let pauses = &cluster.peer(client.me).pauses;
        assert!(pauses.len() == 1 && (least..=most).contains(&pauses[0]), "{pauses:?}");
    }
}

#[test]
fn there_are_as_many_tries_as_were_asked_for_and_a_pause_between_two() {
    for count in [1, 2, 3, 10] {
        let (cluster, client) = taken_for(3_600_000);
        let client = client.tries(count, 50);
        for call in [Client::lock, Client::continue_lock] {
            let before = attempts_ms(&cluster, 0).len();
            cluster.peer(client.me).pauses.clear();
            assert_eq!(call(&client, "r", TTL, &mut Lease::new()), Err(Status::Taken));
            cluster.run_ms(10);
            let tries = attempts_ms(&cluster, 0).len() - before;
            assert_eq!((tries, cluster.peer(client.me).pauses.len() + 1), (count as usize, tries));
        }
    }
}

#[test]
fn what_is_out_of_reach_is_not_waited_for_and_a_tie_is_that() {
    for (servers, theirs) in [(2, 1), (3, 2), (4, 2), (5, 3)] {
        let cluster = Cluster::new(servers);
        let client = cluster.client().tries(1, 0).connected();
        (0..theirs).for_each(|it| cluster.server(it).put("r", "theirs", TTL, cluster.now()));
        (theirs..servers).for_each(|it| cluster.script(client.way(it), [Trip::ms(1, 400)]));
        let start = cluster.now();
        assert_eq!(client.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
        assert_eq!((cluster.now() - start) / MS, 2, "{theirs} of {servers}");
        cluster.run_ms(10);
        assert_eq!(cluster.having_any("r"), theirs);
    }
}

#[test]
fn what_is_too_slow_or_unreachable_is_tried_again() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(3, 100).waits_ms(200).connected();
    (0..3).for_each(|it| cluster.script(client.way(it), [Trip::ms(150, 100)]));
    let mut lease = client.take("r", TTL);
    assert_eq!(cluster.peer(client.me).pauses.len(), 1);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    (0..3).for_each(|it| cluster.script(client.way(it), [Trip::ms(1, 99)]));
    let lease = client.take("r", 100);
    assert_eq!(cluster.peer(client.me).pauses.len(), 2);
    assert_eq!(lease.validity_ms(), 95);
}

/// A round trip takes 2 ms, so the bound is 8 ms at first; the dice make each pause half of it.
#[test]
fn try_lock_pauses_longer_and_longer_and_tries_once_more_at_the_end() {
    let (cluster, client) = taken_for(3_600_000);
    let client = client.tries(1, 300);
    client.rigged.set(Some(1 << 63));
    let start = cluster.now();
    assert_eq!(client.try_lock("r", TTL, 1_000, &mut Lease::new()), Err(Status::Taken));
    assert_eq!(attempts_ms(&cluster, start), [0, 6, 16, 34, 68, 134, 264, 490, 717, 944, 1_000]);
    assert_eq!((cluster.now() - start) / MS, 1_002);
}

#[test]
fn the_try_at_the_end_may_succeed() {
    let (cluster, client) = taken_for(900);
    let client = client.tries(1, 10_000);
    let mut lease = Lease::new();
    assert_eq!(client.try_lock("r", TTL, 1_000, &mut lease), Ok(()));
    assert_eq!(cluster.having_any("r"), 3);
}

#[test]
fn the_first_try_is_not_cut_short() {
    let cluster = Cluster::new(3);
    for wait_ms in [0, 1, 10] {
        // Nor is the connecting.
        cluster.freeze(0);
        cluster.freeze(1);
        cluster.after_ms(300, |world| {
            world.thaw(0);
            world.thaw(1);
        });
        let client = cluster.client();
        (0..3).for_each(|it| cluster.script(client.way(it), [Trip::ms(200, 200)]));
        let mut lease = Lease::new();
        assert_eq!(client.try_lock("r", TTL, wait_ms, &mut lease), Ok(()));
        assert_eq!(client.unlock(&mut lease), Ok(()));
        cluster.run_ms(10);
    }
}

#[test]
fn a_later_try_is_cut_short_soon_after_the_end() {
    let (cluster, client) = taken_for(200);
    let client = client.tries(1, 500);
    // The first pause is as good as none, and the second as long as what is left.
    client.rigged.set(Some(0));
    (0..3).for_each(|it| cluster.script(client.way(it), [Trip::default(), Trip::ms(500, 400)]));
    let start = cluster.now();
    let mut lease = Lease::new();
    assert_eq!(client.try_lock("r", TTL, 600, &mut lease), Err(Status::Unreachable));
    assert!(
        (600 * MS..650 * MS).contains(&(cluster.now() - start)),
        "{}",
        (cluster.now() - start) / MS
    );
    cluster.run_ms(1_000);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn try_lock_without_wait_is_one_try_and_with_a_negative_one_it_never_ends() {
    let (cluster, client) = taken_for(60_000);
    let client = client.tries(5, 100);
    let start = cluster.now();
    assert_eq!(client.try_lock("r", TTL, 0, &mut Lease::new()), Err(Status::Taken));
    assert_eq!(attempts_ms(&cluster, start), [0]);
    assert_eq!(client.try_lock("r", TTL, -1, &mut Lease::new()), Ok(()));
    assert!(cluster.now() - start >= 59_000 * MS);
}
