//! What can never succeed does not wait: a refusal of a quorum that no time mends ends a call at once.

use redlock::ffi::status::RedLockStatus::{REDLOCK_NO_EVENT, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::TTL;
use crate::support::events::Wanted;
use crate::support::usage::connected_unguarded;
use crate::support::{Cluster, Lease, finishes};

/// A right that all servers but these deny, or deny no more.
fn permit(cluster: &Cluster, rules: &[&str], without: usize) {
    for server in cluster.iter().skip(without) {
        server.must(&[&["ACL", "SETUSER", "default"], rules].concat());
    }
}

#[test]
fn a_call_forbidden_by_a_quorum_ends_at_once() {
    let cluster = Cluster::start(3);
    let manager = connected_unguarded(&cluster);
    finishes("calls without hope", move || {
        let scripts = (&["-eval", "-evalsha"][..], &["+eval", "+evalsha"][..]);
        for (wanted, (denied, permitted)) in [
            (Wanted::new("r", TTL), (&["-set"][..], &["+set"][..])),
            (Wanted::shared("r", TTL), scripts),
            (Wanted { permits: 2, ..Wanted::new("r", TTL) }, scripts),
            (
                Wanted::several(&["a", "b"], TTL),
                (&["-set", "-exists"][..], &["+set", "+exists"][..]),
            ),
        ] {
            let (wanted, lease) = (Wanted { wait_ms: -1, ..wanted }, Lease::new());
            permit(&cluster, denied, 0);
            assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_UNREACHABLE, "{wanted:?}");
            assert!(lease.message().contains("user lacks"), "{}", lease.message());
            assert_eq!(manager.submit_acquire(&wanted, &lease, 0), REDLOCK_OK);
            assert_eq!(manager.wait(&lease, -1), REDLOCK_UNREACHABLE, "{wanted:?}");
            permit(&cluster, permitted, 0);
            assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.unlock(&lease), REDLOCK_OK);
        }
    });
}

#[test]
fn a_foreign_value_under_a_helper_key_ends_a_call_at_once() {
    let cluster = Cluster::start(3);
    let manager = connected_unguarded(&cluster);
    finishes("a call without hope", move || {
        cluster.iter().for_each(|server| drop(server.must(&["SET", "r:r", "a program's own"])));
        let (wanted, lease) = (Wanted { wait_ms: -1, ..Wanted::shared("r", TTL) }, Lease::new());
        assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_UNREACHABLE);
        assert!(lease.message().contains("something other"), "{}", lease.message());
    });
}

/// One server without rights is a server that is down: the call waits for the others.
#[test]
fn a_call_forbidden_by_a_minority_goes_on() {
    let cluster = Cluster::start(3);
    let (manager, other, lease) =
        (connected_unguarded(&cluster), connected_unguarded(&cluster), Lease::new());
    permit(&cluster, &["-set"], 2);
    let held = other.take("r", TTL);
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("r", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &lease, 0), REDLOCK_OK);
    assert_eq!(manager.wait(&lease, 300), REDLOCK_NO_EVENT);
    assert_eq!(other.unlock(&held), REDLOCK_OK);
    assert_eq!(manager.wait(&lease, -1), REDLOCK_OK, "{}", lease.message());
}
