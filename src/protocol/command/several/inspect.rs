//! Asks whether all keys have the token, and for the shortest remaining time among them.

use super::extend;
use crate::protocol::command::answer::Answer;
use crate::protocol::command::definition::{Definition, Replies, Subject, put_script};

pub(in crate::protocol::command) static DEFINITION: Definition = Definition::script(
    1,
    |subject, _, encoder| put_script(subject, &extend::SCRIPT, &[], encoder),
    decode,
);

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    Some(match extend::decode(subject, replies)? {
        Answer::Extended { left_ms } => {
            Answer::Found { value: subject.token.as_bytes().to_vec(), left_ms }
        }
        other => other,
    })
}
