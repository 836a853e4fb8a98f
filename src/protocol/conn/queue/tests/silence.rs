use redis::Value;

use super::super::samples::{NOW, fresh, request, send, settle};
use super::super::*;
use crate::protocol::command::Verb;

#[test]
fn silence_is_tolerated_for_the_longest_ttl() {
    let mut queue = fresh();
    assert_eq!(queue.give_up_at(), None);
    queue.push(&request(Verb::Acquire), None, NOW);
    send(&mut queue, NOW);
    assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(10_000)));
    queue.hear(NOW.plus_ms(9_000));
    assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(14_000)));
    // A request that was answered does not lengthen the wait for the next one.
    settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
    assert_eq!(queue.give_up_at(), None);
    queue.push(&request(Verb::Acquire), None, NOW);
    send(&mut queue, NOW);
    assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(10_000)));
}

#[test]
fn a_short_ttl_does_not_shorten_the_wait_for_a_longer_one() {
    let mut queue = fresh();
    queue.push(&request(Verb::Acquire), None, NOW);
    send(&mut queue, NOW);
    queue.bear_silence(1, NOW.plus_ms(100));
    assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(10_000)));
}

#[test]
fn an_answer_is_overdue_after_four_reply_timeouts() {
    let policy = Policy::default();
    let mut queue = fresh();
    assert_eq!(queue.overdue_at(&policy), Moment::NEVER);
    queue.push(&request(Verb::Acquire), None, NOW.plus_ms(-700));
    assert_eq!(queue.overdue_at(&policy), Moment::NEVER, "it was not even sent");
    send(&mut queue, NOW);
    queue.push(&request(Verb::Acquire), None, NOW.plus_ms(5));
    send(&mut queue, NOW.plus_ms(5));
    // The default reply timeout is a twentieth of the TTL of 10 s.
    for (set_ms, overdue_ms) in [(0, 2_000), (1, 1_000), (250, 1_000), (251, 1_004)] {
        policy.set_timeouts(1_500, set_ms);
        assert_eq!(queue.overdue_at(&policy), NOW.plus_ms(overdue_ms), "{set_ms}");
    }
    policy.set_timeouts(1_500, i64::MAX);
    assert_eq!(queue.overdue_at(&policy), Moment::NEVER);
    // After an answer the next request counts, whatever it is.
    policy.set_timeouts(1_500, 0);
    settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
    assert_eq!(queue.overdue_at(&policy), NOW.plus_ms(2_005));
}
