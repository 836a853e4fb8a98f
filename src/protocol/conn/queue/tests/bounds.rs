use redis::Value;

use super::super::samples::{NOW, TICKET, fresh, long, refused, request, send, settle};
use super::super::*;
use crate::protocol::command::Verb;

#[test]
fn the_queue_is_bounded_with_room_for_releases() {
    let mut queue = fresh();
    (0..2 * REQUESTS_MAX).for_each(|_| queue.push(&request(Verb::Acquire), None, NOW));
    assert!(queue.is_full());
    assert_eq!(queue.length(), REQUESTS_MAX);
    (0..2 * REQUIRED_MAX).for_each(|_| queue.push(&request(Verb::Release), None, NOW));
    assert_eq!(queue.length(), REQUIRED_MAX);
}

#[test]
fn unanswered_requests_count_towards_the_bound() {
    let mut queue = fresh();
    for _ in 0..2 {
        (0..REQUESTS_MAX / 2).for_each(|_| queue.push(&request(Verb::Acquire), None, NOW));
        send(&mut queue, NOW);
    }
    assert!(queue.is_full() && !queue.has_unsent());
    settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
    assert!(!queue.is_full());
}

#[test]
fn the_queue_is_bounded_in_bytes_too() {
    const LENGTH: usize = 65_536;
    // Each request contains its resource name twice.
    const MOST: usize = REQUEST_BYTES_MAX / (2 * LENGTH);
    let acquire = long(Verb::Acquire, LENGTH, 1);
    for is_sent in [false, true] {
        let mut queue = fresh();
        for _ in 0..2 * MOST {
            queue.push(&acquire, None, NOW);
            if is_sent {
                send(&mut queue, NOW);
            }
        }
        assert!(queue.is_full());
        assert_eq!(queue.length(), MOST);
        let release = long(Verb::Release, LENGTH, 1);
        (0..2 * REQUIRED_MAX).for_each(|_| queue.push(&release, None, NOW));
        let bytes = queue.bytes();
        assert!((REQUIRED_BYTES_MAX..REQUIRED_BYTES_MAX + 2 * LENGTH).contains(&bytes), "{bytes}");
    }
}

#[test]
fn unwritten_bytes_count_once_more() {
    let mut queue = fresh();
    queue.note_written(REQUEST_BYTES_MAX - 1, || NOW);
    assert!(!queue.is_full());
    queue.push(&request(Verb::Acquire), None, NOW);
    assert!(queue.is_full());
    queue.note_written(0, || NOW);
    assert!(!queue.is_full());
    // With this many refused releases there is no room for another one.
    let release = long(Verb::Release, 65_536, 1);
    while !queue.is_crammed() {
        queue.push(&release, None, NOW);
        send(&mut queue, NOW);
        while queue.requests.sent_count() > 0 {
            let replies = vec![refused(); queue.replies_of_oldest()];
            settle(&mut queue, &replies).unwrap();
        }
    }
    assert!(!queue.is_full());
    assert!(queue.refused.bytes() >= REQUIRED_BYTES_MAX);
    // A call waits for this one.
    queue.push(&release, Some(TICKET), NOW);
    assert!(queue.has_unsent());
}
