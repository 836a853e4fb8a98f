//! Deletes the key if it has the token. Uses a command if the server has one for that, and a script
//! otherwise.

use redis::Value;

use super::answer::Answer;
use super::capabilities::{Capabilities, Delete};
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject};
use super::encoder::Encoder;
use super::script::script;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::Releasing,
    effect: KeyEffect::Undoes,
    replies: 1,
    names: 1,
    form: |capabilities| capabilities.delete as usize,
    encode,
    decode,
};

pub(super) static SCRIPT: &str = script!("release.lua");

fn encode(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    match capabilities.delete {
        Delete::Script => encoder.put_script(&SCRIPT, |command| command.arg(1).arg(key).arg(token)),
        Delete::Delex => {
            encoder.put(|command| command.arg("DELEX").arg(key).arg("IFEQ").arg(token))
        }
        Delete::Delifeq => encoder.put(|command| command.arg("DELIFEQ").arg(key).arg(token)),
    }
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::Int(1) => Some(Answer::Done),
        Value::Int(0) => Some(Answer::Absent),
        // The name has a value of another type, so it has none of ours.
        Value::ServerError(error) if error.code() == "WRONGTYPE" => Some(Answer::Absent),
        Value::ServerError(error) => Some(Answer::refused(&error)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Okay};

    use super::*;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![reply].drain(..))
    }

    #[test]
    fn the_script_is_sent_as_ever() {
        let sent = "if redis.call('GET',KEYS[1])==ARGV[1] \
            then return redis.call('DEL',KEYS[1]) end return 0";
        assert_eq!(SCRIPT, sent);
    }

    #[test]
    fn replies_become_answers() {
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(answer(Int(0)), Some(Answer::Absent));
        let error = |reply: &[u8]| answer(redis::parse_redis_value(reply).expect("a reply"));
        assert_eq!(error(b"-WRONGTYPE no\r\n"), Some(Answer::Absent));
        assert!(matches!(error(b"-READONLY no\r\n"), Some(Answer::Failed(_))));
    }

    #[test]
    fn what_no_server_owes_is_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Int(2)), None);
    }
}
