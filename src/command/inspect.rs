//! Asks what value the key has, and for how long.

use redis::Value;

use super::answer::{Answer, VALUE_MAX};
use super::capabilities::Capabilities;
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject, only_form};
use super::encoder::Encoder;
use super::pttl;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::Inspecting,
    effect: KeyEffect::Passes,
    replies: 2,
    names: 2,
    form: only_form,
    encode,
    decode,
};

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let key = &*subject.resource;
    encoder.put(|command| command.arg("GETRANGE").arg(key).arg(0).arg(VALUE_MAX - 1));
    pttl::encode(key, encoder);
}

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let value = match replies.next()? {
        Value::ServerError(error) => return Some(Answer::refused(&error)),
        Value::BulkString(value) => value,
        _ => return None,
    };
    let left = replies.next()?;
    let left_ms = pttl::decode(&left)?;
    match left {
        // It has ended in between.
        Value::Int(pttl::NO_KEY) => Some(Answer::Absent),
        // It is ours, and for how long is what we are not told.
        Value::ServerError(error) if value == subject.token.as_bytes() => {
            Some(Answer::refused(&error))
        }
        _ => Some(found(value, left_ms)),
    }
}

/// `GETRANGE` answers an empty value for a key that is not there.
fn found(value: Vec<u8>, left_ms: Option<i64>) -> Answer {
    match left_ms {
        // It was set in between. It is none of whatever others were found to have.
        Some(0..) if value.is_empty() => Answer::Absent,
        Some(left_ms) => Answer::Found { value, left_ms },
        None if value.is_empty() => Answer::Absent,
        None => Answer::Found { value, left_ms: 0 },
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Nil};

    use super::*;

    fn answer(value: Value, left: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![value, left].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        let empty = Value::BulkString(Vec::new());
        assert_eq!(answer(empty.clone(), Int(-2)), Some(Answer::Absent));
        let found = Some(Answer::Found { value: Vec::new(), left_ms: -1 });
        assert_eq!(answer(empty.clone(), Int(-1)), found);
        // One that was there when it was read, and was not any more when its time was asked for.
        let ended = answer(Value::BulkString(b"theirs".to_vec()), Int(-2));
        assert_eq!(ended, Some(Answer::Absent));
        // One that was not there when it was read, and was when its time was asked for.
        assert_eq!(answer(empty, Int(5)), Some(Answer::Absent));
    }

    #[test]
    fn a_lock_of_ours_that_is_there_for_nobody_knows_how_long_is_not_a_short_one() {
        let refused = redis::parse_redis_value(b"-NOPERM no\r\n").expect("a reply");
        let asked = |value: &[u8]| answer(Value::BulkString(value.to_vec()), refused.clone());
        let ours = Subject::sample().token;
        assert!(matches!(asked(ours.as_bytes()), Some(Answer::Failed(_))));
        // That there is one is all that others want to know.
        assert!(matches!(asked(b"theirs"), Some(Answer::Found { .. })));
        assert_eq!(asked(b""), Some(Answer::Absent));
    }

    #[test]
    fn what_no_server_owes_is_no_answer() {
        assert_eq!(answer(Nil, Int(1)), None);
    }
}
