//! How often a lock is tried, and how long the pauses are.

use super::client::Client;
use super::cluster::{Cluster, MS, Trip, Verb};
use super::{QUIET_MS, TTL};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

/// Another client holds "r" for this time.
fn taken_for(ms: i64) -> (Cluster, Client) {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    (0..3).for_each(|it| cluster.put(it, "r", "theirs", ms));
    (cluster, client)
}

/// When the first server was asked for the lock, in milliseconds since `start`.
fn attempts_ms(cluster: &Cluster, start: i64) -> Vec<i64> {
    let deeds = cluster.deeds();
    let asked = deeds.iter().filter(|it| it.verb == Verb::Acquire && it.server == 0);
    // The request is under way for 1 ms.
    asked.map(|it| (it.at - start) / MS - 1).collect()
}

#[test]
fn a_pause_is_between_half_and_one_and_a_half_delays() {
    let (_cluster, client) = taken_for(3_600_000);
    let client = client.tries(500, 200);
    assert_eq!(client.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
    let pauses = client.pauses();
    assert!(pauses.len() == 499 && pauses.iter().all(|it| (100 * MS..300 * MS).contains(it)));
    assert!(pauses.iter().any(|&it| it < 105 * MS));
    assert!(pauses.iter().any(|&it| it >= 295 * MS));
}

#[test]
fn the_bounds_of_a_pause_are_exact() {
    for (number, least, most) in [(0, 100 * MS, 100 * MS), (u64::MAX, 299 * MS, 300 * MS - 1)] {
        let (_cluster, client) = taken_for(3_600_000);
        let client = client.tries(2, 200);
        client.rig(Some(number));
        assert_eq!(client.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
        let pauses = client.pauses();
        assert!(pauses.len() == 1 && (least..=most).contains(&pauses[0]), "{pauses:?}");
    }
}

#[test]
fn the_number_of_tries_and_pauses_is_exact() {
    for count in [1, 2, 3, 10] {
        let (cluster, client) = taken_for(3_600_000);
        let client = client.tries(count, 50);
        for call in [Client::lock, Client::continue_lock] {
            let before = attempts_ms(&cluster, 0).len();
            client.begin_pauses();
            assert_eq!(call(&client, "r", TTL, &mut Lease::new()), Err(Status::Taken));
            cluster.run_ms(10);
            let tries = attempts_ms(&cluster, 0).len() - before;
            let pauses = client.pauses();
            assert_eq!((tries, pauses.len() + 1), (count as usize, tries));
            assert!(pauses.iter().all(|it| (25 * MS..75 * MS).contains(it)), "{pauses:?}");
        }
    }
}

#[test]
fn an_impossible_quorum_is_not_waited_for() {
    for (servers, theirs) in [(2, 1), (3, 2), (4, 2), (5, 3)] {
        let cluster = Cluster::new(servers);
        let client = cluster.client().tries(1, 0).connected();
        (0..theirs).for_each(|it| cluster.put(it, "r", "theirs", TTL));
        (theirs..servers).for_each(|it| cluster.script(client.way(it), [Trip::ms(1, 400)]));
        let start = cluster.now();
        assert_eq!(client.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
        assert_eq!((cluster.now() - start) / MS, 2, "{theirs} of {servers}");
        cluster.run_ms(10);
        assert_eq!(cluster.having_any("r"), theirs);
    }
}

/// The answers of a minority came when nobody waited for them any more. The ends of their connections
/// follow behind these answers.
#[test]
fn a_connection_closed_behind_an_unread_answer_is_replaced() {
    let cluster = Cluster::new(5);
    let client = cluster.client().tries(1, 0).connected();
    let mut lease = client.take("r", TTL);
    (3..5).for_each(|it| cluster.script(client.way(it), [Trip::ms(1, 5)]));
    assert_eq!(client.unlock(&mut lease), Ok(()));
    cluster.run_ms(10);
    (2..5).for_each(|it| cluster.cut(client.way(it), false));
    cluster.run_ms(QUIET_MS);
    client.take("r", TTL);
}

/// A request to the servers that are already connected would be in vain.
#[test]
fn missing_connections_are_made_before_the_request() {
    for servers in [1, 3, 5] {
        let cluster = Cluster::new(servers);
        let client = cluster.client().tries(1, 0).connected();
        (0..cluster.quorum()).for_each(|it| cluster.cut(client.way(it), false));
        cluster.run_ms(QUIET_MS);
        client.take("r", TTL);
    }
}

#[test]
fn slow_or_unreachable_servers_are_retried() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(3, 100).waits_ms(200).connected();
    (0..3).for_each(|it| cluster.script(client.way(it), [Trip::ms(150, 100)]));
    let mut lease = client.take("r", TTL);
    assert_eq!(client.pauses().len(), 1);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    (0..3).for_each(|it| cluster.script(client.way(it), [Trip::ms(1, 99)]));
    client.begin_pauses();
    let lease = client.take("r", 100);
    assert_eq!(client.pauses().len(), 1);
    assert_eq!(lease.validity_ms(), 95);
}

/// A round trip takes 2 ms, so the bound is 8 ms at first. The dice make each pause half of the bound.
#[test]
fn try_lock_pauses_grow_and_a_last_try_follows() {
    let (cluster, client) = taken_for(3_600_000);
    let client = client.tries(1, 300);
    client.rig(Some(1 << 63));
    let start = cluster.now();
    assert_eq!(client.try_lock("r", TTL, 1_000, &mut Lease::new()), Err(Status::Taken));
    assert_eq!(attempts_ms(&cluster, start), [0, 6, 16, 34, 68, 134, 264, 490, 717, 944, 1_000]);
    assert_eq!((cluster.now() - start) / MS, 1_002);
}

/// The servers answer the last try later than its 25 ms. That says nothing of them.
#[test]
fn a_last_try_that_is_cut_short_does_not_hide_the_refusal_before_it() {
    let (cluster, client) = taken_for(3_600_000);
    let client = client.tries(1, 300);
    let slow = [Trip::ms(1, 1), Trip::ms(1, 100)];
    (0..3).for_each(|it| cluster.script(client.way(it), slow));
    let start = cluster.now();
    assert_eq!(client.try_lock("r", TTL, 4, &mut Lease::new()), Err(Status::Taken));
    assert_eq!(attempts_ms(&cluster, start), [0, 4]);
    assert_eq!((cluster.now() - start) / MS, 29);
}

#[test]
fn a_last_try_without_a_quorum_of_servers_is_told() {
    let (cluster, client) = taken_for(3_600_000);
    let client = client.tries(1, 300);
    cluster.after_ms(3, |world| (0..2).for_each(|it| world.kill(it)));
    assert_eq!(client.try_lock("r", TTL, 4, &mut Lease::new()), Err(Status::Unreachable));
}

#[test]
fn the_last_try_may_succeed() {
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
        // Connecting is not cut short either.
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
fn a_later_try_is_cut_short_after_the_wait() {
    let (cluster, client) = taken_for(200);
    let client = client.tries(1, 500);
    // The first pause is almost 0, and the second as long as the remaining time.
    client.rig(Some(0));
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
fn try_lock_with_zero_tries_once_and_negative_forever() {
    let (cluster, client) = taken_for(60_000);
    let client = client.tries(5, 100);
    let start = cluster.now();
    assert_eq!(client.try_lock("r", TTL, 0, &mut Lease::new()), Err(Status::Taken));
    assert_eq!(attempts_ms(&cluster, start), [0]);
    assert_eq!(client.try_lock("r", TTL, -1, &mut Lease::new()), Ok(()));
    assert!(cluster.now() - start >= 59_000 * MS);
}

/// The pauses of TryLock on a lock that is held for a very long time, with this random number.
fn pauses(delay_ms: i32, wait_ms: i64, number: Option<u64>) -> Vec<i64> {
    let (_cluster, client) = taken_for(3_600_000);
    let client = client.tries(1, delay_ms);
    client.rig(number);
    assert_eq!(client.try_lock("r", TTL, wait_ms, &mut Lease::new()), Err(Status::Taken));
    let mut pauses = client.pauses();
    // The last one is cut off by the end of the call.
    pauses.pop();
    pauses
}

/// The pauses are between 0 and the bound, which doubles from four round trips to one and a half of the
/// delay.
#[test]
fn try_lock_pauses_have_full_jitter() {
    const BOUNDS_MS: [i64; 8] = [8, 16, 32, 64, 128, 256, 300, 300];
    assert!(pauses(200, 100, Some(0)).iter().all(|&it| it == 0));
    let longest = pauses(200, 1_500, Some(u64::MAX));
    for (pause, bound_ms) in longest.iter().zip(BOUNDS_MS) {
        assert!((bound_ms * MS - 2..=bound_ms * MS).contains(pause), "{longest:?}");
    }
    let (_cluster, client) = taken_for(3_600_000);
    let mut seen: Vec<Vec<i64>> = Vec::new();
    for _ in 0..100 {
        client.begin_pauses();
        assert_eq!(client.try_lock("r", TTL, 2_000, &mut Lease::new()), Err(Status::Taken));
        seen.push(client.pauses());
    }
    for (nth, bound_ms) in BOUNDS_MS.into_iter().enumerate() {
        // The last one may be cut off.
        let nth: Vec<i64> = seen.iter().filter(|it| nth + 1 < it.len()).map(|it| it[nth]).collect();
        let bound = bound_ms * MS;
        assert!(nth.iter().all(|it| (0..=bound).contains(it)));
        assert!(nth.iter().any(|&it| it < bound / 10), "never short of {bound_ms} ms");
        assert!(nth.iter().any(|&it| it > bound - bound / 10), "never near {bound_ms} ms");
        let mean = nth.iter().sum::<i64>() / nth.len() as i64;
        assert!((bound / 3..bound / 3 * 2).contains(&mean), "{mean} of {bound}");
    }
}

#[test]
fn the_first_bound_is_four_round_trips_or_half_a_ms() {
    for (round_trip_us, bound_us) in [(2_000, 8_000), (500, 2_000), (125, 500), (20, 500)] {
        let (cluster, client) = taken_for(3_600_000);
        let way_ns = round_trip_us * 1_000 / 2;
        cluster.usual(Trip { there: way_ns, back: way_ns, ..Trip::default() });
        client.rig(Some(u64::MAX));
        assert_eq!(client.try_lock("r", TTL, 100, &mut Lease::new()), Err(Status::Taken));
        let first = client.pauses()[0];
        assert!((bound_us * 1_000 - 2..=bound_us * 1_000).contains(&first), "{first}");
    }
}

#[test]
fn a_small_delay_bounds_the_pauses_and_zero_removes_them() {
    let short = pauses(4, 200, Some(u64::MAX));
    assert!(short.len() > 20 && short.iter().all(|it| (6 * MS - 2..=6 * MS).contains(it)));
    let none = pauses(0, 100, Some(u64::MAX));
    // One try after the other, each a round trip of 2 ms.
    assert!(none.len() == 48 && none.iter().all(|&it| it == 0), "{none:?}");
}

/// A waiting client gets the lock a round trip after the keys are gone, however long they lived. It asks no
/// more often than the pauses allow.
#[test]
fn no_pause_exceeds_the_end_of_the_keys() {
    for held_ms in [3, 10, 50, 333, 1_000, 5_000, 60_000] {
        for number in [u64::MAX, 1 << 63] {
            let (cluster, client) = taken_for(held_ms);
            let client = client.tries(1, 1_000_000);
            client.rig(Some(number));
            let (start, gone_at) = (cluster.now(), cluster.now() + held_ms * MS);
            assert_eq!(client.try_lock("r", TTL, 1_000_000, &mut Lease::new()), Ok(()));
            // It asks as early as a clock that is fast by the drift would make it useful. Then it asks for
            // the remaining time in the same way.
            let late = cluster.now() - gone_at;
            assert!((0..=5 * MS).contains(&late), "{held_ms} ms: {late}");
            let asked = attempts_ms(&cluster, start);
            assert!(asked.len() <= 24, "{held_ms} ms: {asked:?}");
        }
    }
}

/// A single lying server does not change that, nor how often the others are asked.
#[test]
fn a_lying_server_does_not_shift_the_end_of_the_keys() {
    for lies_ms in [0, -1, 1, 20, 250, 600_000] {
        for held_ms in [50, 1_000, 5_000, 60_000] {
            let (cluster, client) = taken_for(held_ms);
            cluster.lie(0, lies_ms);
            let client = client.tries(1, 1_000_000);
            client.rig(Some(u64::MAX));
            let gone_at = cluster.now() + held_ms * MS;
            assert_eq!(client.try_lock("r", TTL, 1_000_000, &mut Lease::new()), Ok(()));
            let late = cluster.now() - gone_at;
            assert!((0..=5 * MS).contains(&late), "{lies_ms} ms, {held_ms} ms: {late}");
            let asked = attempts_ms(&cluster, 0).len();
            assert!(asked <= 30, "{lies_ms} ms, {held_ms} ms: {asked}");
        }
    }
}

/// If the other servers are free, or down, only the liar reports how long the key lives.
#[test]
fn a_lying_server_does_not_set_the_pace() {
    for servers in [3, 5] {
        for lies_ms in [0, -1, 1, 20, 250] {
            for (held, down) in [(servers, 0), (servers / 2 + 1, 0), (1, servers / 2)] {
                let cluster = Cluster::new(servers);
                let client = cluster.client().tries(1, 200).connected();
                cluster.lie(0, lies_ms);
                let put = |it| cluster.put(it, "r", "theirs", 3_600_000);
                (1..held).for_each(put);
                (servers - down..servers).for_each(|it| cluster.kill(it));
                let (start, mut lease) = (cluster.now(), Lease::new());
                let status = client.try_lock("r", TTL, 3_000, &mut lease);
                assert_eq!(status, Err(Status::Taken), "{lies_ms} ms, {held} held, {down} down");
                let asked = attempts_ms(&cluster, start).len();
                assert!(asked <= 60, "{lies_ms} ms, {held} held, {down} down: {asked}");
            }
        }
    }
}

/// The servers' clocks may be fast, so the first useful moment is one percent earlier.
#[test]
fn the_end_of_the_keys_allows_for_drift() {
    let (cluster, client) = taken_for(10_000);
    (0..3).for_each(|it| cluster.set_clock(it, 0, 1_009_000));
    // The faster clock has advanced: from here, 10 s are left by the server's clock.
    (0..3).for_each(|it| cluster.put(it, "r", "theirs", 10_000));
    let client = client.tries(1, 1_000_000);
    client.rig(Some(u64::MAX));
    let start = cluster.now();
    assert_eq!(client.try_lock("r", TTL, 1_000_000, &mut Lease::new()), Ok(()));
    let gone_ms = 10_000 * 1_000 / 1_009;
    let took_ms = (cluster.now() - start) / MS;
    assert!((gone_ms..=gone_ms + 8).contains(&took_ms), "{took_ms}");
}

/// Some of the keys expire earlier. The lock can be free when a quorum of servers is free.
#[test]
fn the_end_of_the_keys_is_that_of_a_quorum() {
    let cluster = Cluster::new(5);
    let client = cluster.client().tries(1, 1_000_000).connected();
    client.rig(Some(u64::MAX));
    // Another client is about to hold it on four servers; the last server is free.
    for (server, held_ms) in [(0, 4_000), (1, 1_000), (2, 3_000), (3, 2_000)] {
        cluster.put(server, "r", "theirs", held_ms);
    }
    let start = cluster.now();
    assert_eq!(client.try_lock("r", TTL, 100_000, &mut Lease::new()), Ok(()));
    let took_ms = (cluster.now() - start) / MS;
    assert!((2_000..=2_025).contains(&took_ms), "{took_ms}");
    let asked = attempts_ms(&cluster, start);
    assert!(asked.len() <= 24, "{asked:?}");
}

/// While it changes hands, the client asks often; when one holder keeps it, less and less often.
#[test]
fn a_lock_with_changing_holders_is_asked_for_often() {
    let longest = |every_ms: i64, held_ms: i64| {
        let (cluster, client) = taken_for(held_ms);
        for at_ms in (every_ms..4_000).step_by(every_ms as usize) {
            cluster.after_ms(at_ms, move |world| {
                for server in 0..3 {
                    world.put(server, "r", "another's", held_ms);
                }
            });
        }
        client.rig(Some(u64::MAX));
        assert_eq!(client.try_lock("r", TTL, 4_000, &mut Lease::new()), Err(Status::Taken));
        let pauses = client.pauses();
        *pauses.iter().skip(2).max().expect("many") / MS
    };
    // A new holder at each look.
    assert!((15..=16).contains(&longest(10, 5_000)));
    // One holder for seconds.
    assert_eq!(longest(100_000, 50_000), 299);
    // If each holder keeps it for 500 ms, the client finds a new holder only now and then.
    assert!((64..300).contains(&longest(500, 5_000)));
}

/// The drift in the computation does not make one holder look like another, whatever its size and however
/// long the pauses are.
#[test]
fn drift_does_not_look_like_a_new_holder() {
    for (drift, delay_ms) in [(0.01, 200), (0.1, 200), (0.01, 10_000)] {
        let (_cluster, client) = taken_for(3_600_000);
        client.manager.settings().set_drift(drift).expect("in bounds");
        let client = client.tries(1, delay_ms);
        client.rig(Some(u64::MAX));
        assert_eq!(client.try_lock("r", TTL, 60_000, &mut Lease::new()), Err(Status::Taken));
        let mut pauses = client.pauses();
        pauses.pop();
        assert!(pauses.is_sorted(), "{drift} {delay_ms}: {pauses:?}");
    }
}

/// The same keys seem to live a little longer or shorter, depending on how long requests are under way.
#[test]
fn a_slow_request_does_not_look_like_a_new_holder() {
    let (cluster, client) = taken_for(3_600_000);
    client.rig(Some(u64::MAX));
    for server in 0..3 {
        let trips = (0..1_000).map(|nth| Trip::ms(1 + nth % 3, 1));
        cluster.script(client.way(server), trips);
    }
    assert_eq!(client.try_lock("r", TTL, 4_000, &mut Lease::new()), Err(Status::Taken));
    let pauses = client.pauses();
    assert!(pauses.iter().any(|it| *it > 290 * MS), "{pauses:?}");
}

/// A server that refused a caller needs no release. That saves one request for each poll.
#[test]
fn refusing_servers_get_no_release() {
    let (cluster, client) = taken_for(3_600_000);
    assert_eq!(client.try_lock("r", TTL, 1_000, &mut Lease::new()), Err(Status::Taken));
    cluster.run_ms(10);
    let deeds = cluster.deeds();
    let released = deeds.iter().filter(|it| it.verb == Verb::Release);
    // The client did not wait for the reply of the third server.
    assert!(released.filter(|it| it.server < 2).count() == 0);
}

/// Servers that refuse connections do so at once. Without a pause this would use a whole processor.
#[test]
fn a_zero_delay_still_pauses_for_dead_servers() {
    let cluster = Cluster::new(3);
    (0..3).for_each(|it| cluster.kill(it));
    let client = cluster.client().tries(1, 0);
    let unreachable = Err(Status::Unreachable);
    assert_eq!(client.try_lock("r", TTL, 1_000, &mut Lease::new()), unreachable);
    // It waits a few times in each pause, for connections, too.
    assert!((50..1_500).contains(&client.polls()), "{}", client.polls());
}

/// Two of five servers have granted it, two belong to another client, and one is frozen. The partial grants
/// keep others out.
#[test]
fn a_divided_attempt_does_not_wait_for_a_frozen_server() {
    const FROZEN: usize = 4;
    for (wait_ms, released_ms) in [(10_000, 23..=30), (0, 501..=510)] {
        let cluster = Cluster::new(5);
        let client = cluster.client().connected();
        (2..4).for_each(|it| cluster.put(it, "r", "theirs", 3_600_000));
        cluster.freeze(FROZEN);
        let start = cluster.now();
        let _ = client.try_lock("r", TTL, wait_ms, &mut Lease::new());
        cluster.run_ms(10);
        let deeds = cluster.deeds();
        let released = deeds.iter().find(|it| it.verb == Verb::Release && it.server == 0);
        let ms = (released.expect("it was granted").at - start) / MS;
        assert!(released_ms.contains(&ms), "with {wait_ms} ms: after {ms} ms");
    }
}

/// If the server is not frozen but slow, the client waits for it after a few tries.
#[test]
fn a_divided_attempt_gives_a_slow_server_more_time_each_try() {
    const SLOW: usize = 4;
    let cluster = Cluster::new(5);
    let client = cluster.client().connected();
    (2..4).for_each(|it| cluster.put(it, "r", "theirs", 3_600_000));
    cluster.script(client.way(SLOW), std::iter::repeat_n(Trip::ms(1, 100), 50));
    assert_eq!(client.try_lock("r", TTL, 10_000, &mut Lease::new()), Ok(()));
}

/// Servers that are 50 ms away always take 100 ms, and get more time than that.
#[test]
fn a_divided_attempt_gives_distant_servers_their_time() {
    let cluster = Cluster::new(5);
    cluster.usual(Trip::ms(50, 50));
    let client = cluster.client().connected();
    cluster.put(4, "r", "theirs", 3_600_000);
    // More than 20 ms later than the others.
    let far = Trip::ms(60, 65);
    (2..4).for_each(|it| cluster.script(client.way(it), [far]));
    let start = cluster.now();
    assert_eq!(client.try_lock("r", TTL, 10_000, &mut Lease::new()), Ok(()));
    assert_eq!((cluster.now() - start) / MS, 125, "at the first try");
}
