//! One descriptor is enough for an event loop. It is readable whenever there is work to do or an event to take.

use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::TTL;
use crate::support::events::{Wanted, is_readable};
use crate::support::sentinels::{Group, Sentinel, url};
use crate::support::usage::connected;
use crate::support::{Cluster, Lease, Manager, wait_until};

const AT_ONCE: Duration = Duration::ZERO;

const AN_HOUR_MS: i64 = 3_600_000;

#[test]
fn the_descriptor_alone_is_enough_for_lock_and_unlock() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let descriptor = manager.descriptor();
    assert!(descriptor > 2);
    assert!(!is_readable(descriptor, AT_ONCE), "there is nothing to do");
    // No timer expires meanwhile, so only the sockets make the descriptor readable.
    assert_eq!(manager.set_timeouts(AN_HOUR_MS, AN_HOUR_MS), REDLOCK_OK);
    let wanted = Wanted::new("r", 10 * AN_HOUR_MS);
    for round in 0..50 {
        assert_eq!(manager.submit_acquire(&wanted, &lease, round), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK);
        assert_eq!(manager.submit_unlock(&lease, round), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK);
        assert_eq!(manager.descriptor(), descriptor, "it is another");
    }
}

/// The Sentinels are asked during the connection.
#[test]
fn the_descriptor_alone_is_enough_to_find_masters() {
    let groups = ["g1", "g2", "g3"].map(|name| Group::start(name, 1, 1_000));
    let sentinel = Sentinel::start(&groups.each_ref().map(Group::master_port), 1);
    let urls = groups.each_ref().map(|it| url(&[sentinel.address()], &it.name));
    for round in 0..5 {
        let (manager, lease) = (Manager::of_urls(&urls), Lease::new());
        assert_eq!(manager.set_timeouts(AN_HOUR_MS, AN_HOUR_MS), REDLOCK_OK);
        manager.descriptor();
        assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, round), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.submit_unlock(&lease, round), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
    }
}

#[test]
fn the_descriptor_is_readable_while_an_event_is_ready() {
    // A single server, so that no answer comes late.
    let cluster = Cluster::start(1);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let descriptor = manager.descriptor();
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 1), REDLOCK_OK);
    // Driven by a blocking call, while the loop does something else.
    let own = manager.take("s", TTL);
    assert_eq!(manager.unlock(&own), REDLOCK_OK);
    for _ in 0..3 {
        assert!(is_readable(descriptor, AT_ONCE));
    }
    assert_eq!(manager.next_event(0).map(|it| it.status), Some(REDLOCK_OK));
    assert_eq!(manager.next_event(0), None);
}

/// The first call is sent at once, and the second with the next data that is sent.
#[test]
fn the_descriptor_is_readable_with_an_unsent_call() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let descriptor = manager.descriptor();
    while is_readable(descriptor, AT_ONCE) {
        assert_eq!(manager.next_event(0), None);
    }
    cluster.iter().for_each(|server| server.freeze());
    let leases = [Lease::new(), Lease::new()];
    for (lease, resource) in leases.iter().zip(["r", "s"]) {
        assert_eq!(manager.submit_acquire(&Wanted::new(resource, TTL), lease, 1), REDLOCK_OK);
    }
    assert!(is_readable(descriptor, AT_ONCE));
    cluster.iter().for_each(|server| server.resume());
    for _ in leases {
        manager.event_by_descriptor();
    }
}

/// The background thread waits for servers that accept connections and say nothing. An event loop that is called for that
/// has nothing to do, and would burn a processor.
#[test]
fn the_descriptor_is_quiet_beside_the_background_thread() {
    let cluster = Cluster::start(3);
    for round in 0..20 {
        cluster.iter().for_each(|server| server.freeze());
        let (manager, lease) = (cluster.manager(), Lease::new());
        assert_eq!(manager.set_timeouts(AN_HOUR_MS, AN_HOUR_MS), REDLOCK_OK);
        assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
        let descriptor = manager.descriptor();
        let wanted = Wanted::new("r", 10 * AN_HOUR_MS);
        assert_eq!(manager.submit_acquire(&wanted, &lease, round), REDLOCK_OK);
        wait_until("there is nothing to do", || {
            assert_eq!(manager.next_event(0), None);
            !is_readable(descriptor, AT_ONCE)
        });
        cluster.iter().for_each(|server| server.resume());
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}

#[test]
fn the_descriptor_is_readable_when_a_timer_is_due() {
    let cluster = Cluster::start(3);
    let (manager, lease, other) = (cluster.manager(), Lease::new(), cluster.manager());
    let held = other.take("r", TTL);
    // The end of a wait, with pauses before.
    let wanted = Wanted { wait_ms: 300, ..Wanted::new("r", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &lease, 1), REDLOCK_OK);
    assert_eq!(manager.event_by_descriptor().status, REDLOCK_TAKEN);
    drop(held);
    // The reply timeout of servers that do not answer.
    cluster.iter().for_each(|server| server.freeze());
    assert_eq!(manager.submit_acquire(&Wanted::new("s", TTL), &lease, 1), REDLOCK_OK);
    assert_eq!(manager.event_by_descriptor().status, REDLOCK_UNREACHABLE);
    cluster.iter().for_each(|server| server.resume());
}

#[test]
fn the_descriptor_follows_new_connections() {
    let cluster = Cluster::start(3);
    // Unix sockets connect at once, so only the number of the descriptor distinguishes the new connection from
    // the old.
    let sockets: Vec<_> = cluster.iter().map(|it| format!("unix://{}", it.unix_socket())).collect();
    for manager in [cluster.manager(), Manager::of_urls(&sockets)] {
        goes_on_with_new_connections(&cluster, &manager);
    }
}

#[track_caller]
fn goes_on_with_new_connections(cluster: &Cluster, manager: &Manager) {
    let lease = Lease::new();
    // No timer expires meanwhile, so only the sockets make the descriptor readable.
    assert_eq!(manager.set_timeouts(AN_HOUR_MS, AN_HOUR_MS), REDLOCK_OK);
    // A call may have to find out that a connection was closed a moment ago.
    let wanted = Wanted { wait_ms: 60_000, ..Wanted::new("r", 10 * AN_HOUR_MS) };
    for round in 0..5 {
        assert_eq!(manager.submit_acquire(&wanted, &lease, round), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.submit_unlock(&lease, round), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
        // One server stays connected, and a quorum does not.
        cluster.iter().take(2).for_each(|server| server.hang_up());
    }
}

#[test]
fn an_idle_event_loop_is_not_woken() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 1), REDLOCK_OK);
    assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK);
    cluster.wait_until_everywhere("r");
    // Timers of finished work may expire once.
    let mut wakes = 0;
    while is_readable(manager.descriptor(), Duration::from_millis(700)) {
        assert_eq!(manager.next_event(0), None);
        wakes += 1;
        assert!(wakes < 20, "it is readable again and again");
    }
}

/// Nothing else happens for an hour. A waiter in the queue looks at the end of a pause, and other waiters try
/// to lock.
#[test]
fn requests_after_a_pause_are_sent_at_once() {
    let cluster = Cluster::start(3);
    for (waking, command) in [(false, "set"), (true, "zrank")] {
        goes_on_after_its_pauses(&cluster, waking, command);
    }
}

/// `command` is what the waiter sends after each pause.
#[track_caller]
fn goes_on_after_its_pauses(cluster: &Cluster, waking: bool, command: &str) {
    let (manager, lease, other) = (connected(cluster), Lease::new(), cluster.manager());
    assert_eq!(manager.set_waking(waking), REDLOCK_OK);
    assert_eq!(manager.set_timeouts(AN_HOUR_MS, AN_HOUR_MS), REDLOCK_OK);
    for round in 0..5 {
        let held = other.take("r", TTL);
        let wanted = Wanted { wait_ms: AN_HOUR_MS, ..Wanted::new("r", 10 * AN_HOUR_MS) };
        let before = cluster[0].calls(command);
        assert_eq!(manager.submit_acquire(&wanted, &lease, round), REDLOCK_OK);
        // The first command is sent before there is a pause.
        while cluster[0].calls(command) < before + 2 {
            assert!(is_readable(manager.descriptor(), Duration::from_secs(60)), "for a minute");
            assert_eq!(manager.next_event(0), None);
        }
        assert_eq!(other.unlock(&held), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.submit_unlock(&lease, round), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
        cluster.wait_until_gone("r");
    }
}

/// The servers answer so quickly that one pass sees everything: the handshake, and the results of a chore.
/// Requests that follow from these results are sent all the same.
#[test]
fn requests_within_a_look_are_sent_at_once() {
    let cluster = Cluster::start(3);
    let sockets: Vec<_> = cluster.iter().map(|it| format!("unix://{}", it.unix_socket())).collect();
    for _ in 0..30 {
        let (manager, lease) = (Manager::of_urls(&sockets), Lease::new());
        assert_eq!(manager.set_timeouts(AN_HOUR_MS, AN_HOUR_MS), REDLOCK_OK);
        let wanted = Wanted::new("r", 10 * AN_HOUR_MS);
        assert_eq!(manager.submit_acquire(&wanted, &lease, 1), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.submit_unlock(&lease, 1), REDLOCK_OK);
        assert_eq!(manager.event_by_descriptor().status, REDLOCK_OK, "{}", lease.message());
        cluster.wait_until_gone("r");
    }
}
