//! Asks for the value of the key and its remaining time.

use redis::Value;

use super::answer::{Answer, VALUE_MAX, failure_of};
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject};
use super::encoder::Encoder;
use super::pttl;

pub(super) static DEFINITION: Definition =
    Definition { replies: 2, names: 2, form: |_| 0, encode, decode, usual: None };

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let key = &*subject.resource;
    encoder.put(|command| command.arg("GETRANGE").key(key).arg(0).arg(VALUE_MAX - 1));
    pttl::encode(key, encoder);
}

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let value = match replies.next()? {
        // A value of another type is in the way of a lock, and is nobody's token.
        Value::ServerError(error) => match failure_of(&error) {
            failure if failure.is_of_another_type() => None,
            failure => return Some(Answer::Failed(failure)),
        },
        Value::BulkString(value) => Some(value),
        _ => return None,
    };
    let left = replies.next()?;
    let left_ms = pttl::decode(&left)?;
    match (value, left) {
        // The key has expired in between.
        (_, Value::Int(pttl::NO_KEY)) => Some(Answer::Absent),
        // The key is ours, but the server does not tell its remaining time.
        (Some(value), Value::ServerError(error)) if value == subject.token.as_bytes() => {
            Some(Answer::refused(&error))
        }
        (Some(value), _) => Some(found(value, left_ms)),
        (None, _) => Some(Answer::Found { value: Vec::new(), left_ms: left_ms.unwrap_or(0) }),
    }
}

/// The reply to `GETRANGE` is an empty value if the key does not exist.
fn found(value: Vec<u8>, left_ms: Option<i64>) -> Answer {
    match left_ms {
        // The key was set in between. It is not one that others were found to hold.
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
        // A key that existed when it was read, but not any more when its remaining time was asked for.
        let ended = answer(Value::BulkString(b"theirs".to_vec()), Int(-2));
        assert_eq!(ended, Some(Answer::Absent));
        // A key that did not exist when it was read, but existed when its remaining time was asked for.
        assert_eq!(answer(empty, Int(5)), Some(Answer::Absent));
    }

    #[test]
    fn an_unknown_ttl_of_our_lock_is_not_a_short_one() {
        let refused = redis::parse_redis_value(b"-NOPERM no\r\n").expect("a reply");
        let asked = |value: &[u8]| answer(Value::BulkString(value.to_vec()), refused.clone());
        let ours = Subject::sample().token;
        assert!(matches!(asked(ours.as_bytes()), Some(Answer::Failed(_))));
        // Other clients only need to know that the key exists.
        assert!(matches!(asked(b"theirs"), Some(Answer::Found { .. })));
        assert_eq!(asked(b""), Some(Answer::Absent));
    }

    #[test]
    fn a_key_of_another_type_blocks_and_has_no_token() {
        let asked = |left: Value| {
            let wrong = redis::parse_redis_value(b"-WRONGTYPE no\r\n").expect("a reply");
            answer(wrong, left)
        };
        let found = |left_ms| Some(Answer::Found { value: Vec::new(), left_ms });
        assert_eq!(
            (asked(Int(-1)), asked(Int(7)), asked(Int(-2))),
            (found(-1), found(7), Some(Answer::Absent))
        );
        let refused = redis::parse_redis_value(b"-NOPERM no\r\n").expect("a reply");
        assert_eq!(asked(refused), found(0));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Nil, Int(1)), None);
    }
}
