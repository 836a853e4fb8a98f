//! Deletes the slots of a semaphore that have the token: all, or all except the held one.

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject};
use super::encoder::Encoder;
use super::permits::{begin, begin_lined};
use super::script::script;
use super::waking::RELEASE_PERMITS;

pub(super) static DEFINITION: Definition = Definition::script(0, encode, decode);

/// The same, and wakes the first waiter for a permit, if that is allowed.
pub(super) static AND_WAKE: Definition = Definition {
    form: |capabilities| usize::from(capabilities.wakes),
    ..Definition::script(1, encode_waking, decode_waking)
};

pub(crate) static SCRIPT: &str = script!("release_permits.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    encoder.put_script(&SCRIPT, |command| {
        begin(subject, command).arg(subject.token.as_bytes()).arg(subject.number)
    });
}

fn encode_waking(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    if !capabilities.wakes {
        return encode(subject, capabilities, encoder);
    }
    encoder.put_script(&RELEASE_PERMITS, |command| {
        begin_lined(subject, command).arg(subject.token.as_bytes()).arg(subject.number)
    });
}

fn decode_waking(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.as_slice() {
        [Value::Int(2)] => Some(Answer::Woke),
        _ => decode(subject, replies),
    }
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::Int(0) => Some(Answer::Absent),
        Value::Int(1..) => Some(Answer::Done),
        Value::ServerError(error) => Some(Answer::refused(&error)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Okay};

    use super::*;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::semaphore(3), &mut vec![reply].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(answer(Int(0)), Some(Answer::Absent));
        let refused = redis::parse_redis_value(b"-READONLY no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Int(-1)), None);
    }
}
