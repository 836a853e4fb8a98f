//! Checks of a manager that all tests of faults share: everything works, nothing works, nothing is left,
//! calls return in time, and messages name the faulty servers.

use std::time::{Duration, Instant};

use redlock::ffi::servers::REDLOCK_GUARD_OFF;
use redlock::ffi::status::RedLockStatus::{self, REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE};

use super::{Cluster, Lease, Manager, Server, wait_until, wait_until_ok};

pub(crate) const TTL: i64 = 600_000;

/// The TTL of attempts that fail. Servers do not wait for longer because of it.
const ATTEMPT_TTL: i64 = 3_000;

/// The timeout of a manager that must not wait for the minority. If it did wait, the test would notice.
pub(crate) const PATIENT_MS: i64 = 20_000;
/// A call that took this long has waited for a silent server.
pub(crate) const TOO_LONG: Duration = Duration::from_secs(10);

/// The timeout of a manager that must notice that a majority is silent.
pub(crate) const BRIEF_MS: i64 = 700;
/// One connect and one reply, plus a large reserve for a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(8);

/// A manager that never considers a server absent.
pub(crate) fn patient(cluster: &Cluster) -> Manager {
    let manager = cluster.manager();
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager
}

/// A patient manager that is connected to all servers, so that requests reach servers on which a fault
/// occurs later.
pub(crate) fn connected(cluster: &Cluster) -> Manager {
    let manager = patient(cluster);
    manager.connect_to_all();
    manager
}

/// The manager accepts votes of servers that forget. This applies to servers to which it connects from now
/// on.
pub(crate) fn unguarded(manager: Manager) -> Manager {
    assert_eq!(manager.set_restart_guard(REDLOCK_GUARD_OFF), REDLOCK_OK);
    manager
}

/// Like [`connected`], without a guard against servers that forget.
pub(crate) fn connected_unguarded(cluster: &Cluster) -> Manager {
    let manager = unguarded(patient(cluster));
    manager.connect_to_all();
    manager
}

/// From now on the manager soon considers a silent server absent, and tries only once.
pub(crate) fn make_brief(manager: &Manager) {
    assert_eq!(manager.set_timeouts(BRIEF_MS, BRIEF_MS), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
}

/// All operations on a lock succeed.
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

/// Tries to take the lock, which cannot succeed, until the words contain all of these. They never contain the secret.
#[track_caller]
pub(crate) fn await_words(
    manager: &Manager,
    resource: &str,
    wanted: &[&str],
    secret: Option<&str>,
) {
    let lease = Lease::new();
    wait_until_ok("the words say it", || {
        let status = manager.try_lock(resource, ATTEMPT_TTL, 0, &lease);
        assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
        let words = lease.message();
        assert!(secret.is_none_or(|it| !words.contains(it)), "{words}");
        if wanted.iter().all(|it| words.contains(it)) { Ok(()) } else { Err(words) }
    });
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

/// A lock, an extension and an unlock, with one server whose connection breaks at some point. Returns the
/// status of the lock call.
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
        // The release may have been executed, and its reply lost.
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

/// No server keeps the key after the manager, which remains in use, has connections again.
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

/// Checks that the message gives one of the reasons for each of these servers. If not, returns the message.
pub(crate) fn blames(message: &str, addresses: &[String], reasons: &[&str]) -> Result<(), String> {
    let is_blamed = |address: &String| {
        let about = message.split_once(address.as_str()).map_or("", |(_, after)| after);
        // The text about one server ends where the next one is named.
        let about = about.split("127.0.0.1:").next().unwrap_or_default();
        reasons.iter().any(|reason| about.contains(reason))
    };
    if addresses.iter().all(is_blamed) { Ok(()) } else { Err(message.to_owned()) }
}

pub(crate) fn addresses(servers: &[Server]) -> Vec<String> {
    servers.iter().map(Server::address).collect()
}
