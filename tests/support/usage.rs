//! What every test of faults asks of a manager: that everything works, that nothing does, that nothing
//! is left, that it is in time, and that the words name who is to blame.

use std::time::{Duration, Instant};

use redlock::ffi::servers::REDLOCK_GUARD_OFF;
use redlock::ffi::status::RedLockStatus::{self, REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE};

use super::{Cluster, Lease, Manager, Server, wait_until};

pub(crate) const TTL: i64 = 600_000;

/// How long a manager waits that must not wait for the minority: it would show.
pub(crate) const PATIENT_MS: i64 = 20_000;
/// A call that took so long has waited for a server that says nothing.
pub(crate) const TOO_LONG: Duration = Duration::from_secs(10);

/// How long a manager waits that has to notice that a majority says nothing.
pub(crate) const BRIEF_MS: i64 = 700;
/// One connecting and one reply, and very much for a machine that is busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(8);

/// A manager that never takes a server for absent.
pub(crate) fn patient(cluster: &Cluster) -> Manager {
    let manager = cluster.manager();
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager
}

/// A patient manager that is connected to all servers: so requests get through to servers that
/// something befalls later.
pub(crate) fn connected(cluster: &Cluster) -> Manager {
    let manager = patient(cluster);
    manager.connect_to_all();
    manager
}

/// The manager lets servers vote that forget: those that it connects to from now on.
pub(crate) fn unguarded(manager: Manager) -> Manager {
    assert_eq!(manager.set_restart_guard(REDLOCK_GUARD_OFF), REDLOCK_OK);
    manager
}

/// As [`connected`], without a guard against servers that forget.
pub(crate) fn connected_unguarded(cluster: &Cluster) -> Manager {
    let manager = unguarded(patient(cluster));
    manager.connect_to_all();
    manager
}

/// From now on the manager soon takes a silent server for absent, and tries only once.
pub(crate) fn make_brief(manager: &Manager) {
    assert_eq!(manager.set_timeouts(BRIEF_MS, BRIEF_MS), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
}

/// All that can be done with a lock, as on a good day.
#[track_caller]
pub(crate) fn everything_works(manager: &Manager, resource: &str) {
    let lease = manager.take(resource, TTL);
    let ok = |what, status: RedLockStatus| {
        assert_eq!(status, REDLOCK_OK, "{what}: {}", lease.message());
    };
    assert!(lease.is_held());
    assert_eq!(manager.is_locked(resource), Ok(true), "{}", manager.message());
    ok("extend", manager.extend(&lease, 2 * TTL));
    assert!(lease.remaining_ms() > TTL);
    ok("confirm", manager.confirm(&lease, TTL));
    ok("continue", manager.continue_lock(resource, 2 * TTL, &lease));
    ok("unlock", manager.unlock(&lease));
    assert_eq!(manager.is_locked(resource), Ok(false), "{}", manager.message());
    ok("try", manager.try_lock(resource, TTL, 0, &lease));
    ok("unlock", manager.unlock(&lease));
    ok("continue", manager.continue_lock(resource, TTL, &lease));
    ok("unlock", manager.unlock(&lease));
}

#[track_caller]
pub(crate) fn every_way_to_lock_is_unreachable(manager: &Manager, resource: &str) {
    let lease = Lease::new();
    let unreachable = |what, status: RedLockStatus| {
        assert_eq!(status, REDLOCK_UNREACHABLE, "{what}: {}", lease.message());
        assert!(!lease.is_held());
        assert_eq!(lease.token(), "");
        assert!(!lease.message().is_empty());
    };
    in_time(DEADLINE, || unreachable("lock", manager.lock(resource, TTL, &lease)));
    in_time(DEADLINE, || unreachable("try", manager.try_lock(resource, TTL, 0, &lease)));
    in_time(DEADLINE, || unreachable("continue", manager.continue_lock(resource, TTL, &lease)));
}

/// A lock, an extension and an unlock, with one server whose connection breaks somewhere on the way. Tells what the lock
/// has come to.
#[track_caller]
pub(crate) fn interrupted_lock(manager: &Manager, resource: &str) -> RedLockStatus {
    let lease = Lease::new();
    let statuses = [
        manager.lock(resource, TTL, &lease),
        manager.extend(&lease, 2 * TTL),
        manager.unlock(&lease),
    ];
    let allowed: [&[RedLockStatus]; 3] = [
        &[REDLOCK_OK, REDLOCK_UNREACHABLE],
        match statuses[0] {
            REDLOCK_OK => &[REDLOCK_OK, REDLOCK_UNREACHABLE],
            _ => &[REDLOCK_LOST],
        },
        // The release may have been carried out, and its reply lost.
        &[REDLOCK_OK, REDLOCK_UNREACHABLE, REDLOCK_LOST],
    ];
    for (status, allowed) in statuses.iter().zip(allowed) {
        assert!(allowed.contains(status), "{statuses:?}: {}", lease.message());
    }
    assert!(!lease.is_held());
    statuses[0]
}

/// The manager takes the lock and releases it, as soon as it has found out which connections are lost.
#[track_caller]
pub(crate) fn locks_again(manager: &Manager, resource: &str) {
    wait_until("the manager locks again", || {
        let lease = Lease::new();
        match manager.try_lock(resource, TTL, 0, &lease) {
            REDLOCK_OK => manager.unlock(&lease) == REDLOCK_OK,
            status => {
                assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
                false
            }
        }
    });
}

/// No server keeps the key, once the manager, which goes on being used, has connections again.
#[track_caller]
pub(crate) fn nothing_is_left(manager: &Manager, cluster: &Cluster, key: &str) {
    wait_until("the key is gone from all servers", || {
        manager.is_locked("another") == Ok(false) && cluster.having(key) == 0
    });
}

#[track_caller]
pub(crate) fn in_time(limit: Duration, body: impl FnOnce()) {
    let start = Instant::now();
    body();
    let took = start.elapsed();
    assert!(took < limit, "it took {took:?}");
}

pub(crate) fn names(message: &str, servers: &[Server]) -> bool {
    servers.iter().all(|server| message.contains(&server.address()))
}

/// Whether the message gives each of these servers one of the reasons; if not, the message.
pub(crate) fn blames(message: &str, addresses: &[String], reasons: &[&str]) -> Result<(), String> {
    let is_blamed = |address: &String| {
        let about = message.split_once(address.as_str()).map_or("", |(_, after)| after);
        // What is said of one server ends where the next one is named.
        let about = about.split("127.0.0.1:").next().unwrap_or_default();
        reasons.iter().any(|reason| about.contains(reason))
    };
    if addresses.iter().all(is_blamed) { Ok(()) } else { Err(message.to_owned()) }
}

pub(crate) fn addresses(servers: &[Server]) -> Vec<String> {
    servers.iter().map(Server::address).collect()
}
