//! Gives a reader at least the TTL if it still is a reader, and turns a writer into a reader, which then
//! keeps its end. Both are one script: a server that the downgrade did not reach does it with the next
//! extension.

use redis::Value;

use super::{LONGEST_MS, readers};
use crate::protocol::command::answer::Answer;
use crate::protocol::command::definition::{Definition, Replies, Subject};
use crate::protocol::command::encoder::Encoder;
use crate::protocol::command::extend;
use crate::protocol::command::script::script;
use crate::protocol::failure::Failure;

pub(in crate::protocol::command) static DEFINITION: Definition =
    Definition::script(2, |subject, _, encoder| encode(subject, subject.ttl_ms, encoder), decode);

/// The same, without more time.
pub(in crate::protocol::command) static DOWNGRADE: Definition =
    Definition { encode: |subject, _, encoder| encode(subject, 0, encoder), ..DEFINITION };

pub(crate) static SCRIPT: &str = script!("extend.lua");

fn encode(subject: &Subject, ttl_ms: i64, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put_script(&SCRIPT, |command| {
        command.arg(2).key(key).key(readers(key)).arg(token);
        command.arg(ttl_ms).arg(LONGEST_MS)
    });
}

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.as_slice() {
        [Value::Array(said)] if matches!(said[..], [Value::Int(3), Value::Int(_)]) => {
            Some(Answer::Failed(Failure::NoReaders))
        }
        _ => extend::decode(subject, replies),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Array, Int, Okay};

    use super::*;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![reply].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        let pair = |what, left_ms| answer(Array(vec![Int(what), Int(left_ms)]));
        assert_eq!(pair(1, 7), Some(Answer::Extended { left_ms: 7 }));
        assert_eq!(pair(2, 7), Some(Answer::Foreign { left_ms: Some(7) }));
        assert_eq!(pair(0, -2), Some(Answer::Absent));
        assert_eq!(pair(3, 0), Some(Answer::Failed(Failure::NoReaders)));
        assert_eq!(pair(4, 0), None);
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Array(vec![Int(1)])), None);
    }
}
