//! Passwords that are in no URL. `tests/live/tls` has the details.

use std::sync::Mutex;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::secure::answer_with;
use crate::support::usage::{
    PATIENT_MS, TOO_LONG, TTL, addresses, blames, everything_works, in_time, nothing_is_left,
};
use crate::support::{Cluster, Lease, Manager, Server, wait_until, wait_until_ok};

fn guarded(password: &str) -> (Cluster, Manager) {
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    change(&cluster, password);
    (cluster, manager)
}

fn change(servers: &[Server], password: &str) {
    for server in servers {
        let password = format!(">{password}");
        server.must(&["ACL", "SETUSER", "locker", "reset", "on", &password, "~*", "+@all"]);
    }
}

#[test]
fn a02_a_password_changed_in_a_hold_is_asked_for_again() {
    let (cluster, manager) = guarded("the-0ld-one");
    let current = Mutex::new("the-0ld-one");
    let (log, _asked) = (
        manager.log(),
        manager.asks(Some("locker"), |_, room| {
            answer_with(*current.lock().expect("not poisoned"), room)
        }),
    );
    manager.connect_to_all();
    let lease = manager.take("r", TTL);
    change(&cluster, "the-n3w-one");
    *current.lock().expect("not poisoned") = "the-n3w-one";
    cluster.iter().for_each(Server::hang_up);
    wait_until("it is let in again", || manager.extend(&lease, 2 * TTL) == REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    nothing_is_left(&manager, &cluster, "r");
    assert!(!log.text().contains("-one"), "{}", log.text());
}

/// A quorum works without this server, so no call has to connect to it. A call that only asks questions
/// requests the password.
#[test]
fn a02_a_minority_with_another_password_gets_the_release() {
    let (cluster, manager) = guarded("the-0ld-one");
    let changed = cluster[0].address();
    let current = Mutex::new("the-0ld-one");
    let _asked = manager.asks(Some("locker"), |server, room| {
        let current = *current.lock().expect("not poisoned");
        answer_with(if server == changed { current } else { "the-0ld-one" }, room)
    });
    manager.connect_to_all();
    let lease = manager.take("r", TTL);
    wait_until("all have it", || cluster.having("r") == 3);
    change(&cluster[..1], "the-n3w-one");
    *current.lock().expect("not poisoned") = "the-n3w-one";
    cluster[0].hang_up();
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    nothing_is_left(&manager, &cluster, "r");
}

#[test]
fn a02_a_minority_with_an_unknown_password_is_harmless() {
    let (cluster, manager) = guarded("s3same-0pen");
    let unknown = cluster[0].address();
    let _asked = manager
        .asks(Some("locker"), |server, room| server != unknown && answer_with("s3same-0pen", room));
    in_time(TOO_LONG, || (0..5).for_each(|_| everything_works(&manager, "r")));
}

#[test]
fn a02_wrong_credentials_are_named_and_not_shown() {
    let (cluster, manager) = guarded("s3same-0pen");
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    assert_eq!(manager.set_credentials(Some("locker"), Some("wr0ng-pass")), REDLOCK_OK);
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &addresses(&cluster[..2]), &["WRONGPASS"])
    });
    assert!(!lease.message().contains("wr0ng"), "{}", lease.message());
    assert_eq!(manager.set_credentials(Some("locker"), Some("s3same-0pen")), REDLOCK_OK);
    wait_until("it is let in", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}
