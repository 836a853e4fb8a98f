//! A lock that is passed on by a ticket: no two clients hold it at any moment, and nothing of it is left
//! behind.

use super::client::{Client, token};
use super::cluster::{Cluster, MS, Trip, Verb};
use super::{RETRY_GAP_MS, TTL};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

/// So long that no key expires by itself.
const LONG: i64 = 1_000_000;

/// A lock that was given away, with its ticket, and another client.
fn given(servers: usize, ttl_ms: i64) -> (Cluster, Client, Lease, String, Client) {
    let cluster = Cluster::new(servers);
    let giver = cluster.client().tries(1, 0).waits_ms(100).connected();
    let taker = cluster.client().tries(1, 0).waits_ms(100).connected();
    let mut lease = giver.take("r", ttl_ms);
    cluster.run_ms(1);
    let ticket = giver.detach(&mut lease).expect("it is held");
    (cluster, giver, lease, ticket, taker)
}

#[test]
fn a_handed_over_lock_is_complete_and_released_once() {
    for servers in 1..=5 {
        let (cluster, giver, mut lease, ticket, taker) = given(servers, LONG);
        let before = cluster.deeds().len();
        assert!(!lease.is_held() && lease.remaining_ms() == 0);
        assert_eq!(giver.extend(&mut lease, LONG), Err(Status::Lost));
        assert_eq!(giver.confirm(&mut lease, 0), Err(Status::Lost));
        assert_eq!(giver.unlock(&mut lease), Err(Status::Lost));
        cluster.run_ms(10);
        assert_eq!(cluster.deeds().len(), before, "the giver has sent something");
        let mut taken = Lease::new();
        assert_eq!(taker.adopt(&ticket, &mut taken), Ok(()));
        assert_eq!(cluster.having("r", &token(&taken)), servers);
        assert_eq!(giver.lock("r", TTL, &mut lease), Err(Status::Taken));
        assert_eq!(taker.extend(&mut taken, LONG), Ok(()));
        assert_eq!(taker.unlock(&mut taken), Ok(()));
        cluster.run_ms(1);
        assert_eq!(cluster.having_any("r"), 0);
        assert_eq!(giver.lock("r", TTL, &mut lease), Ok(()));
    }
}

/// However long the question takes, and however the servers' clocks run: nobody else can have a quorum
/// while the adopter believes that it holds the lock.
#[test]
fn an_adopted_lock_ends_no_later_than_its_quorum() {
    for servers in [1, 3, 4, 5] {
        for per_million in [1_000_000, 1_009_000, 990_000] {
            for trip in [Trip::ms(0, 0), Trip::ms(60, 0), Trip::ms(0, 60), Trip::ms(40, 50)] {
                let cluster = Cluster::new(servers);
                for server in 0..cluster.quorum() {
                    cluster.set_clock(server, 0, per_million);
                }
                let giver = cluster.client().tries(1, 0).waits_ms(100).connected();
                let taker = cluster.client().tries(1, 0).waits_ms(100).connected();
                let mut lease = giver.take("r", TTL);
                cluster.run_ms(3_000);
                let ticket = giver.detach(&mut lease).expect("it is held");
                (0..servers).for_each(|it| cluster.script(taker.way(it), [trip]));
                let mut taken = Lease::new();
                assert_eq!(taker.adopt(&ticket, &mut taken), Ok(()));
                let (end, kept) = (taker.end_of(&taken), cluster.kept_until("r", &token(&taken)));
                assert!(end <= kept, "valid until {end}, and kept until {kept}");
                assert!(kept - end < 400 * MS, "valid until {end}, and kept until {kept}");
            }
        }
    }
}

#[test]
fn an_adoption_needs_a_quorum() {
    for (servers, gone, expected) in [
        (1, 0, Ok(())),
        (1, 1, Err(Status::Lost)),
        (3, 1, Ok(())),
        (3, 2, Err(Status::Lost)),
        (4, 1, Ok(())),
        (4, 2, Err(Status::Lost)),
        (5, 2, Ok(())),
        (5, 3, Err(Status::Lost)),
    ] {
        let (cluster, _giver, _lease, ticket, taker) = given(servers, LONG);
        cluster.lose(0..gone, "r");
        let mut taken = Lease::new();
        assert_eq!(taker.adopt(&ticket, &mut taken), expected, "{gone} of {servers}");
        assert_eq!(taken.is_held(), expected.is_ok());
        cluster.run_ms(10);
        assert_eq!(cluster.having_any("r"), servers - gone, "it was only asked for");
    }
    // A lock of another client is never adopted.
    let (cluster, _giver, _lease, ticket, taker) = given(3, LONG);
    cluster.put(0, "r", "another's", LONG);
    cluster.put(1, "r", "another's", LONG);
    assert_eq!(taker.adopt(&ticket, &mut Lease::new()), Err(Status::Lost));
    assert_eq!(cluster.having("r", "another's"), 2);
}

#[test]
fn an_unanswered_adoption_can_be_repeated() {
    let (cluster, _giver, _lease, ticket, taker) = given(3, LONG);
    cluster.freeze(0);
    cluster.freeze(1);
    let mut taken = Lease::new();
    assert_eq!(taker.adopt(&ticket, &mut taken), Err(Status::Unreachable));
    cluster.thaw(1);
    cluster.run_ms(RETRY_GAP_MS);
    assert_eq!(taker.adopt(&ticket, &mut taken), Ok(()));
    cluster.thaw(0);
    cluster.run_ms(RETRY_GAP_MS);
    assert_eq!(taker.unlock(&mut taken), Ok(()));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

/// A server that has not answered the adoption votes for it later, and a server that lost the lock is given
/// it again.
#[test]
fn an_adopted_lock_is_extended_like_a_taken_one() {
    let (cluster, _giver, _lease, ticket, taker) = given(3, LONG);
    cluster.script(taker.way(2), [Trip::ms(0, 20)]);
    let mut taken = Lease::new();
    assert_eq!(taker.adopt(&ticket, &mut taken), Ok(()));
    cluster.run_ms(30);
    cluster.lose(0..1, "r");
    assert_eq!(taker.extend(&mut taken, LONG), Ok(()), "by the one that was heard later");
    cluster.run_ms(10);
    assert_eq!(cluster.having("r", &token(&taken)), 3, "it was repaired");
    // The first extension receives its answer, and the second one begins after that.
    for _ in 0..2 {
        assert_eq!(taker.extend(&mut taken, LONG), Ok(()));
    }
    cluster.lose(1..2, "r");
    assert_eq!(taker.confirm(&mut taken, 0), Ok(()), "the repaired one votes");
    cluster.lose(0..3, "r");
    assert_eq!(taker.confirm(&mut taken, 0), Err(Status::Lost));
}

/// An answer that comes when nobody drives is read with the next call, and then proves nothing. The
/// remaining TTL on that server still does.
#[test]
fn an_unheard_answer_votes_with_the_next_call() {
    let (cluster, _giver, _lease, ticket, taker) = given(3, TTL);
    cluster.script(taker.way(2), [Trip::ms(0, 20)]);
    let mut taken = Lease::new();
    assert_eq!(taker.adopt(&ticket, &mut taken), Ok(()));
    // After the reply timeout.
    cluster.run_ms(500);
    cluster.lose(0..1, "r");
    assert_eq!(taker.extend(&mut taken, TTL), Ok(()), "by the one that was heard too late");
}

/// An extension that is under way while the lock is given away releases nothing, even if it finds the lock
/// lost, and does not set it again on any server.
#[test]
fn a_running_call_of_the_giver_does_no_harm() {
    for gone in 0..=2 {
        let cluster = Cluster::new(3);
        let giver = cluster.client().tries(1, 0).waits_ms(100).connected();
        let taker = cluster.client().tries(1, 0).waits_ms(100).connected();
        let mut lease = giver.take("r", LONG);
        cluster.run_ms(1);
        let mut handle = lease.clone();
        cluster.lose(0..gone, "r");
        (0..3).for_each(|it| cluster.script(giver.way(it), [Trip::ms(20, 20)]));
        let way = std::rc::Rc::new(giver);
        let same = std::rc::Rc::clone(&way);
        cluster.thread(0, move || {
            let said = same.extend(&mut handle, LONG);
            assert_eq!(said, Err(Status::Lost));
        });
        cluster.run_ms(5);
        let ticket = way.detach(&mut lease).expect("it is held");
        cluster.end_threads(200);
        cluster.run_ms(50);
        let told = cluster.deeds();
        assert!(told.iter().all(|it| it.verb != Verb::Release), "{told:?}");
        assert_eq!(told.iter().filter(|it| it.verb == Verb::Acquire).count(), 3, "{told:?}");
        assert_eq!(cluster.having_any("r"), 3 - gone);
        let expected = if gone < 2 { Ok(()) } else { Err(Status::Lost) };
        assert_eq!(taker.adopt(&ticket, &mut Lease::new()), expected, "{gone} are gone");
    }
}

/// Callers of the giver's process that wait for the lock wait until the adopter releases it.
#[test]
fn a_waiter_gets_the_lock_after_the_adopter() {
    let cluster = Cluster::new(3);
    let giver = std::rc::Rc::new(cluster.client().waits_ms(100).connected());
    let taker = cluster.client().waits_ms(100).connected();
    let mut lease = giver.take("r", LONG);
    let waits = std::rc::Rc::clone(&giver);
    let had = std::rc::Rc::new(std::cell::Cell::new(false));
    let has = std::rc::Rc::clone(&had);
    cluster.thread(0, move || {
        let mut next = Lease::new();
        assert_eq!(waits.try_lock("r", TTL, -1, &mut next), Ok(()));
        has.set(true);
        assert_eq!(waits.unlock(&mut next), Ok(()));
    });
    cluster.run_ms(50);
    let ticket = giver.detach(&mut lease).expect("it is held");
    cluster.run_ms(2_000);
    let mut taken = Lease::new();
    assert_eq!(taker.adopt(&ticket, &mut taken), Ok(()));
    cluster.run_ms(2_000);
    assert!(!had.get());
    assert_eq!(taker.unlock(&mut taken), Ok(()));
    cluster.end_threads(1_000);
    assert!(had.get());
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}
