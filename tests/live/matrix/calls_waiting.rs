//! Calls that are cancelled while they wait: for their turn, in a pause, and when their time is up.

use std::thread;
use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::calls::KEY;
use crate::rig::Rig;
use crate::support::events::Wanted;
use crate::support::usage::{TTL, connected};
use crate::support::{Cluster, Lease, Manager, Proxy, Way, wait_until};

fn patient() -> Wanted {
    Wanted { wait_ms: -1, ..Wanted::new(KEY, TTL) }
}

/// Submits this many calls that want the lock. When this returns, each is in the queue behind the earlier ones.
fn waiters<const COUNT: usize>(manager: &Manager) -> [Lease; COUNT] {
    std::array::from_fn(|nth| {
        let lease = Lease::new();
        assert_eq!(manager.submit_acquire(&patient(), &lease, nth), REDLOCK_OK);
        lease
    })
}

/// The next event belongs to this call, and the call holds its lock.
#[track_caller]
fn has_its_turn(manager: &Manager, lease: &Lease, nth: usize) {
    let event = manager.event();
    assert_eq!((event.status, event.user_data), (REDLOCK_OK, nth), "{}", lease.message());
    assert!(lease.is_held());
    assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
}

#[track_caller]
fn is_cancelled(manager: &Manager, lease: &Lease, nth: usize) {
    assert_eq!(manager.cancel(lease), REDLOCK_OK);
    let event = manager.event();
    assert_eq!((event.status, event.user_data), (REDLOCK_CANCELLED, nth), "{}", lease.message());
    assert!(!lease.is_held() && lease.token().is_empty());
}

/// One of three calls is cancelled: the first, which asks, or one behind it. The others have their turn, in
/// their order.
#[test]
fn e04_a_cancelled_waiter_leaves_the_others_their_turns() {
    for cancelled in 0..3 {
        for is_own in [true, false] {
            let cluster = Cluster::start(3);
            let manager = connected(&cluster);
            let other = connected(&cluster);
            let holder = if is_own { &manager } else { &other };
            let held = holder.take(KEY, TTL);
            let leases: [Lease; 3] = waiters(&manager);
            is_cancelled(&manager, &leases[cancelled], cancelled);
            assert_eq!(manager.next_event(0), None, "the others wait still");
            assert_eq!(holder.confirm(&held, 0), REDLOCK_OK, "{}", held.message());
            assert_eq!(holder.unlock(&held), REDLOCK_OK, "{}", held.message());
            for (nth, lease) in leases.iter().enumerate().filter(|(nth, _)| *nth != cancelled) {
                has_its_turn(&manager, lease, nth);
            }
            cluster.wait_until_gone(KEY);
            assert_eq!(manager.next_event(0), None, "one event for one call");
        }
    }
}

/// The lock was on its way to the first call when that call was cancelled. The next call asks behind the
/// release, in one write.
#[test]
fn e04_a_cancelled_turn_goes_to_the_next() {
    for way in [Way::Requests, Way::Replies] {
        let rig = Rig::start(3);
        let manager = rig.connected();
        let held = manager.take(KEY, TTL);
        rig.servers.wait_until_everywhere(KEY);
        let leases: [Lease; 2] = waiters(&manager);
        rig.proxies.iter().for_each(|it| it.stall(way));
        assert_eq!(manager.submit_unlock(&held, 9), REDLOCK_OK);
        wait_until("both are on their way", || {
            assert_eq!(manager.next_event(0), None);
            rig.proxies.iter().all(|it| it.is_holding(way))
        });
        is_cancelled(&manager, &leases[0], 0);
        rig.heal();
        let mut events = [manager.event(), manager.event()];
        events.sort_by_key(|it| it.user_data);
        assert_eq!(events.map(|it| it.user_data), [1, 9]);
        assert_eq!(events[0].status, REDLOCK_OK, "{}", leases[1].message());
        assert!(leases[1].is_held());
        assert_eq!(manager.unlock(&leases[1]), REDLOCK_OK, "{}", leases[1].message());
        rig.servers.wait_until_gone(KEY);
    }
}

/// A call that was asking is cancelled. The call behind it does not wait for its answers.
#[test]
fn e04_a_cancelled_asking_call_gives_the_next_its_turn() {
    for way in [Way::Requests, Way::Replies] {
        let rig = Rig::start(3);
        let manager = rig.connected();
        rig.proxies.iter().for_each(|it| it.stall(way));
        let leases: [Lease; 2] = waiters(&manager);
        wait_until("the first is asking", || {
            assert_eq!(manager.next_event(0), None);
            rig.proxies.iter().all(|it| it.is_holding(way))
        });
        is_cancelled(&manager, &leases[0], 0);
        rig.heal();
        has_its_turn(&manager, &leases[1], 1);
        rig.servers.wait_until_gone(KEY);
    }
}

#[test]
fn e04_a_cancelled_waiting_thread_leaves_others_their_turns() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let held = manager.take(KEY, TTL);
    let leases: [Lease; 3] = std::array::from_fn(|_| Lease::new());
    thread::scope(|scope| {
        let wait = |lease| {
            let manager = &manager;
            // Longer than any call waits for its turn here, but not for ever, because a test that fails must
            // end.
            scope.spawn(move || manager.try_lock(KEY, TTL, 120_000, lease))
        };
        let [first, second, third] = leases.each_ref().map(wait);
        wait_until("it is cancelled", || {
            // A call that has not begun yet cannot be cancelled.
            assert_eq!(manager.cancel(&leases[1]), REDLOCK_OK);
            second.is_finished()
        });
        assert_eq!(second.join().expect("no panic"), REDLOCK_CANCELLED);
        assert_eq!(manager.unlock(&held), REDLOCK_OK, "{}", held.message());
        let mut left = vec![(first, &leases[0]), (third, &leases[2])];
        while !left.is_empty() {
            let mut ended = None;
            wait_until("another has its turn", || {
                ended = left.iter().position(|(thread, _)| thread.is_finished());
                ended.is_some()
            });
            let (thread, lease) = left.swap_remove(ended.expect("one has ended"));
            assert_eq!(thread.join().expect("no panic"), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
        }
    });
    cluster.wait_until_gone(KEY);
}

/// The call was refused, and does not ask again for half a minute at least.
#[test]
fn e04_a_call_can_be_cancelled_in_its_pause() {
    for is_blocking in [false, true] {
        let rig = Rig::start(3);
        let other = connected(&rig.servers);
        let held = other.take(KEY, TTL);
        rig.servers.wait_until_everywhere(KEY);
        let manager = rig.connected();
        assert_eq!(manager.set_retry(100, 60_000), REDLOCK_OK);
        let sets = || rig.servers.iter().map(|it| it.calls("set")).collect::<Vec<_>>();
        let (before, lease) = (sets(), Lease::new());
        let has_asked = || sets().iter().zip(&before).all(|(now, before)| now > before);
        if is_blocking {
            thread::scope(|scope| {
                let call = scope.spawn(|| manager.lock(KEY, TTL, &lease));
                wait_until("it was refused", has_asked);
                assert_eq!(manager.cancel(&lease), REDLOCK_OK);
                assert_eq!(call.join().expect("no panic"), REDLOCK_CANCELLED);
            });
        } else {
            let wanted = Wanted { tries: 100, ..Wanted::new(KEY, TTL) };
            let before: Vec<_> = rig.proxies.iter().map(|it| it.handed_on(Way::Replies)).collect();
            assert_eq!(manager.submit_acquire(&wanted, &lease, 1), REDLOCK_OK);
            let has_answered =
                |(proxy, before): (&Proxy, &u64)| proxy.handed_on(Way::Replies) > *before;
            wait_until("it was refused", || {
                let is_refused = rig.proxies.iter().zip(&before).all(has_answered);
                // The answers that the proxy forwarded before this are read by this call.
                assert_eq!(manager.next_event(0), None);
                is_refused
            });
            is_cancelled(&manager, &lease, 1);
        }
        let asked = sets();
        assert_eq!(other.confirm(&held, 0), REDLOCK_OK, "{}", held.message());
        assert_eq!(other.unlock(&held), REDLOCK_OK, "{}", held.message());
        let lease = rig.servers.manager().take(KEY, TTL);
        assert!(asked.iter().zip(&before).all(|(now, before)| *now == before + 1), "asked once");
        drop(lease);
    }
}

/// The time of the call is up at about the moment when it is cancelled. It ends one way or the other, with one
/// event. On a busy machine, the servers may not answer its last try in time.
#[test]
fn e04_a_call_cancelled_at_its_timeout_ends_once() {
    const WAIT_MS: u64 = 20;
    let cluster = Cluster::start(3);
    let (manager, other) = (connected(&cluster), connected(&cluster));
    let held = other.take(KEY, TTL);
    let lease = Lease::new();
    for round in 0..100 {
        let wanted = Wanted { wait_ms: WAIT_MS as i64, ..Wanted::new(KEY, TTL) };
        let status = if round % 2 == 0 {
            thread::scope(|scope| {
                let call = scope.spawn(|| manager.acquire(&wanted, &lease));
                thread::sleep(Duration::from_millis(WAIT_MS));
                assert_eq!(manager.cancel(&lease), REDLOCK_OK);
                call.join().expect("no panic")
            })
        } else {
            thread::scope(|scope| {
                assert_eq!(manager.submit_acquire(&wanted, &lease, round), REDLOCK_OK);
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(WAIT_MS));
                    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
                });
                let event = manager.event();
                assert_eq!(event.user_data, round);
                event.status
            })
        };
        let expected = [REDLOCK_CANCELLED, REDLOCK_TAKEN, REDLOCK_UNREACHABLE];
        assert!(expected.contains(&status), "{}", lease.message());
        assert_eq!(manager.next_event(0), None, "one event for one call");
    }
    assert_eq!(other.confirm(&held, 0), REDLOCK_OK, "{}", held.message());
    assert_eq!(other.unlock(&held), REDLOCK_OK, "{}", held.message());
    assert_eq!(manager.lock(KEY, TTL, &lease), REDLOCK_OK, "{}", lease.message());
}
