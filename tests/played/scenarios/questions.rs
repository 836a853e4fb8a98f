//! The results of Confirm and IsLocked.

use super::TTL;
use super::client::{Client, token};
use super::cluster::{Cluster, MS, Trip};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

fn locked(servers: usize, per_million: i64) -> (Cluster, Client, Lease) {
    let cluster = Cluster::new(servers);
    (0..servers).for_each(|it| cluster.set_clock(it, 0, per_million));
    let client = cluster.client().waits_ms(1_000).connected();
    let lease = client.take("r", TTL);
    cluster.run_ms(1);
    (cluster, client, lease)
}

/// Another handle of the lock is extended while the servers are asked. Their answers may come after the old
/// end, or report less time than the lock has now. That does not mean that the lock is lost.
#[test]
fn an_extension_during_a_confirmation_counts() {
    for (before_end_ms, back_ms, least_ms) in [(30, 60, 0), (30, 60, TTL / 2), (3_000, 10, TTL / 2)]
    {
        let cluster = Cluster::new(3);
        let client = cluster.client().waits_ms(1_000).connected();
        // It uses connections of its own. Otherwise its answers would come behind those to the question.
        let other = cluster.client().waits_ms(1_000).connected();
        let mut first = Lease::new();
        let mut second = Lease::new();
        for lease in [&mut first, &mut second] {
            assert_eq!(client.continue_lock("r", TTL, lease), Ok(()));
        }
        let end = client.end_of(&second);
        cluster.run_until(end - before_end_ms * MS);
        (0..3).for_each(|it| cluster.script(client.way(it), [Trip::ms(1, back_ms)]));
        cluster.after_ms(2, move |_| assert_eq!(other.extend(&mut first, 2 * TTL), Ok(())));
        let words = format!("{before_end_ms} {back_ms} {least_ms}");
        assert_eq!(client.confirm(&mut second, least_ms), Ok(()), "{words}");
        assert!(client.still_holds(&mut second), "{words}");
    }
}

/// The fact that the first server has the key again does not prove that the key was never gone.
#[test]
fn a_majority_loss_in_a_confirmation_ends_the_lock() {
    let (cluster, client, mut lease) = locked(3, 1_000_000);
    cluster.lose([0], "r");
    assert_eq!(client.extend(&mut lease, TTL), Ok(()));
    cluster.run_ms(10);
    assert_eq!(cluster.having("r", &token(&lease)), 3);
    cluster.lose([1], "r");
    assert_eq!(client.confirm(&mut lease, TTL / 2), Err(Status::Lost));
    assert!(!client.still_holds(&mut lease.clone()));
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
    assert_eq!(client.unlock(&mut lease), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

#[test]
fn a_confirmed_lock_lives_that_long_on_a_quorum() {
    let paces = [990_000, 1_000_000, 1_010_000].into_iter().zip([300, 150, 0]);
    for (per_million, there_ms) in paces {
        // What is subtracted: the time of the request, twice the drift, and the rounding.
        let spare_ms = there_ms + TTL / 50 + 5;
        let mut confirmed = 0;
        for least_ms in (0..TTL).step_by(37) {
            let (cluster, client, mut lease) = locked(3, per_million);
            cluster.run_ms(least_ms % 700);
            (0..3).for_each(|it| cluster.script(client.way(it), [Trip::ms(there_ms, 100)]));
            let kept_until = cluster.kept_until("r", &token(&lease));
            match client.confirm(&mut lease, least_ms) {
                Ok(()) => {
                    confirmed += 1;
                    assert!(cluster.now() + least_ms * MS <= kept_until, "{least_ms}");
                }
                said => {
                    assert_eq!(said, Err(Status::TooShort));
                    assert!(cluster.now() + (least_ms + spare_ms) * MS > kept_until, "{least_ms}");
                    assert!(client.still_holds(&mut lease), "too short, but not over");
                }
            }
        }
        assert!(confirmed > 100);
    }
}

#[test]
fn a_confirmation_read_too_late_fails() {
    let (cluster, client, mut lease) = locked(3, 1_000_000);
    // The servers would keep it for a long time.
    (0..3).for_each(|it| cluster.step_clock(it, -60_000));
    cluster.run_ms(TTL - 300);
    let me = client.me;
    cluster.after_ms(1, move |world| world.suspend(me, 500));
    assert_eq!(client.confirm(&mut lease, 0), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 3, "a question changes nothing");
    assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

/// Between the last answer and the client's own result.
#[test]
fn a_delayed_client_confirms_no_more_than_the_rest() {
    let (mut confirmed, mut tried) = (0, 0);
    for stall_ms in [0, 3_500, TTL] {
        for nth in 1.. {
            let (cluster, client, mut lease) = locked(3, 1_000_000);
            // One server has it for longer, but one is no quorum.
            cluster.put(0, "r", &token(&lease), 6 * TTL);
            cluster.run_ms(2_000);
            client.stall_once(nth, stall_ms * MS);
            let kept_until = cluster.kept_until("r", &token(&lease));
            let least_ms = if stall_ms == TTL { 0 } else { 5_000 };
            tried += 1;
            if client.confirm(&mut lease, least_ms) == Ok(()) {
                confirmed += 1;
                let until = cluster.now() + least_ms * MS;
                assert!(until <= kept_until, "{stall_ms} ms at look {nth}");
            }
            if !client.has_stalled() {
                break;
            }
        }
    }
    assert!(3 * confirmed > tried);
}

#[test]
fn a_lock_of_another_client_is_not_confirmed() {
    let (cluster, client, mut lease) = locked(3, 1_000_000);
    (0..2).for_each(|it| cluster.put(it, "r", "theirs", 6 * TTL));
    assert_eq!(client.confirm(&mut lease, 0), Err(Status::Lost));
    assert_eq!(client.unlock(&mut lease), Err(Status::Lost));
    cluster.run_ms(10);
    assert_eq!((cluster.having("r", "theirs"), cluster.having_any("r")), (2, 2));
    // A single such server has no vote, and prevents nothing: the call waits for the last server.
    let (cluster, client, mut lease) = locked(3, 1_000_000);
    cluster.put(0, "r", "theirs", 6 * TTL);
    cluster.script(client.way(2), [Trip::ms(1, 50)]);
    assert_eq!(client.confirm(&mut lease, 0), Ok(()));
}

#[test]
fn a_lock_without_a_quorum_is_not_confirmed() {
    for (servers, gone, expected) in [
        (1, 1, Err(Status::Lost)),
        (2, 1, Err(Status::Lost)),
        (3, 1, Ok(())),
        (3, 2, Err(Status::Lost)),
        (5, 2, Ok(())),
        (5, 3, Err(Status::Lost)),
    ] {
        let (cluster, client, mut lease) = locked(servers, 1_000_000);
        cluster.lose(0..gone, "r");
        assert_eq!(client.confirm(&mut lease, 0), expected, "{gone} of {servers}");
        assert_eq!(client.extend(&mut lease, TTL), expected, "what is lost stays so");
        cluster.run_ms(10);
        assert_eq!(cluster.having_any("r"), if expected.is_ok() { servers } else { 0 });
    }
}

#[test]
fn any_client_sees_a_lock_on_a_quorum() {
    for servers in 1..=5 {
        let (cluster, client, mut lease) = locked(servers, 1_000_000);
        let other = cluster.client().connected();
        assert_eq!(other.is_locked("r"), Ok(true));
        cluster.lose(0..servers - cluster.quorum(), "r");
        assert_eq!(other.is_locked("r"), Ok(true));
        cluster.lose(0..=servers - cluster.quorum(), "r");
        assert_eq!(other.is_locked("r"), Ok(false));
        let _ = client.unlock(&mut lease);
        cluster.run_ms(1);
        assert_eq!(other.is_locked("r"), Ok(false));
    }
}

/// The remaining time is counted from when the servers reported it, and not from when somebody looks at it.
#[test]
fn the_remaining_time_is_that_of_a_quorum_now() {
    for servers in 1..=5 {
        let (cluster, _client, _lease) = locked(servers, 1_000_000);
        let other = cluster.client().waits_ms(500).connected();
        cluster.run_ms(4_000);
        assert_eq!(other.left_ms("another"), Ok(None));
        let left_ms = other.left_ms("r").expect("it answers").expect("it is locked");
        let passed_ms = TTL - left_ms;
        assert!((4_000..4_100).contains(&passed_ms), "{passed_ms} ms have passed of {servers}");
    }
}

/// A silent server may be the one that makes a quorum.
#[test]
fn a_held_lock_is_never_reported_free() {
    for servers in [3, 4, 5] {
        let (cluster, _client, _lease) = locked(servers, 1_000_000);
        let other = cluster.client().waits_ms(100).connected();
        cluster.lose(0..servers - cluster.quorum(), "r");
        cluster.freeze(servers - 1);
        assert_ne!(other.is_locked("r"), Ok(false), "{servers} servers");
    }
}
