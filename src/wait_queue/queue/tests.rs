use super::*;
use crate::held_lock::Phase;
use crate::token::Token;

const PATIENT: Manners = Manners { is_urgent: false, is_last: false };

fn at_ms(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000).plus_ms(ms)
}

#[test]
fn the_pause_of_the_head_is_not_cut_short_by_one_behind_that_gives_up() {
    let mut queue = WaitQueue::new(at_ms(0));
    // One waiter of each thread.
    queue.join(1, Some(1), false);
    queue.join(2, Some(2), false);
    assert_eq!(queue.begin(1, PATIENT, at_ms(0)), Permission::MayAsk);
    queue.refused(1, true, at_ms(1));
    assert_eq!(queue.leave(2, at_ms(2)), None);
    let wait = Wait { pause_until: at_ms(9), until: at_ms(1_000) };
    assert!(!queue.end_wait(1, wait, at_ms(8)));
    assert!(queue.end_wait(1, wait, at_ms(9)));
}

/// The queue of a lock that this manager took at 0 ms, for 10 s; 2 is the head, and 3 behind it.
fn held() -> (WaitQueue, Arc<HeldLock>) {
    let (mut queue, token) = (WaitQueue::new(at_ms(0)), Token::from_random([0; 20]));
    let hold = Arc::new(HeldLock::of_one_server(b"r", token, (at_ms(0), 10_000)));
    (1..=3).for_each(|number| queue.join(number, None, false));
    assert_eq!(queue.acquired(1, &hold), None);
    (queue, hold)
}

#[test]
fn to_look_from_behind_costs_no_more_where_thousands_wait() {
    const WAITERS: u64 = 4_096;
    let mut queue = WaitQueue::new(at_ms(0));
    (1..=WAITERS).for_each(|number| queue.join(number, None, false));
    let wait = Wait { pause_until: at_ms(9), until: at_ms(9_000) };
    for number in 2..=WAITERS {
        assert_eq!(queue.begin(number, PATIENT, at_ms(1)), Permission::NotYet);
        assert!(!queue.end_wait(number, wait, at_ms(2)));
    }
    (2..=WAITERS).for_each(|number| assert_eq!(queue.leave(number, at_ms(3)), None));
    assert!(queue.behind.is_empty());
    // Each is found four times, and its place is one of 4,096.
    let looked_at = queue.looked_at.get() as u64;
    assert!((1..=4 * 13 * WAITERS).contains(&looked_at), "{looked_at}");
}

#[test]
fn a_last_try_from_behind_asks_for_what_this_manager_has_once_a_second() {
    let ((mut queue, _), last) = (held(), Manners { is_urgent: true, is_last: true });
    for asked_at in [1_000, 2_000] {
        let permission = queue.begin(3, last, at_ms(asked_at - 1));
        assert!(matches!(permission, Permission::Held { .. }), "{permission:?}");
        assert_eq!(queue.begin(3, last, at_ms(asked_at)), Permission::MayAsk);
    }
    // Who has more tries stays behind.
    assert_ne!(queue.begin(3, PATIENT, at_ms(3_000)), Permission::MayAsk);
}

#[test]
fn a_lock_that_another_manager_found_out_to_be_lost_or_released_may_be_asked_for() {
    for phase in [Phase::Lost, Phase::Releasing, Phase::Over] {
        let has_ended = phase != Phase::Releasing;
        let (mut queue, hold) = held();
        hold.pass_to(phase);
        let wait = Wait { pause_until: Moment::NEVER, until: at_ms(60_000) };
        assert_eq!(queue.end_wait(2, wait, at_ms(5)), has_ended, "{phase:?}");
        let permission = queue.begin(2, PATIENT, at_ms(5));
        assert_eq!(permission == Permission::MayAsk, has_ended, "{phase:?}: {permission:?}");
    }
}
