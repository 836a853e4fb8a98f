mod pushes;
mod several;

use super::queue::RIVAL_MS;
use super::*;
use crate::protocol::lock::Asked;
use crate::protocol::quorum::validity::Drift;
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::servers::roster::Roster;
use crate::protocol::token::Token;

const MANY: usize = 10_000;
const URGENT: TurnRequest = TurnRequest { is_urgent: true, is_last: true };

fn at_ms(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000).plus_ms(ms)
}

/// A waiter takes the lock for 100 ms, at this time.
fn take(queues: &mut WaitQueues, target: &Target, ms: i64) -> Arc<Lock> {
    let number = queues.join(target, None, at_ms(ms));
    assert_eq!(queues.begin(target, number, URGENT, at_ms(ms)), Permission::MayAsk);
    let token = Token::from_random([0; 20]);
    let lock = Arc::new(Lock::of_one_server(&target.resource, token, (at_ms(ms), 100)));
    assert_eq!(queues.acquired(target, number, &lock), (vec![], vec![]));
    lock
}

fn name(number: usize) -> Target {
    Target::from(Arc::from(number.to_string().into_bytes()))
}

fn count(queues: &WaitQueues) -> usize {
    queues.queues.len()
}

#[test]
fn a_release_forgets_its_queue() {
    let mut queues = WaitQueues::default();
    for number in 0..MANY {
        let lock = take(&mut queues, &name(number), 0);
        assert_eq!(queues.release(&lock, lock.resource(), at_ms(1)), (Next::Nobody, false));
        assert_eq!(count(&queues), 0);
    }
}

#[test]
fn released_locks_give_their_memory_back() {
    let mut queues = WaitQueues::default();
    let locks: Vec<_> = (0..MANY).map(|number| take(&mut queues, &name(number), 0)).collect();
    assert!(queues.queues.capacity() >= MANY);
    for lock in &locks {
        queues.release(lock, lock.resource(), at_ms(1));
    }
    assert!(queues.queues.capacity() <= 128, "{}", queues.queues.capacity());
}

#[test]
fn the_last_waiter_takes_its_queue_along() {
    let mut queues = WaitQueues::default();
    for number in 0..MANY {
        let resource = name(number);
        let waiter = queues.join(&resource, None, at_ms(0));
        assert_eq!(queues.leave(&resource, waiter, at_ms(1)), []);
        assert_eq!(count(&queues), 0);
    }
}

#[test]
fn expired_locks_are_forgotten() {
    let mut queues = WaitQueues::default();
    for number in 0..MANY {
        take(&mut queues, &name(number), number as i64);
        // A hundred of them are held at a time.
        assert!(count(&queues) <= 4 * 100, "{} queues", count(&queues));
    }
}

#[test]
fn a_rival_is_forgotten_after_a_quarter_second() {
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
fn a_queue_in_use_is_not_forgotten() {
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

/// A semaphore of two permits.
fn semaphore_of(number: usize) -> Target {
    Target::new(Arc::from(number.to_string().into_bytes()), LockKind::Permit { of: 2 })
}

/// A waiter takes a permit for 100 ms, at this time.
fn take_permit(queues: &mut WaitQueues, target: &Target, ms: i64) -> Arc<Lock> {
    let number = queues.join(target, None, at_ms(ms));
    assert_eq!(queues.begin(target, number, URGENT, at_ms(ms)), Permission::MayAsk);
    let asked = Asked { at: at_ms(ms), ttl_ms: 100, window_ms: 100, drift: Drift::DEFAULT };
    let roster = Roster::new(vec![Endpoint::parse("a", 1).unwrap()]);
    let lock = Lock::new(target.clone(), Token::from_random([0; 20]), asked, roster);
    lock.take(ServerSet::first(1), ServerSet::first(1));
    let lock = Arc::new(lock);
    assert_eq!(queues.acquired(target, number, &lock), (vec![], vec![]));
    lock
}

#[test]
fn an_unused_semaphore_queue_is_forgotten() {
    let mut queues = WaitQueues::default();
    let lock = take_permit(&mut queues, &semaphore_of(0), 0);
    let waiter = queues.join(&semaphore_of(0), None, at_ms(1));
    assert_eq!(queues.leave(&semaphore_of(0), waiter, at_ms(1)), []);
    assert_eq!(queues.count(), 1, "it is held");
    assert_eq!(queues.release(&lock, lock.resource(), at_ms(1)), (Next::Nobody, false));
    assert_eq!(queues.count(), 0);
}

#[test]
fn expired_permits_are_forgotten() {
    let mut queues = WaitQueues::default();
    for number in 0..1_000 {
        take_permit(&mut queues, &semaphore_of(number), number as i64);
        // A hundred of them are held at a time.
        assert!(queues.count() <= 4 * 100, "{} queues", queues.count());
    }
}

/// Otherwise each new waiter would look through all of them.
#[test]
fn a_clean_up_starts_at_twice_as_many_queues() {
    let mut queues = WaitQueues::default();
    for number in 0..QUEUES_MIN {
        take(&mut queues, &name(number), 0);
        assert_eq!(queues.clean_at, QUEUES_MIN);
    }
    take(&mut queues, &name(QUEUES_MIN), 0);
    assert_eq!(queues.clean_at, 2 * QUEUES_MIN);
}
