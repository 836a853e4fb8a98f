//! Faults of servers with TLS while locks are held.

use std::sync::Barrier;
use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::usage::{
    DEADLINE, TOO_LONG, TTL, addresses, blames, connected, connected_unguarded,
    every_way_to_lock_is_unreachable, everything_works, in_time, locks_again, make_brief,
    nothing_is_left, patient,
};
use crate::support::{Cluster, Fault, Lease, Server, wait_until, wait_until_ok};

/// Another fault that a server has in addition.
const FAULTS: [Fault; 4] = [Fault::KILLED, Fault::FROZEN, Fault::PASSWORD, Fault::BUSY];

#[test]
fn a_faulty_minority_is_harmless() {
    for fault in FAULTS {
        let cluster = Cluster::start_tls(5);
        let manager = connected(&cluster);
        cluster[..2].iter().for_each(fault.strike);
        in_time(TOO_LONG, || (0..5).for_each(|_| everything_works(&manager, "r")));
        cluster[..2].iter().for_each(fault.mend);
        nothing_is_left(&manager, &cluster, "r");
    }
}

#[test]
fn an_always_faulty_minority_is_harmless() {
    for fault in FAULTS {
        let cluster = Cluster::start_tls(5);
        cluster[..2].iter().for_each(fault.strike);
        let manager = patient(&cluster);
        in_time(TOO_LONG, || (0..5).for_each(|_| everything_works(&manager, "r")));
        cluster[..2].iter().for_each(fault.mend);
        nothing_is_left(&manager, &cluster, "r");
    }
}

#[test]
fn a_faulty_majority_is_unreachable_until_it_is_mended() {
    for fault in FAULTS {
        let cluster = Cluster::start_tls(3);
        let manager = connected_unguarded(&cluster);
        make_brief(&manager);
        cluster[..2].iter().for_each(fault.strike);
        every_way_to_lock_is_unreachable(&manager, "r");
        let lease = Lease::new();
        wait_until_ok("the message tells what is wrong", || {
            assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
            blames(&lease.message(), &addresses(&cluster[..2]), fault.words)
        });
        cluster[..2].iter().for_each(fault.mend);
        nothing_is_left(&manager, &cluster, "r");
        wait_until("the manager locks again", || {
            manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK
        });
    }
}

/// A late grant is undone by the release that was queued behind the request.
#[test]
fn a_late_grant_is_released_over_the_same_connection() {
    let cluster = Cluster::start_tls(3);
    let manager = connected(&cluster);
    make_brief(&manager);
    let before: Vec<_> = cluster.iter().map(Server::clients).collect();
    for _ in 0..5 {
        cluster[..2].iter().for_each(Server::freeze);
        in_time(DEADLINE, || {
            assert_eq!(manager.lock("r", TTL, &Lease::new()), REDLOCK_UNREACHABLE);
        });
        cluster[..2].iter().for_each(Server::resume);
        cluster.wait_until_gone("r");
        let lease = Lease::new();
        wait_until("they are asked again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
        // Not by a command of the test, because a grant that no call waited for may come after that.
        wait_until("it is released", || manager.unlock(&lease) != REDLOCK_UNREACHABLE);
        cluster.wait_until_gone("r");
    }
    let after: Vec<_> = cluster.iter().map(Server::clients).collect();
    assert_eq!(before, after, "connections were given up");
}

#[test]
fn a_restarted_tls_server_is_used_again() {
    let cluster = Cluster::start_tls(3);
    let manager = connected_unguarded(&cluster);
    for server in cluster.iter().cycle().take(6) {
        server.restart();
        everything_works(&manager, "r");
        manager.connect_to_all();
    }
    cluster.iter().for_each(Server::restart);
    let lease = Lease::new();
    wait_until("the manager locks again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    manager.connect_to_all();
    everything_works(&manager, "r");
}

/// They close with the closing message of TLS.
#[test]
fn connections_closed_by_servers_are_replaced() {
    let cluster = Cluster::start_tls(3);
    let manager = connected(&cluster);
    for _ in 0..10 {
        cluster.iter().for_each(Server::hang_up);
        locks_again(&manager, "r");
    }
    nothing_is_left(&manager, &cluster, "r");
}

/// Through one manager, whose sessions they share, and each also through its own manager.
#[test]
fn many_threads_lock_at_once() {
    const THREADS: usize = 16;
    let cluster = Cluster::start_tls(3);
    let manager = patient(&cluster);
    let (start, place) = (Barrier::new(THREADS), std::sync::Mutex::new(()));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cluster, manager, start, place) = (&cluster, &manager, &start, &place);
            scope.spawn(move || {
                let (own, lease) = (patient(cluster), Lease::new());
                start.wait();
                for round in 0..25 {
                    let manager = if round % 5 == 0 { &own } else { manager };
                    let status = manager.try_lock("shared", TTL, -1, &lease);
                    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                    drop(place.try_lock().expect("two hold the lock at once"));
                    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
                    everything_works(manager, &format!("of-{thread}"));
                }
            });
        }
    });
    nothing_is_left(&manager, &cluster, "shared");
}

#[test]
fn servers_break_while_many_threads_lock() {
    const THREADS: usize = 8;
    let cluster = Cluster::start_tls(5);
    let manager = patient(&cluster);
    manager.connect_to_all();
    thread::scope(|scope| {
        let working: Vec<_> = (0..THREADS)
            .map(|thread| {
                let manager = &manager;
                scope.spawn(move || {
                    (0..60).for_each(|_| everything_works(manager, &format!("of-{thread}")));
                })
            })
            .collect();
        for server in cluster[..2].iter().cycle() {
            if working.iter().all(|it| it.is_finished()) {
                break;
            }
            server.hang_up();
            server.freeze();
            server.resume();
            server.restart();
        }
    });
    (0..THREADS).for_each(|it| nothing_is_left(&manager, &cluster, &format!("of-{it}")));
}
