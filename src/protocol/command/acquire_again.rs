//! The acquire of a waiting client. It also asks how many readers hold the resource, because they may be
//! asked to leave it to this client ([`super::shared::intend`]).

use redis::Value;

use super::acquire;
use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject};
use super::encoder::Encoder;
use super::pttl;
use super::shared::readers;

pub(super) static DEFINITION: Definition =
    Definition { replies: 3, names: 3, encode, decode, usual: None, ..acquire::DEFINITION };

fn encode(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    let key = &*subject.resource;
    acquire::set(subject, encoder);
    encoder.put(|command| command.arg("ZCARD").key(readers(key)));
    acquire::ask_end(subject, capabilities, encoder);
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let set = replies.next()?;
    // A key of another type, or one that this user may not read, has no readers.
    let readers = match replies.next()? {
        Value::Int(readers) => readers,
        Value::ServerError(_) => 0,
        _ => return None,
    };
    if let Value::ServerError(error) = &set {
        return Some(Answer::refused(error));
    }
    let left_ms = pttl::decode(&replies.next()?)?;
    match (set, readers) {
        (Value::Okay, _) => Some(Answer::Done),
        (Value::Nil, 1..) => Some(Answer::Shared { readers, left_ms }),
        (Value::Nil, _) => Some(Answer::Foreign { left_ms }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Nil, Okay};

    use super::*;

    fn answer(set: Value, readers: Value, left: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![set, readers, left].drain(..))
    }

    #[test]
    fn replies_become_answers() {
        let refused = redis::parse_redis_value(b"-WRONGTYPE no\r\n").expect("a reply");
        assert_eq!(answer(Okay, Int(0), Int(30_000)), Some(Answer::Done));
        assert_eq!(answer(Okay, Int(2), Int(30_000)), Some(Answer::Done));
        assert_eq!(answer(Nil, Int(0), Int(7)), Some(Answer::Foreign { left_ms: Some(7) }));
        let shared = Some(Answer::Shared { readers: 2, left_ms: Some(7) });
        assert_eq!(answer(Nil, Int(2), Int(7)), shared);
        let foreign = Some(Answer::Foreign { left_ms: Some(7) });
        assert_eq!(answer(Nil, refused.clone(), Int(7)), foreign);
        assert!(matches!(answer(refused, Int(0), Int(-2)), Some(Answer::Failed(_))));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Nil, Okay, Int(7)), None);
        assert_eq!(answer(Nil, Int(0), Okay), None);
        assert_eq!(answer(Int(1), Int(0), Int(7)), None);
    }
}
