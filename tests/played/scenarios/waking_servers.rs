//! Servers that do not tell waiting clients that a lock is free, or tell them later than other servers do.

use super::client::Client;
use super::cluster::Cluster;
use super::cluster::Verb::{Acquire, Look, Told};
use super::crowd::{LONG, waits};
use super::processes::{LINE, done, nothing_is_left, processes, processes_of, waited};
use crate::manager::lease::Lease;

#[test]
fn without_a_wake_up_a_look_finds_the_free_lock() {
    // A program that knows of no wait queues.
    let cluster = Cluster::new(3);
    let clients = [cluster.client(), cluster.client().woken()].map(Client::connected);
    let [plain, b] = processes_of(&cluster, clients);
    assert_eq!(waited(&[plain, b.clone()]), 218);
    nothing_is_left(&cluster, LINE);
    assert_eq!((done(&b, 0, Told), done(&b, 0, Look)), (vec![], vec![13, 215]));
    // Nobody releases the lock. The client looks for it when a quorum of keys is gone.
    for ttl_ms in [150, 1_000] {
        let cluster = Cluster::new(3);
        let [a, b] = processes(&cluster);
        a.thread(0, move |crowd| {
            let take = |client: &Client, lease: &mut Lease| client.try_lock("r", ttl_ms, 0, lease);
            assert_eq!(crowd.call('a', &mut Lease::new(), take), Ok(()));
        });
        b.caller('b', 10, waits(5_000), 10);
        let had_at = b.told()[1].2;
        assert!((ttl_ms..=ttl_ms + 8).contains(&had_at), "{ttl_ms}: {had_at}");
        assert_eq!((done(&b, 0, Told), done(&b, 0, Acquire).len()), (vec![], 2));
        nothing_is_left(&cluster, LINE);
    }
}

#[test]
fn a_frozen_or_dead_minority_delays_no_wake_up() {
    for (servers, bad) in [(3, 1), (5, 1), (5, 2)] {
        for (at_ms, is_killed) in [(0, false), (50, false), (102, false), (0, true), (50, true)] {
            let cluster = Cluster::new(servers);
            let all = processes(&cluster);
            let which = servers - bad..servers;
            let (these, those) = (which.clone(), which.clone());
            cluster.after_ms(at_ms, move |world| {
                these.for_each(|it| if is_killed { world.kill(it) } else { world.freeze(it) });
            });
            cluster.after_ms(130, move |world| {
                those.for_each(|it| if is_killed { world.start(it) } else { world.thaw(it) });
            });
            let had_at = waited(&all);
            assert_eq!(had_at, 106, "{servers} {bad} {at_ms} {is_killed}");
            // A server that was gone is told nothing before somebody calls. Its keys and its wait queues
            // end by themselves.
            cluster.run_ms(if is_killed { LONG } else { 0 });
            nothing_is_left(&cluster, LINE);
        }
    }
}

/// Frozen servers execute the requests that they were sent when they continue, and tell of the release
/// then.
#[test]
fn a_thawed_majority_wakes_the_waiter() {
    let cluster = Cluster::new(3);
    let all = processes(&cluster);
    cluster.after_ms(50, |world| [1, 2].into_iter().for_each(|it| world.freeze(it)));
    cluster.after_ms(170, |world| [1, 2].into_iter().for_each(|it| world.thaw(it)));
    let had_at = waited(&all);
    assert!((171..=176).contains(&had_at), "{had_at}");
    nothing_is_left(&cluster, LINE);
}
