use redis::Value;

use super::super::samples::{NOW, fresh, request, send, settle};
use super::super::*;
use crate::protocol::command::Verb;

#[test]
fn a_refused_release_is_retried_until_it_succeeds() {
    let mut queue = fresh();
    for _ in 0..3 {
        queue.push(&request(Verb::Release), None, NOW);
    }
    send(&mut queue, NOW);
    let error = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
    for _ in 0..3 {
        settle(&mut queue, std::slice::from_ref(&error)).unwrap();
    }
    assert_eq!(send(&mut queue, NOW), 0);
    let later = queue.probe_at;
    queue.probe(later);
    let one = send(&mut queue, later);
    assert!(one > 0);
    settle(&mut queue, &[Value::Int(1)]).unwrap();
    // The text of the script is sent once.
    assert!(send(&mut queue, later) > one);
    (0..2).for_each(|_| drop(settle(&mut queue, &[Value::Int(1)]).unwrap()));
    assert!(queue.is_done());
    assert_eq!(queue.probe_at, Moment::NEVER);
}

#[test]
fn refused_releases_are_probed_and_sent_in_groups() {
    const COUNT: usize = 3 * RESENT_MAX;
    let mut queue = fresh();
    (0..COUNT).for_each(|_| queue.push(&request(Verb::Release), None, NOW));
    send(&mut queue, NOW);
    let error = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
    let refuse = |queue: &mut Queue| drop(settle(queue, std::slice::from_ref(&error)));
    (0..COUNT).for_each(|_| refuse(&mut queue));
    for nth in 1..=2 {
        let at = NOW.plus_ms(nth * PROBE_MS);
        assert_eq!(queue.probe_at, at);
        queue.probe(at);
        assert_eq!((queue.requests.unsent_count(), queue.probe_at), (1, at.plus_ms(PROBE_MS)));
        send(&mut queue, at);
        if nth == 1 {
            refuse(&mut queue);
        }
    }
    settle(&mut queue, &[Value::Int(1)]).unwrap();
    assert_eq!(queue.requests.unsent_count(), RESENT_MAX);
}

#[test]
fn refused_releases_of_expired_keys_are_forgotten() {
    let mut queue = fresh();
    (0..3).for_each(|_| queue.push(&request(Verb::Release), None, NOW));
    send(&mut queue, NOW);
    let error = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
    (0..3).for_each(|_| drop(settle(&mut queue, std::slice::from_ref(&error)).unwrap()));
    assert_eq!(queue.length(), 3);
    queue.probe(NOW.plus_ms(10_000));
    assert_eq!((queue.length(), queue.probe_at), (0, Moment::NEVER));
}
