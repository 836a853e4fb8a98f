use super::queue::RIVAL_MS;
use super::*;
use crate::token::Token;

const MANY: usize = 10_000;
const URGENT: Manners = Manners { is_urgent: true, is_last: true };

fn at_ms(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000).plus_ms(ms)
}

/// Somebody takes the lock for 100 ms, at this time.
fn take(queues: &mut WaitQueues, target: &Target, ms: i64) -> Arc<HeldLock> {
    let number = queues.join(target, None, at_ms(ms));
    assert_eq!(queues.begin(target, number, URGENT, at_ms(ms)), Permission::MayAsk);
    let token = Token::from_random([0; 20]);
    let hold = Arc::new(HeldLock::of_one_server(&target.resource, token, (at_ms(ms), 100)));
    assert_eq!(queues.acquired(target, number, &hold), []);
    hold
}

fn name(number: usize) -> Target {
    Target::from(Arc::from(number.to_string().into_bytes()))
}

fn count(queues: &WaitQueues) -> usize {
    queues.queues.len()
}

#[test]
fn a_queue_is_forgotten_with_the_release() {
    let mut queues = WaitQueues::default();
    for number in 0..MANY {
        let hold = take(&mut queues, &name(number), 0);
        assert_eq!(queues.release(&hold, hold.resource(), at_ms(1)), (Next::Nobody, false));
        assert_eq!(count(&queues), 0);
    }
}

#[test]
fn a_queue_is_forgotten_when_its_only_waiter_gives_up() {
    let mut queues = WaitQueues::default();
    for number in 0..MANY {
        let resource = name(number);
        let waiter = queues.join(&resource, None, at_ms(0));
        assert_eq!(queues.leave(&resource, waiter, at_ms(1)), []);
        assert_eq!(count(&queues), 0);
    }
}

#[test]
fn locks_that_nobody_releases_are_forgotten_when_they_are_over() {
    let mut queues = WaitQueues::default();
    for number in 0..MANY {
        take(&mut queues, &name(number), number as i64);
        // A hundred of them are held at a time.
        assert!(count(&queues) <= 4 * 100, "{} queues", count(&queues));
    }
}

#[test]
fn a_rival_is_forgotten_after_a_while() {
    let mut queues = WaitQueues::default();
    for number in 0..MANY {
        let (resource, now) = (name(number), at_ms(number as i64));
        let waiter = queues.join(&resource, None, now);
        assert_eq!(queues.begin(&resource, waiter, URGENT, now), Permission::MayAsk);
        assert_eq!(queues.refused(&resource, (waiter, 0), true, now), []);
        assert_eq!(queues.leave(&resource, waiter, now), []);
        assert!(queues.queues[&resource.resource].has_rivals(now));
        assert!(count(&queues) <= 4 * RIVAL_MS as usize, "{} queues", count(&queues));
    }
}

#[test]
fn what_is_held_or_waited_for_is_not_forgotten() {
    let mut queues = WaitQueues::default();
    let held = take(&mut queues, &name(MANY), 0);
    let waited_for = name(MANY + 1);
    queues.join(&waited_for, None, at_ms(0));
    for number in 0..MANY {
        take(&mut queues, &name(number), 0);
    }
    assert!(queues.queues[held.resource()].has(&held));
    assert!(queues.queues.contains_key(&waited_for.resource));
}
