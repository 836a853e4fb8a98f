//! A client that is suspended. Time goes on without it, and its clock shows that.

use super::client::{Client, token};
use super::cluster::{Cluster, MS};
use super::{TTL, VALID};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

fn locked() -> (Cluster, Client, Lease) {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(1, 0).waits_ms(1_000).connected();
    let lease = client.take("r", TTL);
    cluster.run_ms(1);
    (cluster, client, lease)
}

/// A call on a lease.
type Call = fn(&Client, &mut Lease) -> Result<(), Status>;

#[test]
fn a_lock_expired_in_a_suspend_stays_lost() {
    let calls: [Call; 3] = [
        |client, lease| client.extend(lease, TTL),
        |client, lease| client.confirm(lease, 0),
        |client, lease| client.unlock(lease),
    ];
    for call in calls {
        for suspended_ms in [TTL, 3_600_000] {
            let (cluster, client, mut lease) = locked();
            cluster.suspend(client.me, suspended_ms);
            cluster.run_ms(suspended_ms);
            assert_eq!(call(&client, &mut lease), Err(Status::Lost));
            assert_eq!(client.extend(&mut lease, TTL), Err(Status::Lost));
            assert_eq!(lease.token(), None);
            cluster.run_ms(10);
            assert_eq!(cluster.having_any("r"), 0);
        }
    }
}

#[test]
fn continue_lock_after_a_suspend_takes_a_free_lock() {
    for is_taken in [false, true] {
        let (cluster, client, _) = locked();
        let rival = cluster.client().connected();
        let mut lease = Lease::new();
        cluster.run_ms(TTL);
        assert_eq!(client.continue_lock("r", TTL, &mut lease), Ok(()));
        let old = token(&lease);
        cluster.suspend(client.me, 2 * TTL);
        cluster.run_ms(2 * TTL);
        let theirs = is_taken.then(|| rival.take("r", TTL));
        let mut lease = Lease::new();
        let said = client.continue_lock("r", TTL, &mut lease);
        assert_eq!(said, if is_taken { Err(Status::Taken) } else { Ok(()) });
        assert_ne!(lease.token(), Some(&*old));
        let holder = theirs.as_ref().unwrap_or(&lease);
        cluster.run_ms(10);
        assert_eq!(cluster.having("r", &token(holder)), 3);
    }
}

/// The answers of a quorum arrive in time, but are not read in time.
#[test]
fn grants_read_too_late_are_too_slow() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(1, 0).waits_ms(60_000).connected();
    let me = client.me;
    for (suspended_ms, expected) in [(VALID - 1, Err(Status::TooSlow)), (VALID - 2, Ok(()))] {
        cluster.after_ms(1, move |world| world.suspend(me, suspended_ms));
        let mut lease = Lease::new();
        assert_eq!(client.lock("r", TTL, &mut lease), expected);
        cluster.run_ms(1);
        assert_eq!(cluster.having_any("r"), if expected.is_ok() { 3 } else { 0 });
    }
}

#[test]
fn extensions_read_too_late_are_lost() {
    for (suspended_ms, expected) in [(99, Err(Status::Lost)), (98, Ok(()))] {
        let (cluster, client, mut lease) = locked();
        let me = client.me;
        // Three milliseconds have passed since the lock was requested.
        cluster.run_ms(VALID - 100 - 3);
        cluster.after_ms(1, move |world| world.suspend(me, suspended_ms));
        assert_eq!(client.extend(&mut lease, TTL), expected);
        cluster.run_ms(2);
        assert_eq!(cluster.having_any("r"), if expected.is_ok() { 3 } else { 0 });
    }
}

#[test]
fn a_suspend_in_a_pause_does_no_harm() {
    let cluster = Cluster::new(3);
    let client = cluster.client().tries(2, 200).connected();
    (0..3).for_each(|it| cluster.put(it, "r", "theirs", TTL));
    let me = client.me;
    cluster.after_ms(50, move |world| world.suspend(me, 3_600_000));
    let start = cluster.now();
    let lease = client.take("r", TTL);
    assert!(cluster.now() - start >= 3_600_000 * MS);
    assert_eq!(lease.validity_ms(), VALID - 2);
}

/// The answers have arrived in time, and a thread that was kept from running looks at them too late.
#[test]
fn grants_seen_too_late_are_too_slow() {
    let mut too_slow = 0;
    for nth in 1.. {
        let cluster = Cluster::new(3);
        let client = cluster.client().tries(1, 0).waits_ms(60_000).connected();
        client.stall_once(nth, VALID * MS);
        let (mut lease, answered_at) = (Lease::new(), cluster.now() + 2 * MS);
        match client.lock("r", TTL, &mut lease) {
            // The thread was held up before it asked, or after it knew the outcome.
            Ok(()) => assert!(cluster.having("r", &token(&lease)) >= 2),
            Err(status) => {
                assert_eq!((status, lease.token()), (Status::TooSlow, None));
                cluster.run_ms(10);
                assert_eq!(cluster.having_any("r"), 0);
                too_slow += usize::from(client.stalled_at() == answered_at);
            }
        }
        if !client.has_stalled() {
            break;
        }
    }
    // This happens when the client receives the answers and processes them, and again when it knows their
    // result.
    assert!(too_slow > 5, "{too_slow}");
}

/// Exact to the nanosecond. Two milliseconds have passed when the answers arrive.
#[test]
fn grants_seen_at_the_exact_end_are_too_slow() {
    for (early_ns, is_late) in [(1, false), (0, true)] {
        let mut too_slow = 0;
        for nth in 1.. {
            let cluster = Cluster::new(3);
            let client = cluster.client().tries(1, 0).waits_ms(60_000).connected();
            client.stall_once(nth, (VALID - 2) * MS - early_ns);
            let answered_at = cluster.now() + 2 * MS;
            let said = client.lock("r", TTL, &mut Lease::new());
            assert!(is_late || said == Ok(()), "{said:?}");
            let is_answered = client.stalled_at() == answered_at;
            too_slow += usize::from(is_answered && said == Err(Status::TooSlow));
            if !client.has_stalled() {
                break;
            }
        }
        // This happens when the client receives the answers and processes them, and again when it knows
        // their result.
        assert!(!is_late || too_slow > 5, "{too_slow}");
    }
}

/// The results of a call whose caller is delayed at one of its looks at the clock: one result for each
/// look.
fn held_up(call: Call, ns: i64) -> Vec<Result<(), Status>> {
    let mut said = Vec::new();
    loop {
        let (_cluster, client, mut lease) = locked();
        let client = client.waits_ms(60_000);
        client.stall_once(said.len() as u32 + 1, ns);
        said.push(call(&client, &mut lease));
        if !client.has_stalled() {
            return said;
        }
    }
}

/// Exact to the nanosecond. Three milliseconds have passed since the lock was requested, and two more when
/// the answers arrive.
#[test]
fn answers_seen_at_the_exact_end_are_too_late() {
    let calls: [(Call, i64); 2] = [
        (|client, lease| client.extend(lease, TTL), VALID - 2),
        (|client, lease| client.confirm(lease, 0), VALID - 5),
    ];
    for (call, left_ms) in calls {
        let [in_time, late] = [1, 0].map(|early_ns| held_up(call, left_ms * MS - early_ns));
        // At the last look that matters.
        let last = late.iter().rposition(|it| *it == Err(Status::Lost)).expect("it matters");
        assert_eq!(in_time[last], Ok(()), "{left_ms} ms were left");
    }
}

/// Too late for the old end of the lock, and for the new end that the lock would get.
#[test]
fn extensions_seen_too_late_are_lost() {
    let (mut lost, mut lost_late) = (Vec::new(), 0);
    for nth in 1.. {
        let (cluster, client, mut lease) = locked();
        client.stall_once(nth, TTL * MS);
        let answered_at = cluster.now() + 2 * MS;
        // Otherwise the client was held up when it knew the outcome.
        if client.extend(&mut lease, TTL) == Err(Status::Lost) {
            assert_eq!(lease.token(), None);
            cluster.run_ms(10);
            assert_eq!(cluster.having_any("r"), 0);
            lost.push(nth);
            lost_late += usize::from(client.stalled_at() == answered_at);
        }
        if !client.has_stalled() {
            break;
        }
    }
    // This happens before the client asks, when it processes the answers, and again when it knows their
    // result.
    assert!(lost.iter().copied().eq(1..=lost.len() as u32), "{lost:?}");
    assert!(lost_late > 1 && lost.len() > lost_late, "{lost:?}");
}
