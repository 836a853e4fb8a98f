//! What the network does to connections: delays, silence, partitions, pieces.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{self, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::place::Place;
use crate::rig::{Rig, manager_through, recovers, stall};
use crate::support::proxy::BOTH;
use crate::support::usage::{
    DEADLINE, TOO_LONG, TTL, every_way_to_lock_is_unreachable, everything_works, in_time,
    make_brief,
};
use crate::support::{Cluster, Lease, Manager, Proxy, Server, Way, wait_until};

#[test]
fn n01_the_time_of_a_call_reduces_the_validity() {
    const DELAY_MS: i64 = 60;
    const TTL_MS: i64 = 60_000;
    let rig = Rig::start(3);
    let manager = rig.connected();
    rig.delay(Duration::from_millis(DELAY_MS as u64));
    // There and back, after the 1 % for the drift and the 2 ms for the precision of expiry.
    let most = TTL_MS - TTL_MS / 100 - 2 - 2 * DELAY_MS;
    let lease = Lease::new();
    let before = Instant::now();
    let extends: [&dyn Fn() -> RedLockStatus; 3] =
        [&|| manager.lock("r", TTL_MS, &lease), &|| manager.extend(&lease, TTL_MS), &|| {
            manager.continue_lock("r", TTL_MS, &lease)
        }];
    for call in extends {
        assert_eq!(call(), REDLOCK_OK, "{}", lease.message());
        let validity = lease.validity_ms();
        assert!(validity <= most, "{validity} of {most}");
        let passed = i64::try_from(before.elapsed().as_millis()).expect("not that long");
        assert!(validity >= most + 2 * DELAY_MS - passed - 1, "{validity} after {passed}");
    }
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    rig.heal();
    rig.recovers(&manager, "r");
}

#[test]
fn n01_one_holder_exists_despite_long_delays() {
    const REPLY_MS: u64 = 60;
    let rig = Rig::start(3);
    let managers = [rig.connected(), rig.connected()];
    for manager in &managers {
        assert_eq!(manager.set_timeouts(2_000, REPLY_MS as i64), REDLOCK_OK);
        assert_eq!(manager.set_retry(1, 5), REDLOCK_OK);
    }
    for proxy in &rig.proxies {
        proxy.delay(Way::Replies, Duration::ZERO, Duration::from_millis(2 * REPLY_MS));
    }
    let place = Place::default();
    thread::scope(|scope| {
        for thread in 0..8 {
            let (manager, place) = (&managers[thread % 2], &place);
            scope.spawn(move || (0..8).for_each(|_| tries(manager, place)));
        }
    });
    rig.heal();
    managers.iter().for_each(|it| rig.recovers(it, "r"));
    tries_until_had(&managers[0], &place);
}

/// Tries to take the lock, and visits the place if it succeeds.
fn tries(manager: &Manager, place: &Place) {
    let lease = Lease::new();
    if manager.try_lock("r", TTL, 100, &lease) == REDLOCK_OK {
        place.visit();
        manager.unlock(&lease);
    }
}

fn tries_until_had(manager: &Manager, place: &Place) {
    let before = place.visits();
    wait_until("the lock is had", || {
        tries(manager, place);
        place.visits() > before
    });
}

#[test]
fn n02_grants_without_a_way_back_are_released_at_once() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    make_brief(&manager);
    stall(&rig.proxies[..2], Way::Replies);
    let before = sets(&rig.servers[..2]);
    every_way_to_lock_is_unreachable(&manager, "r");
    let carried_out = sets(&rig.servers[..2]);
    assert!(carried_out.iter().zip(&before).all(|(now, before)| now > before), "{carried_out:?}");
    // The release went the same way. This direction is open.
    rig.servers.wait_until_gone("r");
    rig.heal();
    rig.recovers(&manager, "r");
}

#[test]
fn n02_grants_after_a_blocked_way_are_released() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    make_brief(&manager);
    stall(&rig.proxies[..2], Way::Requests);
    let before = sets(&rig.servers[..2]);
    in_time(DEADLINE, || {
        assert_eq!(manager.lock("r", TTL, &Lease::new()), REDLOCK_UNREACHABLE);
    });
    rig.servers.wait_until_gone("r");
    assert_eq!(sets(&rig.servers[..2]), before, "it got through all the same");
    rig.heal();
    wait_until("the requests arrive", || sets(&rig.servers[..2]) == add(&before, 1));
    rig.servers.wait_until_gone("r");
    rig.recovers(&manager, "r");
}

#[test]
fn n02_a_hold_outlives_a_silent_majority_until_its_release() {
    for way in BOTH {
        let rig = Rig::start(3);
        let manager = rig.connected();
        let lease = manager.take("r", TTL);
        rig.servers.wait_until_everywhere("r");
        make_brief(&manager);
        stall(&rig.proxies[..2], way);
        in_time(DEADLINE, || assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_UNREACHABLE));
        assert!(lease.is_held() && lease.remaining_ms() < TTL);
        in_time(DEADLINE, || assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE));
        assert!(!lease.is_held());
        // The data on its way is lost with the connections. The release is sent over the next connections.
        rig.proxies.iter().for_each(Proxy::reset);
        rig.heal();
        rig.recovers(&manager, "r");
    }
}

#[test]
fn n02_one_silent_direction_to_a_minority_is_harmless() {
    for way in BOTH {
        let rig = Rig::start(5);
        let manager = rig.connected();
        stall(&rig.proxies[..2], way);
        in_time(TOO_LONG, || everything_works(&manager, "r"));
        rig.heal();
        rig.recovers(&manager, "r");
    }
}

/// How many requests to set a key each server has executed.
fn sets(servers: &[Server]) -> Vec<u64> {
    servers.iter().map(|it| it.calls("set")).collect()
}

fn add(counts: &[u64], more: u64) -> Vec<u64> {
    counts.iter().map(|it| it + more).collect()
}

/// After a silence as long as the TTL, at least five seconds, a connection counts as dead.
#[test]
fn n04_a_connection_without_a_far_end_is_replaced() {
    const TTL_MS: i64 = 1_000;
    let rig = Rig::start(3);
    let manager = rig.connected();
    make_brief(&manager);
    rig.proxies.iter().for_each(Proxy::strand);
    let lease = Lease::new();
    in_time(DEADLINE, || {
        assert_eq!(manager.lock("r", TTL_MS, &lease), REDLOCK_UNREACHABLE);
    });
    assert!(!lease.is_held());
    wait_until("the manager locks again", || {
        manager.try_lock("r", TTL_MS, 0, &lease) == REDLOCK_OK
    });
    let is_made_anew = |it: &&Proxy| matches!(it.connections()[..], [old, _, ..] if old.has_ended);
    // The proxies may not have noticed it yet.
    wait_until("a quorum of connections was made anew", || {
        rig.proxies.iter().filter(is_made_anew).count() >= rig.servers.quorum()
    });
    manager.unlock(&lease);
    rig.recovers(&manager, "r");
}

#[test]
fn n04_a_minority_without_far_ends_is_harmless() {
    let rig = Rig::start(5);
    let manager = rig.connected();
    let lease = manager.take("r", TTL);
    rig.servers.wait_until_everywhere("r");
    rig.proxies[..2].iter().for_each(Proxy::strand);
    in_time(TOO_LONG, || {
        assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        everything_works(&manager, "another");
    });
    // The lost requests are sent again once the connection is known to be lost.
    rig.proxies.iter().for_each(Proxy::reset);
    rig.recovers(&manager, "r");
}

/// Each way in which a connection can be half closed, in the middle of a hold.
#[test]
fn n04_a_half_closed_connection_is_replaced() {
    for way in BOTH {
        let rig = Rig::start(3);
        let manager = rig.connected();
        let lease = manager.take("r", TTL);
        rig.proxies.iter().for_each(|it| it.half_close(way));
        wait_until("the lock is extended", || manager.extend(&lease, TTL) == REDLOCK_OK);
        wait_until("the lock is released", || manager.unlock(&lease) != REDLOCK_UNREACHABLE);
        rig.recovers(&manager, "r");
    }
}

#[test]
fn n05_trickling_replies_in_time_count() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    for proxy in &rig.proxies {
        proxy.cut_up(Way::Replies, 1, Duration::from_millis(5));
    }
    everything_works(&manager, "r");
    rig.recovers(&manager, "r");
}

#[test]
fn n05_an_endless_trickling_reply_has_one_limit() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    make_brief(&manager);
    for proxy in &rig.proxies[..2] {
        // The whole reply would take minutes, and the connection would never be silent.
        proxy.cut_up(Way::Replies, 1, Duration::from_millis(10));
        proxy.alter(Way::Replies, |_| vec![b'+'; 60_000]);
    }
    every_way_to_lock_is_unreachable(&manager, "r");
    rig.proxies.iter().for_each(Proxy::reset);
    rig.heal();
    rig.recovers(&manager, "r");
}

#[test]
fn n05_an_endless_trickling_greeting_has_one_limit() {
    let rig = Rig::start(3);
    for proxy in &rig.proxies[..2] {
        proxy.cut_up(Way::Replies, 1, Duration::from_millis(10));
        proxy.alter(Way::Replies, |_| vec![b'-'; 60_000]);
    }
    let manager = rig.manager();
    make_brief(&manager);
    in_time(DEADLINE, || assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE));
    every_way_to_lock_is_unreachable(&manager, "r");
    rig.heal();
    rig.proxies.iter().for_each(Proxy::reset);
    rig.recovers(&manager, "r");
}

/// Two clients, each with its own proxies to the same five servers. In each round one of them is cut off from
/// two servers, and the other from three.
#[test]
fn n07_one_holder_exists_while_a_partition_moves() {
    let servers = Cluster::start(5);
    let ways: [Vec<Proxy>; 2] =
        [servers.iter().map(Proxy::to).collect(), servers.iter().map(Proxy::to).collect()];
    let managers = ways.each_ref().map(|it| manager_through(it));
    for manager in &managers {
        manager.connect_to_all();
        assert_eq!(manager.set_timeouts(1_000, 50), REDLOCK_OK);
        assert_eq!(manager.set_retry(1, 5), REDLOCK_OK);
    }
    let (place, is_over) = (Place::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        for thread in 0..6 {
            let (manager, place, is_over) = (&managers[thread % 2], &place, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    tries(manager, place);
                }
            });
        }
        for round in 0..15 {
            let cut = |of: &[Proxy], from: usize, count: usize| {
                for step in 0..count {
                    let proxy = &of[(round + from + step) % 5];
                    BOTH.into_iter().for_each(|way| proxy.stall(way));
                }
            };
            cut(&ways[round % 2], 0, 2);
            cut(&ways[1 - round % 2], 1, 3);
            // Long enough for calls to run into it.
            thread::sleep(Duration::from_millis(120));
            ways.iter().flatten().for_each(Proxy::heal);
            if round % 3 == 0 {
                ways.iter().flatten().for_each(Proxy::reset);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for manager in &managers {
        recovers(manager, "r", &servers);
        tries_until_had(manager, &place);
    }
}

#[test]
fn n08_requests_and_replies_in_single_bytes_work() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    for way in BOTH {
        rig.proxies.iter().for_each(|it| it.cut_up(way, 1, Duration::ZERO));
    }
    everything_works(&manager, "r");
    // A second manager connects to the servers in this way as well.
    everything_works(&rig.manager(), "r");
    rig.recovers(&manager, "r");
}

#[test]
fn n08_the_longest_name_works_in_odd_pieces() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    let name = "n".repeat(65_536);
    for size in [1_447, 4_095, 65_537] {
        for way in BOTH {
            rig.proxies.iter().for_each(|it| it.cut_up(way, size, Duration::ZERO));
        }
        everything_works(&manager, &name);
    }
    rig.recovers(&manager, &name);
}

/// Replies to the requests of many threads arrive in one piece, and each goes to its own request.
#[test]
fn n08_joined_replies_are_separated() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    for way in BOTH {
        rig.proxies.iter().for_each(|it| it.join(way, Duration::from_millis(10)));
    }
    thread::scope(|scope| {
        for thread in 0..16 {
            let manager = &manager;
            scope.spawn(move || everything_works(manager, &format!("r{thread}")));
        }
    });
    rig.heal();
    rig.recovers(&manager, "r");
}
