//! Sets the key to the token for the TTL, unless the key exists, and draws a fencing token. It is one script,
//! so no other client gets in between, and two grants of one server never have the same number.

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject, numbers};
use super::encoder::Encoder;
use super::fence::{SPREAD_US, drawn, put_fenced};
use super::pttl;
use super::script::script;

pub(super) static DEFINITION: Definition = Definition::script(1, encode, decode);

pub(crate) static SCRIPT: &str = script!("draw.lua", "acquire_with_token.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    put_fenced(subject, &SCRIPT, &[subject.ttl_ms, subject.number, SPREAD_US], encoder);
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, said]) => Some(Answer::Foreign { left_ms: pttl::left_ms(said) }),
        Ok([3, left_ms]) => Some(Answer::Shared { readers: 0, left_ms: Some(left_ms) }),
        Ok(said) => drawn(said),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{self, Array, Int, Okay};

    use super::*;
    use crate::protocol::failure::Failure;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![reply].drain(..))
    }

    fn pair(what: i64, number: i64) -> Option<Answer> {
        answer(Array(vec![Int(what), Int(number)]))
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(pair(-5, 7), Some(Answer::Granted { number: 7 }));
        assert_eq!(pair(-3, 7), Some(Answer::GrantedByClock { number: 7 }));
        assert_eq!(pair(-2, 7), Some(Answer::Unfenced { ago_ms: 7 }));
        assert_eq!(pair(0, 7), Some(Answer::Foreign { left_ms: Some(7) }));
        assert_eq!(pair(0, -1), Some(Answer::Foreign { left_ms: Some(-1) }));
        assert_eq!(pair(0, -2), Some(Answer::Foreign { left_ms: None }));
        assert_eq!(pair(-1, 0), Some(Answer::Failed(Failure::NoFences)));
        assert_eq!(pair(-4, 0), Some(Answer::Failed(Failure::ClockBeyond)));
        assert_eq!(pair(3, 7), Some(Answer::Shared { readers: 0, left_ms: Some(7) }));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Array(vec![Int(1)])), None);
        for (what, number) in
            [(4, 1), (1, 7), (-6, 7), (-5, 0), (-3, 0), (-2, -1), (-1, 1), (-4, 1)]
        {
            assert_eq!(pair(what, number), None, "{what} {number}");
        }
    }
}
