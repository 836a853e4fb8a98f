//! Waiting for several resources, and waking the waiters for one of them. On each server a waiter is in the
//! wait queue of the resource that is in the way there.

use redis::Value;

use super::{place, release};
use crate::protocol::command::answer::Answer;
use crate::protocol::command::capabilities::Capabilities;
use crate::protocol::command::definition::{Definition, Replies, Subject, numbers};
use crate::protocol::command::encoder::Encoder;
use crate::protocol::command::script::{Script, script};
use crate::protocol::command::waking::{LINE_TTL_MS, channel, line};

/// Puts this manager into a wait queue, unless nobody holds any of the resources.
pub(in crate::protocol::command) static ENROL: Definition =
    Definition::script(2, encode_enrol, decode_enrol);

/// Deletes the keys that have the token, and wakes the first waiter of each, if that is allowed.
pub(in crate::protocol::command) static RELEASE: Definition = Definition {
    form: |capabilities| usize::from(capabilities.wakes),
    ..Definition::script(2, encode_release, decode_release)
};

pub(crate) static ENROL_SCRIPT: &str =
    script!("in_the_way.lua", "../wake.lua", "../stand.lua", "enrol.lua");

pub(crate) static RELEASE_SCRIPT: &str = script!("../wake.lua", "release_and_wake.lua");

/// Adds the resources and the wait queues of those that it is about. Then adds these arguments, the number of
/// resources, and the resource number of each wait queue.
fn put(subject: &Subject, script: Script, arguments: &[&[u8]], encoder: &mut Encoder) {
    let names = subject.names();
    encoder.put_script(script, |command| {
        command.arg(names.len() + subject.lined().count());
        for name in names {
            command.key(&**name);
        }
        for (_, name) in subject.lined() {
            command.key(line(name));
        }
        for &argument in arguments {
            command.arg(argument);
        }
        command.arg(names.len());
        for (place, _) in subject.lined() {
            command.arg(place);
        }
        command
    });
}

fn encode_enrol(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (since, ttl) = (subject.number.to_string(), LINE_TTL_MS.to_string());
    let arguments = [&*channel(&subject.token), since.as_bytes(), ttl.as_bytes()];
    put(subject, &ENROL_SCRIPT, &arguments, encoder);
}

fn encode_release(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    match capabilities.wakes {
        true => put(subject, &RELEASE_SCRIPT, &[subject.token.as_bytes()], encoder),
        false => (release::DEFINITION.encode)(subject, capabilities, encoder),
    }
}

fn decode_enrol(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers::<4>(replies)? {
        Err(refused) => Some(refused),
        Ok([1, _, _, _]) => Some(Answer::Free),
        Ok([what @ (0 | 2), left_ms, rank, nth]) => {
            let rank = if rank == -1 { None } else { Some(u32::try_from(rank).ok()?) };
            let (place, left_ms) = (place(subject, nth)?, (left_ms != -2).then_some(left_ms));
            Some(Answer::EnrolledForOne { place, left_ms, rank, is_shared: what == 2 })
        }
        Ok(_) => None,
    }
}

/// Without waking, this is the answer to a plain release.
fn decode_release(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let [Value::Array(said)] = replies.as_slice() else {
        return (release::DEFINITION.decode)(subject, replies);
    };
    let &[Value::Int(deleted), Value::Int(told @ (1 | 2))] = &said[..] else { return None };
    let count = i64::try_from(subject.names().len()).ok()?;
    match (deleted == count, told) {
        (true, 2) => Some(Answer::Woke),
        (true, _) => Some(Answer::Done),
        _ => (0..count).contains(&deleted).then_some(Answer::Absent),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redis::Value::{Array, Int};

    use super::*;
    use crate::protocol::command::NthKey;
    use crate::protocol::lock_kind::LockKind;

    fn two(lines: u128) -> Subject {
        let names: Arc<[Arc<[u8]>]> = [&b"a"[..], b"b"].map(Arc::from).into();
        Subject { kind: LockKind::Several(names), lines, ..Subject::sample() }
    }

    fn words(definition: &Definition, lines: u128, capabilities: Capabilities) -> String {
        let mut encoder = Encoder::default();
        (definition.encode)(&two(lines), capabilities, &mut encoder);
        let text = String::from_utf8_lossy(&encoder.take().whole()).into_owned();
        let words = text.split("\r\n").filter(|it| !it.is_empty() && !it.starts_with(['$', '*']));
        words.skip(2).map(|it| it.replace("ABABABAB", "")).collect::<Vec<_>>().join(" ")
    }

    fn numbers(numbers: &[i64]) -> Vec<Value> {
        vec![Array(numbers.iter().copied().map(Int).collect())]
    }

    #[test]
    fn a_request_names_only_its_own_lines() {
        let waking = Capabilities::WAKING;
        assert_eq!(words(&ENROL, 2, waking), "3 a b b:w redlock:w: 0 15000 2 2");
        assert_eq!(words(&RELEASE, u128::MAX, waking), "4 a b a:w b:w  2 1 2");
        assert_eq!(words(&RELEASE, 1, waking), "3 a b a:w  2 1");
        assert_eq!(words(&RELEASE, u128::MAX, Capabilities::PLAIN), "2 a b ");
    }

    #[test]
    fn replies_become_answers() {
        let enrolled = |said: &[i64]| decode_enrol(&two(3), &mut numbers(said).drain(..));
        let at = |rank, left_ms, is_shared| {
            let place = NthKey { nth: 2, of: 2 };
            Some(Answer::EnrolledForOne { place, left_ms, rank, is_shared })
        };
        assert_eq!(enrolled(&[0, 7, 3, 2]), at(Some(3), Some(7), false));
        assert_eq!(enrolled(&[2, -1, 0, 2]), at(Some(0), Some(-1), true));
        assert_eq!(enrolled(&[0, -2, -1, 2]), at(None, None, false));
        assert_eq!(enrolled(&[1, 0, 0, 0]), Some(Answer::Free));
        let released = |said: Vec<Value>| decode_release(&two(3), &mut said.clone().drain(..));
        assert_eq!(released(numbers(&[2, 2])), Some(Answer::Woke));
        assert_eq!(released(numbers(&[2, 1])), Some(Answer::Done));
        assert_eq!(released(numbers(&[1, 2])), Some(Answer::Absent));
        assert_eq!(released(vec![Int(2)]), Some(Answer::Done));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        for said in [&[0, 7, 3, 0][..], &[0, 7, 3, 3], &[0, 7, -2, 1], &[3, 0, 0, 1], &[0, 7, 3]] {
            assert_eq!(decode_enrol(&two(3), &mut numbers(said).drain(..)), None, "{said:?}");
        }
        for said in [&[3, 1][..], &[-1, 1], &[2, 3], &[2]] {
            assert_eq!(decode_release(&two(3), &mut numbers(said).drain(..)), None, "{said:?}");
        }
    }
}
