//! Takes a slot of a semaphore, or moves the token from one slot to another. It is one script, so no other
//! client gets in between, and no token is ever in two slots of one server.

use redis::Value;

use super::answer::{Answer, Slots};
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject, array};
use super::encoder::Encoder;
use super::permits::{begin, slots};
use super::script::script;
use crate::protocol::slot_set::SlotSet;

/// Takes any slot. The token determines the slot where the search begins. So a client that takes one slot
/// after the other has the same order on all servers, and other clients have another order.
pub(super) static ANY: Definition = Definition::script(0, encode_any, decode);

/// Moves to one slot.
pub(super) static ONE: Definition = Definition::script(0, encode_one, decode);

pub(crate) static SCRIPT: &str = script!("slots.lua", "take_permit.lua");

fn encode_any(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let of = slots(subject);
    encode(subject, (subject.token.share_of(of) + 1, of), encoder);
}

fn encode_one(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let slot = u16::try_from(subject.number).unwrap_or(1);
    encode(subject, (slot, 1), encoder);
}

fn encode(subject: &Subject, (first, count): (u16, u16), encoder: &mut Encoder) {
    encoder.put_script(&SCRIPT, |command| {
        begin(subject, command).arg(subject.token.as_bytes()).arg(subject.ttl_ms);
        command.arg(first).arg(count)
    });
}

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let said = match array(replies)? {
        Ok(said) => said,
        Err(refused) => return Some(refused),
    };
    let [Value::Int(got), Value::BulkString(map), Value::Int(left_ms)] = &said[..] else {
        return None;
    };
    let of = slots(subject);
    if map.len() != usize::from(of) || map.iter().any(|it| !matches!(it, b'0' | b'1')) {
        return None;
    }
    let taken: SlotSet = (0..of).filter(|&slot| map[usize::from(slot)] == b'1').collect();
    let got = match u16::try_from(*got).ok()? {
        0 => None,
        number => Some(number - 1),
    };
    // A slot of ours counts as taken.
    match got {
        Some(slot) if slot >= of || !taken.contains(slot) => None,
        _ => Some(Answer::Slots(Slots { got, taken, left_ms: *left_ms })),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Array, BulkString, Int, Okay};

    use super::*;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::semaphore(3), &mut vec![reply].drain(..))
    }

    fn said(got: i64, map: &str, left_ms: i64) -> Option<Answer> {
        answer(Array(vec![Int(got), BulkString(map.into()), Int(left_ms)]))
    }

    fn slots_of(got: Option<u16>, taken: &[u16], left_ms: i64) -> Option<Answer> {
        let taken = taken.iter().copied().collect();
        Some(Answer::Slots(Slots { got, taken, left_ms }))
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(said(1, "101", -1), slots_of(Some(0), &[0, 2], -1));
        assert_eq!(said(3, "001", -1), slots_of(Some(2), &[2], -1));
        assert_eq!(said(0, "111", 7), slots_of(None, &[0, 1, 2], 7));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused), Some(Answer::Failed(_))));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Array(vec![Int(1), Int(1), Int(1)])), None);
        assert_eq!(answer(Array(vec![Int(1), BulkString(b"111".to_vec())])), None);
        // Maps that are too short, too long, or have other contents.
        let lies =
            [(1, "10"), (1, "1000"), (1, "1x0"), (1, ""), (4, "111"), (-1, "111"), (70_000, "111")];
        lies.iter().for_each(|&(got, map)| assert_eq!(said(got, map, -1), None, "{got} {map}"));
        assert_eq!(said(2, "101", -1), None, "it has a slot that is free");
    }
}
