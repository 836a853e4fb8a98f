//! Locks that are kept while servers fail. A failed minority costs nothing. If a majority fails, the holder is
//! told in time.

use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::calls::KEY;
use crate::rig::Rig;
use crate::support::events::{Event, Wanted};
use crate::support::proxy::BOTH;
use crate::support::usage::{TTL, connected, connected_unguarded, unguarded};
use crate::support::{Cluster, Fault, Lease, Manager, Server, Way, wait_until};

/// Long enough for a busy machine, on which no thread may drive for seconds.
const KEPT_MS: i64 = 8_000;

fn kept(ttl_ms: i64) -> Wanted {
    Wanted { keep_alive: true, ..Wanted::new(KEY, ttl_ms) }
}

/// A kept lock, on all servers.
#[track_caller]
fn keep(manager: &Manager, cluster: &Cluster, ttl_ms: i64) -> Lease {
    let lease = Lease::new();
    assert_eq!(manager.acquire(&kept(ttl_ms), &lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_everywhere(KEY);
    lease
}

/// How often a server was asked to extend the key, and did.
fn extensions(server: &Server) -> u64 {
    server.calls("pexpire")
}

/// Drives until the lock was renewed this many times. Returns the number of renewals.
#[track_caller]
fn renewals(manager: &Manager, lease: &Lease, wanted: u64) -> u64 {
    let (mut renewed, mut last) = (0, lease.remaining_ms());
    while renewed < wanted {
        assert_eq!(manager.next_event(10), None, "it was lost");
        let now = lease.remaining_ms();
        assert!(now > 0, "it has expired");
        renewed += u64::from(now > last);
        last = now;
    }
    renewed
}

/// No attempt to renew it fails: each attempt that reaches the last server, which is healthy, succeeds.
#[track_caller]
fn no_renewal_is_missed(manager: &Manager, cluster: &Cluster, lease: &Lease) {
    let well = cluster.last().expect("there are servers");
    let before = extensions(well);
    let renewed = renewals(manager, lease, 3);
    assert_eq!(extensions(well) - before, renewed, "an attempt has failed");
    assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
    wait_until("it is gone where all is well", || !well.exists(KEY));
}

#[test]
fn e05_a_failing_minority_costs_no_renewal() {
    thread::scope(|scope| {
        for fault in [
            Fault::KILLED,
            Fault::FROZEN,
            Fault::PASSWORD,
            Fault::REPLICA,
            Fault::OUT_OF_MEMORY,
            Fault::BUSY,
            Fault::FORBIDDEN,
        ] {
            scope.spawn(move || {
                let cluster = Cluster::start(3);
                let manager = connected(&cluster);
                let lease = keep(&manager, &cluster, KEPT_MS);
                (fault.strike)(&cluster[0]);
                no_renewal_is_missed(&manager, &cluster, &lease);
                (fault.mend)(&cluster[0]);
            });
        }
    });
}

#[test]
fn e05_a_slow_or_silent_minority_costs_no_renewal() {
    let slow = |rig: &Rig| {
        let time = Duration::from_millis(3_000);
        BOTH.iter().for_each(|&way| rig.proxies[0].delay(way, time, time));
    };
    let stalled = |rig: &Rig| BOTH.iter().for_each(|&way| rig.proxies[0].stall(way));
    let stranded = |rig: &Rig| rig.proxies[0].strand();
    let reset = |rig: &Rig| rig.proxies[0].reset_each_after(Way::Replies, 1);
    thread::scope(|scope| {
        for strike in [&slow as &(dyn Fn(&Rig) + Sync), &stalled, &stranded, &reset] {
            scope.spawn(move || {
                let rig = Rig::start(3);
                let manager = rig.connected();
                let lease = keep(&manager, &rig.servers, KEPT_MS);
                strike(&rig);
                no_renewal_is_missed(&manager, &rig.servers, &lease);
            });
        }
    });
}

/// Each server in turn goes down and comes back empty. Although only keep-alive uses the servers, each is
/// connected again and given the key. Otherwise the next failure would end the lock.
#[test]
fn e05_servers_restarted_in_turn_cost_no_renewal() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = keep(&manager, &cluster, KEPT_MS);
    for server in cluster.iter() {
        // On a busy machine the restart takes a while, and a thread has to drive.
        thread::scope(|scope| {
            let restarted = scope.spawn(|| server.restart());
            while !restarted.is_finished() {
                assert_eq!(manager.next_event(10), None, "it was lost");
            }
        });
        wait_until("it has the key again", || {
            renewals(&manager, &lease, 1);
            server.exists(KEY)
        });
        // The server counts for the lock after the next round.
        renewals(&manager, &lease, 1);
    }
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone(KEY);
}

/// With two of five gone, each renewal needs all remaining servers.
#[test]
fn e05_two_failing_servers_of_five_cost_no_renewal() {
    let cluster = Cluster::start(5);
    let manager = connected(&cluster);
    let lease = keep(&manager, &cluster, KEPT_MS);
    cluster[0].kill();
    cluster[1].freeze();
    no_renewal_is_missed(&manager, &cluster, &lease);
    cluster[1].resume();
}

/// Drives until the event reports that the lock cannot be kept. Returns that event, and the longest time for
/// which this thread did not drive although it should have.
#[track_caller]
fn told(manager: &Manager) -> (Event, Duration) {
    let mut longest = Duration::ZERO;
    loop {
        let begun = Instant::now();
        let event = manager.next_event(5);
        longest = longest.max(begun.elapsed());
        if let Some(event) = event {
            return (event, longest);
        }
    }
}

/// Two of three servers fail. The holder is told while a tenth of the TTL is left. If the machine was too busy
/// to drive, the run shows nothing and is repeated.
fn a_majority_fails(fault: Fault) {
    const SLACK: Duration = Duration::from_millis(KEPT_MS as u64 / 25);
    let mut is_shown = false;
    while !is_shown {
        let cluster = Cluster::start(3);
        let manager = unguarded(connected(&cluster));
        let lease = keep(&manager, &cluster, KEPT_MS);
        renewals(&manager, &lease, 1);
        cluster[..2].iter().for_each(fault.strike);
        let (event, longest) = told(&manager);
        assert!(event.is_lost && event.lease == lease.raw().addr(), "{event:?}");
        is_shown = longest < SLACK;
        if is_shown {
            assert_eq!(event.status, REDLOCK_UNREACHABLE);
            assert!(event.remaining_ms >= KEPT_MS / 10, "{event:?} after {longest:?}");
        }
        // The loss is reported once, and the lock is not extended any more, however often a thread drives.
        let extended = extensions(&cluster[2]);
        wait_until("the key ends with its time", || {
            assert_eq!(manager.next_event(5), None, "it is told once");
            !cluster[2].exists(KEY)
        });
        assert!(!lease.is_held());
        assert_eq!(extensions(&cluster[2]), extended, "it was extended after it was given up");
        // Requests that wait at silent servers come too late to prolong anything.
        cluster[..2].iter().for_each(fault.mend);
        cluster.wait_until_gone(KEY);
        let next = unguarded(cluster.manager()).take(KEY, TTL);
        assert!(next.is_held());
    }
}

#[test]
fn e06_a_dead_majority_is_reported_in_time() {
    a_majority_fails(Fault::KILLED);
}

#[test]
fn e06_a_frozen_majority_is_reported_in_time() {
    a_majority_fails(Fault::FROZEN);
}

#[test]
fn e06_a_forgetful_majority_is_reported_and_not_retaken() {
    for restarts in [false, true] {
        let cluster = Cluster::start(3);
        let manager = connected(&cluster);
        let lease = keep(&manager, &cluster, KEPT_MS);
        renewals(&manager, &lease, 1);
        for server in &cluster[..2] {
            if restarts {
                server.restart();
            } else {
                server.must(&["FLUSHALL"]);
            }
        }
        let (event, _) = told(&manager);
        assert!(event.is_lost && event.lease == lease.raw().addr(), "{event:?}");
        assert_eq!(event.status, REDLOCK_LOST);
        assert!(!lease.is_held());
        // The rest of the lock is released at once. The next client takes it and keeps it.
        cluster.wait_until_gone(KEY);
        let other = connected_unguarded(&cluster);
        let next = keep(&other, &cluster, KEPT_MS);
        let tokens = || cluster.iter().map(|it| it.get(KEY)).collect::<Vec<_>>();
        let before = tokens();
        thread::scope(|scope| {
            let driving = scope.spawn(|| manager.next_event(KEPT_MS));
            renewals(&other, &next, 2);
            assert_eq!(driving.join().expect("no panic"), None, "it is told once");
        });
        assert_eq!(tokens(), before, "another's lock was touched");
        assert_eq!(other.unlock(&next), REDLOCK_OK, "{}", next.message());
    }
}
