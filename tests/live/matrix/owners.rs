//! Nodes of a cluster: how the owner of a tag's slot is found, and what happens when it changes.

use std::thread;

use redlock::ffi::servers::REDLOCK_GUARD_ON;
use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::support::events::Wanted;
use crate::support::nodes::Nodes;
use crate::support::resp::Reply;
use crate::support::usage::{self, everything_works, make_brief};
use crate::support::{Lease, Manager, Server, wait_until};

pub(crate) const RESOURCE: &str = "r";

/// Short, because a new owner waits for as long as the longest TTL.
const TTL: i64 = 3_000;

/// After such a lock, a new owner waits for so long that a test sees it wait.
pub(crate) const LONG_TTL: i64 = 10_000;

/// Enough for a server that must wait for its vote.
const WAIT_MS: i64 = 60_000;

/// A manager whose servers wait for no longer than this and the lead of the owner before.
fn manager(urls: &[String]) -> Manager {
    let manager = Manager::of_urls(urls);
    assert_eq!(manager.set_restart_guard_for(REDLOCK_GUARD_ON, 0, LONG_TTL), REDLOCK_OK);
    manager
}

/// The same, once its servers have votes.
#[track_caller]
fn voting(urls: &[String]) -> Manager {
    let manager = manager(urls);
    manager.unlock(&take(&manager, "first", TTL));
    manager.connect_to_all();
    manager
}

/// Takes the lock within the time that a server may have to wait.
#[track_caller]
pub(crate) fn take(manager: &Manager, resource: &str, ttl_ms: i64) -> Lease {
    let lease = Lease::new();
    let status = manager.try_lock(resource, ttl_ms, WAIT_MS, &lease);
    assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    lease
}

/// The words of a call that cannot succeed, once they contain all of these.
#[track_caller]
pub(crate) fn await_words(manager: &Manager, wanted: &[&str]) {
    usage::await_words(manager, RESOURCE, wanted, None);
}

#[test]
fn o01_three_tags_are_three_voters() {
    let nodes = Nodes::start(3, false);
    let tags = [0, 1, 2].map(|master| nodes.tag_at(master, 0));
    let [manager, other] = [0, 1].map(|_| voting(&tags.each_ref().map(|it| nodes.url(it))));
    // Its locks are long, so the servers wait for long.
    manager.unlock(&take(&manager, "long", usage::TTL));
    everything_works(&manager, RESOURCE);
    for ((server, tag), known) in nodes.servers.iter().zip(&tags).zip(manager.servers()) {
        assert_eq!(known.name, format!("tag {tag} ({})", server.address()));
        assert_eq!(known.words, "");
    }
    // All names on a server have its tag. People see the names that the program gave.
    let lease = take(&manager, RESOURCE, usage::TTL);
    for (server, tag) in nodes.servers.iter().zip(&tags) {
        assert!(server.exists(&format!("{{{tag}}}{RESOURCE}")), "{tag}");
        let Reply::Array(all) = server.must(&["KEYS", "*"]) else { panic!("no keys") };
        for key in all.iter().filter_map(Reply::text) {
            assert!(key.starts_with(&format!("{{{tag}}}")), "{key}");
        }
    }
    let second = Lease::new();
    assert_eq!(other.try_lock(RESOURCE, TTL, 0, &second), REDLOCK_TAKEN, "{}", second.message());
    assert!(!second.message().contains('{'), "{}", second.message());
    manager.unlock(&lease);
}

/// Each in turn is held by one client and waited for by another, which is woken.
#[test]
fn o01_every_kind_of_lock_works_on_slots() {
    let nodes = Nodes::start(3, false);
    let urls = [0, 1, 2].map(|master| nodes.url(&nodes.tag_at(master, 0)));
    let (holder, waiter) = (voting(&urls), voting(&urls));
    let logs = [holder.log(), waiter.log()];
    let exclusive = || Wanted::new("r", TTL);
    let reader = || Wanted::shared("r", TTL);
    let permit = || Wanted { permits: 1, ..exclusive() };
    let several = || Wanted::several(&["r", "s"], TTL);
    let pairs: [[&dyn Fn() -> Wanted; 2]; 4] =
        [[&exclusive, &exclusive], [&reader, &several], [&several, &reader], [&permit, &permit]];
    for fencing in [false, true] {
        for manager in [&holder, &waiter] {
            assert_eq!(manager.set_fencing(fencing), REDLOCK_OK);
        }
        for [held, wanted] in pairs.into_iter().filter(|it| !fencing || it[0]().permits == 0) {
            let [first, second] = [Lease::new(), Lease::new()];
            // The numbers of fencing tokens are restored first.
            let held = Wanted { wait_ms: WAIT_MS, ..held() };
            assert_eq!(holder.acquire(&held, &first), REDLOCK_OK, "{}", first.message());
            assert_eq!(holder.extend(&first, TTL), REDLOCK_OK, "{}", first.message());
            assert_eq!(holder.confirm(&first, 1), REDLOCK_OK, "{}", first.message());
            assert_eq!(first.fencing_token() > 0, fencing && !first.is_shared());
            let wanted = Wanted { wait_ms: WAIT_MS, ..wanted() };
            thread::scope(|scope| {
                let waits = scope.spawn(|| waiter.acquire(&wanted, &second));
                wait_until("it waits", || waiter.stats().waiting > 0);
                assert_eq!(holder.unlock(&first), REDLOCK_OK, "{}", first.message());
                assert_eq!(waits.join().expect("no panic"), REDLOCK_OK, "{}", second.message());
            });
            assert_eq!(waiter.unlock(&second), REDLOCK_OK, "{}", second.message());
        }
    }
    // A key without the tag is refused, and the connection ends.
    for log in logs {
        assert!(!log.text().contains("connection lost"), "{}", log.text());
    }
}

#[test]
fn o02_nodes_that_do_not_know_are_named() {
    let nodes = Nodes::start(1, false);
    let (gone, alone) = (Server::start(), Server::start());
    gone.kill();
    let url = |host: &str| format!("redis-cluster://{host}?tag=a");
    let manager = manager(&[url(&format!("{},{}", gone.address(), alone.address()))]);
    make_brief(&manager);
    let said = [
        "no cluster node knows the owner of tag a".to_owned(),
        format!("{}: connection refused", gone.address()),
        alone.address(),
    ];
    await_words(&manager, &said.each_ref().map(String::as_str));
    // Nobody has its slot.
    let slot = nodes.servers[0].must(&["CLUSTER", "KEYSLOT", "{a}"]).integer().to_string();
    nodes.servers[0].must(&["CLUSTER", "DELSLOTS", &slot]);
    let manager = self::manager(&[url(&nodes.servers[0].address())]);
    make_brief(&manager);
    await_words(&manager, &["it knows no owner of the slot"]);
}

/// They are those of the voter, because nodes are asked who has the slot.
#[test]
fn o02_nodes_have_the_user_and_password_of_the_voter() {
    const PASSWORD: &str = "s3same-0pen";
    let nodes = Nodes::start(3, false);
    let rights = ["on", ">s3same-0pen", "~*", "&*", "+@all"];
    for server in &nodes.servers {
        server.must(&[&["ACL", "SETUSER", "locker"][..], &rights].concat());
        server.must(&["ACL", "SETUSER", "default", "off"]);
    }
    let urls = |login: &str| {
        let url =
            |master| nodes.url(&nodes.tag_at(master, 0)).replace("://", &format!("://{login}"));
        [0, 1, 2].map(url)
    };
    let good = voting(&urls(&format!("locker:{PASSWORD}@")));
    good.unlock(&take(&good, RESOURCE, TTL));
    for wrong in ["", "locker:other@"] {
        let manager = manager(&urls(wrong));
        make_brief(&manager);
        let said = if wrong.is_empty() { "NOAUTH" } else { "WRONGPASS" };
        usage::await_words(&manager, RESOURCE, &[said], Some(PASSWORD));
    }
}

/// The replica has the lock and the note. But nobody can know that.
#[test]
fn o03_a_new_owner_has_no_vote_for_a_while() {
    let nodes = Nodes::start(3, true);
    let tag = nodes.tag_at(1, 0);
    let manager = voting(&[nodes.url(&tag)]);
    let lease = take(&manager, "held", LONG_TTL);
    nodes.fail_over(1);
    await_words(&manager, &[&format!("tag {tag}"), "lost its data"]);
    manager.unlock(&lease);
    everything_votes_again(&manager);
    let name = format!("tag {tag} ({})", nodes.replica_of(1).address());
    assert_eq!(manager.servers()[0].name, name);
}

#[track_caller]
fn everything_votes_again(manager: &Manager) {
    manager.unlock(&take(manager, "again", TTL));
}

#[test]
fn o04_a_killed_master_is_one_voter_of_three() {
    let nodes = Nodes::start(3, true);
    let tags = [0, 1, 2].map(|master| nodes.tag_at(master, 0));
    let manager = voting(&tags.each_ref().map(|it| nodes.url(it)));
    nodes.be_brief();
    nodes.servers[2].kill();
    for _ in 0..10 {
        manager.unlock(&take(&manager, RESOURCE, TTL));
    }
    wait_until("its replica votes", || {
        manager.unlock(&take(&manager, RESOURCE, TTL));
        let known = &manager.servers()[2];
        known.name.contains(&nodes.replica_of(2).address()) && known.votes
    });
}

#[test]
fn o05_a_slot_that_moves_is_followed() {
    let nodes = Nodes::start(2, false);
    let tag = nodes.tag_at(0, 0);
    let manager = voting(&[nodes.url(&tag)]);
    let [one, other] = &nodes.servers[..] else { panic!("two nodes") };
    for (from, to) in [(one, other), (other, one)] {
        let lease = take(&manager, RESOURCE, TTL);
        nodes.move_slot(&tag, from, to);
        // It came with all keys, but the other server's memory is another one.
        assert!(to.exists(&format!("{{{tag}}}{RESOURCE}")));
        let second = Lease::new();
        let status = manager.try_lock(RESOURCE, TTL, 0, &second);
        assert!(matches!(status, REDLOCK_TAKEN | REDLOCK_UNREACHABLE), "{}", second.message());
        manager.unlock(&lease);
        everything_votes_again(&manager);
        assert_eq!(manager.servers()[0].name, format!("tag {tag} ({})", to.address()));
    }
}

#[test]
fn o06_two_tags_of_one_master_are_one_voter() {
    let nodes = Nodes::start(1, false);
    let urls = [0, 1].map(|number| nodes.url(&nodes.tag_at(0, number)));
    let manager = manager(&urls);
    make_brief(&manager);
    await_words(&manager, &["same server as"]);
}
