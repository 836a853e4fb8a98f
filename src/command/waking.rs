//! What the commands about waiting share: a resource's line on each server, and the channels of those in it.
//!
//! Waiters of other processes stand in a sorted set, `R:w`: each with its channel, and since when it waits. Whoever
//! lets go of the resource takes the first out and publishes to its channel, in the same script. These are hints: a lock is
//! taken as ever.

use redis::{PushKind, Value};

use super::answer::failure_of;
use super::script::Script;
use crate::failure::Failure;
use crate::lock_kind::slot_of;
use crate::token::Token;

/// How long a line lives after somebody was put in it, in milliseconds: three times as long as anybody waits before
/// it looks again.
pub(super) const LINE_TTL_MS: i64 = 15_000;

/// How much of the digits of a token is a channel's own: those of 16 bytes.
const DIGITS: usize = 32;

/// The key of the line of a resource.
pub(super) fn line(resource: &[u8]) -> Vec<u8> {
    [resource, b":w"].concat()
}

/// The key of the line of those who wait for any permit of a semaphore of which this is a slot, if it is named as one that
/// has a number.
pub(super) fn line_of_permits(resource: &[u8]) -> Option<Vec<u8>> {
    slot_of(resource).map(|(base, _)| line(base))
}

/// The channel that is made of these digits.
pub(crate) fn channel(token: &Token) -> Vec<u8> {
    [b"redlock:w:", &token.as_bytes()[..DIGITS]].concat()
}

/// Has the server tell us what is published to the channel. The reply is a push, or an error.
pub(crate) fn subscribe(token: &Token) -> Vec<u8> {
    redis::cmd("SUBSCRIBE").arg(channel(token)).get_packed_command()
}

/// Whether this is what a server says to [`subscribe`], and no error.
pub(crate) fn is_subscription(value: &Value) -> bool {
    matches!(value, Value::Push { kind: PushKind::Subscribe, .. })
}

/// What a server says to [`subscribe`]: it is done, or why not. None if it is no such reply.
pub(crate) fn subscribed(reply: &Value) -> Option<Result<(), Failure>> {
    match reply {
        Value::ServerError(error) => Some(Err(failure_of(error))),
        confirmed => is_subscription(confirmed).then_some(Ok(())),
    }
}

/// The resource that this push says is free, if it came over the channel.
pub(crate) fn resource_of(push: Value, token: &Token) -> Option<Vec<u8>> {
    let Value::Push { kind: PushKind::Message, data } = push else { return None };
    match <[Value; 2]>::try_from(data) {
        Ok([Value::BulkString(from), Value::BulkString(resource)]) if from == channel(token) => {
            Some(resource)
        }
        _ => None,
    }
}

const ENROL_FILE: &str = include_str!("enrol.lua");
const ENROL_LINE: Script<{ ENROL_FILE.len() }> = Script::of(ENROL_FILE);
pub(crate) static ENROL: &str = ENROL_LINE.text();

const LEAVE_FILE: &str = concat!(include_str!("leave.lua"), include_str!("wake.lua"));
const LEAVE_LINE: Script<{ LEAVE_FILE.len() }> = Script::of(LEAVE_FILE);
pub(crate) static LEAVE: &str = LEAVE_LINE.text();

const RELEASE_FILE: &str = concat!(include_str!("release_and_wake.lua"), include_str!("wake.lua"));
const RELEASE_LINE: Script<{ RELEASE_FILE.len() }> = Script::of(RELEASE_FILE);
pub(crate) static RELEASE_AND_WAKE: &str = RELEASE_LINE.text();

/// Behind the scripts about a slot of a semaphore or about permits.
macro_rules! wakes_each {
    ($file:literal) => {
        concat!(include_str!($file), include_str!("wake_each.lua"), "return told\n")
    };
}

const RELEASE_SLOT_FILE: &str = wakes_each!("release_slot.lua");
const RELEASE_SLOT_LINE: Script<{ RELEASE_SLOT_FILE.len() }> = Script::of(RELEASE_SLOT_FILE);
pub(crate) static RELEASE_SLOT: &str = RELEASE_SLOT_LINE.text();

const LEAVE_SLOT_FILE: &str = wakes_each!("leave_slot.lua");
const LEAVE_SLOT_LINE: Script<{ LEAVE_SLOT_FILE.len() }> = Script::of(LEAVE_SLOT_FILE);
pub(crate) static LEAVE_SLOT: &str = LEAVE_SLOT_LINE.text();

const LEAVE_PERMITS_FILE: &str = wakes_each!("leave_permits.lua");
const LEAVE_PERMITS_LINE: Script<{ LEAVE_PERMITS_FILE.len() }> = Script::of(LEAVE_PERMITS_FILE);
pub(crate) static LEAVE_PERMITS: &str = LEAVE_PERMITS_LINE.text();

const RELEASE_PERMITS_FILE: &str = wakes_each!("release_permits_and_wake.lua");
const RELEASE_PERMITS_LINE: Script<{ RELEASE_PERMITS_FILE.len() }> =
    Script::of(RELEASE_PERMITS_FILE);
pub(crate) static RELEASE_PERMITS: &str = RELEASE_PERMITS_LINE.text();

const ENROL_PERMITS_FILE: &str =
    concat!(include_str!("enrol_permits.lua"), include_str!("stand.lua"));
const ENROL_PERMITS_LINE: Script<{ ENROL_PERMITS_FILE.len() }> = Script::of(ENROL_PERMITS_FILE);
pub(crate) static ENROL_PERMITS: &str = ENROL_PERMITS_LINE.text();

#[cfg(test)]
mod tests {
    use super::*;

    const PUSH: &[u8] =
        b">3\r\n$7\r\nmessage\r\n$42\r\nredlock:w:ABABABABABABABABABABABABABABABAB\r\n$1\r\nr\r\n";

    #[test]
    fn a_push_over_the_channel_names_a_resource() {
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

    #[test]
    fn scripts_that_let_go_end_alike() {
        let end = "for i=1,64 do local first=redis.pcall('ZPOPMIN',KEYS[2])[1]";
        assert!([LEAVE, RELEASE_AND_WAKE].iter().all(|script| script.contains(end)));
        let each = "local told=1 for i=1,#free do for n=1,64 do";
        let all = [RELEASE_SLOT, LEAVE_SLOT, LEAVE_PERMITS, RELEASE_PERMITS];
        assert!(all.iter().all(|it| it.contains(each) && it.ends_with("end return told")));
    }
}
