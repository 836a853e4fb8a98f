//! A client that waits for a lock of another process is told of its release: when this happens, how often
//! the client asks, and what happens if it is not told.

use std::sync::{Arc, Mutex};

use super::client::{Client, Said};
use super::cluster::Verb::{Acquire, Leave, Look, Release, Subscribe, Told};
use super::cluster::{Cluster, MS, Telling, Trip};
use super::crowd::{Crowd, waits};
use super::processes::{
    LINE, done, has_until, nothing_is_left, processes, processes_of, telling, waited,
};
use crate::manager::canceller::Canceller;
use crate::manager::lease::Lease;
use crate::protocol::error::Status;
use crate::world::store::Refusal;

const TAKEN: Said = Err(Status::Taken);
/// The release arrives at the servers after 103 ms, and the waiting client holds the lock after 106 ms: one
/// way and one round trip later.
#[test]
fn a_waiter_gets_the_lock_a_round_trip_after_the_release() {
    for servers in [1, 3, 5] {
        let cluster = Cluster::new(servers);
        let all = processes(&cluster);
        assert_eq!(waited(&all), 106);
        nothing_is_left(&cluster, LINE);
        let [a, b] = all;
        for server in 0..servers {
            assert_eq!(a.deeds_of(server), [(Acquire, 1), (Release, 103)]);
            // A quorum refused it. The client did not wait for the answers of the other servers.
            let unheard = (server > servers / 2).then_some((Release, 13));
            let first = [(Acquire, 11)].into_iter().chain(unheard);
            let then = [Subscribe, Look].map(|it| (it, 13)).into_iter();
            let last = [(Told, 103), (Acquire, 105), (Release, 127)];
            let expected: Vec<_> = first.chain(then).chain(last).collect();
            assert_eq!(b.deeds_of(server), expected, "{server} of {servers}");
        }
    }
}

#[test]
fn a_waiter_looks_now_and_then_and_never_tries() {
    let cluster = Cluster::new(3);
    let [a, b] = processes(&cluster);
    a.caller('a', 0, waits(0), 1_000);
    b.caller('b', 10, waits(5_000), 0);
    assert_eq!(b.told()[1], ('b', Ok(()), 1_006));
    for server in 0..3 {
        // Each look comes 200 ms after the last answer to the one before.
        assert_eq!(done(&b, server, Look), [13, 215, 417, 619, 821]);
        assert_eq!(done(&b, server, Acquire), [11, 1_005]);
    }
    nothing_is_left(&cluster, LINE);
}

#[test]
fn a_lost_wake_up_is_replaced_by_others_or_a_look() {
    // How many of five servers tell it, and the shortest and the longest pauses.
    for (told, least, longest) in [(5, 106, 106), (3, 106, 106), (2, 108, 112), (1, 108, 112)] {
        for (random, at) in [(0, least), (u64::MAX, longest)] {
            let cluster = Cluster::new(5);
            let all = processes(&cluster);
            all[1].client.rig(Some(random));
            telling(&all[1], told..5, Telling::Lost);
            let had_at = waited(&all);
            assert!((at - 1..=at).contains(&had_at), "{told}: {had_at}");
            nothing_is_left(&cluster, LINE);
            assert_eq!(done(&all[1], 0, Acquire).len(), 2);
            assert_eq!(done(&all[1], 0, Look), [13]);
        }
    }
    for (random, looks_at) in [(0, 215), (u64::MAX, 264)] {
        let cluster = Cluster::new(3);
        let all = processes(&cluster);
        all[1].client.rig(Some(random));
        telling(&all[1], 0..3, Telling::Lost);
        assert_eq!(waited(&all), looks_at + 3);
        nothing_is_left(&cluster, LINE);
        assert_eq!(done(&all[1], 0, Look), [13, looks_at]);
        assert_eq!(done(&all[1], 0, Acquire), [11, looks_at + 2]);
    }
}

#[test]
fn a_late_wake_up_counts_unless_it_is_too_late() {
    let cluster = Cluster::new(3);
    let all = processes(&cluster);
    telling(&all[1], 0..3, Telling::Late(50 * MS));
    assert_eq!(waited(&all), 155);
    nothing_is_left(&cluster, LINE);
    assert_eq!(done(&all[1], 0, Look), [13]);
    // The message arrives while it already holds the lock, because it has found out by itself.
    for holds_ms in [20, 500] {
        let cluster = Cluster::new(3);
        let [a, b] = processes(&cluster);
        telling(&b, 0..2, Telling::Lost);
        telling(&b, 2..3, Telling::Late(300 * MS));
        a.caller('a', 0, waits(0), 100);
        b.caller('b', 10, waits(5_000), holds_ms);
        // It hears nothing from the server whose message is under way until that message arrives.
        assert_eq!(b.told()[1], ('b', Ok(()), 218));
        cluster.run_ms(500);
        for server in 0..3 {
            assert_eq!(done(&b, server, Acquire), [11, 217]);
            assert_eq!(done(&b, server, Look), [13, 215]);
            assert_eq!(done(&b, server, Told), [103]);
        }
        nothing_is_left(&cluster, LINE);
    }
}

#[test]
fn a_doubled_wake_up_counts_once() {
    let deeds = |how| {
        let cluster = Cluster::new(3);
        let all = processes(&cluster);
        telling(&all[1], 0..3, how);
        assert_eq!(waited(&all), 106);
        nothing_is_left(&cluster, LINE);
        [0, 1, 2].map(|it| all[1].deeds_of(it))
    };
    assert_eq!(deeds(Telling::Twice), deeds(Telling::Usual));
}

/// Nobody receives the message on lost connections, so the client must find out by itself.
#[test]
fn a_waiter_without_connections_looks_and_enrols_again() {
    // The lock is released before the client's look, or after it.
    for (hold_ms, had_at) in [(100, 225), (400, 406)] {
        let cluster = Cluster::new(3);
        let [a, b] = processes(&cluster);
        let ways = [0, 1, 2].map(|it| b.client.way(it));
        cluster.after_ms(50, move |world| ways.iter().for_each(|it| world.cut(*it, true)));
        a.caller('a', 0, waits(0), hold_ms);
        b.caller('b', 10, waits(5_000), 20);
        let told = b.told();
        assert!((had_at - 7..=had_at).contains(&told[1].2), "{told:?}");
        for server in 0..3 {
            let is_told = usize::from(hold_ms == 400);
            assert_eq!(done(&b, server, Told).len(), is_told);
            assert_eq!(done(&b, server, Subscribe).len(), 2);
            assert_eq!(done(&b, server, Acquire).len(), 2);
        }
        nothing_is_left(&cluster, LINE);
    }
}

/// Each release tells the client at the head of the wait queue and nobody else: one client on each server.
#[test]
fn a_release_wakes_one_waiter_per_server() {
    let cluster = Cluster::new(3);
    let all: [Crowd; 8] = processes(&cluster);
    for (nth, (crowd, who)) in all.iter().zip('a'..).enumerate() {
        crowd.caller(who, 10 * nth as i64, waits(5_000), if nth == 0 { 100 } else { 10 });
    }
    assert_eq!(all[0].holders(), "abcdefgh");
    let had: Vec<i64> = all[0].told().iter().map(|it| it.2).collect();
    // Each one comes 10 ms and four ways after the one before.
    assert_eq!(had, [2, 106, 120, 134, 148, 162, 176, 190]);
    for crowd in &all[1..] {
        for server in 0..3 {
            assert_eq!(done(crowd, server, Told).len(), 1);
            assert_eq!(done(crowd, server, Acquire).len(), 2);
            assert_eq!(done(crowd, server, Look).len(), 1);
        }
    }
    nothing_is_left(&cluster, LINE);
}

#[test]
fn a_process_has_one_place_and_hands_the_lock_on_locally() {
    let cluster = Cluster::new(3);
    let [a, b, c] = processes(&cluster);
    a.caller('a', 0, waits(0), 100);
    for who in ['b', 'd', 'e'] {
        b.caller(who, 10, waits(5_000), 10);
    }
    c.caller('c', 20, waits(5_000), 10);
    cluster.after_ms(60, |world| assert_eq!(world.in_line(LINE), [2, 2, 2]));
    assert_eq!(a.holders(), "abdec");
    let had: Vec<i64> = a.told().iter().map(|it| it.2).collect();
    // Within the process it is two ways from one caller to the next, and four ways to another process.
    assert_eq!(had, [2, 106, 118, 130, 144]);
    for server in 0..3 {
        assert_eq!((done(&b, server, Told), done(&c, server, Told)), (vec![103], vec![141]));
        assert_eq!((done(&b, server, Look).len(), done(&c, server, Look).len()), (1, 1));
    }
    nothing_is_left(&cluster, LINE);
}

/// The other end of the connection was closed, so nobody receives the message. The next client is told at
/// once.
#[test]
fn if_the_first_waiter_is_dead_the_next_is_woken() {
    let cluster = Cluster::new(3);
    let [a, b, c] = processes(&cluster);
    a.caller('a', 0, waits(0), 100);
    b.caller('b', 10, waits(5_000), 0);
    c.caller('c', 20, waits(5_000), 10);
    let dead = b.client.me;
    cluster.after_ms(50, move |world| world.end_process(dead));
    let told = a.told();
    assert!(told.contains(&('c', Ok(()), 106)), "{told:?}");
    assert!((0..3).all(|it| done(&b, it, Told).is_empty()));
    nothing_is_left(&cluster, LINE);
}

/// The first client was told, and does nothing. The next client in the queue is not told, and looks after
/// 400 ms.
#[test]
fn if_the_first_waiter_is_idle_the_next_looks() {
    for (is_dead, until_ms) in [(true, 0), (false, 450), (false, 3_000)] {
        let cluster = Cluster::new(3);
        let [a, b, c, d] = processes(&cluster);
        a.caller('a', 0, waits(0), 100);
        b.caller('b', 10, waits(5_000), 10);
        c.caller('c', 20, waits(5_000), 50);
        d.caller('d', 30, waits(5_000), 10);
        let frozen = b.client.me;
        match is_dead {
            // The message is on its way by then.
            true => cluster.at(cluster.now() + 103 * MS + MS / 2, move |it| it.end_process(frozen)),
            false => cluster.after_ms(50, move |it| it.suspend(frozen, until_ms - 50)),
        }
        let told: Vec<_> = a.told().into_iter().filter(|it| it.1 == Ok(())).collect();
        let looked = 24 + 400;
        assert_eq!(told[1], ('c', Ok(()), looked + 4), "{until_ms}");
        assert_eq!(done(&c, 0, Look), [23, looked + 1]);
        assert_eq!(done(&c, 0, Told), []);
        let released = looked + 4 + 50;
        match until_ms {
            // It finds the lock taken once, and is told again, because its place is the oldest.
            450 => {
                assert_eq!(done(&b, 0, Acquire), [11, 451, released + 3]);
                assert_eq!(told[2], ('b', Ok(()), released + 4));
                assert_eq!(told[3], ('d', Ok(()), released + 18));
            }
            _ => assert_eq!(told[2], ('d', Ok(()), released + 4)),
        }
        if until_ms == 3_000 {
            assert_eq!(told[3], ('b', Ok(()), 3_002));
        }
        nothing_is_left(&cluster, LINE);
    }
}

/// Another client takes the lock between the release and the attempt of the client that was told.
#[test]
fn a_failed_try_keeps_the_place() {
    let cluster = Cluster::new(3);
    let [a, b, c, z] = processes(&cluster);
    a.caller('a', 0, waits(0), 100);
    b.caller('b', 10, waits(5_000), 10);
    c.caller('c', 20, waits(5_000), 10);
    z.thread(102, |crowd| {
        let world = crowd.client.world();
        world.run_until(world.now() + MS / 2);
        let mut lease = Lease::new();
        assert_eq!(crowd.call('z', &mut lease, waits(0)), Ok(()));
        world.run_ms(30);
        assert_eq!(crowd.unlock(&mut lease), Ok(()));
    });
    assert_eq!(
        a.told(),
        [('a', Ok(()), 2), ('z', Ok(()), 104), ('b', Ok(()), 138), ('c', Ok(()), 152)]
    );
    for server in 0..3 {
        assert_eq!(done(&b, server, Told), [103, 135]);
        assert_eq!(done(&b, server, Acquire), [11, 105, 137]);
        assert_eq!(done(&b, server, Look), [13, 107]);
        assert_eq!(done(&c, server, Told), [149]);
    }
    nothing_is_left(&cluster, LINE);
}

/// It stands back for two round trips, and looks before it tries.
#[test]
fn a_waker_lines_up_behind_the_woken_client() {
    let cluster = Cluster::new(3);
    let [a, b] = processes(&cluster);
    a.thread(0, |crowd| {
        for _ in 0..2 {
            let mut lease = Lease::new();
            assert_eq!(crowd.call('a', &mut lease, waits(5_000)), Ok(()));
            crowd.client.world().run_ms(100);
            assert_eq!(crowd.unlock(&mut lease), Ok(()));
        }
    });
    b.caller('b', 10, waits(5_000), 50);
    assert_eq!(a.told(), [('a', Ok(()), 2), ('b', Ok(()), 106), ('a', Ok(()), 160)]);
    for server in 0..3 {
        assert_eq!(done(&a, server, Acquire), [1, 159]);
        assert_eq!(done(&a, server, Look), [109]);
    }
    nothing_is_left(&cluster, LINE);
}

/// The lines that a logger receives.
fn log_of(crowd: &Crowd) -> Arc<Mutex<Vec<String>>> {
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&lines);
    let logger = move |_, words: &str| log.lock().expect("nobody panics").push(words.to_owned());
    crowd.client.manager.set_logger(Some(Arc::new(logger))).expect("it can be set");
    lines
}

/// This is the case with servers that do not know RESP3, and by default with users as of Redis 7.
#[test]
fn servers_without_pushes_are_polled_and_reported_once() {
    let plain = {
        let cluster = Cluster::new(3);
        let crowds =
            processes_of(&cluster, [cluster.client(), cluster.client()].map(Client::connected));
        crowds[1].client.rig(Some(1 << 63));
        waited(&crowds)
    };
    // If the servers that tell of the release are not a quorum, one of them is heard nevertheless, after
    // the pause of a caller that has tried three times in vain. If they are a quorum, the client is as fast
    // as with all servers.
    for (is_old, had_at) in [(true, [106, 124, plain]), (false, [106, 124, 142])] {
        for (servers, had_at) in (1..=3).zip(had_at) {
            let cluster = Cluster::new(3);
            for server in 0..servers {
                match is_old {
                    true => cluster.speaks_resp2(server),
                    false => cluster.refuse(server, Refusal::NoPermTell),
                }
            }
            let all = processes(&cluster);
            all[1].client.rig(Some(1 << 63));
            let log = log_of(&all[1]);
            assert_eq!(waited(&all), had_at, "{is_old} {servers}");
            let lines = log.lock().expect("nobody panics").clone();
            assert_eq!(lines.len(), if is_old { 0 } else { servers }, "{lines:?}");
            assert!(lines.iter().all(|it| it.contains("NOPERM")), "{lines:?}");
            for server in 0..3 {
                let subscribes = usize::from(!is_old || server >= servers);
                assert_eq!(done(&all[1], server, Subscribe).len(), subscribes);
                assert_eq!(done(&all[1], server, Told).len(), usize::from(server >= servers));
            }
            nothing_is_left(&cluster, LINE);
        }
    }
}

/// The waiting time of a client ends at about the moment when it is told. The next client gets the lock
/// nevertheless, without waiting for its look.
#[test]
fn a_waiter_that_gives_up_at_its_wake_up_passes_it_on() {
    for (back_ms, is_cancelled) in [(1, false), (4, false), (1, true), (4, true)] {
        // Before that it holds the lock, and its release must not be cancelled.
        let first = if is_cancelled { 0 } else { -40 };
        for step in first..=40 {
            let cluster = Cluster::new(3);
            let [a, b, c] = processes(&cluster);
            cluster.usual(Trip::ms(1, back_ms));
            has_until(&a, 110 * MS + step * MS / 4);
            let wait_ms = if is_cancelled { 5_000 } else { 100 };
            b.thread(10, move |crowd| {
                let mut lease = Lease::new();
                let canceller = Canceller::from(&lease);
                if is_cancelled {
                    crowd.thread(100, move |crowd| crowd.client.cancel(&canceller));
                }
                if crowd.call('b', &mut lease, waits(wait_ms)) == Ok(()) {
                    assert_eq!(crowd.unlock(&mut lease), Ok(()));
                }
            });
            c.caller('c', 20, waits(5_000), 0);
            let told = a.told();
            let (_, said, at_ms) = *told.iter().find(|it| it.0 == 'c').expect("it was told");
            let round = 2 + 2 * back_ms;
            assert!(said == Ok(()) && at_ms <= 110 + 40 / 4 + 4 * round, "{step}: {told:?}");
            assert!(done(&c, 0, Acquire).len() <= 3, "{:?}", c.deeds());
            // It leaves the wait queue once, and does not pass on a message that was on its way then.
            assert!((0..3).all(|it| done(&b, it, Leave).len() <= 1), "{:?}", b.deeds());
            nothing_is_left(&cluster, LINE);
        }
    }
}

/// A client gives up and waits again. It must not take an old message for a new one.
#[test]
fn a_stale_wake_up_causes_at_most_one_try() {
    for back_ms in [1, 4, 30] {
        for step in -40..=40 {
            let cluster = Cluster::new(3);
            let [a, b, c] = processes(&cluster);
            cluster.usual(Trip::ms(1, back_ms));
            has_until(&a, 150 * MS + step * MS / 2);
            b.thread(10, move |crowd| {
                let mut lease = Lease::new();
                let canceller = Canceller::from(&lease);
                crowd.thread(140, move |crowd| crowd.client.cancel(&canceller));
                let mut said = crowd.call('b', &mut lease, waits(5_000));
                if said == Err(Status::Cancelled) {
                    said = crowd.call('b', &mut lease, waits(5_000));
                }
                assert_eq!(said, Ok(()));
                crowd.client.world().run_ms(60);
                assert_eq!(crowd.unlock(&mut lease), Ok(()));
            });
            c.caller('c', 20, waits(5_000), 60);
            let told = a.told();
            let ends = told.iter().filter(|it| it.1 == Ok(())).map(|it| it.2).collect::<Vec<_>>();
            let round = 2 + 2 * back_ms;
            assert!(ends[1] <= 170 + 4 * round && ends[2] <= ends[1] + 60 + 4 * round, "{told:?}");
            let tries = done(&b, 0, Acquire).len() + done(&c, 0, Acquire).len();
            assert!(tries <= 6, "{step}: {:?} {:?}", b.deeds(), c.deeds());
            nothing_is_left(&cluster, LINE);
        }
    }
}
