//! Raises the counter of a resource to a fencing token that another server drew, as long as the lock is ours.
//! Otherwise a late request would raise it beyond the token of the next holder.

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject, only_form};
use super::encoder::Encoder;
use super::fence::{counter, counter_ttl_ms};
use super::script::script;
use crate::failure::Failure;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::Acquiring,
    effect: KeyEffect::Passes,
    replies: 1,
    names: 2,
    form: only_form,
    encode,
    decode,
};

pub(crate) static SCRIPT: &str = script!("raise_fence.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put_script(&SCRIPT, |command| {
        command.arg(2).arg(key).arg(counter(key)).arg(token);
        command.arg(subject.number).arg(counter_ttl_ms(subject.ttl_ms))
    });
}

pub(super) fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::ServerError(error) => Some(Answer::refused(&error)),
        Value::Int(0) => Some(Answer::Absent),
        Value::Int(1) => Some(Answer::Done),
        Value::Int(2) => Some(Answer::Failed(Failure::NoCounter)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Nil};

    use super::*;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![reply].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(answer(Int(0)), Some(Answer::Absent));
        assert_eq!(answer(Int(2)), Some(Answer::Failed(Failure::NoCounter)));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }

    #[test]
    fn what_no_server_owes_is_no_answer() {
        assert_eq!(answer(Nil), None);
        assert_eq!(answer(Int(3)), None);
    }
}
