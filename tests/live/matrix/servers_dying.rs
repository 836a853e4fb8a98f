//! Servers that die, and come back with their keys, without them, or with most of them.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::rivals::{RESOURCE, Rivals};
use crate::servers_closing::clients;
use crate::support::product::product;
use crate::support::usage::{DEADLINE, PATIENT_MS, TTL, addresses, blames, in_time, make_brief};
use crate::support::{
    Cluster, Fault, Lease, Manager, Reply, Server, loading, wait_until, wait_until_ok,
};

/// Every acknowledged write is on the disk.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

fn durable(servers: usize) -> Cluster {
    Cluster::start_each(servers, || Server::start_with(&DURABLE))
}

/// The locks are long: only a release ends them.
#[test]
fn s04_one_holder_exists_while_durable_servers_die_in_turn() {
    let cluster = durable(5);
    let managers: Vec<_> = (0..3).map(|_| cluster.manager()).collect();
    let (holders, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (had, busy) = (AtomicUsize::new(0), AtomicUsize::new(managers.len()));
    let hold = |manager| {
        hold_once(manager, &holders);
        had.fetch_add(1, Ordering::Relaxed);
    };
    let kills = thread::scope(|scope| {
        let killing = scope.spawn(|| kill_in_turn(&cluster, &had, &done));
        thread::scope(|scope| {
            for manager in &managers {
                scope.spawn(|| {
                    (0..60).for_each(|_| hold(manager));
                    busy.fetch_sub(1, Ordering::Relaxed);
                    // A release that could not be sent waits for a call of its manager.
                    wait_until("all have had their locks", || {
                        let _ = manager.is_locked("another");
                        busy.load(Ordering::Relaxed) == 0
                    });
                });
            }
        });
        done.store(true, Ordering::Relaxed);
        killing.join().expect("it does not panic")
    });
    assert!(kills >= 10, "only {kills} servers were killed");
    // Each manager sends the releases that it could not send before.
    wait_until("nothing is left", || {
        managers.iter().all(|it| it.is_locked("another") == Ok(false))
            && cluster.having(RESOURCE) == 0
    });
    let lease = Lease::new();
    wait_until("a lock is had again", || {
        managers[0].try_lock(RESOURCE, TTL, 0, &lease) == REDLOCK_OK
    });
}

/// At most two of five are down. Returns how many kills there were. Between two kills a lock is had: otherwise
/// servers could die faster than the clients on a busy machine get their answers.
fn kill_in_turn(cluster: &Cluster, had: &AtomicUsize, done: &AtomicBool) -> usize {
    let mut had_before = 0;
    for kills in 0.. {
        wait_until("a lock is had", || {
            done.load(Ordering::Relaxed) || had.load(Ordering::Relaxed) > had_before
        });
        had_before = had.load(Ordering::Relaxed);
        if done.load(Ordering::Relaxed) && kills >= 10 && kills % 2 == 0 {
            return kills;
        }
        cluster[kills * 3 % cluster.len()].kill();
        if kills % 2 == 1 {
            restart_with_keys(&cluster[(kills - 1) * 3 % cluster.len()]);
            restart_with_keys(&cluster[kills * 3 % cluster.len()]);
        }
    }
    unreachable!("it ends when it is done")
}

fn hold_once(manager: &Manager, holders: &AtomicUsize) {
    let lease = Lease::new();
    wait_until("the lock is had", || {
        manager.try_lock(RESOURCE, TTL, PATIENT_MS, &lease) == REDLOCK_OK
    });
    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two have the lock");
    // With two servers down, one more server that lacks the key can prevent a quorum.
    for status in [manager.extend(&lease, TTL), manager.confirm(&lease, 1000)] {
        let is_kept = [REDLOCK_OK, REDLOCK_UNREACHABLE].contains(&status);
        assert!(is_kept, "{status:?}: {}", lease.message());
    }
    assert!(lease.is_held());
    assert_eq!(holders.fetch_sub(1, Ordering::SeqCst), 1, "two have the lock");
    let status = manager.unlock(&lease);
    assert!([REDLOCK_OK, REDLOCK_UNREACHABLE].contains(&status), "{}", lease.message());
    // The same manager sends the release later if it could not be sent.
    wait_until("the release is told", || {
        status == REDLOCK_OK || manager.is_locked(RESOURCE) == Ok(false)
    });
}

#[test]
fn s05_an_emptied_minority_admits_nobody_and_is_repaired() {
    let cluster = Cluster::start(3);
    let rivals = Rivals::of(&cluster);
    cluster[0].restart();
    assert!(!cluster[0].exists(RESOURCE));
    rivals.one_holds_until_it_is_back(&cluster[0]);
}

#[test]
fn s05_an_emptied_majority_admits_a_rival_and_is_reported() {
    let cluster = Cluster::start(3);
    let rivals = Rivals::unguarded(&cluster);
    cluster[..2].iter().for_each(Server::restart);
    rivals.both_hold();
    rivals.nothing_is_left(&cluster);
}

/// All three are reached. If one of the two that lost the key were not reached, the extension would be refused
/// as unreachable. It would give the key again to the other one, which would then count, because the lock would
/// not be known as lost.
#[test]
fn s05_an_extension_does_not_undo_a_majority_loss() {
    let cluster = Cluster::start(3);
    let rivals = Rivals::unguarded(&cluster);
    cluster[..2].iter().for_each(Server::restart);
    wait_until("the holder is connected anew", || {
        let _ = rivals.holder.is_locked("another");
        cluster[..2].iter().all(|it| clients(it) >= 2)
    });
    rivals.holder.connect_to_all();
    rivals.the_holder_is_told_by_extending();
    rivals.nothing_is_left(&cluster);
    rivals.the_rival_takes_it();
    assert_eq!(rivals.holders(), 1);
}

#[test]
fn s06_a_durable_server_returns_with_the_lock() {
    let cluster = durable(3);
    let rivals = Rivals::of(&cluster);
    let token = rivals.held.token();
    for _ in 0..3 {
        cluster.iter().for_each(restart_with_keys);
        assert_eq!(cluster.having(RESOURCE), 3, "{}", cluster.describe(RESOURCE));
        rivals.one_holds();
    }
    assert_eq!(rivals.held.token(), token);
    assert_eq!(rivals.holder.unlock(&rivals.held), REDLOCK_OK, "{}", rivals.held.message());
    rivals.nothing_is_left(&cluster);
    cluster.iter().for_each(restart_with_keys);
    assert_eq!(cluster.having(RESOURCE), 0, "a release is durable, too");
}

/// The data that `appendfsync everysec` may lose when the machine dies: the last commands, or half of one.
#[test]
fn s07_a_majority_without_its_last_commands_admits_a_rival() {
    for kept_of_the_lock in [0, 7, 60] {
        let everysec = ["--appendonly", "yes", "--appendfsync", "everysec"];
        let cluster = Cluster::start_each(3, || Server::start_with(&everysec));
        let before: Vec<_> = cluster.iter().map(|it| length(&log_of_writes(it))).collect();
        let rivals = Rivals::unguarded(&cluster);
        for (server, before) in cluster[..2].iter().zip(before) {
            let written = || length(&log_of_writes(server)) > before + kept_of_the_lock;
            wait_until("it is written", written);
            server.kill();
            let file = File::options().write(true).open(log_of_writes(server)).expect("a file");
            file.set_len(before + kept_of_the_lock).expect("it can be cut");
            restart_with_keys(server);
        }
        rivals.both_hold();
        rivals.nothing_is_left(&cluster);
    }
}

fn restart_with_keys(server: &Server) {
    server.restart();
    wait_until("it has loaded", || server.command(&["GET", "x"]) == Reply::Nil);
}

fn log_of_writes(server: &Server) -> String {
    match product().is_before_7() {
        true => server.file("appendonly.aof"),
        false => server.file("appendonlydir/appendonly.aof.1.incr.aof"),
    }
}

fn length(path: &str) -> u64 {
    fs::metadata(path).expect("it is there").len()
}

#[test]
fn s11_loading_servers_have_no_vote_and_then_have_the_lock() {
    let slow = [&DURABLE[..], loading::arguments()].concat();
    let cluster = Cluster::start_each(3, || Server::start_with(&slow));
    cluster[..2].iter().for_each(loading::fill);
    let rivals = Rivals::of(&cluster);
    cluster[0].restart();
    rivals.one_holds();
    cluster[1].restart();

    for manager in [&rivals.holder, &rivals.rival] {
        make_brief(manager);
    }
    wait_until_ok("the message tells what is wrong", || {
        in_time(DEADLINE, || assert_eq!(rivals.try_to_take_over(), REDLOCK_UNREACHABLE));
        blames(&rivals.wanted.message(), &addresses(&cluster[..2]), &["LOADING"])
    });
    let extended = rivals.holder.extend(&rivals.held, TTL);
    assert_eq!(extended, REDLOCK_UNREACHABLE, "{}", rivals.held.message());
    assert!(rivals.held.is_held());

    cluster[..2].iter().for_each(Fault::LOADING.mend);
    for manager in [&rivals.holder, &rivals.rival] {
        assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    }
    rivals.one_holds();
}
