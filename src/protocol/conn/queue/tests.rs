mod bounds;
mod guard;
mod notes;
mod numbers;
mod retries;
mod silence;
mod succession;

use super::samples::{NOW, OTHER, TICKET, fresh, of_reader, of_semaphore, request, send, settle};
use super::*;
use crate::protocol::command::Verb;

#[test]
fn an_abandoned_request_is_unsent_unless_it_releases() {
    let mut queue = fresh();
    queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
    assert_eq!(queue.abandon(TICKET), None);
    assert_eq!(send(&mut queue, NOW), 0);
    queue.push(&request(Verb::Release), Some(TICKET), NOW);
    assert_eq!(queue.abandon(TICKET), None);
    assert!(send(&mut queue, NOW) > 0);
}

#[test]
fn the_reply_to_an_abandoned_request_is_dropped() {
    let mut queue = fresh();
    queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
    queue.push(&request(Verb::Acquire), Some(OTHER), NOW);
    send(&mut queue, NOW);
    assert_eq!(queue.abandon(TICKET), Some(NOW));
    let granted = settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
    assert_eq!((granted.ticket, granted.answer), (None, Answer::Done));
    let taken = settle(&mut queue, &[Value::Nil, Value::Int(5)]).unwrap();
    assert_eq!(taken.ticket, Some(OTHER));
    assert_eq!(taken.answer, Answer::Foreign { left_ms: Some(5) });
    assert_eq!(settle(&mut queue, &[Value::Okay]), Err(ProtocolError::Unwanted.into()));
}

#[test]
fn a_forbidden_release_command_is_repeated_as_a_script() {
    let mut queue = fresh();
    queue.push(&request(Verb::Release), Some(TICKET), NOW);
    let (mut command, mut script) = (Vec::new(), Vec::new());
    queue.send(&mut command, Capabilities::DELIFEQ, NOW);
    let error = redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
    assert_eq!(queue.settle(&mut vec![error.clone()], NOW), Ok(None));
    assert!(queue.has_unsent());
    queue.send(&mut script, Capabilities::default(), NOW);
    assert!(command.starts_with(b"*3") && script.starts_with(b"*5"));
    // The waiting call receives the refusal of the script, and there is no further attempt.
    let settled = settle(&mut queue, std::slice::from_ref(&error)).unwrap();
    assert_eq!(settled.ticket, Some(TICKET));
    assert!(matches!(settled.answer, Answer::Failed(_)));
    assert!(!queue.has_unsent());
}

/// The deleting command is refused, and the question behind it reports a waiter. Later releases must
/// still wake waiters. The same holds when two such commands are refused.
#[test]
fn a_forbidden_waking_release_is_repeated_as_a_waking_script() {
    let (mut queue, mut inbox) = (fresh(), Inbox::default());
    let mut capabilities = Capabilities::WAKING_DELIFEQ;
    for ticket in [TICKET, OTHER] {
        queue.push(&request(Verb::ReleaseAndWake), Some(ticket), NOW);
    }
    queue.send(&mut Vec::new(), capabilities, NOW);
    inbox.put(&b"-NOPERM no\r\n:1\r\n".repeat(2));
    assert_eq!(queue.next_settled(&mut inbox, &mut capabilities, NOW), Ok(None));
    assert_eq!(capabilities, Capabilities::WAKING);
    let mut outbox = Vec::new();
    queue.send(&mut outbox, capabilities, NOW);
    let sent = String::from_utf8_lossy(&outbox);
    assert_eq!((sent.matches("EVAL").count(), sent.matches("r:w").count()), (2, 2), "{sent}");
    for ticket in [TICKET, OTHER] {
        let told = settle(&mut queue, &[Value::Int(2)]).unwrap();
        assert_eq!((told.ticket, told.answer), (Some(ticket), Answer::Woke));
    }
}

#[test]
fn a_repeated_request_gets_no_extra_time() {
    let mut queue = fresh();
    queue.push(&request(Verb::Release), Some(TICKET), NOW);
    queue.send(&mut Vec::new(), Capabilities::DELIFEQ, NOW);
    queue.note_written(0, || NOW.plus_ms(1));
    assert_eq!(queue.sent_at(TICKET), Some(NOW.plus_ms(1)));
    let error = redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
    assert_eq!(queue.settle(&mut vec![error], NOW.plus_ms(5)), Ok(None));
    queue.send(&mut Vec::new(), Capabilities::default(), NOW.plus_ms(7));
    queue.note_written(0, || NOW.plus_ms(9));
    assert_eq!(queue.owes_since(), Some(NOW.plus_ms(9)));
    assert_eq!(queue.sent_at(TICKET), Some(NOW.plus_ms(1)));
    assert_eq!(queue.abandon(TICKET), Some(NOW.plus_ms(1)));
}

/// The reply 2 to a request about permits means that two were deleted. Only in the form that wakes it
/// means that a waiter was woken.
#[test]
fn only_the_waking_form_reports_a_woken_client() {
    let settled = |request: Arc<Request>, capabilities| {
        let mut queue = fresh();
        queue.push(&request, Some(TICKET), NOW);
        queue.send(&mut Vec::new(), capabilities, NOW);
        settle(&mut queue, &[Value::Int(2)]).map(|it| it.answer)
    };
    let protocol_error = || Err(ProtocolError::Unwanted.into());
    let (plain, waking) = (Capabilities::PLAIN, Capabilities::WAKING);
    for (request, without) in [
        (of_reader(Verb::ReleaseAndWake), protocol_error()),
        (request(Verb::ReleaseAndWake), protocol_error()),
        (of_semaphore(Verb::ReleaseAndWake), Ok(Answer::Done)),
        (of_semaphore(Verb::ReleaseRestAndWake), Ok(Answer::Done)),
    ] {
        assert_eq!(settled(Arc::clone(&request), waking), Ok(Answer::Woke));
        assert_eq!(settled(request, plain), without);
    }
}

#[test]
fn an_awaited_release_is_sent_even_late() {
    let mut queue = fresh();
    queue.push(&request(Verb::Release), Some(TICKET), NOW);
    queue.push(&request(Verb::Release), None, NOW);
    send(&mut queue, NOW.plus_ms(10_000));
    let told = settle(&mut queue, &[Value::Int(0)]).unwrap();
    assert_eq!((told.ticket, told.answer), (Some(TICKET), Answer::Absent));
    assert_eq!(settle(&mut queue, &[Value::Int(0)]), Err(ProtocolError::Unwanted.into()));
}
