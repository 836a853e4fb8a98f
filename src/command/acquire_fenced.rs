//! Sets the key to the token for the TTL, unless the key exists, and draws a fencing token. It is one script,
//! so no other client gets in between, and two grants of one server never have the same number.

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject, numbers, only_form};
use super::encoder::Encoder;
use super::fence::{SPREAD_US, counter, counter_ttl_ms};
use super::pttl;
use super::script::script;
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

pub(crate) static SCRIPT: &str = script!("acquire_fenced.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put_script(&SCRIPT, |command| {
        command.arg(2).arg(key).arg(counter(key)).arg(token);
        command.arg(subject.ttl_ms).arg(subject.number).arg(SPREAD_US);
        command.arg(counter_ttl_ms(subject.ttl_ms))
    });
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, said]) => Some(Answer::Foreign { left_ms: pttl::left_ms(said) }),
        Ok([1, number]) if number > 0 => Some(Answer::Granted { number }),
        Ok([2, _]) => Some(Answer::Failed(Failure::NoCounter)),
        Ok([3, left_ms]) => Some(Answer::Shared { readers: 0, left_ms: Some(left_ms) }),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{self, Array, Int, Okay};

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
