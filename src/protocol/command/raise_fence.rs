//! Raises the numbers of all resources of a lock to a fencing token that another server drew, as long as the lock is
//! ours. Otherwise a late request would raise them beyond the token of the next holder.

use redis::Value;

use super::answer::Answer;
use super::definition::{Definition, Replies, Subject, done_or_absent};
use super::fence::put_fenced;
use super::script::script;
use crate::protocol::failure::Failure;

pub(super) static DEFINITION: Definition = Definition::script(
    1,
    |subject, _, encoder| put_fenced(subject, &SCRIPT, &[subject.number], encoder),
    decode,
);

pub(crate) static SCRIPT: &str = script!("raise_fence.lua");

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.as_slice() {
        [Value::Int(2)] => Some(Answer::Failed(Failure::NoFences)),
        [Value::Int(3)] => Some(Answer::Unfenced { ago_ms: 0 }),
        _ => done_or_absent(subject, replies),
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
        assert_eq!(answer(Int(2)), Some(Answer::Failed(Failure::NoFences)));
        assert_eq!(answer(Int(3)), Some(Answer::Unfenced { ago_ms: 0 }));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Nil), None);
        assert_eq!(answer(Int(4)), None);
    }
}
