//! Puts this manager into the wait queue of a resource for a reader, unless the reader may join the readers.

use super::{INTENT_MS, intent};
use crate::protocol::command::answer::Answer;
use crate::protocol::command::capabilities::Capabilities;
use crate::protocol::command::definition::{Definition, Replies, Subject};
use crate::protocol::command::encoder::Encoder;
use crate::protocol::command::enrol;
use crate::protocol::command::script::script;
use crate::protocol::command::waking::{LINE_TTL_MS, channel, line};

pub(in crate::protocol::command) static DEFINITION: Definition =
    Definition::script(3, encode, decode);

pub(crate) static SCRIPT: &str = script!("../stand.lua", "enrol.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let key = &*subject.resource;
    encoder.put_script(&SCRIPT, |command| {
        command.arg(3).key(key).key(line(key)).key(intent(key));
        command.arg(channel(&subject.token)).arg(subject.number).arg(LINE_TTL_MS).arg(INTENT_MS)
    });
}

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match enrol::decode(subject, replies)? {
        Answer::EnrolledBehindReaders { left_ms, rank } => {
            Some(Answer::EnrolledBehindWriter { left_ms, rank })
        }
        answer => Some(answer),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Array, Int, Okay};

    use super::*;

    fn answer(numbers: &[i64]) -> Option<Answer> {
        let said = Array(numbers.iter().copied().map(Int).collect());
        decode(&Subject::sample(), &mut vec![said].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(answer(&[0, 7, 3]), Some(Answer::Enrolled { left_ms: 7, rank: 3 }));
        assert_eq!(answer(&[1, 0, 0]), Some(Answer::Free));
        assert_eq!(answer(&[2, 7, 3]), Some(Answer::EnrolledBehindWriter { left_ms: 7, rank: 3 }));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(&[3, 0, 0]), None);
        assert_eq!(decode(&Subject::sample(), &mut vec![Okay].drain(..)), None);
    }
}
