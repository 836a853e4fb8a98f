//! Asks what a server knows of fencing tokens, so that another server that has lost its numbers can be restored.

use super::answer::Answer;
use super::definition::{Definition, Replies, Subject, numbers};
use super::fence::{KEY, NO_MEMORY};
use super::numbers::{Fences, FencesState};
use super::script::script;
use crate::protocol::failure::Failure;

pub(super) static DEFINITION: Definition = Definition::script(
    1,
    |_, _, encoder| {
        encoder.put_script(&SCRIPT, |command| command.arg(1).key(KEY).arg(NO_MEMORY));
    },
    decode,
);

pub(crate) static SCRIPT: &str = script!("read_fences.lua");

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let (state, greatest, seen_ms) = match numbers(replies)? {
        Err(refused) => return Some(refused),
        Ok([1, number, 0, 0]) => (FencesState::Whole, number, 0),
        Ok([2, number, 0, seen_ms]) => (FencesState::ByClock, number, seen_ms),
        Ok([0, number, ago_ms, seen_ms]) if ago_ms >= 0 => {
            (FencesState::Lost { ago_ms }, number, seen_ms)
        }
        Ok([3, 0, 0, 0]) => return Some(Answer::Failed(Failure::NoFences)),
        Ok(_) => return None,
    };
    (greatest >= 0).then_some(Answer::Fences(Fences { greatest, state, seen_ms, memory: None }))
}

#[cfg(test)]
mod tests {
    use redis::Value::{self, Array, Int, Okay};

    use super::*;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![reply].drain(..))
    }

    fn says(numbers: [i64; 4]) -> Option<Answer> {
        answer(Array(numbers.into_iter().map(Int).collect()))
    }

    #[test]
    fn replies_become_answers() {
        for (said, state) in [
            ([1, 7, 0, 0], FencesState::Whole),
            ([2, 7, 0, 5], FencesState::ByClock),
            ([0, 7, 9, 5], FencesState::Lost { ago_ms: 9 }),
        ] {
            let fences = Fences { greatest: 7, state, seen_ms: said[3], memory: None };
            assert_eq!(says(said), Some(Answer::Fences(fences)));
        }
        assert_eq!(says([3, 0, 0, 0]), Some(Answer::Failed(Failure::NoFences)));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Okay), None);
        for said in [
            [1, 7, 1, 0],
            [1, 7, 0, 5],
            [2, 7, 1, 5],
            [0, 7, -1, 5],
            [0, -7, 1, 5],
            [1, -1, 0, 0],
            [3, 7, 0, 0],
            [4, 0, 0, 0],
        ] {
            assert_eq!(says(said), None, "{said:?}");
        }
    }
}
