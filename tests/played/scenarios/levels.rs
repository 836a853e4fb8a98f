//! A lock that is held at several levels needs as many unlocks, and only the last one asks servers.

use super::client::Client;
use super::cluster::{Cluster, Verb};
use super::{TTL, VALID};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

/// A client that holds a lock at this number of levels, and a rival.
fn retained(levels: u32) -> (Cluster, Client, Lease, Client) {
    let cluster = Cluster::new(3);
    let holder = cluster.client().tries(1, 0).waits_ms(100).connected();
    let rival = cluster.client().tries(1, 0).waits_ms(100).connected();
    let mut lease = holder.take("r", TTL);
    for level in 2..=levels {
        holder.retain(&mut lease).expect("it is held");
        assert_eq!(lease.levels(), level);
    }
    cluster.run_ms(1);
    (cluster, holder, lease, rival)
}

#[test]
fn only_the_last_unlock_asks_the_servers() {
    for levels in 1..=4 {
        let (cluster, holder, mut lease, rival) = retained(levels);
        let before = cluster.deeds().len();
        for left in (1..levels).rev() {
            assert_eq!(holder.unlock(&mut lease), Ok(()));
            assert!(lease.is_held() && lease.levels() == left);
        }
        cluster.run_ms(10);
        assert_eq!(cluster.deeds().len(), before, "an inner level was told to servers");
        assert_eq!(rival.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
        assert_eq!(holder.unlock(&mut lease), Ok(()));
        assert!(!lease.is_held() && lease.levels() == 0);
        cluster.run_ms(1);
        assert_eq!(cluster.having_any("r"), 0);
        assert_eq!(holder.unlock(&mut lease), Err(Status::Lost), "one unlock too many");
        assert_eq!(rival.lock("r", TTL, &mut Lease::new()), Ok(()));
    }
}

/// The lock is lost in any way: it has expired, an extension or a confirmation has found it gone, or
/// another client has it.
#[test]
fn a_lost_lock_is_reported_at_every_level() {
    type Lose = fn(&Cluster, &Client, &mut Lease);
    let ways: [Lose; 3] = [
        |cluster, _, _| cluster.run_ms(VALID + 1_000),
        |cluster, holder, lease| {
            cluster.lose(0..3, "r");
            assert_eq!(holder.extend(lease, TTL), Err(Status::Lost));
        },
        |cluster, holder, lease| {
            (0..3).for_each(|server| cluster.put(server, "r", "another's", TTL));
            assert_eq!(holder.confirm(lease, 0), Err(Status::Lost));
        },
    ];
    for lose in ways {
        let (cluster, holder, mut lease, rival) = retained(3);
        lose(&cluster, &holder, &mut lease);
        assert_eq!(holder.retain(&mut lease), Err(Status::Lost), "a level more");
        for _ in 0..3 {
            assert_eq!(holder.unlock(&mut lease), Err(Status::Lost));
        }
        let expected =
            if cluster.having("r", "another's") > 0 { Err(Status::Taken) } else { Ok(()) };
        assert_eq!(rival.lock("r", TTL, &mut Lease::new()), expected);
    }
}

#[test]
fn an_extension_at_an_inner_level_is_for_all_levels() {
    let (cluster, holder, mut lease, rival) = retained(2);
    cluster.run_ms(5_000);
    assert_eq!(holder.extend(&mut lease, 3 * TTL), Ok(()));
    assert_eq!(lease.levels(), 2);
    assert_eq!(holder.unlock(&mut lease), Ok(()));
    cluster.run_ms(2 * TTL);
    assert!(lease.is_held());
    assert_eq!(rival.lock("r", TTL, &mut Lease::new()), Err(Status::Taken));
    assert_eq!(holder.unlock(&mut lease), Ok(()));
    cluster.run_ms(1);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn continue_lock_keeps_the_levels_of_each_handle() {
    let cluster = Cluster::new(3);
    let holder = cluster.client().tries(1, 0).waits_ms(100).connected();
    let (mut lease, mut other) = (Lease::new(), Lease::new());
    assert_eq!(holder.continue_lock("r", TTL, &mut lease), Ok(()));
    assert_eq!(holder.retain(&mut lease), Ok(()));
    assert_eq!(holder.continue_lock("r", 2 * TTL, &mut lease), Ok(()));
    assert_eq!(lease.levels(), 2);
    assert_eq!(holder.continue_lock("r", TTL, &mut other), Ok(()));
    assert_eq!((lease.levels(), other.levels()), (2, 1));
    // It releases the lock for both.
    assert_eq!(holder.unlock(&mut other), Ok(()));
    assert_eq!(holder.unlock(&mut lease), Err(Status::Lost));
    assert_eq!(holder.unlock(&mut lease), Err(Status::Lost));
    // If the lock was lost, the call takes another lock.
    assert_eq!(holder.continue_lock("r", TTL, &mut lease), Ok(()));
    assert_eq!(lease.levels(), 1);
}

#[test]
fn a_lock_cannot_be_detached_at_an_inner_level() {
    let (_cluster, holder, mut lease, rival) = retained(2);
    assert_eq!(holder.detach(&mut lease), Err(Status::InvalidArgument));
    assert!(lease.is_held() && lease.levels() == 2);
    assert_eq!(holder.unlock(&mut lease), Ok(()));
    let ticket = holder.detach(&mut lease).expect("it is at its outermost level");
    let mut taken = Lease::new();
    assert_eq!(rival.adopt(&ticket, &mut taken), Ok(()));
    assert_eq!(taken.levels(), 1);
}

/// The last unlock reached too few servers. It may be called again, and asks them again.
#[test]
fn a_failed_release_stays_at_the_last_level() {
    let (cluster, holder, mut lease, _) = retained(2);
    assert_eq!(holder.unlock(&mut lease), Ok(()));
    (0..3).for_each(|server| cluster.freeze(server));
    assert_eq!(holder.unlock(&mut lease), Err(Status::Unreachable));
    assert_eq!(lease.levels(), 1);
    assert_eq!(holder.retain(&mut lease), Err(Status::Lost), "its release has begun");
    (0..3).for_each(|server| cluster.thaw(server));
    cluster.run_ms(super::RETRY_GAP_MS);
    assert_eq!(holder.unlock(&mut lease), Ok(()));
    assert_eq!(lease.levels(), 0);
    assert!(holder.asked_at(0, Verb::Acquire).len() == 1);
}
