//! A lease that holds a lock, one that holds none, and managers that cannot serve either.

use redlock::ffi::status::RedLockStatus::{REDLOCK_LOST, REDLOCK_NO_SERVERS, REDLOCK_OK};

use crate::support::{Lease, Manager, Server, wait_until};
use crate::{Holder, TTL, accepted, refused, refused_with, says};

#[test]
fn a_lease_in_use_is_not_given_another_lock() {
    let holder = Holder::new();
    let (manager, lease) = (&holder.manager, &holder.lease);
    for resource in [Holder::RESOURCE, "other"] {
        for wait_ms in [0, 1, 1000, -1] {
            let status = holder.nothing_happens(|| manager.try_lock(resource, TTL, wait_ms, lease));
            refused_with(lease, status, &["lease still holds a lock", "unlock"]);
        }
        let status = holder.nothing_happens(|| manager.lock(resource, TTL, lease));
        refused_with(lease, status, &["lease still holds a lock", "unlock"]);
    }
}

#[test]
fn a_lease_in_use_is_not_continued_as_another_resource() {
    let holder = Holder::new();
    let (manager, lease) = (&holder.manager, &holder.lease);
    for resource in ["other", "hel", "held2", "Held"] {
        let status = holder.nothing_happens(|| manager.continue_lock(resource, TTL, lease));
        refused_with(lease, status, &["lease still holds another resource"]);
    }
    assert_eq!(manager.continue_lock(Holder::RESOURCE, TTL, lease), REDLOCK_OK);
    assert_eq!(lease.message(), "", "a success leaves no words");
    assert_eq!(manager.unlock(lease), REDLOCK_OK);
}

#[test]
fn a_lease_can_be_reused_after_its_lock() {
    let holder = Holder::new();
    let (manager, lease) = (&holder.manager, &holder.lease);
    let first = lease.token();
    assert_eq!(manager.unlock(lease), REDLOCK_OK);
    assert_eq!(manager.lock("short", 30, lease), REDLOCK_OK, "{}", lease.message());
    assert_ne!(lease.token(), first);
    wait_until("it expires", || !lease.is_held());
    assert_eq!(manager.lock("next", TTL, lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!((lease.resource(), lease.is_held()), ("next".to_owned(), true));
}

#[test]
fn an_empty_lease_cannot_extend_release_or_confirm() {
    let holder = Holder::new();
    let manager = &holder.manager;
    let lease = Lease::new();
    let lost = |status| {
        assert_eq!(status, REDLOCK_LOST);
        says(&lease.message(), &["the lease holds no lock"]);
    };
    holder.nothing_happens(|| {
        lost(manager.extend(&lease, TTL));
        lost(manager.unlock(&lease));
        lost(manager.confirm(&lease, 0));
    });
}

#[test]
fn without_servers_every_call_is_refused_and_harmless() {
    let holder = Holder::new();
    let manager = Manager::new();
    for lease in [&holder.lease, &Lease::new()] {
        let none = |status| {
            assert_eq!(status, REDLOCK_NO_SERVERS, "{}", lease.message());
            says(&lease.message(), &["no server was added"]);
        };
        holder.nothing_happens(|| {
            none(manager.lock("r", TTL, lease));
            none(manager.try_lock("r", TTL, -1, lease));
            none(manager.continue_lock("r", TTL, lease));
            none(manager.extend(lease, TTL));
            none(manager.unlock(lease));
            none(manager.confirm(lease, 0));
        });
    }
    holder.nothing_happens(|| {
        assert_eq!(manager.connect(0), REDLOCK_NO_SERVERS);
        says(&manager.message(), &["no server was added"]);
        assert_eq!(manager.is_locked("r"), Err(REDLOCK_NO_SERVERS));
        says(&manager.message(), &["no server was added"]);
    });
}

#[test]
fn a_call_without_servers_does_not_close_the_list() {
    let (server, manager, lease) = (Server::start(), Manager::new(), Lease::new());
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_NO_SERVERS);
    accepted(&manager, manager.add("127.0.0.1", server.port().into()));
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn the_first_lock_call_closes_the_list() {
    let holder = Holder::new();
    let manager = &holder.manager;
    for (host_or_url, port) in [("127.0.0.1", 1), ("redis://other", 0), ("unix:///run/other", 0)] {
        let status = holder.nothing_happens(|| manager.add(host_or_url, port));
        refused(manager, status, &["cannot be added after the first call"]);
    }
}

#[test]
fn a_message_belongs_to_the_last_call() {
    let holder = Holder::new();
    let (manager, lease) = (&holder.manager, &holder.lease);
    refused(manager, manager.set_retry(0, 0), &["count"]);
    refused(manager, manager.set_timeouts(0, 0), &["connect_ms"]);
    accepted(manager, manager.set_retry(3, 200));
    refused_with(lease, manager.extend(lease, 0), &["ttl_ms"]);
    assert_eq!(manager.message(), "", "what a lease has to say is not said by the manager");
    refused_with(lease, manager.confirm(lease, -1), &["least_ms"]);
    assert_eq!(manager.confirm(lease, 0), REDLOCK_OK);
    assert_eq!(lease.message(), "");
}
