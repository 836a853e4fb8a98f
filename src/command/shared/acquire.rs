//! Joins the readers of a resource, unless a writer has it, or waits for it.

use redis::Value;

use super::{INTENT_MS, intent, readers};
use crate::command::answer::Answer;
use crate::command::capabilities::Capabilities;
use crate::command::definition::{Definition, KeyEffect, Kind, Replies, Subject, only_form};
use crate::command::encoder::Encoder;
use crate::command::script::Script;
use crate::failure::Failure;

pub(in crate::command) static DEFINITION: Definition = Definition {
    kind: Kind::Acquiring,
    effect: KeyEffect::Leaves,
    replies: 1,
    names: 3,
    form: only_form,
    encode,
    decode,
};

const FILE: &str = include_str!("acquire.lua");
const LINE: Script<{ FILE.len() }> = Script::of(FILE);
pub(crate) static SCRIPT: &str = LINE.text();

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put(|command| {
        command.arg("EVAL").arg(SCRIPT).arg(3).arg(key).arg(readers(key)).arg(intent(key));
        command.arg(token).arg(subject.ttl_ms).arg(INTENT_MS)
    });
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let said = match replies.next()? {
        Value::Int(1) => return Some(Answer::Done),
        Value::ServerError(error) => return Some(Answer::refused(&error)),
        Value::Array(said) => said,
        _ => return None,
    };
    let &[Value::Int(what), Value::Int(left_ms)] = &said[..] else { return None };
    match what {
        0 => Some(Answer::Foreign { left_ms: (left_ms != NO_SUCH_KEY).then_some(left_ms) }),
        2 => Some(Answer::WriterWaits { left_ms }),
        3 => Some(Answer::Failed(Failure::NoReaders)),
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
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(pair(0, 7), Some(Answer::Foreign { left_ms: Some(7) }));
        assert_eq!(pair(0, -1), Some(Answer::Foreign { left_ms: Some(-1) }));
        assert_eq!(pair(0, -2), Some(Answer::Foreign { left_ms: None }));
        assert_eq!(pair(2, 400), Some(Answer::WriterWaits { left_ms: 400 }));
        assert_eq!(pair(3, 0), Some(Answer::Failed(Failure::NoReaders)));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }

    #[test]
    fn what_no_server_owes_is_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Int(0)), None);
        assert_eq!(answer(Array(vec![Int(1)])), None);
        assert_eq!(pair(1, 0), None);
        assert_eq!(pair(4, 1), None);
    }
}
