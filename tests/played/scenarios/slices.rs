//! A wait in slices, as interpreters make it that cannot react to anything within a call.

use super::TTL;
use super::client::{Client, Said};
use super::cluster::{Cluster, MS, Verb};
use super::crowd::{Crowd, LONG, waits, waits_in_slices};
use super::processes::{LINE, has_until, nothing_is_left, processes};
use crate::error::Status;
use crate::lease::Lease;

const TAKEN: Said = Err(Status::Taken);
const SLICE: i64 = 250;

/// Another client holds "r" for this time. The pauses are the longest possible ones, or half of that.
fn taken_for(ms: i64, rigged: u64) -> (Cluster, Client) {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    client.rig(Some(rigged));
    (0..3).for_each(|it| cluster.put(it, "r", "theirs", ms));
    (cluster, client)
}

/// When the first server was asked for the lock, in milliseconds since `start`, less one way.
fn asked_ms(cluster: &Cluster, start: i64) -> Vec<i64> {
    let deeds = cluster.deeds();
    let asked = deeds.iter().filter(|it| it.verb == Verb::Acquire && it.server == 0);
    asked.map(|it| (it.at - start) / MS - 1).collect()
}

#[test]
fn a_sliced_wait_asks_when_a_whole_one_does() {
    for rigged in [u64::MAX, 1 << 63, 1 << 61] {
        for wait_ms in [100, 250, 251, 5_000] {
            let (cluster, client) = taken_for(LONG, rigged);
            let start = cluster.now();
            assert_eq!(client.try_lock("r", TTL, wait_ms, &mut Lease::new()), TAKEN);
            let (whole, took) = (asked_ms(&cluster, start), cluster.now() - start);
            for slice_ms in [1, 7, SLICE, 10_000] {
                let (cluster, client) = taken_for(LONG, rigged);
                let start = cluster.now();
                let mut lease = Lease::new();
                let times = (wait_ms, slice_ms);
                assert_eq!(client.try_lock_in_slices("r", TTL, times, &mut lease), TAKEN);
                assert_eq!(asked_ms(&cluster, start), whole, "{wait_ms} in slices of {slice_ms}");
                assert!(cluster.now() - start - took < MS);
            }
        }
    }
}

#[test]
fn a_pause_may_span_many_slices() {
    let (cluster, client) = taken_for(LONG, u64::MAX);
    let client = client.tries(1, 2_000);
    let start = cluster.now();
    assert_eq!(client.try_lock_in_slices("r", TTL, (12_000, SLICE), &mut Lease::new()), TAKEN);
    let asked = asked_ms(&cluster, start);
    // The longest pause is 3 s. At the end there is one more try.
    assert_eq!(asked[asked.len() - 3..], [7_107, 10_109, 12_000], "{asked:?}");
}

#[test]
fn a_slice_ends_in_time_with_the_last_result() {
    let (cluster, client) = taken_for(LONG, u64::MAX);
    let client = client.tries(1, 2_000);
    let (mut lease, start) = (Lease::new(), cluster.now());
    for slice in 1..=8 {
        assert_eq!(client.try_lock_slice("r", TTL, (-1, 100), &mut lease), TAKEN);
        assert!(cluster.now() - start <= (slice * 100 + 2) * MS, "{slice}");
    }
    (0..3).for_each(|it| cluster.kill(it));
    let mut said = Vec::new();
    for _ in 0..8 {
        said.push(client.try_lock_slice("r", TTL, (-1, 100), &mut lease));
    }
    // Until the servers are asked again, the result does not change.
    said.dedup();
    assert_eq!(said, [TAKEN, Err(Status::Unreachable)]);
}

/// These calls ask at once, however long the interrupted pause is.
#[test]
fn other_calls_do_not_resume_a_wait() {
    let calls: [fn(&Client, &mut Lease) -> Said; 6] = [
        |client, lease| client.try_lock("r", TTL, 0, lease),
        |client, lease| client.try_lock("r", TTL, 100, lease),
        |client, lease| client.try_lock_slice("r", TTL, (0, 100), lease),
        |client, _| client.try_lock_slice("r", TTL, (-1, 100), &mut Lease::new()),
        |client, lease| client.lock("r", TTL, lease),
        |client, lease| {
            let said = client.try_lock_slice("another", TTL, (-1, 100), lease);
            assert_eq!((said, client.unlock(lease)), (Ok(()), Ok(())));
            client.try_lock_slice("r", TTL, (-1, 100), lease)
        },
    ];
    for (number, call) in calls.into_iter().enumerate() {
        let (cluster, client) = taken_for(LONG, u64::MAX);
        let client = client.tries(1, 10_000);
        let (mut lease, start) = (Lease::new(), cluster.now());
        while cluster.now() - start < 9_000 * MS {
            assert_eq!(client.try_lock_slice("r", TTL, (-1, 100), &mut lease), TAKEN);
        }
        // In a pause of 8 s by now.
        let start = cluster.now();
        let before = asked_ms(&cluster, start).len();
        assert_eq!(call(&client, &mut lease), TAKEN);
        cluster.run_ms(10);
        let asked = asked_ms(&cluster, start)[before..].to_vec();
        assert!(asked.first().is_some_and(|it| *it <= 6), "call {number}: {asked:?}");
    }
}

#[test]
fn a_sliced_waiter_is_handed_the_lock_at_once() {
    let cluster = Cluster::new(3);
    let crowd = Crowd::of(&cluster, cluster.client().connected());
    crowd.caller('a', 0, waits(0), 150);
    crowd.caller('b', 10, waits_in_slices(5_000, 50), 20);
    crowd.caller('c', 20, waits_in_slices(5_000, 50), 20);
    let told = crowd.told();
    assert_eq!(told, [('a', Ok(()), 2), ('b', Ok(()), 154), ('c', Ok(()), 176)]);
    // And once for each caller that came.
    assert_eq!(crowd.asked(), 3);
}

/// The callers come and go all the time. Still, one of them asks for all, and less and less often.
#[test]
fn many_sliced_waiters_ask_no_more_than_one() {
    let asked = |callers: &[char], slice_ms| {
        let cluster = Cluster::new(3);
        let client = cluster.client().connected();
        client.rig(Some(1 << 63));
        (0..3).for_each(|it| cluster.put(it, "r", "theirs", LONG));
        let crowd = Crowd::of(&cluster, client);
        for (at, who) in callers.iter().enumerate() {
            crowd.caller(*who, 20 * at as i64, waits_in_slices(5_000, slice_ms), 0);
        }
        assert!(crowd.told().iter().all(|it| it.1 == TAKEN));
        crowd.asked()
    };
    let alone = asked(&['a'], 10_000);
    assert_eq!(asked(&['a'], SLICE), alone);
    let many = asked(&['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'], SLICE);
    // Each has a try at its end, as without slices. The second caller that comes is the first in the queue
    // for a moment.
    assert!(many <= alone + 2 * 7, "{many}, and {alone} of one");
}

#[test]
fn a_negative_slice_is_refused() {
    let (_cluster, client) = taken_for(LONG, 0);
    let said = client.try_lock_slice("r", TTL, (100, -1), &mut Lease::new());
    assert_eq!(said, Err(Status::InvalidArgument));
}

/// The client is still in the servers' wait queues, and another one of its calls receives their messages.
#[test]
fn an_abandoned_slice_passes_its_wake_up_on() {
    let cluster = Cluster::new(3);
    let [a, b, c] = processes(&cluster);
    has_until(&a, 1_500 * MS);
    (0..3).for_each(|it| cluster.put(it, "other", "theirs", LONG));
    b.thread(10, |crowd| {
        let said = crowd.client.try_lock_slice("r", LONG, (5_000, 30), &mut Lease::new());
        assert_eq!(said, TAKEN);
        assert_eq!(crowd.client.try_lock("other", LONG, 3_000, &mut Lease::new()), TAKEN);
    });
    c.caller('c', 20, waits(5_000), 10);
    // A way to the servers and back, one more way for the message, and a round trip.
    assert_eq!(c.told()[1], ('c', Ok(()), 1_506));
    nothing_is_left(&cluster, LINE);
}
