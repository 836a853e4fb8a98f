//! Processes that keep a lock, by `tests/programs/c/keeper.c`: they end, fork, and are stopped.

use std::os::unix::process::ExitStatusExt;
use std::thread;

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::calls::KEY;
use crate::support::program::Running;
use crate::support::usage::{TTL, connected};
use crate::support::{Cluster, Program, Server, wait_until};

/// Which thread drives in the process: a thread of the library, or the program itself.
pub(crate) const DRIVERS: [&str; 2] = ["thread", "events"];

fn keeper(program: &Program, driver: &str, cluster: &Cluster) -> Running {
    keeper_of(program, &[driver], cluster)
}

/// A keeper with these instructions about its lock.
pub(crate) fn keeper_of(program: &Program, words: &[&str], cluster: &Cluster) -> Running {
    let words = words.iter().map(|it| (*it).to_owned());
    let mut keeper = program.start(&words.chain(cluster.urls()).collect::<Vec<_>>());
    keeper.hears("kept");
    cluster.wait_until_everywhere(KEY);
    keeper.says("renew");
    keeper.hears("renewed");
    keeper
}

/// From now on no key's life is prolonged.
#[track_caller]
pub(crate) fn ends_with_its_time(cluster: &Cluster) {
    let mut left = vec![i64::MAX; cluster.len()];
    wait_until("the lock ends with its time", || {
        for (server, left) in cluster.iter().zip(&mut left) {
            let now = server.pttl(KEY);
            assert!(now <= *left, "{} prolongs it from {left} to {now}", server.address());
            *left = now;
        }
        cluster.having(KEY) == 0
    });
    let manager = cluster.manager();
    let next = manager.take(KEY, TTL);
    assert_eq!(manager.unlock(&next), REDLOCK_OK, "{}", next.message());
}

#[test]
fn e07_a_kept_lock_ends_one_ttl_after_its_process() {
    let program = &Program::compile("keeper");
    thread::scope(|scope| {
        for driver in DRIVERS {
            for (how, signal) in [("exit", None), ("_exit", None), ("kill", Some(libc::SIGKILL))] {
                scope.spawn(move || {
                    let cluster = Cluster::start(3);
                    let mut keeper = keeper(program, driver, &cluster);
                    keeper.says(how);
                    let status = keeper.ends();
                    assert_eq!(status.signal(), signal, "{how}: {status}");
                    assert!(status.success() || signal.is_some(), "{how}: {status}");
                    let is_alone = |it: &Server| it.clients().is_empty();
                    wait_until("the connections are closed", || cluster.iter().all(is_alone));
                    ends_with_its_time(&cluster);
                });
            }
        }
    });
}

#[test]
fn e07_a_kept_lock_ends_when_its_process_executes_another() {
    let program = Program::compile("keeper");
    for driver in DRIVERS {
        let cluster = Cluster::start(3);
        let mut keeper = keeper(&program, driver, &cluster);
        keeper.says("run another program");
        keeper.hears("another program");
        let is_alone = |it: &Server| it.clients().is_empty();
        wait_until("the connections are closed", || cluster.iter().all(is_alone));
        ends_with_its_time(&cluster);
        keeper.says("go on");
        keeper.ends_well();
    }
}

#[test]
fn e08_a_child_neither_keeps_nor_releases_the_lock() {
    let program = &Program::compile("keeper");
    thread::scope(|scope| {
        for driver in DRIVERS {
            scope.spawn(move || {
                let cluster = Cluster::start(3);
                let mut keeper = keeper(program, driver, &cluster);
                let tokens = || cluster.iter().map(|it| it.get(KEY)).collect::<Vec<_>>();
                let before = tokens();
                keeper.says("fork");
                keeper.hears("the parent ends");
                let is_as_it_was = |(now, before): (&Option<_>, &_)| now.is_none() || now == before;
                let now = tokens();
                assert!(now.iter().zip(&before).all(is_as_it_was), "{now:?} after {before:?}");
                ends_with_its_time(&cluster);
                keeper.hears("the lock is gone");
                keeper.ends_well();
            });
        }
    });
}

#[test]
fn e09_a_long_stopped_process_is_told_and_spares_the_rival() {
    let program = &Program::compile("keeper");
    thread::scope(|scope| {
        for driver in DRIVERS {
            scope.spawn(move || {
                let cluster = Cluster::start(3);
                let mut keeper = keeper(program, driver, &cluster);
                keeper.says("await the loss");
                keeper.freeze();
                ends_with_its_time(&cluster);
                let rival = connected(&cluster);
                let next = rival.take(KEY, TTL);
                cluster.wait_until_everywhere(KEY);
                let tokens = || cluster.iter().map(|it| it.get(KEY)).collect::<Vec<_>>();
                let before = tokens();
                keeper.resume();
                keeper.hears("lost");
                assert_eq!(tokens(), before, "another's lock was touched");
                assert_eq!(rival.confirm(&next, 0), REDLOCK_OK, "{}", next.message());
                assert_eq!(rival.unlock(&next), REDLOCK_OK, "{}", next.message());
                // Nothing of it comes back.
                keeper.says("exit");
                keeper.ends_well();
                cluster.wait_until_gone(KEY);
            });
        }
    });
}
