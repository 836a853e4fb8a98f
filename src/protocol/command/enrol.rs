//! Puts this manager into the wait queue of a resource, unless nobody holds the resource. It takes no lock. A
//! client that is told that the resource is free tries to take it in the form of its kind.
//!
//! The token of the request names the channel, and its number is the time since when we wait.

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject, numbers};
use super::encoder::Encoder;
use super::waking::{ENROL, LINE_TTL_MS, channel, line};

pub(super) static DEFINITION: Definition = Definition::script(2, encode, decode);

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let key = &*subject.resource;
    encoder.put_script(&ENROL, |command| {
        command.arg(2).key(key).key(line(key));
        command.arg(channel(&subject.token)).arg(subject.number).arg(LINE_TTL_MS)
    });
}

pub(super) fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let rank = |number| u32::try_from(number).ok();
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, left_ms, nth]) => Some(Answer::Enrolled { left_ms, rank: rank(nth)? }),
        Ok([1, _, _]) => Some(Answer::Free),
        Ok([2, left_ms, nth]) => Some(Answer::EnrolledBehindReaders { left_ms, rank: rank(nth)? }),
        Ok(_) => None,
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
        assert_eq!(answer(&[0, -1, 0]), Some(Answer::Enrolled { left_ms: -1, rank: 0 }));
        assert_eq!(answer(&[1, 0, 0]), Some(Answer::Free));
        assert_eq!(answer(&[2, 7, 3]), Some(Answer::EnrolledBehindReaders { left_ms: 7, rank: 3 }));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        for numbers in [&[3, 0, 0][..], &[0, 7], &[0, 7, -1], &[]] {
            assert_eq!(answer(numbers), None, "{numbers:?}");
        }
        assert_eq!(decode(&Subject::sample(), &mut vec![Okay].drain(..)), None);
    }
}
