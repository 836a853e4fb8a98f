//! Releasing a lock whose key stays for some time.

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::{Cluster, Lease, Manager, wait_until};
use crate::{TTL, everywhere_is, is_empty, patient};

/// So long that no test ends it.
const LEAST: i64 = TTL / 2;

#[track_caller]
fn ends_in_time(cluster: &Cluster, resource: &str) {
    for server in cluster.iter() {
        wait_until("its key ends sooner", || (1..=LEAST).contains(&server.pttl(resource)));
    }
}

fn tries_once(cluster: &Cluster) -> Manager {
    let manager = patient(cluster);
    manager.set_retry(1, 0);
    manager
}

/// The job itself takes no time, and the second machine comes late.
#[test]
fn a_second_job_runs_only_after_the_key_is_gone() {
    const SHORT: i64 = 1_500;
    let cluster = Cluster::start(3);
    let (first, second) = (tries_once(&cluster), tries_once(&cluster));
    let (lease, late) = (first.take("job", TTL), Lease::new());
    cluster.wait_until_everywhere("job");
    assert_eq!(first.unlock_after(&lease, LEAST), REDLOCK_OK, "{}", lease.message());
    is_empty(&lease);
    ends_in_time(&cluster, "job");
    for manager in [&second, &first] {
        assert_eq!(manager.lock("job", TTL, &late), REDLOCK_TAKEN);
    }
    assert_eq!(first.unlock(&lease), REDLOCK_LOST);
    // Another job, whose key ends while the test runs. Nobody wakes the one that waits, and it does not wait for the
    // TTL.
    let lease = first.take("other", TTL);
    assert_eq!(first.unlock_after(&lease, SHORT), REDLOCK_OK);
    assert_eq!(second.try_lock("other", TTL, TTL / 2, &late), REDLOCK_OK, "{}", late.message());
    assert_eq!(second.unlock(&late), REDLOCK_OK);
}

#[test]
fn an_overdue_key_is_deleted_and_a_waiter_woken() {
    let cluster = Cluster::start(3);
    let (manager, next) = (tries_once(&cluster), tries_once(&cluster));
    for least_ms in [0, 1] {
        let lease = manager.take("r", TTL);
        // By then at least a millisecond has passed.
        wait_until("time passes", || lease.remaining_ms() < lease.validity_ms() - 1);
        assert_eq!(manager.unlock_after(&lease, least_ms), REDLOCK_OK);
        let lease = next.take("r", TTL);
        assert_eq!(next.unlock(&lease), REDLOCK_OK);
        cluster.wait_until_gone("r");
    }
}

#[test]
fn the_key_of_another_holder_is_left_alone() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    for server in &cluster[..2] {
        server.must(&["SET", "r", "theirs", "PX", "500000"]);
    }
    assert_eq!(manager.unlock_after(&lease, 10_000), REDLOCK_LOST);
    is_empty(&lease);
    wait_until("ours ends soon", || cluster[2].pttl("r") <= 10_000);
    for server in &cluster[..2] {
        assert_eq!(server.get("r").as_deref(), Some("theirs"));
        assert!(server.pttl("r") > 400_000);
    }
    // What is no lock at all.
    let lease = manager.take("s", TTL);
    cluster.wait_until_everywhere("s");
    for server in cluster.iter() {
        server.must(&["DEL", "s"]);
        server.must(&["RPUSH", "s", "theirs"]);
    }
    assert_eq!(manager.unlock_after(&lease, 10_000), REDLOCK_LOST, "{}", lease.message());
    assert!(cluster.iter().all(|server| server.pttl("s") == -1));
}

#[test]
fn no_key_lives_longer_and_a_permanent_one_gets_a_ttl() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    cluster[0].must(&["PEXPIRE", "r", "100000"]);
    cluster[1].must(&["PERSIST", "r"]);
    assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_OK);
    ends_in_time(&cluster, "r");
    assert!(cluster[0].pttl("r") <= 100_000);
}

#[test]
fn with_one_server_down_the_others_keep_the_key() {
    let cluster = Cluster::start(3);
    let manager = tries_once(&cluster);
    let lease = manager.take("r", TTL);
    let token = lease.token();
    cluster.wait_until_everywhere("r");
    cluster[2].kill();
    assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_OK, "{}", lease.message());
    is_empty(&lease);
    for server in &cluster[..2] {
        assert_eq!(server.get("r").as_deref(), Some(&*token));
        assert!((1..=LEAST).contains(&server.pttl("r")));
    }
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_TAKEN, "{}", lease.message());
}

/// What is released again after that, by any call, leaves the key.
#[test]
fn without_a_majority_the_call_can_be_repeated() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    let token = lease.token();
    cluster.wait_until_everywhere("r");
    manager.set_timeouts(1_000, 100);
    cluster[1].freeze();
    cluster[2].freeze();
    assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_UNREACHABLE);
    assert!(!lease.is_held());
    assert_eq!(lease.token(), token);
    cluster[1].resume();
    cluster[2].resume();
    wait_until("it is released", || manager.unlock(&lease) == REDLOCK_OK);
    everywhere_is(&cluster, "r", Some(&token));
    ends_in_time(&cluster, "r");
}

#[test]
fn several_resources_keep_their_keys_together() {
    let cluster = Cluster::start(3);
    let manager = tries_once(&cluster);
    let lease = Lease::new();
    assert_eq!(
        manager.acquire(&Wanted::several(&["a", "b"], TTL), &lease),
        REDLOCK_OK,
        "{}",
        lease.message()
    );
    ["a", "b"].iter().for_each(|it| cluster.wait_until_everywhere(it));
    assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_OK, "{}", lease.message());
    is_empty(&lease);
    for name in ["a", "b"] {
        ends_in_time(&cluster, name);
        assert_eq!(manager.lock(name, TTL, &lease), REDLOCK_TAKEN);
    }
}

#[test]
fn an_impossible_delay_is_refused_and_the_lock_stays_held() {
    let cluster = Cluster::start(1);
    let manager = patient(&cluster);
    let refused = |lease: &Lease, least_ms, words: &str| {
        assert_eq!(manager.unlock_after(lease, least_ms), REDLOCK_INVALID_ARGUMENT);
        assert_eq!(lease.message(), words);
        assert!(lease.is_held());
    };
    let lease = manager.take("r", TTL);
    refused(&lease, -1, "least_ms is -1: it must be 0 to 600000");
    let words = "least_ms is 600001: it must be 0 to 600000";
    refused(&lease, TTL + 1, words);
    assert_eq!(manager.downgrade(&lease), REDLOCK_OK);
    refused(
        &lease,
        LEAST,
        "not possible for shared locks and permits: other holders use the same keys",
    );
    let permit = Lease::new();
    let wanted = Wanted { permits: 3, ..Wanted::new("s", TTL) };
    assert_eq!(manager.acquire(&wanted, &permit), REDLOCK_OK);
    refused(
        &permit,
        LEAST,
        "not possible for shared locks and permits: other holders use the same keys",
    );
    assert_eq!(manager.unlock_after(&Lease::new(), 0), REDLOCK_LOST);
}

/// A kept lock is no longer extended.
#[test]
fn a_delayed_unlock_ends_the_keep_alive() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    assert_eq!(manager.keep_alive(&lease, 1), REDLOCK_OK, "{}", lease.message());
    lease.set_done_events(false);
    assert_eq!(manager.submit_unlock_after(&lease, LEAST, 0), REDLOCK_OK);
    assert_eq!(manager.wait(&lease, -1), REDLOCK_OK, "{}", lease.message());
    is_empty(&lease);
    ends_in_time(&cluster, "r");
}

/// The call on the wrong servers was refused, so the lock is still held, and is released as any other.
#[test]
fn a_refused_call_does_not_change_a_later_unlock() {
    let (cluster, others) = (Cluster::start(1), Cluster::start(1));
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    assert_eq!(patient(&others).unlock_after(&lease, LEAST), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.is_held());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone("r");
}

/// The server refuses a command within the script. That does not mean that it has lost the lock.
#[test]
fn a_forbidden_command_is_no_lost_lock() {
    let cluster = Cluster::start(1);
    let manager = patient(&cluster);
    let lease = manager.take("r", TTL);
    cluster[0].must(&["ACL", "SETUSER", "default", "-get"]);
    assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_UNREACHABLE, "{}", lease.message());
    cluster[0].must(&["ACL", "SETUSER", "default", "+get"]);
    assert!(cluster[0].exists("r"));
    assert_eq!(manager.unlock_after(&lease, LEAST), REDLOCK_OK, "{}", lease.message());
    ends_in_time(&cluster, "r");
}
