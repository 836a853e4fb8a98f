use super::*;
use crate::protocol::lock::Phase;
use crate::protocol::token::Token;
use crate::protocol::wait_queue::Next;

const PATIENT: TurnRequest = TurnRequest { is_urgent: false, is_last: false };

fn at_ms(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000).plus_ms(ms)
}

#[test]
fn a_leaving_waiter_does_not_shorten_the_pause_of_the_head() {
    let mut queue = WaitQueue::new(at_ms(0));
    // One waiter of each thread.
    queue.join(1, Some(1), Wants::Alone);
    queue.join(2, Some(2), Wants::Alone);
    assert_eq!(queue.begin(1, PATIENT, at_ms(0)), Permission::MayAsk);
    queue.refused(1, true, at_ms(1));
    assert_eq!(queue.leave(2, at_ms(2)), []);
    let wait = Wait { pause_until: at_ms(9), until: at_ms(1_000) };
    assert!(!queue.end_wait(1, wait, at_ms(8)));
    assert!(queue.end_wait(1, wait, at_ms(9)));
}

/// The queue of a lock that this manager took at 0 ms, for 10 s. Waiter 2 is the head, and waiter 3 is behind
/// it.
fn held() -> (WaitQueue, Arc<Lock>) {
    let (mut queue, token) = (WaitQueue::new(at_ms(0)), Token::from_random([0; 20]));
    let lock = Arc::new(Lock::of_one_server(b"r", token, (at_ms(0), 10_000)));
    (1..=3).for_each(|number| queue.join(number, None, Wants::Alone));
    assert_eq!(queue.acquired(1, &lock), []);
    (queue, lock)
}

#[test]
fn a_look_from_behind_wakes_nobody() {
    const WAITERS: u64 = 4_096;
    let mut queue = WaitQueue::new(at_ms(0));
    (1..=WAITERS).for_each(|number| queue.join(number, None, Wants::Alone));
    let wait = Wait { pause_until: at_ms(9), until: at_ms(9_000) };
    for number in 2..=WAITERS {
        assert_eq!(queue.begin(number, PATIENT, at_ms(1)), Permission::NotYet);
        assert!(!queue.end_wait(number, wait, at_ms(2)));
    }
    (2..=WAITERS).for_each(|number| assert_eq!(queue.leave(number, at_ms(3)), []));
    assert!(queue.behind.is_empty());
}

#[test]
fn a_last_try_asks_for_an_own_lock_once_a_second() {
    let ((mut queue, _), last) = (held(), TurnRequest { is_urgent: true, is_last: true });
    for asked_at in [1_000, 2_000] {
        let permission = queue.begin(3, last, at_ms(asked_at - 1));
        assert!(matches!(permission, Permission::Held { .. }), "{permission:?}");
        assert_eq!(queue.begin(3, last, at_ms(asked_at)), Permission::MayAsk);
    }
    // A waiter that has more tries stays behind.
    assert_ne!(queue.begin(3, PATIENT, at_ms(3_000)), Permission::MayAsk);
}

#[test]
fn a_lock_ended_by_another_manager_can_be_asked_for() {
    for phase in [Phase::Lost, Phase::Releasing, Phase::Over] {
        let has_ended = phase != Phase::Releasing;
        let (mut queue, lock) = held();
        lock.pass_to(phase);
        let wait = Wait { pause_until: Moment::NEVER, until: at_ms(60_000) };
        assert_eq!(queue.end_wait(2, wait, at_ms(5)), has_ended, "{phase:?}");
        let permission = queue.begin(2, PATIENT, at_ms(5));
        assert_eq!(permission == Permission::MayAsk, has_ended, "{phase:?}: {permission:?}");
    }
}

/// Waiters with these numbers. A number below 0 is a reader.
fn queue_of(numbers: &[i64]) -> WaitQueue {
    let mut queue = WaitQueue::new(at_ms(0));
    for number in numbers {
        queue.join(
            number.unsigned_abs(),
            None,
            if *number < 0 { Wants::Shared } else { Wants::Alone },
        );
    }
    queue
}

fn hold_of(byte: u8, is_shared: bool) -> Arc<Lock> {
    let token = Token::from_random([byte; 20]);
    Arc::new(Lock::of_one_server_as(b"r", is_shared, token, (at_ms(0), 10_000)))
}

const LAST: TurnRequest = TurnRequest { is_urgent: true, is_last: true };
const WAIT: Wait = Wait { pause_until: Moment::NEVER, until: Moment::NEVER };

fn ticket(number: usize) -> OpId {
    OpId::new(number, 0)
}

/// All of these wait for their turn.
fn wait(queue: &mut WaitQueue, numbers: &[u64], now: Moment) {
    for &number in numbers {
        assert!(queue.wait(number, ticket(number as usize), WAIT, now) > now);
    }
}

#[test]
fn readers_ask_together_unless_a_writer_came_first() {
    let mut without_writer = queue_of(&[-1, -2]);
    for number in [1, 2] {
        assert_eq!(without_writer.begin(number, PATIENT, at_ms(0)), Permission::MayAsk);
    }
    let mut queue = queue_of(&[-1, -2, 3, -4]);
    for (number, permission) in [
        (1, Permission::MayAsk),
        (2, Permission::MayAsk),
        (3, Permission::NotYet),
        (4, Permission::NotYet),
    ] {
        assert_eq!(queue.begin(number, PATIENT, at_ms(0)), permission, "{number}");
    }
    let (one, two) = (hold_of(1, true), hold_of(2, true));
    assert_eq!(queue.acquired(1, &one), []);
    assert_eq!(queue.acquired(2, &two), []);
    // The writer waits for both readers, and the reader that came after the writer waits for the writer.
    let held = Permission::Held { left_ms: one.remaining_ms(at_ms(1)), readers: 2 };
    assert_eq!(queue.begin(3, PATIENT, at_ms(1)), held);
    assert_eq!(queue.begin(4, PATIENT, at_ms(1)), Permission::NotYet);
    assert_eq!(queue.begin(4, LAST, at_ms(1)), Permission::NotYet);
    wait(&mut queue, &[3, 4], at_ms(1));
    assert_eq!(queue.release(&one, at_ms(2)), (Next::Nobody, false));
    assert_eq!(queue.release(&two, at_ms(3)), (Next::Ask(ticket(3)), false));
}

#[test]
fn the_end_of_a_writer_calls_all_front_readers() {
    for is_lost in [false, true] {
        let mut queue = queue_of(&[1, -2, -3, 4, -5]);
        let own = hold_of(1, false);
        assert_eq!(queue.acquired(1, &own), []);
        wait(&mut queue, &[2, 3, 4, 5], at_ms(1));
        let called = vec![ticket(2), ticket(3)];
        match is_lost {
            true => assert_eq!(queue.lost(&own, at_ms(2)), called),
            false => assert_eq!(queue.release(&own, at_ms(2)), (Next::Tell(called), false)),
        }
        for number in [2, 3] {
            assert!(queue.end_wait(number, WAIT, at_ms(2)));
            assert_eq!(queue.begin(number, PATIENT, at_ms(2)), Permission::MayAsk);
            // Once a reader has asked, it has a pause of its own.
            let pause = Wait { pause_until: at_ms(9), until: Moment::NEVER };
            assert!(!queue.end_wait(number, pause, at_ms(3)));
        }
        for number in [4, 5] {
            assert!(!queue.end_wait(number, WAIT, at_ms(2)));
        }
    }
}

/// This many readers have the lock, from 0 ms on, for 10 s.
fn read_by(readers: u16) -> (WaitQueue, Vec<Arc<Lock>>) {
    let mut queue = WaitQueue::new(at_ms(0));
    let read = |number: u16| {
        queue.join(number.into(), None, Wants::Shared);
        assert_eq!(queue.begin(number.into(), PATIENT, at_ms(1)), Permission::MayAsk);
        let mut random = [0; 20];
        random[..2].copy_from_slice(&number.to_be_bytes());
        let token = Token::from_random(random);
        let lock = Arc::new(Lock::of_one_server_as(b"r", true, token, (at_ms(0), 10_000)));
        queue.acquired(number.into(), &lock);
        lock
    };
    let locks = (1..=readers).map(read).collect();
    (queue, locks)
}

#[test]
fn a_lock_with_thousands_of_readers_stays_cheap() {
    const READERS: u16 = 4_096;
    let (mut queue, locks) = read_by(READERS);
    // Each has taken one step.
    let looked_at = queue.readers.looked_at;
    assert!((1..=16 * usize::from(READERS)).contains(&looked_at), "{looked_at}");
    assert_eq!(queue.readers.len(), usize::from(READERS));
    for lock in &locks {
        assert!(queue.has(lock) && queue.is_needed(at_ms(2)));
        queue.release(lock, at_ms(2));
    }
    assert_eq!(queue.readers.looked_at, looked_at);
    assert!(queue.readers.is_empty() && !queue.is_needed(at_ms(2)));
}

#[test]
fn a_writer_notices_the_end_of_thousands_of_readers() {
    for (readers, seen_at) in [(10, 51), (1_000, 101)] {
        let (mut queue, locks) = read_by(readers);
        queue.join(9_999, None, Wants::Alone);
        wait(&mut queue, &[9_999], at_ms(1));
        let permission = queue.begin(9_999, PATIENT, at_ms(50));
        let held = Permission::Held { left_ms: 9_950 - 100 - 2, readers: readers.into() };
        assert_eq!(permission, held);
        // Another manager has released them.
        for lock in &locks {
            lock.pass_to(Phase::Over);
        }
        assert_eq!(queue.end_wait(9_999, WAIT, at_ms(seen_at - 1)), seen_at == 51);
        assert!(queue.end_wait(9_999, WAIT, at_ms(seen_at)));
        assert_eq!(queue.begin(9_999, PATIENT, at_ms(seen_at)), Permission::MayAsk);
    }
    let (mut queue, locks) = read_by(1_000);
    let end = locks.iter().map(|lock| lock.valid_until()).max().unwrap();
    queue.join(9_999, None, Wants::Alone);
    queue.forget_ended(end.plus_ms(-1));
    assert_eq!(queue.readers.len(), 1_000);
    queue.forget_ended(end);
    assert!(queue.readers.is_empty());
}

#[test]
fn a_reader_is_called_once_per_wait() {
    let mut queue = queue_of(&[1, -2, -3, -4, -5]);
    let own = hold_of(1, false);
    assert_eq!(queue.acquired(1, &own), []);
    wait(&mut queue, &[2, 3, 4, 5], at_ms(1));
    let called = [2, 3, 4, 5].map(ticket).to_vec();
    assert_eq!(queue.release(&own, at_ms(2)), (Next::Tell(called), false));
    assert_eq!(queue.begin(2, PATIENT, at_ms(2)), Permission::MayAsk);
    // Only the new head is told: that it is the head is news.
    assert_eq!(queue.acquired(2, &hold_of(2, true)), [ticket(3)]);
    // This one asks, is refused, and waits.
    assert!(queue.end_wait(5, WAIT, at_ms(3)));
    assert_eq!(queue.begin(5, PATIENT, at_ms(3)), Permission::MayAsk);
    wait(&mut queue, &[5], at_ms(4));
    assert_eq!(queue.acquired(3, &hold_of(3, true)), [ticket(4), ticket(5)]);
    assert_eq!(queue.acquired(4, &hold_of(4, true)), [ticket(5)]);
    assert!(queue.uncalled.is_empty() && queue.behind.is_empty());
}

#[test]
fn a_reader_called_while_it_asks_asks_again_at_once() {
    let mut queue = queue_of(&[-1, -2, -3]);
    for number in 1..=3 {
        assert_eq!(queue.begin(number, PATIENT, at_ms(1)), Permission::MayAsk);
    }
    queue.acquired(1, &hold_of(1, true));
    let pause = Wait { pause_until: at_ms(9), until: Moment::NEVER };
    assert!(queue.end_wait(3, pause, at_ms(2)));
}

#[test]
fn the_next_writer_is_found_behind_the_first() {
    let mut queue = queue_of(&[-1, -2, 3, -4, 5, -6]);
    assert_eq!(queue.first_writer, Some(3));
    queue.leave(3, at_ms(1));
    assert_eq!(queue.first_writer, Some(5));
    queue.leave(5, at_ms(1));
    assert_eq!(queue.first_writer, None);
}

#[test]
fn a_leaving_writer_lets_readers_pass() {
    let mut queue = queue_of(&[-1, 2, -3, -4]);
    let one = hold_of(1, true);
    assert_eq!(queue.acquired(1, &one), []);
    wait(&mut queue, &[2, 3, 4], at_ms(1));
    assert_eq!(queue.leave(2, at_ms(2)), [ticket(3), ticket(4)]);
    assert!(queue.end_wait(4, WAIT, at_ms(2)));
    assert_eq!(queue.begin(4, PATIENT, at_ms(2)), Permission::MayAsk);
    assert_eq!(queue.leave(3, at_ms(3)), []);
}

#[test]
fn a_downgrade_admits_readers_and_no_writer() {
    let mut queue = queue_of(&[1, -2, 3]);
    let own = hold_of(1, false);
    assert_eq!(queue.acquired(1, &own), []);
    wait(&mut queue, &[2, 3], at_ms(1));
    assert_eq!(queue.downgraded(&own), [ticket(2)]);
    assert!(queue.has(&own));
    assert_eq!(queue.begin(2, PATIENT, at_ms(2)), Permission::MayAsk);
    assert!(matches!(queue.begin(3, PATIENT, at_ms(2)), Permission::Held { readers: 1, .. }));
    assert_eq!(queue.acquired(2, &hold_of(2, true)), []);
    assert!(matches!(queue.begin(3, PATIENT, at_ms(2)), Permission::Held { readers: 2, .. }));
}

#[test]
fn an_expired_reader_does_not_block_a_writer() {
    let mut queue = queue_of(&[-1, 2]);
    assert_eq!(queue.acquired(1, &hold_of(1, true)), []);
    assert!(queue.is_needed(at_ms(1)));
    assert!(!queue.end_wait(2, WAIT, at_ms(50)));
    assert!(queue.end_wait(2, WAIT, at_ms(10_000)));
    assert_eq!(queue.begin(2, PATIENT, at_ms(10_000)), Permission::MayAsk);
}

#[test]
fn readers_behind_an_enrolled_reader_wait_for_its_call() {
    let mut queue = queue_of(&[-1, -2, 3]);
    let pause = Wait { pause_until: at_ms(9), until: Moment::NEVER };
    assert_eq!(queue.wait(2, ticket(2), pause, at_ms(1)), at_ms(9));
    queue.line.begin_look(0, 7);
    let until = queue.wait(2, ticket(2), pause, at_ms(1));
    assert_eq!(until, at_ms(1).plus_ms(LOOK_FROM_BEHIND_MS));
    assert_eq!(queue.acquired(1, &hold_of(1, true)), [ticket(2)]);
    assert!(queue.end_wait(2, pause, at_ms(2)));
    assert_eq!(queue.begin(2, PATIENT, at_ms(2)), Permission::MayAsk);
}

#[test]
fn the_head_enrols_unless_this_manager_has_the_lock() {
    let mut free = queue_of(&[1, 2]);
    assert!(free.may_stand_in_line(1) && !free.may_stand_in_line(2));
    free.leave(1, at_ms(1));
    assert!(free.may_stand_in_line(2));
    let (held, _hold) = held();
    assert!(!held.may_stand_in_line(2));
}

#[test]
fn the_first_writer_is_the_earliest() {
    assert_eq!(queue_of(&[-1, -2]).first_writer, None);
    assert_eq!(queue_of(&[-1, 2, -3, 4]).first_writer, Some(2));
    // A waiter that had left comes back to where it was.
    assert_eq!(queue_of(&[-1, 4, 3]).first_writer, Some(3));
}

#[test]
fn a_returning_waiter_takes_its_old_place() {
    let queue = queue_of(&[1, 3, 5, 4]);
    assert_eq!(queue.behind.keys().copied().collect::<Vec<_>>(), [3, 4, 5]);
}

#[test]
fn a_refusal_of_the_head_shows_a_rival() {
    for (number, is_taken, is_seen) in [(1, true, true), (2, true, false), (1, false, false)] {
        let mut queue = queue_of(&[1, 2]);
        queue.refused(number, is_taken, at_ms(0));
        assert_eq!(queue.has_rivals(at_ms(RIVAL_MS - 1)), is_seen);
        assert!(!queue.has_rivals(at_ms(RIVAL_MS)));
    }
    // A lock of this manager is not held by another client process.
    let (mut queue, _hold) = held();
    queue.refused(2, true, at_ms(1));
    assert!(!queue.has_rivals(at_ms(1)));
}

/// Only one waiter asks the servers, once a second, for a lock that this manager has.
#[test]
fn one_reader_asks_for_an_own_lock_of_a_writer() {
    let mut queue = queue_of(&[1, -2, -3]);
    let token = Token::from_random([0; 20]);
    let lock = Arc::new(Lock::of_one_server(b"r", token, (at_ms(0), 10_000)));
    assert_eq!(queue.acquired(1, &lock), []);
    let permission = queue.begin(3, PATIENT, at_ms(1_000));
    assert!(matches!(permission, Permission::Held { .. }), "{permission:?}");
    assert_eq!(queue.begin(2, PATIENT, at_ms(1_000)), Permission::MayAsk);
}

#[test]
fn the_next_is_told_of_a_lock_only_if_it_would_look_too_late() {
    let token = Token::from_random([0; 20]);
    let lock = Arc::new(Lock::of_one_server(b"r", token, (at_ms(0), 500)));
    let (end, ticket) = (lock.valid_until(), OpId::new(2, 0));
    for (until, told) in [(end, vec![]), (end.plus_ms(1), vec![ticket])] {
        let mut queue = queue_of(&[1, 2]);
        queue.note_wait(2, Some(ticket), until);
        assert_eq!(queue.acquired(1, &lock), told);
    }
}

#[test]
fn a_due_waiter_does_not_wait() {
    let (mut queue, ticket) = (queue_of(&[1]), OpId::new(1, 0));
    let wait = Wait { pause_until: at_ms(7), until: at_ms(60_000) };
    assert_eq!(queue.wait(1, ticket, wait, at_ms(7)), at_ms(7));
    assert_eq!(queue.waiting_head(), None);
    assert_eq!(queue.wait(1, ticket, wait, at_ms(6)), at_ms(7));
    assert_eq!(queue.waiting_head(), Some(ticket));
}

#[test]
fn the_queue_of_a_lock_is_needed_until_the_lock_ends() {
    let (mut queue, lock) = held();
    queue.leave(3, at_ms(1));
    queue.leave(2, at_ms(1));
    assert!(queue.is_needed(at_ms(1)) && !queue.is_needed(lock.valid_until()));
}

/// Hands the lock from one waiter to the next, each of which holds it for 10 ms. Returns how long that goes on.
fn handed_on_for(has_rivals: bool) -> i64 {
    let mut queue = queue_of(&(1..=100).collect::<Vec<_>>());
    let mut lock = hold_of(0, false);
    assert_eq!(queue.begin(1, PATIENT, at_ms(0)), Permission::MayAsk);
    queue.acquired(1, &lock);
    for number in 2..=100_u8 {
        let now = at_ms(10 * i64::from(number - 1));
        wait(&mut queue, &[number.into()], now);
        if has_rivals {
            queue.woke(now, now);
        }
        let (next, _) = queue.release(&lock, now);
        if next != Next::Ask(ticket(number.into())) {
            assert_eq!(next, Next::Tell(vec![ticket(number.into())]));
            return now.ms_since(at_ms(0));
        }
        lock = hold_of(number, false);
        queue.acquired(number.into(), &lock);
    }
    panic!("it has no end");
}

#[test]
fn a_woken_rival_shortens_a_run_of_hand_overs() {
    assert_eq!(handed_on_for(false), RUN_MS);
    assert_eq!(handed_on_for(true), RUN_WITH_RIVALS_MS);
}

#[test]
fn a_new_run_follows_a_finished_run() {
    let mut queue = queue_of(&[1, 2, 3]);
    let (first, second) = (hold_of(1, false), hold_of(2, false));
    queue.begin(1, PATIENT, at_ms(0));
    queue.acquired(1, &first);
    wait(&mut queue, &[2, 3], at_ms(1));
    let now = at_ms(RUN_MS);
    assert_eq!(queue.release(&first, now), (Next::Tell(vec![ticket(2)]), true));
    // It takes the lock without having asked for its turn.
    queue.acquired(2, &second);
    let (next, _) = queue.release(&second, now.plus_ms(1));
    assert_eq!(next, Next::Ask(ticket(3)));
}
