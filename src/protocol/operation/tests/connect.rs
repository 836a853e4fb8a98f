//! The call that only connects. How the other calls connect before they ask is tested with each of them.

use super::super::connect::Connect as Connecting;
use super::*;

fn prepared(took_ms: i64, has_looked_up: bool) -> Event {
    Event::Prepared(Prepared { took_ms, has_looked_up })
}

/// A call that has connected two of three servers after 5 ms.
fn connected() -> Play {
    let mut play = Play::of(3);
    // The call looks up all names, even if servers are connected already.
    assert_eq!(play.submit(Connecting::new(0)), [Prepare(3)]);
    assert_eq!(play.prepared(0), [Connect(1_500)]);
    assert_eq!(play.at(4).hear(0, &[yes(0)]), []);
    assert_eq!(play.at(5).hear(0, &[yes(2)]), [Prepare(0)]);
    play
}

#[test]
fn connecting_waits_for_a_quorum_and_briefly_for_the_rest() {
    let mut play = connected();
    assert_eq!(play.prepared(0), [Connect(25)]);
    assert_eq!(play.hear(0, &[yes(0), yes(2)]), []);
    assert_eq!(play.at(24).hear(0, &[yes(1)]), [ended("connected")]);
}

#[test]
fn an_absent_server_is_named_after_connecting() {
    let mut play = connected();
    play.prepared(0);
    play.hear(0, &[yes(0), yes(2)]);
    let words = "connected without: b:1 timed out after 20 ms";
    assert_eq!(play.at(25).time_is_up(0), [ended(words)]);
    let mut play = connected();
    play.prepared(0);
    let words = "connected without: b:1 not connected: connection refused";
    assert_eq!(play.hear(0, &[yes(0), yes(2), down(1)]), [ended(words)]);
}

#[test]
fn connections_lost_at_once_do_not_count() {
    let mut play = connected();
    play.prepared(0);
    let words = "Unreachable: 1 of 3 servers are connected, 2 needed: b:1 not connected: connection \
                 refused, c:1 not connected: connection refused";
    assert_eq!(play.hear(0, &[yes(0), down(1), down(2)]), [ended(words)]);
}

#[test]
fn callbacks_do_not_count_as_time_of_the_quorum() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(0));
    play.at(10).happen(0, prepared(10, false));
    assert_eq!(play.at(110).hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    // Asking for passwords again took 30 ms, and the quorum took 100 ms.
    assert_eq!(play.at(140).happen(0, prepared(30, false)), [Connect(240)]);
}

#[test]
fn a_slow_callback_leaves_the_servers_their_time() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(100));
    assert_eq!(play.at(300).happen(0, prepared(300, false)), [Connect(400)]);
    assert_eq!(play.at(302).hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.at(602).happen(0, prepared(300, false)), [Connect(622)]);
    assert_eq!(play.at(603).hear(0, &[yes(0), yes(1), yes(2)]), [ended("connected")]);
}

#[test]
fn a_callback_does_not_delay_the_end_of_a_lock() {
    let (mut play, view) = Play::holding();
    play.world.connected = 1;
    play.at(9_890).submit(Extend::new(view, TTL));
    play.prepared(1);
    assert_eq!(play.at(9_893).hear(1, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.at(9_897).happen(1, prepared(4, false)), [Connect(VALID_MS)]);
}

#[test]
fn the_time_of_the_caller_bounds_connecting() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(100));
    assert_eq!(play.prepared(0), [Connect(100)]);
    assert_eq!(play.at(90).hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.prepared(0), [Connect(100)]);
}

#[test]
fn callbacks_and_name_servers_use_no_server_time() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(100));
    assert_eq!(play.at(300).happen(0, prepared(300, true)), [Connect(400)]);
    assert_eq!(play.at(310).hear(0, &[yes(0), down(1), down(2)]), [Prepare(usize::MAX)]);
    assert_eq!(play.at(350).happen(0, prepared(40, true)), [Connect(440)]);
}

#[test]
fn remaining_names_are_looked_up_once() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(0));
    play.prepared(0);
    let no_quorum = [yes(0), down(1), down(2)];
    assert_eq!(play.at(10).hear(0, &no_quorum), [Prepare(usize::MAX)]);
    assert_eq!(play.at(12).happen(0, prepared(2, true)), [Connect(1_502)]);
    let words = "Unreachable: 1 of 3 servers are connected, 2 needed: b:1 not connected: connection \
                 refused, c:1 not connected: connection refused";
    assert_eq!(play.hear(0, &no_quorum), [ended(words)]);
}

#[test]
fn without_more_names_connecting_fails_at_once() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(0));
    play.prepared(0);
    assert_eq!(play.hear(0, &[down(0), down(1)]), [Prepare(usize::MAX)]);
    let words = "Unreachable: 1 of 3 servers are connected, 2 needed: a:1 not connected: connection \
                 refused, b:1 not connected: connection refused";
    assert_eq!(play.prepared(0), [ended(words)]);
}

#[test]
fn after_the_timeout_no_name_is_looked_up() {
    let mut play = Play::of(3);
    play.world.policy.set_timeouts(300, 0);
    play.submit(Connecting::new(0));
    assert_eq!(play.prepared(0), [Connect(300)]);
    play.hear(0, &[yes(0)]);
    let words = "Unreachable: 1 of 3 servers are connected, 2 needed: b:1 timed out after 300 ms, c:1 timed out \
     after 300 ms";
    assert_eq!(play.at(300).time_is_up(0), [ended(words)]);
}

#[test]
fn unexpected_events_change_nothing() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(0));
    let stray = [Event::TimeOut, Event::YourTurn, Event::Closed { sent: ServerSet::default() }];
    for event in stray {
        assert_eq!(play.happen(0, event), []);
    }
    assert_eq!(play.prepared(0), [Connect(1_500)]);
    assert_eq!(play.prepared(0), []);
    assert_eq!(play.hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
}

#[test]
fn a_request_needs_connections_to_a_majority() {
    for (servers, quorum) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
        let mut play = Play::of(servers);
        play.world.connected = quorum - 1;
        assert_eq!(play.acquire(Plan::Tries(1)), [Prepare(quorum)]);
        let mut play = Play::of(servers);
        play.world.connected = quorum;
        assert_eq!(play.acquire(Plan::Tries(1)), [Ask(Verb::Acquire, 500)]);
    }
}

/// A server may have lost its fencing tokens since.
#[test]
fn connecting_with_fencing_reads_the_counters() {
    let mut play = connected();
    play.world.policy.set_fencing(true);
    play.prepared(0);
    let acts = play.hear(0, &[yes(0), yes(1), yes(2)]);
    assert_eq!(acts, [Act::Begin, ended("connected")]);
}
