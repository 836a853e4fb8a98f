//! Children of a process that holds shared locks.

use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN};

use crate::kept_processes::{DRIVERS, ends_with_its_time, keeper_of};
use crate::readers::{RESOURCE, readers_of};
use crate::support::proxy::Traffic;
use crate::support::usage::{TTL, connected};
use crate::support::{Cluster, Lease, Program, Proxy, wait_until};

/// The parent holds both locks, shared: one was taken as shared, and the other was downgraded.
const BOTH: [&str; 2] = ["taken", "made"];

/// The readers of each of the two locks, by server.
type Readers = Vec<[Vec<(String, String)>; 2]>;

fn readers(cluster: &Cluster) -> Readers {
    cluster.iter().map(|server| BOTH.map(|it| readers_of(server, it))).collect()
}

/// Returns when each of the two locks has this number of readers on each server.
#[track_caller]
fn wait_until_there_are(count: usize, cluster: &Cluster) -> Readers {
    wait_until("all have reached the servers", || {
        readers(cluster).iter().flatten().all(|it| it.len() == count)
    });
    readers(cluster)
}

#[test]
fn r10_a_shared_lock_belongs_to_the_process_that_took_it() {
    let cluster = Cluster::start(3);
    let proxies: Vec<_> = cluster.iter().map(Proxy::to).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let mut program = Program::compile("fork_shared").start(&urls);

    program.hears("the parent reads");
    let parents = wait_until_there_are(1, &cluster);
    let before: Vec<Vec<Traffic>> = proxies.iter().map(Proxy::connections).collect();
    assert!(before.iter().all(|it| it.len() == 1 && !it[0].has_ended), "{before:?}");
    program.says("go on");
    for word in ["the child reads", "the grandchild has ended"] {
        program.hears(word);
        let now = wait_until_there_are(2, &cluster);
        for (now, parents) in now.iter().flatten().zip(parents.iter().flatten()) {
            assert!(
                now.contains(&parents[0]),
                "the parent's is not as it was: {now:?} {parents:?}"
            );
        }
        program.says("go on");
    }
    for word in ["the child has read", "the children have ended"] {
        program.hears(word);
        assert_eq!(wait_until_there_are(1, &cluster), parents, "the parent's are not as they were");
        cluster.wait_until_gone("childs");
        for (proxy, before) in proxies.iter().zip(&before) {
            assert_eq!(
                proxy.connections()[0].of_the_client(),
                before[0].of_the_client(),
                "something came over the parent's connection, or its end"
            );
        }
        no_writer_is_let_in(&cluster);
        program.says("go on");
    }
    program.hears("the parent has left");
    BOTH.iter().for_each(|key| cluster.wait_until_gone(key));
    program.says("go on");

    program.hears("it is about to be made shared");
    cluster.wait_until_everywhere("becoming");
    let tokens: Vec<_> = cluster.iter().map(|it| it.get("becoming")).collect();
    program.says("go on");
    program.hears("it was made shared");
    wait_until("it is shared, and its holder's still", || {
        let mut servers = cluster.iter().zip(&tokens);
        servers.all(|(server, token)| {
            let readers = readers_of(server, "becoming");
            matches!(&readers[..], [one] if Some(&one.0) == token.as_ref())
        })
    });
    program.says("go on");
    program.hears("all is left");
    wait_until("nothing is left", || cluster.iter().all(|it| it.locks() == 0));
    program.says("go on");
    program.ends_well();
}

#[track_caller]
fn no_writer_is_let_in(cluster: &Cluster) {
    let (writer, lease) = (connected(cluster), Lease::new());
    for resource in BOTH {
        let status = writer.try_lock(resource, TTL, 0, &lease);
        assert_eq!(status, REDLOCK_TAKEN, "{}", lease.message());
    }
}

#[test]
fn r10_a_child_neither_keeps_a_shared_lock_nor_releases_it() {
    let program = &Program::compile("keeper");
    thread::scope(|scope| {
        for (driver, how) in DRIVERS.iter().flat_map(|driver| BOTH.map(|how| (*driver, how))) {
            scope.spawn(move || {
                let cluster = Cluster::start(3);
                let mut keeper = keeper_of(program, &[driver, how], &cluster);
                let tokens = || {
                    let servers = cluster.iter().map(|it| readers_of(it, RESOURCE));
                    servers.map(|it| it.into_iter().map(|it| it.0).collect()).collect()
                };
                wait_until("it is shared everywhere", || {
                    let now: Vec<Vec<_>> = tokens();
                    now.iter().all(|it| it.len() == 1)
                });
                let before = tokens();
                keeper.says("fork");
                keeper.hears("the parent ends");
                let now = tokens();
                let is_as_it_was = |(now, before): (&Vec<_>, _)| now.is_empty() || now == before;
                assert!(now.iter().zip(&before).all(is_as_it_was), "{now:?} after {before:?}");
                // Beside the dead process, only other readers are let in.
                ends_with_its_time(&cluster);
                keeper.hears("the lock is gone");
                keeper.ends_well();
                let (reader, lease) = (connected(&cluster), Lease::new());
                let status = reader.acquire(&crate::readers::shared(), &lease);
                assert_eq!(status, REDLOCK_OK, "{}", lease.message());
                assert_eq!(reader.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            });
        }
    });
}
