//! Connections that acknowledge what is sent, answer nothing, and do not end.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::rig::Rig;
use crate::support::proxy::Traffic;
use crate::support::usage::{DEADLINE, PATIENT_MS, in_time, make_brief};
use crate::support::{Lease, Manager, Program, Proxy, Server, wait_until};

const HOUR_MS: i64 = 3_600_000;

#[test]
fn n13_a_server_with_a_dead_connection_returns_early() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    make_brief(&manager);
    rig.proxies.iter().for_each(Proxy::strand);
    let lease = Lease::new();
    in_time(DEADLINE, || {
        assert_eq!(manager.lock("r", HOUR_MS, &lease), REDLOCK_UNREACHABLE);
    });
    wait_until("the manager locks again", || {
        manager.try_lock("r", HOUR_MS, 0, &lease) == REDLOCK_OK
    });
    // The old connections drain: the requests that were sent over them count for an hour.
    let drains = |it: &&Proxy| matches!(it.connections()[..], [old, _] if !old.has_ended);
    assert!(rig.proxies.iter().filter(drains).count() >= rig.servers.quorum());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    rig.recovers(&manager, "r");
}

#[test]
fn n13_an_acquire_after_its_release_leaves_nothing() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    let (held, proxy) = (&rig.servers[0], &rig.proxies[0]);
    proxy.hold();
    let before = held.calls("set");
    let lease = manager.take("r", HOUR_MS);
    is_asked_again(&manager, held);
    let now = held.calls("set");
    assert!(now > before && held.get("r").is_none());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    proxy.let_go();
    wait_until("the acquire is carried out", || held.calls("set") > now);
    rig.servers.wait_until_gone("r");
    wait_until("the old connection is closed", || {
        assert!(manager.is_locked("another").is_ok());
        proxy.connections()[0].has_ended
    });
    rig.recovers(&manager, "r");
}

/// The release of a lock was sent over a connection, and none of it got through.
#[test]
fn n13_a_swallowed_release_is_sent_on_the_second_connection() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    let lease = manager.take("r", HOUR_MS);
    rig.servers.wait_until_everywhere("r");
    rig.proxies[0].strand();
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert!(rig.servers[0].exists("r"));
    is_asked_again(&manager, &rig.servers[0]);
    rig.servers.wait_until_gone("r");
    rig.recovers(&manager, "r");
}

/// The manager has a connection to the server over which it takes locks. The test goes on using the manager
/// until then. The timeouts are brief during that time.
#[track_caller]
fn is_asked_again(manager: &Manager, server: &Server) {
    make_brief(manager);
    let lease = Lease::new();
    wait_until("the server is asked again", || {
        let is_had = manager.try_lock("another", HOUR_MS, 0, &lease) == REDLOCK_OK;
        let is_there = is_had && server.exists("another");
        manager.unlock(&lease);
        is_there
    });
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
}

#[test]
fn n13_a_child_closes_both_connections_of_its_parent() {
    let rig = Rig::start(1);
    let urls: Vec<_> = rig.proxies.iter().map(Proxy::url).collect();
    let proxy = &rig.proxies[0];
    let mut program = Program::compile("fork_second").start(&urls);
    program.hears("has a lock");
    proxy.hold();
    program.says("go on");
    program.hears("second connection is open");
    let parents = proxy.connections();
    assert!(matches!(parents[..], [Traffic { has_ended: false, .. }, _]), "{parents:?}");
    program.says("go on");
    program.hears("the child has locked");
    let now = proxy.connections();
    assert_eq!(now.len(), 3, "the child has a connection of its own");
    for (now, before) in now.iter().zip(&parents) {
        assert_eq!(
            now.of_the_client(),
            before.of_the_client(),
            "something came over those of the parent, or their end"
        );
    }
    program.says("go on");
    program.ends_well();
}
