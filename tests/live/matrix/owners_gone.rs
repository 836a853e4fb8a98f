//! Nodes that go: those that the URL names, all of them, and those that come back elsewhere or without their data.

use redlock::ffi::status::RedLockStatus::{REDLOCK_LOST, REDLOCK_OK};

use crate::deposed::{HELD, TTL, await_lock_of, changes_hands, goes_on, keep, keeps};
use crate::owners::{RESOURCE, await_words, take};
use crate::support::nodes::Nodes;
use crate::support::usage::{DEADLINE, in_time, make_brief};
use crate::support::{Lease, Manager, Server, wait_until, wait_until_ok};

/// The name of a voter at this node.
fn name(tag: &str, owner: &Server) -> String {
    format!("tag {tag} ({})", owner.address())
}

/// The URL names two replicas of other masters. When they are gone, the others are a majority.
#[test]
fn o09_without_the_nodes_of_the_url_the_slot_is_followed() {
    let nodes = Nodes::start(3, true);
    let tag = nodes.used_tag_at(2, TTL);
    let manager = Manager::of_urls(&[nodes.url_of(&tag, &[3, 4])]);
    await_lock_of(&manager, &name(&tag, &nodes.servers[2]));
    nodes.servers[3..5].iter().for_each(Server::kill);
    await_lock_of(&manager, &name(&tag, &nodes.servers[2]));
    nodes.servers[2].hang_up();
    await_lock_of(&manager, &name(&tag, &nodes.servers[2]));
    nodes.fail_over(2);
    let new = name(&tag, nodes.replica_of(2));
    wait_until("the new owner is found", || {
        let _ = manager.is_locked(RESOURCE);
        manager.servers()[0].name == new
    });
    await_lock_of(&manager, &new);
}

/// One after the other, as in a cluster of containers. The client has no address of the URL any more.
#[test]
fn o09_nodes_that_come_back_elsewhere_are_asked_there() {
    let mut nodes = Nodes::start(3, false);
    let tag = nodes.used_tag_at(2, TTL);
    let manager = Manager::of_urls(&[nodes.url(&tag)]);
    await_lock_of(&manager, &name(&tag, &nodes.servers[2]));
    for nth in 0..3 {
        nodes.restart_elsewhere(nth);
        await_lock_of(&manager, &name(&tag, &nodes.servers[2]));
    }
}

#[test]
fn o09_without_any_node_the_words_say_so() {
    let nodes = Nodes::start(3, false);
    let tag = nodes.used_tag_at(0, TTL);
    let manager = Manager::of_urls(&[nodes.url(&tag)]);
    let held = manager.take(HELD, TTL);
    make_brief(&manager);
    nodes.servers.iter().for_each(Server::kill);
    let refused = |it: &Server| format!("{}: connection refused", it.address());
    let mut words: Vec<String> = nodes.servers.iter().map(refused).collect();
    words.push(format!("no cluster node knows the owner of tag {tag}"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    in_time(DEADLINE, || await_words(&manager, &words));
    in_time(DEADLINE, || _ = manager.unlock(&held));
    nodes.servers.iter().for_each(Server::restart);
    nodes.await_health();
    await_lock_of(&manager, &name(&tag, &nodes.servers[0]));
}

/// It is the same node, by its file. The others have the lock, and it gets it again.
#[test]
fn o10_one_of_three_voters_restarts_empty() {
    let nodes = Nodes::start(3, false);
    let tags = [0, 1, 2].map(|master| nodes.used_tag_at(master, TTL));
    let urls = tags.each_ref().map(|it| nodes.url(it));
    let (holder, rival) = (Manager::of_urls(&urls), Manager::of_urls(&urls));
    [&holder, &rival].iter().for_each(|it| it.connect_to_all());
    let held = keep(&holder);
    let key = format!("{{{}}}{HELD}", tags[0]);
    wait_until("all have it", || keeps(&holder, &held) && nodes.servers[0].exists(&key));
    nodes.servers[0].restart();
    wait_until("its loss is known", || {
        assert!(keeps(&holder, &held), "it was lost: {}", held.message());
        let _ = rival.is_locked(HELD);
        rival.servers()[0].words.contains("lost its data")
    });
    goes_on((&holder, &held), &rival, || rival.servers()[0].votes && holder.servers()[0].votes);
    assert!(nodes.servers[0].exists(&key), "it has the lock again");
    changes_hands((&holder, &held), &rival);
}

#[test]
fn o10_the_only_voter_restarts_empty() {
    let nodes = Nodes::start(1, false);
    let tag = nodes.used_tag_at(0, TTL);
    let urls = [nodes.url(&tag)];
    let (holder, rival) = (Manager::of_urls(&urls), Manager::of_urls(&urls));
    let held = holder.take(HELD, TTL);
    nodes.servers[0].restart();
    let (taken, mut has_said) = (Lease::new(), false);
    wait_until_ok("the rival has its turn", || {
        let status = rival.try_lock(HELD, TTL, 0, &taken);
        assert!(status != REDLOCK_OK || !held.is_held(), "two hold it");
        has_said |= taken.message().contains("lost its data");
        if status == REDLOCK_OK { Ok(()) } else { Err(taken.message()) }
    });
    assert!(has_said);
    assert_eq!(holder.extend(&held, TTL), REDLOCK_LOST, "{}", held.message());
    rival.unlock(&taken);
    rival.unlock(&take(&rival, RESOURCE, TTL));
}
