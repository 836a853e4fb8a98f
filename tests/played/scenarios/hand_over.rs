//! A lock that is handed on while something goes wrong: only the right callers get it, and nothing is left.

use super::SILENCE_MIN_MS;
use super::client::Client;
use super::cluster::Verb::{Acquire, Release};
use super::cluster::{Cluster, Fault, MS, Trip};
use super::crowd::{Crowd, LONG, waits};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;
use crate::world::dice::Dice;

/// So short that a key that cannot be released soon expires.
const SHORT: i64 = 900;

fn free(servers: usize) -> (Cluster, Crowd) {
    let cluster = Cluster::new(servers);
    let client = cluster.client().connected();
    let crowd = Crowd::of(&cluster, client);
    (cluster, crowd)
}

/// A caller that waits for `wait_ms`, and holds the lock for `hold_ms`.
fn caller(crowd: &Crowd, who: char, at_ms: i64, wait_ms: i64, hold_ms: i64) {
    let call =
        move |client: &Client, lease: &mut Lease| client.try_lock("r", SHORT, wait_ms, lease);
    crowd.caller(who, at_ms, call, hold_ms);
}

/// Checks that all have ended, that no two held the lock at the same time, and that nothing is left when
/// everything under way has ended. Returns the holders.
fn play(cluster: &Cluster, crowd: &Crowd) -> String {
    let holders = crowd.holders();
    cluster.run_ms(SHORT + 2 * SILENCE_MIN_MS);
    assert_eq!(cluster.having_any("r"), 0, "something is left");
    holders
}

fn trips() -> [Trip; 6] {
    let silent = Trip { back: Trip::NEVER, ..Trip::default() };
    [
        Trip::default(),
        Trip::ms(60, 1),
        Trip::ms(1, 60),
        Trip::failing(Fault::ErrorAfter),
        Trip::failing(Fault::ErrorInstead),
        silent,
    ]
}

/// With every possible fate of the release and of the acquire behind it.
#[test]
fn a_hand_over_never_has_two_holders() {
    let trips = trips();
    let mut dice = Dice::new(0);
    for servers in [1, 2, 3, 5] {
        let all = trips.len().pow(2).pow(servers);
        let step = all.div_ceil(650);
        for code in (0..all).step_by(step) {
            let code = code + dice.below(step);
            let (cluster, crowd) = free(servers as usize);
            for server in 0..servers {
                let pair = code / trips.len().pow(2 * server);
                let (release, acquire) = (pair % trips.len(), pair / trips.len() % trips.len());
                let script = [Trip::default(), trips[release], trips[acquire]];
                cluster.script(crowd.client.way(server as usize), script);
            }
            caller(&crowd, 'a', 0, 0, 50);
            caller(&crowd, 'b', 10, 2_000, 5);
            caller(&crowd, 'c', 20, 4_000, 5);
            let holders = play(&cluster, &crowd);
            assert!(holders.starts_with('a'), "{servers} servers, {code}: {holders}");
            // Only silence, which lasts for seconds, keeps all of them from it.
            let is_silent =
                (0..2 * servers).any(|it| code / trips.len().pow(it) % trips.len() == 5);
            assert!(is_silent || holders == "abc", "{servers} servers, {code}: {holders}");
        }
    }
}

#[test]
fn a_hand_over_needs_only_a_quorum() {
    for bad in trips() {
        let (cluster, crowd) = free(5);
        for server in [1, 3] {
            cluster.script(crowd.client.way(server), [Trip::default(), bad, bad]);
        }
        caller(&crowd, 'a', 0, 0, 50);
        caller(&crowd, 'b', 10, 1_000, 5);
        let told = crowd.told();
        assert_eq!((told[1].0, told[1].1, told[1].2), ('b', Ok(()), 54));
    }
}

/// The waiting time of the first caller ends at about the moment when it is handed the lock.
#[test]
fn a_waiter_that_gives_up_in_a_hand_over_passes_it_on() {
    for late_ms in [1, 20, 45] {
        for step in -20..=140 {
            let (cluster, crowd) = free(3);
            (0..3).for_each(|server| {
                let slow = Trip::ms(late_ms, 1);
                cluster.script(crowd.client.way(server), [Trip::default(), slow, slow]);
            });
            crowd.thread(0, move |crowd| {
                let mut lease = Lease::new();
                assert_eq!(crowd.call('a', &mut lease, waits(0)), Ok(()));
                // In quarters of a millisecond: the waiting time of the second caller ends at 60.
                let world = crowd.client.world();
                crowd.run_until_ms(60);
                world.run_until(world.now() + step * MS / 4);
                assert_eq!(crowd.unlock(&mut lease), Ok(()));
            });
            caller(&crowd, 'b', 10, 50, 5);
            caller(&crowd, 'c', 20, 2_000, 5);
            let holders = play(&cluster, &crowd);
            assert!(["abc", "ac"].contains(&&*holders), "{late_ms} ms, {step}: {holders}");
        }
    }
}

/// As with a try of its own, it stops waiting for slow servers soon after the end of its time.
#[test]
fn a_late_hand_over_ends_soon_after_the_wait() {
    let (cluster, crowd) = free(3);
    (0..3).for_each(|it| cluster.put(it, "r", "theirs", LONG));
    cluster.after_ms(42, |world| world.lose(0..3, "r"));
    // The first caller is refused twice, and has a pause until 58 when another caller comes in between.
    crowd.client.rig(Some(u64::MAX));
    crowd.caller('b', 30, waits(45), 0);
    crowd.caller('a', 43, waits(0), 25);
    cluster.after_ms(65, |world| {
        world.usual(Trip::ms(1, 400));
    });
    let told = crowd.told();
    assert_eq!(told[0], ('a', Ok(()), 45));
    assert_eq!((told[1].0, told[1].1), ('b', Err(Status::Taken)));
    assert!((75..=105).contains(&told[1].2), "{told:?}");
    let handed = crowd.deeds().into_iter().filter(|it| it.1 == 71);
    assert_eq!(handed.map(|it| it.0).collect::<Vec<_>>(), [Release, Acquire]);
    cluster.run_ms(1_000);
    assert_eq!(cluster.having_any("r"), 0);
}

/// The lock is granted, but the caller learns that only when no validity is left.
#[test]
fn a_too_late_hand_over_is_released() {
    let (cluster, crowd) = free(3);
    crowd.client.manager.settings().set_timeouts(1_500, 3_000).expect("in bounds");
    (0..3).for_each(|server| {
        let script = [Trip::default(), Trip::default(), Trip::ms(1, SHORT)];
        cluster.script(crowd.client.way(server), script);
    });
    caller(&crowd, 'a', 0, 0, 50);
    // If it waits in one call, it has no time for another try.
    caller(&crowd, 'b', 10, SHORT, 5);
    caller(&crowd, 'c', 20, 5_000, 5);
    let told = crowd.told();
    assert_eq!((told[1].0, told[1].1), ('b', Err(Status::TooSlow)), "{told:?}");
    assert_eq!((told[2].0, told[2].1), ('c', Ok(())));
    cluster.run_ms(10);
    assert_eq!(cluster.having_any("r"), 0);
}

/// The threads of a suspended client find out the result when they wake up.
#[test]
fn a_suspended_client_claims_no_expired_lock() {
    for at_ms in 48..=58 {
        for suspended_ms in [1, 50, SHORT - 20, SHORT, 10 * SHORT] {
            let (cluster, crowd) = free(3);
            let me = crowd.client.me;
            let rival = crowd.and(cluster.client().connected());
            caller(&crowd, 'a', 0, 0, 50);
            caller(&crowd, 'b', 10, 20_000, 5);
            caller(&crowd, 'c', 20, 20_000, 5);
            cluster.after_ms(at_ms, move |world| world.suspend(me, suspended_ms));
            caller(&rival, 'z', 30, 20_000, 5);
            let holders = play(&cluster, &crowd);
            let mut who: Vec<_> = holders.chars().collect();
            who.sort_unstable();
            assert_eq!(who, ['a', 'b', 'c', 'z'], "{at_ms} {suspended_ms}: {holders}");
        }
    }
}

/// A thread is delayed at any of its looks at the clock: the thread that releases, or the thread that is
/// handed the lock.
#[test]
fn a_delayed_thread_claims_no_expired_lock() {
    for held_up_ms in [3, 30, SHORT - 10, SHORT + 10] {
        for nth in 1.. {
            let (cluster, crowd) = free(3);
            crowd.client.stall_once(nth, held_up_ms * MS);
            for (at, who) in ('a'..='e').enumerate() {
                caller(&crowd, who, 3 * at as i64, 20_000, 5);
            }
            let holders = play(&cluster, &crowd);
            let mut who: Vec<_> = holders.chars().collect();
            who.sort_unstable();
            // A caller that is held up before it joins the wait queue is later than others.
            assert_eq!(who, ['a', 'b', 'c', 'd', 'e'], "{nth} {held_up_ms}: {holders}");
            if !crowd.client.has_stalled() {
                break;
            }
        }
    }
}

#[test]
fn a_lost_connection_in_a_hand_over_loses_nothing() {
    for is_swallowed in [true, false] {
        for at_ms in 50..=56 {
            let (cluster, crowd) = free(3);
            for server in [0, 1] {
                let way = crowd.client.way(server);
                cluster.after_ms(at_ms, move |world| world.cut(way, is_swallowed));
            }
            caller(&crowd, 'a', 0, 0, 50);
            caller(&crowd, 'b', 10, 2_000, 5);
            caller(&crowd, 'c', 20, 4_000, 5);
            assert_eq!(play(&cluster, &crowd), "abc", "{is_swallowed} {at_ms}");
        }
    }
}

/// The servers are gone, and so is what they were told: nobody hands on a lock that cannot be released.
#[test]
fn without_a_quorum_nothing_is_handed_over() {
    let (cluster, crowd) = free(3);
    cluster.after_ms(40, |world| (0..2).for_each(|it| world.kill(it)));
    cluster.after_ms(400, |world| (0..2).for_each(|it| world.start(it)));
    crowd.thread(0, |crowd| {
        let mut lease = Lease::new();
        assert_eq!(crowd.call('a', &mut lease, waits(0)), Ok(()));
        crowd.run_until_ms(50);
        assert_eq!(crowd.unlock(&mut lease), Err(Status::Unreachable));
    });
    crowd.caller('b', 10, waits(200), 5);
    crowd.caller('c', 20, waits(5_000), 5);
    let told = crowd.told();
    assert_eq!((told[1].0, told[1].1), ('b', Err(Status::Unreachable)));
    // The pending release was kept for the servers that are back.
    assert_eq!((told[2].0, told[2].1), ('c', Ok(())));
    cluster.run_ms(1_000);
    assert_eq!(cluster.having_any("r"), 0);
}

/// A lock that was lost without anybody knowing is handed on nevertheless, without harm.
#[test]
fn a_lock_of_a_new_holder_is_not_handed_over() {
    let (cluster, crowd) = free(3);
    cluster.after_ms(30, |world| {
        (0..3).for_each(|it| world.put(it, "r", "theirs", 200));
    });
    crowd.thread(0, |crowd| {
        let mut lease = Lease::new();
        assert_eq!(crowd.call('a', &mut lease, waits(0)), Ok(()));
        crowd.run_until_ms(30);
        crowd.believes_no_more(&lease);
        crowd.run_until_ms(50);
        assert_eq!(crowd.client.unlock(&mut lease), Err(Status::Lost));
    });
    crowd.caller('b', 10, waits(5_000), 5);
    let told = crowd.told();
    assert!((230..=240).contains(&told[1].2), "{told:?}");
    let deeds: Vec<_> = crowd.deeds().into_iter().take(3).collect();
    assert_eq!(deeds, [(Acquire, 1), (Release, 51), (Acquire, 51)]);
    assert_eq!(cluster.having("r", "theirs"), 0);
}
