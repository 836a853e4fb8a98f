//! Asks who holds the slots of a semaphore, and for how long.

use redis::Value;

use super::answer::{Answer, SlotValue, VALUE_MAX};
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject, array};
use super::encoder::Encoder;
use super::permits::{begin, slots};
use super::script::script;

pub(super) static DEFINITION: Definition = Definition::script(0, encode, decode);

pub(crate) static SCRIPT: &str = script!("slots.lua", "inspect_permits.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    encoder.put_script(&SCRIPT, |command| begin(subject, command).arg(VALUE_MAX));
}

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let said = match array(replies)? {
        Ok(said) => said,
        Err(refused) => return Some(refused),
    };
    let of = slots(subject);
    let mut found: Vec<SlotValue> = Vec::new();
    for part in said.chunks(3) {
        let [Value::Int(number), Value::BulkString(value), Value::Int(left_ms)] = part else {
            return None;
        };
        let number = u16::try_from(*number).ok().filter(|number| (1..=of).contains(number))?;
        let slot = number - 1;
        if found.last().is_some_and(|last| last.slot >= slot) || value.len() > VALUE_MAX {
            return None;
        }
        found.push(SlotValue { slot, value: value.clone(), left_ms: *left_ms });
    }
    Some(Answer::Permits(found))
}

#[cfg(test)]
mod tests {
    use redis::Value::{Array, BulkString, Int, Okay};

    use super::*;

    fn answer(parts: &[(i64, &str, i64)]) -> Option<Answer> {
        let part = |&(slot, value, left_ms): &(i64, &str, i64)| {
            [Int(slot), BulkString(value.into()), Int(left_ms)]
        };
        let reply = Array(parts.iter().flat_map(part).collect());
        decode(&Subject::semaphore(3), &mut vec![reply].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(answer(&[]), Some(Answer::Permits(Vec::new())));
        let found = |slot, value: &str, left_ms| SlotValue { slot, value: value.into(), left_ms };
        let both = vec![found(0, "a", 7), found(2, "b", -1)];
        assert_eq!(answer(&[(1, "a", 7), (3, "b", -1)]), Some(Answer::Permits(both)));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        for lie in
            [[(0, "a", 7), (2, "b", 7)], [(2, "a", 7), (2, "b", 7)], [(1, "a", 7), (4, "b", 7)]]
        {
            assert_eq!(answer(&lie), None, "{lie:?}");
        }
        assert_eq!(answer(&[(1, &"v".repeat(129), 7)]), None);
        let short = Array(vec![Int(1)]);
        for reply in [Okay, short] {
            assert_eq!(decode(&Subject::semaphore(3), &mut vec![reply].drain(..)), None);
        }
    }
}
