//! Releasing a lock: once, on every server that may have it, and without harm to other callers.

use std::cell::Cell;
use std::rc::Rc;

use super::client::{Client, Said, token};
use super::cluster::{Cluster, MS, Trip, Verb};
use super::{RETRY_GAP_MS, TTL};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

/// So long that no key expires by itself.
const LONG: i64 = 1_000_000;

fn locked(servers: usize) -> (Cluster, Client, Lease) {
    let cluster = Cluster::new(servers);
    let client = cluster.client().tries(1, 0).waits_ms(100).connected();
    let lease = client.take("r", LONG);
    cluster.run_ms(1);
    (cluster, client, lease)
}

#[test]
fn a_second_unlock_is_lost() {
    for servers in 1..=5 {
        let (cluster, client, mut lease) = locked(servers);
        assert_eq!(client.unlock(&mut lease), Ok(()));
        assert_eq!(lease.token(), None);
        cluster.run_ms(1);
        assert_eq!(cluster.having_any("r"), 0);
        assert_eq!(client.unlock(&mut lease), Err(Status::Lost));
    }
}

#[test]
fn a_silent_server_gets_the_release_later() {
    let (cluster, client, mut lease) = locked(3);
    cluster.freeze(1);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    assert_eq!(cluster.having_any("r"), 1);
    cluster.thaw(1);
    cluster.run_ms(1);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn an_unanswered_unlock_can_be_repeated() {
    let (cluster, client, mut lease) = locked(3);
    let old = token(&lease);
    cluster.freeze(0);
    cluster.freeze(1);
    for _ in 0..2 {
        assert_eq!(client.unlock(&mut lease), Err(Status::Unreachable));
        assert_eq!(token(&lease), old);
    }
    cluster.thaw(0);
    cluster.thaw(1);
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    assert_eq!(lease.token(), None);
    assert_eq!(client.unlock(&mut lease), Err(Status::Lost));
}

#[test]
fn a_lock_in_release_is_not_extended() {
    let (cluster, client, mut lease) = locked(3);
    cluster.freeze(0);
    cluster.freeze(1);
    assert_eq!(client.unlock(&mut lease), Err(Status::Unreachable));
    cluster.thaw(0);
    cluster.thaw(1);
    assert_eq!(client.extend(&mut lease, LONG), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn returning_servers_get_the_release() {
    let (cluster, client, mut lease) = locked(3);
    cluster.kill(0);
    cluster.kill(1);
    assert_eq!(client.unlock(&mut lease), Err(Status::Unreachable));
    cluster.start(0);
    cluster.start(1);
    cluster.run_ms(RETRY_GAP_MS);
    assert_eq!(cluster.having_any("r"), 2);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn a_release_is_kept_for_the_longest_extension() {
    let (cluster, client, mut lease) = locked(3);
    assert_eq!(client.extend(&mut lease, 6 * LONG), Ok(()));
    cluster.kill(0);
    cluster.kill(1);
    assert_eq!(client.unlock(&mut lease), Err(Status::Unreachable));
    cluster.run_ms(3 * LONG);
    cluster.start(0);
    cluster.start(1);
    assert_eq!(cluster.having_any("r"), 2);
    assert_eq!(client.is_locked("another"), Ok(false));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn a_release_on_a_lost_connection_is_repeated() {
    for is_swallowed in [true, false] {
        let (cluster, client, mut lease) = locked(3);
        for server in 0..2 {
            let way = client.way(server);
            cluster.script(way, [Trip::ms(50, 1)]);
            cluster.after_ms(20, move |world| world.cut(way, is_swallowed));
        }
        assert_eq!(client.unlock(&mut lease), Err(Status::Unreachable));
        assert_eq!(client.unlock(&mut lease), Ok(()));
        cluster.run_ms(100);
        assert_eq!(cluster.having_any("r"), 0);
    }
}

#[test]
fn an_unlock_is_lost_only_without_a_possible_quorum() {
    for (servers, gone, expected) in [
        (1, 1, Err(Status::Lost)),
        (2, 1, Err(Status::Lost)),
        (3, 1, Ok(())),
        (3, 2, Err(Status::Lost)),
        (4, 1, Ok(())),
        (4, 2, Err(Status::Lost)),
        (5, 2, Ok(())),
        (5, 3, Err(Status::Lost)),
    ] {
        let (cluster, client, mut lease) = locked(servers);
        cluster.lose(0..gone, "r");
        assert_eq!(client.unlock(&mut lease), expected, "{gone} of {servers}");
        assert_eq!(lease.token(), None);
        cluster.run_ms(10);
        assert_eq!(cluster.having_any("r"), 0);
    }
}

#[test]
fn a_server_without_the_lock_needs_no_release() {
    let cluster = Cluster::new(3);
    cluster.kill(2);
    let client = cluster.client().tries(1, 0);
    let mut lease = client.take("r", LONG);
    cluster.start(2);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn an_unlock_after_the_expiry_spares_the_new_holder() {
    let cluster = Cluster::new(3);
    let (client, rival) = (cluster.client().connected(), cluster.client().connected());
    let mut lease = client.take("r", TTL);
    cluster.run_ms(TTL);
    let theirs = rival.take("r", TTL);
    cluster.run_ms(1);
    assert_eq!(client.unlock(&mut lease), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having("r", &token(&theirs)), 3);
}

/// One of the two callers is delayed at each of its looks at the clock in turn. A caller that wants to
/// renew the lock, and finds that the lock has ended, releases it on behalf of the caller that ended it.
#[test]
fn a_renewal_by_another_handle_does_not_fail_the_release() {
    let renew: [fn(&Client, &mut Lease) -> Said; 2] = [
        |client, lease| client.extend(lease, LONG),
        |client, lease| client.continue_lock("r", LONG, lease),
    ];
    for call in renew {
        for early_ms in [-3, 0, 1, 3] {
            for nth in 1.. {
                let cluster = Cluster::new(3);
                let client = Rc::new(cluster.client().tries(1, 0).connected());
                let mut leases = [Lease::new(), Lease::new()];
                for lease in &mut leases {
                    assert_eq!(client.continue_lock("r", LONG, lease), Ok(()));
                }
                let [mut renewed, mut released] = leases;
                client.stall_once(nth, 30 * MS);
                let (other, stalled) = (Rc::clone(&client), Rc::clone(&client));
                cluster.thread(10 - early_ms, move || {
                    let said = call(&other, &mut renewed);
                    // The call may have come before the release, or may want to take the lock again after
                    // it.
                    let all = [Ok(()), Err(Status::Lost), Err(Status::Taken)];
                    assert!(all.contains(&said), "{said:?}");
                    if said == Ok(()) {
                        let _ = other.unlock(&mut renewed);
                    }
                });
                cluster.thread(10, move || {
                    let said = client.unlock(&mut released);
                    // If two callers release the lock, one of them may come too late.
                    assert!(said == Ok(()) || early_ms == 3, "{nth} {early_ms}: {said:?}");
                });
                cluster.end_threads(10_000);
                cluster.run_ms(100);
                assert_eq!(cluster.having_any("r"), 0, "{nth} {early_ms}");
                if !stalled.has_stalled() {
                    break;
                }
            }
        }
    }
}

/// An extension finds that the lock's end has passed while a caller is about to release it. The extension
/// then releases the lock itself, and is the first to do so: a third caller occupies the connections and
/// delays the second.
#[test]
fn a_release_by_an_extension_does_not_fail_the_release() {
    const SHORT: i64 = 250;
    let mut releases_twice = 0;
    let mut extension_stalls = 1..;
    while extension_stalls.next().is_some_and(|nth| {
        let mut third_stalls = 1..;
        let mut was_held_up = false;
        while third_stalls.next().is_some_and(|third_nth| {
            let cluster = Cluster::new(3);
            let client = Rc::new(cluster.client().tries(1, 0).waits_ms(1_000).connected());
            let mut leases = [Lease::new(), Lease::new()];
            for lease in &mut leases {
                assert_eq!(client.continue_lock("r", SHORT, lease), Ok(()));
            }
            let [mut renewed, mut released] = leases;
            // The lock ends in 243.5 ms. It is extended just before that, and the answers come just after
            // it.
            let (scene, start) = (*cluster, cluster.now());
            (0..2).for_each(|it| cluster.freeze(it));
            cluster.after_ms(243, |world| (0..2).for_each(|it| world.thaw(it)));
            let held_up = [Rc::<Cell<bool>>::default(), Rc::default()];
            let [first, third] = held_up.clone();
            let other = Rc::clone(&client);
            cluster.thread(0, move || {
                let extend = || assert!(other.extend(&mut renewed, LONG).is_err());
                first.set(scene.held_up((nth, 200 * MS), extend));
            });
            let (said, other) = (Rc::new(Cell::new(None)), Rc::clone(&client));
            let (told, was_there) = (Rc::clone(&said), Rc::<Cell<bool>>::default());
            let is_there = Rc::clone(&was_there);
            cluster.thread(252, move || {
                is_there.set(released.lock.as_ref().is_some_and(|it| !it.has_ended()));
                told.set(Some(other.unlock(&mut released)));
            });
            cluster.thread(250, move || {
                let ask = || {
                    let _ = client.is_locked("another");
                };
                third.set(scene.held_up((third_nth, 300 * MS), ask));
            });
            cluster.end_threads(10_000);
            let deeds = cluster.deeds();
            let of = |verb| deeds.iter().filter(move |it| (it.verb, it.server) == (verb, 0));
            // Otherwise the lock was lost before its release, or the keys were gone by then.
            if was_there.get() && of(Verb::Extend).any(|it| it.at <= start + 243 * MS) {
                assert_eq!(said.get(), Some(Ok(())), "{nth} {third_nth}");
            }
            releases_twice += usize::from(of(Verb::Release).count() > 1);
            was_held_up |= held_up[0].get();
            held_up[1].get()
        }) {}
        was_held_up
    }) {}
    assert!(releases_twice > 0);
}

/// The lock is used through two managers, and nothing orders their requests. An extension through one
/// manager finds the lock released, and sends a request that overtakes the release through the other
/// manager.
#[test]
fn a_release_by_another_manager_does_not_fail_the_release() {
    let cluster = Cluster::new(3);
    let new = || Rc::new(cluster.client().tries(1, 0).waits_ms(100).connected());
    let [fast, slow] = [new(), new()];
    let [mut extended, mut released] = [Lease::new(), Lease::new()];
    for lease in [&mut extended, &mut released] {
        assert_eq!(fast.continue_lock("r", LONG, lease), Ok(()));
    }
    cluster.run_ms(1);
    for server in 0..3 {
        cluster.script(slow.way(server), [Trip::ms(50, 1)]);
    }
    let releasing = Rc::clone(&slow);
    cluster.thread(0, move || assert_eq!(releasing.unlock(&mut released), Ok(())));
    cluster.run_ms(10);
    assert_eq!(fast.extend(&mut extended, LONG), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
    assert_eq!(slow.asked_at(0, Verb::Release), []);
    cluster.end_threads(1_000);
    // One release had nothing to delete, and another one finds the reason.
    assert_eq!(slow.asked_at(0, Verb::Release).len(), 2);
}
