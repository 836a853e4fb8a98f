//! How many servers a lock needs: it is held exactly if there is a quorum.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::usage::{TTL, connected_unguarded};
use crate::support::{Cluster, Server, wait_until};

#[test]
fn t01_a_quorum_of_1_server_is_1() {
    up_is_enough_and_one_less_is_not(1, 1);
}

#[test]
fn t01_a_quorum_of_2_servers_is_2() {
    up_is_enough_and_one_less_is_not(2, 2);
}

#[test]
fn t01_a_quorum_of_3_servers_is_2() {
    up_is_enough_and_one_less_is_not(3, 2);
}

#[test]
fn t01_a_quorum_of_4_servers_is_3() {
    up_is_enough_and_one_less_is_not(4, 3);
}

#[test]
fn t01_a_quorum_of_5_servers_is_3() {
    up_is_enough_and_one_less_is_not(5, 3);
}

#[test]
fn t01_a_quorum_of_7_servers_is_4() {
    up_is_enough_and_one_less_is_not(7, 4);
}

#[test]
fn t01_a_quorum_of_9_servers_is_5() {
    up_is_enough_and_one_less_is_not(9, 5);
}

fn up_is_enough_and_one_less_is_not(servers: usize, quorum: usize) {
    let cluster = Cluster::start(servers);
    let manager = connected_unguarded(&cluster);
    manager.set_retry(1, 0);
    let held = manager.take("held", TTL);
    cluster.wait_until_everywhere("held");

    cluster[quorum..].iter().for_each(Server::kill);
    let lease = manager.take("r", TTL);
    assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.continue_lock("r", 2 * TTL, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.is_locked("r"), Ok(true));
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.is_locked("r"), Ok(false));
    assert!(cluster[..quorum].iter().all(|server| !server.exists("r")));

    cluster[quorum - 1].kill();
    assert_eq!(manager.extend(&held, 2 * TTL), REDLOCK_UNREACHABLE);
    assert_eq!(manager.confirm(&held, 0), REDLOCK_UNREACHABLE);
    assert_eq!(manager.continue_lock("held", 2 * TTL, &held), REDLOCK_UNREACHABLE);
    assert!(held.is_held() && held.remaining_ms() <= TTL);
    assert_eq!(manager.is_locked("held"), Err(REDLOCK_UNREACHABLE));
    assert_eq!(manager.unlock(&held), REDLOCK_UNREACHABLE);
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
    let (message, needed) = (lease.message(), format!(" of {servers} servers "));
    let counted = message.contains(&needed) && message.contains(&format!(", {quorum} needed: "));
    assert!(counted, "{message}");
    wait_until("nothing is left", || {
        cluster[..quorum - 1].iter().all(|server| !server.exists("r") && !server.exists("held"))
    });

    cluster[quorum - 1].restart();
    wait_until("it locks again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
}
