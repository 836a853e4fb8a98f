//! Restores the numbers of a server that has lost them. Each server is sent a request of its own.

use redis::Value;

use super::answer::Answer;
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject, only_form};
use super::fence::{KEY, SPREAD_US};
use super::guard;
use super::numbers::Restored;
use super::script::script;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::Acquiring,
    effect: KeyEffect::Passes,
    replies: 1,
    names: 1,
    form: only_form,
    encode: |subject, _, encoder| {
        let Some(Restored { memory, seen_ms, base, clock_us, is_by_clock }) = &subject.restored
        else {
            return;
        };
        encoder.put_script(&SCRIPT, |command| {
            command.arg(2).arg(KEY).arg(guard::KEY);
            command.arg(memory.generation).arg(memory.life.as_str()).arg(base);
            command.arg(clock_us).arg(SPREAD_US).arg(i32::from(*is_by_clock)).arg(seen_ms)
        });
    },
    decode,
};

pub(crate) static SCRIPT: &str = script!("restore_fences.lua");

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::ServerError(error) => Some(Answer::refused(&error)),
        Value::Int(0) => Some(Answer::Absent),
        Value::Int(1) => Some(Answer::Done),
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
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(answer(Int(0)), Some(Answer::Absent));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
        assert_eq!((answer(Int(2)), answer(Nil)), (None, None));
    }
}
