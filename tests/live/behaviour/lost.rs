//! A lock that a majority of the servers has lost is lost, whatever any of them says later, because another
//! client may have held it in between.

use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::{Cluster, Lease, Manager, Server, wait_until};
use crate::{TTL, is_empty, patient};

/// Sets a reply timeout so short that servers that hang cost no time.
fn brief(manager: &Manager) {
    assert_eq!(manager.set_timeouts(1_000, 100), REDLOCK_OK);
}

fn long(manager: &Manager) {
    assert_eq!(manager.set_timeouts(1_000, 20_000), REDLOCK_OK);
}

/// A manager of the same servers in another order.
fn reversed(cluster: &Cluster) -> Manager {
    let mut urls = cluster.urls();
    urls.reverse();
    let manager = Manager::of_urls(&urls);
    long(&manager);
    manager.connect_to_all();
    manager
}

/// A lock that all servers have, and are known to have.
fn locked(cluster: &Cluster, manager: &Manager) -> Lease {
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    lease
}

/// The server hangs when the extension comes, and has lost the key by then. The extension must not set the key.
/// Its answer must not be forgotten, although no call waits for it.
#[test]
fn a_late_extension_does_not_bring_a_lock_back() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = locked(&cluster, &manager);
    cluster[0].must(&["DEL", "r"]);
    cluster[0].freeze();
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    cluster[1].must(&["DEL", "r"]);
    cluster[0].resume();
    // The answer to the PING usually comes after the extension was carried out, because the extension came
    // earlier, over another connection. Otherwise the next call finds out.
    cluster[0].must(&["PING"]);
    brief(&manager);
    wait_until("the lock is known to be lost", || {
        let status = manager.confirm(&lease, 0);
        assert_ne!(status, REDLOCK_OK, "{}", cluster.describe("r"));
        status == REDLOCK_LOST
    });
    assert!(!lease.is_held());
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST);
    is_empty(&lease);
    cluster.wait_until_gone("r");
}

/// Uses one manager after the other, with the servers in another order. Knowledge about a server belongs to the
/// server.
#[test]
fn a_manager_with_another_order_brings_no_lock_back() {
    let cluster = Cluster::start(3);
    let managers = [patient(&cluster), reversed(&cluster)];
    let lease = locked(&cluster, &managers[0]);
    cluster[0].must(&["DEL", "r"]);
    cluster[1].must(&["DEL", "r"]);
    cluster[1].freeze();
    managers.iter().for_each(brief);
    for manager in managers.iter().cycle().take(4) {
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_UNREACHABLE, "{}", lease.message());
        assert_eq!(manager.confirm(&lease, 0), REDLOCK_UNREACHABLE, "{}", lease.message());
    }
    cluster[1].resume();
    managers.iter().for_each(long);
    assert_eq!(managers[1].extend(&lease, TTL), REDLOCK_LOST, "{}", lease.message());
    is_empty(&lease);
    cluster.wait_until_gone("r");
}

#[test]
fn a_manager_with_another_order_can_use_a_lease() {
    let cluster = Cluster::start(5);
    let (first, second) = (patient(&cluster), reversed(&cluster));
    let lease = locked(&cluster, &first);
    // Shows that the managers tell the servers apart: two servers have lost the key, and get it again.
    for server in &cluster[..2] {
        server.must(&["DEL", "r"]);
    }
    wait_until("those that lost it have it again", || {
        // First the manager that did not take the lock. The other manager uses what it finds out.
        for manager in [&second, &first] {
            assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.confirm(&lease, TTL / 2), REDLOCK_OK, "{}", lease.message());
        }
        cluster.having("r") == 5
    });
    assert_eq!(second.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone("r");
}

/// If only some servers have the lock, its release goes to these servers, identified by who they are.
#[test]
fn a_release_by_another_manager_reaches_the_right_servers() {
    let cluster = Cluster::start(3);
    let (first, second) = (patient(&cluster), reversed(&cluster));
    cluster[0].freeze();
    let lease = Lease::new();
    brief(&first);
    assert_eq!(first.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
    wait_until("two have it", || cluster[1].exists("r") && cluster[2].exists("r"));
    // The connection is lost before the release, or with it. Then the release goes over the next connection.
    cluster[2].hang_up();
    brief(&second);
    wait_until("it is released", || second.unlock(&lease) != REDLOCK_UNREACHABLE);
    wait_until("it is gone there", || !cluster[1].exists("r") && !cluster[2].exists("r"));
    cluster[0].resume();
}

/// Puts a value of another type in the place of a key.
fn replace(server: &Server, key: &str, command: &[&str]) {
    server.must(&["DEL", key]);
    server.must(&[&command[..1], &[key], &command[1..]].concat());
}

const LIST: &[&str] = &["RPUSH", "not", "a", "lock"];
const HASH: &[&str] = &["HSET", "not", "a lock"];
const STRING: &[&str] = &["SET", "no readers"];

/// A lock of each kind, and the key that makes it a lock on a server.
fn of_each_kind() -> [(Wanted, &'static str, &'static [&'static str]); 6] {
    [
        (Wanted::new("r", TTL), "r", LIST),
        (Wanted::new("r", TTL), "r", HASH),
        (Wanted::shared("r", TTL), "r", LIST),
        (Wanted::shared("r", TTL), "r:r", STRING),
        (Wanted::several(&["r", "s"], TTL), "s", HASH),
        (Wanted { permits: 2, ..Wanted::new("r", TTL) }, "", LIST),
    ]
}

/// Takes the lock on all servers, and replaces its key on some of them. Returns the key.
fn replaced(
    cluster: &Cluster,
    manager: &Manager,
    (wanted, key, command): &(Wanted, &'static str, &[&str]),
    servers: usize,
) -> (Lease, &'static str) {
    let lease = Lease::new();
    assert_eq!(manager.acquire(wanted, &lease), REDLOCK_OK, "{}", lease.message());
    let slot = if cluster.having("r") >= 2 { "r" } else { "r#1" };
    let key = if key.is_empty() { slot } else { key };
    cluster.wait_until_everywhere(key);
    cluster[..servers].iter().for_each(|server| replace(server, key, command));
    (lease, key)
}

/// Nobody has touched what is in the place of the key. Empties the servers.
fn is_left_alone(cluster: &Cluster, key: &str, servers: usize) {
    for server in &cluster[..servers] {
        let kind = server.command(&["TYPE", key]).text().unwrap_or_default();
        assert!(["list", "hash", "string"].contains(&&*kind), "{kind}");
        assert!(kind != "string" || server.get(key).as_deref() == Some("no readers"));
    }
    for server in cluster.iter() {
        server.must(&["DEL", "r", "r:r", "s", "r#1"]);
    }
}

type Call<'a> = &'a dyn Fn(&Manager, &Lease) -> RedLockStatus;

/// Such a server certainly does not have the lock.
#[test]
fn a_key_of_another_type_on_a_majority_is_a_lost_lock() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let calls: [Call<'_>; 4] = [
        &|manager, lease| manager.confirm(lease, 0),
        &|manager, lease| manager.extend(lease, TTL),
        &|manager, lease| manager.unlock(lease),
        &|manager, lease| match manager.detach(lease) {
            Ok(ticket) => manager.adopt(&ticket, lease),
            Err(status) => status,
        },
    ];
    for kind in of_each_kind() {
        for call in calls {
            let (lease, key) = replaced(&cluster, &manager, &kind, 2);
            assert_eq!(call(&manager, &lease), REDLOCK_LOST, "{kind:?}: {}", lease.message());
            assert!(!lease.is_held());
            is_left_alone(&cluster, key, 2);
        }
    }
    let (lease, key) = replaced(&cluster, &manager, &(Wanted::new("r", TTL), "r", LIST), 2);
    assert_eq!(manager.downgrade(&lease), REDLOCK_LOST, "{}", lease.message());
    is_left_alone(&cluster, key, 2);
}

#[test]
fn a_key_of_another_type_on_a_minority_has_no_effect() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let calls: [Call<'_>; 3] = [
        &|manager, lease| manager.confirm(lease, TTL / 2),
        &|manager, lease| manager.extend(lease, 2 * TTL),
        &|manager, lease| manager.unlock(lease),
    ];
    for kind in of_each_kind() {
        let (lease, key) = replaced(&cluster, &manager, &kind, 1);
        for call in calls {
            assert_eq!(call(&manager, &lease), REDLOCK_OK, "{kind:?}: {}", lease.message());
        }
        is_left_alone(&cluster, key, 1);
    }
    // The keys for those that wait say nothing about who holds a lock.
    for server in cluster.iter() {
        replace(server, "r:w", HASH);
        replace(server, "r:i", LIST);
    }
    for wanted in [Wanted::new("r", TTL), Wanted::shared("r", TTL)] {
        let lease = Lease::new();
        assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_OK, "{}", lease.message());
        for call in calls {
            assert_eq!(call(&manager, &lease), REDLOCK_OK, "{}", lease.message());
        }
        cluster.wait_until_gone("r");
    }
}

/// The kept lock is reported as lost at the next renewal. It is not said that the servers do not answer.
#[test]
fn a_kept_lock_replaced_by_another_type_is_reported_lost() {
    const BRIEF: i64 = 6_000;
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    for (wanted, key, command) in of_each_kind() {
        let kind = (Wanted { ttl_ms: BRIEF, keep_alive: true, ..wanted }, key, command);
        let (lease, key) = replaced(&cluster, &manager, &kind, 2);
        let event = manager.event();
        assert_eq!((event.is_lost, event.status), (true, REDLOCK_LOST), "{kind:?}");
        drop(lease);
        is_left_alone(&cluster, key, 2);
    }
}

#[test]
fn a_lease_of_other_servers_is_refused() {
    let cluster = Cluster::start(4);
    let urls = cluster.urls();
    let first = Manager::of_urls(&urls[..3]);
    let other_database = [format!("{}/1", urls[0]), urls[1].clone(), urls[2].clone()];
    for others in [&urls[1..], &urls[..2], &urls[..], &other_database[..]] {
        let lease = first.take("r", TTL);
        let second = Manager::of_urls(others);
        for status in [
            second.extend(&lease, TTL),
            second.confirm(&lease, 0),
            second.unlock(&lease),
            second.continue_lock("r", TTL, &lease),
        ] {
            assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{}", lease.message());
        }
        assert!(lease.message().contains("other servers"), "{}", lease.message());
        assert!(lease.is_held());
        assert_eq!(first.confirm(&lease, 0), REDLOCK_OK, "{}", lease.message());
        assert_eq!(first.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}

/// The first manager may not have heard the third server's grant, and no call has to wait for that.
#[test]
fn another_manager_learns_unheard_grants() {
    let cluster = Cluster::start(3);
    let (first, second) = (patient(&cluster), reversed(&cluster));
    type Use = fn(&Manager, &Lease) -> RedLockStatus;
    let uses: [Use; 3] = [
        |it, lease| it.confirm(lease, 0),
        |it, lease| it.extend(lease, TTL),
        |it, lease| it.continue_lock("r", TTL, lease),
    ];
    for round in 0..30 {
        let lease = first.take("r", TTL);
        // Two of three servers have the key, and had it all the time.
        wait_until("it is there", || cluster.having("r") == 3);
        cluster[round % 3].must(&["DEL", "r"]);
        assert_eq!(uses[round / 10](&second, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(second.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        cluster.wait_until_gone("r");
    }
}

/// The third server's grant is read when no call waits for it any more. The time for which this server has the
/// key proves that the grant was in time, so this server can replace one that dies.
#[test]
fn a_late_read_grant_counts_if_it_was_in_time() {
    let cluster = Cluster::start(3);
    for dies in 0..3 {
        let manager = patient(&cluster);
        // With such a long TTL the window is half a second.
        let lease = manager.take("r", TTL);
        cluster.wait_until_everywhere("r");
        cluster[dies].freeze();
        brief(&manager);
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        cluster[dies].resume();
        long(&manager);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        cluster.wait_until_gone("r");
    }
}
