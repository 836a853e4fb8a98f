use super::*;
use crate::protocol::token::Token;

const PATIENT: TurnRequest = TurnRequest { is_urgent: false, is_last: false };
const LAST: TurnRequest = TurnRequest { is_urgent: true, is_last: true };
const NEVER: Moment = Moment::NEVER;

fn at_ms(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000).plus_ms(ms)
}

/// The queue of a semaphore of two permits, with these waiters.
fn queue(waiters: std::ops::RangeInclusive<u64>) -> PermitQueue {
    let mut queue = PermitQueue::new(2, at_ms(0));
    waiters.for_each(|number| queue.join(number, None));
    queue
}

/// A permit with a token of its own, until 10 s.
fn permit(number: u8) -> Arc<Lock> {
    let token = Token::from_random([number; 20]);
    Arc::new(Lock::of_one_server(b"r", token, (at_ms(0), 10_000)))
}

fn ticket(number: usize) -> OpId {
    OpId::new(number, 0)
}

fn waits(queue: &mut PermitQueue, number: u64, pause_until: Moment, ms: i64) -> Moment {
    let wait = Wait { pause_until, until: at_ms(60_000) };
    queue.wait(number, ticket(usize::try_from(number).unwrap()), wait, at_ms(ms))
}

/// Both permits belong to this manager. Waiters 3, 4 and 5 wait.
fn all_held() -> (PermitQueue, [Arc<Lock>; 2]) {
    let (mut queue, locks) = (queue(1..=5), [permit(1), permit(2)]);
    for (number, lock) in (1..).zip(&locks) {
        assert_eq!(queue.begin(number, PATIENT, at_ms(0)), Permission::MayAsk);
        assert_eq!(queue.acquired(number, lock), None);
    }
    for number in 3..=5 {
        let left_ms = locks[0].remaining_ms(at_ms(0));
        let expected =
            if number == 3 { Permission::Held { left_ms, readers: 0 } } else { Permission::NotYet };
        assert_eq!(queue.begin(number, PATIENT, at_ms(0)), expected);
        let due = if number == 3 { 100 } else { 1_000 };
        assert_eq!(waits(&mut queue, number, NEVER, 0), at_ms(due));
    }
    (queue, locks)
}

#[test]
fn as_many_waiters_ask_as_there_are_permits() {
    let mut queue = queue(1..=3);
    assert_eq!(queue.begin(2, PATIENT, at_ms(0)), Permission::NotYet, "1 came first");
    for number in 1..=2 {
        assert_eq!(queue.begin(number, PATIENT, at_ms(0)), Permission::MayAsk);
    }
    assert_eq!(queue.begin(3, PATIENT, at_ms(0)), Permission::NotYet);
    assert_eq!(waits(&mut queue, 3, NEVER, 0), at_ms(1_000));
    // One of two permits is granted, and the other may belong to this manager in a moment.
    assert_eq!(queue.acquired(1, &permit(1)), None);
    // It is not granted, so there is room for the third waiter.
    assert_eq!(queue.leave(2, at_ms(1)), Some(ticket(3)));
    assert_eq!(waits(&mut queue, 3, NEVER, 1), at_ms(1));
    assert_eq!(queue.begin(3, PATIENT, at_ms(1)), Permission::MayAsk);
}

#[test]
fn when_all_permits_are_taken_only_the_first_asks() {
    let mut queue = queue(1..=4);
    for number in 1..=2 {
        assert_eq!(queue.begin(number, PATIENT, at_ms(0)), Permission::MayAsk);
    }
    for number in [2, 1] {
        queue.refused(number, true, at_ms(1));
    }
    assert_eq!(waits(&mut queue, 1, at_ms(9), 1), at_ms(9));
    for number in 2..=4 {
        assert_eq!(waits(&mut queue, number, at_ms(5), 1), at_ms(1_001), "it stands behind");
        assert_eq!(queue.begin(number, PATIENT, at_ms(6)), Permission::NotYet);
    }
    assert_eq!(queue.begin(1, PATIENT, at_ms(9)), Permission::MayAsk);
    // Waiter 2 is the first now, but only one waiter asks at a time.
    assert_eq!(queue.begin(2, PATIENT, at_ms(9)), Permission::NotYet);
    assert_eq!(waits(&mut queue, 2, NEVER, 9), at_ms(1_009));
    assert_eq!(queue.acquired(1, &permit(1)), Some(ticket(2)));
    let wait = Wait { pause_until: NEVER, until: at_ms(60_000) };
    assert!(queue.end_wait(2, wait, at_ms(10)));
    assert_eq!(queue.begin(2, PATIENT, at_ms(10)), Permission::MayAsk);
    assert_eq!(queue.begin(3, PATIENT, at_ms(10)), Permission::NotYet);
}

#[test]
fn a_release_gives_the_turn_to_the_first_waiter_only() {
    let (mut queue, locks) = all_held();
    assert!(queue.has(&locks[1]));
    assert_eq!(queue.release(&locks[1], at_ms(5)), (Next::Ask(ticket(3)), false));
    assert!(!queue.has(&locks[1]));
    assert_eq!(queue.begin(4, PATIENT, at_ms(5)), Permission::NotYet, "3 asks for it");
    assert_eq!(queue.release(&locks[0], at_ms(6)), (Next::Ask(ticket(4)), false));
    assert_eq!(queue.acquired(3, &permit(3)), None);
    assert_eq!(queue.acquired(4, &permit(4)), None);
    assert!(matches!(queue.begin(5, PATIENT, at_ms(7)), Permission::Held { .. }));
}

#[test]
fn other_clients_get_a_chance_after_a_run() {
    let (mut queue, locks) = all_held();
    assert_eq!(queue.release(&locks[0], at_ms(200)), (Next::Tell(vec![ticket(3)]), true));
    queue.stand_back(at_ms(205));
    assert_eq!(waits(&mut queue, 3, NEVER, 200), at_ms(205));
    assert_eq!(queue.begin(3, PATIENT, at_ms(204)), Permission::NotYet);
    assert_eq!(queue.begin(3, PATIENT, at_ms(205)), Permission::MayAsk);
}

#[test]
fn a_last_try_asks_out_of_turn_but_for_own_permits_rarely() {
    let (mut queue, _holds) = all_held();
    assert!(matches!(queue.begin(5, LAST, at_ms(999)), Permission::Held { .. }));
    assert_eq!(queue.begin(5, LAST, at_ms(1_000)), Permission::MayAsk);
    queue.refused(5, true, at_ms(1_001));
    assert!(matches!(queue.begin(5, LAST, at_ms(1_002)), Permission::Held { .. }));
    let mut queue = self::queue(1..=2);
    queue.refused(1, true, at_ms(0));
    assert_eq!(queue.begin(2, LAST, at_ms(1)), Permission::MayAsk);
}

#[test]
fn an_ended_or_lost_permit_can_be_taken() {
    let (mut queue, locks) = all_held();
    assert_eq!(queue.lost(&locks[0], at_ms(5)), Some(ticket(3)));
    assert_eq!(queue.begin(3, PATIENT, at_ms(5)), Permission::MayAsk);
    assert_eq!(queue.begin(4, PATIENT, at_ms(5)), Permission::NotYet);
    let end = locks[1].valid_until();
    assert_eq!(queue.begin(4, PATIENT, end), Permission::MayAsk);
}

#[test]
fn a_pause_after_unreachable_servers_is_kept() {
    let mut queue = queue(1..=2);
    assert_eq!(queue.begin(1, PATIENT, at_ms(0)), Permission::MayAsk);
    queue.refused(1, false, at_ms(1));
    assert_eq!(waits(&mut queue, 1, at_ms(20), 1), at_ms(20));
    let wait = Wait { pause_until: at_ms(20), until: at_ms(60_000) };
    assert!(!queue.end_wait(1, wait, at_ms(19)));
    assert!(queue.end_wait(1, wait, at_ms(20)));
}

#[test]
fn a_thread_never_waits_for_itself() {
    let mut queue = PermitQueue::new(2, at_ms(0));
    queue.join(1, Some(7));
    queue.join(2, Some(7));
    assert_eq!(queue.begin(2, PATIENT, at_ms(0)), Permission::MayAsk);
    assert_eq!(queue.leave(2, at_ms(0)), None);
}

/// A waiter that is told to ask at a moment may ask then, so no waiter loops without a pause.
#[test]
fn a_due_waiter_may_ask() {
    for seed in 0..2_000_u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let (mut queue, mut now, mut joined) = (queue(1..=4), 0, 4);
        let mut locks: Vec<Arc<Lock>> = Vec::new();
        for step in 0..40 {
            now += i64::try_from(next(3)).unwrap();
            let number = 1 + next(joined);
            let wait = Wait { pause_until: NEVER, until: at_ms(60_000) };
            let asks = |queue: &PermitQueue| queue.waiters.get(&number).is_some_and(|it| it.asks);
            match next(6) {
                0 if !asks(&queue) => {
                    let is_due = queue.end_wait(number, wait, at_ms(now));
                    let permission = queue.begin(number, PATIENT, at_ms(now));
                    if is_due {
                        assert_eq!(permission, Permission::MayAsk, "seed {seed}, step {step}");
                    }
                }
                1 if asks(&queue) => queue.refused(number, next(2) == 0, at_ms(now)),
                2 if asks(&queue) => {
                    let lock = permit(step);
                    queue.acquired(number, &lock);
                    locks.push(lock);
                }
                3 => {
                    if let Some(lock) = locks.pop() {
                        queue.release(&lock, at_ms(now));
                    }
                }
                4 => {
                    queue.leave(number, at_ms(now));
                }
                _ if !asks(&queue) => {
                    waits(&mut queue, number, NEVER, now);
                }
                _ => {
                    joined += 1;
                    queue.join(joined, None);
                }
            }
        }
    }
}

#[test]
fn a_queue_is_needed_while_it_knows_anything() {
    let none = || PermitQueue::new(2, at_ms(0));
    assert!(!none().is_needed(at_ms(0)) && !none().is_waited_for());
    // Somebody waits.
    let mut queue = queue(1..=1);
    assert!(queue.is_needed(at_ms(0)) && queue.is_waited_for());
    // A permit is held.
    let lock = permit(1);
    assert_eq!(queue.acquired(1, &lock), None);
    assert!(queue.is_needed(at_ms(0)) && !queue.is_waited_for());
    assert!(!queue.is_needed(lock.valid_until()) && !queue.is_needed(at_ms(20_000)));
    // Other clients were seen.
    let mut queue = none();
    queue.woke(at_ms(5), at_ms(0));
    assert!(queue.is_needed(at_ms(RIVAL_MS - 1)) && !queue.is_needed(at_ms(RIVAL_MS)));
}

#[test]
fn a_woken_rival_is_remembered_for_a_while() {
    let mut queue = PermitQueue::new(2, at_ms(0));
    assert!(!queue.was_woken(at_ms(0)));
    queue.woke(at_ms(5), at_ms(0));
    assert!(queue.was_woken(at_ms(RIVAL_MS - 1)) && !queue.was_woken(at_ms(RIVAL_MS)));
    // The next waiter gives the woken client its chance.
    queue.join(1, None);
    assert_eq!(queue.begin(1, PATIENT, at_ms(4)), Permission::NotYet);
    assert_eq!(queue.begin(1, PATIENT, at_ms(5)), Permission::MayAsk);
}

#[test]
fn the_first_waiter_enrols_if_others_hold_permits() {
    let waiting = queue(1..=2);
    assert!(waiting.may_stand_in_line(1) && !waiting.may_stand_in_line(2));
    let (all_held, _holds) = all_held();
    assert!(!all_held.may_stand_in_line(3));
}

#[test]
fn a_single_waiter_is_alone() {
    let one = queue(1..=1);
    assert!(one.is_alone(1) && !one.is_alone(2));
    let two = queue(1..=2);
    assert!(!two.is_alone(1) && !two.is_alone(3));
}

#[test]
fn permits_of_others_show_rivals() {
    let mut queue = queue(1..=2);
    queue.refused(1, true, at_ms(0));
    assert!(queue.has_rivals(at_ms(1)));
    let (mut queue, _holds) = all_held();
    assert_eq!(queue.begin(3, PATIENT, at_ms(1_000)), Permission::MayAsk);
    queue.refused(3, true, at_ms(1_001));
    assert!(!queue.has_rivals(at_ms(1_001)));
}

/// A waiter that comes when nobody waits any more finds out again.
#[test]
fn a_full_semaphore_is_known_while_a_waiter_remains() {
    let mut queue = queue(1..=3);
    queue.refused(1, true, at_ms(0));
    waits(&mut queue, 3, NEVER, 0);
    let (first, second) = (permit(1), permit(2));
    queue.acquired(1, &first);
    assert!(queue.is_full);
    queue.acquired(2, &second);
    assert_eq!(queue.release(&first, at_ms(1)), (Next::Ask(ticket(3)), false));
    assert!(queue.is_full);
    queue.acquired(3, &first);
    assert!(!queue.is_full);
    // A waiter for permits that this manager has says nothing about other clients.
    queue.join(4, None);
    queue.release(&second, at_ms(2));
    assert!(!queue.is_full);
    queue.refused(4, true, at_ms(3));
    queue.leave(4, at_ms(3));
    queue.release(&first, at_ms(4));
    assert!(!queue.is_full);
}

#[test]
fn the_next_is_told_only_if_it_would_look_too_late() {
    let end = permit(1).valid_until();
    for (until, told) in [(end, None), (end.plus_ms(1), Some(ticket(3)))] {
        let mut queue = queue(1..=3);
        queue.acquired(1, &permit(1));
        let wait = Wait { pause_until: NEVER, until };
        let now = end.plus_ms(-10);
        queue.set_asks(2, true);
        assert_eq!(queue.wait(3, ticket(3), wait, now), until);
        assert_eq!(queue.acquired(2, &permit(2)), told);
    }
}

#[test]
fn the_next_is_told_when_the_first_leaves_in_a_pause() {
    let mut queue = queue(1..=2);
    waits(&mut queue, 1, at_ms(50), 0);
    waits(&mut queue, 2, NEVER, 0);
    assert_eq!(queue.leave(1, at_ms(1)), Some(ticket(2)));
}

#[test]
fn a_due_waiter_does_not_wait() {
    let mut queue = queue(1..=1);
    assert_eq!(waits(&mut queue, 1, NEVER, 7), at_ms(7));
    assert_eq!(queue.waiting_first(), None);
    assert_eq!(waits(&mut queue, 1, at_ms(8), 7), at_ms(8));
    assert_eq!(queue.waiting_first(), Some(ticket(1)));
}

#[test]
fn a_release_skips_a_waiter_that_is_looking() {
    let (mut queue, locks) = all_held();
    // The first waiter looks at this moment.
    queue.end_wait(3, Wait { pause_until: NEVER, until: at_ms(60_000) }, at_ms(1));
    assert_eq!(queue.release(&locks[0], at_ms(1)), (Next::Ask(ticket(4)), false));
}

#[test]
fn a_repeated_caller_stands_back_for_rivals() {
    for (has_rivals, stands_back) in [(true, true), (false, false)] {
        let mut queue = queue(1..=2);
        let lock = permit(1);
        queue.acquired(1, &lock);
        queue.refused(2, true, at_ms(0));
        queue.set_asks(2, true);
        queue.rival_at = has_rivals.then_some(at_ms(0));
        assert_eq!(queue.release(&lock, at_ms(1)), (Next::Nobody, stands_back));
    }
}

#[test]
fn an_ended_own_permit_can_be_asked_for_in_a_pause() {
    let mut queue = queue(1..=2);
    let lock = permit(1);
    queue.acquired(1, &lock);
    queue.refused(2, true, at_ms(1));
    let end = lock.valid_until();
    let wait = Wait { pause_until: end.plus_ms(500), until: at_ms(60_000) };
    // Acquiring the permit opened the queue for a moment.
    queue.open_at = None;
    assert_eq!(queue.wait(2, ticket(2), wait, end.plus_ms(-1)), end.plus_ms(500));
    assert_eq!(queue.wait(2, ticket(2), wait, end), end);
}

#[test]
fn a_waiter_is_blocked_only_until_the_first_permit_ends() {
    let mut queue = queue(1..=3);
    let short = Token::from_random([2; 20]);
    let short = Arc::new(Lock::of_one_server(b"r", short, (at_ms(0), 500)));
    for (number, lock) in [(1, &permit(1)), (2, &short)] {
        assert_eq!(queue.begin(number, PATIENT, at_ms(0)), Permission::MayAsk);
        queue.acquired(number, lock);
    }
    let held = Permission::Held { left_ms: short.remaining_ms(at_ms(0)), readers: 0 };
    assert_eq!(queue.begin(3, PATIENT, at_ms(0)), held);
}

#[test]
fn an_asking_waiter_that_gives_up_makes_room() {
    let mut queue = queue(1..=4);
    for number in 1..=2 {
        assert_eq!(queue.begin(number, PATIENT, at_ms(0)), Permission::MayAsk);
    }
    for number in 3..=4 {
        waits(&mut queue, number, NEVER, 0);
    }
    assert_eq!(queue.leave(4, at_ms(1)), None);
    // The second asks, and so does the first, which comes before it.
    queue.refused(1, false, at_ms(1));
    assert_eq!(waits(&mut queue, 1, at_ms(50), 1), at_ms(50));
    assert_eq!(queue.leave(2, at_ms(2)), Some(ticket(1)));
}

#[test]
fn another_refusal_does_not_mean_full() {
    let mut queue = queue(1..=3);
    for number in 1..=2 {
        assert_eq!(queue.begin(number, PATIENT, at_ms(0)), Permission::MayAsk);
    }
    queue.refused(2, false, at_ms(1));
    queue.leave(2, at_ms(1));
    // The first asks still, and there may be another permit.
    assert_eq!(queue.begin(3, PATIENT, at_ms(1)), Permission::MayAsk);
}

#[test]
fn a_waiter_asks_at_once_when_there_is_room() {
    let mut queue = PermitQueue::new(3, at_ms(0));
    (1..=3).for_each(|number| queue.join(number, None));
    assert_eq!(queue.begin(1, PATIENT, at_ms(0)), Permission::MayAsk);
    assert_eq!(queue.begin(2, PATIENT, at_ms(0)), Permission::MayAsk);
    queue.refused(2, false, at_ms(0));
    assert_eq!(waits(&mut queue, 2, at_ms(500), 0), at_ms(500));
    assert_eq!(queue.acquired(1, &permit(1)), Some(ticket(2)));
    let wait = Wait { pause_until: at_ms(500), until: at_ms(60_000) };
    assert!(queue.end_wait(2, wait, at_ms(1)));
}
