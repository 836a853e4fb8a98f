//! Waiting to be woken, and waking others: what is asked, and when a waiter that was told tries again.

use super::world::Act::Listen;
use super::*;
use crate::protocol::command::Verb::{
    Acquire, AcquireAgain, AnnounceWriter, JoinWaitlist, Leave, Release, ReleaseAndWake,
    ReleaseRestAndWake,
};
use crate::protocol::command::{Capabilities, Encoder, Slots};

/// The pause of the first client in line, with the random number that is always drawn: 200 ms and half of a
/// fourth of it.
const LOOK_MS: i64 = 225;

fn waking() -> Play {
    let play = Play::of(3);
    play.world.policy.set_waking(true);
    play
}

fn behind(server: usize, rank: u32) -> Word {
    (server, Answer::Enrolled { left_ms: 50_000, rank })
}

fn free(server: usize) -> Word {
    (server, Answer::Free)
}

fn mute(server: usize) -> Word {
    (server, Answer::Failed(Failure::Mute))
}

fn for_a_minute() -> Plan {
    Plan::Until(at(60_000))
}

/// A server tells that the resource is free.
fn push(play: &mut Play, call: usize, server: usize) -> Vec<Act> {
    let now = play.world.now;
    let heard = play.world.queues.pushed(b"r", server, |_| false, now);
    assert!(!heard.pass_on && heard.tell.len() == 1, "{heard:?}");
    assert_eq!(heard.tell[0].place(), call);
    play.happen(call, Event::Pushed { server })
}

/// Call 0 was refused at the beginning, and has stood in line since 1 ms later.
fn in_line() -> Play {
    let mut play = waking();
    assert_eq!(play.acquire(for_a_minute()), [Ask(Acquire, 500)]);
    let acts = play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    assert_eq!(acts, [Tell(ReleaseAndWake, vec![2]), Ask(JoinWaitlist, 500)]);
    let acts = play.at(1).hear(0, &[behind(0, 0), behind(1, 0)]);
    assert_eq!(acts, [Listen, WaitUntil(1 + LOOK_MS)]);
    play
}

#[test]
fn a_refused_waiter_enrols_and_tries_at_a_free_quorum() {
    let mut play = in_line();
    // Two round trips on average after the first message.
    assert_eq!(push(play.at(90), 0, 0), [Listen, WaitUntil(92)]);
    assert_eq!(push(play.at(91), 0, 1), [Listen, WaitUntil(90)]);
    assert_eq!(play.at(91).time_out(0), [Ask(AcquireAgain, 591)]);
    // It leaves the line on the server where it may still stand in line.
    let acts = play.at(92).hear(0, &[yes(0), yes(1)]);
    assert_eq!(acts, [Tell(Leave, vec![2]), ended("acquired")]);
    let tokens: Vec<_> = play.world.requests.iter().filter(|it| it.0.acquires()).collect();
    assert!(tokens.len() == 2 && tokens[0].1 != tokens[1].1, "each try has a token of its own");
}

#[test]
fn one_push_leads_to_a_try_and_a_new_place() {
    let mut play = in_line();
    assert_eq!(push(play.at(90), 0, 1), [Listen, WaitUntil(92)]);
    assert_eq!(play.at(92).time_out(0), [Ask(AcquireAgain, 592)]);
    let acts = play.at(93).hear(0, &[taken(0, 9_000), yes(1), taken(2, 9_000)]);
    assert_eq!(acts, [Tell(ReleaseAndWake, vec![1]), Ask(JoinWaitlist, 593)]);
    // It has released the lock on that server itself, so this is no news.
    let acts = play.at(94).hear(0, &[behind(0, 3), free(1), behind(2, 3)]);
    assert_eq!(acts, [Listen, WaitUntil(94 + 4 * LOOK_MS)]);
    // With that server, they are a quorum.
    assert_eq!(push(play.at(99), 0, 0), [Listen, WaitUntil(99)]);
}

/// Readers have the lock, and we stand in its line.
fn behind_readers(server: usize) -> Word {
    (server, Answer::EnrolledBehindReaders { left_ms: 50_000, rank: 0 })
}

fn readers(server: usize) -> Word {
    (server, Answer::Shared { readers: 2, left_ms: Some(50_000) })
}

#[test]
fn a_waiting_writer_repeats_its_announcement() {
    let mut play = waking();
    play.acquire(for_a_minute());
    play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    let acts = play.at(1).hear(0, &[behind_readers(0), behind_readers(1)]);
    let [Listen, Tell(AnnounceWriter, ref all), WaitUntil(226)] = acts[..] else {
        panic!("{acts:?}")
    };
    assert_eq!(all[..], [0, 1, 2]);
    // It looks again before it must announce its wait again.
    assert_eq!(play.at(226).time_out(0), [Ask(JoinWaitlist, 726)]);
    let acts = play.hear(0, &[behind_readers(0), behind_readers(1)]);
    let [Listen, Tell(AnnounceWriter, _), WaitUntil(451)] = acts[..] else { panic!("{acts:?}") };
    // The last reader wakes it. That is no reason to announce the wait again.
    assert_eq!(push(play.at(300), 0, 0), [Listen, WaitUntil(300)]);
    let acts = push(play.at(300), 0, 1);
    assert!(matches!(acts[..], [.., WaitUntil(300)]), "{acts:?}");
    assert_eq!(play.at(300).time_out(0), [Ask(AcquireAgain, 800)]);
    // Another reader was faster, so it stands in line as before.
    let acts = play.hear(0, &[readers(0), readers(1)]);
    let [Tell(ReleaseAndWake, _), Ask(JoinWaitlist, 800)] = acts[..] else { panic!("{acts:?}") };
    // One reader has left meanwhile.
    let acts = play.hear(0, &[free(0), free(1)]);
    assert_eq!(acts, [Ask(AcquireAgain, 800)]);
    let acts = play.hear(0, &[yes(0), yes(1)]);
    assert!(acts.contains(&Tell(Verb::WithdrawWriter, vec![0, 1, 2])), "{acts:?}");
}

#[test]
fn a_downgrade_wakes_enrolled_readers() {
    let (mut play, view) = Play::holding();
    play.world.policy.set_waking(true);
    let acts = play.submit(crate::protocol::operation::downgrade::Downgrade::new(view));
    assert_eq!(acts, [Ask(Verb::Downgrade, 500), Tell(Leave, vec![0, 1, 2])]);
}

#[test]
fn the_age_of_a_place_is_the_age_of_the_wait() {
    let mut play = in_line();
    for ms in [1 + LOOK_MS, 900] {
        assert_eq!(play.at(ms).time_out(0), [Ask(JoinWaitlist, ms + 500)]);
        play.hear(0, &[behind(0, 0), behind(1, 0)]);
    }
    let enrolled: Vec<_> = play.world.requests.iter().filter(|it| it.0 == JoinWaitlist).collect();
    assert!(enrolled.len() == 3 && enrolled.iter().all(|it| it.1 == enrolled[0].1));
}

#[test]
fn a_forgotten_waiter_looks_and_tries_at_a_free_quorum() {
    let mut play = in_line();
    let ms = 1 + LOOK_MS;
    assert_eq!(play.at(ms).time_out(0), [Ask(JoinWaitlist, ms + 500)]);
    assert_eq!(play.hear(0, &[free(0), free(1)]), [Ask(AcquireAgain, ms + 500)]);
}

#[test]
fn a_waiter_far_behind_looks_rarely_before_the_keys_expire() {
    for (rank, left_ms, until) in [(0, 50_000, LOOK_MS), (99, 50_000, 5_625), (99, 700, 701)] {
        let mut play = waking();
        play.acquire(for_a_minute());
        play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
        let place = |server| (server, Answer::Enrolled { left_ms, rank });
        let acts = play.hear(0, &[place(0), place(1)]);
        let [Listen, WaitUntil(at)] = acts[..] else { panic!("{acts:?}") };
        assert!((until - 8..=until).contains(&at), "{rank}, {left_ms}: {at}");
    }
}

#[test]
fn without_enough_pushing_servers_a_waiter_polls() {
    let mut plain = Play::of(3);
    plain.acquire(for_a_minute());
    let pause = plain.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    let mut play = waking();
    play.acquire(for_a_minute());
    play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    let acts = play.hear(0, &[mute(0), mute(1), mute(2)]);
    let [Listen, ref wait @ ..] = acts[..] else { panic!("{acts:?}") };
    assert_eq!(wait, &pause[1..], "the same pause");
    assert_eq!(play.at(1).time_out(0), [Ask(AcquireAgain, 501)]);
}

#[test]
fn one_server_without_pushes_causes_no_extra_requests() {
    let mut play = waking();
    play.acquire(for_a_minute());
    play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    let acts = play.hear(0, &[mute(2), behind(0, 0), behind(1, 0)]);
    assert_eq!(acts, [Listen, WaitUntil(LOOK_MS)]);
}

#[test]
fn a_waiter_that_ends_leaves_the_line() {
    let mut play = in_line();
    let acts = play.happen(0, Event::Cancelled { sent: ServerSet::default() });
    assert_eq!(acts, [Tell(Leave, vec![0, 1, 2]), ended("Cancelled: the call was cancelled")]);
    let mut play = waking();
    play.acquire(Plan::Until(at(100)));
    play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    assert_eq!(play.hear(0, &[behind(0, 0), behind(1, 0)]), [Listen, WaitUntil(100)]);
    // The last try is made, whatever the waiter was told.
    assert_eq!(play.at(100).time_out(0), [Ask(AcquireAgain, 125)]);
    let acts = play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    assert_eq!(acts[..2], [Tell(ReleaseAndWake, vec![2]), Tell(Leave, vec![0, 1, 2])]);
    assert!(matches!(&acts[2], Act::Ended(words) if words.starts_with("Taken: ")), "{acts:?}");
}

#[test]
fn a_cancelled_enrolment_is_undone_where_it_was_sent() {
    let mut play = waking();
    play.acquire(for_a_minute());
    play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    let acts = play.happen(0, Event::Cancelled { sent: [0, 2].into_iter().collect() });
    assert_eq!(acts, [Tell(Leave, vec![0, 2]), ended("Cancelled: the call was cancelled")]);
}

#[test]
fn a_call_with_tries_and_no_wait_does_not_enrol() {
    let mut play = waking();
    play.acquire(Plan::Tries(3));
    let acts = play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    assert_eq!(acts, [Tell(ReleaseAndWake, vec![2]), WaitUntil(200)]);
}

#[test]
fn without_randomness_no_waiter_enrols() {
    let mut play = waking();
    play.acquire(for_a_minute());
    play.world.random = None;
    let acts = play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    assert_eq!(acts[1], ended("Internal: no randomness"));
}

/// A lock that call 0 has taken.
fn holding() -> (Play, View) {
    let mut play = waking();
    play.acquire(Plan::Tries(1));
    assert_eq!(play.hear(0, &[yes(0), yes(1), yes(2)]), [ended("acquired")]);
    let view = play.view();
    (play, view)
}

#[test]
fn a_release_wakes_others_unless_a_local_waiter_exists() {
    let (mut play, view) = holding();
    assert_eq!(play.submit(super::super::release::Release::new(view)), [Ask(ReleaseAndWake, 500)]);
    let (mut play, view) = holding();
    assert_eq!(play.acquire(for_a_minute()), [WaitUntil(100)]);
    let acts = play.submit(super::super::release::Release::new(view));
    assert_eq!(acts, [Ask(Release, 500), GiveTurn(1)]);
}

#[test]
fn a_waker_looks_before_it_tries_again() {
    let (mut play, view) = holding();
    play.submit(super::super::release::Release::new(view));
    let woke = |server| (server, Answer::Woke);
    assert_eq!(play.at(1).hear(1, &[woke(0), yes(1), yes(2)]), [ended("released")]);
    // The woken client is given the time to take the lock: two round trips, and as much again at most.
    assert_eq!(play.acquire(for_a_minute()), [WaitUntil(4)]);
    assert_eq!(play.at(4).time_out(2), [Ask(JoinWaitlist, 504)]);
    let acts = play.at(5).hear(2, &[behind(0, 1), behind(1, 1)]);
    assert_eq!(acts, [Listen, WaitUntil(5 + 2 * LOOK_MS)]);
    // A caller that does not wait asks at once.
    assert_eq!(play.acquire(Plan::Until(at(5))), [Ask(Acquire, 505)]);
}

#[test]
fn a_push_during_a_try_counts_for_the_next() {
    let mut play = in_line();
    push(play.at(90), 0, 0);
    assert_eq!(play.at(92).time_out(0), [Ask(AcquireAgain, 592)]);
    let now = play.world.now;
    // The server has refused before, and tells now.
    assert!(!play.say(0, &[taken(0, 9_000)]));
    assert!(play.world.queues.pushed(b"r", 0, |_| false, now).tell.is_empty());
    let acts = play.hear(0, &[taken(1, 9_000)]);
    assert_eq!(acts, [Tell(ReleaseAndWake, vec![2]), Ask(JoinWaitlist, 592)]);
    // The waiter stands in line there again.
    let acts = play.hear(0, &[behind(0, 0), behind(1, 0)]);
    assert_eq!(acts, [Listen, WaitUntil(92 + LOOK_MS)]);
}

/// Otherwise a server that refuses falsely, and first, would make the waiter try again and again.
#[test]
fn a_free_server_without_a_refusal_is_no_news() {
    let mut play = waking();
    play.acquire(for_a_minute());
    let acts = play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    assert_eq!(acts, [Tell(ReleaseAndWake, vec![2]), Ask(JoinWaitlist, 500)]);
    let acts = play.hear(0, &[mute(0), behind(1, 0), free(2)]);
    assert_eq!(acts, [Listen, WaitUntil(LOOK_MS)]);
}

/// All permits are taken, and the waiter stands in line.
fn behind_all(server: usize) -> Word {
    let slots = Slots { got: None, taken: (0..3).collect(), left_ms: 50_000 };
    (server, Answer::EnrolledForPermit { slots, rank: 0 })
}

#[test]
fn a_permit_waiter_enrols_and_tries_at_any_free_slot() {
    let mut play = waking();
    assert_eq!(play.permit(for_a_minute()), [Ask(Acquire, 500)]);
    let none = [slots(0, None, &[0, 1, 2]), slots(1, None, &[0, 1, 2])];
    assert_eq!(play.hear(0, &none), [Tell(ReleaseAndWake, vec![2]), Ask(JoinWaitlist, 500)]);
    let acts = play.at(1).hear(0, &[behind_all(0), behind_all(1)]);
    assert_eq!(acts, [Listen, WaitUntil(1 + LOOK_MS)]);
    for (server, name, until) in [(0, &b"r#1"[..], 92), (1, b"r", 90)] {
        let heard = play.world.queues.pushed(name, server, |_| false, at(90));
        assert!(!heard.pass_on && heard.tell.len() == 1, "{heard:?}");
        assert_eq!(play.at(90).happen(0, Event::Pushed { server }), [Listen, WaitUntil(until)]);
    }
    assert!(matches!(play.time_out(0)[..], [Ask(_, 590)]));
    // It gives up other slots that it may have, and wakes waiters.
    let acts = play.hear(0, &[slots(0, Some(1), &[0, 2]), slots(1, Some(1), &[0, 2])]);
    assert_eq!(acts, [Tell(ReleaseRestAndWake, vec![2]), Tell(Leave, vec![2]), ended("acquired")]);
}

#[test]
fn a_slot_returned_by_the_own_try_is_no_news() {
    let mut play = waking();
    play.permit(for_a_minute());
    let each = [slots(0, Some(0), &[1, 2]), slots(1, None, &[0, 1, 2]), slots(2, None, &[0, 1, 2])];
    let acts = play.hear(0, &each);
    assert!(matches!(acts[..], [Tell(ReleaseAndWake, _), Ask(JoinWaitlist, _)]), "{acts:?}");
    let acts = play.hear(0, &[free(0), behind_all(1)]);
    assert!(matches!(acts[..], [Listen, WaitUntil(_)]), "one alone is no quorum: {acts:?}");
}

/// The message that it was told is used up, so it does not try again and again without a pause.
#[test]
fn a_pushed_waiter_without_servers_pauses() {
    let mut play = in_line();
    push(play.at(90), 0, 0);
    push(play.at(91), 0, 1);
    play.world.connected = 0;
    assert_eq!(play.time_out(0), [Prepare(2)]);
    play.prepared(0);
    assert_eq!(play.hear(0, &[down(0), down(1), down(2)]), [Prepare(usize::MAX)]);
    // The first pause is a part of a millisecond. It does not last until 90, the moment of the message.
    assert_eq!(play.prepared(0), [Listen, WaitUntil(91)]);
}

/// Of two servers, the second one counts. Of three, the one in the middle counts.
#[test]
fn the_rank_is_that_of_most_servers() {
    let mut play = waking();
    play.acquire(for_a_minute());
    play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    let acts = play.hear(0, &[behind(0, 0), behind(1, 3)]);
    assert_eq!(acts, [Listen, WaitUntil(4 * LOOK_MS)]);
}

/// A look that finds another client before it shows that there are others, as a refusal does.
#[test]
fn a_look_that_finds_others_shows_a_rival() {
    for (others, again) in [(true, WaitUntil(554)), (false, Ask(Acquire, 1_050))] {
        let mut play = in_line();
        assert_eq!(play.at(400).time_out(0), [Ask(JoinWaitlist, 900)]);
        let found = |server| if others { behind(server, 0) } else { free(server) };
        let acts = play.hear(0, &[found(0), found(1)]);
        if others {
            assert!(matches!(acts[..], [Listen, WaitUntil(_)]), "{acts:?}");
            push(&mut play, 0, 0);
            push(&mut play, 0, 1);
            play.time_out(0);
        }
        play.hear(0, &[yes(0), yes(1), yes(2)]);
        let view = play.view();
        play.at(550).submit(super::super::release::Release::new(view));
        assert_eq!(play.acquire(for_a_minute()), [again]);
    }
}

/// Its place in line is the one of a client that has waited since then.
#[test]
fn an_enrolment_sends_the_start_of_the_wait() {
    let mut play = waking();
    play.acquire(for_a_minute());
    play.hear(0, &[taken(0, 50_000), taken(1, 50_000)]);
    let request = play.calls[0].as_ref().and_then(|it| it.request.as_ref()).expect("a look");
    let mut bytes = Vec::new();
    request.encoded(Capabilities::WAKING, &mut Encoder::default()).put(None, &mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains(&format!("\r\n{}\r\n", world::WALL_US)), "{text}");
}
