//! Locks with fencing tokens: the greatest number that was drawn, and the steps until a quorum has it.

use super::world::WALL_US;
use super::*;
use crate::protocol::command::Verb::{AcquireFenced, RaiseFence, Release};
use crate::protocol::command::{Capabilities, Encoder};

/// A server grants the lock, and has drawn this number.
fn drew(server: usize, number: i64) -> Word {
    (server, Answer::Granted { number })
}

/// This many servers, each of which draws a token.
fn fenced(servers: usize) -> Play {
    let play = Play::of(servers);
    play.world.policy.set_fencing(true);
    play
}

fn token_of(play: &Play) -> i64 {
    play.view().held_lock().fencing_token()
}

#[test]
fn an_equal_number_on_a_quorum_needs_no_raise() {
    let mut play = fenced(3);
    assert_eq!(play.acquire(Plan::Tries(1)), [Ask(AcquireFenced, 500)]);
    assert_eq!(play.at(5).hear(0, &[drew(1, 7), drew(2, 7)]), [ended("acquired")]);
    assert_eq!(token_of(&play), 7);
    assert_eq!([0, 1, 2].map(|server| play.view().is_sound(server)), [false, true, true]);
}

#[test]
fn the_greatest_number_is_raised_on_a_quorum_first() {
    let mut play = fenced(3);
    play.acquire(Plan::Tries(1));
    let acts = play.at(5).hear(0, &[drew(1, 7), drew(2, 9)]);
    assert_eq!(acts, [Ask(RaiseFence, 505)]);
    assert_eq!(play.at(6).hear(0, &[yes(0), yes(2)]), [ended("acquired")]);
    assert_eq!(token_of(&play), 9);
    let tokens: Vec<_> = play.world.requests.iter().map(|it| it.1).collect();
    assert!(tokens[0] == tokens[1], "it is raised for this lock");
    // A server that raised the token need not have granted the lock in time.
    assert_eq!([0, 1, 2].map(|server| play.view().is_sound(server)), [false, true, true]);
    assert_eq!(play.view().held_lock().valid_until(), at(VALID_MS));
    assert_eq!(play.view().servers(), ServerSet::first(3));
}

/// It has set the key, so it is told to release it if the lock is not had.
#[test]
fn a_server_with_lost_numbers_has_no_vote() {
    let lost = |server| (server, Answer::Failed(Failure::Unfenced { left_s: 3 }));
    let mut play = fenced(3);
    play.acquire(Plan::Tries(1));
    assert_eq!(
        play.hear(0, &[lost(0), drew(1, 7), drew(2, 7)]),
        [ended(
            "acquired without: a:1 lost its fencing counters: they can be restored from the other servers in 3 s"
        )]
    );
    let mut play = fenced(3);
    play.acquire(Plan::Tries(1));
    let acts = play.hear(0, &[lost(0), drew(1, 7), lost(2)]);
    let [Tell(Release, servers), Act::Ended(words)] = &acts[..] else { panic!("{acts:?}") };
    assert_eq!(servers, &[0, 1, 2]);
    assert!(
        words.starts_with("Unreachable: 1 of 3 servers granted, 2 needed: a:1 lost its"),
        "{words}"
    );
}

/// What it draws is as good as the numbers of others, for as long as nothing better is known.
#[test]
fn a_number_by_the_clock_counts() {
    let by_clock = |server, number| (server, Answer::GrantedByClock { number });
    let mut play = fenced(3);
    play.acquire(Plan::Tries(1));
    assert_eq!(play.hear(0, &[by_clock(0, 9), drew(1, 7)]), [Ask(RaiseFence, 500)]);
    assert_eq!(play.hear(0, &[yes(0), yes(1)]), [ended("acquired")]);
    assert_eq!(token_of(&play), 9);
}

#[test]
fn a_number_on_a_quorum_is_not_raised() {
    let mut play = fenced(5);
    play.acquire(Plan::Tries(1));
    let acts = play.hear(0, &[drew(0, 9), drew(1, 9), drew(2, 9)]);
    assert_eq!(acts, [ended("acquired")]);
    let mut play = fenced(5);
    play.acquire(Plan::Tries(1));
    let acts = play.hear(0, &[drew(0, 9), drew(1, 9), drew(2, 3)]);
    assert_eq!(acts, [Ask(RaiseFence, 500)]);
}

#[test]
fn a_failed_raise_releases_the_lock() {
    // Two servers have lost the lock since, or two do not answer.
    for (words, end) in [
        (
            [gone(0), gone(1)].as_slice(),
            "Unreachable: 0 of 3 servers stored the fencing token, 2 needed: a:1 no longer has the lock, \
             b:1 no longer has the lock, c:1 was not heard",
        ),
        (
            &[yes(2)],
            "Unreachable: 1 of 3 servers stored the fencing token, 2 needed: a:1 timed out after 500 ms, \
             b:1 timed out after 500 ms",
        ),
    ] {
        let mut play = fenced(3);
        play.acquire(Plan::Tries(1));
        assert_eq!(play.hear(0, &[drew(0, 7), drew(1, 8)]), [Ask(RaiseFence, 500)]);
        let mut acts = play.hear(0, words);
        if acts.is_empty() {
            acts = play.at(500).time_is_up(0);
        }
        assert_eq!(acts, [Tell(Release, vec![0, 1, 2]), ended(end)]);
    }
}

#[test]
fn a_late_raise_is_too_slow() {
    let mut play = fenced(3);
    play.acquire(Plan::Tries(1));
    assert_eq!(play.at(9_700).hear(0, &[drew(0, 7), drew(1, 8)]), [Ask(RaiseFence, VALID_MS)]);
    let acts = play.at(VALID_MS).hear(0, &[yes(0), yes(1)]);
    let end = "TooSlow: 2 of 3 servers stored the fencing token, 2 needed; too late: no validity left: c:1 was not \
     heard";
    assert_eq!(acts, [Tell(Release, vec![0, 1, 2]), ended(end)]);
}

#[test]
fn a_cancelled_raise_leaves_nothing() {
    let mut play = fenced(3);
    play.acquire(Plan::Tries(1));
    play.hear(0, &[drew(0, 7), taken(1, 5), drew(2, 8)]);
    let acts = play.happen(0, Event::Cancelled { sent: ServerSet::default() });
    assert_eq!(acts, [Tell(Release, vec![0, 2]), ended("Cancelled: the call was cancelled")]);
}

#[test]
fn a_failed_raise_is_retried_with_new_numbers() {
    let mut play = fenced(3);
    play.acquire(Plan::Tries(2));
    play.hear(0, &[drew(0, 7), drew(1, 8)]);
    let acts = play.at(3).hear(0, &[gone(0), gone(1)]);
    assert_eq!(acts, [Tell(Release, vec![0, 1, 2]), WaitUntil(203)]);
    assert_eq!(play.at(203).time_out(0), [Ask(AcquireFenced, 703)]);
    assert_eq!(play.hear(0, &[drew(0, 9), drew(1, 9)]), [ended("acquired")]);
    assert_eq!(token_of(&play), 9);
}

#[test]
fn a_raise_is_cut_short_with_its_attempt() {
    let mut play = fenced(3);
    play.acquire(Plan::Until(at(40)));
    let pause = play.at(1).hear(0, &[taken(0, 5_000), taken(1, 5_000)]);
    assert!(matches!(pause[..], [Tell(Release, _), WaitUntil(_)]), "{pause:?}");
    assert_eq!(play.at(3).time_out(0), [Ask(AcquireFenced, 65)]);
    let acts = play.at(5).hear(0, &[drew(0, 7), drew(1, 8)]);
    assert_eq!(acts, [Ask(RaiseFence, 65)]);
}

#[test]
fn without_fencing_there_is_no_token() {
    let (play, _) = Play::holding();
    assert_eq!(token_of(&play), 0);
}

#[test]
fn readers_and_permits_draw_no_token() {
    assert_eq!(fenced(3).read(Plan::Tries(1)), [Ask(Verb::Acquire, 500)]);
    assert_eq!(fenced(3).permit(Plan::Tries(1)), [Ask(Verb::Acquire, 500)]);
}

/// A server that has no number for the resource goes on from the proposed one.
#[test]
fn a_fenced_acquire_proposes_the_clock() {
    let mut play = fenced(3);
    play.acquire(Plan::Tries(1));
    let request = play.calls[0].as_ref().unwrap().request.as_ref().unwrap();
    let mut encoder = Encoder::default();
    let bytes = request.encoded(Capabilities::default(), &mut encoder).whole();
    let proposed = WALL_US.to_string();
    assert!(bytes.windows(proposed.len()).any(|it| it == proposed.as_bytes()));
}

#[test]
fn a_raise_seen_after_the_validity_is_too_slow() {
    let mut play = fenced(3);
    play.acquire(Plan::Tries(1));
    play.hear(0, &[drew(0, 7), drew(1, 8)]);
    assert!(play.say(0, &[yes(0), yes(1)]));
    let acts = play.at(VALID_MS).close(0);
    let end = "TooSlow: 2 of 3 servers stored the fencing token, 2 needed; too late: no validity left: c:1 not \
     waited for";
    assert_eq!(acts, [Tell(Release, vec![0, 1, 2]), ended(end)]);
}
