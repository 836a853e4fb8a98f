//! Locks of several resources at once, while something goes wrong with a server or a key.

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::calls::{MANNERS, Manner};
use crate::rig::Rig;
use crate::support::events::Wanted;
use crate::support::product::product;
use crate::support::proxy::BOTH;
use crate::support::usage::{DEADLINE, TTL, connected, connected_unguarded, in_time};
use crate::support::{Cluster, Lease, Manager, Server, Way, wait_until};

const NAMES: [&str; 3] = ["b", "a", "c"];

#[track_caller]
fn take(manager: &Manager, names: &[&str]) -> Lease {
    let lease = Lease::new();
    let status = manager.acquire(&Wanted::several(names, TTL), &lease);
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    lease
}

/// No server has any of these keys, once the manager has its connections again. The test goes on using the
/// manager until then.
#[track_caller]
fn nothing_is_left(manager: &Manager, cluster: &Cluster) {
    let is_gone = || NAMES.iter().all(|name| cluster.having(name) == 0);
    wait_until("all keys are gone", || manager.is_locked("another") == Ok(false) && is_gone());
}

#[test]
fn d01_a_dead_or_silent_minority_is_harmless() {
    for (harm, is_frozen) in [(Server::kill as fn(&Server), false), (Server::freeze, true)] {
        for is_before in [true, false] {
            let cluster = Cluster::start(3);
            let manager = connected(&cluster);
            if is_before {
                harm(&cluster[1]);
            }
            in_time(DEADLINE, || {
                let lease = take(&manager, &NAMES);
                if !is_before {
                    harm(&cluster[1]);
                }
                assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
                assert_eq!(manager.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
                let rival = Lease::new();
                assert_eq!(manager.try_lock("a", TTL, 0, &rival), REDLOCK_TAKEN);
                assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            });
            for server in [&cluster[0], &cluster[2]] {
                wait_until("the others have nothing", || {
                    NAMES.iter().all(|name| !server.exists(name))
                });
            }
            if is_frozen {
                cluster[1].resume();
            }
        }
    }
}

#[test]
fn d01_a_forgetful_minority_gets_all_keys_again() {
    let cluster = Cluster::start(3);
    let manager = connected_unguarded(&cluster);
    let lease = take(&manager, &NAMES);
    NAMES.iter().for_each(|name| cluster.wait_until_everywhere(name));
    cluster[1].restart();
    wait_until("it has all of them again", || {
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        let count = NAMES.iter().filter(|name| cluster[1].exists(name)).count();
        assert!([0, NAMES.len()].contains(&count), "{count} of them");
        count > 0
    });
    // The server counts again once a round has shown that no other client can have taken the lock.
    assert_eq!(manager.set_timeouts(700, 700), REDLOCK_OK);
    wait_until("it has a vote again", || {
        cluster[0].freeze();
        let said = manager.extend(&lease, TTL);
        cluster[0].resume();
        wait_until("it answers again", || manager.extend(&lease, TTL) == REDLOCK_OK);
        said == REDLOCK_OK
    });
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    nothing_is_left(&manager, &cluster);
}

#[test]
fn d02_one_resource_of_a_plain_client_on_a_majority_blocks() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let plain = |server: &Server| server.must(&["SET", "c", "theirs", "NX", "PX", "600000"]);
    cluster.iter().take(2).for_each(|it| drop(plain(it)));
    assert_eq!(manager.acquire(&Wanted::several(&NAMES, TTL), &lease), REDLOCK_TAKEN);
    assert!(
        lease.message().contains("resource 3 of 3 held by another client ("),
        "{}",
        lease.message()
    );
    wait_until("nothing is left", || NAMES[..2].iter().all(|name| cluster.having(name) == 0));
    assert_eq!(cluster.having("c"), 2);
}

#[test]
fn d02_one_resource_of_a_plain_client_on_a_minority_does_not() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    cluster[0].must(&["SET", "a", "theirs", "NX", "PX", "600000"]);
    let lease = take(&manager, &NAMES);
    for _ in 0..3 {
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    }
    assert_eq!(cluster[0].get("a").as_deref(), Some("theirs"));
    assert!(!cluster[0].exists("b") && !cluster[0].exists("c"));
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(cluster[0].get("a").as_deref(), Some("theirs"));
    cluster.wait_until_gone("b");
}

#[test]
fn d03_a_server_without_one_key_has_no_vote() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    for name in NAMES {
        let lease = take(&manager, &NAMES);
        NAMES.iter().for_each(|name| cluster.wait_until_everywhere(name));
        cluster[0].must(&["DEL", name]);
        assert_eq!(manager.confirm(&lease, 0), REDLOCK_OK, "{}", lease.message());
        // With another silent server there is no quorum, although this server has two of the keys.
        cluster[1].freeze();
        assert_eq!(manager.set_timeouts(700, 700), REDLOCK_OK);
        let unreachable = manager.confirm(&lease, 0);
        cluster[1].resume();
        assert_eq!(unreachable, REDLOCK_UNREACHABLE, "{}", lease.message());
        wait_until("it answers again", || manager.confirm(&lease, 0) == REDLOCK_OK);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        nothing_is_left(&manager, &cluster);
    }
}

#[test]
fn d03_a_majority_without_one_key_loses_and_frees_the_lock() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    for (one, other) in [("a", "a"), ("a", "b"), ("c", "a")] {
        let lease = take(&manager, &NAMES);
        NAMES.iter().for_each(|name| cluster.wait_until_everywhere(name));
        cluster[0].must(&["DEL", one]);
        cluster[1].must(&["DEL", other]);
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST, "{}", lease.message());
        assert!(!lease.is_held());
        nothing_is_left(&manager, &cluster);
    }
}

#[test]
fn d04_an_acquire_cancelled_anywhere_leaves_nothing() {
    for way in BOTH {
        for manner in MANNERS {
            let rig = Rig::start(1);
            let manager = rig.connected();
            // The request has hundreds of bytes, and neighbouring bytes give the same result.
            let cut = |count: &u64| is_cut((&rig, &manager), manner, (way, *count));
            let cuts = (0..).step_by(if way == Way::Requests { 37 } else { 1 });
            assert!(cuts.take_while(cut).count() >= 4);
        }
    }
}

/// Returns whether this number of bytes is less than the whole conversation.
fn is_cut((rig, manager): (&Rig, &Manager), manner: Manner, (way, count): (Way, u64)) -> bool {
    let (proxy, lease) = (&rig.proxies[0], Lease::new());
    let wanted = Wanted::several(&NAMES, TTL);
    proxy.stall_after(way, count);
    let status = match manner {
        Manner::Blocking => std::thread::scope(|scope| {
            let call = scope.spawn(|| manager.acquire(&wanted, &lease));
            wait_until("it is there", || proxy.is_holding(way) || call.is_finished());
            assert_eq!(manager.cancel(&lease), REDLOCK_OK);
            call.join().expect("no panic")
        }),
        Manner::Submitted => {
            assert_eq!(manager.submit_acquire(&wanted, &lease, 0), REDLOCK_OK);
            let mut event = None;
            wait_until("it is there", || {
                event = event.or_else(|| manager.next_event(0));
                event.is_some() || proxy.is_holding(way)
            });
            assert_eq!(manager.cancel(&lease), REDLOCK_OK);
            event.unwrap_or_else(|| manager.event()).status
        }
    };
    proxy.heal();
    if status == REDLOCK_OK {
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    } else {
        assert_eq!(status, REDLOCK_CANCELLED, "{}", lease.message());
    }
    nothing_is_left(manager, &rig.servers);
    status == REDLOCK_CANCELLED
}

#[test]
fn d05_a_user_without_the_rights_locks_one_at_a_time() {
    let cluster = Cluster::start(3);
    let manager = connected_unguarded(&cluster);
    let permit = |rule: &str| {
        cluster.iter().for_each(|it| drop(it.must(&["ACL", "SETUSER", "default", rule])));
    };
    if product().sets_several() {
        // It needs none of these commands. If this one is not permitted, they replace it.
        permit("-msetex");
    }
    let lease = Lease::new();
    for command in ["exists", "set"] {
        permit(&format!("-{command}"));
        let status = manager.acquire(&Wanted::several(&NAMES, TTL), &lease);
        assert_eq!(status, REDLOCK_UNREACHABLE);
        assert!(lease.message().contains("user lacks"), "{}", lease.message());
        if command == "exists" {
            let one = manager.take("a", TTL);
            assert_eq!(manager.unlock(&one), REDLOCK_OK, "{}", one.message());
        }
        permit(&format!("+{command}"));
    }
    for command in ["mget", "del"] {
        let lease = take(&manager, &NAMES);
        permit(&format!("-{command}"));
        assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE);
        assert!(lease.message().contains("user lacks"), "{}", lease.message());
        permit(&format!("+{command}"));
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        nothing_is_left(&manager, &cluster);
    }
}
