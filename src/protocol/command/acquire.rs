//! Sets the key to the token for the TTL, unless the key exists. Also asks for its remaining time, so that a
//! refusal tells how long the holder still has. A repair is the same, and only the meaning of the answer
//! differs.
//!
//! If the server's clock is checked, the request asks when the key ends instead of its remaining time. For a
//! key that was just set, this is the time on the clock plus the TTL. The answer then contains that time
//! ([`Request::tells_end`]).
//!
//! [`Request::tells_end`]: super::Request::tells_end

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject};
use super::encoder::Encoder;
use super::pttl;
use super::wire_form::FirstReply;

pub(super) static DEFINITION: Definition = Definition {
    replies: 2,
    names: 2,
    form: |capabilities| match capabilities.leaves_out_end {
        true => 2,
        false => usize::from(capabilities.expiry_time),
    },
    encode,
    decode,
    usual: Some(FirstReply::Ok),
};

fn encode(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    set(subject, encoder);
    if !capabilities.leaves_out_end {
        ask_end(subject, capabilities, encoder);
    }
}

pub(super) fn set(subject: &Subject, encoder: &mut Encoder) {
    let &Subject { ref resource, ref token, ttl_ms, .. } = subject;
    encoder.put(|command| {
        let command = command.put_fixed(1, b"$3\r\nSET\r\n").key(&**resource).arg(token);
        command.put_fixed(1, b"$2\r\nPX\r\n").arg(ttl_ms).put_fixed(1, b"$2\r\nNX\r\n")
    });
}

/// Asks when the key ends, or for its remaining time.
pub(super) fn ask_end(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    let key = &*subject.resource;
    match capabilities.expiry_time {
        true => encoder.put(|command| command.put_fixed(1, b"$11\r\nPEXPIRETIME\r\n").key(key)),
        false => pttl::encode(key, encoder),
    }
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let set = replies.next()?;
    if let Value::ServerError(error) = &set {
        return Some(Answer::refused(error));
    }
    let left_ms = match replies.next() {
        Some(left) => pttl::decode(&left)?,
        None => None,
    };
    match set {
        Value::Okay => Some(Answer::Done),
        Value::Nil => Some(Answer::Foreign { left_ms }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Nil, Okay};

    use super::*;

    fn answer(set: Value, left: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![set, left].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(answer(Okay, Int(30_000)), Some(Answer::Done));
        assert_eq!(answer(Nil, Int(7)), Some(Answer::Foreign { left_ms: Some(7) }));
        assert_eq!(answer(Nil, Int(-2)), Some(Answer::Foreign { left_ms: None }));
        let refused = redis::parse_redis_value(b"-OOM no\r\n").expect("a reply");
        assert!(matches!(answer(refused.clone(), Int(-2)), Some(Answer::Failed(_))));
        assert_eq!(answer(Nil, refused), Some(Answer::Foreign { left_ms: None }));
        let without_end = |set| decode(&Subject::sample(), &mut vec![set].drain(..));
        assert_eq!(without_end(Okay), Some(Answer::Done));
        assert_eq!(without_end(Nil), Some(Answer::Foreign { left_ms: None }));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Int(1), Int(1)), None);
        assert_eq!(answer(Okay, Okay), None);
    }
}
