//! Processes that are woken: each waits for a lock that another has.

use super::client::Client;
use super::cluster::{Cluster, Telling, Verb};
use super::crowd::{Crowd, waits};
use crate::lease::Lease;

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

/// Nobody stands in line any more, and nobody has it, once all is done that was under way.
#[track_caller]
pub(super) fn nothing_is_left(cluster: &Cluster, line: &str) {
    cluster.run_ms(200);
    assert_eq!(cluster.in_line(line), vec![0; cluster.servers()]);
    assert_eq!(cluster.having_any("r"), 0);
}

/// What a server did for this one of that kind, and when.
pub(super) fn done(crowd: &Crowd, server: usize, verb: Verb) -> Vec<i64> {
    let deeds = crowd.deeds_of(server).into_iter();
    deeds.filter(|it| it.0 == verb).map(|it| it.1).collect()
}

/// What becomes of the next thing that each of these servers tells it.
pub(super) fn telling(crowd: &Crowd, servers: impl IntoIterator<Item = usize>, how: Telling) {
    let client = &crowd.client;
    servers.into_iter().for_each(|it| client.world().telling(client.way(it), [how]));
}

/// The first has it for 100 ms, the second waits for it. Returns when the second was told, or had looked again.
pub(super) fn waited([a, b]: &[Crowd; 2]) -> i64 {
    a.caller('a', 0, waits(0), 100);
    b.caller('b', 10, waits(5_000), 20);
    let told = b.told();
    assert_eq!((told[1].0, told[1].1), ('b', Ok(())), "{told:?}");
    told[1].2
}

/// It has it from the beginning until then.
pub(super) fn has_until(crowd: &Crowd, end: i64) {
    crowd.thread(0, move |crowd| {
        let mut lease = Lease::new();
        assert_eq!(crowd.call('a', &mut lease, waits(0)), Ok(()));
        crowd.run_until(end);
        assert_eq!(crowd.unlock(&mut lease), Ok(()));
    });
}
