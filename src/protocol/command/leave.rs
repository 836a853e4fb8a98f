//! Takes this manager out of the wait queue of a resource. If it was told meanwhile that the resource is
//! free, the next waiter is told.

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject};
use super::encoder::Encoder;
use super::waking::{LEAVE, LEAVE_SLOT, channel, put_lined};

pub(super) static DEFINITION: Definition = Definition::script(3, encode, decode);

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    put_lined(&subject.resource, [&LEAVE, &LEAVE_SLOT], channel(&subject.token), encoder);
}

pub(super) fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::Int(0..=2) => Some(Answer::Done),
        Value::ServerError(error) => Some(Answer::refused(&error)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Nil};

    use super::*;

    #[test]
    fn replies_become_answers() {
        let answer = |reply| decode(&Subject::sample(), &mut vec![reply].drain(..));
        assert_eq!([0, 1, 2].map(|it| answer(Int(it))), [const { Some(Answer::Done) }; 3]);
        assert_eq!((answer(Int(3)), answer(Nil)), (None, None));
        let refused = redis::parse_redis_value(b"-NOPERM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }
}
