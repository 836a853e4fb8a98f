//! Calls about shared locks that are cancelled at every step of their conversation with the servers. The calls
//! take a shared lock, as the first reader or beside another one, or downgrade an exclusive lock.
//! `shared_waiting.rs` has the waiting readers.

use std::thread;

use redlock::ffi::status::RedLockStatus::{self, REDLOCK_CANCELLED, REDLOCK_LOST, REDLOCK_OK};

use crate::calls::{MANNERS, Manner, TAG, cancelled_once};
use crate::calls_cancelled::Stand;
use crate::readers::{
    INTENT, LINE, RESOURCE, readers_of, shared, take, unlock, wait_until_read_by,
};
use crate::rig::Rig;
use crate::support::proxy::BOTH;
use crate::support::usage::{TTL, connected};
use crate::support::{Cluster, Lease, Manager, Proxy, Server, Way, wait_until};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// There is no reader yet.
    First,
    /// There is a reader.
    Second,
    Downgrade,
}

const CALLS: [Call; 3] = [Call::First, Call::Second, Call::Downgrade];

impl Call {
    /// A lease that the call can be made on.
    #[track_caller]
    fn lease(self, holder: &Manager) -> Lease {
        match self {
            Self::First | Self::Second => Lease::new(),
            Self::Downgrade => holder.take(RESOURCE, TTL),
        }
    }

    fn run(self, manager: &Manager, lease: &Lease) -> RedLockStatus {
        match self {
            Self::First | Self::Second => manager.acquire(&shared(), lease),
            Self::Downgrade => manager.downgrade(lease),
        }
    }

    #[track_caller]
    fn submit(self, manager: &Manager, lease: &Lease) {
        let status = match self {
            Self::First | Self::Second => manager.submit_acquire(&shared(), lease, TAG),
            Self::Downgrade => manager.submit_downgrade(lease, TAG),
        };
        assert_eq!(status, REDLOCK_OK, "{self:?}: {}", lease.message());
    }

    #[track_caller]
    pub(crate) fn cancelled_once(
        self,
        manner: Manner,
        manager: &Manager,
        lease: &Lease,
        is_there: impl FnMut() -> bool,
    ) -> RedLockStatus {
        let (run, submit) = (|| self.run(manager, lease), || self.submit(manager, lease));
        cancelled_once(manner, (manager, lease), (run, submit), is_there)
    }

    /// Whether the call was cancelled after the servers were asked, and had not ended before. The lease has the
    /// state that it must have then.
    #[track_caller]
    pub(crate) fn is_cancelled(self, status: RedLockStatus, lease: &Lease) -> bool {
        if status == REDLOCK_OK {
            assert!(lease.is_held() && lease.is_shared(), "{self:?}");
            return false;
        }
        assert_eq!(status, REDLOCK_CANCELLED, "{self:?}: {}", lease.message());
        assert!(lease.message().contains("cancelled"), "{self:?}: {}", lease.message());
        if self == Self::Downgrade {
            // The lock counts as shared if a server may have downgraded it, or may still do so.
            assert!(lease.is_held() && lease.remaining_ms() > 0);
            let is_told = lease.message().contains("counts as shared");
            assert_eq!(is_told, lease.is_shared(), "{}", lease.message());
        } else {
            assert!(!lease.is_held() && lease.token().is_empty(), "{self:?}");
        }
        true
    }
}

/// Another reader, if there is one, with its own connections.
struct Others(Option<(Manager, Lease)>);

impl Others {
    #[track_caller]
    fn of(call: Call, cluster: &Cluster) -> Self {
        let reader = (call == Call::Second).then(|| {
            let manager = connected(cluster);
            let lease = take(&manager, &shared());
            wait_until_read_by(cluster, &[&lease]);
            (manager, lease)
        });
        Self(reader)
    }

    fn leases(&self) -> Vec<&Lease> {
        self.0.iter().map(|it| &it.1).collect()
    }

    /// Nothing is left of the call: no resource and no reader, except the earlier reader, which keeps its
    /// entry. No writer announces that it waits either.
    #[track_caller]
    fn are_alone(&self, manager: &Manager, cluster: &Cluster) {
        wait_until("the manager has its servers again", || is_used(manager));
        match &self.0 {
            Some((other, lease)) => {
                wait_until("who was there before reads alone", || {
                    is_used(manager)
                        && cluster.iter().all(|server| {
                            let readers = readers_of(server, RESOURCE);
                            readers.len() == 1 && readers[0].0 == lease.token()
                        })
                });
                assert_eq!(other.confirm(lease, TTL / 2), REDLOCK_OK, "{}", lease.message());
                assert_eq!(cluster.having(INTENT) + cluster.having(LINE), 0);
            }
            None => wait_until("nothing is left on any server", || {
                is_used(manager) && cluster.iter().all(|it| it.locks() == 0)
            }),
        }
    }
}

/// The manager is connected to a quorum. A server that is connected last gets its release then, if a thread
/// drives.
pub(crate) fn is_used(manager: &Manager) -> bool {
    manager.is_locked("another") == Ok(false)
}

/// Some servers execute a cancelled downgrade. The next extension does it on the others. In the end other
/// readers can read beside the lease.
#[track_caller]
fn is_shared_after_an_extension(manager: &Manager, lease: &Lease, cluster: &Cluster) {
    assert_eq!(manager.confirm(lease, 1), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.extend(lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    let reader = connected(cluster);
    let beside = take(&reader, &shared());
    wait_until_read_by(cluster, &[lease, &beside]);
    unlock(&reader, &beside);
    wait_until_read_by(cluster, &[lease]);
}

#[test]
fn r12_an_undriven_call_asks_no_server() {
    for call in CALLS {
        let rig = Rig::start(3);
        let others = Others::of(call, &rig.servers);
        let lease = call.lease(&rig.connected());
        if call == Call::Downgrade {
            rig.servers.wait_until_everywhere(RESOURCE);
        }
        rig.servers.iter().for_each(|it| drop(it.must(&["CONFIG", "RESETSTAT"])));
        let manager = rig.manager();
        call.submit(&manager, &lease);
        assert_eq!(manager.cancel(&lease), REDLOCK_OK);
        let event = manager.event();
        assert_eq!((event.status, event.user_data), (REDLOCK_CANCELLED, TAG), "{call:?}");
        manager.connect_to_all();
        assert!(rig.servers.iter().all(|it| it.calls("zadd") == 0 && it.calls("set") == 0));
        if call == Call::Downgrade {
            // The lock is what it was.
            assert!(lease.is_held() && !lease.is_shared(), "{}", lease.message());
            assert!(!lease.message().contains("shared"), "{}", lease.message());
            let holds = |it: &Server| it.get(RESOURCE) == Some(lease.token());
            assert!(rig.servers.iter().all(holds));
            assert_eq!(manager.confirm(&lease, 1), REDLOCK_OK, "{}", lease.message());
            unlock(&manager, &lease);
        }
        others.are_alone(&manager, &rig.servers);
    }
}

#[test]
fn r12_a_first_reader_is_cancelled_at_any_byte() {
    at_every_byte(Call::First);
}

#[test]
fn r12_a_second_reader_is_cancelled_at_any_byte() {
    at_every_byte(Call::Second);
}

#[test]
fn r12_a_downgrade_is_cancelled_at_any_byte() {
    at_every_byte(Call::Downgrade);
}

/// The step in bytes. A script is a thousand bytes, so many bytes are skipped at once. The short replies are
/// cut at each byte.
pub(crate) fn step(way: Way) -> usize {
    if way == Way::Requests { Way::Replies.step() } else { 1 }
}

/// Repeats this call to one server. Each time the proxy forwards some bytes more, and then the call is
/// cancelled. Stops when the call ends before that.
fn at_every_byte(call: Call) {
    thread::scope(|scope| {
        for way in BOTH {
            for manner in MANNERS {
                scope.spawn(move || {
                    let rig = Rig::start(1);
                    let others = Others::of(call, &rig.servers);
                    let manager = rig.connected();
                    let cut = |count: &u64| {
                        at_byte(call, manner, (&rig, &others, &manager), (way, *count))
                    };
                    let cuts = (0..).step_by(step(way)).take_while(cut).count();
                    assert!(cuts >= 8, "{cuts} places are no conversation: {call:?} {way:?}");
                });
            }
        }
    });
}

/// Returns whether this number of bytes is less than the whole conversation.
fn at_byte(
    call: Call,
    manner: Manner,
    (rig, others, manager): (&Rig, &Others, &Manager),
    (way, count): (Way, u64),
) -> bool {
    let proxy = &rig.proxies[0];
    let lease = call.lease(manager);
    proxy.stall_after(way, count);
    let status = call.cancelled_once(manner, manager, &lease, || proxy.is_holding(way));
    let is_less = call.is_cancelled(status, &lease);
    assert!(call != Call::Downgrade || lease.is_shared(), "the server was asked");
    if call == Call::Downgrade && is_less && count % 2 == 0 {
        // Released at once, whatever the server has done by then, or does later.
        assert_eq!(manager.submit_unlock(&lease, TAG), REDLOCK_OK, "{}", lease.message());
        proxy.heal();
        let event = manager.event();
        assert_eq!((event.status, event.user_data), (REDLOCK_OK, TAG), "{}", lease.message());
    } else if call == Call::Downgrade && is_less {
        proxy.heal();
        is_shared_after_an_extension(manager, &lease, &rig.servers);
        unlock(manager, &lease);
    } else {
        if way == Way::Replies && is_less {
            wait_until("it is undone before the answers come", || {
                readers_of(&rig.servers[0], RESOURCE).len() == others.leases().len()
            });
        }
        proxy.heal();
        if !is_less {
            unlock(manager, &lease);
        }
    }
    others.are_alone(manager, &rig.servers);
    is_less
}

/// Through a manager that has to connect first. No request is sent before the connection is established.
#[test]
fn r12_a_connecting_downgrade_is_cancelled_at_any_byte() {
    thread::scope(|scope| {
        for way in BOTH {
            for manner in MANNERS {
                scope.spawn(move || {
                    let rig = Rig::start(1);
                    let holder = rig.connected();
                    let cut = |count: &u64| connecting(manner, (&rig, &holder), (way, *count));
                    let step = Way::Replies.step();
                    let bytes = step * (0..).step_by(step).take_while(cut).count();
                    assert!(bytes >= 660, "{bytes} bytes are no handshake: {way:?}");
                });
            }
        }
    });
}

/// Returns whether this number of bytes is less than the whole conversation.
fn connecting(manner: Manner, (rig, holder): (&Rig, &Manager), (way, count): (Way, u64)) -> bool {
    let (proxy, server, manager) = (&rig.proxies[0], &rig.servers[0], rig.manager());
    let lease = holder.take(RESOURCE, TTL);
    proxy.stall_after(way, count);
    let is_there = || proxy.is_holding(way);
    let status = Call::Downgrade.cancelled_once(manner, &manager, &lease, is_there);
    let is_less = Call::Downgrade.is_cancelled(status, &lease);
    proxy.heal();
    if lease.is_shared() {
        is_shared_after_an_extension(&manager, &lease, &rig.servers);
    } else {
        manager.connect_to_all();
        assert_eq!(manager.confirm(&lease, 1), REDLOCK_OK, "{}", lease.message());
        assert_eq!(server.get(RESOURCE), Some(lease.token()), "it was never asked for");
    }
    unlock(holder, &lease);
    wait_until("nothing is left", || server.locks() == 0);
    is_less
}

/// The answers that would report the loss are still on their way. The next call reports it, whichever it is.
/// That call also releases the remaining keys. If it only asks, Unlock releases them.
#[test]
fn r12_a_loss_in_a_cancelled_downgrade_is_reported_later() {
    type Next = fn(&Manager, &Lease) -> RedLockStatus;
    let calls: [(Next, bool); 4] = [
        (|manager, lease| manager.confirm(lease, 0), true),
        (|manager, lease| manager.extend(lease, TTL), false),
        (Manager::downgrade, false),
        (Manager::unlock, false),
    ];
    let rig = Rig::start(3);
    let manager = rig.connected();
    for ((next, only_asks), manner) in calls.iter().flat_map(|it| MANNERS.map(|how| (it, how))) {
        let lease = manager.take(RESOURCE, TTL);
        rig.servers.wait_until_everywhere(RESOURCE);
        rig.servers[..2].iter().for_each(|it| _ = it.must(&["DEL", RESOURCE]));
        rig.proxies.iter().for_each(|it| it.stall(Way::Replies));
        let are_there = || rig.proxies.iter().all(|it| it.is_holding(Way::Replies));
        let status = Call::Downgrade.cancelled_once(manner, &manager, &lease, are_there);
        assert!(Call::Downgrade.is_cancelled(status, &lease) && lease.is_shared());
        rig.heal();
        assert_eq!(next(&manager, &lease), REDLOCK_LOST, "{}", lease.message());
        assert!(!lease.is_held());
        if *only_asks {
            assert_eq!(manager.unlock(&lease), REDLOCK_LOST, "{}", lease.message());
        }
        wait_until("nothing is left", || {
            is_used(&manager) && rig.servers.iter().all(|it| it.locks() == 0)
        });
    }
}

#[test]
fn r12_a_first_reader_is_cancelled_between_any_two_packets() {
    at_every_packet(Call::First);
}

#[test]
fn r12_a_second_reader_is_cancelled_between_any_two_packets() {
    at_every_packet(Call::Second);
}

#[test]
fn r12_a_downgrade_is_cancelled_between_any_two_packets() {
    at_every_packet(Call::Downgrade);
}

fn at_every_packet(call: Call) {
    thread::scope(|scope| {
        for manner in MANNERS {
            scope.spawn(move || {
                let rig = Rig::start(3);
                let others = Others::of(call, &rig.servers);
                for stands in Stand::of_three() {
                    at_packet(call, manner, (&rig, &others), stands);
                }
            });
        }
    });
}

fn at_packet(call: Call, manner: Manner, (rig, others): (&Rig, &Others), stands: [Stand; 3]) {
    // The manager that took the lock may still have answers on their way. They must not be mistaken for answers
    // to this call.
    let lease = call.lease(&rig.connected());
    wait_until("the connections of before are closed", || rig.proxies.iter().all(Proxy::is_idle));
    if call == Call::Downgrade {
        rig.servers.wait_until_everywhere(RESOURCE);
    }
    let manager = rig.connected();
    let are_there = Stand::bring_about(stands, rig);
    let is_quorum = stands.iter().filter(|it| **it == Stand::Heard).count() >= 2;
    let status = call.cancelled_once(manner, &manager, &lease, || !is_quorum && are_there());
    let is_cancelled = call.is_cancelled(status, &lease);
    assert_eq!(is_cancelled, !is_quorum, "{call:?} at {stands:?}: {status:?}");
    assert!(call != Call::Downgrade || lease.is_shared(), "the servers were asked");
    if call != Call::Downgrade && is_cancelled {
        wait_until("it is undone where it was done", || {
            let readers = |it| readers_of(it, RESOURCE).len();
            rig.servers.iter().all(|it| readers(it) == others.leases().len())
        });
    }
    if call == Call::Downgrade && manner == Manner::Submitted {
        // Whatever the servers have heard by then.
        assert_eq!(manager.submit_unlock(&lease, TAG), REDLOCK_OK, "{}", lease.message());
        rig.heal();
        let event = manager.event();
        assert_eq!((event.status, event.user_data), (REDLOCK_OK, TAG), "{}", lease.message());
    } else {
        rig.heal();
        if call == Call::Downgrade {
            is_shared_after_an_extension(&manager, &lease, &rig.servers);
        }
        if call == Call::Downgrade || is_quorum {
            unlock(&manager, &lease);
        }
    }
    others.are_alone(&manager, &rig.servers);
}

/// The answer and the cancellation meet. Sometimes one of them is a little earlier, and sometimes the other.
#[test]
fn r12_a_call_cancelled_at_its_end_has_one_true_result() {
    const ROUNDS: usize = 100;
    thread::scope(|scope| {
        for call in CALLS {
            for manner in MANNERS {
                scope.spawn(move || {
                    let rig = Rig::start(1);
                    let others = Others::of(call, &rig.servers);
                    let manager = rig.connected();
                    (0..ROUNDS).for_each(|_| as_it_ends(call, manner, (&rig, &others, &manager)));
                });
            }
        }
    });
}

fn as_it_ends(call: Call, manner: Manner, (rig, others, manager): (&Rig, &Others, &Manager)) {
    let proxy = &rig.proxies[0];
    let lease = call.lease(manager);
    proxy.stall(Way::Replies);
    let status = call.cancelled_once(manner, manager, &lease, || {
        let is_holding = proxy.is_holding(Way::Replies);
        if is_holding {
            proxy.flow(Way::Replies);
        }
        is_holding
    });
    let is_cancelled = call.is_cancelled(status, &lease);
    proxy.heal();
    if call == Call::Downgrade || !is_cancelled {
        assert_eq!(manager.confirm(&lease, 1), REDLOCK_OK, "{}", lease.message());
        unlock(manager, &lease);
    }
    others.are_alone(manager, &rig.servers);
}
