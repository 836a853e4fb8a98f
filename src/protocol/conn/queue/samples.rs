//! Helpers shared by the tests of the queue.

use std::sync::Arc;

use redis::Value;

use super::{Queue, Settled};
use crate::protocol::command::{Capabilities, Request, Verb};
use crate::protocol::conn::close_reason::CloseReason;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::server_set::ServerSet;
use crate::protocol::token::Token;

pub(crate) const NOW: Moment = Moment::from_nanos(1_000_000_000_000);
pub(crate) const TICKET: OpId = OpId::new(0, 1);
pub(crate) const OTHER: OpId = OpId::new(1, 2);

pub(crate) const SERVER: usize = 3;

pub(crate) fn request(verb: Verb) -> Arc<Request> {
    long(verb, 1, 7)
}

/// One request that must reach the server, and one that need not.
pub(crate) fn required_and_not() -> [(Arc<Request>, bool); 2] {
    [(request(Verb::Release), true), (request(Verb::Acquire), false)]
}

/// A move for this server, and one for others.
pub(crate) fn moves() -> [Arc<Request>; 2] {
    [of_semaphore(Verb::Move), request(Verb::Move)]
}

/// A request with a name of so many bytes and a token of its own.
pub(crate) fn long(verb: Verb, length: usize, token: u8) -> Arc<Request> {
    let (resource, token) = (Arc::from(vec![b'r'; length]), Token::from_random([token; 20]));
    let request = Request::new(verb, resource, token, 10_000);
    Arc::new(match verb {
        Verb::Release => request.to(ServerSet::default().with(SERVER)),
        _ => request,
    })
}

/// A request about one of three permits, with the same token.
pub(crate) fn of_semaphore(verb: Verb) -> Arc<Request> {
    let (resource, kind) = (Arc::from(&b"r"[..]), LockKind::Permit { of: 3 });
    let (target, token) = (Target { resource, kind }, Token::from_random([7; 20]));
    let request = Request::new(verb, target, token, 10_000);
    Arc::new(request.with_slot(1).to(ServerSet::default().with(SERVER)))
}

/// A reader's request, with the same token.
pub(crate) fn of_reader(verb: Verb) -> Arc<Request> {
    let target = Target { resource: Arc::from(&b"r"[..]), kind: LockKind::Shared };
    let request = Request::new(verb, target, Token::from_random([7; 20]), 10_000);
    Arc::new(request.to(ServerSet::default().with(SERVER)))
}

/// The queue of a connection that has just begun.
pub(crate) fn fresh() -> Queue {
    Queue::new(SERVER, &Arc::default(), &Arc::default())
}

pub(crate) fn refused() -> Value {
    redis::parse_redis_value(b"-READONLY no\r\n").unwrap()
}

/// The oldest request got this reply. Returns nothing if the request is sent once more.
pub(crate) fn settle_or_again(
    queue: &mut Queue,
    reply: &Value,
) -> Result<Option<Settled>, CloseReason> {
    queue.settle(&mut vec![reply.clone()], NOW)
}

pub(crate) fn settle(queue: &mut Queue, replies: &[Value]) -> Result<Settled, CloseReason> {
    queue.settle(&mut replies.to_vec(), NOW).map(|it| it.expect("it is not sent once more"))
}

pub(crate) fn send(queue: &mut Queue, now: Moment) -> usize {
    let mut outbox = Vec::new();
    queue.send(&mut outbox, Capabilities::default(), now);
    queue.note_written(0, || now);
    outbox.len()
}
