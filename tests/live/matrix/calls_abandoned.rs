//! Submitted calls whose lease, manager, process or servers go away.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE,
};

use crate::calls::{KEY, VERBS, Verb};
use crate::rig::Rig;
use crate::support::events::{Event, Wanted};
use crate::support::proxy::BOTH;
use crate::support::usage::{TTL, connected, unguarded};
use crate::support::{Cluster, Lease, Manager, Program, Proxy, Server, Way, wait_until};

const A_MINUTE: Duration = Duration::from_secs(60);

/// The call is submitted, and its requests or their answers are held in the proxies.
#[track_caller]
fn under_way(verb: Verb, rig: &Rig, manager: &Manager, way: Way) -> Lease {
    let lease = verb.lease(manager);
    if verb != Verb::Acquire {
        rig.servers.wait_until_everywhere(KEY);
    }
    rig.proxies.iter().for_each(|it| it.stall(way));
    verb.submit(manager, &lease, 1);
    lease
}

fn is_held_back(rig: &Rig, way: Way) -> bool {
    rig.proxies.iter().all(|it| it.is_holding(way))
}

#[test]
fn e10_a_lease_freed_in_a_call_has_one_event_and_no_lock() {
    for verb in VERBS {
        for way in BOTH {
            let rig = Rig::start(3);
            let manager = rig.connected();
            let lease = under_way(verb, &rig, &manager, way);
            wait_until("it is under way", || {
                assert_eq!(manager.next_event(0), None);
                is_held_back(&rig, way)
            });
            let freed = lease.raw().addr();
            drop(lease);
            let event = manager.event();
            assert_eq!(event.status, REDLOCK_CANCELLED, "{verb:?}");
            assert_eq!((event.lease, event.user_data), (freed, 1));
            rig.heal();
            wait_until("all has come", || manager.is_locked("another") == Ok(false));
            if matches!(verb, Verb::Extend | Verb::Confirm) {
                // Freeing the lease releases nothing: a lock that was held before ends with its TTL.
                assert_eq!(rig.servers.having(KEY), 3, "{verb:?}");
            } else {
                rig.servers.wait_until_gone(KEY);
                rig.recovers(&manager, KEY);
            }
            assert_eq!(manager.next_event(0), None, "one event for one call");
        }
    }
}

/// The lock was taken, and no caller has taken the event. A caller that frees the lease no longer wants the
/// lock.
#[test]
fn e10_a_taken_lock_of_a_freed_lease_is_released() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    let lease = Lease::new();
    Verb::Acquire.submit(&manager, &lease, 1);
    // Another call drives, and takes no event.
    wait_until("it is had", || {
        manager.is_locked("another") == Ok(false) && rig.servers.having(KEY) == 3
    });
    drop(lease);
    let event = manager.event();
    assert_eq!((event.status, event.user_data), (REDLOCK_CANCELLED, 1));
    assert_eq!(manager.next_event(0), None, "one event for one call");
    rig.servers.wait_until_gone(KEY);
}

#[test]
fn e10_a_freed_manager_reports_each_end_once() {
    for verb in VERBS {
        for way in BOTH {
            let rig = Rig::start(3);
            let manager = rig.connected();
            let events = manager.told_events();
            assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
            let lease = under_way(verb, &rig, &manager, way);
            wait_until("it is under way", || is_held_back(&rig, way));
            drop(manager);
            let event = events.recv_timeout(A_MINUTE).expect("an event");
            assert_eq!((event.status, event.user_data), (REDLOCK_CANCELLED, 1), "{verb:?}");
            // To destroy it twice would be to free it twice.
            assert_eq!(events.recv_timeout(A_MINUTE), Err(RecvTimeoutError::Disconnected));
            verb.check_lease(&lease);
            rig.heal();
            is_left_alone(verb, &rig, &lease);
        }
    }
}

/// There is no event if nobody is there to take it.
#[test]
fn e10_a_freed_manager_without_callback_leaves_nothing() {
    for verb in VERBS {
        for way in BOTH {
            let rig = Rig::start(3);
            let manager = rig.connected();
            let events = manager.told_events();
            let lease = under_way(verb, &rig, &manager, way);
            wait_until("it is under way", || {
                assert_eq!(manager.next_event(0), None);
                is_held_back(&rig, way)
            });
            drop(manager);
            // Without a thread no event is delivered, but the callback's data is destroyed all the same.
            assert_eq!(events.recv_timeout(A_MINUTE), Err(RecvTimeoutError::Disconnected));
            rig.heal();
            is_left_alone(verb, &rig, &lease);
        }
    }
}

/// The data that was on its way has arrived, with the requests sent behind it: the connections are closed. A
/// lock that was held before is still held, and nothing else is.
#[track_caller]
fn is_left_alone(verb: Verb, rig: &Rig, lease: &Lease) {
    let is_idle = || rig.proxies.iter().all(Proxy::is_idle);
    wait_until("the connections are closed", is_idle);
    let manager = rig.connected();
    if matches!(verb, Verb::Extend | Verb::Confirm) {
        assert_eq!(rig.servers.having(KEY), 3, "{verb:?}");
        assert_eq!(manager.unlock(lease), REDLOCK_OK, "{verb:?}: {}", lease.message());
    }
    rig.servers.wait_until_gone(KEY);
    rig.recovers(&manager, KEY);
}

/// So many calls are in progress that most wait for their turn to ask.
#[test]
fn e10_calls_with_dead_servers_have_one_event_each() {
    const COUNT: usize = 600;
    for dying in [2, 3] {
        let cluster = Cluster::start(3);
        let manager = unguarded(connected(&cluster));
        let leases: Vec<_> = (0..COUNT).map(|_| Lease::new()).collect();
        for (nth, lease) in leases.iter().enumerate() {
            let wanted = Wanted::new(format!("{KEY}-{nth}"), TTL);
            assert_eq!(manager.submit_acquire(&wanted, lease, nth), REDLOCK_OK);
        }
        let held = |event: &Event| {
            assert!(!event.is_lost);
            event.status == REDLOCK_OK
        };
        // A few locks are taken before.
        let mut events = vec![manager.event(), manager.event()];
        cluster[..dying].iter().for_each(Server::kill);
        events.extend((2..COUNT).map(|_| manager.event()));
        assert_eq!(manager.next_event(0), None, "one event for one call");
        for event in &events {
            assert!([REDLOCK_OK, REDLOCK_UNREACHABLE].contains(&event.status), "{event:?}");
            assert_eq!(leases[event.user_data].is_held(), held(event));
        }
        let mut which: Vec<_> = events.iter().map(|it| it.user_data).collect();
        which.sort_unstable();
        assert!(which.into_iter().eq(0..COUNT), "each of the calls has its own");
        // Extensions, confirmations and releases of held locks also have one event each.
        for (nth, event) in events.iter().filter(|it| held(it)).take(30).enumerate() {
            let lease = &leases[event.user_data];
            let (status, allowed) = match nth % 3 {
                0 => (manager.submit_extend(lease, TTL, nth), REDLOCK_UNREACHABLE),
                1 => (manager.submit_confirm(lease, 0, nth), REDLOCK_UNREACHABLE),
                _ => (manager.submit_unlock(lease, nth), REDLOCK_UNREACHABLE),
            };
            assert_eq!(status, REDLOCK_OK, "{}", lease.message());
            let event = manager.event();
            assert_eq!((event.status, event.user_data), (allowed, nth), "{}", lease.message());
            assert_eq!(manager.next_event(0), None, "one event for one call");
        }
        // The servers come back empty, so all held locks are gone.
        cluster[..dying].iter().for_each(Server::restart);
        wait_until("the manager locks again", || {
            let lease = Lease::new();
            manager.lock("again", TTL, &lease) == REDLOCK_OK && manager.unlock(&lease) == REDLOCK_OK
        });
        // A quorum was enough for that.
        manager.connect_to_all();
        for event in events.iter().filter(|it| held(it)) {
            let lease = &leases[event.user_data];
            let status = manager.confirm(lease, 0);
            assert!(!lease.is_held() && status == REDLOCK_LOST, "{status:?}: {}", lease.message());
        }
    }
}

#[test]
fn e10_a_child_does_not_inherit_the_calls_of_its_parent() {
    let rig = Rig::start(3);
    let urls: Vec<_> = rig.proxies.iter().map(Proxy::url).collect();
    let mut program = Program::compile("fork_submitted").start(&urls);
    program.hears("hold the answers");
    rig.proxies.iter().for_each(|it| it.stall(Way::Replies));
    program.says("go on");
    program.hears("submitted");
    wait_until("all have been asked", || {
        is_held_back(&rig, Way::Replies) && rig.servers.having("acquired") == 3
    });
    let before: Vec<_> = rig.proxies.iter().map(|it| it.connections().len()).collect();
    program.says("go on");
    program.hears("the child has looked");
    let after: Vec<_> = rig.proxies.iter().map(|it| it.connections().len()).collect();
    assert_eq!(before, after, "a child that has nothing to ask has connected");
    assert_eq!(rig.servers.having("acquired"), 3, "a child has released it");
    rig.heal();
    program.says("go on");
    program.ends_well();
    for key in ["acquired", "extended", "confirmed", "released"] {
        rig.servers.wait_until_gone(key);
    }
}
