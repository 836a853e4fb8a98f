//! A master that its Sentinels and its copy cannot reach, and its clients can. Each test has a network of its own, in
//! which the packets between them are dropped.

use crate::deposed::{HELD, changes_hands, goes_on, grants_in_vain, keep, keeps};
use crate::masters_moving::{NOBODY, await_lock, primary, ways_to};
use crate::support::island;
use crate::support::proxy::{BOTH, Proxy};
use crate::support::sentinels::{Group, Sentinel, is_replica, url};
use crate::support::{Manager, wait_until};

/// A master, its copy, and three Sentinels, which can replace the one with the other.
struct Watched {
    group: Group,
    sentinels: [Sentinel; 3],
}

impl Watched {
    fn start() -> Self {
        island::prepare();
        let group = Group::of("mymaster", vec![island::server(), island::server()], 1_000);
        let sentinels = [0, 1, 2].map(|_| island::sentinel(&group));
        sentinels.iter().for_each(|it| it.await_company("mymaster", 1, 2));
        wait_until("they know a good replica", || {
            sentinels.iter().all(|it| it.knows_good_replica("mymaster"))
        });
        Self { group, sentinels }
    }

    fn master(&self) -> String {
        self.sentinels[0].master_of("mymaster")
    }

    /// Whether this manager's first voter is the present master, and has a vote.
    fn votes(&self, manager: &Manager) -> bool {
        let first = &manager.servers()[0];
        first.votes && first.name == format!("mymaster ({})", self.master())
    }

    fn addresses(&self) -> [String; 3] {
        self.sentinels.each_ref().map(Sentinel::address)
    }
}

#[test]
fn m15_a_lock_on_two_others_is_kept_in_a_network_of_its_own() {
    island::run_apart("masters_cut_off::m15_inside_two_others_keep_it");
}

/// The master is one of three voters. A kept lock lives through its cut, its replacement and its return.
#[test]
#[ignore = "it needs a network of its own"]
fn m15_inside_two_others_keep_it() {
    let watched = Watched::start();
    let others = [0, 1].map(|_| primary());
    let urls = [url(&watched.addresses(), "mymaster"), others[0].url(), others[1].url()];
    let (holder, rival) = (Manager::of_urls(&urls), Manager::of_urls(&urls));
    let old = watched.master();
    let old = watched.group.at(&old);
    let held = keep(&holder);
    wait_until("all have it", || {
        keeps(&holder, &held) && old.exists(HELD) && others.iter().all(|it| it.exists(HELD))
    });
    island::cut_off(old);
    let has_moved = || watched.master() != old.address();
    goes_on((&holder, &held), &rival, || {
        has_moved() && watched.votes(&holder) && watched.votes(&rival)
    });
    island::heal(old);
    goes_on((&holder, &held), &rival, || is_replica(old));
    changes_hands((&holder, &held), &rival);
}

#[test]
fn m15_a_master_is_cut_off_with_a_client_in_a_network_of_its_own() {
    island::run_apart("masters_cut_off::m15_inside_cut_off_with_a_client");
}

#[test]
#[ignore = "it needs a network of its own"]
fn m15_inside_cut_off_with_a_client() {
    let watched = Watched::start();
    let ways = ways_to(&watched.addresses());
    let inside = Manager::of_urls(&[url(&ways.each_ref().map(Proxy::address), "mymaster")]);
    let outside = Manager::of_urls(&[url(&watched.addresses(), "mymaster")]);
    let old = watched.master();
    let old = watched.group.at(&old);
    grants_in_vain(old, [&inside, &outside], NOBODY, || {
        for way in BOTH {
            ways.iter().for_each(|it| it.stall(way));
        }
        island::cut_off(old);
    });
    ways.iter().for_each(Proxy::heal);
    await_lock(&inside, &watched.master());
    island::heal(old);
}

#[test]
fn m15_a_client_reaches_both_masters_in_a_network_of_its_own() {
    island::run_apart("masters_cut_off::m15_inside_between_the_two");
}

/// The clients reach the old master and the Sentinels. They leave the old one, which has not heard of anything. The copy
/// had the lock, so it is kept there.
#[test]
#[ignore = "it needs a network of its own"]
fn m15_inside_between_the_two() {
    let watched = Watched::start();
    let urls = [url(&watched.addresses(), "mymaster")];
    let (holder, rival) = (Manager::of_urls(&urls), Manager::of_urls(&urls));
    let old = watched.master();
    let old = watched.group.at(&old);
    let held = keep(&holder);
    let copy = &watched.group.servers[1];
    wait_until("the copy has it", || copy.exists(HELD));
    island::cut_off(old);
    goes_on((&holder, &held), &rival, || {
        watched.votes(&rival) && watched.master() != old.address()
    });
    assert!(!is_replica(old), "it was told");
    island::heal(old);
    goes_on((&holder, &held), &rival, || is_replica(old));
    changes_hands((&holder, &held), &rival);
}
