//! Joins the readers of a resource, unless a writer holds it or waits for it.

use redis::Value;

use super::{INTENT_MS, intent, readers};
use crate::protocol::command::answer::Answer;
use crate::protocol::command::capabilities::Capabilities;
use crate::protocol::command::definition::{Definition, Replies, Subject, numbers};
use crate::protocol::command::encoder::Encoder;
use crate::protocol::command::pttl;
use crate::protocol::command::script::script;
use crate::protocol::failure::Failure;

pub(in crate::protocol::command) static DEFINITION: Definition =
    Definition::script(3, encode, decode);

pub(crate) static SCRIPT: &str = script!("acquire.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put_script(&SCRIPT, |command| {
        command.arg(3).key(key).key(readers(key)).key(intent(key));
        command.arg(token).arg(subject.ttl_ms).arg(INTENT_MS)
    });
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    if replies.as_slice() == [Value::Int(1)] {
        return Some(Answer::Done);
    }
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, said]) => Some(Answer::Foreign { left_ms: pttl::left_ms(said) }),
        Ok([2, left_ms]) => Some(Answer::WriterWaits { left_ms }),
        Ok([3, _]) => Some(Answer::Failed(Failure::NoReaders)),
        Ok(_) => None,
    }
}

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
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Int(0)), None);
        assert_eq!(answer(Array(vec![Int(1)])), None);
        assert_eq!(pair(1, 0), None);
        assert_eq!(pair(4, 1), None);
    }
}
