//! A permit of a semaphore: any slot on a quorum, moving to one slot, and releasing the rest.

use super::*;
use crate::protocol::command::Verb::{Acquire, Extend, Move, Release, ReleaseRest, Repair};
use crate::protocol::command::{Capabilities, Encoder};

/// The tokens of the requests so far, without their resources.
fn tokens(play: &Play) -> Vec<String> {
    play.world.requests.iter().map(|it| it.1.as_str()[..2].to_owned()).collect()
}

/// The servers that the last request was for.
fn asked(play: &Play) -> Vec<usize> {
    let request = play.calls[0].as_ref().and_then(|it| it.request.as_ref()).expect("a request");
    (0..play.world.roster.len()).filter(|&server| request.is_for(server)).collect()
}

#[test]
fn a_quorum_gives_a_permit_and_frees_other_slots() {
    let mut play = Play::of(3);
    assert_eq!(play.at(7).permit(Plan::Tries(1)), [Ask(Acquire, 507)]);
    assert_eq!(play.at(10).hear(0, &[slots(0, Some(1), &[])]), []);
    let acts = play.at(20).hear(0, &[slots(1, Some(1), &[0])]);
    // The third server may have given another slot.
    assert_eq!(acts, [Tell(ReleaseRest, vec![2]), ended("acquired")]);
    let view = play.view();
    assert_eq!(view.held_lock().valid_until(), at(7 + VALID_MS));
    assert_eq!(&*view.held_lock().key().resource, b"r#1");
    assert_eq!(&**view.held_lock().resource(), b"r");
    assert_eq!([0, 1, 2].map(|server| view.is_sound(server)), [true, true, false]);
    assert_eq!(view.servers(), ServerSet::first(3));
}

#[test]
fn with_equal_slots_nothing_is_freed() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    let all = [0, 1, 2].map(|server| slots(server, Some(1), &[]));
    assert_eq!(play.hear(0, &all), [ended("acquired")]);
    let view = play.view();
    // The third server is judged by the time of the acquire, as with any lock.
    assert_eq!([0, 1, 2].map(|server| view.is_sound(server)), [true; 3]);
}

#[test]
fn different_slots_move_to_one_with_the_same_token() {
    let mut play = Play::of(3);
    assert_eq!(play.at(7).permit(Plan::Tries(1)), [Ask(Acquire, 507)]);
    assert_eq!(play.hear(0, &[slots(0, Some(2), &[1]), slots(1, Some(0), &[1])]), []);
    // The third server has given slot 1, which others have on the first two servers.
    assert_eq!(play.at(9).hear(0, &[slots(2, Some(1), &[])]), [Ask(Move, 509)]);
    assert_eq!(play.hear(0, &[slots(0, Some(2), &[1])]), []);
    let acts = play.at(11).hear(0, &[slots(1, Some(2), &[1])]);
    assert_eq!(acts, [Tell(ReleaseRest, vec![2]), ended("acquired")]);
    assert_eq!(tokens(&play), ["01", "01", "01"]);
    let view = play.view();
    assert_eq!(&*view.held_lock().key().resource, b"r#2");
    assert_eq!(view.held_lock().valid_until(), at(7 + VALID_MS), "since it was asked for first");
}

#[test]
fn an_impossible_permit_is_released_and_retried() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(2));
    let none = [slots(0, None, &[0, 1, 2]), slots(1, None, &[0, 1, 2])];
    // The third server may have given a slot.
    assert_eq!(play.at(4).hear(0, &none), [Tell(Release, vec![2]), WaitUntil(204)]);
    assert_eq!(play.at(204).time_out(0), [Ask(Acquire, 704)]);
    let words = "Taken: 1 of 3 servers granted the same permit, 2 needed: a:1 all 3 permits taken \
                 (the next expires in 4000 ms), b:1 granted another (0 of 3 are free), c:1 all 3 permits \
                 taken (the next expires in 4000 ms)";
    let answers =
        [slots(0, None, &[0, 1, 2]), slots(1, Some(1), &[0, 2]), slots(2, None, &[0, 1, 2])];
    let acts = play.at(210).hear(0, &answers);
    assert_eq!(acts[0], Tell(Release, vec![1]));
    let words = words.replace("b:1 granted another (0 of 3 are free), ", "");
    assert_eq!(acts[1], ended(&words));
    assert_eq!(tokens(&play), ["01", "01", "02", "02"]);
}

#[test]
fn an_agreement_after_the_decision_is_reported() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    let acts = play.hear(0, &[refused(0), refused(1), slots(2, Some(1), &[])]);
    let words = "Unreachable: 0 of 3 servers granted the same permit, 2 needed: a:1 OOM: out of memory, \
                 b:1 OOM: out of memory, c:1 agreed later";
    assert_eq!(acts[1], ended(words));
}

#[test]
fn a_lost_move_is_retried_and_then_pauses() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    let spread = |play: &mut Play| {
        play.hear(0, &[slots(0, Some(0), &[]), slots(1, Some(1), &[]), slots(2, Some(2), &[])])
    };
    for _ in 0..3 {
        assert_eq!(spread(&mut play), [Ask(Move, 500)]);
    }
    let acts = spread(&mut play);
    assert_eq!(acts[0], Tell(Release, vec![0, 1, 2]));
    let Act::Ended(words) = &acts[1] else { panic!("{acts:?}") };
    assert!(
        words.starts_with("Taken: 1 of 3 servers granted the same permit, 2 needed: "),
        "{words}"
    );
    assert!(words.contains("granted another permit (2 of 3 free)"), "{words}");
}

#[test]
fn a_move_releases_earlier_slots_elsewhere() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    assert_eq!(play.hear(0, &[slots(0, Some(0), &[]), slots(1, Some(1), &[])]), []);
    assert_eq!(play.hear(0, &[refused(2)]), [Ask(Move, 500)]);
    // The first server is down by now, and still has the slot that it has given.
    play.world.down = ServerSet::default().with(0);
    let acts = play.hear(0, &[down(0), slots(1, None, &[1]), refused(2)]);
    assert_eq!(acts[0], Tell(Release, vec![0, 2]));
}

#[test]
fn a_permit_without_validity_is_too_slow() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    let both = [slots(0, Some(1), &[]), slots(1, Some(1), &[])];
    let acts = play.at(VALID_MS).hear(0, &both);
    assert_eq!(acts[0], Tell(Release, vec![0, 1, 2]));
    let Act::Ended(words) = &acts[1] else { panic!("{acts:?}") };
    assert!(words.starts_with("TooSlow: 2 of 3 servers granted the same permit"), "{words}");
    // Nothing is moved then, either.
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    play.hear(0, &[slots(0, Some(0), &[]), slots(1, Some(1), &[])]);
    let acts = play.at(VALID_MS).hear(0, &[slots(2, Some(2), &[])]);
    assert_eq!(acts[0], Tell(Release, vec![0, 1, 2]));
}

#[test]
fn an_extension_moves_a_server_to_the_held_slot() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    let late = [slots(0, Some(1), &[]), slots(2, Some(0), &[1]), slots(1, Some(1), &[])];
    assert_eq!(play.hear(0, &late), [Tell(ReleaseRest, vec![2]), ended("acquired")]);
    let view = play.view();
    assert!(!view.is_sound(2) && !view.is_lost());
    let extend = crate::protocol::operation::extend::Extend::new(view.clone(), TTL);
    assert_eq!(play.at(100).submit(extend), [Ask(Extend, 600)]);
    let acts = play.hear(1, &[extended(0), extended(1)]);
    assert_eq!(acts, [Tell(Repair, vec![2]), ended("extended")]);
    assert_eq!(play.world.told.as_ref().unwrap().resource(), b"r#1");
}

#[test]
fn a_cancelled_move_releases_all_slots() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    play.hear(0, &[slots(0, Some(0), &[]), slots(1, Some(1), &[])]);
    assert_eq!(play.hear(0, &[slots(2, Some(2), &[])]), [Ask(Move, 500)]);
    let sent = ServerSet::default().with(1);
    let acts = play.happen(0, Event::Cancelled { sent });
    assert_eq!(acts[0], Tell(Release, vec![0, 1, 2]));
}

#[test]
fn a_release_hands_the_permit_to_the_next_waiter() {
    let mut play = Play::of(3);
    for call in 0..3 {
        assert_eq!(play.permit(Plan::Tries(1)), [Ask(Acquire, 500)], "{call}");
        let slot = u16::try_from(call).unwrap();
        let given = [0, 1, 2].map(|server| slots(server, Some(slot), &[]));
        assert_eq!(play.hear(call, &given), [ended("acquired")]);
    }
    let view = play.view();
    // This manager has all permits, so nobody asks.
    assert_eq!(play.permit(Plan::Until(at(60_000))), [WaitUntil(100)]);
    assert_eq!(play.permit(Plan::Until(at(60_000))), [WaitUntil(1_000)]);
    let acts = play.at(5).submit(crate::protocol::operation::release::Release::new(view));
    assert_eq!(acts, [Ask(Release, 505), GiveTurn(3)]);
    assert_eq!(play.world.requests.last().unwrap().0, Release);
    assert_eq!(play.happen(3, Event::YourTurn), [Ask(Acquire, 505)]);
}

#[test]
fn a_permit_seen_too_late_is_too_slow() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    assert!(play.say(0, &[slots(0, Some(1), &[]), slots(1, Some(1), &[])]));
    let acts = play.at(VALID_MS).close(0);
    assert_eq!(acts[0], Tell(Release, vec![0, 1, 2]));
    assert!(matches!(&acts[1], Act::Ended(it) if it.starts_with("TooSlow: 2 of 3")), "{acts:?}");
}

/// It may carry out the attempt later than the move, over a connection that was lost. Then it would take our token
/// away from the slot that it has reported.
#[test]
fn a_silent_server_is_not_moved_but_may_vouch_later() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    play.at(500).hear(0, &[slots(0, Some(1), &[]), slots(1, Some(0), &[])]);
    assert_eq!(play.time_is_up(0), [Ask(Move, 1_000)]);
    assert_eq!(asked(&play), [0, 1]);
    let acts = play.hear(0, &[slots(0, Some(1), &[]), slots(1, Some(1), &[])]);
    assert_eq!(acts, [Tell(ReleaseRest, vec![2]), ended("acquired")]);
    // This is still in time.
    let (_, late) = slots(2, Some(1), &[]);
    play.view().observer().hear(2, (Acquire, 0), &late, at(500));
    assert!(play.view().is_sound(2));
}

#[test]
fn a_server_silent_in_one_move_is_not_moved_again() {
    let mut play = Play::of(5);
    play.permit(Plan::Tries(1));
    let spread = [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1)];
    let spread = spread.map(|(server, slot)| slots(server, Some(slot), &[]));
    assert_eq!(play.hear(0, &spread), [Ask(Move, 500)]);
    assert_eq!(asked(&play), [0, 1, 2, 3, 4]);
    // Others have taken slot 0 meanwhile. Slot 1 is on two servers, and free on two more.
    let forestalled = [(0, 0, &[][..]), (1, 1, &[0]), (2, 2, &[0]), (4, 1, &[0])];
    let forestalled = forestalled.map(|(server, slot, others)| slots(server, Some(slot), others));
    play.at(500).hear(0, &forestalled);
    assert_eq!(play.time_is_up(0), [Ask(Move, 1_000)]);
    assert_eq!(asked(&play), [0, 1, 2, 4]);
    // A move that is refused by these releases what may be left, on that server, too.
    let acts = play.hear(0, &[0, 1, 2, 4].map(refused));
    assert_eq!(acts[0], Tell(Release, vec![0, 1, 2, 3, 4]));
}

/// Too few servers have said that a slot is free or ours.
#[test]
fn unheard_servers_cause_no_move() {
    let mut play = Play::of(5);
    play.permit(Plan::Tries(1));
    let answers = [
        slots(0, Some(0), &[1, 2]),
        slots(1, Some(1), &[2]),
        slots(2, None, &[0, 1, 2]),
        slots(3, None, &[0, 1, 2]),
    ];
    let acts = play.hear(0, &answers);
    assert_eq!(acts[0], Tell(Release, vec![0, 1, 4]));
}

#[test]
fn a_late_grant_of_the_slot_does_not_vouch() {
    for (late_ms, is_sound) in [(500, true), (501, false)] {
        let mut play = Play::of(3);
        play.permit(Plan::Tries(1));
        let both = [slots(0, Some(1), &[]), slots(1, Some(1), &[])];
        play.hear(0, &both);
        let (_, late) = slots(2, Some(1), &[]);
        play.view().observer().hear(2, (Acquire, 0), &late, at(late_ms));
        assert_eq!(play.view().is_sound(2), is_sound, "{late_ms}");
    }
}

#[test]
fn a_move_is_bounded_by_the_validity() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    play.hear(0, &[slots(0, Some(0), &[]), slots(1, Some(1), &[])]);
    let acts = play.at(VALID_MS - 100).hear(0, &[slots(2, Some(2), &[])]);
    assert_eq!(acts, [Ask(Move, VALID_MS)]);
}

#[test]
fn the_held_slot_is_not_freed_with_the_rest() {
    let mut play = Play::of(3);
    play.permit(Plan::Tries(1));
    play.hear(0, &[slots(0, Some(1), &[]), slots(1, Some(1), &[])]);
    let request = play.world.told.take().expect("the rest is given up");
    let mut bytes = Vec::new();
    request.encoded(Capabilities::PLAIN, &mut Encoder::default()).put(None, &mut bytes);
    // The last argument is the number of the slot that stays, from 1.
    assert!(bytes.ends_with(b"$1\r\n2\r\n"), "{}", String::from_utf8_lossy(&bytes));
}
