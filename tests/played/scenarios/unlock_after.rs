//! Releasing a lock whose key stays for some time: nobody takes the lock before, and whoever waits has it then.

use std::rc::Rc;

use super::client::{Client, token};
use super::cluster::{Cluster, MS, Trip, Verb};
use super::crowd::{Crowd, waits};
use super::{RETRY_GAP_MS, TTL};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;
use crate::protocol::lock_kind::LockKind;

const LONG: i64 = 1_000_000;

/// How long the key must stay.
const LEAST: i64 = 5_000;

/// How long each request takes to get to a server.
const WAY_MS: i64 = 1;

fn locked(servers: usize) -> (Cluster, Client, Lease) {
    let cluster = Cluster::new(servers);
    let client = cluster.client().tries(1, 0).waits_ms(100).connected();
    let lease = client.take("r", LONG);
    cluster.run_ms(1);
    (cluster, client, lease)
}

#[test]
fn the_lease_ends_at_once_and_the_key_later() {
    for servers in 1..=5 {
        let (cluster, client, mut lease) = locked(servers);
        let (taken, ours) = (cluster.now() - (2 * WAY_MS + 1) * MS, token(&lease));
        cluster.run_ms(1_000);
        assert_eq!(client.unlock_after(&mut lease, LEAST), Ok(()));
        assert!(!lease.is_held() && lease.token().is_none());
        cluster.run_ms(1);
        assert_eq!(cluster.having("r", &ours), servers);
        let end = cluster.kept_until("r", &ours);
        let late = end - (taken + LEAST * MS);
        assert!((0..=(WAY_MS + 2) * MS).contains(&late), "{late} ns too late");
        assert_eq!(client.unlock(&mut lease), Err(Status::Lost));
        // There is nothing that later requests change.
        assert_eq!(client.lock("r", TTL, &mut lease), Err(Status::Taken));
        cluster.run_until(end - MS);
        assert_eq!(cluster.having("r", &ours), servers);
        cluster.run_until(end + 2 * MS);
        assert_eq!(cluster.having_any("r"), 0);
        assert_eq!(client.lock("r", TTL, &mut lease), Ok(()));
    }
}

#[test]
fn a_delay_in_the_past_is_a_plain_unlock() {
    let (cluster, client, mut lease) = locked(3);
    cluster.run_ms(LEAST);
    assert_eq!(client.unlock_after(&mut lease, LEAST), Ok(()));
    cluster.run_ms(1);
    assert_eq!(cluster.having_any("r"), 0);
    assert!(cluster.deeds().iter().all(|it| it.verb != Verb::Shorten));
}

/// A server never lets the key live longer than before.
#[test]
fn the_key_never_outlives_its_ttl() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(1, 0).waits_ms(100).connected();
    let mut lease = client.take("r", TTL);
    let ours = token(&lease);
    cluster.run_ms(1);
    let end = cluster.kept_until("r", &ours);
    assert_eq!(client.unlock_after(&mut lease, TTL), Ok(()));
    cluster.run_ms(1);
    assert!(cluster.kept_until("r", &ours) <= end);
    // A server that hears of it late lets the key live longer than the others do, and no longer than its TTL.
    let mut lease = client.take("s", TTL);
    let ours = token(&lease);
    cluster.run_ms(1);
    let end = cluster.kept_until("s", &ours);
    cluster.freeze(0);
    cluster.freeze(1);
    assert_eq!(client.unlock_after(&mut lease, LEAST), Err(Status::Unreachable));
    cluster.run_ms(TTL - LEAST + 1_000);
    cluster.thaw(0);
    cluster.thaw(1);
    cluster.run_ms(10);
    assert_eq!(cluster.having("s", &ours), 2);
    assert!(cluster.kept_until("s", &ours) <= end);
}

#[test]
fn returning_servers_get_the_release() {
    let (cluster, client, mut lease) = locked(3);
    let ours = token(&lease);
    cluster.kill(0);
    cluster.kill(1);
    assert_eq!(client.unlock_after(&mut lease, LEAST), Err(Status::Unreachable));
    cluster.start(0);
    cluster.start(1);
    cluster.run_ms(RETRY_GAP_MS);
    assert_eq!(cluster.having("r", &ours), 3);
    assert_eq!(client.is_locked("r"), Ok(true));
    cluster.run_ms(LEAST + RETRY_GAP_MS + 10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn a_delayed_unlock_can_be_repeated() {
    let (cluster, client, mut lease) = locked(3);
    let ours = token(&lease);
    cluster.freeze(0);
    cluster.freeze(1);
    for _ in 0..2 {
        assert_eq!(client.unlock_after(&mut lease, LEAST), Err(Status::Unreachable));
        assert_eq!(token(&lease), ours);
    }
    cluster.thaw(0);
    cluster.thaw(1);
    cluster.run_ms(10);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    assert_eq!(lease.token(), None);
    assert_eq!(cluster.having("r", &ours), 3);
    cluster.run_ms(LEAST + 10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn an_unlock_without_a_quorum_is_lost_and_spares_others() {
    let (cluster, client, mut lease) = locked(3);
    for server in 0..2 {
        cluster.put(server, "r", "theirs", LONG);
    }
    assert_eq!(client.unlock_after(&mut lease, LEAST), Err(Status::Lost));
    cluster.run_ms(LEAST + 10);
    assert_eq!(cluster.having("r", "theirs"), 2);
    assert_eq!(cluster.having_any("r"), 2);
}

#[test]
fn an_impossible_delay_is_refused_without_a_request() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(1, 0).connected();
    let refused = Err(Status::InvalidArgument);
    let kinds = [LockKind::Exclusive, LockKind::Shared, LockKind::Permit { of: 3 }];
    for (kind, name) in kinds.iter().zip(["a", "b", "c"]) {
        let mut lease = Lease::new();
        assert_eq!(client.acquire((name, kind), TTL, 0, &mut lease), Ok(()));
        cluster.run_ms(10);
        let before = cluster.deeds().len();
        assert_eq!(client.unlock_after(&mut lease, -1), refused);
        assert_eq!(client.unlock_after(&mut lease, TTL + 1), refused);
        if *kind != LockKind::Exclusive {
            assert_eq!(client.unlock_after(&mut lease, 0), refused);
        }
        cluster.run_ms(10);
        assert_eq!(cluster.deeds().len(), before);
        assert!(lease.is_held());
        assert_eq!(client.unlock(&mut lease), Ok(()));
    }
    let mut lease = client.take("r", TTL);
    assert_eq!(client.extend(&mut lease, 3 * TTL), Ok(()));
    assert_eq!(client.unlock_after(&mut lease, 3 * TTL + 1), refused);
    assert_eq!(client.downgrade(&mut lease), Ok(()));
    assert_eq!(client.unlock_after(&mut lease, 0), refused);
    assert_eq!(client.unlock_after(&mut Lease::new(), 0), Err(Status::Lost));
}

#[test]
fn an_inner_level_is_left_as_with_unlock() {
    let (cluster, client, mut lease) = locked(3);
    assert_eq!(client.retain(&mut lease), Ok(()));
    let before = cluster.deeds().len();
    assert_eq!(client.unlock_after(&mut lease, LEAST), Ok(()));
    assert!(lease.is_held());
    assert_eq!(cluster.deeds().len(), before);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    cluster.run_ms(1);
    assert_eq!(cluster.having_any("r"), 0);
}

/// A caller of the same manager, and one of another, with wake-ups and without. Nobody wakes them.
#[test]
fn a_waiter_gets_the_lock_when_the_key_ends() {
    for wakes in [true, false] {
        for is_other in [true, false] {
            let cluster = Cluster::new(3);
            let new = || match wakes {
                true => cluster.client().woken().connected(),
                false => cluster.client().connected(),
            };
            let holder = Crowd::of(&cluster, new());
            let waiter = if is_other { holder.and(new()) } else { holder.clone() };
            holder.thread(0, |crowd| {
                let mut lease = Lease::new();
                assert_eq!(
                    crowd.call('a', &mut lease, |it, lease| it.lock("r", LONG, lease)),
                    Ok(())
                );
                crowd.run_until(500);
                assert_eq!(crowd.client.unlock_after(&mut lease, LEAST), Ok(()));
            });
            waiter.caller('b', 10, waits(100_000), 0);
            let told = waiter.told();
            let (who, said, at) = told[1];
            assert_eq!((who, said), ('b', Ok(())), "{told:?}");
            // A waiter that is not woken looks at least this often.
            assert!((LEAST..LEAST + 700).contains(&at), "{wakes} {is_other}: {at}");
        }
    }
}

/// The extension through one manager is executed after the other manager has shortened the lock.
#[test]
fn an_extension_by_another_manager_does_not_prolong_the_key() {
    let cluster = Cluster::new(3);
    let new = || Rc::new(cluster.client().tries(1, 0).waits_ms(500).connected());
    let [slow, fast] = [new(), new()];
    let [mut extended, mut released] = [Lease::new(), Lease::new()];
    for lease in [&mut extended, &mut released] {
        assert_eq!(fast.continue_lock("r", LONG, lease), Ok(()));
    }
    let ours = token(&released);
    cluster.run_ms(1);
    for server in 0..3 {
        cluster.script(slow.way(server), [Trip::ms(50, 1)]);
    }
    let extending = Rc::clone(&slow);
    cluster.thread(0, move || {
        assert_eq!(extending.extend(&mut extended, LONG), Err(Status::Lost));
    });
    cluster.run_ms(10);
    let from = cluster.now();
    assert_eq!(fast.unlock_after(&mut released, LEAST), Ok(()));
    cluster.end_threads(1_000);
    cluster.run_ms(10);
    assert_eq!(cluster.having("r", &ours), 3);
    assert!(cluster.kept_until("r", &ours) < from + (LEAST + 200) * MS);
}
