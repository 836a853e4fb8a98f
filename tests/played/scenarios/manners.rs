//! A client with many callers, or with a greedy one, leaves others their chance. It stands back for nobody
//! if nobody else is there.

use std::cell::Cell;
use std::rc::Rc;

use super::client::{Client, Said};
use super::cluster::Verb::{Acquire, Release};
use super::cluster::{Cluster, MS};
use super::crowd::{Crowd, LONG, locks, waits};
use crate::manager::lease::Lease;

/// How long a run of hand-overs may be, with rivals and without, and the longest time that a caller stands
/// back.
const RUN_WITH_RIVALS_MS: i64 = 40;
const RUN_MS: i64 = 200;
const STAND_BACK_MS: i64 = 8;

/// A lock that is held for 1 ms is acquired by the next caller, or released, within this time.
const CYCLE_MS: i64 = 3;

fn free() -> (Cluster, Crowd) {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    let crowd = Crowd::of(&cluster, client);
    (cluster, crowd)
}

/// A caller that takes the lock again and again for this time; counts how often.
fn greedy(crowd: &Crowd, who: char, span_ms: i64) -> Rc<Cell<usize>> {
    let count = Rc::<Cell<usize>>::default();
    let counted = Rc::clone(&count);
    crowd.thread(0, move |crowd| {
        let mut lease = Lease::new();
        while crowd.now_ms() < span_ms {
            assert_eq!(crowd.call(who, &mut lease, waits(-1)), Ok(()));
            crowd.client.world().run_ms(1);
            assert_eq!(crowd.unlock(&mut lease), Ok(()));
            counted.set(counted.get() + 1);
        }
    });
    count
}

/// The periods in which the lock was not handed on although a caller was in the queue.
fn gaps(crowd: &Crowd) -> Vec<(i64, i64)> {
    let deeds = crowd.deeds();
    let pairs = deeds.windows(2).filter(|it| (it[0].0, it[1].0) == (Release, Acquire));
    pairs.map(|it| (it[0].1, it[1].1)).filter(|it| it.0 < it.1).collect()
}

#[test]
fn equally_greedy_callers_get_equal_shares() {
    let (_cluster, crowd) = free();
    let counts: Vec<_> = ('a'..='h').map(|who| greedy(&crowd, who, 3_000)).collect();
    assert!(crowd.holders().starts_with("abcdefghabcdefgh"));
    let counts: Vec<_> = counts.iter().map(|it| it.get()).collect();
    let (least, most) = (counts.iter().min().expect("eight"), counts.iter().max().expect("eight"));
    assert!(most - least <= 1, "{counts:?}");
    assert!(*least as i64 >= 3_000 / 8 / CYCLE_MS * 9 / 10, "{counts:?}");
}

#[test]
fn a_run_of_hand_overs_ends_even_without_rivals() {
    let (_cluster, crowd) = free();
    for who in 'a'..='d' {
        greedy(&crowd, who, 4_000);
    }
    crowd.told();
    let gaps = gaps(&crowd);
    assert!((4_000 / (RUN_MS + 2 * STAND_BACK_MS)..=4_000 / RUN_MS).contains(&(gaps.len() as i64)));
    for pair in gaps.windows(2) {
        let run_ms = pair[1].0 - pair[0].1;
        assert!((RUN_MS..=RUN_MS + 2 * CYCLE_MS).contains(&run_ms), "{gaps:?}");
    }
    assert!(gaps.iter().all(|it| it.1 - it.0 <= STAND_BACK_MS), "{gaps:?}");
    assert!(gaps.iter().any(|it| it.1 - it.0 >= STAND_BACK_MS / 2), "{gaps:?}");
}

#[test]
fn a_rival_makes_runs_short() {
    let (cluster, crowd) = free();
    // So that it always stands back for the longest time.
    crowd.client.rig(Some(u64::MAX));
    for who in 'a'..='d' {
        greedy(&crowd, who, 1_000);
    }
    // A rival that is not greedy takes each chance that it gets, and is noticed.
    cluster.after_ms(20, |world| {
        let mut next = 0;
        for _ in 20..1_000 {
            if world.having_any("r") == 0 && world.now() > next {
                next = world.now() + 30 * MS;
                (0..3).for_each(|it| world.put(it, "r", "theirs", 12));
            }
            world.run_ms(1);
        }
    });
    crowd.told();
    let gaps = gaps(&crowd);
    assert!(gaps.len() >= 10, "{gaps:?}");
    for pair in gaps.windows(2).skip(1) {
        let run_ms = pair[1].0 - pair[0].1;
        assert!(run_ms <= RUN_WITH_RIVALS_MS + 20, "{gaps:?}");
    }
}

#[test]
fn a_single_caller_gets_a_chance_against_many() {
    let (cluster, busy) = free();
    let lone = busy.and(cluster.client().connected());
    let counts: Vec<_> = ('a'..='h').map(|who| greedy(&busy, who, 4_000)).collect();
    let alone = greedy(&lone, 'z', 4_000);
    let holders = busy.holders();
    let many: usize = counts.iter().map(|it| it.get()).sum();
    assert!(alone.get() >= 15, "{holders}");
    assert!(many >= 800, "{holders}");
    // The many callers are also served in their order.
    let order: String = holders.chars().filter(|&it| it != 'z').collect();
    assert_eq!(order, "abcdefgh".repeat(many / 8 + 1)[..many]);
}

#[test]
fn two_greedy_clients_share() {
    let (cluster, one) = free();
    let two = one.and(cluster.client().connected());
    let (one_had, two_had) = (greedy(&one, 'a', 4_000), greedy(&two, 'b', 4_000));
    let holders = one.holders();
    let least = one_had.get().min(two_had.get());
    assert!(least >= 100, "{holders}");
}

/// A rival held the lock before, and this client has held it since.
fn after_a_rival() -> (Cluster, Crowd, Lease) {
    let (cluster, crowd) = free();
    crowd.client.rig(Some(u64::MAX));
    (0..3).for_each(|it| cluster.put(it, "r", "theirs", 20));
    let mut lease = Lease::new();
    assert_eq!(crowd.client.try_lock("r", LONG, 1_000, &mut lease), Ok(()));
    (cluster, crowd, lease)
}

/// How long it takes to get the lock again right after its release, which comes after `after_ms`.
fn again_ms(after_ms: i64, call: impl FnOnce(&Client, &mut Lease) -> Said) -> i64 {
    let (cluster, crowd, mut lease) = after_a_rival();
    cluster.run_ms(after_ms);
    assert_eq!(crowd.client.unlock(&mut lease), Ok(()));
    let start = cluster.now();
    let asked = crowd.asked();
    assert_eq!(call(&crowd.client, &mut lease), Ok(()));
    assert_eq!(crowd.asked(), asked + 1);
    (cluster.now() - start) / MS
}

#[test]
fn a_repeated_caller_stands_back_for_a_seen_rival() {
    // The release took 2 ms of the time to stand back.
    assert_eq!(again_ms(0, waits(1_000)), STAND_BACK_MS - 1);
    assert_eq!(again_ms(200, waits(1_000)), STAND_BACK_MS - 1);
    assert_eq!(again_ms(0, waits(-1)), STAND_BACK_MS - 1);
    // A rival of long ago is forgotten.
    assert_eq!(again_ms(260, waits(1_000)), 2);
}

#[test]
fn a_caller_without_time_does_not_stand_back() {
    assert_eq!(again_ms(0, waits(0)), 2);
    assert_eq!(again_ms(0, waits(1)), 2);
    assert_eq!(again_ms(0, waits(STAND_BACK_MS)), 2);
    assert_eq!(again_ms(0, waits(STAND_BACK_MS + 1)), STAND_BACK_MS - 1);
    assert_eq!(again_ms(0, locks), 2);
    assert_eq!(again_ms(0, |client, lease| client.continue_lock("r", LONG, lease)), 2);
}

#[test]
fn without_rivals_no_caller_stands_back() {
    let (cluster, crowd) = free();
    let start = cluster.now();
    let mut lease = Lease::new();
    for _ in 0..200 {
        assert_eq!(crowd.client.try_lock("r", LONG, 1_000, &mut lease), Ok(()));
        assert_eq!(crowd.client.unlock(&mut lease), Ok(()));
    }
    assert_eq!((cluster.now() - start) / MS, 200 * 4);
}

#[test]
fn unreachable_servers_are_no_rivals() {
    let (cluster, crowd) = free();
    crowd.client.rig(Some(u64::MAX));
    (0..2).for_each(|it| cluster.kill(it));
    assert!(crowd.client.try_lock("r", LONG, 0, &mut Lease::new()).is_err());
    (0..2).for_each(|it| cluster.start(it));
    let mut lease = Lease::new();
    assert_eq!(crowd.client.try_lock("r", LONG, 200, &mut lease), Ok(()));
    assert_eq!(crowd.client.unlock(&mut lease), Ok(()));
    let start = cluster.now();
    assert_eq!(crowd.client.try_lock("r", LONG, 1_000, &mut lease), Ok(()));
    assert_eq!((cluster.now() - start) / MS, 2);
}

/// If this client itself holds the lock, there is no reason to assume rivals.
#[test]
fn a_refusal_for_an_own_lock_shows_no_rival() {
    let (cluster, crowd) = free();
    crowd.client.manager.settings().set_retry(1, 100).expect("in bounds");
    crowd.client.rig(Some(u64::MAX));
    let mut lease = crowd.client.take("r", LONG);
    assert!(crowd.client.lock("r", LONG, &mut Lease::new()).is_err());
    assert!(crowd.client.try_lock("r", LONG, 0, &mut Lease::new()).is_err());
    assert_eq!(crowd.asked(), 3);
    assert_eq!(crowd.client.unlock(&mut lease), Ok(()));
    let start = cluster.now();
    assert_eq!(crowd.client.try_lock("r", LONG, 1_000, &mut lease), Ok(()));
    assert_eq!((cluster.now() - start) / MS, 2);
}

/// There is also none if this client has released it by the time that the refusal is received.
#[test]
fn a_refusal_for_a_just_released_own_lock_shows_no_rival() {
    let (cluster, crowd) = free();
    crowd.client.manager.settings().set_retry(2, 100).expect("in bounds");
    crowd.client.rig(Some(u64::MAX));
    crowd.caller('a', 0, waits(0), 9);
    crowd.caller('b', 10, locks, 0);
    // It asked at 10 and was refused at 12, and the lock was released at 11. So it asks again at once.
    assert_eq!(crowd.told(), [('a', Ok(()), 2), ('b', Ok(()), 14)]);
    assert_eq!(crowd.asked(), 3);
    let start = cluster.now();
    assert_eq!(crowd.client.try_lock("r", LONG, 1_000, &mut Lease::new()), Ok(()));
    assert_eq!((cluster.now() - start) / MS, 2);
}

/// There is also none if another caller held the lock, out of turn, while this one was asking.
#[test]
fn a_refusal_for_another_local_caller_shows_no_rival() {
    let (cluster, crowd) = free();
    crowd.client.rig(Some(u64::MAX));
    crowd.caller('a', 0, waits(0), RUN_MS);
    crowd.caller('b', 10, waits(1_000), 0);
    // The first in the queue stands back until 210.
    crowd.caller('c', RUN_MS + 9, waits(0), 30);
    assert_eq!(crowd.holders(), "acb");
    let start = cluster.now();
    assert_eq!(crowd.client.try_lock("r", LONG, 1_000, &mut Lease::new()), Ok(()));
    assert_eq!((cluster.now() - start) / MS, 2);
}

#[test]
fn a_single_try_does_not_spin_during_a_stand_back() {
    for call in [waits(0), waits(STAND_BACK_MS)] {
        let (_cluster, crowd) = free();
        crowd.client.rig(Some(u64::MAX));
        crowd.caller('a', 0, waits(0), RUN_MS);
        crowd.caller('b', 10, waits(1_000), 0);
        crowd.caller('c', RUN_MS + 6, call, 0);
        let told = crowd.told();
        let had = told.iter().any(|it| (it.0, it.1) == ('b', Ok(())));
        assert!(had && told.len() == 3, "{told:?}");
        assert!(told.iter().all(|it| it.2 < RUN_MS + 40), "{told:?}");
    }
}

/// The same while the first caller is kept from running.
#[test]
fn a_single_try_does_not_spin_beside_a_delayed_caller() {
    for nth in 1.. {
        let (cluster, crowd) = free();
        (0..3).for_each(|it| cluster.put(it, "r", "theirs", LONG));
        crowd.thread(0, move |crowd| {
            crowd.client.stall_once(nth, 50 * MS);
            assert!(crowd.call('a', &mut Lease::new(), waits(0)).is_err());
        });
        crowd.caller('b', 10, waits(0), 0);
        let told = crowd.told();
        assert!(told.len() == 2 && told.iter().all(|it| it.2 <= 70), "{told:?}");
        if !crowd.client.has_stalled() {
            break;
        }
    }
}
