use super::super::*;
use super::super::{QueueRank, TurnRequest, Wait};
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::op_id::OpId;
use crate::protocol::server_set::ServerSet;

const RESOURCE: &[u8] = b"r";

fn target() -> Target {
    Arc::<[u8]>::from(RESOURCE).into()
}

fn at_ms(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000).plus_ms(ms)
}

fn told(tickets: &[OpId]) -> Heard {
    Heard { tell: tickets.to_vec(), pass_on: false }
}

fn unwanted() -> Heard {
    Heard { tell: Vec::new(), pass_on: true }
}

/// One waiter, in line on servers 0 and 1.
fn waiting() -> (WaitQueues, u64, OpId) {
    let (mut queues, ticket) = (WaitQueues::default(), OpId::new(4, 1));
    let number = queues.join(&target(), None, at_ms(0));
    let turn = TurnRequest { is_urgent: false, is_last: false };
    queues.begin(&target(), number, turn, at_ms(0));
    assert!(queues.may_stand_in_line(&target(), number));
    let line = queues.line(&target(), number).unwrap();
    line.begin_look(4, 1);
    let heard = [(0, QueueRank::Behind(0)), (1, QueueRank::Behind(0))];
    line.note(&heard, ServerSet::default(), Default::default(), at_ms(0));
    let wait = Wait { pause_until: at_ms(200), until: at_ms(900) };
    queues.wait(&target(), number, ticket, wait, at_ms(0));
    (queues, number, ticket)
}

#[test]
fn only_the_waiting_head_gets_a_push() {
    let (mut queues, number, ticket) = waiting();
    assert_eq!(queues.pushed(RESOURCE, 0, |it| it != 4, at_ms(1)), told(&[ticket]));
    assert_ne!(queues.line(&target(), number).unwrap().due(2), Moment::NEVER);
    assert_eq!(queues.pushed(b"other", 0, |_| false, at_ms(1)), unwanted());
    assert_eq!(queues.leave_line(&target(), number), [(target(), ServerSet::first(2))]);
    assert_eq!(queues.pushed(RESOURCE, 1, |_| false, at_ms(1)), told(&[]));
    queues.leave(&target(), number, at_ms(1));
    assert_eq!(queues.pushed(RESOURCE, 1, |_| false, at_ms(1)), unwanted());
}

#[test]
fn a_leaving_waiter_hands_its_place_on() {
    let (mut queues, number, _) = waiting();
    let behind = queues.join(&target(), None, at_ms(0));
    assert!(queues.leave_line(&target(), number).is_empty());
    queues.leave(&target(), number, at_ms(1));
    assert!(queues.line(&target(), behind).unwrap().is_listening());
}

#[test]
fn a_waker_gives_the_woken_client_its_chance() {
    let mut queues = WaitQueues::default();
    queues.woke(&target(), at_ms(3), at_ms(1));
    assert!(queues.was_woken(&target(), at_ms(2)) && !queues.was_woken(&target(), at_ms(251)));
    let number = queues.join(&target(), None, at_ms(2));
    let turn = TurnRequest { is_urgent: false, is_last: false };
    let permission = queues.begin(&target(), number, turn, at_ms(2));
    assert_eq!(permission, Permission::NotYet);
    let permission = queues.begin(&target(), number, turn, at_ms(3));
    assert_eq!(permission, Permission::MayAsk);
}

fn semaphore(of: u16) -> Target {
    Target { kind: LockKind::Permit { of }, ..target() }
}

fn both() -> Target {
    let names: Arc<[Arc<[u8]>]> = [RESOURCE, b"s"].map(Arc::from).into();
    Target { kind: LockKind::Several(names), ..target() }
}

/// A waiter that was refused, in line on server 0. If the target is two resources, `bits` says for which of
/// them.
fn wait_for(queues: &mut WaitQueues, target: &Target, bits: u128, ticket: OpId) -> u64 {
    let number = queues.join(target, None, at_ms(0));
    let turn = TurnRequest { is_urgent: false, is_last: false };
    queues.begin(target, number, turn, at_ms(0));
    queues.refused(target, (number, bits), true, at_ms(0));
    assert!(queues.may_stand_in_line(target, number));
    queues.line(target, number).unwrap().begin_look(ticket.place(), 1);
    queues.lines_of(number, true);
    let line = queues.line(target, number).unwrap();
    line.note(&[(0, QueueRank::Behind(0))], ServerSet::default(), Default::default(), at_ms(0));
    let wait = Wait { pause_until: at_ms(200), until: at_ms(900) };
    queues.wait(target, number, ticket, wait, at_ms(0));
    number
}

#[test]
fn a_permit_waiter_gets_pushes_for_all_its_slots() {
    for (name, is_wanted) in [(&b"r"[..], true), (b"r#2", true), (b"r#3", false), (b"r#x", false)] {
        let (mut queues, ticket) = (WaitQueues::default(), OpId::new(4, 1));
        wait_for(&mut queues, &semaphore(3), 0, ticket);
        let heard = queues.pushed(name, 0, |_| false, at_ms(1));
        assert_eq!(heard.pass_on, !is_wanted);
        // The place in that line is lost if the slot is of no use to the semaphore.
        assert_eq!(heard.tell, if name == b"r#x" { vec![] } else { vec![ticket] });
    }
}

#[test]
fn a_lock_waiter_passes_on_pushes_for_other_slots() {
    let (mut queues, ticket) = (WaitQueues::default(), OpId::new(4, 1));
    let number = wait_for(&mut queues, &target(), 0, ticket);
    let heard = queues.pushed(b"r#1", 0, |_| false, at_ms(1));
    assert_eq!(heard, Heard { tell: vec![ticket], pass_on: true });
    let line = queues.line(&target(), number).unwrap();
    assert!(line.clone().take_lost_place() && line.due(1) == Moment::NEVER);
    line.begin_look(4, 1);
    assert!(!line.take_lost_place());
}

#[test]
fn a_waiter_for_two_hears_only_its_own_line() {
    let (mut queues, ticket) = (WaitQueues::default(), OpId::new(4, 1));
    let number = wait_for(&mut queues, &both(), 2, ticket);
    assert_eq!(queues.pushed(b"r", 0, |_| false, at_ms(1)), unwanted());
    assert_eq!(queues.pushed(b"s", 0, |_| false, at_ms(1)), told(&[ticket]));
    assert_ne!(queues.line(&both(), number).unwrap().due(1), Moment::NEVER);
    // It no longer has a place there once another resource is in the way.
    queues.line(&both(), number).unwrap().begin_look(4, 1);
    queues.refused(&both(), (number, 1), true, at_ms(2));
    let left = queues.leave_lines_behind(&both(), number);
    assert_eq!(left, [(Target::from(Arc::from(&b"s"[..])), ServerSet::first(1))]);
    assert!(queues.leave_lines_behind(&both(), number).is_empty());
}

#[test]
fn a_waiter_whose_place_was_taken_asks_again() {
    let (mut queues, [one, other]) = (WaitQueues::default(), [4, 5].map(|it| OpId::new(it, 1)));
    wait_for(&mut queues, &target(), 0, one);
    let number = wait_for(&mut queues, &semaphore(3), 0, other);
    let [left] = &queues.leave_line(&semaphore(3), number)[..] else { panic!() };
    assert_eq!(*left, (semaphore(3), ServerSet::first(1)));
    assert_eq!(queues.lose_places(left), [one]);
    assert_eq!(queues.lose_places(left), []);
}
#[test]
fn a_push_before_a_pending_answer_is_no_news() {
    let (mut queues, number, ticket) = waiting();
    assert_eq!(queues.pushed(RESOURCE, 0, |it| it == 4, at_ms(1)), told(&[ticket]));
    assert_eq!(queues.line(&target(), number).unwrap().due(2), Moment::NEVER);
}

#[test]
fn each_waiter_hears_its_own_line() {
    let (mut queues, [one, other]) = (WaitQueues::default(), [4, 5].map(|it| OpId::new(it, 1)));
    let first = wait_for(&mut queues, &both(), 2, one);
    let alone = Target::from(Arc::from(&b"t"[..]));
    let second = wait_for(&mut queues, &alone, 0, other);
    assert_eq!(queues.pushed(b"t", 0, |_| false, at_ms(1)), told(&[other]));
    assert_ne!(queues.line(&alone, second).unwrap().due(1), Moment::NEVER);
    assert_eq!(queues.line(&both(), first).unwrap().due(1), Moment::NEVER);
}

#[test]
fn a_late_push_for_an_old_place_is_dropped() {
    let (mut queues, ticket) = (WaitQueues::default(), OpId::new(4, 1));
    let number = wait_for(&mut queues, &target(), 0, ticket);
    assert_eq!(queues.leave_line(&target(), number).len(), 1);
    queues.leave(&target(), number, at_ms(1));
    queues.join(&both(), None, at_ms(1));
    assert_eq!(queues.pushed(RESOURCE, 0, |_| false, at_ms(1)), told(&[]));
}

#[test]
fn a_waiter_for_two_leaves_its_line() {
    let left = [(Target::from(Arc::from(&b"s"[..])), ServerSet::first(1))];
    let (mut queues, ticket) = (WaitQueues::default(), OpId::new(4, 1));
    let number = wait_for(&mut queues, &both(), 2, ticket);
    assert_eq!(queues.leave_line(&both(), number), left);
    let (mut queues, ticket) = (WaitQueues::default(), OpId::new(4, 1));
    let number = wait_for(&mut queues, &both(), 2, ticket);
    assert_eq!(queues.end_line(&both(), number), left);
}

#[test]
fn a_waiter_for_two_enrols_where_it_was_refused() {
    let mut queues = WaitQueues::default();
    let number = queues.join(&both(), None, at_ms(0));
    queues.refused(&both(), (number, 0b10), true, at_ms(0));
    assert_eq!(queues.lines_of(number, false), 0b10);
    // As long as it was not refused again, the resource that was in the way may still be.
    queues.begin(&both(), number, TurnRequest { is_urgent: true, is_last: false }, at_ms(0));
    queues.refused(&both(), (number, 0b01), true, at_ms(1));
    assert_eq!(queues.lines_of(number, false), 0b10);
    assert_eq!(queues.lines_of(number, true), 0b11);
}

#[test]
fn an_unkept_place_is_not_taken_back() {
    let (mut queues, ticket) = (WaitQueues::default(), OpId::new(4, 1));
    let number = wait_for(&mut queues, &both(), 2, ticket);
    queues.leave_line(&both(), number);
    queues.leave(&both(), number, at_ms(1));
    let next = queues.join(&both(), None, at_ms(1));
    assert_eq!(queues.lines_of(next, false) & 0b11, 0b11);
}

#[test]
fn semaphores_of_one_name_share_places() {
    let (mut queues, [one, other]) = (WaitQueues::default(), [4, 5].map(|it| OpId::new(it, 1)));
    wait_for(&mut queues, &semaphore(3), 0, one);
    wait_for(&mut queues, &semaphore(5), 0, other);
    let left = (semaphore(3), ServerSet::first(1));
    assert_eq!(queues.lose_places(&left), [other]);
    // It has no place any more.
    assert_eq!(queues.lose_places(&left), []);
}

#[test]
fn a_waiter_behind_another_does_not_enrol() {
    let mut queues = WaitQueues::default();
    let first = queues.join(&target(), None, at_ms(0));
    let second = queues.join(&target(), None, at_ms(0));
    let several = queues.join(&both(), None, at_ms(0));
    assert!(queues.may_stand_in_line(&target(), first));
    assert!(!queues.may_stand_in_line(&target(), second));
    assert!(!queues.may_stand_in_line(&both(), several));
}
