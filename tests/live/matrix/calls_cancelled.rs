//! Calls that are cancelled at every step of their conversation with the servers.

use std::thread;

use redlock::ffi::status::RedLockStatus::{self, REDLOCK_CANCELLED, REDLOCK_OK, REDLOCK_TAKEN};

use crate::calls::{KEY, MANNERS, Manner, VERBS, Verb, is_cancelled};
use crate::rig::Rig;
use crate::support::proxy::BOTH;
use crate::support::usage::{TTL, connected};
use crate::support::{Lease, Manager, Proxy, Way, wait_until};

#[test]
fn e01_an_undriven_call_asks_no_server() {
    for verb in VERBS {
        let rig = Rig::start(3);
        let lease = verb.lease(&rig.connected());
        if verb != Verb::Acquire {
            rig.servers.wait_until_everywhere(KEY);
        }
        rig.servers.iter().for_each(|it| drop(it.must(&["CONFIG", "RESETSTAT"])));
        let manager = rig.manager();
        verb.submit(&manager, &lease, 3);
        assert_eq!(manager.cancel(&lease), REDLOCK_OK);
        let event = manager.event();
        assert_eq!((event.status, event.user_data), (REDLOCK_CANCELLED, 3), "{verb:?}");
        verb.check_lease(&lease);
        verb.check_servers(&manager, &lease, &rig);
        // The key was requested once, by the other client, and never extended.
        for server in rig.servers.iter() {
            let asked = ["set", "pexpire"].map(|it| server.calls(it));
            assert!(asked[0] <= 1 && asked[1] == 0, "{verb:?}: {asked:?}");
        }
    }
}

#[test]
fn e01_a_connecting_acquire_is_cancelled_at_any_byte() {
    at_every_byte(Verb::Acquire, true);
}

#[test]
fn e01_a_connecting_extension_is_cancelled_at_any_byte() {
    at_every_byte(Verb::Extend, true);
}

#[test]
fn e01_a_connecting_confirmation_is_cancelled_at_any_byte() {
    at_every_byte(Verb::Confirm, true);
}

#[test]
fn e01_a_connecting_release_is_cancelled_at_any_byte() {
    at_every_byte(Verb::Unlock, true);
}

#[test]
fn e02_an_acquire_is_cancelled_at_any_byte() {
    at_every_byte(Verb::Acquire, false);
}

#[test]
fn e02_an_extension_is_cancelled_at_any_byte() {
    at_every_byte(Verb::Extend, false);
}

#[test]
fn e02_a_confirmation_is_cancelled_at_any_byte() {
    at_every_byte(Verb::Confirm, false);
}

#[test]
fn e02_a_release_is_cancelled_at_any_byte() {
    at_every_byte(Verb::Unlock, false);
}

/// Repeats this call to one server. Each time the proxy forwards one byte more, and then the call is cancelled.
/// Stops when the call ends before that. `is_new`: the call uses a manager that has to connect first.
fn at_every_byte(verb: Verb, is_new: bool) {
    thread::scope(|scope| {
        for way in BOTH {
            for manner in MANNERS {
                scope.spawn(move || {
                    let rig = Rig::start(1);
                    let connected = rig.connected();
                    let cut = |count: &u64| {
                        let new = is_new.then(|| rig.manager());
                        let manager = new.as_ref().unwrap_or(&connected);
                        at_byte(verb, manner, (&rig, &connected, manager), (way, *count))
                    };
                    let step = if is_new { way.step() } else { 1 };
                    let bytes = (0..).step_by(step).take_while(cut).count();
                    // The shortest is the reply to a release.
                    assert!(bytes >= 4, "{bytes} bytes are no conversation: {verb:?} {way:?}");
                });
            }
        }
    });
}

/// Returns whether this number of bytes is less than the whole conversation.
fn at_byte(
    verb: Verb,
    manner: Manner,
    (rig, holder, manager): (&Rig, &Manager, &Manager),
    (way, count): (Way, u64),
) -> bool {
    let proxy = &rig.proxies[0];
    let lease = verb.lease(holder);
    proxy.stall_after(way, count);
    let status = verb.cancelled_once(manner, manager, &lease, || proxy.is_holding(way));
    let is_less = is_cancelled(verb, status, &lease);
    if !is_less {
        proxy.heal();
        if verb != Verb::Unlock {
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        }
        return false;
    }
    if verb == Verb::Acquire {
        others_lock_meanwhile(way, rig, manager);
    }
    proxy.heal();
    verb.check_servers(manager, &lease, rig);
    true
}

/// The data that is held back delays no other client. The exception is a key that was already requested: the
/// release is held back behind that request.
fn others_lock_meanwhile(way: Way, rig: &Rig, manager: &Manager) {
    if way == Way::Replies {
        rig.servers.wait_until_gone(KEY);
    }
    let (rival, lease) = (rig.servers.manager(), Lease::new());
    let status = rival.try_lock(KEY, TTL, 0, &lease);
    rig.proxies[0].heal();
    if status == REDLOCK_TAKEN && way == Way::Requests {
        return rig.servers.wait_until_gone(KEY);
    }
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    wait_until("all has come", || manager.is_locked(KEY) == Ok(true));
    assert_eq!(rival.confirm(&lease, 0), REDLOCK_OK, "{}", lease.message());
    assert_eq!(rival.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

/// How far one of three servers is when the call is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// The server has not received the request.
    Unasked,
    /// The server's answer is on its way.
    Asked,
    Heard,
}

const STANDS: [Stand; 3] = [Stand::Unasked, Stand::Asked, Stand::Heard];

impl Stand {
    /// All combinations of states of three servers.
    pub(crate) fn of_three() -> impl Iterator<Item = [Self; 3]> {
        (0..27).map(|number| [number / 9, number / 3 % 3, number % 3].map(|it| STANDS[it]))
    }

    /// From now on each server gets no further than its state. The returned function tells whether every server
    /// is in its state.
    pub(crate) fn bring_about(stands: [Self; 3], rig: &Rig) -> impl Fn() -> bool {
        let heard = |it: &Proxy| it.handed_on(Way::Replies);
        let before: Vec<_> = rig.proxies.iter().map(heard).collect();
        for (proxy, stand) in rig.proxies.iter().zip(stands) {
            match stand {
                Self::Unasked => proxy.stall(Way::Requests),
                Self::Asked => proxy.stall(Way::Replies),
                Self::Heard => {}
            }
        }
        move || {
            let mut servers = rig.proxies.iter().zip(stands).zip(&before);
            servers.all(|((proxy, stand), before)| match stand {
                Self::Unasked => proxy.is_holding(Way::Requests),
                Self::Asked => proxy.is_holding(Way::Replies),
                Self::Heard => heard(proxy) > *before,
            })
        }
    }
}

#[test]
fn e03_an_acquire_is_cancelled_between_any_two_packets() {
    at_every_packet(Verb::Acquire);
}

#[test]
fn e03_an_extension_is_cancelled_between_any_two_packets() {
    at_every_packet(Verb::Extend);
}

#[test]
fn e03_a_confirmation_is_cancelled_between_any_two_packets() {
    at_every_packet(Verb::Confirm);
}

#[test]
fn e03_a_release_is_cancelled_between_any_two_packets() {
    at_every_packet(Verb::Unlock);
}

fn at_every_packet(verb: Verb) {
    thread::scope(|scope| {
        for manner in MANNERS {
            scope.spawn(move || {
                let rig = Rig::start(3);
                Stand::of_three().for_each(|it| at_packet(verb, manner, &rig, it));
            });
        }
    });
}

fn at_packet(verb: Verb, manner: Manner, rig: &Rig, stands: [Stand; 3]) {
    // The manager that took the lock may still have answers on their way. They must not be mistaken for answers
    // to this call.
    let lease = verb.lease(&rig.connected());
    let is_idle = || rig.proxies.iter().all(Proxy::is_idle);
    wait_until("the connections of before are closed", is_idle);
    if verb != Verb::Acquire {
        rig.servers.wait_until_everywhere(KEY);
    }
    let manager = rig.connected();
    let are_there = Stand::bring_about(stands, rig);
    let is_quorum = stands.iter().filter(|it| **it == Stand::Heard).count() >= 2;
    let status = verb.cancelled_once(manner, &manager, &lease, || !is_quorum && are_there());
    assert_eq!(
        is_cancelled(verb, status, &lease),
        !is_quorum,
        "{verb:?} at {stands:?}: {status:?}"
    );
    if !is_quorum && verb == Verb::Acquire {
        rig.servers.wait_until_gone(KEY);
    }
    rig.heal();
    if is_quorum && verb == Verb::Acquire {
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
    if is_quorum && verb == Verb::Unlock {
        rig.servers.wait_until_gone(KEY);
        return;
    }
    verb.check_servers(&manager, &lease, rig);
}

/// The grant and the cancellation meet. Sometimes one of them is a little earlier, and sometimes the other.
#[test]
fn e03_a_call_cancelled_at_its_end_has_one_true_result() {
    const ROUNDS: usize = 150;
    thread::scope(|scope| {
        for verb in VERBS {
            for manner in MANNERS {
                scope.spawn(move || {
                    let rig = Rig::start(1);
                    let manager = rig.connected();
                    let mut seen = Vec::new();
                    for _ in 0..ROUNDS {
                        seen.push(cancelled_as_it_ends(verb, manner, &rig, &manager));
                    }
                    assert!(seen.iter().all(|it| [REDLOCK_OK, REDLOCK_CANCELLED].contains(it)));
                });
            }
        }
    });
}

fn cancelled_as_it_ends(verb: Verb, manner: Manner, rig: &Rig, manager: &Manager) -> RedLockStatus {
    let proxy = &rig.proxies[0];
    let lease = verb.lease(manager);
    proxy.stall(Way::Replies);
    let status = verb.cancelled_once(manner, manager, &lease, || {
        let is_holding = proxy.is_holding(Way::Replies);
        if is_holding {
            proxy.flow(Way::Replies);
        }
        is_holding
    });
    if !is_cancelled(verb, status, &lease) && verb == Verb::Acquire {
        assert_eq!(manager.confirm(&lease, 0), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
    proxy.heal();
    if status == REDLOCK_OK && verb == Verb::Unlock {
        rig.servers.wait_until_gone(KEY);
    } else {
        verb.check_servers(manager, &lease, rig);
    }
    status
}

/// A refusal is no reason to keep anything, and a cancelled acquire leaves another client's lock alone.
#[test]
fn e03_a_cancelled_refused_acquire_spares_the_holder() {
    for manner in MANNERS {
        let rig = Rig::start(3);
        let other = connected(&rig.servers);
        let held = other.take(KEY, TTL);
        rig.servers.wait_until_everywhere(KEY);
        let (manager, lease) = (rig.connected(), Lease::new());
        for stalled in 1..=3 {
            rig.proxies[..stalled].iter().for_each(|it| it.stall(Way::Replies));
            // Two refusals are enough, whatever the third server says.
            let is_held = || rig.proxies[..stalled].iter().all(|it| it.is_holding(Way::Replies));
            let is_there = || stalled > 1 && is_held();
            let status = Verb::Acquire.cancelled_once(manner, &manager, &lease, is_there);
            let expected = if stalled > 1 { REDLOCK_CANCELLED } else { REDLOCK_TAKEN };
            assert_eq!(status, expected, "{}", lease.message());
            rig.heal();
            wait_until("all has come", || manager.is_locked(KEY) == Ok(true));
            assert_eq!(other.confirm(&held, 0), REDLOCK_OK, "{}", held.message());
            assert_eq!(rig.servers.having(KEY), 3);
        }
        assert_eq!(other.unlock(&held), REDLOCK_OK, "{}", held.message());
    }
}
