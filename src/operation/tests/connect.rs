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
fn it_waits_for_a_quorum_and_for_a_while_for_the_others() {
    let mut play = connected();
    assert_eq!(play.prepared(0), [Connect(25)]);
    assert_eq!(play.hear(0, &[yes(0), yes(2)]), []);
    assert_eq!(play.at(24).hear(0, &[yes(1)]), [ended("connected")]);
}

#[test]
fn who_does_not_follow_is_named() {
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
fn connections_that_are_lost_at_once_are_none() {
    let mut play = connected();
    play.prepared(0);
    let words = "Unreachable: 1 of 3 servers are connected, 2 needed: b:1 not connected: connection \
                 refused, c:1 not connected: connection refused";
    assert_eq!(play.hear(0, &[yes(0), down(1), down(2)]), [ended(words)]);
}

#[test]
fn others_have_as_long_to_follow_as_the_quorum_took_but_for_the_callbacks() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(0));
    play.at(10).happen(0, prepared(10, false));
    assert_eq!(play.at(110).hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    // Asking for passwords again took 30 ms, and the quorum took 100 ms.
    assert_eq!(play.at(140).happen(0, prepared(30, false)), [Connect(240)]);
}

#[test]
fn a_callback_that_takes_longer_than_the_callers_time_leaves_others_theirs_to_follow() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(100));
    assert_eq!(play.at(300).happen(0, prepared(300, false)), [Connect(400)]);
    assert_eq!(play.at(302).hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.at(602).happen(0, prepared(300, false)), [Connect(622)]);
    assert_eq!(play.at(603).hear(0, &[yes(0), yes(1), yes(2)]), [ended("connected")]);
}

#[test]
fn a_callback_does_not_put_off_the_end_of_a_lock() {
    let (mut play, view) = Play::holding();
    play.world.connected = 1;
    play.at(9_890).submit(Extend::new(view, TTL));
    play.prepared(1);
    assert_eq!(play.at(9_893).hear(1, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.at(9_897).happen(1, prepared(4, false)), [Connect(VALID_MS)]);
}

#[test]
fn the_callers_time_is_the_limit() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(100));
    assert_eq!(play.prepared(0), [Connect(100)]);
    assert_eq!(play.at(90).hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.prepared(0), [Connect(100)]);
}

#[test]
fn the_time_of_callbacks_and_name_servers_is_not_the_servers() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(100));
    assert_eq!(play.at(300).happen(0, prepared(300, true)), [Connect(400)]);
    assert_eq!(play.at(310).hear(0, &[yes(0), down(1), down(2)]), [Prepare(usize::MAX)]);
    assert_eq!(play.at(350).happen(0, prepared(40, true)), [Connect(440)]);
}

#[test]
fn names_that_were_left_out_are_looked_up_once() {
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
fn where_no_other_names_are_it_fails_at_once() {
    let mut play = Play::of(3);
    play.submit(Connecting::new(0));
    play.prepared(0);
    assert_eq!(play.hear(0, &[down(0), down(1)]), [Prepare(usize::MAX)]);
    let words = "Unreachable: 1 of 3 servers are connected, 2 needed: a:1 not connected: connection \
                 refused, b:1 not connected: connection refused";
    assert_eq!(play.prepared(0), [ended(words)]);
}

#[test]
fn when_the_time_is_up_nothing_more_is_looked_up() {
    let mut play = Play::of(3);
    play.world.settings.set_timeouts(300, 0).unwrap();
    play.submit(Connecting::new(0));
    assert_eq!(play.prepared(0), [Connect(300)]);
    play.hear(0, &[yes(0)]);
    let words = "Unreachable: 1 of 3 servers are connected, 2 needed: b:1 timed out after 300 ms, c:1 timed out \
     after 300 ms";
    assert_eq!(play.at(300).time_is_up(0), [ended(words)]);
}

#[test]
fn what_it_does_not_wait_for_changes_nothing() {
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
fn what_is_asked_is_asked_over_a_majority_of_connections() {
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
fn with_fencing_tokens_it_finds_out_which_servers_can_draw_them() {
    let mut play = connected();
    play.world.settings.set_fencing(true);
    play.prepared(0);
    let acts = play.hear(0, &[yes(0), yes(1), yes(2)]);
    assert_eq!(acts, [Act::Begin, ended("connected")]);
}
