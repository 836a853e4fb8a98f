//! Lets the key end after a time instead of deleting it, if it has the token. For one resource, and for several.

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject, only_form};
use super::encoder::Encoder;
use super::script::script;

pub(super) static DEFINITION: Definition = definition(Kind::Releasing);

pub(super) static OF_SEVERAL: Definition = definition(Kind::ReleasingSeveral);

const fn definition(kind: Kind) -> Definition {
    let effect = KeyEffect::Undoes;
    Definition { kind, effect, replies: 1, names: 1, form: only_form, encode, decode }
}

pub(crate) static SCRIPT: &str = script!("release_after.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let names = subject.names();
    encoder.put_script(&SCRIPT, |command| {
        command.arg(names.len());
        names.iter().for_each(|name| {
            command.arg(&**name);
        });
        command.arg(subject.token.as_bytes()).arg(subject.number)
    });
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::Int(1) => Some(Answer::Done),
        Value::Int(0) => Some(Answer::Absent),
        Value::ServerError(error) => Some(Answer::refused(&error)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Okay};

    use super::*;

    #[test]
    fn replies_become_answers() {
        let answer = |reply: Value| decode(&Subject::sample(), &mut vec![reply].drain(..));
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(answer(Int(0)), Some(Answer::Absent));
        assert_eq!(answer(Int(2)), None);
        assert_eq!(answer(Okay), None);
        let error = redis::parse_redis_value(b"-NOPERM no\r\n").expect("a reply");
        assert!(matches!(answer(error), Some(Answer::Failed(_))));
    }
}
