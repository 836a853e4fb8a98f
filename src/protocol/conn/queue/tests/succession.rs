use std::sync::Arc;

use redis::Value;

use super::super::samples::{
    NOW, OTHER, SERVER, TICKET, fresh, long, of_semaphore, refused, request, send, settle,
};
use super::super::*;
use crate::protocol::command::identity::RunId;
use crate::protocol::command::{Answer, Told, Verb};
use crate::protocol::conn::guard::Guard;

#[test]
fn releases_outlive_the_connection_but_not_the_key() {
    let mut queue = fresh();
    queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
    queue.push(&request(Verb::Release), None, NOW);
    send(&mut queue, NOW);
    let mut told = Vec::new();
    queue.fail(|ticket, sent| told.push((ticket, sent)));
    assert_eq!(told, [(TICKET, true)]);
    assert!(send(&mut queue, NOW.plus_ms(9_999)) > 0);
    queue.fail(|_, _| {});
    assert_eq!(send(&mut queue, NOW.plus_ms(10_000)), 0);
}

#[test]
fn refused_releases_outlive_the_connection() {
    let mut queue = fresh();
    queue.push(&request(Verb::Release), None, NOW);
    send(&mut queue, NOW);
    settle(&mut queue, &[refused()]).unwrap();
    assert!(!queue.has_unsent());
    queue.fail(|_, _| {});
    assert!(send(&mut queue, NOW.plus_ms(9_999)) > 0);
}

#[test]
fn a_waiting_call_learns_whether_its_request_was_sent() {
    let mut queue = fresh();
    queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
    send(&mut queue, NOW);
    queue.push(&request(Verb::Acquire), Some(OTHER), NOW);
    let mut told = Vec::new();
    queue.fail(|ticket, sent| told.push((ticket, sent)));
    assert_eq!(told, [(TICKET, true), (OTHER, false)]);
}

#[test]
fn another_process_ends_all_requests_that_set_keys() {
    let (mut queue, told) = (fresh(), Told::new());
    let numbered = |verb, number| {
        let (resource, token) = (Arc::from(&b"r"[..]), Token::from_random([7; 20]));
        let request = Request::new(verb, resource, token, 10_000).numbered(number);
        Arc::new(request.before(told.observer()))
    };
    queue.remember(Some(RunId::sample('a')), Guard::default());
    let setters = [Verb::Acquire, Verb::AcquireAgain, Verb::AcquireFenced, Verb::Repair];
    let others = [Verb::Extend, Verb::Inspect, Verb::Release];
    for (verb, number) in setters.into_iter().chain(others).zip(1..) {
        queue.push(&numbered(verb, number), None, NOW);
    }
    queue.push(&of_semaphore(Verb::Move), None, NOW);
    send(&mut queue, NOW);
    queue.push(&numbered(Verb::Repair, 9), None, NOW);
    queue.fail(|_, _| {});
    assert_eq!(told.all(), [(SERVER, 9)], "it was never sent");
    queue.remember(Some(RunId::sample('a')), Guard::default());
    assert_eq!(told.all().len(), 1);
    queue.remember(Some(RunId::sample('b')), Guard::default());
    assert_eq!(told.all()[1..], [1, 2, 3, 4].map(|number| (SERVER, number)));
}

#[test]
fn requests_keep_their_order_on_a_new_connection() {
    let (mut old, mut new) = (fresh(), fresh());
    for token in 1..=3 {
        old.push(&long(Verb::Release, 1, token), None, NOW);
        if token < 3 {
            send(&mut old, NOW);
        }
    }
    settle(&mut old, &[refused()]).unwrap();
    new.repeat_required(&mut old);
    let tokens: Vec<Token> = new.requests.unsent().map(Entry::token).collect();
    assert_eq!(tokens, [1, 2, 3].map(|it| *long(Verb::Release, 1, it).token()));
}

#[test]
fn a_key_is_guarded_for_its_ttl_from_the_request() {
    let mut queue = fresh();
    for verb in [Verb::Release, Verb::Inspect] {
        queue.push(&request(verb), None, NOW);
    }
    send(&mut queue, NOW);
    assert_eq!(queue.guarded_until(), None);
    for ms in [3, 7] {
        queue.push(&request(Verb::Acquire), None, NOW);
        send(&mut queue, NOW.plus_ms(ms));
    }
    assert_eq!(queue.guarded_until(), Some(NOW.plus_ms(10_007)));
}

#[test]
fn one_release_is_wanted_behind_an_acquire() {
    let mut queue = fresh();
    let (ours, other) = (long(Verb::Release, 1, 1), long(Verb::Release, 1, 2));
    assert!(!queue.wants(&ours));
    queue.push(&long(Verb::Acquire, 1, 1), None, NOW);
    send(&mut queue, NOW);
    queue.push(&long(Verb::Inspect, 1, 1), None, NOW);
    assert!(queue.wants(&ours) && !queue.wants(&other));
    queue.push(&ours, None, NOW);
    assert!(!queue.wants(&ours));
    // The acquire is answered, so nothing of it can arrive late.
    settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
    assert!(!queue.wants(&ours));
}

/// An extension that is executed behind it would make the key live on.
#[test]
fn a_delayed_release_is_wanted_behind_an_extension() {
    let mut queue = fresh();
    let (after, release) = (request(Verb::ReleaseAfter), request(Verb::Release));
    queue.push(&request(Verb::Extend), None, NOW);
    send(&mut queue, NOW);
    assert!(queue.wants(&after) && !queue.wants(&release));
    queue.push(&after, None, NOW);
    assert!(!queue.wants(&after));
}

#[test]
fn freeing_other_slots_is_no_release() {
    let (mut old, mut new) = (fresh(), fresh());
    old.push(&of_semaphore(Verb::Acquire), None, NOW);
    assert!(old.wants(&of_semaphore(Verb::ReleaseRest)));
    old.push(&of_semaphore(Verb::ReleaseRest), None, NOW);
    // The held slot is released behind it.
    assert!(old.wants(&request(Verb::Release)));
    old.push(&request(Verb::Release), None, NOW);
    assert!(!old.wants(&request(Verb::Release)));
    send(&mut old, NOW);
    new.repeat_required(&mut old);
    new.repeat_required(&mut old);
    assert_eq!(new.length(), 2, "each of them once");
}

#[test]
fn releases_move_to_a_new_connection_with_their_callers() {
    let (mut old, mut new) = (fresh(), fresh());
    old.push(&long(Verb::Release, 1, 1), None, NOW);
    send(&mut old, NOW);
    settle(&mut old, &[refused()]).unwrap();
    old.push(&long(Verb::Acquire, 1, 2), Some(OTHER), NOW);
    old.push(&long(Verb::Release, 1, 2), Some(TICKET), NOW);
    send(&mut old, NOW);
    new.repeat_required(&mut old);
    assert_eq!((old.length(), new.length()), (2, 2));
    assert_eq!(new.abandon(TICKET), None);
    assert_eq!(old.abandon(TICKET), None, "nobody waits for it there any more");
    assert_eq!(old.abandon(OTHER), Some(NOW));
    send(&mut new, NOW);
    assert_eq!(new.length(), 2);
}

/// The release may have been executed first over the other connection.
#[test]
fn a_release_over_two_connections_may_have_worked() {
    let (mut old, mut new) = (fresh(), fresh());
    old.push(&request(Verb::Release), Some(TICKET), NOW);
    send(&mut old, NOW);
    new.repeat_required(&mut old);
    new.push(&request(Verb::Release), Some(OTHER), NOW);
    send(&mut new, NOW);
    for (ticket, answer) in [(TICKET, Answer::AbsentOrReleased), (OTHER, Answer::Absent)] {
        let told = settle(&mut new, &[Value::Int(0)]).unwrap();
        assert_eq!((told.ticket, told.answer), (Some(ticket), answer));
    }
}

#[test]
fn releases_do_not_multiply_with_connections() {
    let (mut old, mut new) = (fresh(), fresh());
    new.push(&request(Verb::Release), None, NOW);
    for _ in 0..9 {
        new.take_required(mem::replace(&mut old, fresh()), |_, _| {});
        send(&mut new, NOW);
        old = mem::replace(&mut new, fresh());
        new.repeat_required(&mut old);
        send(&mut new, NOW);
    }
    assert_eq!((old.length(), new.length()), (2, 1));
}
