//! Shared parts of the commands about waiting: a resource's wait queue on each server, and the channels of
//! the waiters.
//!
//! Waiters of other processes are in a sorted set, `R:w`, each with its channel and the time since when it
//! waits. The client that releases the resource takes the first waiter out and publishes to its channel, in
//! the same script. These messages are hints: a lock is taken as usual.

use redis::{PushKind, Value};

use super::answer::failure_of;
use super::encoder::{Argument, Encoder, Key};
use super::script::{Script, script};
use crate::protocol::failure::Failure;
use crate::protocol::lock_kind::slot_of;
use crate::protocol::token::Token;

/// How long a wait queue lives after a waiter was added, in milliseconds. This is three times the longest
/// time that a waiter waits before it checks again.
pub(super) const LINE_TTL_MS: i64 = 15_000;

/// How many digits of a token identify a channel: those of 16 bytes.
const DIGITS: usize = 32;

/// The key of the wait queue of a resource.
pub(super) fn line(resource: &[u8]) -> WaitlistKey<'_> {
    WaitlistKey { resource }
}

/// The key of a wait queue, which is composed while it is written.
pub(super) struct WaitlistKey<'a> {
    resource: &'a [u8],
}

impl Key for WaitlistKey<'_> {
    fn parts(&self) -> Option<[&[u8]; 2]> {
        Some([self.resource, b":w"])
    }
}

/// The key of the wait queue for any permit of a semaphore. None if this resource does not have the name of a
/// slot, with a number.
pub(super) fn line_of_permits(resource: &[u8]) -> Option<WaitlistKey<'_>> {
    slot_of(resource).map(|(base, _)| line(base))
}

/// Adds a script about a resource and its wait queue, with one argument. If the resource may be a slot of a semaphore,
/// adds the second script, which is also about the wait queue of the semaphore.
pub(super) fn put_lined(
    resource: &[u8],
    [of_lock, of_slot]: [Script; 2],
    argument: impl Argument,
    encoder: &mut Encoder,
) {
    let permits = line_of_permits(resource);
    let (script, keys) = match permits {
        Some(_) => (of_slot, b"$1\r\n3\r\n"),
        None => (of_lock, b"$1\r\n2\r\n"),
    };
    encoder.put_script(script, |command| {
        let command = command.put_fixed(1, keys).key(resource).key(line(resource));
        command.key(permits).arg(argument)
    });
}

/// The name of the channel with these digits.
pub(crate) fn channel(token: &Token) -> Vec<u8> {
    [b"redlock:w:", &token.as_bytes()[..DIGITS]].concat()
}

/// Has the server forward what is published to the channel. The reply is a push message or an error.
pub(crate) fn subscribe(token: &Token) -> Vec<u8> {
    redis::cmd("SUBSCRIBE").arg(channel(token)).get_packed_command()
}

/// Whether this is the server's confirmation of [`subscribe`], and no error.
pub(crate) fn is_subscription(value: &Value) -> bool {
    matches!(value, Value::Push { kind: PushKind::Subscribe, .. })
}

/// The server's reply to [`subscribe`]: success, or why it failed. None if it is no such reply.
pub(crate) fn subscribed(reply: &Value) -> Option<Result<(), Failure>> {
    match reply {
        Value::ServerError(error) => Some(Err(failure_of(error))),
        confirmed => is_subscription(confirmed).then_some(Ok(())),
    }
}

/// The resource that is free according to this push message, if it came over the channel.
pub(crate) fn resource_of(push: Value, token: &Token) -> Option<Vec<u8>> {
    let Value::Push { kind: PushKind::Message, data } = push else { return None };
    match <[Value; 2]>::try_from(data) {
        Ok([Value::BulkString(from), Value::BulkString(resource)]) if from == channel(token) => {
            Some(resource)
        }
        _ => None,
    }
}

pub(crate) static ENROL: &str = script!("stand.lua", "enrol.lua");

pub(crate) static LEAVE: &str = script!("wake.lua", "leave.lua");

pub(crate) static RELEASE_AND_WAKE: &str = script!("wake.lua", "release_and_wake.lua");

pub(crate) static RELEASE_SLOT: &str = script!("wake.lua", "release_slot.lua");

pub(crate) static LEAVE_SLOT: &str = script!("wake.lua", "leave_slot.lua");

pub(crate) static LEAVE_PERMITS: &str = script!("wake.lua", "leave_permits.lua");

pub(crate) static RELEASE_PERMITS: &str = script!("wake.lua", "release_permits_and_wake.lua");

pub(crate) static ENROL_PERMITS: &str = script!("stand.lua", "enrol_permits.lua");

#[cfg(test)]
mod tests {
    use super::*;

    const PUSH: &[u8] =
        b">3\r\n$7\r\nmessage\r\n$42\r\nredlock:w:ABABABABABABABABABABABABABABABAB\r\n$1\r\nr\r\n";

    #[test]
    fn a_push_names_its_resource() {
        let token = Token::from_random([0xAB; 20]);
        let push = redis::parse_redis_value(PUSH).unwrap();
        assert_eq!(resource_of(push.clone(), &token), Some(b"r".to_vec()));
        assert_eq!(resource_of(push, &Token::from_random([0xAC; 20])), None);
        let kept = redis::parse_redis_value(b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n:1\r\n").unwrap();
        assert_eq!(resource_of(kept, &token), None);
        assert_eq!(resource_of(Value::Okay, &token), None);
        let subscribed = b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
        assert_eq!(super::subscribed(&redis::parse_redis_value(subscribed).unwrap()), Some(Ok(())));
        let refused = redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
        assert!(matches!(super::subscribed(&refused), Some(Err(_))));
        assert_eq!(super::subscribed(&Value::Int(1)), None);
    }
}
