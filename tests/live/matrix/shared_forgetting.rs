//! Servers that forget their readers. They have no vote for a writer, nor for another reader, until all
//! forgotten locks have ended.

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::readers::wait_until_read_by;
use crate::readers::{READERS, RESOURCE, readers_of, shared, take, unlock};
use crate::servers_remembering::{LOST, NOTE, connected_to, is_kept_out_who_wants};
use crate::support::events::Wanted;
use crate::support::usage::{TTL, addresses, connected, connected_unguarded, make_brief};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

fn alone() -> Wanted {
    Wanted::new(RESOURCE, TTL)
}

/// A manager that soon notices that servers do not answer.
fn brief(cluster: &Cluster) -> Manager {
    let manager = connected_to(cluster);
    make_brief(&manager);
    manager
}

/// The ways in which a server loses its memory.
const WAYS: [fn(&Server); 4] = [
    Server::restart,
    |it| _ = it.must(&["FLUSHALL"]),
    |it| _ = it.must(&["FLUSHDB", "ASYNC"]),
    |it| _ = it.must(&["SWAPDB", "0", "1"]),
];

/// Two managers that read, on every server.
fn reading(cluster: &Cluster) -> [(Manager, Lease); 2] {
    let readers = [(); 2].map(|()| {
        let manager = connected(cluster);
        let lease = take(&manager, &shared());
        (manager, lease)
    });
    wait_until_read_by(cluster, &[&readers[0].1, &readers[1].1]);
    readers
}

/// The servers are up. The manager may have to find out that its connections are closed.
#[track_caller]
fn extends(manager: &Manager, lease: &Lease) {
    wait_until("it is extended", || {
        let status = manager.extend(lease, TTL);
        assert!([REDLOCK_OK, REDLOCK_UNREACHABLE].contains(&status), "{}", lease.message());
        status == REDLOCK_OK
    });
}

#[track_caller]
fn is_told_of_the_loss(manager: &Manager, lease: &Lease) {
    wait_until("it is told", || {
        let status = manager.confirm(lease, 0);
        assert!([REDLOCK_LOST, REDLOCK_UNREACHABLE].contains(&status), "{status:?}");
        status == REDLOCK_LOST
    });
    assert!(!lease.is_held());
    assert_eq!(manager.extend(lease, TTL), REDLOCK_LOST, "{}", lease.message());
}

/// Nothing is left on any server, once each of these managers has sent what it had to send. The test goes on
/// using them until then.
#[track_caller]
fn all_have_left(managers: &[&Manager], cluster: &Cluster) {
    wait_until("nothing is left on any server", || {
        let are_used = managers.iter().all(|it| it.is_locked("another") == Ok(false));
        are_used && cluster.iter().all(|it| it.locks() == 0)
    });
}

#[test]
fn r11_a_majority_that_forgets_readers_admits_nobody() {
    for forget in WAYS {
        let cluster = Cluster::start(3);
        let readers = reading(&cluster);
        let rival = brief(&cluster);
        cluster[..2].iter().for_each(forget);
        let forgetful = addresses(&cluster[..2]);
        for wanted in [alone(), shared()] {
            is_kept_out_who_wants(&wanted, &rival, &forgetful);
            // A client that comes only now does not get it either.
            is_kept_out_who_wants(&wanted, &connected_to(&cluster), &forgetful);
        }
        wait_until("what they were granted is released", || {
            cluster[..2].iter().all(|it| !it.exists(RESOURCE) && !it.exists(READERS))
        });
        assert_eq!(readers_of(&cluster[2], RESOURCE).len(), 2, "others were touched");
        for (manager, lease) in &readers {
            assert!(lease.is_held());
            is_told_of_the_loss(manager, lease);
        }
        all_have_left(&[&readers[0].0, &readers[1].0, &rival], &cluster);
    }
}

/// The readers are on a bare quorum. Then one server of that quorum forgets.
#[test]
fn r11_a_writer_is_blocked_if_one_server_knows_readers() {
    for forget in WAYS {
        let cluster = Cluster::start(3);
        let (reader, writer) = (connected(&cluster), brief(&cluster));
        let lease = take(&reader, &shared());
        wait_until_read_by(&cluster, &[&lease]);
        cluster[2].must(&["DEL", RESOURCE, READERS]);
        forget(&cluster[0]);
        is_kept_out_who_wants(&alone(), &writer, &addresses(&cluster[..1]));
        assert!(lease.is_held());
        is_told_of_the_loss(&reader, &lease);
        all_have_left(&[&reader, &writer], &cluster);
    }
}

/// The guard prevents this.
#[test]
fn r11_without_a_guard_forgotten_readers_do_not_block() {
    let cluster = Cluster::start(3);
    let (reader, writer) = (connected_unguarded(&cluster), connected_unguarded(&cluster));
    let lease = take(&reader, &shared());
    wait_until_read_by(&cluster, &[&lease]);
    cluster[..2].iter().for_each(|it| _ = it.must(&["FLUSHALL"]));
    let own = writer.take(RESOURCE, TTL);
    assert!(own.is_held() && lease.is_held(), "nothing was broken, so this test shows nothing");
    is_told_of_the_loss(&reader, &lease);
    assert_eq!(writer.confirm(&own, 1), REDLOCK_OK, "{}", own.message());
    unlock(&writer, &own);
    all_have_left(&[&reader, &writer], &cluster);
}

#[test]
fn r11_a_reader_does_not_count_a_forgetful_server() {
    let cluster = Cluster::start(3);
    let [(one, lease), (other, beside)] = reading(&cluster);
    cluster[0].restart();
    let late = brief(&cluster);
    // Two servers are a quorum without it.
    let own = take(&late, &shared());
    let known = late.servers();
    let it = known.iter().find(|it| it.name == cluster[0].address()).expect("it is known");
    assert!(!it.votes && it.words.contains(LOST), "{it:?}");
    unlock(&late, &own);
    wait_until("it has left", || cluster[1..].iter().all(|it| readers_of(it, RESOURCE).len() == 2));
    // One server is no quorum with it.
    cluster[2].freeze();
    is_kept_out_who_wants(&shared(), &late, &addresses(&cluster[..1]));
    cluster[2].resume();
    wait_until("what it was granted is released", || {
        late.is_locked("another") == Ok(false) && readers_of(&cluster[0], RESOURCE).is_empty()
    });
    for (manager, lease) in [(&one, &lease), (&other, &beside)] {
        extends(manager, lease);
        unlock(manager, lease);
    }
    all_have_left(&[&one, &other, &late], &cluster);
}

/// The readers extend their locks, so each server has the entries again before the next one forgets.
#[test]
fn r11_extending_readers_outlive_servers_that_forget_in_turn() {
    let cluster = Cluster::start(3);
    let readers = reading(&cluster);
    readers.iter().for_each(|it| make_brief(&it.0));
    let writer = brief(&cluster);
    for (nth, server) in cluster.iter().enumerate() {
        server.restart();
        is_kept_out_who_wants(&alone(), &writer, &[server.address()]);
        wait_until("what it was granted is released", || !server.exists(RESOURCE));
        for (manager, lease) in &readers {
            wait_until("the server has the reader again", || {
                extends(manager, lease);
                readers_of(server, RESOURCE).iter().any(|it| it.0 == lease.token())
            });
            // While another server does not answer, this server's vote is needed.
            wait_until("the server vouches for the reader again", || {
                extends(manager, lease);
                let another = &cluster[(nth + 1) % 3];
                another.freeze();
                let status = manager.extend(lease, TTL);
                another.resume();
                status == REDLOCK_OK
            });
        }
        let (status, own) = (REDLOCK_TAKEN, Lease::new());
        wait_until("the writer is refused by a quorum", || {
            writer.acquire(&alone(), &own) == status
        });
    }
    for (manager, lease) in &readers {
        assert_eq!(manager.confirm(lease, 1), REDLOCK_OK, "{}", lease.message());
        unlock(manager, lease);
    }
    all_have_left(&[&readers[0].0, &readers[1].0, &writer], &cluster);
}

/// A writer that is kept out notes the loss on the other servers. Neither that writer nor a reader counts the
/// server that forgot.
#[test]
fn r11_a_downgrade_admits_nobody_by_a_forgetful_server() {
    let cluster = Cluster::start(3);
    let (holder, rival) = (connected(&cluster), brief(&cluster));
    let lease = holder.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    cluster[0].restart();
    is_kept_out_who_wants(&alone(), &rival, &addresses(&cluster[..1]));
    // The downgrade is sent to three servers: one that forgot, one that is well, and one that does not answer.
    cluster[2].freeze();
    make_brief(&holder);
    wait_until("the servers are asked", || {
        let status = holder.downgrade(&lease);
        assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
        lease.is_shared()
    });
    assert!(lease.is_held());
    wait_until("it was done where it could be", || !readers_of(&cluster[1], RESOURCE).is_empty());
    for wanted in [alone(), shared()] {
        is_kept_out_who_wants(&wanted, &rival, &addresses(&cluster[..1]));
    }
    cluster[2].resume();
    wait_until("it is done", || holder.downgrade(&lease) == REDLOCK_OK);
    is_kept_out_who_wants(&alone(), &rival, &addresses(&cluster[..1]));
    let beside = Lease::new();
    wait_until("a reader is let in", || rival.acquire(&shared(), &beside) == REDLOCK_OK);
    wait_until("the server has it again", || {
        extends(&holder, &lease);
        readers_of(&cluster[0], RESOURCE).iter().any(|it| it.0 == lease.token())
    });
    unlock(&rival, &beside);
    unlock(&holder, &lease);
    all_have_left(&[&holder, &rival], &cluster);
}

#[test]
fn r11_a_downgrade_of_a_forgotten_lock_is_lost() {
    let cluster = Cluster::start(3);
    let (holder, rival) = (connected(&cluster), brief(&cluster));
    let lease = holder.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    cluster[..2].iter().for_each(Server::restart);
    wait_until("it is told", || {
        let status = holder.downgrade(&lease);
        assert!([REDLOCK_LOST, REDLOCK_UNREACHABLE].contains(&status), "{}", lease.message());
        status == REDLOCK_LOST
    });
    assert!(!lease.is_held());
    // Other clients wait all the same, because nobody tells them.
    for wanted in [alone(), shared()] {
        is_kept_out_who_wants(&wanted, &rival, &addresses(&cluster[..2]));
    }
    all_have_left(&[&holder, &rival], &cluster);
}

/// Two servers have the note about this TTL. The writer's own TTL would be over long before.
#[test]
fn r11_the_longest_ttl_of_readers_is_waited_for() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| it.be_in_use(1));
    let reader = connected(&cluster);
    let lease = take(&reader, &shared());
    wait_until("it is noted everywhere", || {
        cluster.iter().all(|it| it.get(NOTE).is_some_and(|it| it.contains(&format!(" {TTL} "))))
    });
    cluster[0].restart();
    let writer = connected_to(&cluster);
    let known = writer.servers();
    let it = known.iter().find(|it| it.name == cluster[0].address()).expect("it is known");
    let left_s = it.words.rsplit("for another ").next().and_then(|it| it.split(' ').next());
    let left_s: i64 = left_s.and_then(|it| it.parse().ok()).expect("so many seconds");
    assert!(left_s > TTL / 1_000 / 2, "{it:?}");
    assert!(lease.is_held());
    unlock(&reader, &lease);
}
