//! Deletes the key if it has the token, and wakes who waits for it first. Where that may not be done (this user may not
//! touch the line, or the two keys are of two slots), the key is deleted in the form of a plain release.

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, KeyEffect, Kind, Replies, Subject};
use super::encoder::Encoder;
use super::release;
use super::waking::{RELEASE_AND_WAKE, line};

/// The form that wakes; those below are a plain release's.
const WAKES: usize = 3;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::Releasing,
    effect: KeyEffect::Undoes,
    replies: 1,
    names: 2,
    form: |capabilities| if capabilities.wakes { WAKES } else { capabilities.delete as usize },
    encode,
    decode,
};

fn encode(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    if !capabilities.wakes {
        return (release::DEFINITION.encode)(subject, capabilities, encoder);
    }
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put(|command| {
        command.arg("EVAL").arg(RELEASE_AND_WAKE).arg(2).arg(key).arg(line(key)).arg(token)
    });
}

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.as_slice() {
        [Value::Int(2), ..] => Some(Answer::Woke),
        _ => (release::DEFINITION.decode)(subject, replies),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Okay};

    use super::*;

    #[test]
    fn replies_become_answers() {
        let answer = |reply| decode(&Subject::sample(), &mut vec![reply].drain(..));
        assert_eq!(answer(Int(2)), Some(Answer::Woke));
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(answer(Int(0)), Some(Answer::Absent));
        assert_eq!((answer(Int(3)), answer(Okay)), (None, None));
    }
}
