use super::super::*;
use crate::protocol::lock::Lock;
use crate::protocol::token::Token;
use crate::protocol::wait_queue::turn::Next;

const PATIENT: TurnRequest = TurnRequest { is_urgent: false, is_last: false };
const WAIT: Wait = Wait { pause_until: Moment::NEVER, until: Moment::NEVER };

fn at_ms(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000).plus_ms(ms)
}

fn several(names: &[&str]) -> Target {
    let names: Vec<Arc<[u8]>> = names.iter().map(|it| Arc::from(it.as_bytes())).collect();
    Target { resource: Arc::clone(&names[0]), kind: LockKind::Several(Arc::from(names)) }
}

fn one(name: &str) -> Target {
    Target::from(Arc::from(name.as_bytes()))
}

fn name(name: &[u8]) -> Arc<[u8]> {
    Arc::from(name)
}

fn ticket(number: u64) -> OpId {
    OpId::new(usize::try_from(number).expect("few"), number)
}

/// Takes a lock for ten seconds, at this time.
fn taken(queues: &mut WaitQueues, target: &Target, number: u64, ms: i64) -> Arc<Lock> {
    assert_eq!(queues.begin(target, number, PATIENT, at_ms(ms)), Permission::MayAsk);
    let token = Token::from_random([u8::try_from(number).expect("few"); 20]);
    let lock = Lock::of_one_server(&target.resource, token, (at_ms(ms), 10_000));
    let lock = Arc::new(lock);
    queues.acquired(target, number, &lock);
    lock
}

/// Joins, may not ask, and waits.
fn waiting(queues: &mut WaitQueues, target: &Target, ms: i64) -> u64 {
    let number = queues.join(target, None, at_ms(ms));
    let permission = queues.begin(target, number, PATIENT, at_ms(ms));
    assert_ne!(permission, Permission::MayAsk);
    wait(queues, target, number, ms);
    number
}

fn wait(queues: &mut WaitQueues, target: &Target, number: u64, ms: i64) -> (Vec<OpId>, Moment) {
    let told = queues.step_aside(target, number, WAIT, at_ms(ms));
    (told, queues.wait(target, number, ticket(number), WAIT, at_ms(ms)))
}

fn place(nth: u16) -> NthKey {
    NthKey { nth, of: 2 }
}

#[test]
fn a_waiter_for_several_needs_its_turn_in_all_queues() {
    let (mut queues, both, b) = (WaitQueues::default(), several(&["a", "b"]), one("b"));
    let holder = queues.join(&b, None, at_ms(0));
    let lock = taken(&mut queues, &b, holder, 0);
    let number = queues.join(&both, None, at_ms(1));
    let blocked = queues.begin(&both, number, PATIENT, at_ms(1));
    let Permission::Blocked { place: found, left_ms: Some(left_ms) } = blocked else {
        panic!("{blocked:?}");
    };
    assert_eq!(found, place(2));
    assert!((9_000..10_000).contains(&left_ms));
    wait(&mut queues, &both, number, 1);
    assert_eq!(
        queues.release(&lock, &name(b"b"), at_ms(2)),
        (Next::Tell(vec![ticket(number)]), false)
    );
    assert!(queues.end_wait(&both, number, WAIT, at_ms(2)));
    assert_eq!(queues.begin(&both, number, PATIENT, at_ms(2)), Permission::MayAsk);
}

#[test]
fn all_queues_keep_the_order_of_arrival() {
    let mut queues = WaitQueues::default();
    let (one_way, other_way) = (several(&["a", "b"]), several(&["b", "a"]));
    let first = queues.join(&one_way, None, at_ms(0));
    let second = queues.join(&other_way, None, at_ms(0));
    let blocked = Permission::Blocked { place: place(1), left_ms: None };
    assert_eq!(queues.begin(&other_way, second, PATIENT, at_ms(0)), blocked);
    assert_eq!(queues.begin(&one_way, first, PATIENT, at_ms(0)), Permission::MayAsk);
    assert_eq!(queues.leave(&one_way, first, at_ms(1)), []);
    assert_eq!(queues.begin(&other_way, second, PATIENT, at_ms(1)), Permission::MayAsk);
    assert_eq!(queues.leave(&other_way, second, at_ms(2)), []);
    assert!(queues.queues.is_empty() && queues.several.is_empty());
}

/// The lock of "b" is held. One waiter wants both resources, and another wants "a" alone.
fn held_up() -> (WaitQueues, Arc<Lock>, u64, u64) {
    let (mut queues, b) = (WaitQueues::default(), one("b"));
    let holder = queues.join(&b, None, at_ms(0));
    let lock = taken(&mut queues, &b, holder, 0);
    let both = waiting(&mut queues, &several(&["a", "b"]), 1);
    let alone = waiting(&mut queues, &one("a"), 2);
    (queues, lock, both, alone)
}

#[test]
fn a_free_resource_is_reserved_only_for_a_while() {
    let (mut queues, lock, both, alone) = held_up();
    let target = several(&["a", "b"]);
    let (told, until) = wait(&mut queues, &target, both, 50);
    assert_eq!((told, until), (Vec::new(), at_ms(1).plus_ms(HOLD_UP_MS)));
    assert!(!queues.end_wait(&target, both, WAIT, until));
    let (told, until) = wait(&mut queues, &target, both, 1 + HOLD_UP_MS);
    assert_eq!(told, [ticket(alone)]);
    assert!(until > at_ms(1 + HOLD_UP_MS));
    assert!(queues.end_wait(&one("a"), alone, WAIT, at_ms(102)));
    let other = taken(&mut queues, &one("a"), alone, 102);
    // The waiter is back in that queue when it may have the other resource, before waiters that came later.
    let later = waiting(&mut queues, &one("a"), 103);
    assert_eq!(
        queues.release(&lock, &name(b"b"), at_ms(104)),
        (Next::Tell(vec![ticket(both)]), false)
    );
    assert!(queues.end_wait(&target, both, WAIT, at_ms(104)));
    let blocked = queues.begin(&target, both, PATIENT, at_ms(104));
    assert!(matches!(blocked, Permission::Blocked { place: NthKey { nth: 1, .. }, .. }));
    wait(&mut queues, &target, both, 104);
    let position = queues.begin(&one("a"), later, PATIENT, at_ms(105));
    assert!(matches!(position, Permission::Held { .. }), "{position:?}");
    queues.release(&other, &name(b"a"), at_ms(106));
    // It stands behind the waiter that was the first by then.
    let alone_again = taken(&mut queues, &one("a"), later, 106);
    queues.release(&alone_again, &name(b"a"), at_ms(107));
    assert!(queues.end_wait(&target, both, WAIT, at_ms(107)));
    assert_eq!(queues.begin(&target, both, PATIENT, at_ms(107)), Permission::MayAsk);
}

#[test]
fn a_refusal_frees_the_other_resources_at_once() {
    let (mut queues, target) = (WaitQueues::default(), several(&["a", "b"]));
    let both = queues.join(&target, None, at_ms(0));
    assert_eq!(queues.begin(&target, both, PATIENT, at_ms(0)), Permission::MayAsk);
    let alone = waiting(&mut queues, &one("a"), 1);
    assert_eq!(queues.refused(&target, (both, 0b10), true, at_ms(2)), [ticket(alone)]);
    assert!(queues.end_wait(&one("a"), alone, WAIT, at_ms(2)));
    assert_eq!(queues.begin(&one("a"), alone, PATIENT, at_ms(2)), Permission::MayAsk);
    // Only the resource that is in the way is known to be held by another client.
    assert!(queues.queues[&one("b").resource].has_rivals(at_ms(3)));
    assert!(!queues.queues[&one("a").resource].has_rivals(at_ms(3)));
    // Without that information, the waiter can only wait.
    assert_eq!(queues.refused(&target, (both, 0), false, at_ms(4)), []);
}

#[test]
fn a_run_of_hand_overs_among_waiters_for_several_ends() {
    let (mut queues, target) = (WaitQueues::default(), several(&["a", "b"]));
    let mut number = queues.join(&target, None, at_ms(0));
    let mut lock = taken(&mut queues, &target, number, 0);
    // The run lasts as long as among waiters that want one resource.
    for ms in 1..200 {
        number = waiting(&mut queues, &target, ms);
        for resource in [name(b"a"), name(b"b")] {
            let next = Next::Tell(vec![ticket(number)]);
            assert_eq!(queues.release(&lock, &resource, at_ms(ms)), (next, false));
        }
        assert!(queues.end_wait(&target, number, WAIT, at_ms(ms)));
        lock = taken(&mut queues, &target, number, ms);
    }
    number = waiting(&mut queues, &target, 200);
    assert_eq!(
        queues.release(&lock, &name(b"a"), at_ms(200)),
        (Next::Tell(vec![ticket(number)]), true)
    );
}

#[test]
fn a_returning_waiter_keeps_its_place() {
    let (mut queues, lock, both, alone) = held_up();
    let target = several(&["a", "b"]);
    wait(&mut queues, &target, both, 50);
    wait(&mut queues, &target, both, 50 + HOLD_UP_MS);
    assert!(queues.end_wait(&one("a"), alone, WAIT, at_ms(151)));
    let other = taken(&mut queues, &one("a"), alone, 151);
    let head = waiting(&mut queues, &one("a"), 152);
    let last = waiting(&mut queues, &one("a"), 153);
    queues.release(&lock, &name(b"b"), at_ms(154));
    assert!(queues.end_wait(&target, both, WAIT, at_ms(154)));
    queues.begin(&target, both, PATIENT, at_ms(154));
    wait(&mut queues, &target, both, 154);
    assert_eq!(queues.release(&other, &name(b"a"), at_ms(155)), (Next::Ask(ticket(head)), false));
    assert_eq!(queues.leave(&one("a"), head, at_ms(156)), [ticket(both)]);
    assert_eq!(queues.leave(&target, both, at_ms(157)), [ticket(last)]);
}

#[test]
fn a_waiter_behind_others_reserves_nothing() {
    let (mut queues, _hold, _, _) = held_up();
    let target = several(&["a", "b"]);
    let last = waiting(&mut queues, &target, 3);
    assert!(queues.several[&last].holds_up_since.is_none());
}

/// Two want both resources. Each of them is the first one for one of the two.
#[test]
fn a_waiting_head_makes_way_for_an_earlier_waiter() {
    let (mut queues, b, target) = (WaitQueues::default(), one("b"), several(&["a", "b"]));
    let holder = queues.join(&b, None, at_ms(0));
    let lock = taken(&mut queues, &b, holder, 0);
    let [first, second] = [1, 2].map(|ms| waiting(&mut queues, &target, ms));
    let (told, _) = wait(&mut queues, &target, first, 1 + HOLD_UP_MS);
    assert_eq!(told, [ticket(second)]);
    assert!(!queues.end_wait(&target, second, WAIT, at_ms(102)));
    wait(&mut queues, &target, second, 102);
    let next = queues.release(&lock, &name(b"b"), at_ms(103)).0;
    assert_eq!(next, Next::Tell(vec![ticket(first)]));
    assert!(queues.end_wait(&target, first, WAIT, at_ms(103)));
    let lock = taken(&mut queues, &target, first, 103);
    for name in [name(b"a"), name(b"b")] {
        let next = queues.release(&lock, &name, at_ms(104)).0;
        assert_eq!(next, Next::Tell(vec![ticket(second)]));
    }
    assert!(queues.end_wait(&target, second, WAIT, at_ms(104)));
    assert_eq!(queues.begin(&target, second, PATIENT, at_ms(104)), Permission::MayAsk);
}

#[test]
fn of_two_blocking_resources_the_longer_one_is_named() {
    for (a_ms, b_ms, nth) in [(0, 500, 2), (500, 0, 1)] {
        let (mut queues, both) = (WaitQueues::default(), several(&["a", "b"]));
        for (name, ms) in [("a", a_ms), ("b", b_ms)] {
            let holder = queues.join(&one(name), None, at_ms(ms));
            taken(&mut queues, &one(name), holder, ms);
        }
        let number = queues.join(&both, None, at_ms(500));
        let blocked = queues.begin(&both, number, PATIENT, at_ms(500));
        assert!(matches!(blocked, Permission::Blocked { place: it, .. } if it == place(nth)));
    }
}

/// The waiter comes back for the other resource when the one in the way is free.
#[test]
fn a_look_for_one_resource_does_not_reserve_the_other() {
    let (mut queues, both, a) = (WaitQueues::default(), several(&["a", "b"]), one("a"));
    let number = queues.join(&both, None, at_ms(0));
    assert_eq!(queues.begin(&both, number, PATIENT, at_ms(0)), Permission::MayAsk);
    queues.refused(&both, (number, 0b10), true, at_ms(1));
    queues.stand_back(&both, b"b", at_ms(900));
    let blocked = queues.begin(&both, number, PATIENT, at_ms(2));
    assert!(matches!(blocked, Permission::Blocked { .. }), "{blocked:?}");
    let other = queues.join(&a, None, at_ms(3));
    assert_eq!(queues.begin(&a, other, PATIENT, at_ms(3)), Permission::MayAsk);
    assert!(queues.may_stand_in_line(&a, other), "it is the head there");
}

#[test]
fn a_due_waiter_for_several_does_not_wait() {
    let (mut queues, both) = (WaitQueues::default(), several(&["a", "b"]));
    let number = queues.join(&both, None, at_ms(0));
    assert_eq!(queues.wait(&both, number, ticket(number), WAIT, at_ms(0)), at_ms(0));
    assert_eq!(queues.queues[&b"a"[..]].waiting_head(), None);
}

/// The waiter keeps others out only in the queues in which it stands.
#[test]
fn a_waiter_for_one_of_two_keeps_its_whole_pause() {
    let (mut queues, both) = (WaitQueues::default(), several(&["a", "b"]));
    let number = queues.join(&both, None, at_ms(0));
    assert_eq!(queues.begin(&both, number, PATIENT, at_ms(0)), Permission::MayAsk);
    queues.refused(&both, (number, 0b10), true, at_ms(1));
    queues.join(&one("a"), None, at_ms(1));
    let wait = Wait { pause_until: at_ms(900), until: at_ms(60_000) };
    assert_eq!(queues.step_aside(&both, number, wait, at_ms(1)), []);
    assert_eq!(queues.wait(&both, number, ticket(number), wait, at_ms(1)), at_ms(900));
}
