//! What a process does to itself while it uses the library: it ends, unloads it, runs out of resources.

use std::os::unix::process::ExitStatusExt;
use std::thread;

use crate::support::{Cluster, Lease, Program, Server, library, wait_until};
use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

#[test]
fn f02_without_random_bytes_no_lock_is_taken() {
    let cluster = Cluster::start(3);
    let mut program = Program::compile("no_entropy").start(&cluster.urls());
    program.hears("held");
    cluster.wait_until_everywhere("held");
    let sets = || cluster.iter().map(|it| it.calls("set")).collect::<Vec<_>>();
    let before = sets();
    program.says("go on");
    program.ends_well();
    assert_eq!(sets(), before, "something was asked to be set");
    cluster.wait_until_gone("held");
}

#[test]
fn f05_exit_is_not_delayed_and_the_ttl_ends_the_lock() {
    thread::scope(|scope| {
        for how in ["exit", "exit while others wait", "exit from a thread", "return"] {
            scope.spawn(move || ends_with_its_ttl(how, None));
        }
    });
}

#[test]
fn f05_an_immediate_end_leaves_the_lock_to_its_ttl() {
    thread::scope(|scope| {
        let signals = [None, Some(libc::SIGKILL), Some(libc::SIGABRT)];
        for (how, signal) in ["_exit", "kill", "abort"].into_iter().zip(signals) {
            scope.spawn(move || ends_with_its_ttl(how, signal));
        }
    });
}

#[test]
fn f05_a_lease_freed_in_a_hold_leaves_the_lock_to_its_ttl() {
    ends_with_its_ttl("free and return", None);
}

/// The process ends before the lock does, and the test checks that. Then the lock ends.
fn ends_with_its_ttl(how: &str, signal: Option<i32>) {
    let cluster = Cluster::start(3);
    let arguments = [vec![how.to_owned()], cluster.urls()].concat();
    let mut program = Program::compile("endings").start(&arguments);
    program.hears("held");
    cluster.wait_until_everywhere("held");
    program.says("go on");
    let status = program.ends();
    assert_eq!(status.signal(), signal, "{how}: {status}");
    assert!(status.success() || signal.is_some(), "{how}: {status}");
    assert_eq!(cluster.having("held"), 3, "{how}: it took as long as the lock");
    for server in cluster.iter() {
        wait_until("the connections are closed", || server.clients().is_empty());
    }
    let (manager, lease) = (cluster.manager(), Lease::new());
    let status = manager.try_lock("held", 60_000, 20_000, &lease);
    assert_eq!(status, REDLOCK_OK, "{how}: {}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    cluster.wait_until_gone("held");
}

#[test]
fn f05_a_lock_outlives_the_thread_that_took_it() {
    let cluster = Cluster::start(3);
    Program::compile("thread_ends").run(&cluster.urls());
    for key in ["r", "used"] {
        cluster.wait_until_gone(key);
    }
}

#[test]
fn f06_loading_and_unloading_a_thousand_times_leaves_nothing() {
    let cluster = Cluster::start(3);
    let path = library::path().to_str().expect("the path is UTF-8").to_owned();
    Program::compile("loading").run(&[vec![path], cluster.urls()].concat());
    let keys: i64 = cluster.iter().map(|it| it.locks()).sum();
    assert_eq!(keys, 0);
}

#[test]
fn f07_exhausted_process_limits_are_temporary_errors() {
    let cluster = Cluster::start(3);
    let mut program = Program::compile("limits").start(&cluster.urls());
    program.hears("break the connections");
    cluster.iter().for_each(Server::hang_up);
    program.says("done");
    program.ends_well();
    cluster.wait_until_gone("r");
}
