//! Locks of several resources at once: all of them, or none.

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::{Cluster, Lease, Manager, Server, wait_until};
use crate::{TTL, everywhere_is, is_empty, patient};

const NAMES: [&str; 3] = ["b", "a", "c"];

#[track_caller]
fn take(manager: &Manager, names: &[&str]) -> Lease {
    let lease = Lease::new();
    let status = manager.acquire(&Wanted::several(names, TTL), &lease);
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    lease
}

#[track_caller]
fn none_is_set(cluster: &Cluster, names: &[&str]) {
    names.iter().for_each(|name| cluster.wait_until_gone(name));
}

#[test]
fn several_resources_have_one_token_and_exclude_others() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = take(&manager, &NAMES);
    assert!(lease.is_held() && lease.validity_ms() > TTL / 2);
    assert_eq!(lease.resources(), NAMES);
    assert_eq!(lease.resource(), "b");
    for name in NAMES {
        cluster.wait_until_everywhere(name);
        everywhere_is(&cluster, name, Some(&lease.token()));
        let (other, plain) = (patient(&cluster), Lease::new());
        assert_eq!(other.try_lock(name, TTL, 0, &plain), REDLOCK_TAKEN);
        let overlapping = Wanted::several(&["x", name], TTL);
        assert_eq!(other.acquire(&overlapping, &plain), REDLOCK_TAKEN);
        assert!(
            plain.message().contains("resource 2 of 2 held by another client ("),
            "{}",
            plain.message()
        );
        assert_eq!(plain.resources(), ["x", name]);
    }
    assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    for name in NAMES {
        wait_until("it is extended everywhere", || cluster.iter().all(|it| it.pttl(name) > TTL));
    }
    assert_eq!(manager.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    is_empty(&lease);
    none_is_set(&cluster, &["a", "b", "c", "x"]);
}

#[test]
fn one_held_resource_blocks_all_and_is_named() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (patient(&cluster), Lease::new());
    for server in cluster.iter() {
        server.must(&["SET", "a", "another's", "PX", "90000", "NX"]);
        server.must(&["SET", "c", "another's", "PX", "80000", "NX"]);
    }
    assert_eq!(manager.acquire(&Wanted::several(&NAMES, TTL), &lease), REDLOCK_TAKEN);
    // The words name the resource that keeps the caller out for longest.
    assert!(
        lease.message().contains("resource 2 of 3 held by another client ("),
        "{}",
        lease.message()
    );
    cluster.iter().for_each(|it| drop(it.must(&["DEL", "a", "c"])));
    none_is_set(&cluster, &NAMES);
    // A key of another kind, without an expiry.
    cluster.iter().for_each(|it| drop(it.must(&["RPUSH", "c", "x"])));
    assert_eq!(manager.acquire(&Wanted::several(&NAMES, TTL), &lease), REDLOCK_TAKEN);
    assert!(lease.message().contains("resource 3 of 3 held by another client (no expiry)"));
    cluster.iter().for_each(|it| drop(it.must(&["DEL", "c"])));
    let held = take(&manager, &NAMES);
    assert_eq!(manager.acquire(&Wanted::several(&["x", "a"], TTL), &lease), REDLOCK_TAKEN);
    assert_eq!(manager.unlock(&held), REDLOCK_OK);
}

#[test]
fn a_server_without_one_key_has_no_vote() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = take(&manager, &NAMES);
    NAMES.iter().for_each(|name| cluster.wait_until_everywhere(name));
    cluster[0].must(&["DEL", "a"]);
    // The server has the other keys, and they do not count. If one more server loses a key, the lock is lost.
    assert_eq!(manager.confirm(&lease, 1), REDLOCK_OK, "{}", lease.message());
    assert!(!cluster[0].exists("a"), "a question changes nothing");
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK);
    wait_until("it is given it again", || cluster[0].exists("a"));
    everywhere_is(&cluster, "a", Some(&lease.token()));
    // After another round the server counts as the others do.
    wait_until("it is a voter", || manager.extend(&lease, TTL) == REDLOCK_OK);
    cluster[0].must(&["DEL", "b"]);
    cluster[1].must(&["DEL", "c"]);
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST);
    let words = lease.message();
    assert!(words.contains("no longer has resource 1 of 3"), "{words}");
    assert!(words.contains("no longer has resource 3 of 3"), "{words}");
    none_is_set(&cluster, &NAMES);
}

#[test]
fn a_foreign_key_is_not_taken_back_and_blocks_the_repair() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = take(&manager, &NAMES);
    NAMES.iter().for_each(|name| cluster.wait_until_everywhere(name));
    cluster[2].must(&["DEL", "a", "b"]);
    cluster[2].must(&["SET", "b", "another's"]);
    (0..3).for_each(|_| assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK));
    assert!(!cluster[2].exists("a"));
    assert_eq!(cluster[2].get("b").as_deref(), Some("another's"));
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    cluster.wait_until_gone("c");
    assert_eq!(cluster[2].get("b").as_deref(), Some("another's"));
}

#[test]
fn grants_of_a_minority_are_released_after_a_failure() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (patient(&cluster), Lease::new());
    cluster.iter().take(2).for_each(|it| drop(it.must(&["SET", "c", "another's"])));
    for _ in 0..3 {
        assert_eq!(manager.acquire(&Wanted::several(&NAMES, TTL), &lease), REDLOCK_TAKEN);
        none_is_set(&cluster, &["a", "b"]);
    }
    assert!(!cluster[2].exists("c"));
}

#[test]
fn a_fencing_token_exceeds_those_of_all_resources() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    assert_eq!(manager.set_fencing(true), REDLOCK_OK);
    let mut last = 0;
    for (nth, names) in
        [&["a"][..], &NAMES, &["c"], &["c", "x"], &["x", "a"], &NAMES].iter().enumerate()
    {
        // A counter that is ahead of all clocks on one server.
        let ahead = (4_000_000_000_000_000 + nth * 1_000_000).to_string();
        cluster[nth % 3].must(&["HSET", FENCES, field(names[0]), &ahead]);
        let lease = take(&manager, names);
        assert!(lease.fencing_token() > last, "{names:?} {} {last}", lease.fencing_token());
        last = lease.fencing_token();
        for name in *names {
            let number = |it: &Server| it.must(&["HGET", FENCES, field(name)]).text();
            let shows = |it: &&Server| number(it) == Some(last.to_string());
            assert!(cluster.iter().filter(shows).count() >= 2, "{name}");
        }
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    }
    let (lease, clash) = (Lease::new(), Wanted::several(&["a", FENCES], TTL));
    assert_eq!(manager.acquire(&clash, &lease), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.message().contains("resource 2 of 2 is redlock:fence"), "{}", lease.message());
}

const FENCES: &str = "redlock:fence";

/// Where servers count the tokens of these resources.
fn field(resource: &str) -> &'static str {
    match resource {
        "a" => "3212",
        "b" => "421",
        "c" => "4082",
        _ => "1799",
    }
}

#[test]
fn an_adopted_lock_keeps_all_its_names() {
    let cluster = Cluster::start(3);
    let (giver, taker) = (patient(&cluster), patient(&cluster));
    let lease = take(&giver, &NAMES);
    let ticket = giver.detach(&lease).expect("it is held");
    let adopted = Lease::new();
    assert_eq!(taker.adopt(&ticket, &adopted), REDLOCK_OK, "{}", adopted.message());
    assert_eq!(adopted.resources(), NAMES);
    assert_eq!(taker.extend(&adopted, 2 * TTL), REDLOCK_OK);
    assert_eq!(taker.unlock(&adopted), REDLOCK_OK);
    none_is_set(&cluster, &NAMES);
}

#[test]
fn incompatible_names_are_refused_by_place() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (patient(&cluster), Lease::new());
    let refused = |names: &[&str], words: &str| {
        let status = manager.acquire(&Wanted::several(names, TTL), &lease);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
        assert!(lease.message().contains(words), "{}", lease.message());
        assert!(!lease.message().contains("secret"));
        let submitted = manager.submit_acquire(&Wanted::several(names, TTL), &lease, 0);
        assert_eq!(submitted, REDLOCK_INVALID_ARGUMENT);
    };
    refused(&["secret", "x", "secret"], "resource 3 of 3 is the same as resource 1");
    refused(&["secret", ""], "resource 2 of 2 is empty");
    refused(&["", "secret"], "resource 1 of 2 is empty");
    refused(&["redlock:guard", "secret"], "resource 1 of 2 is redlock:guard");
    refused(&["x"; 129], "resource_count is 129: the maximum is 128");
    let long = "x".repeat(65_536);
    refused(&[&long, "secret"], "65542 bytes in total");
    // A lock of one resource is an ordinary lock.
    let one = take(&manager, &["one"]);
    assert_eq!(one.resources(), ["one"]);
    assert_eq!(manager.unlock(&one), REDLOCK_OK);
    let many: Vec<String> = (0..128).map(|it| format!("{it}{}", "x".repeat(500))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let lease = take(&manager, &many);
    assert_eq!(cluster[0].locks(), 128);
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    assert_eq!(cluster[0].locks(), 0);
}

#[test]
fn names_in_several_cluster_slots_need_a_hash_tag() {
    let server = Server::start_with(&["--cluster-enabled", "yes"]);
    let slots: Vec<String> = (0..16_384).map(|slot| slot.to_string()).collect();
    let add: Vec<&str> =
        ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
    server.must(&add);
    wait_until("it is a cluster", || server.command(&["SET", "x", "y"]).is_ok());
    let (manager, lease) = (Manager::of_urls(&[server.url()]), Lease::new());
    let apart = Wanted::several(&["a", "b"], TTL);
    assert_eq!(manager.acquire(&apart, &lease), REDLOCK_UNREACHABLE);
    assert!(lease.message().contains("use one {tag} in all names"), "{}", lease.message());
    let tagged = take(&manager, &["{t}a", "{t}b"]);
    assert_eq!(manager.unlock(&tagged), REDLOCK_OK);
}

#[test]
fn continue_lock_of_one_resource_does_not_extend_several() {
    let cluster = Cluster::start(1);
    let manager = patient(&cluster);
    let lease = take(&manager, &NAMES);
    assert_eq!(manager.continue_lock("b", 2 * TTL, &lease), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.message().contains("still holds"), "{}", lease.message());
    assert!(lease.is_held() && cluster[0].pttl("b") <= TTL);
    let fresh = Lease::new();
    assert_eq!(manager.continue_lock("b", TTL, &fresh), REDLOCK_TAKEN);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
}
