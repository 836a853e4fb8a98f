//! Thousands of submitted calls wait for one resource. What there is to do grows with their number, and no faster. The
//! client never stops looking at its sockets and at what is due.

use super::client::{Client, Said};
use super::cluster::{Cluster, Verb};
use super::crowd::LONG;
use crate::protocol::lock_kind::LockKind;

/// So many that questions for all of them at once would fill the queues of the servers several times. (With real
/// servers there are 16,000: `tests/live/events/crowds.rs`. The world compares all keys after each command.)
const MANY: usize = 2500;

/// A lock that is renewed several times while they take their turns.
const KEPT_MS: i64 = 100;

/// How often they ask a server altogether, for each of them.
const ASKED_MAX: f64 = 1.2;

#[test]
fn readers_behind_a_writer() {
    let (cluster, client) = client();
    let mut writer = client.take("r", LONG);
    multitude(&cluster, &client, &LockKind::Shared, |client| client.unlock(&mut writer));
}

/// A client that keeps a lock.
fn client() -> (Cluster, Client) {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    (cluster, client)
}

fn multitude(
    cluster: &Cluster,
    client: &Client,
    kind: &LockKind,
    release: impl FnOnce(&Client) -> Said,
) {
    let mut kept = client.take("kept", KEPT_MS);
    assert_eq!(client.keep_alive(&mut kept), Ok(()));
    for _ in 0..MANY {
        client.submit_waiting(("r", kind), LONG, -1);
    }
    while waiting(client) < MANY {
        assert_eq!(client.event(1), None);
    }
    let asked =
        || cluster.deeds().iter().filter(|it| (it.server, it.verb) == (0, Verb::Acquire)).count();
    let before = asked();
    assert_eq!(release(client), Ok(()));
    for _ in 0..MANY {
        assert_eq!(client.event(LONG), Some(Ok(())));
    }
    let asked = (asked() - before) as f64 / MANY as f64;
    assert!(asked < ASKED_MAX, "{asked} times each");
    assert!(client.still_holds(&mut kept), "it was kept meanwhile");
}

fn waiting(client: &Client) -> usize {
    let stats = client.world().call(client.me, || client.manager.stats());
    usize::try_from(stats.waiting).expect("a count")
}
