//! Taking a lock or renewing it, round after round, with a fresh lease each time.

use super::client::{Client, token};
use super::cluster::{Cluster, Fault, MS, Trip, Verb};
use super::history::is_borne_out;
use super::{TTL, VALID};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

fn connected(servers: usize) -> (Cluster, Client) {
    let cluster = Cluster::new(servers);
    let client = cluster.client().tries(1, 0).connected();
    (cluster, client)
}

#[track_caller]
fn continued(client: &Client, resource: &str) -> Lease {
    let mut lease = Lease::new();
    assert_eq!(client.continue_lock(resource, TTL, &mut lease), Ok(()));
    lease
}

#[test]
fn fresh_leases_keep_one_token_and_leave_no_gap() {
    let (cluster, client) = connected(3);
    let first = token(&continued(&client, "r"));
    let watched = first.clone();
    cluster.after_ms(0, move |world| {
        for _ in 0..20 * TTL / 7 {
            assert!(world.having("r", &watched) >= 2, "a gap");
            world.run_ms(7);
        }
    });
    for round in 0..40 {
        cluster.run_ms(TTL / 2);
        // Every third round, a server misses the key or loses it. The rounds in between set the key there
        // again, and find that the other servers had it meanwhile.
        match round % 9 {
            0 => cluster.script(client.way(0), [Trip::failing(Fault::ErrorInstead)]),
            3 => cluster.script(client.way(1), [Trip::ms(90, 1)]),
            6 => cluster.lose([2], "r"),
            _ => {}
        }
        let start = cluster.now();
        let lease = continued(&client, "r");
        assert_eq!(token(&lease), first);
        assert_eq!(client.end_of(&lease), start + VALID * MS);
        assert!(is_borne_out(*cluster, &client, &lease));
        cluster.run_ms(100);
    }
}

/// A lease held a lock that was lost, and continues one that another lease has taken since.
#[test]
fn continuing_another_lock_ends_the_keep_alive_of_the_lost() {
    for continues in [false, true] {
        let (cluster, client) = connected(3);
        let mut lease = continued(&client, "r");
        assert_eq!(client.keep_alive(&mut lease), Ok(()));
        cluster.lose(0..3, "r");
        assert_eq!(client.continue_lock("r", TTL, &mut Lease::new()), Err(Status::Lost));
        let other = continued(&client, "r");
        if continues {
            assert_eq!(client.continue_lock("r", TTL, &mut lease), Ok(()));
            assert_eq!(token(&lease), token(&other));
        }
        // Nobody is told of a lock that nobody wants to keep any more.
        let told = (!continues).then_some(Err(Status::Lost));
        assert_eq!(client.event(0), told);
    }
}

#[test]
fn two_resources_are_kept_in_turn() {
    let (cluster, client) = connected(3);
    let tokens = ["a", "b"].map(|it| token(&continued(&client, it)));
    assert_ne!(tokens[0], tokens[1]);
    for _ in 0..10 {
        for (resource, expected) in ["a", "b"].into_iter().zip(&tokens) {
            cluster.run_ms(TTL / 4);
            assert_eq!(token(&continued(&client, resource)), *expected);
            assert_eq!(cluster.having("a", &tokens[0]), 3);
            assert_eq!(cluster.having("b", &tokens[1]), 3);
        }
    }
}

#[test]
fn a_loss_is_reported_once_before_a_new_lock() {
    let (cluster, client) = connected(3);
    let client = client.tries(5, 10);
    let mut first = continued(&client, "r");
    let old = token(&first);
    cluster.lose(0..2, "r");
    let mut lease = Lease::new();
    assert_eq!(client.continue_lock("r", TTL, &mut lease), Err(Status::Lost));
    assert_eq!(client.asked_at(2, Verb::Extend).len(), 1, "what is lost is not tried for again");
    assert_eq!(lease.token(), None);
    assert_eq!(client.extend(&mut first, TTL), Err(Status::Lost), "it is for every handle");
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
    let new = token(&continued(&client, "r"));
    assert_ne!(new, old);
    cluster.run_ms(1);
    assert_eq!(cluster.having("r", &new), 3);
}

#[test]
fn an_expired_lock_is_taken_anew() {
    for (late_ns, is_fresh) in
        [-1, 0, TTL * MS].into_iter().flat_map(|it| [(it, true), (it, false)])
    {
        let (cluster, client) = connected(3);
        let mut lease = continued(&client, "r");
        let (old, end) = (token(&lease), client.end_of(&lease));
        // The servers' clocks are slower than the client's. That must not make the client think that it
        // still holds the lock.
        (0..3).for_each(|it| cluster.step_clock(it, -20));
        cluster.run_until(end + late_ns);
        if is_fresh {
            lease = Lease::new();
        }
        let said = client.continue_lock("r", TTL, &mut lease);
        match late_ns {
            // It still held the lock when it asked, but no more when it got the answer.
            -1 => assert_eq!(said, Err(Status::Lost)),
            // Its own key is in its way for a moment.
            0 => assert_eq!(said, Err(Status::Taken)),
            _ => assert_eq!(said, Ok(())),
        }
        cluster.run_ms(TTL - VALID + 30);
        assert_eq!(cluster.having("r", &old), 0);
    }
}

#[test]
fn a_new_holder_is_left_alone() {
    let (cluster, client) = connected(3);
    let rival = cluster.client().connected();
    let _lease = continued(&client, "r");
    cluster.run_ms(TTL);
    let theirs = rival.take("r", TTL);
    let kept_until = cluster.kept_until("r", &token(&theirs));
    assert_eq!(client.continue_lock("r", 2 * TTL, &mut Lease::new()), Err(Status::Taken));
    cluster.run_ms(10);
    assert_eq!(cluster.having("r", &token(&theirs)), 3);
    assert_eq!(cluster.kept_until("r", &token(&theirs)), kept_until);
}

#[test]
fn silence_is_retried_and_the_lock_stays_held() {
    let (cluster, client) = connected(3);
    let client = client.tries(4, 100);
    client.rig(Some(1 << 63));
    let first = continued(&client, "r");
    let (old, end) = (token(&first), client.end_of(&first));
    cluster.freeze(0);
    cluster.freeze(1);
    let (mut lease, start) = (Lease::new(), cluster.now());
    assert_eq!(client.continue_lock("r", TTL, &mut lease), Err(Status::Unreachable));
    // The reply timeout, and then three pauses. Servers that owe an answer for so long are not asked.
    assert_eq!((cluster.now() - start) / MS, TTL / 20 + 3 * 100);
    assert_eq!(token(&lease), old, "the fresh lease is one more handle of it");
    cluster.run_until(end - 1);
    assert!(client.still_holds(&mut lease));
    cluster.thaw(0);
    cluster.thaw(1);
    cluster.run_until(end);
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn a_try_that_reaches_a_quorum_renews_the_lock() {
    let (cluster, client) = connected(3);
    let client = client.tries(4, 100);
    let old = token(&continued(&client, "r"));
    cluster.freeze(0);
    cluster.freeze(1);
    cluster.after_ms(600, |world| world.thaw(0));
    let lease = continued(&client, "r");
    assert_eq!(token(&lease), old);
    assert!(is_borne_out(*cluster, &client, &lease));
}

#[test]
fn a_released_lock_is_not_continued() {
    let (cluster, client) = connected(3);
    let mut lease = continued(&client, "r");
    let old = token(&lease);
    assert_eq!(client.unlock(&mut lease), Ok(()));
    let again = continued(&client, "r");
    assert_ne!(token(&again), old);
    let deeds = cluster.deeds();
    assert!(!deeds.iter().any(|it| it.verb == Verb::Extend));
}

#[test]
fn a_lease_of_another_or_shared_lock_is_refused() {
    let (_cluster, client) = connected(3);
    let mut lease = continued(&client, "r");
    let end = client.end_of(&lease);
    let said = client.continue_lock("other", TTL, &mut lease);
    assert_eq!((said, client.end_of(&lease)), (Err(Status::InvalidArgument), end));
    assert_eq!(client.downgrade(&mut lease), Ok(()));
    assert_eq!(client.continue_lock("r", TTL, &mut lease), Err(Status::InvalidArgument));
    assert_eq!(client.continue_lock("r", TTL, &mut Lease::new()), Err(Status::InvalidArgument));
}
