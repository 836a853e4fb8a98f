//! The tests of plain locks, repeated for shared locks, for permits, and for several resources at once. A
//! waiting client is told when its obstacle is gone, and nobody else is.

use std::sync::Arc;

use super::client::{Client, Said};
use super::cluster::Verb::{Acquire, AnnounceWriter, Extend, Look, Told};
use super::cluster::{Cluster, MS, Telling, Verb};
use super::crowd::{Crowd, LONG};
use super::processes::{done, processes, telling};
use crate::manager::canceller::Canceller;
use crate::manager::lease::Lease;
use crate::protocol::error::Status;
use crate::protocol::lock_kind::LockKind;

const ALONE: LockKind = LockKind::Exclusive;
const SHARED: LockKind = LockKind::Shared;
const PERMIT: LockKind = LockKind::Permit { of: 2 };

fn both() -> LockKind {
    LockKind::Several([&b"r"[..], b"s"].map(Arc::from).into())
}

/// Takes a lock of this kind on "r", with this waiting time.
fn wants(kind: LockKind, wait_ms: i64) -> impl FnOnce(&Client, &mut Lease) -> Said + 'static {
    move |client, lease| client.acquire(("r", &kind), LONG, wait_ms, lease)
}

/// Takes a plain lock on this resource, with this TTL.
fn locks(
    resource: &'static str,
    ttl_ms: i64,
) -> impl FnOnce(&Client, &mut Lease) -> Said + 'static {
    move |client, lease| client.acquire((resource, &ALONE), ttl_ms, 5_000, lease)
}

/// How often each of these servers executed this command for the client.
fn counts(crowd: &Crowd, verb: Verb) -> [usize; 3] {
    [0, 1, 2].map(|it| done(crowd, it, verb).len())
}

/// The client was refused once, joined the wait queue, was told at this time, and tried a round trip later.
#[track_caller]
fn is_told_once(crowd: &Crowd, server: usize, told_at: i64) {
    assert_eq!(done(crowd, server, Told), [told_at], "{:?}", crowd.deeds_of(server));
    assert_eq!(done(crowd, server, Acquire).get(1..), Some(&[told_at + 2][..]));
    assert_eq!(done(crowd, server, Look).len(), 1);
}

#[track_caller]
fn no_line_is_left(cluster: &Cluster) {
    cluster.run_ms(200);
    for line in ["r:w", "s:w"] {
        assert_eq!(cluster.in_line(line), [0; 3], "{line}");
    }
}

/// Who got the lock when, in that order.
fn had(crowd: &Crowd) -> Vec<(char, i64)> {
    crowd.told().into_iter().filter(|it| it.1 == Ok(())).map(|it| (it.0, it.2)).collect()
}

#[test]
fn waiting_readers_are_woken_together() {
    let cluster = Cluster::new(3);
    let [a, b, c, d, e] = processes(&cluster);
    a.sharer('a', 0, wants(ALONE, 0), 100);
    b.sharer('b', 10, wants(SHARED, 5_000), 50);
    c.sharer('c', 20, wants(SHARED, 5_000), 50);
    d.sharer('d', 30, wants(ALONE, 5_000), 50);
    // Behind a writer.
    e.sharer('e', 40, wants(SHARED, 5_000), 50);
    assert_eq!(had(&a), [('a', 2), ('b', 106), ('c', 106), ('d', 160), ('e', 214)]);
    for server in 0..3 {
        for (crowd, told_at) in [(&b, 103), (&c, 103), (&d, 157), (&e, 211)] {
            is_told_once(crowd, server, told_at);
        }
    }
    no_line_is_left(&cluster);
}

#[test]
fn the_last_reader_wakes_the_writer() {
    let cluster = Cluster::new(3);
    let [a, b, c, d] = processes(&cluster);
    a.sharer('a', 0, wants(SHARED, 0), 100);
    b.sharer('b', 0, wants(SHARED, 0), 150);
    c.sharer('c', 10, wants(ALONE, 5_000), 50);
    // It waits for the writer, which has announced that it waits.
    d.sharer('d', 60, wants(SHARED, 5_000), 50);
    assert_eq!(had(&a), [('a', 2), ('b', 2), ('c', 156), ('d', 210)]);
    for server in 0..3 {
        is_told_once(&c, server, 153);
        is_told_once(&d, server, 207);
        // The writer has announced itself when it saw the readers, and not again for each message.
        assert_eq!(done(&c, server, AnnounceWriter), [15]);
    }
    no_line_is_left(&cluster);
}

#[test]
fn a_downgrade_wakes_only_readers() {
    let cluster = Cluster::new(3);
    let [a, b, c, d] = processes(&cluster);
    a.thread(0, |crowd| {
        let mut lease = Lease::new();
        assert_eq!(wants(ALONE, 0)(&crowd.client, &mut lease), Ok(()));
        crowd.run_until_ms(102);
        assert_eq!(crowd.client.downgrade(&mut lease), Ok(()));
        crowd.run_until_ms(200);
        assert_eq!(crowd.client.unlock(&mut lease), Ok(()));
    });
    b.sharer('b', 10, wants(SHARED, 5_000), 20);
    c.sharer('c', 20, wants(SHARED, 5_000), 20);
    d.sharer('d', 30, wants(ALONE, 5_000), 20);
    assert_eq!(had(&a), [('b', 106), ('c', 106), ('d', 204)]);
    for server in 0..3 {
        for (crowd, told_at) in [(&b, 103), (&c, 103), (&d, 201)] {
            is_told_once(crowd, server, told_at);
        }
        assert_eq!(done(&a, server, Extend), [103]);
    }
    no_line_is_left(&cluster);
}

#[test]
fn one_free_permit_wakes_one_waiter() {
    let cluster = Cluster::new(3);
    let [a, b, c, d] = processes(&cluster);
    a.sharer('a', 0, wants(PERMIT, 0), 100);
    a.sharer('z', 0, wants(PERMIT, 0), 150);
    b.sharer('b', 10, wants(PERMIT, 5_000), 100);
    c.sharer('c', 20, wants(PERMIT, 5_000), 100);
    d.sharer('d', 30, wants(PERMIT, 5_000), 100);
    assert_eq!(had(&a), [('a', 2), ('z', 2), ('b', 106), ('c', 156), ('d', 210)]);
    for server in 0..3 {
        for (crowd, told_at) in [(&b, 103), (&c, 153), (&d, 207)] {
            is_told_once(crowd, server, told_at);
        }
    }
    no_line_is_left(&cluster);
}

#[test]
fn a_failed_try_for_a_permit_keeps_the_place() {
    let cluster = Cluster::new(3);
    let [a, b, c, z] = processes(&cluster);
    a.sharer('a', 0, wants(PERMIT, 0), 100);
    a.sharer('y', 0, wants(PERMIT, 0), 500);
    b.sharer('b', 10, wants(PERMIT, 5_000), 10);
    c.sharer('c', 20, wants(PERMIT, 5_000), 10);
    z.thread(102, |crowd| {
        let world = crowd.client.world();
        world.run_until(world.now() + MS / 2);
        let mut lease = Lease::new();
        assert_eq!(wants(PERMIT, 0)(&crowd.client, &mut lease), Ok(()));
        world.run_ms(30);
        assert_eq!(crowd.client.unlock(&mut lease), Ok(()));
    });
    assert_eq!(had(&a), [('a', 2), ('y', 2), ('b', 138), ('c', 152)]);
    for server in 0..3 {
        assert_eq!(done(&b, server, Told), [103, 135]);
        assert_eq!(done(&b, server, Acquire), [11, 105, 137]);
        assert_eq!(done(&b, server, Look), [13, 107]);
        is_told_once(&c, server, 149);
    }
    no_line_is_left(&cluster);
}

#[test]
fn a_waiter_for_several_is_woken_by_the_blocking_one() {
    for s_ttl in [2 * LONG, LONG / 2] {
        let cluster = Cluster::new(3);
        let [a, z, b] = processes(&cluster);
        a.sharer('a', 0, locks("r", LONG), 100);
        z.sharer('z', 0, locks("s", s_ttl), 150);
        b.sharer('b', 10, wants(both(), 5_000), 20);
        assert_eq!(had(&a), [('a', 2), ('z', 2), ('b', 156)]);
        // It is in the wait queue of the resource that exists longest: first of the one that is freed
        // first, or only of the other.
        let (told, tried): (&[i64], &[i64]) = match s_ttl > LONG {
            true => (&[153], &[11, 155]),
            false => (&[103, 153], &[11, 105, 155]),
        };
        for server in 0..3 {
            assert_eq!((&*done(&b, server, Told), &*done(&b, server, Acquire)), (told, tried));
            assert_eq!(done(&b, server, Look).len(), told.len());
        }
        no_line_is_left(&cluster);
    }
}

#[test]
fn a_release_of_several_wakes_one_waiter_per_line() {
    let cluster = Cluster::new(3);
    let [a, b, c, d, e] = processes(&cluster);
    a.sharer('a', 0, wants(both(), 0), 100);
    b.sharer('b', 10, locks("r", LONG), 50);
    c.sharer('c', 10, locks("s", LONG), 50);
    d.sharer('d', 20, locks("r", LONG), 50);
    e.sharer('e', 20, wants(both(), 5_000), 50);
    assert_eq!(had(&a), [('a', 2), ('b', 106), ('c', 106), ('e', 160), ('d', 214)]);
    for server in 0..3 {
        for (crowd, told_at) in [(&b, 103), (&c, 103), (&e, 157), (&d, 211)] {
            is_told_once(crowd, server, told_at);
        }
    }
    no_line_is_left(&cluster);
}

/// For each kind: the first lock, how many callers hold it, and the lock that waits for it.
fn kinds() -> [(LockKind, usize, LockKind); 6] {
    [
        (ALONE, 1, SHARED),
        (SHARED, 1, ALONE),
        (PERMIT, 2, PERMIT),
        (both(), 1, both()),
        (ALONE, 1, both()),
        (both(), 1, ALONE),
    ]
}

/// The first holders, which hold the lock until 102 ms after the beginning. A second permit is held for
/// longer.
fn held(crowd: &Crowd, kind: &LockKind, count: usize) {
    for nth in 0..count {
        crowd.sharer('a', 0, wants(kind.clone(), 0), if nth == 0 { 100 } else { 2_000 });
    }
}

#[test]
fn every_kind_of_waiter_gets_the_lock_by_push_or_look() {
    for (kind, count, wanted) in kinds() {
        for how in [Telling::Usual, Telling::Lost, Telling::Twice] {
            let cluster = Cluster::new(3);
            let [a, b] = processes(&cluster);
            telling(&b, 0..3, how);
            held(&a, &kind, count);
            b.sharer('b', 10, wants(wanted.clone(), 5_000), 20);
            let (had_at, looks) = if matches!(how, Telling::Lost) { (218, 2) } else { (106, 1) };
            assert_eq!(had(&a).last(), Some(&('b', had_at)), "{kind:?} {wanted:?} {how:?}");
            assert_eq!((counts(&b, Told), counts(&b, Look)), ([1; 3], [looks; 3]));
            assert_eq!(counts(&b, Acquire), [2; 3]);
            no_line_is_left(&cluster);
        }
    }
}

#[test]
fn every_kind_of_waiter_passes_a_wake_up_on() {
    for (kind, count, wanted) in kinds() {
        for is_cancelled in [false, true] {
            for step in -20..=20 {
                let cluster = Cluster::new(3);
                let [a, b, c] = processes(&cluster);
                held(&a, &kind, count);
                let (wait_ms, own) = (if is_cancelled { 5_000 } else { 92 }, wanted.clone());
                b.thread(10, move |crowd| {
                    // At about the moment when it is told.
                    let world = crowd.client.world();
                    world.run_until(world.now() + (step + 20) * MS / 4);
                    let mut lease = Lease::new();
                    let canceller = Canceller::from(&lease);
                    if is_cancelled {
                        crowd.thread(92, move |crowd| crowd.client.cancel(&canceller));
                    }
                    if wants(own, wait_ms)(&crowd.client, &mut lease) == Ok(()) {
                        // The release itself may be cancelled; it continues nevertheless.
                        let said = crowd.client.unlock(&mut lease);
                        assert!([Ok(()), Err(Status::Cancelled)].contains(&said), "{said:?}");
                    }
                });
                c.sharer('c', 30, wants(wanted.clone(), 5_000), 0);
                let had = had(&a);
                let (_, at_ms) = *had.iter().find(|it| it.0 == 'c').expect("it has it");
                assert!(at_ms <= 125, "{kind:?} {wanted:?} {step} {is_cancelled}: {had:?}");
                assert!(done(&c, 0, Acquire).len() <= 4, "{:?}", c.deeds());
                no_line_is_left(&cluster);
            }
        }
    }
}

#[test]
fn a_release_wakes_one_waiter_or_all_readers() {
    for (kind, count, wanted) in kinds() {
        let cluster = Cluster::new(3);
        let all: [Crowd; 6] = processes(&cluster);
        held(&all[0], &kind, count);
        for (nth, crowd) in all[1..].iter().enumerate() {
            crowd.sharer('b', 10 + 5 * nth as i64, wants(wanted.clone(), 5_000), 10);
        }
        let had: Vec<i64> =
            had(&all[0]).into_iter().filter(|it| it.0 == 'b').map(|it| it.1).collect();
        // Each one comes 10 ms and four ways after the one before, but readers are let in together.
        let gap = if wanted == SHARED { 0 } else { 14 };
        assert_eq!(had, [0, 1, 2, 3, 4].map(|nth| 106 + nth * gap), "{kind:?} {wanted:?}");
        for (nth, crowd) in (0..).zip(&all[1..]) {
            (0..3).for_each(|server| is_told_once(crowd, server, 103 + nth * gap));
        }
        no_line_is_left(&cluster);
    }
}
