//! Addresses that are configured as servers and are not servers. Two of them among five have no effect, three
//! do.

use crate::support::fake::Abyss;
use crate::support::ports;
use crate::support::usage::{
    DEADLINE, PATIENT_MS, TOO_LONG, TTL, addresses, blames, every_way_to_lock_is_unreachable,
    everything_works, in_time, make_brief,
};
use crate::support::{Cluster, Fake, Lease, Manager, wait_until_ok};
use redlock::ffi::status::RedLockStatus::REDLOCK_UNREACHABLE;

pub(crate) trait Stranger {
    /// As in "127.0.0.1:6379".
    fn address(&self) -> String;
}

impl Stranger for Fake {
    fn address(&self) -> String {
        self.address()
    }
}

impl Stranger for Abyss {
    fn address(&self) -> String {
        self.address()
    }
}

/// An address where connections are refused.
pub(crate) struct Nobody {
    port: u16,
}

impl Nobody {
    pub(crate) fn new() -> Self {
        Self { port: ports::free() }
    }
}

impl Stranger for Nobody {
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Runs these checks against strangers of one kind. The words about each stranger must contain one of these.
#[track_caller]
pub(crate) fn are_strange<S: Stranger>(stranger: impl Fn() -> S, words: &[&str]) {
    let strangers = [stranger(), stranger()];
    as_a_minority_they_do_not_show(&strangers.each_ref().map(Stranger::address));
    let strangers = [stranger(), stranger(), stranger()];
    as_a_majority_they_are_unreachable(&strangers.each_ref().map(Stranger::address), words);
}

#[track_caller]
fn as_a_minority_they_do_not_show(strangers: &[String]) {
    let cluster = Cluster::start(3);
    let manager = Manager::at(&[strangers, &addresses(&cluster)].concat());
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    in_time(TOO_LONG, || {
        for _ in 0..5 {
            everything_works(&manager, "r");
        }
    });
    cluster.wait_until_gone("r");
}

/// The other addresses are real servers, and nothing stays on them.
#[track_caller]
fn as_a_majority_they_are_unreachable(strangers: &[String], words: &[&str]) {
    let cluster = Cluster::start(2);
    let manager = Manager::at(&[strangers, &addresses(&cluster)].concat());
    make_brief(&manager);
    every_way_to_lock_is_unreachable(&manager, "r");
    in_time(DEADLINE, || assert_eq!(manager.is_locked("r"), Err(REDLOCK_UNREACHABLE)));
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong with each server", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), strangers, words)
    });
    cluster.wait_until_gone("r");
}
