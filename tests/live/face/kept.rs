//! Kept locks, and the notification when they cannot be kept.

use std::time::Duration;

use redlock::Status;

use crate::executor::{block_on, drive_on, poll_once};
use crate::support::{Cluster, finishes, wait_until};
use crate::{connect, driven, manager, options};

/// Long enough for a busy machine.
const SHORT: Duration = Duration::from_secs(8);

fn kept() -> redlock::Options {
    redlock::Options::new("r", SHORT).keep_alive(true)
}

#[test]
fn a_lock_is_kept_until_it_is_unlocked() {
    let cluster = Cluster::start(3);
    let manager = driven(&cluster);
    let mut lease = manager.acquire(&kept()).expect("it is free");
    let mut last = lease.remaining();
    let mut renewed = 0;
    wait_until("it is renewed twice", || {
        let now = lease.remaining();
        renewed += i32::from(now > last);
        last = now;
        renewed == 2
    });
    let mut lost = lease.lost();
    assert!(poll_once(&mut lost).is_pending() && !lost.is_lost() && lost.reason().is_none());
    lease.unlock().expect("it is held");
    cluster.wait_until_gone("r");
    assert!(poll_once(&mut lost).is_pending(), "nothing is told of a lock that was unlocked");
}

#[test]
fn a_majority_loss_is_reported_to_all_waiters() {
    let cluster = Cluster::start(3);
    let manager = connect(driven(&cluster));
    let lease = manager.acquire(&kept()).expect("it is free");
    cluster.wait_until_everywhere("r");
    let (lost, other) = (lease.lost(), lease.lost().clone());
    cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    let error = finishes("the news", move || block_on(lost));
    assert_eq!(error.status(), Status::Lost, "{error}");
    assert_eq!(block_on(other), error);
    assert!(lease.lost().is_lost() && lease.lost().reason() == Some(error));
}

#[test]
fn a_silent_majority_is_reported_while_the_lock_is_held() {
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
    let _ = manager.descriptor().expect("a descriptor");
    let mut lease = manager.acquire(&redlock::Options::new("r", SHORT)).expect("it is free");
    lease.keep_alive().expect("it is held");
    // No other thread drives. A server that was not connected yet gets the key only when the lock is extended.
    wait_until("the key is on all servers", || {
        manager.drive().expect("it drives");
        cluster.having("r") == cluster.len()
    });
    cluster[0].freeze();
    cluster[1].freeze();
    let lost = lease.lost();
    let (error, left) = finishes("the news", move || {
        let error = drive_on(&manager, lost);
        (error, lease.remaining())
    });
    assert_eq!(error.status(), Status::Unreachable, "{error}");
    assert!(left > Duration::ZERO, "it is told in time to stop");
}

#[test]
fn a_dropped_or_cancelled_lock_is_not_kept() {
    let cluster = Cluster::start(3);
    let manager = driven(&cluster);
    drop(manager.acquire(&kept()).expect("it is free"));
    cluster.wait_until_gone("r");
    for _ in 0..20 {
        let _ = poll_once(&mut manager.acquire_async(&kept()));
    }
    cluster.wait_until_gone("r");
    let lease = finishes("another", move || {
        block_on(manager.acquire_async(&options("r").keep_alive(true).wait_forever()))
    });
    assert!(lease.expect("it is free").is_held());
}

#[test]
fn the_loss_of_a_lock_from_a_future_is_reported() {
    let cluster = Cluster::start(3);
    let manager = connect(driven(&cluster));
    let lease = finishes("a lock", move || block_on(manager.acquire_async(&kept())));
    let lost = lease.as_ref().expect("it is free").lost();
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    assert_eq!(finishes("the news", move || block_on(lost)).status(), Status::Lost);
}
