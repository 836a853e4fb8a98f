//! Deletes the key if it has the token. Uses a command if the server has one for that, and a script
//! otherwise.

use redis::Value;

use super::answer::{Answer, failure_of};
use super::capabilities::{Capabilities, Delete};
use super::definition::{Definition, Replies, Subject, put_script};
use super::encoder::Encoder;
use super::script::script;
use super::wire_form::FirstReply;

pub(super) static DEFINITION: Definition = Definition {
    replies: 1,
    names: 1,
    form: |capabilities| capabilities.delete as usize,
    encode,
    decode,
    usual: Some(FirstReply::One),
};

pub(super) static SCRIPT: &str = script!("release.lua");

fn encode(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    match capabilities.delete {
        Delete::Script => put_script(subject, &SCRIPT, &[], encoder),
        Delete::Delex => {
            encoder.put(|command| command.arg("DELEX").key(key).arg("IFEQ").arg(token))
        }
        Delete::Delifeq => encoder.put(|command| command.arg("DELIFEQ").key(key).arg(token)),
    }
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::Int(1) => Some(Answer::Done),
        Value::Int(0) => Some(Answer::Absent),
        Value::ServerError(error) => Some(match failure_of(&error) {
            failure if failure.is_of_another_type() => Answer::Absent,
            failure => Answer::Failed(failure),
        }),
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
    fn the_script_is_unchanged() {
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
        let native = b"-ERR Key should be of string type if conditions are specified\r\n";
        assert_eq!(error(native), Some(Answer::Absent));
        let wrapped = b"-ERR Error running script (call to f_1): @user_script:1: WRONGTYPE no\r\n";
        assert_eq!(error(wrapped), Some(Answer::Absent));
        assert!(matches!(error(b"-READONLY no\r\n"), Some(Answer::Failed(_))));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Int(2)), None);
    }
}
