//! What happens with a server whose connection acknowledges everything and answers nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::crowd::{self, Crowd};
use crate::manager::call::Call;
use crate::manager::lease::Lease;
use crate::manager::redlock::RedLock;
use crate::memory;
use crate::protocol::error::{Error, Status};
use crate::world;

const HOUR_MS: i64 = 3_600_000;

/// Four times the longest of the derived reply timeouts.
const OVERDUE_MS: i64 = 2_000;

/// The first server of the crowd that has an address.
const FIRST: usize = 8;

fn manager_of(servers: usize) -> RedLock {
    world::begin(Crowd::new(&[]));
    manager_at(FIRST..FIRST + servers)
}

fn manager_at(servers: impl IntoIterator<Item = usize>) -> RedLock {
    let manager = RedLock::new();
    for server in servers {
        manager.add_server_url(&format!("redis://{}", crowd::place(server)), 0).expect("a server");
    }
    manager.settings().set_retry(1, 0).expect("settings");
    manager
}

fn try_lock(manager: &RedLock, lease: &mut Lease) -> Result<(), Error> {
    try_lock_of(manager, b"r", HOUR_MS, lease)
}

fn try_lock_of(
    manager: &RedLock,
    resource: &[u8],
    ttl_ms: i64,
    lease: &mut Lease,
) -> Result<(), Error> {
    world::with(world::World::begin_call);
    manager.run(Call::Acquire(Call::acquire(resource, ttl_ms)), lease)
}

fn locks(manager: &RedLock) {
    let mut lease = Lease::new();
    try_lock(manager, &mut lease).expect("a lock");
    manager.run(Call::Unlock, &mut lease).expect("it is released");
}

fn locks_another(manager: &RedLock) {
    let mut lease = Lease::new();
    try_lock_of(manager, b"another", HOUR_MS, &mut lease).expect("a lock");
    manager.run(Call::Unlock, &mut lease).expect("it is released");
}

fn is_unreachable(manager: &RedLock) -> String {
    let error = try_lock(manager, &mut Lease::new()).expect_err("nobody answers");
    assert_eq!(error.status(), Status::Unreachable, "{error}");
    error.to_string()
}

/// The existing connections to this server only acknowledge.
fn ignore(server: usize, is_ignored: bool) {
    world::with(|world| {
        let those = world.connections.iter_mut().filter(|it| it.server == FIRST + server);
        those.for_each(|it| it.is_ignored = is_ignored);
    });
}

/// How many connections to a server there were, and how many there are.
fn connections(server: usize) -> (usize, usize) {
    world::with(|world| {
        let all = world.connections.iter().filter(|it| it.server == FIRST + server);
        (all.clone().count(), all.filter(|it| !it.is_closed).count())
    })
}

fn now_ms() -> i64 {
    world::now().as_nanos() / 1_000_000
}

fn pass_ms(ms: i64) {
    world::with(|world| world.pass_ms(ms));
}

/// Does nothing until then except for an occasional look, as a program that uses the manager does.
fn look_until(manager: &RedLock, ms: i64) {
    while now_ms() < ms {
        world::with(world::World::begin_call);
        let _ = manager.is_locked(b"another");
        pass_ms(5.min(ms - now_ms()).max(0));
    }
}

fn has_key(server: usize) -> bool {
    let other = manager_at([FIRST + server]);
    world::with(world::World::begin_call);
    other.is_locked(b"r").expect("it answers")
}

#[test]
fn a_server_returns_after_four_reply_timeouts() {
    let manager = manager_of(3);
    locks(&manager);
    (0..2).for_each(|server| ignore(server, true));
    let sent_ms = now_ms();
    is_unreachable(&manager);
    look_until(&manager, sent_ms + OVERDUE_MS - 1);
    let words = is_unreachable(&manager);
    assert!(words.contains("no reply for 19"), "{words}");
    assert_eq!([connections(0), connections(1), connections(2)], [(1, 1); 3]);
    // Nobody waits for the second connection. This call begins it, or one of the next calls.
    look_until(&manager, sent_ms + OVERDUE_MS + 20);
    locks(&manager);
    assert_eq!([connections(0), connections(1), connections(2)], [(2, 2), (2, 2), (1, 1)]);
    // A request that was sent over the first connection may be executed until the hour is over, and is
    // guarded for that long.
    pass_ms(HOUR_MS - OVERDUE_MS - 1_000);
    locks(&manager);
    assert_eq!(connections(0), (2, 2));
    pass_ms(1_000);
    locks(&manager);
    assert_eq!([connections(0), connections(1), connections(2)], [(2, 1), (2, 1), (1, 1)]);
}

#[test]
fn the_reply_timeout_counts_with_a_minimum_of_a_second() {
    for (reply_ms, overdue_ms) in [(50, 1_000), (1_500, 6_000)] {
        let manager = manager_of(1);
        manager.settings().set_timeouts(1_500, reply_ms).expect("settings");
        locks(&manager);
        ignore(0, true);
        let sent_ms = now_ms();
        is_unreachable(&manager);
        look_until(&manager, sent_ms + overdue_ms - 1);
        assert_eq!(connections(0), (1, 1), "{reply_ms}");
        look_until(&manager, sent_ms + overdue_ms + 20);
        assert_eq!(connections(0), (2, 2), "{reply_ms}");
        locks(&manager);
    }
}

/// The acquire of a lock that others granted waits in front of a server. It is executed after the release
/// that went over the second connection.
#[test]
fn a_late_acquire_is_released_after_it_ran() {
    let manager = manager_of(3);
    locks(&manager);
    ignore(0, true);
    let mut lease = Lease::new();
    let sent_ms = now_ms();
    try_lock(&manager, &mut lease).expect("two of three grant it");
    look_until(&manager, sent_ms + OVERDUE_MS + 20);
    assert_eq!(connections(0), (2, 2));
    world::with(world::World::begin_call);
    manager.run(Call::Unlock, &mut lease).expect("it is released");
    assert!(!has_key(0));
    ignore(0, false);
    assert!(!has_key(0), "it was set after its release");
    // There is nothing more to guard.
    locks(&manager);
    locks(&manager);
    assert_eq!(connections(0).1, 1);
}

/// The old connection ends after the acquire was executed, and before its release was.
#[test]
fn a_late_acquire_is_released_even_if_its_connection_breaks() {
    let manager = manager_of(3);
    locks(&manager);
    ignore(0, true);
    let before = world::with(|world| world.connections[0].heard.len());
    let mut lease = Lease::new();
    let sent_ms = now_ms();
    try_lock(&manager, &mut lease).expect("two of three grant it");
    let acquire = world::with(|world| world.connections[0].heard.len());
    assert!(acquire > before);
    look_until(&manager, sent_ms + OVERDUE_MS + 20);
    world::with(world::World::begin_call);
    manager.run(Call::Unlock, &mut lease).expect("it is released");
    world::with(|world| world.connections[0].heard.truncate(acquire));
    ignore(0, false);
    assert!(has_key(0));
    world::with(|world| world.connections[0].ends = true);
    locks_another(&manager);
    locks_another(&manager);
    assert!(!has_key(0));
}

/// If a request waits in front of the server when the second connection is made, its lock is released over
/// that connection at once.
#[test]
fn an_unheard_acquire_is_released_on_the_second_connection() {
    let manager = manager_of(1);
    locks(&manager);
    let mut lease = Lease::new();
    try_lock(&manager, &mut lease).expect("a lock");
    ignore(0, true);
    let sent_ms = now_ms();
    world::with(world::World::begin_call);
    manager.run(Call::Unlock, &mut lease).expect_err("nobody answers");
    assert!(has_key(0));
    look_until(&manager, sent_ms + OVERDUE_MS + 20);
    assert!(!has_key(0));
    locks(&manager);
}

#[test]
fn a_connection_that_answers_in_time_stays_in_use() {
    let manager = manager_of(1);
    locks(&manager);
    ignore(0, true);
    world::with(|world| world.frozen = vec![FIRST]);
    let sent_ms = now_ms();
    is_unreachable(&manager);
    look_until(&manager, sent_ms + OVERDUE_MS + 500);
    assert_eq!(connections(0), (2, 2));
    world::with(|world| world.frozen.clear());
    world::with(|world| world.connections[0].is_ignored = false);
    locks(&manager);
    assert_eq!(connections(0), (2, 1));
    let is_closed = world::with(|world| world.connections[0].is_closed);
    assert!(!is_closed);
}

/// It has answered one request, and owes the answer to the next one for too long already.
#[test]
fn a_connection_with_another_overdue_answer_is_replaced() {
    let manager = manager_of(3);
    locks(&manager);
    ignore(0, true);
    let mut lease = Lease::new();
    let sent_ms = now_ms();
    try_lock(&manager, &mut lease).expect("two of three grant it");
    let acquire = world::with(|world| world.connections[0].heard.len());
    world::with(world::World::begin_call);
    manager.run(Call::Unlock, &mut lease).expect("it is released");
    world::with(|world| world.frozen = vec![FIRST]);
    look_until(&manager, sent_ms + OVERDUE_MS + 500);
    assert_eq!(connections(0), (2, 2));
    world::with(|world| {
        let first = &mut world.connections[0];
        first.heard.truncate(acquire);
        first.is_ignored = false;
        world.serve();
        world.connections[0].is_ignored = true;
    });
    look_until(&manager, sent_ms + OVERDUE_MS + 600);
    assert_eq!(connections(0), (2, 2));
}

/// Nobody looked at the connection meanwhile.
#[test]
fn a_long_unread_connection_is_not_replaced() {
    let manager = manager_of(1);
    locks(&manager);
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&lines);
    let keep = move |_, line: &str| kept.lock().expect("no panic").push(line.to_owned());
    manager.set_logger(Some(Arc::new(keep))).expect("a logger");
    ignore(0, true);
    is_unreachable(&manager);
    pass_ms(HOUR_MS);
    locks(&manager);
    assert_eq!(connections(0), (2, 1));
    let lines = lines.lock().expect("no panic");
    assert!(lines.iter().any(|it| it.contains("no data received for")), "{lines:?}");
    assert!(!lines.iter().any(|it| it.contains("second connection")), "{lines:?}");
}

#[test]
fn a_frozen_server_costs_few_attempts_lines_and_descriptors() {
    const FROZEN_MS: i64 = 60_000;
    let manager = manager_of(3);
    locks(&manager);
    let lines = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lines);
    let count = move |_, _: &str| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    manager.set_logger(Some(Arc::new(count))).expect("a logger");
    ignore(0, true);
    world::with(|world| world.frozen = vec![FIRST]);
    let until_ms = now_ms() + FROZEN_MS;
    while now_ms() < until_ms {
        locks(&manager);
        pass_ms(10);
        assert!(connections(0).1 <= 2);
    }
    // Each connection gets a second and a half to answer the handshake.
    let (made, _) = connections(0);
    assert!((2..=1 + FROZEN_MS as usize / 1_500).contains(&made), "{made}");
    assert!(lines.load(Ordering::Relaxed) <= 3, "{lines:?}");
    world::with(|world| world.frozen.clear());
    ignore(0, false);
    locks(&manager);
    assert_eq!(connections(0), (made, 1));
}

#[test]
fn calls_to_a_frozen_server_neither_reconnect_nor_wait() {
    const FROZEN_MS: i64 = 600_000;
    let manager = manager_of(1);
    locks(&manager);
    ignore(0, true);
    world::with(|world| world.frozen = vec![FIRST]);
    let sent_ms = now_ms();
    is_unreachable(&manager);
    look_until(&manager, sent_ms + OVERDUE_MS + 20);
    while now_ms() < sent_ms + FROZEN_MS {
        let began_ms = now_ms();
        let words = is_unreachable(&manager);
        assert!(words.contains("not asked: no reply"), "{words}");
        assert!(now_ms() - began_ms < 20);
        pass_ms(50);
    }
    // After some failures the pause is between 320 and 960 ms.
    let made = i64::try_from(connections(0).0).expect("not so many");
    let (least, most) = (FROZEN_MS / (1_500 + 960 + 200), 10 + FROZEN_MS / (1_500 + 320));
    assert!((least..=most).contains(&made), "{made} of {least} to {most}");
}

/// A second connection that is overdue as well replaces the one that drains: there are never more than two.
#[test]
fn a_server_returns_even_if_the_second_connection_dies() {
    let manager = manager_of(1);
    locks(&manager);
    for round in 1..5 {
        ignore(0, true);
        let sent_ms = now_ms();
        is_unreachable(&manager);
        look_until(&manager, sent_ms + OVERDUE_MS + 20);
        assert_eq!(connections(0), (1 + round, 2));
        locks(&manager);
    }
}

#[test]
fn requests_for_a_frozen_server_take_little_memory() {
    const MIB: i64 = 1024 * 1024;
    world::begin(Crowd::new(&[]));
    // Servers with the same commands, so that a release is encoded once.
    let manager = manager_at([FIRST, FIRST + 3, FIRST + 6]);
    manager.settings().set_timeouts(1_500, 500).expect("settings");
    let name = |number: usize| [&number.to_be_bytes()[..], &[b'n'; 65_528]].concat();
    let take = |number| {
        let mut lease = Lease::new();
        try_lock_of(&manager, &name(number), HOUR_MS, &mut lease).map(|()| lease)
    };
    let mut leases: Vec<_> = (0..500).map(|number| take(number).expect("a lock")).collect();
    ignore(0, true);
    world::with(|world| world.frozen = vec![FIRST]);
    let kept = memory::kept_by(|| {
        for lease in &mut leases {
            world::with(world::World::begin_call);
            manager.run(Call::Unlock, lease).expect("two of three are enough");
        }
    });
    // Without a bound there would be 500 releases of 64 KiB, and the same again for the socket.
    assert!((4 * MIB..40 * MIB).contains(&kept), "{kept}");
}

/// The acquire of a lock waits in the oldest of three connections, and its release behind it gets lost with that
/// connection. The second connection has answered the release, before the acquire is carried out.
#[test]
fn the_release_of_the_oldest_connection_moves_on() {
    let manager = manager_of(3);
    locks(&manager);
    ignore(0, true);
    let mut lease = Lease::new();
    let sent_ms = now_ms();
    try_lock(&manager, &mut lease).expect("two of three grant it");
    let acquire = world::with(|world| world.connections[0].heard.len());
    look_until(&manager, sent_ms + OVERDUE_MS + 20);
    world::with(world::World::begin_call);
    manager.run(Call::Unlock, &mut lease).expect("it is released");
    world::with(|world| world.connections[0].heard.truncate(acquire));
    ignore(0, true);
    world::with(|world| world.frozen = vec![FIRST]);
    let sent_ms = now_ms();
    locks_another(&manager);
    look_until(&manager, sent_ms + OVERDUE_MS + 20);
    assert_eq!(connections(0), (3, 2));
    world::with(|world| {
        world.frozen.clear();
        world.connections[0].is_ignored = false;
        world.serve();
    });
    assert!(has_key(0));
    // The third connection is up.
    world::with(|world| {
        let latest =
            world.connections.iter_mut().rev().find(|it| it.server == FIRST && !it.is_closed);
        latest.expect("a connection").is_ignored = false;
    });
    look_until(&manager, now_ms() + 100);
    assert!(!has_key(0));
}
