//! What is known of the memory of a server, and whether it is new.

use super::TTL;
use super::client::Client;
use super::cluster::{Cluster, Trip};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

/// How long a connection may take, handshake included.
const CONNECT_MS: i64 = 1_500;

/// Servers that nobody has used.
fn new(servers: usize) -> Cluster {
    let cluster = Cluster::new(servers);
    cluster.tell_notes();
    (0..servers).for_each(|it| cluster.flush(it));
    cluster
}

/// Whether the note of this server says that it was new.
#[track_caller]
fn is_of_new(cluster: &Cluster, server: usize) -> bool {
    let note = cluster.note(server);
    note.split(' ').nth(3).expect("it has a note").starts_with('-')
}

/// Connects as far as possible.
fn connect(client: &Client) -> Result<String, Status> {
    client.world().call(client.me, || client.manager.connect(0)).map_err(|it| it.status())
}

/// A client that is about to connect. That takes half a second, and so does the answer to what it asks first. What it
/// sends then is subject to `then`.
fn slow_at_first(cluster: &Cluster, then: Trip) -> Client {
    cluster.usual(Trip::ms(1, 500));
    cluster.after_ms(800, move |scene| scene.usual(then));
    cluster.client()
}

#[test]
fn unused_servers_are_new() {
    let cluster = new(3);
    let client = cluster.client().connected();
    assert!((0..3).all(|it| is_of_new(&cluster, it)));
    client.take("r", TTL);
}

/// The connection that asks for it is given up by then.
#[test]
fn no_server_is_marked_as_new_after_the_connect_timeout() {
    let cluster = new(1);
    let client = slow_at_first(&cluster, Trip::ms(3_000, 1));
    assert_eq!(connect(&client), Err(Status::Unreachable));
    cluster.run_ms(5_000);
    assert!(!is_of_new(&cluster, 0));
}

#[test]
fn one_silent_server_prevents_a_new_deployment() {
    let cluster = new(3);
    cluster.freeze(2);
    let client = cluster.client();
    assert!(connect(&client).is_ok());
    assert!((0..2).all(|it| !is_of_new(&cluster, it)));
}

/// The server was asked twice in the handshake, and its last answer counts from the last question. Or another client has
/// marked it before.
#[test]
fn a_clock_step_is_seen_after_a_slow_handshake() {
    for (step_ms, is_marked) in [(0, false), (300, false), (0, true), (300, true)] {
        let cluster = new(1);
        let _first = is_marked.then(|| cluster.client().connected());
        let client = slow_at_first(&cluster, Trip::default());
        assert_eq!(connect(&client), Ok(String::new()));
        cluster.step_clock(0, step_ms);
        let said = client.lock("r", TTL, &mut Lease::new());
        let counts = if step_ms == 0 { Ok(()) } else { Err(Status::Unreachable) };
        assert_eq!(said, counts, "{step_ms} {is_marked}");
    }
}

/// The note was about to be rewritten when the connection broke. So no connection to this server was ever up.
#[test]
fn a_server_with_a_missing_note_is_not_new() {
    let cluster = Cluster::new(1);
    cluster.tell_notes();
    let now_ms = cluster.with(|world| world.servers[0].now_ms(world.now));
    cluster.date_note(0, now_ms + 60_000);
    let client = slow_at_first(&cluster, Trip::ms(60_000, 1));
    let way = client.way(0);
    cluster.after_ms(1_200, move |scene| scene.cut(way, true));
    assert_eq!(connect(&client), Err(Status::Unreachable));
    cluster.flush(0);
    cluster.usual(Trip::default());
    cluster.run_ms(CONNECT_MS);
    assert!(connect(&client).is_ok());
    assert!(!is_of_new(&cluster, 0));
}

/// Another client has marked the servers. The one that loses its data may have granted locks since.
#[test]
fn a_new_server_restarted_empty_is_no_longer_new() {
    let cluster = new(3);
    let _first = cluster.client().connected();
    let client = cluster.client().connected();
    cluster.restart_empty(0);
    cluster.run_ms(100);
    assert!(connect(&client).is_ok());
    assert!(!is_of_new(&cluster, 0));
}
