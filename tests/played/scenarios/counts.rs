//! The counters, with simulated time: each number is exact to the microsecond.

use super::TTL;
use super::cluster::{Cluster, Trip};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;
use crate::protocol::stats::{BOUNDS_US, Histogram, Outcome};

/// The count of the bucket for this time.
fn in_bucket(histogram: &Histogram, us: i64) -> u64 {
    histogram.buckets[BOUNDS_US.partition_point(|&bound| bound < us)]
}

#[test]
fn measured_times_are_right() {
    let cluster = Cluster::new(3);
    let holder = cluster.client().tries(1, 0).waits_ms(100).connected();
    let waiter = cluster.client().tries(1, 0).waits_ms(100).connected();
    for server in 0..3 {
        for client in [&holder, &waiter] {
            cluster.script(client.way(server), [Trip::ms(2, 3)]);
        }
    }
    let before = holder.manager.stats();
    let mut lease = Lease::new();
    assert_eq!(holder.lock("r", TTL, &mut lease), Ok(()));
    let stats = holder.manager.stats();
    assert_eq!((stats.counts.acquire_time.count, stats.counts.acquire_time.sum_us), (1, 5_000));
    assert_eq!(in_bucket(&stats.counts.acquire_time, 5_000), 1);
    let round_trips = stats.traffic().round_trip.count - before.traffic().round_trip.count;
    assert!((2..=3).contains(&round_trips), "{round_trips}");
    assert_eq!(waiter.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
    let counts = waiter.manager.stats().counts;
    assert_eq!((counts.acquire.of(Outcome::Taken), counts.attempts, counts.waits), (1, 1, 0));
    assert_eq!(counts.acquire_time.count, 0, "it was not taken");
    // It is held for a second and the time of its release.
    cluster.run_ms(1_000);
    assert_eq!(holder.unlock(&mut lease), Ok(()));
    let counts = holder.manager.stats().counts;
    assert_eq!((counts.hold_time.count, counts.release.of(Outcome::Ok)), (1, 1));
    let held_us = counts.hold_time.sum_us;
    assert!((1_005_000..1_020_000).contains(&held_us), "{held_us}");
}

/// A caller that waits in vain has waited for as long as the call said, with all pauses and attempts.
#[test]
fn a_wait_is_counted_from_start_to_end() {
    let cluster = Cluster::new(3);
    let holder = cluster.client().tries(1, 0).waits_ms(100).connected();
    let waiter = cluster.client().tries(1, 20).waits_ms(100).connected();
    let _lease = holder.take("r", TTL);
    for (nth, wait_ms) in [(1, 500), (2, 700)] {
        assert_eq!(waiter.try_lock("r", TTL, wait_ms, &mut Lease::new()), Err(Status::Taken));
        let counts = waiter.manager.stats().counts;
        assert_eq!((counts.waits, counts.wait_time.count), (nth, nth));
        assert_eq!(counts.acquire.of(Outcome::Taken), nth);
        assert!(counts.attempts > nth, "{}", counts.attempts);
    }
    let waited_us = waiter.manager.stats().counts.wait_time.sum_us;
    assert!((1_150_000..=1_260_000).contains(&waited_us), "{waited_us}");
    assert_eq!(waiter.manager.stats().waiting, 0);
}

#[test]
fn each_server_has_its_own_counts() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(1, 0).waits_ms(100).connected();
    let before = client.manager.stats();
    cluster.freeze(2);
    for _ in 0..4 {
        let mut lease = client.take("r", TTL);
        assert_eq!(client.unlock(&mut lease), Ok(()));
        cluster.run_ms(1);
    }
    let stats = client.manager.stats();
    let new = |server: usize| {
        let (now, before) = (stats.servers[server].traffic, before.servers[server].traffic);
        (now.requests - before.requests, now.round_trip.count - before.round_trip.count)
    };
    assert_eq!((new(0), new(1)), ((8, 8), (8, 8)));
    let (requests, answers) = new(2);
    assert!(requests >= 1 && answers == 0, "{requests} {answers}");
    assert!(stats.servers.iter().all(|it| it.traffic.connections == 1 && it.is_connected));
}
