//! Processes that are woken: each waits for a lock that another process holds.

use super::client::Client;
use super::cluster::{Cluster, Telling, Verb};
use super::crowd::{Crowd, waits};
use crate::manager::lease::Lease;

pub(super) const LINE: &str = "r:w";

/// Processes that are woken. Time begins now.
pub(super) fn processes<const COUNT: usize>(cluster: &Cluster) -> [Crowd; COUNT] {
    processes_of(cluster, [(); COUNT].map(|()| cluster.client().woken().connected()))
}

/// A process for each of these clients. Time begins now.
pub(super) fn processes_of<const COUNT: usize>(
    cluster: &Cluster,
    clients: [Client; COUNT],
) -> [Crowd; COUNT] {
    let mut first = None;
    clients.map(|client| match &first {
        None => first.insert(Crowd::of(cluster, client)).clone(),
        Some(first) => first.and(client),
    })
}

/// Checks that nobody is in the wait queue any more, and nobody holds the lock, after everything under way
/// has ended.
#[track_caller]
pub(super) fn nothing_is_left(cluster: &Cluster, line: &str) {
    cluster.run_ms(200);
    assert_eq!(cluster.in_line(line), vec![0; cluster.servers()]);
    assert_eq!(cluster.having_any("r"), 0);
}

/// When a server executed requests of this kind for this process.
pub(super) fn done(crowd: &Crowd, server: usize, verb: Verb) -> Vec<i64> {
    let deeds = crowd.deeds_of(server).into_iter();
    deeds.filter(|it| it.0 == verb).map(|it| it.1).collect()
}

/// What happens to the next message that each of these servers sends to it.
pub(super) fn telling(crowd: &Crowd, servers: impl IntoIterator<Item = usize>, how: Telling) {
    let client = &crowd.client;
    servers.into_iter().for_each(|it| client.world().telling(client.way(it), [how]));
}

/// The first process holds the lock for 100 ms, and the second one waits for it. Returns when the second
/// one got the lock, because it was told or had looked again.
pub(super) fn waited([a, b]: &[Crowd; 2]) -> i64 {
    a.caller('a', 0, waits(0), 100);
    b.caller('b', 10, waits(5_000), 20);
    let told = b.told();
    assert_eq!((told[1].0, told[1].1), ('b', Ok(())), "{told:?}");
    told[1].2
}

/// It holds the lock from the beginning until `end`.
pub(super) fn has_until(crowd: &Crowd, end: i64) {
    crowd.thread(0, move |crowd| {
        let mut lease = Lease::new();
        assert_eq!(crowd.call('a', &mut lease, waits(0)), Ok(()));
        crowd.run_until(end);
        assert_eq!(crowd.unlock(&mut lease), Ok(()));
    });
}
