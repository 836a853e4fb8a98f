//! A failed attempt leaves nothing behind, whatever was under way.

use super::RETRY_GAP_MS;
use super::client::token;
use super::cluster::{Cluster, Fault, MS, Trip, Verb};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

/// So long that no key expires by itself.
const LONG: i64 = 100_000;

#[test]
fn late_grants_are_undone_in_any_order() {
    let trips = [(1, 1), (1, 60), (60, 1), (40, 40), (700, 1), (1, 900)];
    for servers in [1, 2, 3] {
        for code in 0..trips.len().pow(servers) {
            for theirs in 0..servers as usize {
                let cluster = Cluster::new(servers as usize);
                let client = cluster.client().tries(3, 30).waits_ms(50).connected();
                for (server, position) in (0..servers).enumerate() {
                    let (there, back) = trips[code / trips.len().pow(position) % trips.len()];
                    cluster.script(client.way(server), [Trip::ms(there, back)]);
                }
                (0..theirs).for_each(|it| cluster.put(it, "r", "theirs", 20));
                let mut lease = Lease::new();
                match client.lock("r", LONG, &mut lease) {
                    Ok(()) => assert_eq!(client.unlock(&mut lease), Ok(())),
                    Err(_) => assert_eq!(lease.token(), None),
                }
                cluster.run_ms(2_000);
                assert_eq!(cluster.having_any("r"), 0, "{servers} servers, {code}, {theirs}");
            }
        }
    }
}

#[test]
fn every_attempt_has_its_own_token() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(20, 10).connected();
    (0..3).for_each(|it| cluster.put(it, "r", "theirs", LONG));
    assert_eq!(client.lock("r", LONG, &mut Lease::new()), Err(Status::Taken));
    let deeds = cluster.deeds();
    let acquires = deeds.iter().filter(|it| it.verb == Verb::Acquire && it.server == 0);
    let mut tokens: Vec<_> = acquires.map(|it| it.token.as_str()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 20);
}

#[test]
fn a_late_release_spares_the_next_attempt() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(2, 400).connected();
    client.rig(Some(0));
    (1..3).for_each(|it| cluster.put(it, "r", "theirs", 50));
    // The release of the first attempt is under way for a long time, on a connection that breaks.
    cluster.script(client.way(0), [Trip::default(), Trip::ms(500, 1)]);
    let way = client.way(0);
    cluster.after_ms(50, move |world| world.cut(way, false));
    let lease = client.take("r", LONG);
    cluster.run_ms(1_000);
    let deeds = cluster.deeds();
    let acquired = deeds.iter().filter(|it| it.verb == Verb::Acquire).map(|it| it.at).max();
    let released = deeds.iter().filter(|it| it.verb == Verb::Release).map(|it| it.at).max();
    assert!(released > acquired, "it is as it was meant to be");
    assert_eq!(cluster.having("r", &token(&lease)), 3);
}

#[test]
fn an_error_does_not_prove_that_no_key_was_set() {
    for others in [Fault::ErrorAfter, Fault::ErrorInstead] {
        let cluster = Cluster::new(3);
        let client = cluster.client().tries(1, 0).connected();
        cluster.script(client.way(0), [Trip::failing(Fault::ErrorAfter)]);
        cluster.script(client.way(1), [Trip::failing(others)]);
        assert_eq!(client.lock("r", LONG, &mut Lease::new()), Err(Status::Unreachable));
        cluster.run_ms(10);
        assert_eq!(cluster.having_any("r"), 0);
    }
}

#[test]
fn a_refusal_does_not_prove_that_no_key_was_set() {
    let cluster = Cluster::new(5);
    let client = cluster.client().tries(1, 0).connected();
    cluster.script(client.way(0), [Trip::failing(Fault::ErrorAfter)]);
    cluster.script(client.way(1), [Trip::ms(400, 1)]);
    (2..5).for_each(|it| cluster.put(it, "r", "theirs", LONG));
    assert_eq!(client.lock("r", LONG, &mut Lease::new()), Err(Status::Taken));
    cluster.run_ms(1_000);
    assert_eq!(cluster.having("r", "theirs"), 3);
    assert_eq!(cluster.having_any("r"), 3);
}

/// It does not go to a server that was not asked, nor to a server that reported another client's key.
#[test]
fn a_release_goes_only_to_possible_grants() {
    let cluster = Cluster::new(5);
    cluster.kill(4);
    let client = cluster.client().tries(1, 0);
    cluster.put(2, "r", "theirs", LONG);
    cluster.script(client.way(1), [Trip::failing(Fault::ErrorInstead)]);
    assert_ne!(client.lock("r", LONG, &mut Lease::new()), Ok(()));
    cluster.start(4);
    cluster.run_ms(RETRY_GAP_MS);
    client.connect_to_all();
    cluster.run_ms(10);
    let deeds = cluster.deeds();
    let released = deeds.iter().filter(|it| it.verb == Verb::Release).map(|it| it.server);
    assert_eq!(released.collect::<Vec<_>>(), [0, 1, 3]);
}

#[test]
fn a_lost_connection_swallows_no_release() {
    for is_swallowed in [true, false] {
        // The connection is lost after the acquire, or after the release.
        for lost_ms in [10, 70] {
            let cluster = Cluster::new(3);
            let client = cluster.client().tries(1, 0).waits_ms(50).connected();
            for server in 0..3 {
                let way = client.way(server);
                cluster.script(way, [Trip::ms(1, 500), Trip::ms(30, 1)]);
                cluster.after_ms(lost_ms, move |world| world.cut(way, is_swallowed));
            }
            let said = client.lock("r", LONG, &mut Lease::new());
            assert_eq!(said, Err(Status::Unreachable));
            cluster.run_ms(100);
            client.connect_to_all();
            cluster.run_ms(100);
            assert_eq!(cluster.having_any("r"), 0, "{is_swallowed} {lost_ms}");
        }
    }
}

#[test]
fn an_acquire_is_never_sent_twice() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(5, 100).connected();
    for server in 0..3 {
        let way = client.way(server);
        cluster.script(way, [Trip::ms(100, 1)]);
        cluster.after_ms(20, move |world| world.cut(way, true));
        cluster.after_ms(60, move |world| world.cut(way, true));
    }
    let lease = client.take("r", LONG);
    cluster.run_until(cluster.now() + 1_000 * MS);
    let deeds = cluster.deeds();
    for server in 0..3 {
        let here = deeds.iter().filter(|it| it.server == server);
        let mut tokens: Vec<_> =
            here.filter(|it| it.verb == Verb::Acquire).map(|it| it.token.as_str()).collect();
        let count = tokens.len();
        tokens.dedup();
        assert_eq!(tokens.len(), count);
        assert_eq!(tokens.last().copied(), lease.token());
    }
}

/// A quorum is connected at once, and the lock would be granted before the third server is connected.
#[test]
fn a_server_that_is_being_connected_is_asked_too() {
    let cluster = Cluster::new(3);
    cluster.usual(Trip { there: MS / 4, ..Trip::ms(0, 0) });
    cluster.freeze(2);
    cluster.after_ms(2, |world| world.thaw(2));
    let lease = cluster.client().take("r", LONG);
    cluster.run_ms(10);
    assert_eq!(cluster.having("r", &token(&lease)), 3);
}

#[test]
fn connecting_waits_for_the_rest_as_long_as_for_the_quorum() {
    let cluster = Cluster::new(3);
    (1..3).for_each(|it| cluster.freeze(it));
    cluster.after_ms(700, |world| world.thaw(1));
    cluster.after_ms(1_300, |world| world.thaw(2));
    cluster.client().connect_to_all();
}
