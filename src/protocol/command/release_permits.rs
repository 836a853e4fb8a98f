//! Deletes the slots of a semaphore that have the token: all, or all except the held one.

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject, only_form};
use super::encoder::Encoder;
use super::permits::{begin, begin_lined};
use super::script::script;
use super::waking::RELEASE_PERMITS;

/// Deletes all, and wakes the first waiter for a permit, if that is allowed.
pub(super) static ALL_AND_WAKE: Definition = Definition {
    names: 1,
    form: |capabilities| usize::from(capabilities.wakes),
    encode: encode_waking,
    decode: decode_waking,
    ..ALL
};

/// The same for all except one.
pub(super) static REST_AND_WAKE: Definition =
    Definition { effect: KeyEffect::UndoesRest, ..ALL_AND_WAKE };

/// Deletes all.
pub(super) static ALL: Definition = Definition {
    kind: Kind::Releasing,
    effect: KeyEffect::Undoes,
    replies: 1,
    names: 0,
    form: only_form,
    encode,
    decode,
};

/// Deletes all except one.
pub(super) static REST: Definition = Definition {
    kind: Kind::Releasing,
    effect: KeyEffect::UndoesRest,
    replies: 1,
    names: 0,
    form: only_form,
    encode,
    decode,
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
