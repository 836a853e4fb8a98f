//! Sets the key to the token for the TTL, unless it is there, and draws a fencing token. One script: nobody comes
//! in between, so two grants of one server never have the same number.

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject, only_form};
use super::encoder::Encoder;
use super::fence::{SPREAD_US, counter, counter_ttl_ms};
use super::script::Script;
use crate::failure::Failure;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::Acquiring,
    effect: KeyEffect::Leaves,
    replies: 1,
    names: 2,
    form: only_form,
    encode,
    decode,
};

const FILE: &str = include_str!("acquire_fenced.lua");
const LINE: Script<{ FILE.len() }> = Script::of(FILE);
pub(crate) static SCRIPT: &str = LINE.text();

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put(|command| {
        command.arg("EVAL").arg(SCRIPT).arg(2).arg(key).arg(counter(key)).arg(token);
        command.arg(subject.ttl_ms).arg(subject.number).arg(SPREAD_US);
        command.arg(counter_ttl_ms(subject.ttl_ms))
    });
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let said = match replies.next()? {
        Value::ServerError(error) => return Some(Answer::refused(&error)),
        Value::Array(said) => said,
        _ => return None,
    };
    let &[Value::Int(what), Value::Int(number)] = &said[..] else { return None };
    match what {
        0 => Some(Answer::Foreign { left_ms: (number != NO_SUCH_KEY).then_some(number) }),
        1 if number > 0 => Some(Answer::Granted { number }),
        2 => Some(Answer::Failed(Failure::NoCounter)),
        3 => Some(Answer::Shared { readers: 0, left_ms: Some(number) }),
        _ => None,
    }
}

/// What PTTL says of a key that has gone.
const NO_SUCH_KEY: i64 = -2;

#[cfg(test)]
mod tests {
    use redis::Value::{Array, Int, Okay};

    use super::*;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![reply].drain(..))
    }

    fn pair(what: i64, number: i64) -> Option<Answer> {
        answer(Array(vec![Int(what), Int(number)]))
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(pair(1, 7), Some(Answer::Granted { number: 7 }));
        assert_eq!(pair(0, 7), Some(Answer::Foreign { left_ms: Some(7) }));
        assert_eq!(pair(0, -1), Some(Answer::Foreign { left_ms: Some(-1) }));
        assert_eq!(pair(0, -2), Some(Answer::Foreign { left_ms: None }));
        assert_eq!(pair(2, 0), Some(Answer::Failed(Failure::NoCounter)));
        assert_eq!(pair(3, 7), Some(Answer::Shared { readers: 0, left_ms: Some(7) }));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }

    #[test]
    fn what_no_server_owes_is_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Array(vec![Int(1)])), None);
        assert_eq!(pair(4, 1), None);
        assert_eq!(pair(1, 0), None);
    }
}
