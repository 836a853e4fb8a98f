//! Asks whether we are one of the readers of a resource, and for how long. If we are not, asks who holds the
//! resource.

use redis::Value;

use super::{LONGEST_MS, readers};
use crate::protocol::command::answer::{Answer, VALUE_MAX};
use crate::protocol::command::capabilities::Capabilities;
use crate::protocol::command::definition::{Definition, Replies, Subject, array};
use crate::protocol::command::encoder::Encoder;
use crate::protocol::command::script::script;

pub(in crate::protocol::command) static DEFINITION: Definition =
    Definition::script(2, encode, decode);

pub(crate) static SCRIPT: &str = script!("inspect.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put_script(&SCRIPT, |command| {
        command.arg(2).key(key).key(readers(key)).arg(token);
        command.arg(VALUE_MAX).arg(LONGEST_MS)
    });
}

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let said = match array(replies)? {
        Ok(said) => said,
        Err(refused) => return Some(refused),
    };
    match &said[..] {
        [Value::BulkString(value), Value::Int(-2)] if value.is_empty() => Some(Answer::Absent),
        [Value::BulkString(value), Value::Int(left_ms)] => {
            Some(Answer::Found { value: value.clone(), left_ms: *left_ms })
        }
        [Value::Int(1), Value::Int(left_ms @ 0..)] => {
            let value = subject.token.as_bytes().to_vec();
            Some(Answer::Found { value, left_ms: *left_ms })
        }
        [Value::Int(0), Value::Int(left_ms), Value::Int(readers @ 0..)] => {
            Some(Answer::Shared { readers: *readers, left_ms: Some(*left_ms) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Array, BulkString, Int, Okay};

    use super::*;

    fn answer(said: Vec<Value>) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![Array(said)].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        let text = |text: &str| BulkString(text.into());
        assert_eq!(answer(vec![text(""), Int(-2)]), Some(Answer::Absent));
        let found = |value: &[u8], left_ms| Some(Answer::Found { value: value.to_vec(), left_ms });
        assert_eq!(answer(vec![text(""), Int(-1)]), found(b"", -1));
        assert_eq!(answer(vec![text("theirs"), Int(7)]), found(b"theirs", 7));
        assert_eq!(answer(vec![Int(1), Int(7)]), found(Subject::sample().token.as_bytes(), 7));
        let shared = Some(Answer::Shared { readers: 3, left_ms: Some(7) });
        assert_eq!(answer(vec![Int(0), Int(7), Int(3)]), shared);
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(decode(&Subject::sample(), &mut vec![Okay].drain(..)), None);
        assert_eq!(answer(vec![Int(1)]), None);
        assert_eq!(answer(vec![Int(1), Int(-1)]), None);
        assert_eq!(answer(vec![Int(0), Int(7)]), None);
        assert_eq!(answer(vec![Int(0), Int(7), Int(-3)]), None);
        assert_eq!(answer(vec![Int(2), Int(7)]), None);
    }
}
