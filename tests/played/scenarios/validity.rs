//! How long a lock is valid: never longer than a quorum of servers keeps it.

use super::client::{Client, Said, token};
use super::cluster::{Cluster, MS, Trip};
use super::history::{History, is_borne_out};
use super::{TTL, VALID};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

#[test]
fn a_quorum_after_the_validity_leaves_nothing() {
    const TTL_MS: i64 = 1_000;
    const VALID_MS: i64 = 988;
    for (late_ns, expected) in [(-1, Ok(())), (0, Err(Status::TooSlow)), (MS, Err(Status::TooSlow))]
    {
        let cluster = Cluster::new(3);
        let client = cluster.client().tries(1, 0).waits_ms(20_000).connected();
        // The requests take time, too, so the keys outlive the answer.
        let slow =
            Trip { there: 900 * MS, back: (VALID_MS - 900) * MS + late_ns, ..Trip::default() };
        (0..3).for_each(|it| cluster.script(client.way(it), [slow]));
        let mut lease = Lease::new();
        assert_eq!(client.lock("r", TTL_MS, &mut lease), expected);
        assert_eq!(lease.token().is_some(), expected.is_ok());
        cluster.run_ms(10);
        assert_eq!(cluster.having_any("r"), if expected.is_ok() { 3 } else { 0 });
    }
}

#[test]
fn the_deadline_counts_from_before_the_first_byte() {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    // The third server is heard first, and is not a quorum.
    (0..2).for_each(|it| cluster.script(client.way(it), [Trip::ms(300, 150)]));
    let start = cluster.now();
    let mut lease = client.take("r", TTL);
    assert_eq!(lease.validity_ms(), VALID - 450);
    assert_eq!(client.end_of(&lease), start + VALID * MS);
    cluster.run_until(start + VALID * MS - 1);
    assert!(client.still_holds(&mut lease));
    cluster.run_until(start + VALID * MS);
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
}

#[test]
fn connecting_does_not_reduce_the_validity() {
    for servers in [3, 5] {
        let cluster = Cluster::new(servers);
        // There is a quorum as soon as one of these servers responds.
        (0..cluster.quorum()).for_each(|it| cluster.freeze(it));
        cluster.after_ms(700, |world| world.thaw(0));
        // With one try only: another one would begin when the connections are ready.
        let lease = cluster.client().tries(1, 0).take("r", TTL);
        assert_eq!(lease.validity_ms(), VALID - 2);
    }
}

#[test]
fn a_later_attempt_has_its_own_deadline() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(3, 400).connected();
    (0..3).for_each(|it| cluster.put(it, "r", "theirs", 500));
    let lease = client.take("r", TTL);
    assert!(!client.pauses().is_empty());
    assert_eq!(lease.validity_ms(), VALID - 2);
    assert!(is_borne_out(*cluster, &client, &lease));
}

#[test]
fn no_quorum_server_drops_the_lock_early() {
    for (factor, rates) in [
        (0.0, &[500_000, 999_000, 1_000_000][..]),
        (0.01, &[990_000, 1_000_000, 1_010_000]),
        (0.25, &[1_000_000, 1_250_000]),
    ] {
        for &rate in rates {
            assert_eq!(unborne(factor, rate), 0, "{factor} and {rate}");
        }
    }
}

#[test]
fn a_clock_faster_than_the_drift_is_noticed() {
    for (factor, rate) in [(0.0, 1_000_100), (0.01, 1_020_000), (0.25, 1_400_000)] {
        assert_ne!(unborne(factor, rate), 0, "{factor} and {rate}");
    }
}

/// Of many locks, on servers with such a clock: how many were not backed by a quorum.
fn unborne(factor: f64, per_million: i64) -> usize {
    let mut unborne = 0;
    for ttl_ms in [10, 100, 1_000, TTL, 1_000_000] {
        for phase in [0, 1, MS / 2, MS - 1] {
            let cluster = Cluster::new(3);
            let ahead = phase - cluster.now() / 1_000_000 * (per_million - 1_000_000);
            (0..3).for_each(|it| cluster.set_clock(it, ahead, per_million));
            cluster.usual(Trip::ms(0, 0));
            let client = cluster.client();
            client.manager.settings().set_drift(factor).expect("it is a fraction");
            let mut lease = client.take("r", ttl_ms);
            let mut check =
                |it: &Lease| unborne += usize::from(!is_borne_out(*cluster, &client, it));
            check(&lease);
            cluster.run_until(cluster.now() + ttl_ms * MS / 4);
            assert_eq!(client.extend(&mut lease, ttl_ms), Ok(()));
            check(&lease);
            cluster.run_until(cluster.now() + ttl_ms * MS / 4);
            assert_eq!(client.continue_lock("r", ttl_ms, &mut lease), Ok(()));
            check(&lease);
        }
    }
    unborne
}

#[test]
fn a_waiter_never_gets_the_lock_too_early() {
    assert!(!overlaps_with(1_010_000));
}

#[test]
fn a_too_fast_server_clock_frees_a_lock_too_early() {
    assert!(overlaps_with(1_020_000));
}

/// Whether a holder and a caller that waits for its end hold the lock at the same time, on such servers.
fn overlaps_with(per_million: i64) -> bool {
    let cluster = Cluster::new(3);
    (0..3).for_each(|it| cluster.set_clock(it, 0, per_million));
    let (holder, next) = (cluster.client(), cluster.client().tries(1, 20));
    let mut history = History::default();
    history.granted(&holder, &holder.take("r", TTL), cluster.now());
    let mut lease = Lease::new();
    assert_eq!(next.try_lock("r", TTL, 2 * TTL, &mut lease), Ok(()));
    history.granted(&next, &lease, cluster.now());
    assert_eq!(history.len(), 2);
    history.overlap().is_some()
}

/// A client is delayed at any of its looks at the clock. Its results are right, or it returns none.
#[test]
fn a_delayed_client_claims_no_expired_lock() {
    for stall_ms in [VALID / 2, VALID - 1, VALID, 2 * TTL] {
        for nth in 1.. {
            let cluster = Cluster::new(3);
            let client = cluster.client().tries(2, 10);
            let mut has_stalled = false;
            let mut lease = Lease::new();
            let calls: [fn(&Client, &mut Lease) -> Said; 3] = [
                |client, lease| client.lock("r", TTL, lease),
                |client, lease| client.extend(lease, TTL),
                |client, lease| client.continue_lock("r", TTL, lease),
            ];
            for call in calls {
                client.stall_once(nth, stall_ms * MS);
                let said = call(&client, &mut lease);
                has_stalled |= client.has_stalled();
                check(&cluster, &client, &lease, said);
            }
            client.stall_once(nth, stall_ms * MS);
            if client.confirm(&mut lease, 0) == Ok(()) {
                assert!(cluster.now() < cluster.kept_until("r", &token(&lease)), "at look {nth}");
            }
            if !has_stalled && !client.has_stalled() {
                break;
            }
        }
    }

    fn check(cluster: &Cluster, client: &Client, lease: &Lease, said: Said) {
        match said {
            Ok(()) => assert!(is_borne_out(**cluster, client, lease)),
            // A lock that was valid is still valid.
            Err(Status::Unreachable) if lease.token().is_some() => {
                let is_there = cluster.having("r", &token(lease)) >= cluster.quorum();
                assert!(is_there || !lease.is_held());
            }
            Err(Status::TooSlow | Status::Lost | Status::Unreachable) => {
                assert_eq!(lease.token(), None, "{said:?}");
                cluster.run_ms(10);
                assert_eq!(cluster.having_any("r"), 0, "{said:?}");
            }
            _ => panic!("{said:?}"),
        }
    }
}

/// A clock that is ahead by years, or behind, or slow, is as good as any other.
#[test]
fn only_differences_of_the_client_clock_count() {
    for ahead in [-900_000 * MS, 0, 1 << 60] {
        let cluster = Cluster::new(3);
        let client = Client::new(*cluster, ahead);
        let mut lease = client.take("r", TTL);
        assert_eq!(lease.validity_ms(), VALID - 2);
        cluster.run_ms(VALID - 3);
        assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost), "the answer comes too late");
    }
}
