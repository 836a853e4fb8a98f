//! Masters that another server replaces: by a failover, by hand, and while the old master is still there.

use std::time::{Duration, Instant};

use redlock::ffi::servers::REDLOCK_GUARD_ON;
use redlock::ffi::status::RedLockStatus::{REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::deposed::{
    RESOURCE, await_lock_of, await_no_vote, grants_in_vain, is_paused_beyond_the_election,
};
use crate::support::proxy::{BOTH, Proxy};
use crate::support::sentinels::{Group, Puppet, Sentinel, anew, info, url};
use crate::support::usage::{everything_works, make_brief};
use crate::support::{Lease, Manager, Server, wait_until, wait_until_ok};

/// Long enough for a failover, and longer than three seconds.
const TTL: i64 = 5_000;

/// Longer than a test.
const LONG_TTL: i64 = 120_000;

/// An independent primary with a vote.
pub(crate) fn primary() -> Server {
    let server = Server::start();
    server.be_in_use(1_000);
    server
}

/// The first lock after this is granted by the second server. The first server grants none.
#[track_caller]
fn moves(manager: &Manager, (old, new): (&Server, &Server)) {
    let name = format!("m ({})", new.address());
    let mut tries = 0;
    wait_until_ok("the manager follows", || {
        tries += 1;
        let resource = format!("{RESOURCE}{tries}");
        let lease = Lease::new();
        if manager.try_lock(&*resource, TTL, 0, &lease) == REDLOCK_OK {
            // Finds out which of the two servers granted the lock.
            assert_ne!(old.exists(&resource), new.exists(&resource), "{resource}");
            let is_there = new.exists(&resource);
            // The manager may be leaving the old server at this moment. Then that server is not told.
            let status = manager.unlock(&lease);
            assert!(!is_there || status == REDLOCK_OK, "{status:?}: {}", lease.message());
            if is_there {
                return Ok(());
            }
        }
        Err(lease.message())
    });
    assert_eq!(manager.servers()[0].name, name);
    everything_works(manager, RESOURCE);
    assert!(!old.exists(RESOURCE));
}

/// There is a single voter, so its vote alone decides. The copy loses everything that it has not received.
#[test]
fn m05_a_failover_loses_the_memory_of_a_server() {
    let group = Group::start("mymaster", 2, 1_000);
    let sentinel = Sentinel::start(&[group.master_port()], 1);
    sentinel.await_company("mymaster", 1, 0);
    let manager = || {
        let manager = Manager::of_urls(&[url(&[sentinel.address()], "mymaster")]);
        make_brief(&manager);
        manager
    };
    let (holder, rival) = (manager(), manager());
    let held = holder.take(RESOURCE, TTL);
    let old = sentinel.master_of("mymaster");
    group.at(&old).kill();
    wait_until("another one is the master", || {
        let new = sentinel.master_of("mymaster");
        new != old && info(group.at(&new)).contains("role:master")
    });
    let new = group.at(&sentinel.master_of("mymaster")).address();
    // The lock came too late for the copy.
    anew(group.at(&new), &["DEL", RESOURCE]);
    let (taken, mut has_said) = (Lease::new(), false);
    wait_until("the rival has its turn", || {
        let status = rival.try_lock(RESOURCE, TTL, 0, &taken);
        has_said |= taken.message().contains("lost its data");
        status == REDLOCK_OK
    });
    assert_eq!(held.remaining_ms(), 0, "two hold it");
    assert!(has_said);
    assert_eq!(rival.servers()[0].name, format!("mymaster ({new})"));
    assert_eq!(rival.unlock(&taken), REDLOCK_OK, "{}", taken.message());
    // The holder is told, and the old server is not used when it is back.
    assert_eq!(holder.extend(&held, TTL), REDLOCK_LOST);
    group.at(&old).restart();
    group.have_follow(group.at(&old), group.at(&new).port());
    for manager in [&holder, &rival] {
        wait_until("all is well", || manager.try_lock(RESOURCE, TTL, 0, &taken) == REDLOCK_OK);
        assert_eq!(manager.unlock(&taken), REDLOCK_OK, "{}", taken.message());
        assert_eq!(manager.servers()[0].name, format!("mymaster ({new})"));
    }
}

/// The old server was not killed: the Sentinels make it a replica, and close its connections.
#[test]
fn m05_a_manual_failover_is_followed() {
    let group = Group::start("mymaster", 2, 1_000);
    let sentinel = Sentinel::start(&[group.master_port()], 1);
    sentinel.await_company("mymaster", 1, 0);
    let manager = Manager::of_urls(&[url(&[sentinel.address()], "mymaster")]);
    assert_eq!(manager.unlock(&manager.take(RESOURCE, TTL)), REDLOCK_OK);
    let old = sentinel.master_of("mymaster");
    sentinel.fail_over("mymaster", &old);
    wait_until("another one is the master", || sentinel.master_of("mymaster") != old);
    let new = sentinel.master_of("mymaster");
    let lease = Lease::new();
    wait_until("the new one has the vote", || {
        manager.try_lock(RESOURCE, TTL, 0, &lease) == REDLOCK_OK
            && manager.servers()[0].name == format!("mymaster ({new})")
    });
    assert_eq!(anew(group.at(&new), &["EXISTS", RESOURCE]).integer(), 1);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

/// A manager of this one master, of which these Sentinels tell. Another master has to wait no longer than for three
/// seconds.
fn following(sentinels: &[String]) -> Manager {
    let manager = Manager::of_urls(&[url(sentinels, "m")]);
    assert_eq!(manager.set_restart_guard_for(REDLOCK_GUARD_ON, 0, 3_000), REDLOCK_OK);
    manager
}

/// The old server answers, and says that it is the master. The manager believes the Sentinel.
#[test]
fn m06_an_old_master_is_left_even_if_it_answers() {
    let (old, new) = (primary(), primary());
    let sentinel = Puppet::of(&old.address());
    let manager = following(&[sentinel.address()]);
    let held = manager.take("held", TTL);
    sentinel.move_to(&new.address());
    moves(&manager, (&old, &new));
    // The new server knows nothing about the old one's grants.
    assert_eq!(manager.confirm(&held, 0), REDLOCK_LOST, "{}", held.message());
}

/// One of the two Sentinels is gone, or silent, and the other one names a new master. That is no majority: neither server
/// has a vote. Without the failover guard, one Sentinel is enough.
#[test]
fn m06_one_of_two_sentinels_decides_nothing() {
    type Silence = fn(&Puppet);
    for silence in [(|it| it.fake().hang_up()) as Silence, Puppet::freeze] {
        for is_on in [true, false] {
            let (old, new) = (primary(), primary());
            let [first, second] = [0, 1].map(|_| Puppet::of(&old.address()));
            let manager = following(&[first.address(), second.address()]);
            assert_eq!(manager.set_failover_guard(is_on), REDLOCK_OK);
            assert_eq!(manager.connect(20_000), REDLOCK_OK, "{}", manager.message());
            second.move_to(&new.address());
            silence(&first);
            match is_on {
                true => await_no_vote(&manager, "1 of 2 Sentinels name the same master, 2 needed"),
                false => moves(&manager, (&old, &new)),
            }
        }
    }
}

/// The connection to the old master is overdue, and a second one is being made, to the new master, when the old master
/// answers. So the first connection is used on, and the manager knows that it leads to the old master.
#[test]
fn m06_an_old_master_is_left_even_if_it_answers_late() {
    let (old, new) = (primary(), primary());
    let sentinel = Puppet::of(&old.address());
    let manager = following(&[sentinel.address()]);
    assert_eq!(manager.set_timeouts(2_000, 50), REDLOCK_OK);
    everything_works(&manager, RESOURCE);
    [&old, &new].iter().for_each(|it| it.freeze());
    let lease = Lease::new();
    assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_UNREACHABLE);
    sentinel.move_to(&new.address());
    wait_until("the second connection is made", || {
        let _ = manager.is_locked(RESOURCE);
        manager.servers()[0].name.contains(&new.address())
    });
    old.resume();
    // It has answered once it has answered another client.
    old.must(&["PING"]);
    let _ = manager.is_locked(RESOURCE);
    new.resume();
    moves(&manager, (&old, &new));
}

/// The first Sentinel has not heard that the master is gone. Without the failover guard, one Sentinel is enough.
#[test]
fn m06_an_outdated_sentinel_is_not_asked_forever() {
    let (old, new) = (primary(), primary());
    let [first, second] = [&old, &new].map(|it| Puppet::of(&it.address()));
    old.kill();
    let manager = Manager::of_urls(&[url(&[first.address(), second.address()], "m")]);
    assert_eq!(manager.set_failover_guard(false), REDLOCK_OK);
    let lease = Lease::new();
    wait_until("the other is found", || manager.try_lock(RESOURCE, TTL, 0, &lease) == REDLOCK_OK);
    assert!(new.exists(RESOURCE));
}

#[test]
fn m06_a_master_turned_replica_is_left() {
    let (old, new) = (primary(), primary());
    let sentinel = Puppet::of(&old.address());
    let manager = following(&[sentinel.address()]);
    everything_works(&manager, RESOURCE);
    sentinel.move_to(&new.address());
    old.must(&["REPLICAOF", "127.0.0.1", "1"]);
    moves(&manager, (&old, &new));
}

/// While all Sentinels are away, nothing tells whether the master still is one. Without the failover guard, the manager
/// goes on using the master that it found.
#[test]
fn m06_without_sentinels_the_master_has_no_vote() {
    for is_on in [true, false] {
        let group = Group::start("mymaster", 1, 1_000);
        let sentinel = Sentinel::start(&[group.master_port()], 1);
        let manager = Manager::of_urls(&[url(&[sentinel.address()], "mymaster")]);
        assert_eq!(manager.set_failover_guard(is_on), REDLOCK_OK);
        everything_works(&manager, RESOURCE);
        sentinel.kill();
        if is_on {
            await_no_vote(&manager, "0 of 1 Sentinels name the same master, 1 needed");
        } else {
            (0..20).for_each(|_| everything_works(&manager, RESOURCE));
        }
        group.servers[0].hang_up();
        let lease = Lease::new();
        make_brief(&manager);
        wait_until_ok("it is not to be found any more", || {
            let status = manager.try_lock(RESOURCE, TTL, 0, &lease);
            let words = lease.message();
            let is_told = words.contains("no Sentinel knows the address of master mymaster");
            if status != REDLOCK_OK && is_told { Ok(()) } else { Err(words) }
        });
    }
}

/// One Sentinel of three is enough for nothing, and two are enough for everything. A kept lock goes on meanwhile.
#[test]
fn m15_one_sentinel_of_three_may_fail() {
    let group = Group::start("mymaster", 1, 1_000);
    let sentinels = [0, 1, 2].map(|_| Sentinel::start(&[group.master_port()], 2));
    sentinels.iter().for_each(|it| it.await_company("mymaster", 0, 2));
    // The URL need not name them all.
    let manager = Manager::of_urls(&[url(&[sentinels[0].address()], "mymaster")]);
    let held = manager.take("held", LONG_TTL);
    sentinels[2].freeze();
    (0..20).for_each(|_| everything_works(&manager, RESOURCE));
    assert_eq!(manager.extend(&held, LONG_TTL), REDLOCK_OK, "{}", held.message());
    sentinels[1].kill();
    await_no_vote(&manager, "1 of 3 Sentinels name the same master, 2 needed");
    // The question was asked too long ago by now, so the lock is held no longer than it was.
    assert_eq!(manager.extend(&held, LONG_TTL), REDLOCK_UNREACHABLE, "{}", held.message());
    assert_eq!(manager.confirm(&held, 0), REDLOCK_UNREACHABLE, "{}", held.message());
    assert_eq!(manager.unlock(&held), REDLOCK_OK, "{}", held.message());
}

/// After a failover, all Sentinels are restarted with their files, and then one without its file. It names the old master,
/// and has forgotten the epoch. The others are a majority.
#[test]
fn m15_sentinels_may_be_restarted() {
    let group = Group::start("mymaster", 2, 1_000);
    let mut sentinels = [0, 1, 2].map(|_| Sentinel::start(&[group.master_port()], 2));
    sentinels.iter().for_each(|it| it.await_company("mymaster", 1, 2));
    let old = sentinels[0].master_of("mymaster");
    sentinels[0].fail_over("mymaster", &old);
    let new = sentinels[0].master_of("mymaster");
    wait_until("all know it", || sentinels.iter().all(|it| it.master_of("mymaster") == new));
    let urls = [url(&sentinels.each_ref().map(Sentinel::address), "mymaster")];
    let manager = Manager::of_urls(&urls);
    await_lock(&manager, &new);
    sentinels.iter_mut().for_each(|it| it.restart(false));
    await_lock(&manager, &new);
    let stranger = Manager::of_urls(&urls);
    await_lock(&stranger, &new);
    sentinels[2].restart(true);
    for manager in [&manager, &stranger, &Manager::of_urls(&urls)] {
        await_lock(manager, &new);
    }
}

/// Returns when this master grants a lock.
#[track_caller]
pub(crate) fn await_lock(manager: &Manager, master: &str) {
    await_lock_of(manager, &format!("mymaster ({master})"));
}

/// A master, its replica, and three Sentinels that can replace the one with the other.
fn group_that_can_fail_over() -> (Group, [Sentinel; 3]) {
    let group = Group::start("mymaster", 2, 1_000);
    let sentinels = [0, 1, 2].map(|_| Sentinel::start(&[group.master_port()], 2));
    sentinels.iter().for_each(|it| it.await_company("mymaster", 1, 2));
    wait_until("they know a good replica", || {
        sentinels.iter().all(|it| it.knows_good_replica("mymaster"))
    });
    (group, sentinels)
}

#[test]
fn m15_a_paused_master_grants_nothing_beside_its_successor() {
    let (group, sentinels) = group_that_can_fail_over();
    let urls = [url(&sentinels.each_ref().map(Sentinel::address), "mymaster")];
    let managers = [0, 1].map(|_| Manager::of_urls(&urls));
    is_paused_beyond_the_election(group.at(&sentinels[0].master_of("mymaster")), &managers);
}

/// What a client that reaches no Sentinel says.
pub(crate) const NOBODY: &str = "0 of 3 Sentinels name the same master";

/// The ways of a client that is to be cut off to these Sentinels.
pub(crate) fn ways_to(sentinels: &[String; 3]) -> [Proxy; 3] {
    sentinels.clone().map(|it| Proxy::in_front_of(it, "redis"))
}

/// The master and one client are cut off from the Sentinels and from everybody else.
#[test]
fn m15_a_master_that_is_cut_off_with_a_client_grants_in_vain() {
    let (group, sentinels) = group_that_can_fail_over();
    let addresses = sentinels.each_ref().map(Sentinel::address);
    let ways = ways_to(&addresses);
    let inside = Manager::of_urls(&[url(&ways.each_ref().map(Proxy::address), "mymaster")]);
    let outside = Manager::of_urls(&[url(&addresses, "mymaster")]);
    let old = group.at(&sentinels[0].master_of("mymaster"));
    grants_in_vain(old, [&inside, &outside], NOBODY, || {
        for way in BOTH {
            ways.iter().for_each(|it| it.stall(way));
        }
        cut_off_from_sentinels(old);
    });
    ways.iter().for_each(Proxy::heal);
    await_lock(&inside, &sentinels[0].master_of("mymaster"));
}

/// Nobody can connect to the server any more, and Sentinels are thrown out. Other clients stay.
fn cut_off_from_sentinels(server: &Server) {
    server.must(&["ACL", "SETUSER", "default", "off"]);
    let list = server.must(&["CLIENT", "LIST"]).text().expect("a list");
    for line in list.lines().filter(|it| it.contains("name=sentinel-")) {
        let id = line.strip_prefix("id=").and_then(|it| it.split(' ').next()).expect("a number");
        server.must(&["CLIENT", "KILL", "ID", id]);
    }
}

/// Its process is the same, and still has its earlier note. Its data is that of the other server. The rival comes
/// afterwards, or is connected all the time, and idle for longer than such a change takes at least.
#[test]
fn m07_a_temporary_replica_has_lost_its_memory() {
    for is_connected in [false, true] {
        was_a_replica_meanwhile(is_connected);
    }
}

fn was_a_replica_meanwhile(is_connected: bool) {
    let group = Group::start("g", 2, 1_000);
    let [first, second] = &group.servers[..] else { unreachable!("two") };
    let manager = || {
        let manager = Manager::of_urls(&[first.url()]);
        make_brief(&manager);
        manager
    };
    let (holder, rival) = (manager(), manager());
    if is_connected {
        rival.connect_to_all();
    }
    let idle_since = Instant::now();
    let held = holder.take(RESOURCE, TTL);
    second.must(&["REPLICAOF", "NO", "ONE"]);
    second.must(&["DEL", RESOURCE]);
    group.have_follow(first, second.port());
    first.must(&["REPLICAOF", "NO", "ONE"]);
    assert!(!first.exists(RESOURCE));
    wait_until("it was idle", || idle_since.elapsed() > Duration::from_millis(100));
    let (taken, mut has_said) = (Lease::new(), false);
    wait_until("the rival has its turn", || {
        let status = rival.try_lock(RESOURCE, TTL, 0, &taken);
        has_said |= taken.message().contains("lost its data");
        status == REDLOCK_OK
    });
    assert_eq!(held.remaining_ms(), 0, "two hold it");
    assert!(has_said);
}

/// The rival reads only now what the server has said when it connected, before all this.
#[test]
fn m07_a_late_answer_counts_from_the_request() {
    let group = Group::start("g", 2, 1_000);
    let [first, second] = &group.servers[..] else { unreachable!("two") };
    let others = [primary(), primary()];
    let urls = [first.url(), others[0].url(), others[1].url()];
    let (holder, rival) = (Manager::of_urls(&urls), Manager::of_urls(&urls));
    holder.connect_to_all();
    first.freeze();
    assert_eq!(rival.unlock(&rival.take("another", TTL)), REDLOCK_OK);
    first.resume();
    // It has answered what it was asked before.
    first.must(&["PING"]);
    let held = holder.take(RESOURCE, TTL);
    wait_until("it has the lock", || first.exists(RESOURCE));
    others[1].must(&["DEL", RESOURCE]);
    second.must(&["REPLICAOF", "NO", "ONE"]);
    second.must(&["DEL", RESOURCE]);
    group.have_follow(first, second.port());
    first.must(&["REPLICAOF", "NO", "ONE"]);
    let (idle_since, taken) = (Instant::now(), Lease::new());
    wait_until("it was idle", || idle_since.elapsed() > Duration::from_millis(100));
    wait_until_ok("the rival is told", || {
        let status = rival.try_lock(RESOURCE, TTL, 0, &taken);
        assert!(status != REDLOCK_OK || !held.is_held(), "two hold it");
        let message = taken.message();
        if message.contains("lost its data") { Ok(()) } else { Err(message) }
    });
}

/// The rival has seen it as a replica, in an answer or when it connected. By the time when it asks again, nothing shows
/// that the server was promoted, and its note is the one from before.
#[test]
fn m07_a_seen_replica_has_lost_its_memory() {
    for is_connected in [true, false] {
        let group = Group::start("g", 2, 1_000);
        let [first, second] = &group.servers[..] else { unreachable!("two") };
        first.must(&["CONFIG", "SET", "repl-backlog-ttl", "1"]);
        let (holder, rival) = (Manager::of_urls(&[first.url()]), Manager::of_urls(&[first.url()]));
        holder.connect_to_all();
        if is_connected {
            rival.connect_to_all();
        }
        let held = holder.take(RESOURCE, TTL);
        second.must(&["REPLICAOF", "NO", "ONE"]);
        second.must(&["DEL", RESOURCE]);
        group.have_follow(first, second.port());
        let taken = Lease::new();
        let refused = rival.try_lock(RESOURCE, TTL, 0, &taken);
        assert_eq!(refused, REDLOCK_UNREACHABLE, "{}", taken.message());
        first.must(&["REPLICAOF", "NO", "ONE"]);
        wait_until("it has forgotten", || {
            info(first).contains(&format!("master_replid2:{}", "0".repeat(40)))
        });
        wait_until_ok("the rival is told", || {
            let status = rival.try_lock(RESOURCE, TTL, 0, &taken);
            assert!(status != REDLOCK_OK || !held.is_held(), "two hold it");
            let message = taken.message();
            if message.contains("lost its data") { Ok(()) } else { Err(message) }
        });
    }
}

/// It takes writes although it is a replica, so no write is refused.
#[test]
fn m07_a_writable_replica_has_no_vote() {
    let group = Group::start("g", 2, 1_000);
    let [first, second] = &group.servers[..] else { unreachable!("two") };
    let (holder, rival) = (Manager::of_urls(&[first.url()]), Manager::of_urls(&[first.url()]));
    rival.connect_to_all();
    let idle_since = Instant::now();
    let held = holder.take(RESOURCE, TTL);
    second.must(&["REPLICAOF", "NO", "ONE"]);
    second.must(&["DEL", RESOURCE]);
    first.must(&["CONFIG", "SET", "replica-read-only", "no"]);
    group.have_follow(first, second.port());
    assert!(!first.exists(RESOURCE));
    wait_until("it was idle", || idle_since.elapsed() > Duration::from_millis(100));
    let taken = Lease::new();
    wait_until_ok("the rival is told", || {
        let status = rival.try_lock(RESOURCE, TTL, 0, &taken);
        assert_eq!(status, REDLOCK_UNREACHABLE, "{}", taken.message());
        let message = taken.message();
        if message.contains("replica") { Ok(()) } else { Err(message) }
    });
    assert!(held.is_held());
}
