//! Asks whether all keys have the token, and for the shortest remaining time among them.

use super::{extend, put_script};
use crate::protocol::command::answer::Answer;
use crate::protocol::command::definition::{
    Definition, KeyEffect, Kind, Replies, Subject, only_form,
};

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::InspectingSeveral,
    effect: KeyEffect::Passes,
    replies: 1,
    names: 1,
    form: only_form,
    encode: |subject, _, encoder| put_script(subject, &extend::SCRIPT, &[], encoder),
    decode,
};

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    Some(match extend::decode(subject, replies)? {
        Answer::Extended { left_ms } => {
            Answer::Found { value: subject.token.as_bytes().to_vec(), left_ms }
        }
        other => other,
    })
}
